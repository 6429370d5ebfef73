"""Queries for the trust in memories and for their further sources; see ``memgraph.rules.trust``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from memgraph.clock import MAX_MS, MS_PER_DAY
from memgraph.model.conversation import PERSONS, SpeakerRole, voice_of
from memgraph.model.enums import CapturedBy, MemoryKind, SourceName, SourceType, TrustTier
from memgraph.model.values import StoredSource
from memgraph.rules.evidence import Origin
from memgraph.rules.trust import (
    AssignedTrust,
    CaptureFacts,
    NamedSource,
    TrustFacts,
    TrustRules,
    ceiling,
    floors,
)
from memgraph.store import tables
from memgraph.store.rows import SOURCE_FIELDS, source_from_row
from memgraph.store.snapshot import JournalledTransaction, Snapshot, Transaction
from memgraph.store.statements import Column, among, each, listed, member, ordered, prepared, value
from memgraph.store.visibility import happened_at

# Rows of ``memory_supports``: further sources of a memory.

_AT: Final = value("at")
_ORIGIN: Final = ("conversation_id", "source_path", "content_sha256", "workflow_run_id")
_CAPTURED: Final = (
    *("source_type", "captured_by", "source_path", "conversation_id", "workflow_run_id"),
    "content_sha256",
)


def _was_ended(row: sa.FromClause, since: Column) -> Column:
    """Return the condition that a source which counts now did not count at the time ``at``.

    When a source counts again, only the journal still shows that it was ended for a while.

    Args:
        row: a table with the ids of the memory and the source.
        since: the time at which the source began to count.
    """
    w, r = tables.audit_log.alias("w"), tables.audit_log.alias("r")
    i, j = each(w.c.details, "i", "source_ids"), each(r.c.details, "j", "source_ids")
    regained = (
        sa.exists()
        .select_from(r.join(j, sa.true()))
        .where(r.c.subject == w.c.subject, r.c.seq > w.c.seq, r.c.action == "regain")
        .where(r.c.at <= _AT, j.c.value == i.c.value)
        .correlate(w, i)
    )
    weakened = (
        sa.exists()
        .select_from(w.join(i, sa.true()))
        .where(w.c.subject == row.c.memory_id, w.c.action == "weaken")
        .where(w.c.at <= _AT, w.c.at > since, i.c.value == row.c.source_id, ~regained)
        .correlate(row)
    )
    return (_AT < MAX_MS) & weakened


def _own_ended(m: sa.FromClause) -> Column:
    """Return the condition that a memory's own source does not count at ``at``; NULL: now."""
    p = tables.supports.alias("p")
    ended = sa.exists().where(
        p.c.memory_id == m.c.memory_id,
        p.c.source_id == m.c.source_id,
        p.c.ended_at <= sa.func.coalesce(_AT, MAX_MS),
    )
    return ended.correlate(m) | _was_ended(m, m.c.created_at)


def _counts_at(p: sa.FromClause) -> Column:
    """Return the condition that a further source counts at ``at``; NULL if ``at`` is NULL."""
    counts = (p.c.added_at <= _AT) & (p.c.ended_at.is_(None) | (p.c.ended_at > _AT))
    return counts & ~_was_ended(p, p.c.added_at)


def _columns(s: sa.FromClause, names: Sequence[str]) -> list[Column]:
    return [s.c[name] for name in names]


@prepared
def _own_origins() -> sa.Select[Any]:
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    query = sa.select(*_columns(s, _ORIGIN), m.c.session_id)
    query = query.select_from(m.join(s, s.c.source_id == m.c.source_id))
    return query.where(m.c.memory_id == value("memory_id"), ~_own_ended(m))


@prepared
def _further(names: tuple[str, ...]) -> sa.Select[Any]:
    p, s = tables.supports.alias("p"), tables.sources.alias("s")
    query = sa.select(p.c.added_at, *_columns(s, names))
    query = query.select_from(p.join(s, s.c.source_id == p.c.source_id))
    query = query.where(p.c.memory_id == value("memory_id"), _counts_at(p))
    return query.order_by(p.c.added_at, p.c.source_id)


@prepared
def _turns() -> sa.Select[Any]:
    d, m = tables.derivations.alias("d"), tables.memories.alias("m")
    told_as = member(m.c.attributes, "told_as")
    query = sa.select(m.c.session_id, m.c.source_role, told_as, happened_at(m), m.c.content_hash)
    query = query.select_from(d.join(m, m.c.memory_id == d.c.derived_from_id))
    return query.where(
        d.c.memory_id == value("memory_id"),
        sa.func.coalesce(d.c.added_at, 0) <= _AT,
        m.c.kind == MemoryKind.EPISODE,
    )


class _TurnFacts(NamedTuple):
    """A turn from which a memory was derived; ``words`` is the hash of its content."""

    speaker: str
    day: int
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
    for *row, session_id in _own_origins().rows(snapshot, memory_id=memory_id, at=until):
        own_origins = [
            _origin(row, turns_by_conversation),
            _origin((session_id, None, None, None), turns_by_conversation),
        ]
    rows = _further(_ORIGIN).rows(snapshot, memory_id=memory_id, at=until)
    further_origins = [_origin(row, turns_by_conversation) for _, *row in rows]
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
    rows = _turns().rows(snapshot, memory_id=memory_id, at=until)
    for session_id, role, told_as, at, words in rows:
        voice = voice_of(role, told_as)
        name = (role or "").casefold()
        # "user" and "human" may be the same person.
        speaker = "user" if name in PERSONS else name
        turn = _TurnFacts(speaker, at // MS_PER_DAY, words, voice is SpeakerRole.PERSON)
        result.setdefault(session_id, []).append(turn)
    return result


def _origin(
    row: Sequence[str | None], turns_by_conversation: dict[str, list[_TurnFacts]]
) -> Origin:
    conversation_id, source_path, content_sha256, workflow_run_id = row
    turns = turns_by_conversation.get(conversation_id or "", [])
    turns = [turn for turn in turns if turn.person] or turns
    return Origin(
        conversation_id,
        source_path,
        content_sha256,
        workflow_run_id,
        speakers=frozenset(turn.speaker for turn in turns),
        days=frozenset(turn.day for turn in turns),
        words=frozenset(turn.words for turn in turns),
    )


def further(
    snapshot: Snapshot, memory_id: str, *, until: int = MAX_MS
) -> list[tuple[int, StoredSource]]:
    """Return the further sources of a memory as (time added, source), in this order."""
    rows = _further(SOURCE_FIELDS).rows(snapshot, memory_id=memory_id, at=until)
    return [(at, source_from_row(row)) for at, *row in rows]


@prepared
def _further_of() -> sa.Select[Any]:
    f = listed("ids", "f")
    p, s = tables.supports.alias("p"), tables.sources.alias("s")
    counts = (p.c.memory_id == f.c.value) & p.c.ended_at.is_(None)
    joined = ordered(f, (p, counts), (s, s.c.source_id == p.c.source_id))
    query = sa.select(p.c.memory_id, p.c.added_at, *_columns(s, SOURCE_FIELDS)).select_from(joined)
    return query.order_by(p.c.memory_id, p.c.added_at, p.c.source_id)


def further_of(
    snapshot: Snapshot, memory_ids: Collection[str]
) -> list[tuple[str, int, StoredSource]]:
    """Return the further sources of several memories as (memory id, time added, source)."""
    rows = _further_of().rows(snapshot, ids=memory_ids)
    return [(memory_id, at, source_from_row(row)) for memory_id, at, *row in rows]


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


@prepared
def _gained() -> sa.Select[Any]:
    a, p = tables.audit_log.alias("a"), tables.supports.alias("p")
    its = (p.c.memory_id == a.c.subject) & (p.c.source_id == member(a.c.details, "source_id"))
    query = sa.select(
        member(a.c.details, "confidence.before", sa.Float()),
        member(a.c.details, "confidence.after", sa.Float()),
    )
    query = query.select_from(a.join(p, its)).where(
        a.c.subject == value("memory_id"),
        a.c.action == "strengthen",
        a.c.at >= p.c.added_at,
        among(p.c.source_id, "source_ids"),
    )
    return query.order_by(a.c.seq)


def gained(
    snapshot: Snapshot, memory_id: str, source_ids: Collection[str]
) -> list[tuple[float, float]]:
    """Return (confidence before, after) for each time that one of these sources raised it."""
    rows = _gained().rows(snapshot, memory_id=memory_id, source_ids=source_ids)
    return [(before, after) for before, after in rows if before is not None and after is not None]


def _of_memory(p: sa.Table) -> tuple[Column, Column]:
    """Return the conditions for the rows of some sources of a memory."""
    return p.c.memory_id == value("memory"), among(p.c.source_id, "sources")


@prepared
def _end() -> sa.Update:
    p = tables.supports
    return sa.update(p).where(*_of_memory(p), p.c.ended_at.is_(None)).values(ended_at=_AT)


def end(transaction: JournalledTransaction, memory_id: str, source_ids: Collection[str]) -> None:
    """End further sources of a memory."""
    _end().write(transaction, memory=memory_id, sources=source_ids, at=transaction.at)


@prepared
def _end_own() -> sa.Insert:
    """Insert the own source as already ended, because it is never a further source."""
    m, p = tables.memories, tables.supports
    chosen = sa.select(m.c.memory_id, m.c.source_id, _AT.label("added"), _AT.label("ended"))
    new = insert(p).from_select(
        ["memory_id", "source_id", "added_at", "ended_at"],
        chosen.where(m.c.memory_id == value("memory")),
    )
    return new.on_conflict_do_update(
        index_elements=["memory_id", "source_id"],
        set_={"ended_at": new.excluded.ended_at},
        where=p.c.ended_at.is_(None),
    )


def end_own(transaction: JournalledTransaction, memory_id: str) -> bool:
    """End the own source of a memory that has others; return False if it was already ended."""
    return _end_own().write(transaction, memory=memory_id, at=transaction.at) > 0


@prepared
def _reinstate_own() -> sa.Delete:
    """Delete the row of the own source, which exists only while the source is ended."""
    p, m = tables.supports, tables.memories.alias("m")
    own = sa.select(m.c.source_id).where(m.c.memory_id == value("memory")).scalar_subquery()
    return sa.delete(p).where(*_of_memory(p), p.c.source_id == own)


@prepared
def _reinstate() -> sa.Update:
    p = tables.supports
    return sa.update(p).where(*_of_memory(p)).values(ended_at=None)


def reinstate(transaction: Transaction, memory_id: str, source_ids: Collection[str]) -> None:
    """Let ended sources of a memory count again, including its own source."""
    for statement in (_reinstate_own(), _reinstate()):
        statement.write(transaction, memory=memory_id, sources=source_ids)


MAX_LOOKED_AT: Final = 20_000
"""The number of memories that are examined as direct or indirect evidence; further evidence counts
as the lowest tier."""

_UNREAD: Final = ""


class TrustRow(NamedTuple):
    """A row of ``source_trust``; ``set_at`` in milliseconds."""

    named: NamedSource
    trusted: AssignedTrust
    set_at: int
    actor: str
    reason: str


def with_assigned(snapshot: Snapshot, defaults: TrustRules) -> TrustRules:
    """Return the trust rules of the settings, with the assignments of operators added."""
    assignments = {row.named: row.trusted for row in assigned(snapshot)}
    if not assignments:
        return defaults
    return TrustRules(
        defaults.captured_by, defaults.source_type, defaults.max_memories, assignments
    )


_ASSIGNED: Final = ("kind", "name", "tier", "max_memories", "set_at", "actor", "reason")


@prepared
def _assigned() -> sa.Select[Any]:
    t = tables.source_trust
    return sa.select(*_columns(t, _ASSIGNED)).order_by(t.c.kind, t.c.name)


def assigned(snapshot: Snapshot) -> list[TrustRow]:
    """Return the assignments of operators, ordered by kind and name."""
    return [
        TrustRow(
            NamedSource(SourceName(kind), name),
            AssignedTrust(TrustTier(tier), max_memories),
            set_at,
            actor,
            reason,
        )
        for kind, name, tier, max_memories, set_at, actor, reason in _assigned().rows(snapshot)
    ]


@prepared
def _assign() -> sa.Insert:
    new = insert(tables.source_trust).values({name: value(name) for name in _ASSIGNED})
    return new.on_conflict_do_update(
        index_elements=_ASSIGNED[:2], set_={name: new.excluded[name] for name in _ASSIGNED[2:]}
    )


def assign(transaction: Transaction, row: TrustRow) -> None:
    """Store the trust that an operator assigns to a source, replacing an earlier one."""
    source, trusted = row.named, row.trusted
    record = (row.set_at, row.actor, row.reason)
    values = (source.kind.value, source.name, trusted.tier.value, trusted.max_memories, *record)
    _assign().write(transaction, dict(zip(_ASSIGNED, values, strict=True)))


@prepared
def _unassign() -> sa.Delete:
    t = tables.source_trust
    return sa.delete(t).where(t.c.kind == value("kind"), t.c.name == value("name"))


def unassign(transaction: Transaction, source: NamedSource) -> bool:
    """Remove the assignment of a source; return False if there was none."""
    return _unassign().write(transaction, kind=source.kind.value, name=source.name) > 0


def tiers(
    snapshot: Snapshot, trust: TrustRules, memory_ids: Collection[str]
) -> dict[str, TrustTier]:
    """Return the tier with which each memory may replace others; see ``floors``."""
    ids = list(dict.fromkeys(memory_ids))
    if trust.uniform:
        return dict.fromkeys(ids, next(iter(trust.captured_by.values())))
    return floors(ids, trust_facts(snapshot, ids), trust)


def protections(
    snapshot: Snapshot, trust: TrustRules, memory_ids: Collection[str]
) -> dict[str, TrustTier]:
    """Return the tier that is required to replace each memory; see ``ceiling``."""
    facts_by_id = _trust_facts(snapshot, list(dict.fromkeys(memory_ids)), 0)
    return {memory_id: ceiling(facts, trust) for memory_id, facts in facts_by_id.items()}


def protections_then(
    snapshot: Snapshot, defaults: TrustRules, memory_ids: Collection[str], at: int
) -> dict[str, tuple[TrustTier, bool]]:
    """Return the tier that protected each memory at a time, and whether this is certain.

    It is certain if operators had already assigned the trust of all sources that the memory had
    then. Later assignments replaced the earlier ones, so the current tier is returned instead.

    Args:
        defaults: the current settings; their earlier values are unknown.
        at: the time in milliseconds.
    """
    now = with_assigned(snapshot, defaults)
    since = {row.named: row.set_at for row in assigned(snapshot)}
    facts_by_id = _trust_facts(snapshot, list(dict.fromkeys(memory_ids)), 0, at)
    return {
        memory_id: (
            ceiling(fact, now),
            all(
                (words := now.words(source)) and all(since[name_of] <= at for name_of, _ in words)
                for source in fact.saying
            ),
        )
        for memory_id, fact in facts_by_id.items()
    }


def may_replace(snapshot: Snapshot, trust: TrustRules, new_id: str, old_id: str) -> bool:
    """Return True if a memory is trusted enough to replace another."""
    if trust.uniform:
        return True
    newer = tiers(snapshot, trust, [new_id])[new_id]
    return newer.level >= protections(snapshot, trust, [old_id])[old_id].level


def replaceable(
    snapshot: Snapshot, trust: TrustRules, source: CaptureFacts, memory_ids: Collection[str]
) -> set[str]:
    """Return the memories that a new memory from this source, without evidence, may replace."""
    if trust.uniform:
        return set(memory_ids)
    newer = trust.tier(source)
    tiers_by_id = protections(snapshot, trust, memory_ids)
    return {memory_id for memory_id, tier in tiers_by_id.items() if newer.level >= tier.level}


@prepared
def _sources_by_id() -> sa.Select[Any]:
    f, s = listed("ids", "f"), tables.sources.alias("s")
    joined = ordered(f, (s, s.c.source_id == f.c.value))
    return sa.select(s.c.source_id, *captured_columns(s), sa.null()).select_from(joined)


def sources_by_id(snapshot: Snapshot, source_ids: Collection[str]) -> dict[str, CaptureFacts]:
    """Return the facts of sources by id, without the session of a memory."""
    rows = _sources_by_id().rows(snapshot, ids=source_ids)
    return {source_id: captured_from_row(row) for source_id, *row in rows}


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


def trust_facts(snapshot: Snapshot, memory_ids: Iterable[str]) -> dict[str, TrustFacts]:
    """Return the trust facts of memories and all their evidence, at most ``MAX_LOOKED_AT``."""
    result: dict[str, TrustFacts] = {}
    layer = list(memory_ids)
    while layer and len(result) < MAX_LOOKED_AT:
        fresh = _trust_facts(snapshot, layer, MAX_LOOKED_AT)
        result |= fresh
        grounds = dict.fromkeys(ground for facts in fresh.values() for ground in facts.grounds)
        layer = [memory_id for memory_id in grounds if memory_id not in result][
            : MAX_LOOKED_AT - len(result)
        ]
    return result


@prepared
def _sources() -> sa.Select[Any]:
    f = listed("ids", "f")
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    joined = ordered(f, (m, m.c.memory_id == f.c.value)).join(s, s.c.source_id == m.c.source_id)
    row = (*captured_columns(s), m.c.session_id)
    return sa.select(m.c.memory_id, _own_ended(m), *row).select_from(joined)


@prepared
def _supports() -> sa.Select[Any]:
    f = listed("ids", "f")
    p, s = tables.supports.alias("p"), tables.sources.alias("s")
    counts = sa.func.coalesce(_counts_at(p), p.c.ended_at.is_(None))
    joined = ordered(f, (p, (p.c.memory_id == f.c.value) & counts))
    query = sa.select(p.c.memory_id, *captured_columns(s), sa.null())
    query = query.select_from(joined.join(s, s.c.source_id == p.c.source_id))
    return query.order_by(p.c.memory_id, p.c.added_at, p.c.source_id)


@prepared
def _grounds() -> sa.Select[Any]:
    f, d = listed("ids", "f"), tables.derivations.alias("d")
    derived = (d.c.memory_id == f.c.value) & d.c.added_at.is_(None)
    pair = (d.c.memory_id, d.c.derived_from_id)
    return (
        sa.select(*pair).select_from(ordered(f, (d, derived))).order_by(*pair).limit(value("most"))
    )


def _trust_facts(
    snapshot: Snapshot, memory_ids: Collection[str], most_grounds: int, at: int | None = None
) -> dict[str, TrustFacts]:
    """Return the trust facts of memories.

    Args:
        most_grounds: the maximum number of evidence links to read; 0: do not read evidence.
        at: use the sources as of this time, in milliseconds; None: as of now.
    """
    ids = list(memory_ids)
    own_sources: dict[str, CaptureFacts] = {}
    ended_ids: set[str] = set()
    for memory_id, has_ended, *row in _sources().rows(snapshot, ids=ids, at=at):
        own_sources[memory_id] = captured_from_row(row)
        if has_ended:
            ended_ids.add(memory_id)
    supports: dict[str, list[CaptureFacts]] = {}
    for memory_id, *row in _supports().rows(snapshot, ids=ids, at=at):
        supports.setdefault(memory_id, []).append(captured_from_row(row))
    grounds: dict[str, list[str]] = {}
    if most_grounds:
        pairs = _grounds().rows(snapshot, ids=ids, most=most_grounds + 1)
        for memory_id, ground in pairs[:most_grounds]:
            grounds.setdefault(memory_id, []).append(ground)
        if len(pairs) > most_grounds:
            # Unread evidence may belong to any of the memories, so mark all of them.
            grounds = {key: [*grounds.get(key, ()), _UNREAD] for key in own_sources}
    return {
        key: TrustFacts(
            source, tuple(supports.get(key, ())), tuple(grounds.get(key, ())), key in ended_ids
        )
        for key, source in own_sources.items()
    }


def captured_columns(s: sa.FromClause) -> list[Column]:
    """Return the columns of a source that ``captured_from_row`` needs."""
    return _columns(s, _CAPTURED)


def captured_from_row(row: Sequence[Any]) -> CaptureFacts:
    """Return the facts that decide the trust in a source.

    Args:
        row: the values of ``captured_columns``, followed by the memory's session id.
    """
    source_type, captured_by, *names = row
    return CaptureFacts(SourceType(source_type), CapturedBy(captured_by), *names)
