"""The vector index and the ``engine.PhraseIndex`` in PostgreSQL.

The vector index is exact, over vectors in memory; see ``store.vector_index``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from memgraph.store import tables
from memgraph.store.embeddings import unit_vectors
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import prepared, value
from memgraph.store.vector_index import VectorIndex, is_searched
from memgraph.text.stem import stem, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.vector_cache import VectorRows


@prepared
def _between() -> sa.Select[Any]:
    e = tables.embeddings
    result = sa.select(e.c.memory_pk, e.c.visibility, e.c.vector).where(is_searched(e))
    return result.where(e.c.memory_pk.between(value("first"), value("last"))).order_by(
        e.c.memory_pk
    )


class PostgresVectorIndex(VectorIndex):
    """The vector index in PostgreSQL."""

    def _read(self, first: int, last: int) -> VectorRows:
        import numpy as np

        from memgraph.store.vector_cache import VectorRows

        results = _between().rows(self._snapshot, self._searched, first=first, last=last)
        codes = np.frombuffer(b"".join(row[2] for row in results), np.int8)
        return VectorRows(
            np.array([row[0] for row in results], np.int64),
            np.array([row[1] for row in results], np.int64),
            codes.reshape(len(results), self.dimensions),
        )

    def _nearest_of_rows(
        self,
        query: NDArray[np.float32],
        limit: int,
        visibilities: Collection[int],
        among: Collection[int] | None,
    ) -> list[int]:
        import numpy as np

        allowed = np.array(sorted(visibilities), np.int64)
        among_keys = None if among is None else np.array(sorted(among), np.int64)
        keys, scores, after = [], [], -1
        while after < self._bounds[1]:
            rows, after = self._read_after(after)
            matching = np.isin(rows.visibilities, allowed)
            if among_keys is not None:
                matching &= np.isin(rows.keys, among_keys)
            keys.append(rows.keys[matching])
            scores.append(np.vecdot(unit_vectors(rows.codes[matching]), query))
        pks = np.concatenate(keys)
        nearest: list[int] = pks[np.lexsort((pks, -np.concatenate(scores)))[:limit]].tolist()
        return nearest


COLUMNS: Final = {"content": "A", "source_role": "B", "tags": "C", "search_terms": "D"}
"""The tsvector weight that marks the words of each column; weights are not used for ranking."""
MOST_POSITION: Final = 16_383
"""The highest position in a tsvector. Phrases beyond it in a longer text are not found."""
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
_AGREE: Final = (
    "SELECT bool_and(w.words IS NOT DISTINCT FROM CAST(v.words AS tsvector))"
    " FROM unnest(CAST(%s AS bigint[]), CAST(%s AS text[])) AS v (pk, words)"
    " LEFT JOIN memory_words AS w ON w.pk = v.pk"
)
_STRAYS: Final = (
    "SELECT EXISTS (SELECT 1 FROM memory_words AS w WHERE NOT EXISTS"
    " (SELECT 1 FROM memories AS m WHERE m.pk = w.pk)) OR EXISTS (SELECT 1 FROM memory_words_due)"
)
_TOKEN: Final = re.compile(r'((?:\{[^}]*\}|\w+)\s*:\s*)?"((?:[^"]|"")*)"|\b(AND|OR)\b')


def vector(content: str, source_role: str | None, tags: str, search_terms: str | None) -> str:
    """Return the tsvector of a memory as text: its stems with their positions and weights."""
    positions: dict[str, list[str]] = {}
    at = 0
    for (_, mark), text in zip(
        COLUMNS.items(), (content, source_role, tags, search_terms), strict=True
    ):
        for word in words(text or ""):
            at += 1
            positions.setdefault(stem(word), []).append(f"{min(at, MOST_POSITION)}{mark}")
        # Leave a gap, so that no phrase matches across two columns.
        at += _GAP
    return " ".join(f"{_lexeme(key)}:{','.join(places)}" for key, places in positions.items())


def expression(match: str) -> str:
    """Translate an expression of ``text_index.matching`` into a tsquery.

    Raises:
        ValueError: it contains more than quoted phrases, AND, OR and parentheses.
    """
    if _TOKEN.sub("", match).strip(" ()"):
        raise ValueError("not an expression of quoted phrases")
    return _TOKEN.sub(_translated, match)


def _translated(token: re.Match[str]) -> str:
    names, phrase, operator = token.groups()
    if operator is not None:
        return "&" if operator == "AND" else "|"
    stems = [stem(word) for word in words(phrase.replace('""', '"'))]
    # Weights are not in the GIN index, so add none for all columns: otherwise the server rechecks
    # each match.
    marks = "".join(COLUMNS[name] for name in re.findall(r"\w+", names or ""))
    mark = f":{marks}" if marks else ""
    # A phrase without words becomes an empty lexeme, which matches no text.
    return f"({' <-> '.join(f'{_lexeme(item)}{mark}' for item in stems or [''])})"


def _lexeme(text: str) -> str:
    quoted = (text or "\x01").replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}'"


def index_texts(transaction: Transaction) -> None:
    """Index the words of the memories that the transaction changed."""
    pks = [pk for (pk,) in transaction.driver.execute(_DUE)]
    for start in range(0, len(pks), _BATCH):
        part = pks[start : start + _BATCH]
        rows = transaction.driver.execute(_TEXTS, (part,)).fetchall()
        removed = sorted(set(part) - {row[0] for row in rows})
        if removed:
            transaction.driver.execute(_REMOVE, (removed,))
        transaction.driver.executemany(_PUT, [(pk, vector(*texts)) for pk, *texts in rows])


def rebuild(transaction: Transaction) -> None:
    """Rebuild the index from the rows of ``memories``."""
    transaction.driver.execute("DELETE FROM memory_words_due")
    transaction.driver.execute("DELETE FROM memory_words")
    for rows in _pages(transaction):
        transaction.driver.executemany(_PUT, [(pk, vector(*texts)) for pk, *texts in rows])


def merge(transaction: Transaction) -> bool:  # noqa: ARG001
    """Return False, because the server merges its index by itself."""
    return False


checks_snapshots: Final = True


def check(snapshot: Snapshot) -> bool:
    """Return True if the index agrees with ``memories``."""
    execute = snapshot.driver.execute
    if execute(_STRAYS).fetchone()[0]:
        return False
    agreements = (
        execute(_AGREE, ([row[0] for row in rows], [vector(*texts) for _, *texts in rows]))
        for rows in _pages(snapshot)
    )
    return all(cursor.fetchone()[0] for cursor in agreements)


def _pages(snapshot: Snapshot) -> Iterator[list[Any]]:
    after = 0
    while rows := snapshot.driver.execute(_ALL, (after, _BATCH)).fetchall():
        yield rows
        after = rows[-1][0]
