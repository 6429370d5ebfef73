"""What is asked: one orchestrator of many memories, or many of few; filled once and copied."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as sqlite

from benchmarks import latency_load
from benchmarks.load.clients import Asked
from benchmarks.synthetic import Corpus, corpus
from benchmarks.timing import NO_READER
from memgraph.clock import SystemClock
from memgraph.paths import OrchestratorPaths
from memgraph.service.access.keys import KeyStore
from memgraph.service.memory_service import MemoryService

WRITES = 0.2
# Of the requests to many orchestrators, besides the writes; the others are recalls.
BULLETINS = 0.2
# So many are filled; the others are copies of these under names of their own.
FILLED = 10
JOINED_SHARE = 40


def one(folder: Path, size: int, tell: Callable[..., None]) -> Path:
    """A root with one orchestrator of ``size`` memories, the same on every call."""
    kept = folder / str(size)
    latency_load.loaded(kept, size, corpus(), tell)
    return _fresh(kept / latency_load.ROOT, folder)


def many(folder: Path, count: int, size: int, tell: Callable[..., None]) -> Path:
    """A root with ``count`` orchestrators of ``size`` memories."""
    kept = folder / f"{count}x{size}"
    if not (kept / "done").exists():
        shutil.rmtree(kept, ignore_errors=True)
        for number in range(min(FILLED, count)):
            _fill(kept / f"filled-{number}", size, number)
        for number in range(count):
            tell("copying", number, count)
            _copy(kept / f"filled-{number % FILLED}", kept / "root", number)
        (kept / "done").touch()
    return _fresh(kept / "root", folder)


def made_key(root: Path, url: str = "") -> str:
    """A key for everything under a root, or on a server."""
    made = KeyStore(root, SystemClock(), url=url).create(
        {
            "name": "load",
            "orchestrators": ["*"],
            "permissions": ["read", "write", "audit", "admin"],
            "clearance": "Restricted",
            "project_ids": ["*"],
            "session_ids": ["*"],
        }
    )
    return made.secret


def requests(
    names: list[str], size: int, *, seed: int, writes: float = WRITES, bulletins: float = 0.0
) -> Callable[[], Asked]:
    """Requests to orchestrators at random, of which some are writes and some ask for bulletins."""
    chance = random.Random(seed)
    text = corpus()
    questions = itertools.count(seed * 1_000_000)
    turns = _turns(text, size + seed * 1_000_000)

    def ask() -> Asked:
        place = f"/v1/orchestrators/{chance.choice(names)}"
        drawn = chance.random()
        if drawn < writes:
            return Asked("write", "POST", f"{place}/memories", next(turns))
        if drawn < writes + bulletins:
            return Asked("bulletin", "GET", f"{place}/bulletin")
        question = text.question(next(questions), size)
        return Asked("recall", "POST", f"{place}/recall", {"query": question})

    return ask


def _turns(text: Corpus, start: int) -> Iterator[dict[str, Any]]:
    for number in itertools.count(start, 20):
        for turn in text.turns(number, 20):
            yield turn.model_dump(mode="json", exclude_unset=True)


def _fill(root: Path, size: int, number: int) -> None:
    with MemoryService(root, config=NO_READER, environ={}, background=False) as service:
        memory = service.orchestrator(latency_load.NAME, create=True)
        memory.remember_many(corpus(number).turns(0, size))
        memory.settle()
        # One in forty memories is joined to others, as in the one of a hundred thousand.
        ids = latency_load.memory_ids(service, max(size // JOINED_SHARE, 2))
        pairs = list(itertools.combinations(ids, 2))[: len(ids) * latency_load.EDGES_PER_MEMORY]
        latency_load.join(service, pairs)
        latency_load.checkpointed(service)


def _copy(filled: Path, root: Path, number: int) -> None:
    name = f"orc-{number}"
    target = OrchestratorPaths(root, name)
    shutil.copytree(OrchestratorPaths(filled, latency_load.NAME).memory, target.memory)
    connection = sqlite.connect(str(target.database))
    connection.execute("UPDATE memories SET orchestrator_id = ?", (name,))
    connection.execute(
        "UPDATE memory_metadata SET value = ? WHERE key = 'orchestrator_id'", (name,)
    )
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _fresh(kept: Path, folder: Path) -> Path:
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(kept, root)
    # Else the first durable writes would pay for the copy.
    os.sync()
    return root
