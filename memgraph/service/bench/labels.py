"""``memgraph bench labels``: types, relations and entities against labelled lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memgraph.classification.relations import Statement
from memgraph.classification.score import score_entities, score_pairs, score_types
from memgraph.clock import parse_time
from memgraph.entities.regex import extract
from memgraph.errors import InvalidInput
from memgraph.service.classifiers import relation_classifier, type_classifier


def run(folder: Path) -> dict[str, Any]:
    """Scores for every file of ``folder`` whose name begins with types, pairs or entities.

    Raises:
        InvalidInput: the folder holds none of them, or a line is not what it should be.
    """
    scorers = {"types": _types, "pairs": _pairs, "entities": _entities}
    found: dict[str, Any] = {}
    for name, scorer in scorers.items():
        rows = [row for path in sorted(folder.glob(f"{name}*.jsonl")) for row in _rows(path)]
        if rows:
            found[name] = scorer(rows)
    if not found:
        raise InvalidInput(
            f"no types*.jsonl, pairs*.jsonl or entities*.jsonl in {folder}", folder=str(folder)
        )
    return found


def _types(rows: list[dict[str, Any]]) -> dict[str, Any]:
    guesses = type_classifier().classify([row["text"] for row in rows])
    return dict(score_types([row["type"] for row in rows], [each.label for each in guesses]))


def _pairs(rows: list[dict[str, Any]]) -> dict[str, Any]:
    pairs = [
        (
            Statement(row["a"], parse_time(row["a_time"])),
            Statement(row["b"], parse_time(row["b_time"])),
        )
        for row in rows
    ]
    guesses = relation_classifier().classify(pairs)
    found = score_pairs([row["label"] for row in rows], [str(each.relation) for each in guesses])
    return dict(found)


def _entities(rows: list[dict[str, Any]]) -> dict[str, Any]:
    gold = [[(e["start"], e["end"], e["type"]) for e in row["entities"]] for row in rows]
    predicted = [
        [(span.start, span.end, str(span.type)) for span in extract(row["text"])] for row in rows
    ]
    return dict(score_entities(gold, predicted))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InvalidInput(f"{path.name}:{number} is not JSON", line=number) from error
            if not isinstance(row, dict):
                raise InvalidInput(f"{path.name}:{number} is not an object", line=number)
            yield row
