"""The words of memories in their order, as ``tsvector``: what FTS5 is in SQLite.

They are cut and stemmed here and not by the server, so that both engines find the same. Triggers
note in ``memory_words_due`` whose words changed; the transaction follows before it ends.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.text.stem import stem, words

COLUMNS: Final = {"content": "A", "source_role": "B", "tags": "C", "search_terms": "D"}
"""Which weight marks the words of which column; weights rank nothing here."""
MOST_POSITION: Final = 16_383
"""The server counts no further: of a longer text no phrase is found behind that."""
_GAP: Final = 8
_BATCH: Final = 500
_DUE: Final = "DELETE FROM memory_words_due RETURNING pk"
_FIELDS: Final = "m.pk, m.content, m.source_role, m.tags, m.search_terms"
_TEXTS: Final = f"SELECT {_FIELDS} FROM memories AS m WHERE m.pk = ANY(%s) ORDER BY m.pk"
_ALL: Final = f"SELECT {_FIELDS} FROM memories AS m WHERE m.pk > %s ORDER BY m.pk LIMIT %s"
_PUT: Final = (
    "INSERT INTO memory_words (pk, words) VALUES (%s, CAST(%s AS tsvector))"
    " ON CONFLICT (pk) DO UPDATE SET words = excluded.words"
)
_REMOVE: Final = "DELETE FROM memory_words WHERE pk = ANY(%s)"
_FREQUENCIES: Final = """
    SELECT f.stem, greatest(
        (SELECT count(*) FROM memory_words WHERE words @@ CAST(f.query || ':A' AS tsquery)),
        (SELECT count(*) FROM memory_words WHERE words @@ CAST(f.query || ':C' AS tsquery)),
        (SELECT count(*) FROM memory_words WHERE words @@ CAST(f.query || ':D' AS tsquery))
    ) FROM unnest(CAST(%s AS text[]), CAST(%s AS text[])) AS f(stem, query)
"""
_STORED: Final = (
    "SELECT m.pk, w.words = CAST(%s AS tsvector) FROM memories AS m"
    " LEFT JOIN memory_words AS w ON w.pk = m.pk WHERE m.pk = %s"
)
_STRAYS: Final = (
    "SELECT EXISTS (SELECT 1 FROM memory_words AS w WHERE NOT EXISTS"
    " (SELECT 1 FROM memories AS m WHERE m.pk = w.pk)) OR EXISTS (SELECT 1 FROM memory_words_due)"
)
_TOKEN: Final = re.compile(r'"((?:[^"]|"")*)"|(\()|(\))|\{([^}]*)\}\s*:|(\w+)\s*:|(AND|OR)\b|\s+')


def vector(content: str, source_role: str | None, tags: str, search_terms: str | None) -> str:
    """Return the text form of a memory's words and their places."""
    held: dict[str, list[str]] = {}
    at = 0
    for (_, mark), text in zip(
        COLUMNS.items(), (content, source_role, tags, search_terms), strict=True
    ):
        for word in words(text or ""):
            at += 1
            held.setdefault(stem(word), []).append(f"{min(at, MOST_POSITION)}{mark}")
        # No phrase reaches from one column into the next.
        at += _GAP
    return " ".join(f"{_lexeme(key)}:{','.join(places)}" for key, places in held.items())


def expression(match: str) -> str:
    """Return what the server is asked instead of an expression of ``text_index.matching``."""
    tokens = [item for item in _TOKEN.finditer(match) if item.group().strip()]
    if not tokens:
        return ""
    return _either(tokens, "".join(COLUMNS.values()))


def _either(tokens: list[re.Match[str]], marks: str) -> str:
    legs = [_all(tokens, marks)]
    while tokens and tokens[0].group(6) == "OR":
        tokens.pop(0)
        legs.append(_all(tokens, marks))
    return f"({' | '.join(legs)})"


def _all(tokens: list[re.Match[str]], marks: str) -> str:
    legs = [_one(tokens, marks)]
    while tokens and tokens[0].group(6) != "OR" and tokens[0].group(3) is None:
        if tokens[0].group(6) == "AND":
            tokens.pop(0)
        legs.append(_one(tokens, marks))
    return f"({' & '.join(legs)})"


def _one(tokens: list[re.Match[str]], marks: str) -> str:
    token = tokens.pop(0)
    phrase, opens, _, several, single, _ = token.groups()
    if several is not None or single is not None:
        columns = (several or single).split()
        return _one(tokens, "".join(COLUMNS[name] for name in columns))
    if opens is not None:
        result = _either(tokens, marks)
        tokens.pop(0)
        return result
    stems = [stem(word) for word in words(phrase.replace('""', '"'))]
    # Nothing is no word: it is in no text.
    return f"({' <-> '.join(f'{_lexeme(item)}:{marks}' for item in stems or [''])})"


def _lexeme(text: str) -> str:
    quoted = (text or "\x01").replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def follow(transaction: Transaction) -> None:
    """Take in what the transaction changed."""
    pks = [pk for (pk,) in transaction.driver.execute(_DUE)]
    for start in range(0, len(pks), _BATCH):
        part = pks[start : start + _BATCH]
        rows = transaction.driver.execute(_TEXTS, (part,)).fetchall()
        gone = sorted(set(part) - {row[0] for row in rows})
        if gone:
            transaction.driver.execute(_REMOVE, (gone,))
        transaction.driver.executemany(_PUT, [(pk, vector(*texts)) for pk, *texts in rows])


def frequencies(snapshot: Snapshot, stems: Collection[str]) -> dict[str, int]:
    """Return in how many memories each stem stands; one that stands in none is left out."""
    listed = sorted(stems)
    results = snapshot.driver.execute(_FREQUENCIES, (listed, [_lexeme(item) for item in listed]))
    return {str(each): int(count) for each, count in results if count}


def rebuild(transaction: Transaction) -> None:
    """Make all words anew from the rows of ``memories``."""
    transaction.driver.execute("DELETE FROM memory_words_due")
    transaction.driver.execute("DELETE FROM memory_words")
    for rows in _pages(transaction):
        transaction.driver.executemany(_PUT, [(pk, vector(*texts)) for pk, *texts in rows])


def merge(transaction: Transaction) -> bool:  # noqa: ARG001
    """Return False: the server merges by itself."""
    return False


def check(transaction: Transaction) -> bool:
    """Return whether the words agree with ``memories``."""
    [(has_strays,)] = transaction.driver.execute(_STRAYS)
    if has_strays:
        return False
    execute = transaction.driver.execute
    return all(
        row[1]
        for rows in _pages(transaction)
        for pk, *texts in rows
        for row in execute(_STORED, (vector(*texts), pk))
    )


def _pages(snapshot: Snapshot) -> Iterator[list[Any]]:
    after = 0
    while rows := snapshot.driver.execute(_ALL, (after, _BATCH)).fetchall():
        yield rows
        after = rows[-1][0]


class PostgresPhraseIndex:
    """The functions of this module as a ``ports.PhraseIndex``."""

    expression = staticmethod(expression)
    frequencies = staticmethod(frequencies)
    merge = staticmethod(merge)
    rebuild = staticmethod(rebuild)
    check = staticmethod(check)
