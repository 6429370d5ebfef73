"""Measure recall on a retrieval set: ``python -m benchmarks.retrieval FILE [--json]``.

A set is JSON Lines, one store a line: ``store``, ``units`` (``id``, ``text``; of talks also
``session``, ``place``, ``speaker``, ``at`` in milliseconds since 1970), ``questions`` (``text``,
``gold``: unit id to gain, ``category``). Talks become turns, documents facts. Recall is asked with
the default settings, through the public interface. ``--floor`` also asks with ``min_relevance``:
``lost@20`` is the share of the evidence among the first twenty that falls below it, ``foreign``
the lines of five that the questions of the next store of the file still get.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memgraph import MemoryService, Orchestrator
from memgraph.model.values import EpisodeInput, MemoryInput

CUTOFFS = (5, 10, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--half", choices=("even", "odd"), help="only every second store")
    parser.add_argument("--floor", type=float, help="a relevance, 0 to 1")
    options = parser.parse_args()
    lines = options.file.read_text("utf-8").splitlines()
    if options.half is not None:
        lines = lines[0 if options.half == "even" else 1 :: 2]
    stores = [json.loads(line) for line in lines]
    following = [*stores[1:], stores[0]]
    floors: list[tuple[float, float]] = []
    scores: list[dict[str, float]] = []
    for store, other in zip(stores, following, strict=True):
        foreign = [] if other is store else other["questions"]
        scores += measure(store, foreign, options.floor, floors)
    figures = means(scores)
    if floors:
        lost, foreign_lines = zip(*floors, strict=True)
        figures["lost@20"] = round(sum(lost) / len(lost), 4)
        figures["foreign"] = round(sum(foreign_lines) / len(foreign_lines), 2)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:12} {value}")


def measure(
    store: Mapping[str, Any],
    foreign: Sequence[Mapping[str, Any]] = (),
    floor: float | None = None,
    floors: list[tuple[float, float]] | None = None,
) -> Iterator[dict[str, float]]:
    """Yield the measures of every question that has evidence in the store.

    Args:
        foreign: questions of another store.
        floor: the least relevance; None: none is asked with it.
        floors: takes the share of evidence lost to the floor, and the mean lines of five that a
            foreign question gets.
    """
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        MemoryService(root, environ={}, background=False) as service,
    ):
        orc = service.orchestrator("bench", create=True)
        names = load(orc, store["units"])
        for question in store["questions"]:
            gold = {one: gain for one, gain in question["gold"].items() if one in names.values()}
            if gold:
                found = orc.recall(question["text"], top_n=max(CUTOFFS)).ids
                yield score([names[one] for one in found], gold)
        if floor is not None and floors is not None:
            floors.append((_lost(orc, store, names, floor), _lines(orc, foreign, floor)))


def _lost(
    orc: Orchestrator, store: Mapping[str, Any], names: Mapping[str, str], floor: float
) -> float:
    """Return the share of the evidence among the first twenty that is below the floor."""
    found = kept = 0
    for question in store["questions"]:
        asked = orc.recall(question["text"], top_n=20)
        above = set(orc.recall(question["text"], top_n=20, min_relevance=floor).ids)
        evidence = [one for one in asked.ids if names[one] in question["gold"]]
        found += len(evidence)
        kept += sum(one in above for one in evidence)
    return (found - kept) / max(found, 1)


def _lines(orc: Orchestrator, questions: Sequence[Mapping[str, Any]], floor: float) -> float:
    """Return how many of five lines the questions get on average."""
    lines = [len(orc.recall(one["text"], top_n=5, min_relevance=floor).ids) for one in questions]
    return sum(lines) / max(len(lines), 1)


def load(orc: Orchestrator, units: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Store all units; returns the id of the unit by that of the memory."""
    if "session" in units[0]:
        given = [
            EpisodeInput(
                content=unit["text"],
                session_id=unit["session"],
                sequence=unit["place"],
                turn_id=unit["id"],
                source_role=unit["speaker"],
                event_time=unit["at"],
            )
            for unit in units
        ]
        outcomes = orc.save_episodes(given)
    else:
        outcomes = orc.remember_many(MemoryInput(content=unit["text"]) for unit in units)
    orc.embed_pending()
    names = {}
    for unit, outcome in zip(units, outcomes, strict=True):
        if outcome.memory_id is None:
            raise SystemExit(f"unit {unit['id']} was rejected: {outcome.message}")
        names.setdefault(outcome.memory_id, unit["id"])
    return names


def score(ranked: Sequence[str], gold: Mapping[str, float]) -> dict[str, float]:
    """Return recall and nDCG of one question; ``ranked`` are unit ids, best first.

    nDCG as of Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
    ACM TOIS 2002, with the gain over the logarithm of rank + 1.
    """
    found = {f"R@{k}": sum(one in gold for one in ranked[:k]) / len(gold) for k in CUTOFFS}
    gained = sum(gold.get(one, 0) / math.log2(at + 2) for at, one in enumerate(ranked[:10]))
    best = sorted(gold.values(), reverse=True)[:10]
    ideal = sum(gain / math.log2(at + 2) for at, gain in enumerate(best))
    return {**found, "nDCG@10": gained / ideal}


def means(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of every measure, and the number of questions."""
    if not scores:
        raise SystemExit("no question has evidence among the units")
    figures = {
        name: round(sum(each[name] for each in scores) / len(scores), 4) for name in scores[0]
    }
    return {**figures, "questions": len(scores)}


if __name__ == "__main__":
    main()
