"""A file in which one value has a wrong type: the audit names its row, a backup copies it, and who
recalls gets the rest. MEMGRAPH_TESTS=thorough damages every column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as driver
import pytest
from sampling import WHOLE

from memgraph import MemoryService, Orchestrator
from memgraph.errors import DatabaseCorrupt
from memgraph.model.tables import metadata
from memgraph.providers.fake import FakeEmbedding

TABLES = ("memories", "memory_edges", "memory_sources", "memory_status", "entities", "sessions")
COLUMNS = [
    (name, column.name)
    for name in TABLES
    for column in metadata.tables[name].columns
    if column.name not in ("pk", "status_id")
]
SOUND = "The kettle of Bruno Marsh is white."


@contextmanager
def opened(root: Path) -> Iterator[Orchestrator]:
    with MemoryService(root, environ={}, background=False, embedding=FakeEmbedding(16)) as service:
        yield service.orchestrator("orc-1", create=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    with opened(folder) as orc:
        # The first row of each table belongs to this one.
        damaged = orc.save_episode(
            "The kettle of Ada Brown is red.", session_id="s", source_role="user", turn_id="t"
        )
        orc.relate(damaged, "RelatedTo", orc.remember("The kettle of Carla Quill is old."))
        source = {"conversation_id": "other"}
        green = orc.remember("The kettle of Bruno Marsh is green.", source=source)
        orc.correct(green, SOUND, reason="painted", source=source)
        orc.settle()
        orc.recall("kettle")
    return folder


@contextmanager
def damage(root: Path, table: str, column: str, damaged: str) -> Iterator[None]:
    """Change a value of the first row by another program, and change it back."""
    file = root / "orc-1" / "memory" / "memory.db"
    where = f'WHERE rowid = (SELECT min(rowid) FROM "{table}")'
    with closing(driver.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        [sound] = connection.execute(f'SELECT "{column}" FROM "{table}" {where}').fetchone()
        change = f'UPDATE "{table}" SET "{column}" = ? {where}'
        connection.execute(change.replace("?", damaged))
        try:
            yield
        finally:
            connection.execute(change, (sound,))


def require_the_rest(orc: Orchestrator, table: str, backup: Path) -> None:
    found = [each for each in orc.verify().findings if each.code == "row.damaged"]
    assert found
    assert {each.subject for each in found} == {table}
    copied = orc.exchange.backup(backup, force=True)
    assert copied.findings["row.damaged"] == len(found)
    assert SOUND in [item.memory.content for item in orc.recall("kettle").items]
    assert SOUND in orc.context("kettle").text
    assert orc.bulletin().warning is None


@pytest.mark.parametrize(
    ("table", "column"), COLUMNS if WHOLE else [("memories", "content"), *COLUMNS[::7]]
)
def test_a_value_of_a_wrong_type_stops_nothing(
    root: Path, tmp_path: Path, table: str, column: str
) -> None:
    with opened(root) as orc:
        with damage(root, table, column, "CAST('abc' AS BLOB)"):
            require_the_rest(orc, table, tmp_path / "backup.db")
        assert orc.verify().totals == {}


def test_the_answer_and_the_error_name_what_is_damaged(root: Path) -> None:
    with opened(root) as orc, damage(root, "memories", "session_id", "CAST('abc' AS BLOB)"):
        bundle = orc.recall("kettle")
        assert "red" not in "".join(item.memory.content for item in bundle.items)
        notes = [note for note in bundle.degraded if note.code == "storage.corrupt"]
        assert [note.text for note in notes] == ["1 damaged row was left out; run: memgraph verify"]
        with pytest.raises(DatabaseCorrupt) as caught:
            orc.memories.list(session_id=None, limit=50)
    details: dict[str, Any] = caught.value.details
    assert (details["table"], details["column"]) == ("memories", "session_id")
    assert details["row"].startswith("ep_")
