"""Search terms and match expressions of the text index.

FTS5 splits text at spaces, so a CJK sentence would be a single word. Therefore ``search_terms``
returns all pairs of neighbouring CJK characters, which are stored and indexed with the text. So is
the metadata of an agent's item.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.functions import GenericFunction

from memgraph.model.entities import METADATA
from memgraph.store import tables
from memgraph.store.enrichment import ENRICHED_NAMES
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import Column, CompiledStatement, among, bound, member, value

# Han, kana, Hangul and their extensions: scripts written without spaces, or searched by syllables.
_CJK = re.compile(
    "[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f]+"
)


def cjk_bigrams(text: str) -> list[str]:
    """Return all pairs of neighbouring CJK characters in order; a lone one is returned alone."""
    grams: list[str] = []
    for run in _CJK.findall(text):
        grams.extend(run[at : at + 2] for at in range(max(len(run) - 1, 1)))
    return grams


def search_terms(text: str, metadata: Any = None) -> str | None:
    """Return the value of ``memories.search_terms``, or None if there is nothing to add to a text.

    Args:
        metadata: the ``metadata_json`` among the attributes; searched if it is a text.
    """
    added = metadata if isinstance(metadata, str) else ""
    whole = f"{text}\n{added}" if added else text
    terms = [] if whole.isascii() else cjk_bigrams(unicodedata.normalize("NFKC", whole).casefold())
    return " ".join([*terms, added] if added else terms) or None


def saying(names: Collection[str]) -> str:
    """Return a match expression for texts that contain one of the names as a phrase."""
    terms = []
    for name in names:
        terms.append(f"content : {_quoted(name)}")
        grams = search_terms(name)
        if grams is not None:
            terms.append(f"search_terms : {_quoted(grams)}")
    return " OR ".join(terms)


class PhraseMatches(GenericFunction[Any]):
    """The memories that match in the phrase index, as rows: ``pk`` and ``rank``."""

    name = "phrase_matches"
    inherit_cache = True


def matching(name: str, *more: str) -> sa.Select[Any]:
    """Select the keys of memories that match an expression, bound as ``name``.

    Words and phrases in double quotes are joined by ``AND``, ``OR`` and parentheses. A prefix
    ``content :`` or ``{content search_terms} :`` of a phrase restricts its columns.

    Args:
        more: further columns to select; ``rank`` is the BM25 score, the lowest is the best.
    """
    f = PhraseMatches(value(name)).table_valued("pk", *more, name="phrases")
    return sa.select(f.c.pk, *(f.c[column] for column in more))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


# Queries for a rebuild.


def contents(snapshot: Snapshot, after: int, limit: int) -> list[tuple[int, str, Any]]:
    """Return (key, content, ``attributes.enriched_names`` or None) of the next memories.

    Args:
        after: the last key of the previous batch, or 0.
    """
    m = tables.memories
    kind = sa.func.json_type(m.c.attributes, f"$.{ENRICHED_NAMES}")
    names = sa.case((kind == "array", member(m.c.attributes, ENRICHED_NAMES)))
    query = sa.select(m.c.pk, m.c.content, names).where(m.c.pk > bound(after))
    return [
        (pk, content, None if enriched is None else json.loads(enriched))
        for pk, content, enriched in snapshot.rows(query.order_by(m.c.pk).limit(limit))
    ]


def rewrite_search_terms(transaction: Transaction) -> int:
    """Rewrite all ``search_terms`` that do not match their memory, and return their number."""
    after, changed = 0, 0
    m, query = _terms()
    query = query.where(m.c.pk > value("after")).limit(5_000)
    while batch := transaction.rows(query, after=after):
        changed += len(_rewrite(transaction, batch))
        after = batch[-1][0]
    return changed


def rewrite_search_terms_of(transaction: Transaction, pks: Sequence[int]) -> list[int]:
    """Rewrite the ``search_terms`` of memories by their keys, and return those that changed."""
    m, query = _terms()
    return _rewrite(transaction, transaction.rows(query.where(among(m.c.pk, pks))))


def _rewrite(transaction: Transaction, rows: Sequence[Any]) -> list[int]:
    fresh = ((pk, stored, search_terms(text, added)) for pk, stored, text, added in rows)
    wrong = [{"pk": pk, "terms": terms} for pk, stored, terms in fresh if stored != terms]
    m = tables.memories
    update = sa.update(m).where(m.c.pk == value("pk")).values(search_terms=value("terms"))
    CompiledStatement(update).write_all(transaction, wrong)
    return [each["pk"] for each in wrong]


def metadata_of(m: sa.FromClause) -> Column:
    """Return the metadata of an agent's item, or NULL; damaged attributes have none."""
    kind = sa.func.json_type(m.c.attributes, f"$.{METADATA}")
    of_item = sa.case((kind == "text", member(m.c.attributes, METADATA)))
    return sa.case((sa.func.json_valid(m.c.attributes), of_item))


def _terms() -> tuple[sa.Table, sa.Select[Any]]:
    m = tables.memories
    query = sa.select(m.c.pk, m.c.search_terms, m.c.content, metadata_of(m))
    return m, query.order_by(m.c.pk)
