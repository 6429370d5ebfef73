"""Queries for sessions, and for the turns and facts that consolidation reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.model.conversation import SessionInfo, SessionPlace
from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.rules.conversations import SessionState
from memgraph.store import tables
from memgraph.store.snapshot import JournalledTransaction, Snapshot, Transaction
from memgraph.store.statements import Column, among, bound, greatest, member, prepared, value
from memgraph.store.visibility import (
    View,
    happened_at,
    is_undated,
    is_unexpired,
    params_of,
    shape_of,
)


@dataclass(frozen=True, slots=True)
class RegisteredSession:
    """The number of a session's next turn, and its state."""

    next_sequence: int
    completed_at: int | None
    consolidated_at: int | None

    @property
    def state(self) -> SessionState:
        if self.consolidated_at is not None:
            return SessionState.CONSOLIDATED
        return SessionState.OPEN if self.completed_at is None else SessionState.COMPLETED


@prepared
def _registered() -> sa.Select[Any]:
    s = tables.sessions
    places = sa.select(s.c.session_id, s.c.next_sequence, s.c.completed_at, s.c.consolidated_at)
    return places.where(among(s.c.session_id, "ids"))


def registered(snapshot: Snapshot, session_ids: Collection[str]) -> dict[str, RegisteredSession]:
    """Return the registered sessions, by id."""
    if not session_ids:
        return {}
    rows = _registered().rows(snapshot, ids=session_ids)
    return {session_id: RegisteredSession(*rest) for session_id, *rest in rows}


@prepared
def _open_ids(view: View | None) -> sa.Select[Any]:
    s = tables.sessions.alias("s")
    # The planner needs to see the condition of the partial index.
    is_open = (s.c.completed_at.is_(None), s.c.consolidated_at.is_(None))
    ids = sa.select(s.c.session_id).where(*is_open).order_by(s.c.first_seen_at, s.c.session_id)
    return ids if view is None else ids.where(_has_turn(view, s.c.session_id).correlate(s))


def open_ids(snapshot: Snapshot, view: View | None = None) -> list[str]:
    """Return the sessions that are neither completed nor consolidated, in the order they began.

    Args:
        view: only sessions with a visible turn; None: all.
    """
    return _open_ids(shape_of(view)).column(snapshot, params_of(view))


@prepared
def _note_turns() -> sa.Insert:
    s = tables.sessions
    row = {name: value(name) for name in ("session_id", "next_sequence", "completed_at")}
    new = insert(s).values(row | {"first_seen_at": value("at"), "last_seen_at": value("at")})
    return new.on_conflict_do_update(
        index_elements=["session_id"],
        set_={
            "last_seen_at": greatest(s.c.last_seen_at, new.excluded.last_seen_at),
            "next_sequence": greatest(s.c.next_sequence, new.excluded.next_sequence),
            "completed_at": new.excluded.completed_at,
            "consolidated_at": None,
        },
    )


def note_turns(
    transaction: JournalledTransaction,
    following: Mapping[str, int],
    ends: Mapping[str, int | None],
) -> None:
    """Record that turns were stored; this reopens consolidated sessions.

    Args:
        following: the number of the next turn of each session.
        ends: when each session was completed, in milliseconds; None: it is open.
    """
    rows = [
        {"session_id": name, "next_sequence": number, "completed_at": ends[name]}
        for name, number in following.items()
    ]
    _note_turns().write_all(transaction, [row | {"at": transaction.at} for row in rows])


@prepared
def _complete() -> sa.Update:
    s = tables.sessions
    return sa.update(s).where(s.c.session_id == value("session")).values(completed_at=value("at"))


def complete(transaction: JournalledTransaction, session_ids: Collection[str]) -> None:
    """Mark sessions as completed."""
    if session_ids:
        _complete().write_all(
            transaction,
            [{"session": session_id, "at": transaction.at} for session_id in sorted(session_ids)],
        )


def visible(snapshot: Snapshot, view: View, session_id: str) -> RegisteredSession | None:
    """Return a session, or None if it does not exist or has no visible turn."""
    if not snapshot.scalar(sa.select(_has_turn(view, bound(session_id))), view.params):
        return None
    return registered(snapshot, [session_id]).get(session_id)


def select(
    snapshot: Snapshot, view: View, *, pending: bool | None, before: SessionPlace | None, limit: int
) -> list[SessionInfo]:
    """Return the sessions with a visible turn, most recently active first.

    Times and states are derived from the visible turns only.

    Args:
        pending: True: only sessions that wait for consolidation; False: only others.
        before: the place of the last session of the previous page.
    """
    last = {} if before is None else {"at": before.last_seen_at, "id": before.session_id}
    is_next = before is not None
    m, s, through = tables.memories.alias("m"), tables.sessions.alias("s"), tables.memories
    said = sa.case((~is_undated(m), happened_at(m)))
    v = (
        sa.select(
            m.c.session_id,
            sa.func.min(m.c.created_at).label("first_at"),
            sa.func.max(m.c.created_at).label("last_at"),
            sa.func.min(said).label("first_said_at"),
            sa.func.max(said).label("last_said_at"),
            sa.func.max(m.c.pk).label("last_pk"),
        )
        .where(m.c.session_id.is_not(None), m.c.kind == MemoryKind.EPISODE, view.where(m))
        .group_by(m.c.session_id)
        .cte("visible")
        .prefix_with("MATERIALIZED")
    )
    is_turn = _is_turn_of(m, s.c.session_id)
    turns = sa.select(sa.func.count()).select_from(m).where(*is_turn, view.where(m)).correlate(s)
    turns = turns.where(m.c.status == MemoryStatus.ACTIVE)
    read = sa.select(through.c.pk).where(through.c.memory_id == s.c.consolidated_through)
    read_pk = sa.func.coalesce(read.correlate(s).scalar_subquery(), 0)
    waiting = turns.where(m.c.pk > read_pk).scalar_subquery()
    last_pk = sa.select(sa.func.max(m.c.pk)).where(*is_turn).correlate(s).scalar_subquery()
    completed: Column = sa.case((last_pk == v.c.last_pk, s.c.completed_at))
    consolidated: Column = s.c.consolidated_at
    if not view.viewer.sees_use:
        # Hidden turns and sessions can reopen or complete a session; do not reveal this.
        completed = sa.null()
        consolidated = sa.case(
            (s.c.consolidated_through.is_not(None) & (waiting == 0), v.c.last_at)
        )
    # In the order of the fields of ``SessionInfo``.
    infos = sa.select(s.c.session_id, v.c.last_at, v.c.first_at, turns.scalar_subquery(), waiting)
    infos = infos.add_columns(completed, consolidated, v.c.first_said_at, v.c.last_said_at)
    infos = infos.select_from(v.join(s, s.c.session_id == v.c.session_id))
    if pending is not None:
        infos = infos.where(consolidated.is_(None) if pending else consolidated.is_not(None))
    if is_next:
        place = sa.tuple_(v.c.last_at, s.c.session_id)
        infos = infos.where(place < sa.tuple_(value("at"), value("id")))
    rows = snapshot.rows(
        infos.order_by(v.c.last_at.desc(), s.c.session_id.desc()).limit(bound(limit)),
        view.params | last,
    )
    return [
        SessionInfo.model_construct(**dict(zip(SessionInfo.model_fields, row, strict=True)))
        for row in rows
    ]


def _is_turn_of(m: sa.FromClause, session_id: Column) -> tuple[Column, Column]:
    return m.c.session_id == session_id, m.c.kind == MemoryKind.EPISODE


def _has_turn(view: View, session_id: Column) -> sa.Exists:
    m = tables.memories.alias("m")
    return sa.exists().where(*_is_turn_of(m, session_id), view.where(m))


# Queries for consolidation: the progress of sessions, their turns, and comparable facts.


class Consolidation(NamedTuple):
    """The progress of consolidating a session. ``through_pk``: the key of the last turn, or 0."""

    session_id: str
    through: str | None
    through_pk: int
    consolidated_at: int | None


class TurnRow(NamedTuple):
    """A turn with the fields that its facts inherit.

    ``at``: when it was said, or else stored. ``dated``: the time it was said is known. For a turn
    of a file it must be in the file; other turns are said when they are stored.
    """

    pk: int
    memory_id: str
    content: str
    status: str
    source_role: str | None
    at: int
    sequence: int | None
    scope: str
    scope_id: str | None
    agent_id: str | None
    sensitivity: str
    source_path: str | None
    workflow_run_id: str | None
    step_id: str | None
    content_sha256: str | None
    stored_at: int
    told_as: str | None
    dated: int


class ComparisonPlace(NamedTuple):
    """The place in which memories are compared: one scope, one agent, up to a sensitivity."""

    scope: str
    scope_id: str | None
    agent_id: str | None
    sensitivity: str


def session_state(snapshot: Snapshot, session_id: str) -> Consolidation | None:
    """Return the progress of a session, or None if no turn of it was ever stored."""
    s, m = tables.sessions.alias("s"), tables.memories.alias("m")
    pk = sa.func.coalesce(m.c.pk, 0)
    query = (
        sa.select(s.c.session_id, s.c.consolidated_through, pk, s.c.consolidated_at)
        .select_from(s.outerjoin(m, m.c.memory_id == s.c.consolidated_through))
        .where(s.c.session_id == bound(session_id))
    )
    row = snapshot.row(query)
    return None if row is None else Consolidation._make(row)


def ended_sessions(snapshot: Snapshot, idle_since: int) -> list[str]:
    """Return the pending sessions that are completed, or idle since a time, oldest first."""
    s = tables.sessions
    is_over = s.c.completed_at.is_not(None) | (s.c.last_seen_at <= bound(idle_since))
    ended = sa.select(s.c.session_id).where(s.c.consolidated_at.is_(None), is_over)
    query = ended.order_by(s.c.last_seen_at, s.c.session_id).limit(100_000)
    return snapshot.column(query)


def consolidated_since(snapshot: Snapshot, since: int) -> int:
    """Count the sessions that were consolidated to their end since a time."""
    s = tables.sessions
    query = sa.select(sa.func.count()).where(s.c.consolidated_at >= bound(since)).select_from(s)
    return int(snapshot.scalar(query))


def completed(snapshot: Snapshot) -> dict[str, int]:
    """Return the completed sessions that wait for consolidation and their times, oldest first."""
    s = tables.sessions
    ended = (s.c.consolidated_at.is_(None), s.c.completed_at.is_not(None))
    query = (
        sa.select(s.c.session_id, s.c.completed_at)
        .where(*ended)
        .order_by(s.c.last_seen_at, s.c.session_id)
    )
    return dict(snapshot.rows(query))


def _turns() -> tuple[sa.Select[Any], sa.FromClause]:
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    stored_when_said = s.c.source_path.is_(None) & s.c.content_sha256.is_(None)
    columns = sa.select(
        *(m.c[name] for name in ("pk", "memory_id", "content", "status", "source_role")),
        happened_at(m),
        *(m.c[name] for name in ("sequence", "scope", "scope_id", "agent_id", "sensitivity")),
        *(s.c[name] for name in ("source_path", "workflow_run_id", "step_id", "content_sha256")),
        m.c.created_at,
        member(m.c.attributes, "told_as"),
        (m.c.event_time.is_not(None) | stored_when_said).label("dated"),
    )
    joined = columns.select_from(m.join(s, s.c.source_id == m.c.source_id))
    return joined.where(*_is_turn_of(m, value("session_id"))), m


def turns_after(snapshot: Snapshot, session_id: str, pk: int, limit: int) -> list[TurnRow]:
    """Return the next turns of a session in the order of storing, of any status."""
    turns, m = _turns()
    query = turns.where(m.c.pk > bound(pk)).order_by(m.c.pk).limit(bound(limit))
    return snapshot.mapped(TurnRow._make, query, session_id=session_id)


def turns_before(snapshot: Snapshot, session_id: str, pk: int, limit: int) -> list[TurnRow]:
    """Return the last active turns up to a key, oldest first."""
    turns, m = _turns()
    turns = turns.where(m.c.pk <= bound(pk), m.c.status == MemoryStatus.ACTIVE)
    query = turns.order_by(m.c.pk.desc()).limit(bound(limit))
    rows = snapshot.rows(query, session_id=session_id)
    return [TurnRow._make(row) for row in rows][::-1]


def has_turns_after(snapshot: Snapshot, session_id: str, pk: int) -> bool:
    """Return True if a turn of a session was stored after a key."""
    m = tables.memories
    later = sa.select(m.c.pk).where(*_is_turn_of(m, bound(session_id)), m.c.pk > bound(pk))
    return snapshot.row(later.limit(1)) is not None


def note_consolidated(
    transaction: Transaction,
    session_id: str,
    through: str | None,
    consolidated_at: int | None,
    *,
    by_model: bool,
) -> None:
    """Record the progress of a session.

    Args:
        consolidated_at: None if turns remain.
        by_model: False if only labelled sentences were read; see ``reopen_labelled``.
    """
    s = tables.sessions
    before = sa.func.coalesce(s.c.labelled_after, s.c.consolidated_through, "")
    read = {
        "consolidated_through": bound(through),
        "consolidated_at": bound(consolidated_at),
        "labelled_after": sa.null() if by_model else before,
    }
    transaction.write(sa.update(s).where(s.c.session_id == bound(session_id)).values(read))


def reopen_labelled(transaction: Transaction) -> None:
    """Set all sessions back to before the turns that were read without a language model."""
    s = tables.sessions
    unread = {
        "consolidated_through": sa.func.nullif(s.c.labelled_after, ""),
        "consolidated_at": None,
        "labelled_after": None,
    }
    transaction.write(sa.update(s).where(s.c.labelled_after.is_not(None)).values(unread))


def has_labelled(snapshot: Snapshot) -> bool:
    """Return True if turns of a session were read without a language model."""
    s = tables.sessions
    query = sa.select(s.c.session_id).where(s.c.labelled_after.is_not(None)).limit(1)
    return snapshot.row(query) is not None


def same_facts(
    snapshot: Snapshot, hashes: Collection[str], place: ComparisonPlace, *, at: int
) -> dict[str, str]:
    """Return, by content hash, the oldest fact of exactly this place and sensitivity.

    Facts of any type count if they are active and valid ``at`` that time.
    """
    m = tables.memories
    query = (
        sa.select(m.c.content_hash, m.c.memory_id)
        .where(
            among(m.c.content_hash, sorted(hashes)),
            # The condition of the index on hashes.
            m.c.kind != MemoryKind.EPISODE,
            m.c.kind == MemoryKind.FACT,
            m.c.status == MemoryStatus.ACTIVE,
            m.c.scope == value("scope"),
            m.c.scope_id.is_not_distinct_from(value("scope_id")),
            is_unexpired(m),
            m.c.agent_id.is_not_distinct_from(value("agent_id")),
            m.c.sensitivity == value("sensitivity"),
        )
        .order_by(m.c.pk.desc())
    )
    return dict(snapshot.rows(query, place._asdict(), at=at))


def derived_from(snapshot: Snapshot, memory_id: str) -> set[str]:
    """Return the ids of the memories from which a memory was derived."""
    d = tables.derivations
    query = sa.select(d.c.derived_from_id).where(d.c.memory_id == bound(memory_id))
    return set(snapshot.column(query))


def speakers(
    snapshot: Snapshot, ids: Collection[str]
) -> dict[str, list[tuple[str | None, str | None]]]:
    """Return the speakers of the turns each memory was derived from, as (role, declared role)."""
    result: dict[str, list[tuple[str | None, str | None]]] = {}
    d, m = tables.derivations.alias("d"), tables.memories.alias("m")
    query = (
        sa.select(d.c.memory_id, m.c.source_role, member(m.c.attributes, "told_as"))
        .distinct()
        .select_from(d.join(m, m.c.memory_id == d.c.derived_from_id))
        .where(among(d.c.memory_id, sorted(ids)), m.c.kind == MemoryKind.EPISODE)
    )
    for memory_id, role, told_as in snapshot.rows(query):
        result.setdefault(memory_id, []).append((role, told_as))
    return result
