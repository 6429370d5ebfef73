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


# Queries for a rebuild: contents in batches, entity links and mention counts.


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
    """Return the metadata of an agent's item, or NULL."""
    kind = sa.func.json_type(m.c.attributes, f"$.{METADATA}")
    return sa.case((kind == "text", member(m.c.attributes, METADATA)))


def _terms() -> tuple[sa.Table, sa.Select[Any]]:
    m = tables.memories
    query = sa.select(m.c.pk, m.c.search_terms, m.c.content, metadata_of(m))
    return m, query.order_by(m.c.pk)


def unlink(transaction: Transaction, pks: Sequence[int]) -> list[int]:
    """Remove the entity links of memories, and return the keys of the entities."""
    link = tables.links
    query = sa.select(link.c.entity_pk).distinct().where(among(link.c.memory_pk, pks))
    touched: list[int] = transaction.column(query)
    transaction.write(sa.delete(tables.links).where(among(tables.links.c.memory_pk, pks)))
    return touched


def recount(
    transaction: Transaction, entities: Sequence[int] | None = None, memories: Sequence[int] = ()
) -> None:
    """Recount the mentions of entities and of those that memories name; by default of all."""
    e, link = tables.entities, tables.links.alias("l")
    mentions = sa.select(sa.func.count()).where(link.c.entity_pk == e.c.pk).correlate(e)
    update = sa.update(e).values(mention_count=mentions.scalar_subquery())
    if entities is not None:
        mentioned = sa.select(tables.links.c.entity_pk)
        mentioned = mentioned.where(among(tables.links.c.memory_pk, memories))
        update = update.where(among(e.c.pk, entities) | e.c.pk.in_(mentioned))
    transaction.write(update)


def _is_unnamed(e: sa.FromClause) -> Column:
    """Return the condition that no memory names an entity and no decision concerns it."""
    o, a = tables.entities.alias("o"), tables.aliases.alias("a")
    is_merge_target = sa.exists().where(o.c.merged_into == e.c.entity_id).correlate(e)
    has_names = sa.exists().where(a.c.entity_pk == e.c.pk, a.c.alias_key != e.c.name_key)
    return sa.and_(
        e.c.mention_count == 0,
        e.c.protected == sa.false(),
        e.c.summary.is_(None),
        e.c.merged_into.is_(None),
        ~is_merge_target,
        ~has_names.correlate(e),
    )


def remove_unnamed(transaction: Transaction) -> int:
    """Remove entities without mentions and decisions, and return their number."""
    e, a = tables.entities.alias("e"), tables.aliases
    statement = sa.delete(a).where(
        sa.exists().where(e.c.pk == a.c.entity_pk, _is_unnamed(e)).correlate(a)
    )
    # An alias with the key of the entity's own name is not a decision; remove it first.
    transaction.write(statement)
    return transaction.write(sa.delete(tables.entities).where(_is_unnamed(tables.entities)))
