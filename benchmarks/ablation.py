"""``memgraph bench ablation``: what recall is worth without each of its legs and modifiers.

Everything is done by settings: a leg of weight 0 is not run and brings no candidates, a modifier is
neutral at a factor or floor of 1 or a weight of 0. The conversations are loaded once and asked
again with other settings; histories of facts that change, which conversations have none of, are
asked for what depends on them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import locomo, staleness
from memgraph.service.memory_service import MemoryService

WHOLE = "everything"
COMPARED = "recall@10"
LEGS = ("text", "vector", "entity", "graph", "succession", "context")
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
    "open_both_sides",
    "as_of",
)

Config = dict[str, float]


def variants() -> dict[str, Config]:
    """The settings of each row of the table, by its name; those of the whole are the defaults."""
    neutral = [_modifiers(each) for each in NEUTRAL.values()]
    every_neutral = {key: value for each in neutral for key, value in each.items()}
    rows: dict[str, Config] = {WHOLE: {}}
    rows |= {f"without the {leg} leg": _weights({leg: 0.0}) for leg in LEGS}
    rows |= {f"without {name}": settings for name, settings in zip(NEUTRAL, neutral, strict=True)}
    rows["without modifiers"] = every_neutral
    for name, alone in (
        ("text and vector, equal weights", {"text": 1.0, "vector": 1.0}),
        ("text alone", {"text": 1.0}),
        ("vector alone", {"vector": 1.0}),
    ):
        rows[name] = _weights(dict.fromkeys(LEGS, 0.0) | alone) | every_neutral
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
        for name, config in variants().items():
            progress(name)
            with MemoryService(root, config=config, environ={}, background=False) as service:
                scores = [scored for each in conversations for scored in locomo.ask(service, each)]
            measures = locomo.figures(scores)
            del measures["by_category"]
            found[name] = measures
            change = measures[COMPARED] - found[WHOLE][COMPARED]
            measures["difference"] = round(change, 4)
    return found


def _of_histories(
    histories: int, progress: Callable[[str], None]
) -> dict[str, dict[str, float | None]]:
    wanted = (WHOLE, *(f"without {'the ' * each.endswith(' leg')}{each}" for each in OF_HISTORIES))
    settings = variants()
    found = {}
    for name in wanted:
        progress(f"{histories} histories, {name}")
        measured = staleness.run(histories, config=settings[name])
        found[name] = {measure: measured[measure] for measure in HISTORY_MEASURES}
    return found


def _weights(weights: Mapping[str, float]) -> Config:
    return {f"memory.retrieval.weights.{leg}": weight for leg, weight in weights.items()}


def _modifiers(values: Mapping[str, float]) -> Config:
    return {f"memory.retrieval.modifiers.{name}": value for name, value in values.items()}
