"""A service on a root of its own, with a little memory in it, for tests of whole orchestrators."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from memgraph import MemoryService, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.model.enums import CapturedBy, EntityType
from memgraph.model.values import Source
from memgraph.providers.fake import FakeEmbedding
from memgraph.service import memory_service
from memgraph.service.opened import Opened
from memgraph.service.orchestrator import Orchestrator
from memgraph.storage import sqlite
from memgraph.storage.entities import EntityName

NAME = "orc-1"
SEES_ALL = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}))
INFERRED = Source(captured_by=CapturedBy.EXTRACTOR)
"""Where a fact comes from that a machine inferred: such facts decay."""
_NAMES = re.compile(r"\b[A-Z][a-z]+\b")


def capitalised(text: str) -> list[EntityName]:
    """Every capitalised word is an entity: enough for tests of what is kept about them."""
    found = dict.fromkeys(_NAMES.findall(text))
    return [EntityName(name.casefold(), name, EntityType.OTHER) for name in found]


def put(orc: Orchestrator, content: str, **fields: Any) -> str:
    """Store a memory that nothing is compared with, for a test that joins memories by hand."""
    [outcome] = orc.remember_many([{"content": content, **fields}])
    assert outcome.memory_id is not None, outcome
    return outcome.memory_id


@contextmanager
def working(root: Path, **options: Any) -> Iterator[MemoryService]:
    """A service without background work and with a fake embedding, its own clock and names."""
    given = {
        "embedding": FakeEmbedding(16),
        "background": False,
        "clock": FixedClock(),
        "environ": {},
        "config": {
            "memory.storage.synchronous": "NORMAL",
            "memory.ingest.allowed_roots": ["/drop"],
        },
    } | options
    with (
        patch.object(memory_service, "find_names", capitalised),
        MemoryService(root, **given) as service,
    ):
        yield service


def fill(orchestrator: Orchestrator) -> dict[str, str]:
    """One of everything that the journal tells of; gives ids by what they are."""
    clock = orchestrator._service.clock
    assert isinstance(clock, FixedClock)
    orchestrator = orchestrator._service.orchestrator(orchestrator.name, viewer=SEES_ALL)
    ids = {
        "berlin": orchestrator.remember("The office is in Berlin.", tags=["place"]),
        "paris": orchestrator.remember("The office is in Paris.", scope="project", scope_id="p"),
        "turn": orchestrator.remember("Hello from Anna", kind="episode", session_id="s-1"),
        "cjk": orchestrator.remember("東京都に住む Kenji", sensitivity="Restricted"),
        "old": orchestrator.remember("We use Postgres.", type="Decision"),
    }
    clock.advance(ms=1_000)
    ids["derived"] = orchestrator.remember(
        "Anna greets.",
        kind="reflection",
        derived_from=[ids["turn"]],
        attributes={"b": [1.5, None], "a": "ü"},
        source={"source_type": "ingest_file", "source_path": "/drop/a.txt", "locator": "1-3"},
    )
    ids["contradiction"] = orchestrator.relate(ids["berlin"], "Contradicts", ids["paris"])
    clock.advance(ms=1_000)
    orchestrator.resolve(ids["contradiction"], winner=ids["paris"], reason="they moved")
    ids["new"] = orchestrator.correct(ids["old"], "We use SQLite.", reason="simpler")
    clock.advance(ms=1_000)
    orchestrator.retract(ids["turn"], reason="test")
    clock.advance(ms=1_000)
    orchestrator.restore(ids["turn"], reason="after all")
    orchestrator.confirm(ids["cjk"])
    orchestrator.embed_pending()
    return ids


@contextmanager
def filled(root: Path, **options: Any) -> Iterator[tuple[MemoryService, Opened, dict[str, str]]]:
    """A service with one filled orchestrator, opened and in nobody's use: ``forget`` closes it."""
    with working(root, **options) as service:
        ids = fill(service.orchestrator(NAME, create=True))
        with service.opened(NAME) as opened:
            pass
        yield service, opened, ids


@contextmanager
def tampering(path: Path) -> Iterator[Any]:
    """Plain SQL behind memgraph's back, without foreign keys; committed at the end."""
    connection = sqlite.connect(path, busy_timeout_ms=5_000)
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    finally:
        connection.close()


def copy_folder(source: Path, target: Path) -> Path:
    """A copy of a closed orchestrator's memory folder; gives the database in it."""
    shutil.copytree(source, target)
    return target / "memory.db"
