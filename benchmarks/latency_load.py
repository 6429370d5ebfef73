"""Filling an orchestrator for the latency bench, or taking one that an earlier run has filled."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import raw
from benchmarks.synthetic import Corpus
from benchmarks.timing import NO_READER, Stopwatch, Tell, seconds
from memgraph.errors import InvalidInput
from memgraph.service.memory_service import MemoryService
from memgraph.store import edges

NAME = "bench"
ROOT, FLOOR, FACTS = "root", "floor.db", "loaded.json"
STEP = 10_000
# So many memories are joined, each to so many others: two hops from any reach 200.
JOINED, EDGES_PER_MEMORY = 2_500, 8


def loaded(folder: Path, size: int, corpus: Corpus, tell: Tell) -> Mapping[str, Any]:
    """Fill ``folder`` with ``size`` memories and the floor with the same; gives what was measured.

    A folder that an earlier run has filled with the same texts is taken as it is; ``reused`` tells.

    Returns:
        ``bulk_per_s``, ``disk_bytes_per_memory``, ``raw_disk_bytes_per_memory``.

    Raises:
        InvalidInput: the folder holds something else.
    """
    known = facts_of(folder)
    if known is not None:
        if known.pop("sample") != _sample(corpus, size):
            raise InvalidInput(f"{folder} holds other memories; name another folder")
        return {**known, "reused": True}
    folder.mkdir(parents=True, exist_ok=True)
    with MemoryService(folder / ROOT, config=NO_READER, environ={}, background=False) as service:
        found: dict[str, Any] = {"bulk_per_s": _load(service, size, corpus, tell)}
        database = database_of(service)
        text = checkpointed(service)
        found["disk_bytes_per_memory"] = round((database.stat().st_size - text) / size, 1)
        _join(service)
    facts = {**found, "sample": _sample(corpus, size)}
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")
    return {**found, "reused": False}


def facts_of(folder: Path) -> dict[str, Any] | None:
    """What an earlier run has written of a folder that it filled; None: there is nothing.

    Raises:
        InvalidInput: the folder holds something that no run has finished.
    """
    facts = folder / FACTS
    if facts.exists():
        found: dict[str, Any] = json.loads(facts.read_text(encoding="utf-8"))
        return found
    if folder.exists() and any(folder.iterdir()):
        raise InvalidInput(f"{folder} holds something that no run has finished; remove it")
    return None


def floor(folder: Path, size: int, tell: Tell) -> tuple[Path, float]:
    """The floor's database for a filled folder, and its bytes per memory beyond the text."""
    path = folder / FLOOR
    with MemoryService(folder / ROOT, config=NO_READER, environ={}, background=False) as service:
        database = database_of(service)
        text = checkpointed(service)
    if not path.exists():
        tell("filling plain SQL", 0, 1)
        begun = path.with_suffix(".new")
        begun.unlink(missing_ok=True)
        raw.fill_floor(begun, database)
        begun.rename(path)
    return path, round((path.stat().st_size - text) / size, 1)


def database_of(service: MemoryService) -> Path:
    with service.opened(NAME) as opened:
        return opened.paths.database


def checkpointed(service: MemoryService) -> int:
    """Bring all that was written into the database file; gives the bytes of all texts."""
    with service.opened(NAME) as opened:
        opened.database.cut(wait_ms=5_000)
        with opened.database.read() as snapshot:
            [(text,)] = snapshot.driver.execute("SELECT sum(octet_length(content)) FROM memories")
    return int(text)


def copied(folder: Path, target: Path) -> None:
    """A copy of a filled root to work on, so that a kept one stays as it was loaded."""
    shutil.copytree(folder / ROOT, target)
    # Else the first durable writes would pay for the copy.
    os.sync()


def join(service: MemoryService, pairs: list[tuple[str, str]], weight: float = 0.5) -> None:
    """RelatedTo edges, written directly: to write them is not what is measured."""
    with service.opened(NAME) as opened, opened.database.write() as connection:
        for one, other in pairs:
            edges.insert(
                connection,
                {
                    "edge_id": opened.ids.new("edge_"),
                    "from_memory_id": one,
                    "to_memory_id": other,
                    "edge_type": "RelatedTo",
                    "weight": weight,
                    "created_at": opened.clock.now_ms(),
                },
            )


def memory_ids(service: MemoryService, count: int) -> list[str]:
    """Ids of memories from everywhere between the first and the last, at most ``count``."""
    with service.opened(NAME) as opened, opened.database.read() as connection:
        [(last,)] = connection.exec_driver_sql("SELECT max(pk) FROM memories")
        found = connection.exec_driver_sql(
            "SELECT memory_id FROM memories WHERE pk % ? = 0 ORDER BY pk LIMIT ?",
            (max(last // count, 1), count),
        )
        return [one for (one,) in found]


def _load(service: MemoryService, size: int, corpus: Corpus, tell: Tell) -> float:
    memory = service.orchestrator(NAME, create=True)
    taken = 0.0
    for start in range(0, size, STEP):
        tell("loading", start, size)
        turns = Stopwatch(corpus.turns(start, min(STEP, size - start)))
        taken += seconds(_store, memory, turns) - turns.taken
    return round(size / taken, 1)


def _store(memory: Any, turns: Stopwatch[Any]) -> None:
    if any(each.outcome != "stored" for each in memory.remember_many(turns)):
        raise InvalidInput("a turn was not stored")
    memory.settle()


def _join(service: MemoryService) -> None:
    ids = memory_ids(service, JOINED)
    chance = random.Random(len(ids))
    pairs = {
        tuple(sorted((one, other)))
        for one in ids
        for other in chance.sample(ids, k=min(EDGES_PER_MEMORY, len(ids)))
        if one != other
    }
    join(service, [(one, other) for one, other in sorted(pairs)])


def _sample(corpus: Corpus, size: int) -> list[str | int]:
    """What tells one loaded folder from another."""
    return [size, *(corpus.text(at * size // 5) for at in range(5))]
