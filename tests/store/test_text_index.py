"""CJK text is cut into words of two characters; damage of the index is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.config.schema import StorageSettings
from memgraph.store import text_index
from memgraph.store.sqlite.stores import SqliteStore

NOW = 1_767_225_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", None),
        ("東京都に住む", "東京 京都 都に に住 住む"),
        ("猫 and 犬小屋", "猫 犬小 小屋"),
        ("ﾃｽﾄ", "テス スト"),
        ("", None),
    ],
)
def test_search_terms(text: str, expected: str | None) -> None:
    assert text_index.search_terms(text) == expected


@given(st.text(max_size=60))
def test_terms_are_one_or_two_characters_of_the_text(text: str) -> None:
    terms = text_index.search_terms(text)
    assert terms is None or {len(term) for term in terms.split(" ")} <= {1, 2}


def test_check_finds_an_index_that_disagrees(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    SqliteStore(path, "orc").create(dimensions=8, now_ms=NOW)
    database = SqliteStore(path, "orc").open(
        StorageSettings(synchronous="NORMAL", busy_timeout_ms=1000)
    )
    with database.write() as connection:
        assert connection.engine.phrases.check(connection)
        connection.exec_driver_sql("INSERT INTO memory_fts (rowid, content) VALUES (7, 'stray')")
        assert not connection.engine.phrases.check(connection)
        connection.engine.phrases.rebuild(connection)
        assert connection.engine.phrases.check(connection)
    database.close()
