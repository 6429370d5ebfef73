"""Stems are those of the full-text index, letter for letter."""

from __future__ import annotations

import pysqlite3.dbapi2 as sqlite
import pytest
from hypothesis import given, strategies as st

from memgraph.text.stem import stem, words

SUFFIXES = (
    "s es ies sses ed eed ing ly ational tional enci izer ization ation ator alism iveness fulness"
    " ousness aliti iviti biliti icate ative alize iciti ical ful ness al ance ence er ic able ible"
    " ant ement ment ent ion ou ism ate iti ous ive ize e y ll bb tt zz"
)
latin_words = st.builds(
    lambda root, *tails: root + "".join(tails),
    st.text("abcdefghijklmnopqrstuvwxyz0123", min_size=1, max_size=7),
    st.sampled_from(SUFFIXES.split()),
    st.sampled_from(["", *SUFFIXES.split()]),
)


def index_stems(texts: list[str]) -> list[list[str]]:
    """The terms that FTS5 makes of each text."""
    connection = sqlite.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE t USING fts5(c, tokenize='porter unicode61 remove_diacritics 2')"
    )
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
    connection.executemany("INSERT INTO t (rowid, c) VALUES (?, ?)", enumerate(texts))
    found: list[list[str]] = [[] for _ in texts]
    for term, at in connection.execute("SELECT term, doc FROM v ORDER BY doc, offset"):
        found[at].append(term)
    connection.close()
    return found


@given(st.lists(latin_words, min_size=1, max_size=60))
def test_stems_of_latin_words(given_words: list[str]) -> None:
    assert [[stem(word)] for word in given_words] == index_stems(given_words)


@pytest.mark.parametrize(
    "text",
    ["Crème brûlée, twice!", "snake_case and kebab-case", "Мария писала письма", "don't e.g. 3.14"],
)
def test_words_of_a_text(text: str) -> None:
    assert [[stem(word) for word in words(text)]] == index_stems([text])
