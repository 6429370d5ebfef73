"""Find stored texts with all words of a statement that were known or returned before it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.ids import SHORT_CHARS
from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.store import tables
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    among,
    as_read,
    greatest,
    least,
    ordered,
    prepared,
    value,
)
from memgraph.store.text_index import matching
from memgraph.store.visibility import View, is_unexpired

# Limits on the newest texts with the same words that are examined.
_MOST_MATCHES = 1_000
_MOST_TEXTS = 20
_LINE = ("line_hash", "first_at", "last_at")


def _recalled(m: sa.FromClause) -> Column:
    """Return the SQL condition that a memory was recalled in [since, at)."""
    i, r = tables.recall_items.alias("i"), tables.recalls.alias("r")
    # Receipt ids sort by time, so this takes the last recall before the statement. Bulletins are
    # excluded here, because their lines are recorded separately.
    last = (
        sa.select(r.c.created_at)
        .select_from(i.join(r, r.c.recall_id == i.c.recall_id))
        .where(i.c.memory_id == m.c.memory_id, r.c.created_at < value("at"))
        .where(r.c.purpose.is_distinct_from("bulletin"))
        .order_by(i.c.recall_id.desc())
        .limit(1)
        .correlate(m)
    )
    return sa.func.coalesce(last.scalar_subquery() >= value("since"), sa.false())


def _was_active(view: View, m: sa.FromClause) -> Column:
    """Return the SQL condition for visible memories, not turns, that were active in [since, at)."""
    h = tables.statuses.alias("h")
    was_active = (
        sa.exists()
        .where(h.c.memory_id == m.c.memory_id, h.c.status == MemoryStatus.ACTIVE)
        .where(h.c.since < value("at"), h.c.until.is_(None) | (h.c.until > value("since")))
        .correlate(m)
    )
    # A turn without an agent is not compared with the private memories of an agent.
    shared = sa.true() if view.viewer.agent_id is not None else m.c.agent_id.is_(None)
    return sa.and_(m.c.kind != MemoryKind.EPISODE, view.where(m), shared, was_active)


def _matching_memories() -> tuple[sa.FromClause, sa.FromClause]:
    """Return the alias of memories, and a join of it with the newest matching texts."""
    matches = matching("match")
    (pk,) = matches.selected_columns
    newest = matches.with_only_columns(pk.label("pk")).order_by(pk.desc()).limit(_MOST_MATCHES)
    f, m = newest.subquery("f"), tables.memories.alias("m")
    return m, ordered(f, (m, m.c.pk == f.c.pk))


def _match(snapshot: Snapshot, terms: Sequence[str]) -> str:
    # Terms consist of letters and digits only, so quoting them is safe.
    words = " AND ".join(f'"{term}"' for term in terms)
    return snapshot.engine.phrases.expression(f"{{content search_terms}} : ({words})")


class EarlierText(NamedTuple):
    """The text of a memory.

    Attributes:
        recalled: it was recalled in the period.
        stood: it is not a turn, is visible, and was active in the period.
    """

    content: str
    recalled: bool
    stood: bool


@prepared
def _earlier_texts(view: View) -> sa.Select[Any]:
    m, joined = _matching_memories()
    texts = sa.select(
        m.c.content, _recalled(m).label("recalled"), _was_active(view, m).label("stood")
    ).select_from(joined)
    texts = texts.add_columns(m.c.pk)
    earlier = texts.where(m.c.created_at < value("at")).subquery("known")
    query = sa.select(earlier.c.content, earlier.c.recalled, earlier.c.stood)
    query = query.where(earlier.c.recalled | earlier.c.stood).order_by(as_read(earlier.c.pk).desc())
    return query.limit(_MOST_TEXTS)


def earlier_texts(
    snapshot: Snapshot, terms: Sequence[str], *, at: int, since: int, view: View
) -> list[EarlierText]:
    """Return texts with all of the words that were recalled or active in [since, at), newest first.

    Args:
        terms: folded words, at least one; the index stems them.
        at, since: the period, in milliseconds.
        view: limits the active memories; recalled ones were seen by someone, so all count.
    """
    rows = _earlier_texts(view.shape).rows(
        snapshot, view.params, match=_match(snapshot, terms), at=at, since=since
    )
    return [EarlierText(content, bool(recalled), bool(stood)) for content, recalled, stood in rows]


class StandingText(NamedTuple):
    """An active memory; ``recalled``: 1 if it was recalled since the given time, else 0."""

    memory_id: str
    content: str
    kind: str
    session_id: str | None
    scope: str
    scope_id: str | None
    agent_id: str | None
    sensitivity: str
    recalled: int


@prepared
def _standing_texts(view: View) -> sa.Select[Any]:
    m, joined = _matching_memories()
    texts = sa.select(*(m.c[name] for name in StandingText._fields[:-1]), _recalled(m))
    # In force means neither superseded nor retracted, and not expired.
    in_force = (
        m.c.created_at < value("at"),
        m.c.status == MemoryStatus.ACTIVE,
        is_unexpired(m),
    )
    query = texts.select_from(joined).where(*in_force, view.where(m))
    return query.order_by(as_read(m.c.pk).desc()).limit(_MOST_TEXTS)


def standing_texts(
    snapshot: Snapshot, terms: Sequence[str], *, at: int, since: int, view: View
) -> list[StandingText]:
    """Return memories that were active at ``at``, stored before it, and contain all of the words.

    Args:
        terms: folded words, at least one; the index stems them.
        since: the time since which recalls count, in milliseconds.
    """
    return _standing_texts(view.shape).mapped(
        StandingText._make, snapshot, view.params, match=_match(snapshot, terms), at=at, since=since
    )


@prepared
def _speakers() -> sa.Select[Any]:
    d, m = tables.derivations.alias("d"), tables.memories.alias("m")
    roles = sa.select(m.c.source_role).distinct()
    roles = roles.select_from(d.join(m, m.c.memory_id == d.c.derived_from_id))
    return roles.where(d.c.memory_id == value("memory_id"), m.c.kind == MemoryKind.EPISODE)


def speakers(snapshot: Snapshot, memory_id: str) -> list[str | None]:
    """Return the speakers of the turns that a memory was derived from.

    The list is empty if it does not come from a conversation.
    """
    return _speakers().column(snapshot, memory_id=memory_id)


@prepared
def _contents(short: bool) -> sa.Select[Any]:
    m = tables.memories
    id_column = sa.func.substr(m.c.memory_id, -SHORT_CHARS) if short else m.c.memory_id
    return sa.select(id_column, m.c.content).where(among(id_column, "ids"), m.c.content != "")


def contents(snapshot: Snapshot, memory_ids: Collection[str]) -> dict[str, str]:
    """Return the texts of memories by id, without erased ones."""
    return dict(_contents(short=False).rows(snapshot, ids=memory_ids))


def contents_by_short_id(snapshot: Snapshot, short_ids: Collection[str]) -> dict[str, str]:
    """Return the texts of memories by short id, without erased ones."""
    if not short_ids:
        return {}
    return dict(_contents(short=True).rows(snapshot, ids=short_ids))


# Returned lines, by the hash of their normal form, with the times.


@prepared
def _record() -> sa.Insert:
    line = tables.echo_lines
    new = insert(line).values({name: value(name) for name in _LINE})
    merged = {
        "first_at": least(line.c.first_at, new.excluded.first_at),
        "last_at": greatest(line.c.last_at, new.excluded.last_at),
    }
    return new.on_conflict_do_update(index_elements=["line_hash"], set_=merged)


def record(transaction: Transaction, lines: Sequence[tuple[int, int, int]]) -> None:
    """Record when lines were returned.

    Args:
        lines: (hash, first time, last time) of each line, times in milliseconds.
    """
    _record().write_all(transaction, (dict(zip(_LINE, line, strict=True)) for line in lines))


@prepared
def _find() -> sa.Select[Any]:
    line = tables.echo_lines.c
    return sa.select(*(line[name] for name in _LINE)).where(among(line.line_hash, "hashes"))


def find(snapshot: Snapshot, hashes: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return the first and last time each line was returned, without unknown lines."""
    rows = _find().rows(snapshot, hashes=hashes)
    return {line_hash: (first, last) for line_hash, first, last in rows}


@prepared
def _forget() -> sa.Delete:
    line = tables.echo_lines
    return sa.delete(line).where(line.c.last_at < value("before"))


def forget(transaction: Transaction, before: int) -> int:
    """Remove lines that were last returned before a time; return how many were removed."""
    return _forget().write(transaction, before=before)


# The backlog of returned texts, whose lines are hashed outside of requests.


# The oldest texts are removed if nothing processes the backlog. That loses little: an agent that
# repeats an active memory is detected without them, and a person's words count only for a day.
MAX_TEXTS = 4_096


class HandedOutMemory(NamedTuple):
    """A memory that recalls returned, with the first and the last time in milliseconds."""

    pk: int
    content: str
    summary: str | None
    first_at: int
    last_at: int


class EchoBacklog(NamedTuple):
    """The oldest entries of the backlog.

    Attributes:
        number: the number of entries.
        through: the id of the last entry.
        recalled: the memories of recalls.
        texts: other texts, each with its time in milliseconds.
    """

    number: int
    through: int
    recalled: tuple[HandedOutMemory, ...]
    texts: tuple[tuple[str, int], ...]


@prepared
def _add(column: str) -> sa.Insert:
    row = {"at": value("at"), column: value("said")}
    return sa.insert(tables.echo_pending).values(row)


@prepared
def _drop() -> sa.Delete:
    p, newer = tables.echo_pending, tables.echo_pending.alias("kept")
    last = sa.select(newer.c.pending_id).where(newer.c.text.is_not(None))
    last = last.order_by(newer.c.pending_id.desc()).limit(1).offset(value("most"))
    return sa.delete(p).where(p.c.text.is_not(None), p.c.pending_id <= last.scalar_subquery())


def add(
    transaction: Transaction,
    recalls: Sequence[tuple[int, str]],
    texts: Sequence[tuple[int, str]],
) -> None:
    """Add recalls by id and other texts, each with its time; remove texts over ``MAX_TEXTS``."""
    for column, rows in (("recall_id", recalls), ("text", texts)):
        _add(column).write_all(transaction, ({"at": at, "said": entry} for at, entry in rows))
    if texts:
        _drop().write(transaction, most=MAX_TEXTS)


@prepared
def _through() -> sa.Select[Any]:
    ids = sa.select(tables.echo_pending.c.pending_id).order_by(tables.echo_pending.c.pending_id)
    first = ids.limit(value("limit")).subquery()
    numbers: tuple[Column, ...] = (sa.func.max(first.c.pending_id), sa.func.count())
    return sa.select(*numbers).select_from(first)


@prepared
def _recalled_through() -> sa.Select[Any]:
    p, i, m = tables.echo_pending, tables.recall_items, tables.memories
    handed_out = p.join(i, i.c.recall_id == p.c.recall_id)
    return (
        sa.select(m.c.pk, m.c.content, m.c.summary, sa.func.min(p.c.at), sa.func.max(p.c.at))
        .select_from(handed_out.join(m, m.c.memory_id == i.c.memory_id))
        .where(p.c.pending_id <= value("through"))
        .group_by(m.c.pk)
    )


@prepared
def _texts_through() -> sa.Select[Any]:
    p = tables.echo_pending.c
    waiting = (p.text.is_not(None), p.pending_id <= value("through"))
    return sa.select(p.text, p.at).where(*waiting)


def oldest(snapshot: Snapshot, limit: int) -> EchoBacklog | None:
    """Return the oldest ``limit`` entries, with each memory once; None if the backlog is empty."""
    through, number = _through().row(snapshot, limit=limit)
    if through is None:
        return None
    return EchoBacklog(
        number,
        through,
        tuple(map(HandedOutMemory._make, _recalled_through().rows(snapshot, through=through))),
        tuple(_texts_through().rows(snapshot, through=through)),
    )


@prepared
def _remove() -> sa.Delete:
    p = tables.echo_pending
    return sa.delete(p).where(p.c.pending_id <= value("through"))


def remove(transaction: Transaction, through: int) -> int:
    """Remove entries up to ``through``, as returned by ``oldest``; return how many were removed."""
    return _remove().write(transaction, through=through)
