"""``memgraph bench labels``: entities against labelled lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.label_scores import score_entities
from memgraph.config import Settings
from memgraph.errors import InvalidConfig, InvalidInput
from memgraph.operations.life.models import configured_llm
from memgraph.operations.write.entity_links import NameFinders, find_names
from memgraph.providers.entity_names import EntityStrategy

ACCURATE = "accurate"


def run(folder: Path, provider: str = "regex", settings: Settings | None = None) -> dict[str, Any]:
    """Return the scores of the files of ``folder`` that begin with entities.

    Args:
        provider: what finds the entities: ``regex``, ``spacy``, ``llm``, or ``accurate``, the
            strategy of that name.
        settings: say which pipeline and which model; without them there is neither.

    Raises:
        InvalidInput: the folder holds none of them, or a line is not what it should be.
        InvalidConfig: the settings name no pipeline, or no model, for ``provider``.
        ProviderError, ExtraMissing: the provider failed.
    """
    strategy = _strategy(provider, settings)
    scorers: dict[str, Callable[[list[dict[str, Any]]], dict[str, Any]]] = {
        "entities": lambda rows: _entities(rows, strategy),
    }
    found: dict[str, Any] = {}
    for name, scorer in scorers.items():
        rows = [row for path in sorted(folder.glob(f"{name}*.jsonl")) for row in _rows(path)]
        if rows:
            found[name] = scorer(rows)
    if not found:
        raise InvalidInput(f"no entities*.jsonl in {folder}", folder=str(folder))
    return found


def _strategy(provider: str, settings: Settings | None) -> EntityStrategy:
    chosen = settings or Settings()
    naming = NameFinders(chosen, find_names, lambda: configured_llm(chosen))
    if provider == ACCURATE:
        return naming.accurate
    found = naming.provider(provider)
    if found is None:
        key = "memory.llm.provider" if provider == "llm" else "memory.entities.spacy_model"
        raise InvalidConfig(f"there is nothing to score: {key} is not set", key=key)
    return EntityStrategy((found,))


def _entities(rows: list[dict[str, Any]], strategy: EntityStrategy) -> dict[str, Any]:
    gold = [[(e["start"], e["end"], e["type"]) for e in row["entities"]] for row in rows]
    found, failures = strategy.extract([row["text"] for row in rows])
    for error in failures.values():
        # A score of what the others found would be taken for that of all.
        raise error
    predicted = [[(one.start, one.end, str(one.type)) for one in each.spans] for each in found]
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
