"""What an older schema tells of values that were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from filling import NOW, Filling, fresh_database

from memgraph.rules.scope import Viewer
from memgraph.store import graph, memories
from memgraph.store.engine import Database
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MIGRATION = Path(__file__).parents[2] / "migrations/versions/0005_what_was_and_why.py"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with fresh_database(tmp_path) as opened:
        yield opened


def test_an_import_keeps_what_the_migration_keeps(database: Database) -> None:
    fill_with_endings(database)
    statements = re.findall(
        r'^KEEP_WHAT_\w+ = """(.*?)"""', MIGRATION.read_text(), re.DOTALL | re.MULTILINE
    )
    with database.write() as transaction:
        for statement in statements:
            transaction.exec_driver_sql(statement)
        migrated = kept(transaction)
        transaction.exec_driver_sql("DELETE FROM memory_revisions")
        memories.fill_revisions(transaction)
        assert kept(transaction) == migrated
    assert len(migrated) == 2


def kept(snapshot: Snapshot) -> list[tuple[object, ...]]:
    result = snapshot.driver.execute("SELECT * FROM memory_revisions ORDER BY revision_id")
    return [tuple(row) for row in result]


def test_the_confidence_before_a_loss_and_the_open_end_before_an_ending(
    database: Database,
) -> None:
    loser, removed, winner = fill_with_endings(database)
    for _ in range(2):
        # Twice is once.
        with database.write() as transaction:
            memories.fill_revisions(transaction)
    with database.read() as snapshot:
        found = graph.visible_memories(
            snapshot, [loser, removed, winner], View(Viewer(), as_of=NOW + 5)
        )
        assert len(kept(snapshot)) == 2
    assert (found[loser].confidence, found[loser].valid_until) == (0.8, None)
    assert found[removed].valid_until is None


def fill_with_endings(database: Database) -> tuple[str, str, str]:
    """Store what lost a contradiction, what was retracted, and what won; return their ids."""
    filling = Filling(database)
    ended = [("active", NOW, NOW + 10), ("superseded", NOW + 10, None)]
    winner = filling.memory()
    loser = filling.memory(status="superseded", history=ended, confidence=0.3, valid_until=NOW + 10)
    filling.edge(
        winner,
        loser,
        "Contradicts",
        created_at=NOW + 1,
        resolved_at=NOW + 10,
        resolution={"winner_id": winner, "loser_id": loser, "loser_prior_confidence": 0.8},
    )
    removed = filling.memory(
        status="retracted",
        history=[("active", NOW, NOW + 20), ("retracted", NOW + 20, None)],
        valid_until=NOW + 20,
    )
    filling.flush()
    return loser, removed, winner
