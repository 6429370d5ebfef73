"""``memgraph bench statements``: how well the configured model tells right statements from wrong.

Each line of the data is a JSON object: ``turns`` (n, speaker, date, text), ``statement``, ``cites``
(numbers of turns), ``label`` (``yes``: the turns say it; ``no``) and ``kind``. The check is that of
consolidation (``memgraph.consolidation.statements``); what it does not answer with yes is refused.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.timing import Tell
from memgraph.config import Settings
from memgraph.consolidation.statements import (
    CHECKED_AT_ONCE,
    CitingStatement,
    EvidenceLine,
    Judgement,
    Verdict,
    check_statements,
)
from memgraph.errors import InvalidConfig, InvalidInput
from memgraph.operations.life.models import configured_llm
from memgraph.providers.completion import CompletionProvider


class LabelledStatement(NamedTuple):
    """A statement, whether its evidence says it, and what kind of statement it is."""

    statement: CitingStatement
    is_right: bool
    kind: str


def run(
    data: Sequence[Path],
    settings: Settings,
    tell: Tell = lambda _stage, _done, _total: None,
) -> dict[str, Any]:
    """Check the statements of files with the model of ``memory.llm``.

    Returns:
        ``model``, ``right`` and ``wrong`` (each ``statements``, ``kept`` and ``share``), the same
        by ``kinds``.

    Raises:
        InvalidConfig: no model is configured.
        InvalidInput: a line is not of the form above.
        ProviderError: the model failed.
    """
    model = configured_llm(settings)
    if model is None:
        raise InvalidConfig("memory.llm.provider is none", key="memory.llm.provider")
    return measure(model.completion, [each for path in data for each in read(path)], tell)


def read(path: Path) -> list[LabelledStatement]:
    """Return the statements of a file. Raises InvalidInput: a line has another form."""
    return [
        _labelled(line, f"{path.name}:{number}")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if line.strip()
    ]


def _labelled(line: str, where: str) -> LabelledStatement:
    try:
        record = json.loads(line)
        numbers = [turn["n"] for turn in record["turns"]]
        lines = tuple(
            EvidenceLine(turn["speaker"], turn["date"], turn["text"]) for turn in record["turns"]
        )
        cites = tuple(numbers.index(number) for number in record["cites"])
        label = {"yes": True, "no": False}[record["label"]]
        return LabelledStatement(
            CitingStatement(record["statement"], lines, cites), label, record["kind"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{where} is not a labelled statement", field="data") from error


def measure(
    model: CompletionProvider,
    labelled: Sequence[LabelledStatement],
    tell: Tell = lambda _stage, _done, _total: None,
) -> dict[str, Any]:
    """Return what ``run`` does, for statements and a model."""
    judgements: list[Judgement] = []
    for start in range(0, len(labelled), CHECKED_AT_ONCE):
        tell("checking", start, len(labelled))
        batch = [each.statement for each in labelled[start : start + CHECKED_AT_ONCE]]
        judgements += check_statements(model, batch)
    kept = [
        (each.kind, each.is_right, verdict is Verdict.YES)
        for each, (verdict, _) in zip(labelled, judgements, strict=True)
    ]
    kinds = sorted({each.kind for each in labelled})
    return {
        "model": model.name,
        "right": _share(kept_one for _, is_right, kept_one in kept if is_right),
        "wrong": _share(kept_one for _, is_right, kept_one in kept if not is_right),
        "kinds": {
            kind: {
                name: share
                for name, wanted in (("right", True), ("wrong", False))
                if (share := _share(k for of, right, k in kept if (of, right) == (kind, wanted)))[
                    "statements"
                ]
            }
            for kind in kinds
        },
    }


def _share(kept: Iterable[bool]) -> dict[str, float]:
    counts = Counter(kept)
    total = counts.total()
    share = round(counts[True] / total, 3) if total else 0.0
    return {"statements": total, "kept": counts[True], "share": share}
