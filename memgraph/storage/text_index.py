"""The full-text index: an FTS5 table over the columns of ``memories``, kept by triggers.

FTS5 cuts text at blanks, so a CJK sentence would be one word. What ``search_terms`` makes of a
text is stored beside it and indexed too: every two neighbouring CJK characters are a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

import sqlalchemy as sa

from memgraph.errors import DatabaseCorrupt
from memgraph.storage import sqlite
from memgraph.storage.statements import driver

# Han, kana, Hangul and their extensions: scripts written without blanks, or searched by syllables.
_CJK = re.compile(
    "[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f]+"
)


def cjk_bigrams(text: str) -> list[str]:
    """Every two neighbouring CJK characters, in order; a lone one stands for itself."""
    grams: list[str] = []
    for run in _CJK.findall(text):
        grams.extend(run[at : at + 2] for at in range(max(len(run) - 1, 1)))
    return grams


def search_terms(text: str) -> str | None:
    """What to store in ``memories.search_terms``; None where the tokenizer needs no help."""
    grams = cjk_bigrams(unicodedata.normalize("NFKC", text).casefold())
    return " ".join(grams) if grams else None


def saying(names: Collection[str]) -> str:
    """A query for the texts that say one of some names, all of its words in a row."""
    found = []
    for name in names:
        found.append(f"content : {_quoted(name)}")
        grams = search_terms(name)
        if grams is not None:
            found.append(f"search_terms : {_quoted(grams)}")
    return " OR ".join(found)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def rebuild(connection: sa.Connection) -> None:
    """Make the index anew from the rows of ``memories``."""
    connection.exec_driver_sql("INSERT INTO memory_fts (memory_fts) VALUES ('rebuild')")


def merge(connection: sa.Connection, pages: int) -> bool:
    """Merge parts of the index, about so many pages of it; gives whether there was any to merge.

    Every transaction that stores texts leaves a part of its own, and a search reads all parts.
    """
    raw = driver(connection)
    before = raw.total_changes
    raw.execute("INSERT INTO memory_fts (memory_fts, rank) VALUES ('merge', ?)", (pages,))
    # FTS5's own word for it: a command that found nothing changes one row.
    return bool(raw.total_changes - before > 1)


def check(connection: sa.Connection) -> bool:
    """Whether the index agrees with ``memories``, word for word. Takes a write transaction.

    Raises:
        StorageError: the check itself could not run.
    """
    try:
        with sqlite.translated_errors():
            connection.exec_driver_sql(
                "INSERT INTO memory_fts (memory_fts, rank) VALUES ('integrity-check', 1)"
            )
    except DatabaseCorrupt:
        return False
    return True
