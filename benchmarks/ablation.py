"""``memgraph bench ablation``: what recall is worth without each of its legs and modifiers.

A leg of weight 0 is not run and brings no candidates, a modifier is neutral at a factor or floor of
1 or a weight of 0. The conversations are loaded once and asked
again with other weights; histories of facts that change, which conversations have none of, are
asked for what depends on them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import locomo, staleness
from memgraph.retrieval import legs, scores
from memgraph.rules.ranking import ModifierSettings
from memgraph.service.memory_service import MemoryService

WHOLE = "everything"
COMPARED = "recall@10"
LEGS = tuple(legs.WEIGHTS)
NEUTRAL: Mapping[str, Mapping[str, float]] = {
    "importance": {"importance_weight": 0.0},
    "recency": {"recency_floor": 1.0},
    "confidence": {"confidence_floor": 1.0},
    "contradiction": {"contradiction_factor": 1.0},
    "stale basis": {"stale_basis_factor": 1.0},
    "status": {"superseded_factor": 1.0, "retracted_factor": 1.0},
}
# What histories of facts that change depend on, beside the legs that find by words.
OF_HISTORIES = ("graph leg", "succession leg", "context leg", *NEUTRAL, "modifiers")
HISTORY_MEASURES = (
    "stale_above",
    "stale_above_with_superseded",
    "current@1",
    "current@3",
    "unchanged@1",
    "unchanged@3",
    "open_both_sides",
    "as_of",
)


@dataclass(frozen=True)
class Variant:
    """A way to rank.

    Attributes:
        weights: those of the legs that differ from ``legs.WEIGHTS``.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    modifiers: ModifierSettings = scores.MODIFIERS

    @contextmanager
    def ranks(self) -> Iterator[None]:
        """Have every recall of the process rank this way."""
        with (
            patch.object(legs, "WEIGHTS", {**legs.WEIGHTS, **self.weights}),
            patch.object(scores, "MODIFIERS", self.modifiers),
        ):
            yield


def variants() -> dict[str, Variant]:
    """The variant of each row of the table, by its name."""
    neutral = [replace(scores.MODIFIERS, **each) for each in NEUTRAL.values()]
    every = {key: value for each in NEUTRAL.values() for key, value in each.items()}
    every_neutral = replace(scores.MODIFIERS, **every)
    rows = {WHOLE: Variant()}
    rows |= {f"without the {leg} leg": Variant({leg: 0.0}) for leg in LEGS}
    rows |= {
        f"without {name}": Variant(modifiers=each)
        for name, each in zip(NEUTRAL, neutral, strict=True)
    }
    rows["without modifiers"] = Variant(modifiers=every_neutral)
    for name, alone in (
        ("text and vector, equal weights", {"text": 1.0, "vector": 1.0}),
        ("text alone", {"text": 1.0}),
        ("vector alone", {"vector": 1.0}),
    ):
        rows[name] = Variant(dict.fromkeys(LEGS, 0.0) | alone, every_neutral)
    return rows


def run(
    data: Path, histories: int = 60, progress: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Measure every variant.

    Args:
        data: LoCoMo's JSON.
        histories: so many histories of facts that change, 0..300; 0: that part is left out.

    Returns:
        ``conversations``: by variant the measures of ``memgraph bench locomo`` over all questions
        and ``difference``, that of recall@10 to the whole; ``histories``: by variant those of
        ``memgraph bench staleness``.

    Raises:
        InvalidInput: the file is not LoCoMo's, or too many histories.
    """
    return {
        "conversations": _of_conversations(data, progress),
        "histories": _of_histories(histories, progress) if histories else {},
    }


def _of_conversations(data: Path, progress: Callable[[str], None]) -> dict[str, dict[str, float]]:
    conversations = list(locomo.read(data))
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root:
        with MemoryService(root, environ={}, background=False) as service:
            for conversation in conversations:
                progress(f"{conversation.name}: {len(conversation.turns)} turns")
                locomo.load(service, conversation)
        for name, variant in variants().items():
            progress(name)
            with (
                variant.ranks(),
                MemoryService(root, environ={}, background=False) as service,
            ):
                scored = [one for each in conversations for one in locomo.ask(service, each)]
            measures = locomo.figures(scored)
            del measures["by_category"]
            found[name] = measures
            change = measures[COMPARED] - found[WHOLE][COMPARED]
            measures["difference"] = round(change, 4)
    return found


def _of_histories(
    histories: int, progress: Callable[[str], None]
) -> dict[str, dict[str, float | None]]:
    wanted = (WHOLE, *(f"without {'the ' * each.endswith(' leg')}{each}" for each in OF_HISTORIES))
    rows = variants()
    found = {}
    for name in wanted:
        progress(f"{histories} histories, {name}")
        with rows[name].ranks():
            measured = staleness.run(histories)
        found[name] = {measure: measured[measure] for measure in HISTORY_MEASURES}
    return found
