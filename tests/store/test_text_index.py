"""CJK text is cut into words of two characters; damage of the index is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from filling import fresh_database
from hypothesis import given, strategies as st

from memgraph.store import text_index


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
    with fresh_database(tmp_path) as database, database.write() as connection:
        assert connection.engine.phrases.check(connection)
        connection.exec_driver_sql("INSERT INTO memory_fts (rowid, content) VALUES (7, 'stray')")
        assert not connection.engine.phrases.check(connection)
        connection.engine.phrases.rebuild(connection)
        assert connection.engine.phrases.check(connection)
