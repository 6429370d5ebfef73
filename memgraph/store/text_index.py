"""The indexes of texts: postings rank them, an FTS5 table finds phrases and what all words hold.

``INDEX`` is the one that ranks. The FTS5 table stands over columns of ``memories``, kept by
triggers.

FTS5 cuts text at blanks, so a CJK sentence would be one word. What ``search_terms`` makes of a
text is stored beside it and indexed too: every two neighbouring CJK characters are a word.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any, Final

import sqlalchemy as sa

from memgraph.errors import DatabaseCorrupt
from memgraph.store import sqlite
from memgraph.store.enrichment import ENRICHED_NAMES
from memgraph.store.ports import TextIndex
from memgraph.store.snapshot import Snapshot, Transaction, driver
from memgraph.store.sqlite.postings import SqliteTextIndex
from memgraph.store.statements import value

INDEX: Final[TextIndex] = SqliteTextIndex()

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


def matching(name: str) -> sa.Select[Any]:
    """Select the keys of memories that match an FTS5 expression, given as ``name``."""
    index = sa.table("memory_fts", sa.column("rowid"), sa.column("memory_fts"))
    return sa.select(index.c.rowid).where(index.c.memory_fts.op("MATCH")(value(name)))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def rebuild(transaction: Transaction) -> None:
    """Make the index anew from the rows of ``memories``."""
    transaction.exec_driver_sql("INSERT INTO memory_fts (memory_fts) VALUES ('rebuild')")


def merge(transaction: Transaction, pages: int) -> bool:
    """Merge parts of the index, about so many pages of it; gives whether there was any to merge.

    Every transaction that stores texts leaves a part of its own, and a search reads all parts.
    """
    raw = driver(transaction)
    before = raw.total_changes
    raw.execute("INSERT INTO memory_fts (memory_fts, rank) VALUES ('merge', ?)", (pages,))
    # FTS5's own word for it: a command that found nothing changes one row.
    return bool(raw.total_changes - before > 1)


def check(transaction: Transaction) -> bool:
    """Whether the index agrees with ``memories``, word for word. Takes a write transaction.

    Raises:
        StorageError: the check itself could not run.
    """
    try:
        with sqlite.translated_errors():
            transaction.exec_driver_sql(
                "INSERT INTO memory_fts (memory_fts, rank) VALUES ('integrity-check', 1)"
            )
    except DatabaseCorrupt:
        return False
    return True


# What a rebuild reads and writes: contents in batches, entity links and counts.


_RECOUNT = (
    "UPDATE entities SET mention_count ="
    " (SELECT count(*) FROM memory_entities l WHERE l.entity_pk = entities.pk)"
)

# What somebody decided about a name is kept, whether or not it is named at present.
_UNNAMED = (
    "{0}.mention_count = 0 AND {0}.protected = 0 AND {0}.summary IS NULL"
    " AND {0}.merged_into IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM entities o WHERE o.merged_into = {0}.entity_id)"
    " AND NOT EXISTS (SELECT 1 FROM entity_aliases a"
    " WHERE a.entity_pk = {0}.pk AND a.alias_key <> {0}.name_key)"
)


def memory_count(snapshot: Snapshot) -> int:
    return int(snapshot.exec_driver_sql("SELECT count(*) FROM memories").scalar_one())


def newest_pk(snapshot: Snapshot) -> int:
    """The highest key of a memory; 0: there is none."""
    return int(snapshot.exec_driver_sql("SELECT coalesce(max(pk), 0) FROM memories").scalar_one())


def entity_count(snapshot: Snapshot) -> int:
    return int(snapshot.exec_driver_sql("SELECT count(*) FROM entities").scalar_one())


def contents(snapshot: Snapshot, after: int, limit: int) -> list[tuple[int, str, Any]]:
    """Keys, texts and ``attributes.enriched_names`` (None: none) of the next memories.

    ``after``: the last key of the batch before, or 0.
    """
    return _contents(snapshot, "pk > ? ORDER BY pk LIMIT ?", (after, limit))


def contents_of(snapshot: Snapshot, pks: Sequence[int]) -> list[tuple[int, str, Any]]:
    """The same of the memories with these keys."""
    of_these = "pk IN (SELECT value FROM json_each(?)) ORDER BY pk"
    return _contents(snapshot, of_these, (json.dumps(list(pks)),))


def _contents(
    snapshot: Snapshot, chosen: str, values: tuple[Any, ...]
) -> list[tuple[int, str, Any]]:
    found = snapshot.exec_driver_sql(
        f"SELECT pk, content, CASE json_type(attributes, '$.{ENRICHED_NAMES}') WHEN 'array'"
        f" THEN json_extract(attributes, '$.{ENRICHED_NAMES}') END FROM memories WHERE {chosen}",
        values,
    )
    return [
        (int(pk), str(content), None if kept is None else json.loads(kept))
        for pk, content, kept in found
    ]


def rewrite_search_terms(transaction: Transaction) -> int:
    """Make ``search_terms`` anew where they do not fit the content; gives how many did not."""
    after, changed = 0, 0
    while batch := _terms(transaction, after):
        wrong = [(fresh, pk) for pk, stored, fresh in batch if stored != fresh]
        if wrong:
            transaction.exec_driver_sql("UPDATE memories SET search_terms = ? WHERE pk = ?", wrong)
        after, changed = batch[-1][0], changed + len(wrong)
    return changed


def _terms(snapshot: Snapshot, after: int) -> list[tuple[int, str | None, str | None]]:
    found = snapshot.exec_driver_sql(
        "SELECT pk, search_terms, content FROM memories WHERE pk > ? ORDER BY pk LIMIT 5000",
        (after,),
    )
    return [
        (pk, stored, None if content.isascii() else search_terms(content))
        for pk, stored, content in found
    ]


def unlink(transaction: Transaction, pks: Sequence[int]) -> list[int]:
    """Take the entity links of memories away; gives the keys of the entities they named."""
    listed = (json.dumps(list(pks)),)
    found = transaction.exec_driver_sql(
        "SELECT DISTINCT entity_pk FROM memory_entities"
        " WHERE memory_pk IN (SELECT value FROM json_each(?))",
        listed,
    )
    touched = [int(pk) for (pk,) in found]
    transaction.exec_driver_sql(
        "DELETE FROM memory_entities WHERE memory_pk IN (SELECT value FROM json_each(?))", listed
    )
    return touched


def recount(transaction: Transaction, entities: Sequence[int], memories: Sequence[int]) -> None:
    """Count the mentions of these entities, and of those that these memories name."""
    transaction.exec_driver_sql(
        f"{_RECOUNT} WHERE pk IN (SELECT value FROM json_each(?))"
        " OR pk IN (SELECT entity_pk FROM memory_entities"
        " WHERE memory_pk IN (SELECT value FROM json_each(?)))",
        (json.dumps(list(entities)), json.dumps(list(memories))),
    )


def recount_all(transaction: Transaction) -> None:
    transaction.exec_driver_sql(_RECOUNT)


def remove_unnamed(transaction: Transaction) -> int:
    """Remove entities that nothing names and nobody wrote anything about; gives how many."""
    # Another spelling of the own name is no more than that name.
    transaction.exec_driver_sql(
        "DELETE FROM entity_aliases WHERE EXISTS (SELECT 1 FROM entities e"
        f" WHERE e.pk = entity_aliases.entity_pk AND {_UNNAMED.format('e')})"
    )
    removed = transaction.exec_driver_sql(
        f"DELETE FROM entities WHERE {_UNNAMED.format('entities')}"
    )
    return int(removed.rowcount)
