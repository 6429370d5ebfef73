"""``memgraph bench retrieval``: recall on retrieval sets, beside plain retrieval.

A set is JSON Lines, one store a line: ``store``, ``units`` (``id``, ``text``; of talks also
``session``, ``place``, ``speaker``, ``at`` in milliseconds since 1970), ``questions`` (``text``,
``gold``: unit id to grade, ``category``). Talks become turns, documents facts. Recall is asked with
the default settings, through the public interface.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.plain import NAMES, PlainSearch
from memgraph import MemoryService, Orchestrator
from memgraph.errors import InvalidInput
from memgraph.model.values import EpisodeInput, MemoryInput

CUTOFFS = (5, 10, 20)
PRODUCT = "memgraph"
METHODS = (PRODUCT, *NAMES)
MEASURES = ("nDCG@10", *(f"R@{k}" for k in CUTOFFS))

Store = Mapping[str, Any]


def run(
    files: Sequence[Path],
    *,
    half: str | None = None,
    floor: float | None = None,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    storage: str = "",
) -> dict[str, Any]:
    """Ask every question that has evidence, of recall and of plain search.

    Args:
        half: ``even`` or ``odd``: every second store alone, counted from 0; where a set has one
            store, every second question.
        floor: a relevance, 0..1, with which all is asked once more.
        progress: called with a store, how many were measured before it, and of how many.
        storage: as ``memory.storage.url``, of an empty database; empty: files.

    Returns:
        ``sets``, by the file's name without its ending: for each of `METHODS` the means of
        `MEASURES`, and ``questions``. With ``floor`` also ``lost@20``, the share of the evidence
        among the first twenty that falls below it, and ``foreign``, the lines of five that the
        questions of the next store still get (None where there is no other).

    Raises:
        InvalidInput: a file is no such set, nothing in it can be asked, or two have one name.
    """
    if len({file.stem for file in files}) < len(files):
        raise InvalidInput("two files have the same name")
    sets = {file.stem: _halved(read(file), half) for file in files}
    total = sum(len(stores) for stores in sets.values())
    found: dict[str, Any] = {}
    done = 0
    for name, stores in sets.items():
        scores: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
        floors: list[tuple[float, float | None]] = []
        for store, other in zip(stores, [*stores[1:], stores[0]], strict=True):
            progress(f"{name}, {store['store']}: {len(store['units'])} units", done, total)
            foreign = [] if other is store else other["questions"]
            place = f"bench-{done}", storage
            for measured in _measured(store, foreign, floor, floors, place):
                for method, score in measured.items():
                    scores[method].append(score)
            done += 1
        if not scores[PRODUCT]:
            raise InvalidInput(f"no question of {name} has evidence among its units")
        found[name] = {
            **{method: _means(each) for method, each in scores.items()},
            "questions": len(scores[PRODUCT]),
        }
        if floors:
            lines = [each for _, each in floors if each is not None]
            found[name]["lost@20"] = round(math.fsum(lost for lost, _ in floors) / len(floors), 4)
            found[name]["foreign"] = round(math.fsum(lines) / len(lines), 2) if lines else None
    return {"sets": found}


def read(file: Path) -> list[Store]:
    """Return the stores of a set.

    Raises:
        InvalidInput: the file is none.
    """
    try:
        stores = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
        whole = bool(stores) and all(each["units"] and each["questions"] for each in stores)
    except OSError as error:
        raise InvalidInput(f"cannot read {file}", path=str(file)) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{file} is not a retrieval set", path=str(file)) from error
    if not whole:
        raise InvalidInput(f"{file} is not a retrieval set", path=str(file))
    return stores


def _halved(stores: list[Store], half: str | None) -> list[Store]:
    if half is None:
        return stores
    taken = slice(0 if half == "even" else 1, None, 2)
    if len(stores) > 1:
        return stores[taken]
    return [{**stores[0], "questions": stores[0]["questions"][taken]}]


def _measured(
    store: Store,
    foreign: Sequence[Mapping[str, Any]],
    floor: float | None,
    floors: list[tuple[float, float | None]],
    place: tuple[str, str],
) -> Iterator[dict[str, dict[str, float]]]:
    """Yield of every question that has evidence in the store the measures of each method.

    Args:
        foreign: questions of another store.
        floors: takes the share of evidence lost to the floor, and the mean lines of five that a
            foreign question gets.
        place: the orchestrator to fill, and the server's address or nothing.
    """
    name, storage = place
    units = store["units"]
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        MemoryService(
            root, config={"memory.storage.url": storage}, environ={}, background=False
        ) as service,
        PlainSearch([_plain_text(unit) for unit in units]) as plain,
    ):
        service.create(name)
        orc = service.orchestrator(name)
        names = load(orc, units)
        known = {unit["id"] for unit in units}
        for question in store["questions"]:
            gold = {one: grade for one, grade in question["gold"].items() if one in known}
            if not gold:
                continue
            bundle = orc.recall(question["text"], top_n=max(CUTOFFS))
            ranked = {PRODUCT: [names[one] for one in bundle.ids]}
            for method, places in plain.search(question["text"]).items():
                ranked[method] = [units[at]["id"] for at in places[: max(CUTOFFS)]]
            yield {method: score(each, gold) for method, each in ranked.items()}
        if floor is not None:
            lines = _lines(orc, foreign, floor) if foreign else None
            floors.append((_lost(orc, store, names, floor), lines))


def _plain_text(unit: Mapping[str, Any]) -> str:
    """Return the text as plain search is given it, after its speaker's name."""
    return f"{unit['speaker']}: {unit['text']}" if unit.get("speaker") else str(unit["text"])


def _lost(orc: Orchestrator, store: Store, names: Mapping[str, str], floor: float) -> float:
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
    return sum(lines) / len(lines)


def load(orc: Orchestrator, units: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Store all units; returns the id of the unit by that of the memory.

    Raises:
        InvalidInput: a unit was rejected.
    """
    names: dict[str, str] = {}
    for unit, memory_id in zip(units, store(orc, [as_input(unit) for unit in units]), strict=True):
        names.setdefault(memory_id, unit["id"])
    return names


def store(orc: Orchestrator, inputs: Sequence[MemoryInput]) -> list[str]:
    """Store and embed the turns of talks, or memories; return their ids, in order.

    Raises:
        InvalidInput: one was rejected.
    """
    turns = [each for each in inputs if isinstance(each, EpisodeInput)]
    outcomes = orc.save_episodes(turns) if turns else orc.remember_many(inputs)
    orc.settle()
    stored: list[str] = []
    for number, outcome in enumerate(outcomes, start=1):
        if outcome.memory_id is None:
            raise InvalidInput(f"unit {number} was rejected: {outcome.message}")
        stored.append(outcome.memory_id)
    return stored


def as_input(unit: Mapping[str, Any]) -> MemoryInput:
    """Return a unit as it is stored: a turn of a talk, or a fact."""
    if "session" not in unit:
        return MemoryInput(content=unit["text"])
    return EpisodeInput(
        content=unit["text"],
        session_id=unit["session"],
        sequence=unit["place"],
        turn_id=unit["id"],
        source_role=unit["speaker"],
        event_time=unit["at"],
    )


def score(ranked: Sequence[str], gold: Mapping[str, float]) -> dict[str, float]:
    """Return recall and nDCG of one question; ``ranked`` are unit ids, best first.

    nDCG with the gain 2^grade - 1 over the logarithm of rank + 1, as in Burges et al., "Learning to
    Rank using Gradient Descent", ICML 2005.
    """
    gained = sum(_discounted(gold.get(one, 0), at) for at, one in enumerate(ranked[:10]))
    best = sorted(gold.values(), reverse=True)[:10]
    ideal = sum(_discounted(grade, at) for at, grade in enumerate(best))
    found = {f"R@{k}": sum(one in gold for one in ranked[:k]) / len(gold) for k in CUTOFFS}
    return {"nDCG@10": gained / ideal, **found}


def _discounted(grade: float, at: int) -> float:
    return (2**grade - 1) / math.log2(at + 2)


def _means(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {
        name: round(math.fsum(each[name] for each in scores) / len(scores), 4) for name in MEASURES
    }
