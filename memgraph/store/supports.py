"""Queries for the sources of memories: their own ones, and the further ones that state them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.clock import MAX_MS
from memgraph.model.conversation import PERSONS, SpeakerRole, voice_of
from memgraph.model.enums import MemoryKind, SourceName
from memgraph.model.graph import MemorySupport
from memgraph.model.sources import NamedSource, source_names
from memgraph.rules.evidence import Origin
from memgraph.store import tables
from memgraph.store.rows import SOURCE_FIELDS, source_from_row
from memgraph.store.snapshot import JournalledTransaction, Snapshot
from memgraph.store.statements import Column, among, bound, listed, member, ordered, prepared, value

# Rows of ``memory_supports``: further sources of a memory.

_AT: Final = value("at")
_ORIGIN: Final = ("conversation_id", "source_path", "content_sha256", "workflow_run_id")


def _columns(s: sa.FromClause, names: Sequence[str]) -> list[Column]:
    return [s.c[name] for name in names]


def further(
    snapshot: Snapshot, memory_ids: Collection[str], *, until: int = MAX_MS
) -> tuple[MemorySupport, ...]:
    """Return the further sources of memories, by memory, the oldest first."""
    f = listed(memory_ids, "f")
    p, s = tables.supports.alias("p"), tables.sources.alias("s")
    its = (p.c.memory_id == f.c.value) & (p.c.added_at <= _AT)
    its &= p.c.ended_at.is_(None) | (p.c.ended_at > _AT)
    joined = ordered(f, (p, its), (s, s.c.source_id == p.c.source_id))
    query = sa.select(p.c.memory_id, p.c.added_at, *_columns(s, SOURCE_FIELDS)).select_from(joined)
    rows = snapshot.rows(query.order_by(p.c.memory_id, p.c.added_at, p.c.source_id), at=until)
    return tuple(
        MemorySupport(memory_id=memory_id, added_at=at, source=source_from_row(row))
        for memory_id, at, *row in rows
    )


class _TurnFacts(NamedTuple):
    """A turn from which a memory was derived; ``words`` is the hash of its content."""

    speaker: str
    words: str
    person: bool


def origins(
    snapshot: Snapshot, memory_id: str, *, until: int = MAX_MS
) -> tuple[list[Origin], list[Origin]]:
    """Return the own origins of a memory, and the further ones in order.

    Each has the speakers of the turns from which the memory was derived there: only persons if
    there are any, or else all speakers.

    Args:
        until: a time in milliseconds; later records are ignored.
    """
    turns_by_conversation = _turns_by_conversation(snapshot, memory_id, until)
    own_origins = []
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    query = sa.select(*_columns(s, _ORIGIN), m.c.session_id)
    query = query.select_from(m.join(s, s.c.source_id == m.c.source_id))
    p = tables.supports.alias("p")
    its = (p.c.memory_id == m.c.memory_id, p.c.source_id == m.c.source_id, p.c.ended_at <= _AT)
    ended = sa.exists().where(*its).correlate(m)
    selected = query.where(m.c.memory_id == bound(memory_id), ~ended)
    for *row, session_id in snapshot.rows(selected, at=until):
        own_origins = [
            _origin(row, turns_by_conversation),
            _origin((session_id, None, None, None), turns_by_conversation),
        ]
    further_origins = [
        _origin([getattr(support.source, name) for name in _ORIGIN], turns_by_conversation)
        for support in further(snapshot, [memory_id], until=until)
    ]
    # If the own source was ended, the first further one takes its place.
    return (
        (own_origins, further_origins)
        if own_origins
        else (further_origins[:1], further_origins[1:])
    )


def _turns_by_conversation(
    snapshot: Snapshot, memory_id: str, until: int
) -> dict[str, list[_TurnFacts]]:
    """Return the turns from which a memory was derived, by conversation."""
    result: dict[str, list[_TurnFacts]] = {}
    d, m = tables.derivations.alias("d"), tables.memories.alias("m")
    declared = member(m.c.attributes, "told_as")
    query = sa.select(m.c.session_id, m.c.source_role, declared, m.c.content_hash)
    query = query.select_from(d.join(m, m.c.memory_id == d.c.derived_from_id)).where(
        d.c.memory_id == bound(memory_id),
        sa.func.coalesce(d.c.added_at, 0) <= bound(until),
        m.c.kind == MemoryKind.EPISODE,
    )
    for session_id, role, told_as, words in snapshot.rows(query):
        voice = voice_of(role, told_as)
        name = (role or "").casefold()
        # "user" and "human" may be the same person.
        speaker = "user" if name in PERSONS else name
        turn = _TurnFacts(speaker, words, voice is SpeakerRole.PERSON)
        result.setdefault(session_id, []).append(turn)
    return result


def _origin(
    row: Sequence[str | None], turns_by_conversation: dict[str, list[_TurnFacts]]
) -> Origin:
    conversation, path, content, run = row
    turns = turns_by_conversation.get(conversation or "", [])
    turns = [turn for turn in turns if turn.person] or turns
    return Origin(
        source_names(path=path, conversation=conversation, run=run, content=content),
        speakers=frozenset(turn.speaker for turn in turns),
        words=frozenset(turn.words for turn in turns),
    )


@prepared
def _add() -> sa.Insert:
    """Insert a source, or let an ended one count again.

    The memory's own source has a row only if it was ended.
    """
    m, p = tables.memories.alias("m"), tables.supports.alias("p")
    own = sa.exists().where(p.c.memory_id == m.c.memory_id, p.c.source_id == m.c.source_id)
    chosen = sa.select(m.c.memory_id, value("source"), _AT).where(
        m.c.memory_id == value("memory"), (m.c.source_id != value("source")) | own.correlate(m)
    )
    new = insert(tables.supports).from_select(["memory_id", "source_id", "added_at"], chosen)
    return new.on_conflict_do_update(
        index_elements=["memory_id", "source_id"],
        set_={"added_at": new.excluded.added_at, "ended_at": None},
        where=tables.supports.c.ended_at.is_not(None),
    )


def add(transaction: JournalledTransaction, memory_id: str, source_id: str) -> bool:
    """Add a further source and return True if it is new. The own source is not added."""
    return _add().write(transaction, memory=memory_id, source=source_id, at=transaction.at) > 0


def gained(
    snapshot: Snapshot, memory_id: str, source_ids: Collection[str]
) -> list[tuple[float, float]]:
    """Return (confidence before, after) for each time that one of these sources raised it."""
    a, p = tables.audit_log.alias("a"), tables.supports.alias("p")
    its = (p.c.memory_id == a.c.subject) & (p.c.source_id == member(a.c.details, "source_id"))
    query = sa.select(
        member(a.c.details, "confidence.before", sa.Float()),
        member(a.c.details, "confidence.after", sa.Float()),
    )
    query = query.select_from(a.join(p, its)).where(
        a.c.subject == bound(memory_id),
        a.c.action == "strengthen",
        a.c.at >= p.c.added_at,
        among(p.c.source_id, source_ids),
    )
    rows = snapshot.rows(query.order_by(a.c.seq))
    return [(before, after) for before, after in rows if before is not None and after is not None]


def end(transaction: JournalledTransaction, memory_id: str, source_ids: Collection[str]) -> None:
    """End further sources of a memory."""
    p = tables.supports
    its = (p.c.memory_id == bound(memory_id), among(p.c.source_id, source_ids))
    statement = sa.update(p).where(*its, p.c.ended_at.is_(None)).values(ended_at=_AT)
    transaction.write(statement, at=transaction.at)


def end_own(transaction: JournalledTransaction, memory_id: str) -> bool:
    """End the own source of a memory that has others; return False if it was already ended."""
    # Insert the own source as already ended, because it is never a further source.
    m, p = tables.memories, tables.supports
    chosen = sa.select(m.c.memory_id, m.c.source_id, _AT.label("added"), _AT.label("ended"))
    new = insert(p).from_select(
        ["memory_id", "source_id", "added_at", "ended_at"],
        chosen.where(m.c.memory_id == bound(memory_id)),
    )
    statement = new.on_conflict_do_update(
        index_elements=["memory_id", "source_id"],
        set_={"ended_at": new.excluded.ended_at},
        where=p.c.ended_at.is_(None),
    )
    return transaction.write(statement, at=transaction.at) > 0


@prepared
def _names_by_source() -> sa.Select[Any]:
    f, s = listed("ids", "f"), tables.sources.alias("s")
    names = (s.c.source_path, s.c.conversation_id, s.c.workflow_run_id, s.c.content_sha256)
    joined = ordered(f, (s, s.c.source_id == f.c.value))
    return sa.select(s.c.source_id, *names).select_from(joined)


def names_by_source(
    snapshot: Snapshot, source_ids: Collection[str]
) -> dict[str, frozenset[NamedSource]]:
    """Return the names of sources by id."""
    return {
        source_id: source_names(path=path, conversation=conversation, run=run, content=content)
        for source_id, path, conversation, run, content in _names_by_source().rows(
            snapshot, ids=source_ids
        )
    }


def paths(snapshot: Snapshot, memory_id: str) -> set[str | None]:
    """Return the files that a memory comes from, as of ``folders``; None for other sources."""
    s, m = tables.sources.alias("s"), tables.memories.alias("m")
    p, d = tables.supports.alias("p"), tables.derivations.alias("d")
    path, its = s.c.source_path, bound(memory_id)
    own = sa.select(path).select_from(m.join(s, s.c.source_id == m.c.source_id))
    further = sa.select(path).select_from(p.join(s, s.c.source_id == p.c.source_id))
    evidence = d.join(m, m.c.memory_id == d.c.derived_from_id)
    basis = sa.select(path).select_from(evidence.join(s, s.c.source_id == m.c.source_id))
    query = sa.union(
        own.where(m.c.memory_id == its),
        further.where(p.c.memory_id == its, p.c.ended_at.is_(None)),
        basis.where(d.c.memory_id == its),
    )
    return set(snapshot.column(query))


def folders(snapshot: Snapshot, memory_id: str) -> frozenset[str | None]:
    """Return the folders of the files that a memory comes from; None stands for other sources.

    These are the files of its own source, of its further sources and of its evidence.
    """
    files = paths(snapshot, memory_id)
    return frozenset(None if path is None else str(PurePosixPath(path).parent) for path in files)


@prepared
def _next_conversation() -> sa.Select[Any]:
    name = tables.sources.c.conversation_id
    return sa.select(sa.func.min(name)).where(name.is_not(None), name > value("after"))


@prepared
def _some_sessions() -> sa.Select[Any]:
    return sa.select(tables.sessions.c.session_id).limit(value("limit"))


def has_other_conversations(snapshot: Snapshot, names: Collection[NamedSource]) -> bool:
    """Return True if there is a conversation other than the named ones.

    Sessions are compared instead if no source has a conversation id: a conversation can consist of
    many sessions.
    """
    conversations = sorted(
        {source.name for source in names if source.kind is SourceName.CONVERSATION}
    )
    count, name = 0, ""
    # One index lookup per conversation, however many turns it has.
    while (conversation_id := _next_conversation().scalar(snapshot, after=name)) is not None:
        if conversation_id not in conversations:
            return True
        count, name = count + 1, str(conversation_id)
    if count:
        return False
    sessions = _some_sessions().column(snapshot, limit=len(conversations) + 1)
    return any(session not in conversations for session in sessions)
