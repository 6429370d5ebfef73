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
from memgraph.config.schema import StorageSettings
from memgraph.model.enums import CapturedBy, EntityType
from memgraph.model.operation import GroupAttribute, methods_of
from memgraph.model.values import MemoryInput, Source, validated
from memgraph.operations.orchestrator import Orchestrator
from memgraph.operations.tools.tools import call_tool
from memgraph.operations.write import entity_links as naming
from memgraph.providers.fake import FakeEmbedding
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import sqlite
from memgraph.store.engine import Database
from memgraph.store.entities import EntityName
from memgraph.store.sqlite.database import SqliteDatabase
from memgraph.store.sqlite.stores import SqliteStore

NAME = "orc-1"


def members_of(kind: type, path: str = "") -> dict[str, Any]:
    """Return the public members of a class and of its groups, such as ``contradictions.list``."""
    members: dict[str, Any] = {}
    for name, member in methods_of(kind).items():
        if isinstance(member, GroupAttribute):
            members |= members_of(member.kind, f"{name}.")
        else:
            members[path + name] = member
    return members


SEES_ALL = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}))
INFERRED = Source(captured_by=CapturedBy.EXTRACTOR)
"""Where a fact comes from that a machine inferred: such facts decay."""
_NAMES = re.compile(r"\b[A-Z][a-z]+\b")


def capitalised(text: str) -> list[EntityName]:
    """Every capitalised word is an entity: enough for tests of what is kept about them."""
    found = dict.fromkeys(_NAMES.findall(text))
    return [EntityName(name.casefold(), name, EntityType.OTHER) for name in found]


def lines_in(block: str) -> dict[str, str]:
    """Return the texts of the lines that a tool answered, by the short ids at their ends."""
    return {
        found["id"]: found["text"]
        for found in re.finditer(r"^\[\d+\] .*?: (?P<text>.*) #(?P<id>\w+)$", block, re.MULTILINE)
    }


def tool(orc: Orchestrator, name: str, **arguments: Any) -> Any:
    """Return what a tool of a model answers; it may not be an error."""
    answer = call_tool(orc, name, arguments)
    assert isinstance(answer, str) or "error" not in answer, answer
    return answer


def put(orc: Orchestrator, content: str, **fields: Any) -> str:
    """Store a memory that nothing is compared with, for a test that joins memories by hand."""
    given = validated(MemoryInput, {"content": content, **fields})
    with orc._service.opened(orc.name) as opened:
        [outcome] = orc._store(opened, [given], []).memories
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
            # On a busy machine a write may wait longer than the default.
            "memory.storage.busy_timeout_ms": 30_000,
            "memory.ingest.allowed_roots": ["/drop"],
        },
    } | options
    with (
        patch.object(naming, "find_names", capitalised),
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
    orchestrator.contradictions.resolve(
        ids["contradiction"], winner=ids["paris"], reason="they moved"
    )
    ids["new"] = orchestrator.correct(ids["old"], "We use SQLite.", reason="simpler")
    clock.advance(ms=1_000)
    orchestrator.retract(ids["turn"], reason="test")
    clock.advance(ms=1_000)
    orchestrator.restore(ids["turn"], reason="after all")
    orchestrator.confirm(ids["cjk"])
    orchestrator.settle()
    return ids


@contextmanager
def filled(
    root: Path, **options: Any
) -> Iterator[tuple[MemoryService, OpenOrchestrator, dict[str, str]]]:
    """A service with one filled orchestrator, opened and in nobody's use: ``forget`` closes it."""
    with working(root, **options) as service:
        ids = fill(service.orchestrator(NAME, create=True))
        with service.opened(NAME) as opened:
            pass
        yield service, opened, ids


def fill_the_rest(database: Database) -> None:
    """Rows of the tables that ``fill`` leaves empty."""
    with database.read() as connection:
        memory_id = connection.exec_driver_sql(
            "SELECT memory_id FROM memories ORDER BY pk"
        ).scalar()
        entity_pk = connection.exec_driver_sql("SELECT pk FROM entities ORDER BY pk").scalar()
    statements: list[tuple[str, tuple[Any, ...]]] = [
        ("INSERT INTO entity_aliases VALUES ('the city', ?, 'The City')", (entity_pk,)),
        ("INSERT INTO ingest_files VALUES ('aa', '/a', 'processed', '{\"n\": 1}', 5)", ()),
        ("INSERT INTO ingest_files VALUES ('bb', '/b', 'rejected', '{\"z\":1,\"a\":2}', 5)", ()),
        ("INSERT INTO ingest_document_keys VALUES ('ADR-1', ?)", (memory_id,)),
        (
            "INSERT INTO ingest_pending_links (memory_id, target, edge_type, outgoing, weight)"
            " VALUES (?, 'ADR-2', 'Updates', 1, 0.5)",
            (memory_id,),
        ),
        (
            "INSERT INTO recalls VALUES ('rcl_1', 7, 'where?', '{}', 'bulletin', 'ada', 'c', 'r',"
            " 's', 'ab', 3, '{}', '{\"top_n\": 1}', 'ef', NULL, 'bul_1', NULL)",
            (),
        ),
        ("INSERT INTO recall_items VALUES ('rcl_1', 1, ?, 0.25, '{}')", (memory_id,)),
        ("INSERT INTO bulletins VALUES ('bul_1', 8, 3, 'k', '{}', 'ef', '[]', 'body')", ()),
        (
            "INSERT INTO memory_supports SELECT memory_id, source_id, 5, 7 FROM memories"
            " WHERE memory_id = ?",
            (memory_id,),
        ),
        (
            "INSERT INTO job_runs (run_id, job, trigger, started_at, ended_at, state, holder)"
            " VALUES ('run_1', 'decay', 'schedule', 4, 5, 'done', 'one')",
            (),
        ),
    ]
    with database.write() as connection:
        for statement, values in statements:
            connection.exec_driver_sql(statement, values)


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


def database_at(path: Path) -> SqliteDatabase:
    """Open the database of a closed orchestrator."""
    settings = StorageSettings(synchronous="NORMAL", busy_timeout_ms=5_000)
    return SqliteStore(path, NAME).open(settings)


def copy_folder(source: Path, target: Path) -> Path:
    """A copy of a closed orchestrator's memory folder; gives the database in it."""
    shutil.copytree(source, target)
    return target / "memory.db"
