"""Words and expressions of the text index.

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
from sqlalchemy.sql.functions import GenericFunction

from memgraph.store import tables
from memgraph.store.enrichment import ENRICHED_NAMES
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import Column, among, member, prepared, value

# Han, kana, Hangul and their extensions: scripts written without blanks, or searched by syllables.
_CJK = re.compile(
    "[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f]+"
)


def cjk_bigrams(text: str) -> list[str]:
    """Return all pairs of neighbouring CJK characters in order; a lone one by itself."""
    grams: list[str] = []
    for run in _CJK.findall(text):
        grams.extend(run[at : at + 2] for at in range(max(len(run) - 1, 1)))
    return grams


def search_terms(text: str) -> str | None:
    """Return the value of ``memories.search_terms``; None: the tokenizer needs no help."""
    grams = cjk_bigrams(unicodedata.normalize("NFKC", text).casefold())
    return " ".join(grams) if grams else None


def saying(names: Collection[str]) -> str:
    """Return a query for texts that contain one of some names as a phrase."""
    terms = []
    for name in names:
        terms.append(f"content : {_quoted(name)}")
        grams = search_terms(name)
        if grams is not None:
            terms.append(f"search_terms : {_quoted(grams)}")
    return " OR ".join(terms)


class PhraseMatches(GenericFunction[Any]):
    """The memories that an index of phrases finds, as rows: ``pk`` and ``rank``."""

    name = "phrase_matches"
    inherit_cache = True


def matching(name: str, *more: str) -> sa.Select[Any]:
    """Select the keys of memories that match an expression, bound as ``name``.

    Words and phrases in double quotes are joined by ``AND``, ``OR`` and parentheses; ``content :``,
    ``search_terms :`` or ``{content search_terms} :`` names the columns that what follows is in.

    Args:
        more: further columns; ``rank`` is bm25, the best is the least.
    """
    f = PhraseMatches(value(name)).table_valued("pk", *more, name="phrases")
    return sa.select(f.c.pk, *(f.c[column] for column in more))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


# What a rebuild reads and writes: contents in batches, entity links and counts.


@prepared
def _contents(*, of_these: bool) -> sa.Select[Any]:
    m = tables.memories
    kind = sa.func.json_type(m.c.attributes, f"$.{ENRICHED_NAMES}")
    names = sa.case((kind == "array", member(m.c.attributes, ENRICHED_NAMES)))
    query = sa.select(m.c.pk, m.c.content, names).order_by(m.c.pk)
    if of_these:
        return query.where(among(m.c.pk, "pks"))
    return query.where(m.c.pk > value("after")).limit(value("limit"))


def contents(snapshot: Snapshot, after: int, limit: int) -> list[tuple[int, str, Any]]:
    """Return keys, texts and ``attributes.enriched_names`` (None: none) of the next memories.

    ``after``: the last key of the batch before, or 0.
    """
    return _with_names(_contents(of_these=False).rows(snapshot, after=after, limit=limit))


def contents_of(snapshot: Snapshot, pks: Sequence[int]) -> list[tuple[int, str, Any]]:
    """Return the same of the memories with these keys."""
    return _with_names(_contents(of_these=True).rows(snapshot, pks=pks))


def _with_names(rows: list[Any]) -> list[tuple[int, str, Any]]:
    return [
        (pk, content, None if names is None else json.loads(names)) for pk, content, names in rows
    ]


@prepared
def _set_terms() -> sa.Update:
    m = tables.memories
    return sa.update(m).where(m.c.pk == value("pk")).values(search_terms=value("terms"))


def rewrite_search_terms(transaction: Transaction) -> int:
    """Rewrite ``search_terms`` that do not match the content; return how many."""
    after, changed = 0, 0
    while batch := _terms().rows(transaction, after=after):
        fresh = (
            (pk, stored, None if content.isascii() else search_terms(content))
            for pk, stored, content in batch
        )
        wrong = [{"pk": pk, "terms": terms} for pk, stored, terms in fresh if stored != terms]
        _set_terms().write_all(transaction, wrong)
        after, changed = batch[-1][0], changed + len(wrong)
    return changed


@prepared
def _terms() -> sa.Select[Any]:
    m = tables.memories
    query = sa.select(m.c.pk, m.c.search_terms, m.c.content).where(m.c.pk > value("after"))
    return query.order_by(m.c.pk).limit(5_000)


@prepared
def _named_by() -> sa.Select[Any]:
    link = tables.links
    return sa.select(link.c.entity_pk).distinct().where(among(link.c.memory_pk, "pks"))


@prepared
def _unlink() -> sa.Delete:
    return sa.delete(tables.links).where(among(tables.links.c.memory_pk, "pks"))


def unlink(transaction: Transaction, pks: Sequence[int]) -> list[int]:
    """Remove the entity links of memories; return the keys of the entities."""
    touched: list[int] = _named_by().column(transaction, pks=pks)
    _unlink().write(transaction, pks=pks)
    return touched


@prepared
def _recount(*, some: bool) -> sa.Update:
    e, link = tables.entities, tables.links.alias("l")
    mentions = sa.select(sa.func.count()).where(link.c.entity_pk == e.c.pk).correlate(e)
    counted = sa.update(e).values(mention_count=mentions.scalar_subquery())
    if not some:
        return counted
    mentioned = sa.select(link.c.entity_pk).where(among(link.c.memory_pk, "memories"))
    return counted.where(among(e.c.pk, "entities") | e.c.pk.in_(mentioned))


def recount(transaction: Transaction, entities: Sequence[int], memories: Sequence[int]) -> None:
    """Recount the mentions of these entities and of those that these memories name."""
    _recount(some=True).write(transaction, entities=entities, memories=memories)


def recount_all(transaction: Transaction) -> None:
    """Recount the mentions of every entity."""
    _recount(some=False).write(transaction)


def _is_unnamed(e: sa.FromClause) -> Column:
    """Return whether no memory names an entity and no decision concerns it."""
    o, a = tables.entities.alias("o"), tables.aliases.alias("a")
    means_others = sa.exists().where(o.c.merged_into == e.c.entity_id).correlate(e)
    has_names = sa.exists().where(a.c.entity_pk == e.c.pk, a.c.alias_key != e.c.name_key)
    return sa.and_(
        e.c.mention_count == 0,
        e.c.protected == sa.false(),
        e.c.summary.is_(None),
        e.c.merged_into.is_(None),
        ~means_others,
        ~has_names.correlate(e),
    )


@prepared
def _remove_own_names() -> sa.Delete:
    e, a = tables.entities.alias("e"), tables.aliases
    return sa.delete(a).where(
        sa.exists().where(e.c.pk == a.c.entity_pk, _is_unnamed(e)).correlate(a)
    )


@prepared
def _remove_unnamed() -> sa.Delete:
    return sa.delete(tables.entities).where(_is_unnamed(tables.entities))


def remove_unnamed(transaction: Transaction) -> int:
    """Remove entities without mentions and decisions; return how many."""
    # Another spelling of the own name is no more than that name.
    _remove_own_names().write(transaction)
    return _remove_unnamed().write(transaction)


# The postings (see ``postings``), in tables that migrations make by hand.
POSTINGS_SCHEMA: Final = sa.MetaData()

segments: Final = sa.Table(
    "text_segments",
    POSTINGS_SCHEMA,
    sa.Column("segment", sa.Integer, primary_key=True),
    sa.Column("stamp", sa.Integer, nullable=False),
    sa.Column("first_pk", sa.Integer, nullable=False),
    sa.Column("documents", sa.Integer, nullable=False),
    sa.Column("tokens", sa.Integer, nullable=False),
    sa.Column("lengths", sa.LargeBinary, nullable=False),
    sa.Column("marks", sa.LargeBinary, nullable=False),
)
postings: Final = sa.Table(
    "text_postings",
    POSTINGS_SCHEMA,
    sa.Column("segment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("term", sa.Text, primary_key=True),
    sa.Column("postings", sa.LargeBinary, nullable=False),
)
changes: Final = sa.Table(
    "text_changes",
    POSTINGS_SCHEMA,
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("pk", sa.Integer, nullable=False, unique=True),
)
