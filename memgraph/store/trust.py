"""Trust and support of memories: ``memgraph.rules.trust`` over SQL.

Every function works on a snapshot or transaction that the caller holds.
"""

from __future__ import annotations

import json
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

# Rows of ``memory_supports``: further sources that say what a memory says.

_AT: Final = value("at")
_ORIGIN: Final = ("conversation_id", "source_path", "content_sha256", "workflow_run_id")
_CAPTURED: Final = (
    *("source_type", "captured_by", "source_path", "conversation_id", "workflow_run_id"),
    "content_sha256",
)


def _was_gone(row: sa.FromClause, since: Column) -> Column:
    """Return whether a source that counts for a memory did not at a time, ``at``.

    Of a source that counts again the journal alone tells that it did not for a while.

    Args:
        row: that has the ids of the memory and of the source.
        since: when it began to count.
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


def _own_gone(m: sa.FromClause) -> Column:
    """Return whether a memory's own source does not count ``at`` a time; None: now."""
    p = tables.supports.alias("p")
    ended = sa.exists().where(
        p.c.memory_id == m.c.memory_id,
        p.c.source_id == m.c.source_id,
        p.c.ended_at <= sa.func.coalesce(_AT, MAX_MS),
    )
    return ended.correlate(m) | _was_gone(m, m.c.created_at)


def _held(p: sa.FromClause) -> Column:
    """Return whether a further source said so ``at`` a time; NULL where that is None."""
    counts = (p.c.added_at <= _AT) & (p.c.ended_at.is_(None) | (p.c.ended_at > _AT))
    return counts & ~_was_gone(p, p.c.added_at)


def _of(s: sa.FromClause, names: Sequence[str]) -> list[Column]:
    return [s.c[name] for name in names]


@prepared
def _own() -> sa.Select[Any]:
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    found = sa.select(*_of(s, _ORIGIN), m.c.session_id)
    found = found.select_from(m.join(s, s.c.source_id == m.c.source_id))
    return found.where(m.c.memory_id == value("memory_id"), ~_own_gone(m))


@prepared
def _further(names: tuple[str, ...]) -> sa.Select[Any]:
    p, s = tables.supports.alias("p"), tables.sources.alias("s")
    found = sa.select(p.c.added_at, *_of(s, names))
    found = found.select_from(p.join(s, s.c.source_id == p.c.source_id))
    found = found.where(p.c.memory_id == value("memory_id"), _held(p))
    return found.order_by(p.c.added_at, p.c.source_id)


@prepared
def _turns() -> sa.Select[Any]:
    d, m = tables.derivations.alias("d"), tables.memories.alias("m")
    said_at = sa.func.coalesce(m.c.event_time, m.c.created_at)
    told_as = member(m.c.attributes, "told_as")
    found = sa.select(m.c.session_id, m.c.source_role, told_as, said_at, m.c.content_hash)
    found = found.select_from(d.join(m, m.c.memory_id == d.c.derived_from_id))
    return found.where(
        d.c.memory_id == value("memory_id"),
        sa.func.coalesce(d.c.added_at, 0) <= _AT,
        m.c.kind == MemoryKind.EPISODE,
    )


class _Said(NamedTuple):
    """A turn that says what a memory says; ``words``: its content's hash."""

    speaker: str
    day: int
    words: str
    person: bool


def origins(
    snapshot: Snapshot, memory_id: str, *, until: int = MAX_MS
) -> tuple[list[Origin], list[Origin]]:
    """Return where a memory came from, and where else it was said, in the order of that.

    Each with who said it there: the persons among those whose turns the memory rests on, else all.

    Args:
        until: milliseconds; what was noted later counts for nothing.
    """
    said = _said(snapshot, memory_id, until)
    own = []
    for *row, session_id in _own().rows(snapshot, memory_id=memory_id, at=until):
        own = [_origin(row, said), _origin((session_id, None, None, None), said)]
    rows = _further(_ORIGIN).rows(snapshot, memory_id=memory_id, at=until)
    further = [_origin(row, said) for _, *row in rows]
    # Its own source was taken back: the first of those that are left stands for it.
    return (own, further) if own else (further[:1], further[1:])


def _said(snapshot: Snapshot, memory_id: str, until: int) -> dict[str, list[_Said]]:
    """Return the turns that a memory rests on, by conversation."""
    found: dict[str, list[_Said]] = {}
    rows = _turns().rows(snapshot, memory_id=memory_id, at=until)
    for session_id, role, told_as, at, words in rows:
        voice = voice_of(role, told_as)
        name = (role or "").casefold()
        # "user" and "human" name nobody: they may be one.
        speaker = "user" if name in PERSONS else name
        turn = _Said(speaker, at // MS_PER_DAY, words, voice is SpeakerRole.PERSON)
        found.setdefault(session_id, []).append(turn)
    return found


def _origin(row: Sequence[str | None], said: dict[str, list[_Said]]) -> Origin:
    conversation_id, source_path, content_sha256, workflow_run_id = row
    turns = said.get(conversation_id or "", [])
    turns = [each for each in turns if each.person] or turns
    return Origin(
        conversation_id,
        source_path,
        content_sha256,
        workflow_run_id,
        speakers=frozenset(each.speaker for each in turns),
        days=frozenset(each.day for each in turns),
        words=frozenset(each.words for each in turns),
    )


def further(
    snapshot: Snapshot, memory_id: str, *, until: int = MAX_MS
) -> list[tuple[int, StoredSource]]:
    """Return when each further source of a memory was noted, and what it is, in that order."""
    rows = _further(SOURCE_FIELDS).rows(snapshot, memory_id=memory_id, at=until)
    return [(at, source_from_row(row)) for at, *row in rows]


@prepared
def _further_of() -> sa.Select[Any]:
    f = listed("ids", "f")
    p, s = tables.supports.alias("p"), tables.sources.alias("s")
    counts = (p.c.memory_id == f.c.value) & p.c.ended_at.is_(None)
    joined = ordered(f, (p, counts), (s, s.c.source_id == p.c.source_id))
    found = sa.select(p.c.memory_id, p.c.added_at, *_of(s, SOURCE_FIELDS)).select_from(joined)
    return found.order_by(p.c.memory_id, p.c.added_at, p.c.source_id)


def further_of(
    snapshot: Snapshot, memory_ids: Collection[str]
) -> list[tuple[str, int, StoredSource]]:
    """Return the further sources of several memories, with the id of each, by ids."""
    rows = _further_of().rows(snapshot, ids=json.dumps(list(memory_ids)))
    return [(one, at, source_from_row(row)) for one, at, *row in rows]


@prepared
def _add() -> sa.Insert:
    """Add a source, again if it was taken back. The own source has a row only then."""
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
    """Note a further source; return whether it is new. The memory's own one is none."""
    return _add().write(transaction, memory=memory_id, source=source_id, at=transaction.at) > 0


@prepared
def _gained() -> sa.Select[Any]:
    a, p = tables.audit_log.alias("a"), tables.supports.alias("p")
    its = (p.c.memory_id == a.c.subject) & (p.c.source_id == member(a.c.details, "source_id"))
    found = sa.select(
        member(a.c.details, "confidence.before", sa.Float()),
        member(a.c.details, "confidence.after", sa.Float()),
    )
    found = found.select_from(a.join(p, its)).where(
        a.c.subject == value("memory_id"),
        a.c.action == "strengthen",
        a.c.at >= p.c.added_at,
        among(p.c.source_id, "source_ids"),
    )
    return found.order_by(a.c.seq)


def gained(
    snapshot: Snapshot, memory_id: str, source_ids: Collection[str]
) -> list[tuple[float, float]]:
    """Return the confidence before and after, each time that one of these sources gave some."""
    rows = _gained().rows(snapshot, memory_id=memory_id, source_ids=json.dumps(list(source_ids)))
    return [(before, after) for before, after in rows if before is not None and after is not None]


def _of_memory(p: sa.Table) -> tuple[Column, Column]:
    """Return the condition on the rows of some sources of a memory."""
    return p.c.memory_id == value("memory"), among(p.c.source_id, "sources")


@prepared
def _end() -> sa.Update:
    p = tables.supports
    return sa.update(p).where(*_of_memory(p), p.c.ended_at.is_(None)).values(ended_at=_AT)


def end(transaction: JournalledTransaction, memory_id: str, source_ids: Collection[str]) -> None:
    """Take back further sources of a memory: from now on they count for nothing."""
    _end().write(
        transaction, memory=memory_id, sources=json.dumps(list(source_ids)), at=transaction.at
    )


@prepared
def _end_own() -> sa.Insert:
    """It counts from no time on: as a further source it is never told."""
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
    """Take back a memory's own source, it stands on others; return whether that is new."""
    return _end_own().write(transaction, memory=memory_id, at=transaction.at) > 0


@prepared
def _return_own() -> sa.Delete:
    """Of the own source there was a row only because it was ended."""
    p, m = tables.supports, tables.memories.alias("m")
    own = sa.select(m.c.source_id).where(m.c.memory_id == value("memory")).scalar_subquery()
    return sa.delete(p).where(*_of_memory(p), p.c.source_id == own)


@prepared
def _return() -> sa.Update:
    p = tables.supports
    return sa.update(p).where(*_of_memory(p)).values(ended_at=None)


def give_back(transaction: Transaction, memory_id: str, source_ids: Collection[str]) -> None:
    """Let sources that were taken back count again, the own one as well as further ones."""
    sources = json.dumps(list(source_ids))
    for statement in (_return_own(), _return()):
        statement.write(transaction, memory=memory_id, sources=sources)


MAX_LOOKED_AT: Final = 20_000
"""Grounds, and grounds of grounds, that are looked at; the rest counts as the lowest."""

_UNREAD: Final = ""


class TrustRow(NamedTuple):
    """A row of ``source_trust``; ``set_at`` in milliseconds."""

    named: NamedSource
    trusted: AssignedTrust
    set_at: int
    actor: str
    reason: str


def with_told(snapshot: Snapshot, defaults: TrustRules) -> TrustRules:
    """Return the defaults of the settings with all that operators said."""
    words = {each.named: each.trusted for each in told(snapshot)}
    if not words:
        return defaults
    return TrustRules(defaults.captured_by, defaults.source_type, defaults.max_memories, words)


_TOLD: Final = ("kind", "name", "tier", "max_memories", "set_at", "actor", "reason")


@prepared
def _told() -> sa.Select[Any]:
    t = tables.source_trust
    return sa.select(*_of(t, _TOLD)).order_by(t.c.kind, t.c.name)


def told(snapshot: Snapshot) -> list[TrustRow]:
    """Return what operators said, by kind and name."""
    return [
        TrustRow(
            NamedSource(SourceName(kind), name),
            AssignedTrust(TrustTier(tier), most),
            set_at,
            actor,
            reason,
        )
        for kind, name, tier, most, set_at, actor, reason in _told().rows(snapshot)
    ]


@prepared
def _tell() -> sa.Insert:
    new = insert(tables.source_trust).values({name: value(name) for name in _TOLD})
    return new.on_conflict_do_update(
        index_elements=_TOLD[:2], set_={name: new.excluded[name] for name in _TOLD[2:]}
    )


def tell(transaction: Transaction, row: TrustRow) -> None:
    """Note what an operator says of a source; it takes the place of what was said before."""
    named, trusted = row.named, row.trusted
    said = (row.set_at, row.actor, row.reason)
    values = (named.kind.value, named.name, trusted.tier.value, trusted.max_memories, *said)
    _tell().write(transaction, dict(zip(_TOLD, values, strict=True)))


@prepared
def _untell() -> sa.Delete:
    t = tables.source_trust
    return sa.delete(t).where(t.c.kind == value("kind"), t.c.name == value("name"))


def untell(transaction: Transaction, named: NamedSource) -> bool:
    """Take back what was said of a source; return whether something was."""
    return _untell().write(transaction, kind=named.kind.value, name=named.name) > 0


def tiers(
    snapshot: Snapshot, trust: TrustRules, memory_ids: Collection[str]
) -> dict[str, TrustTier]:
    """Return with which tier each of some memories may replace others: see ``floors``."""
    wanted = list(dict.fromkeys(memory_ids))
    if trust.uniform:
        return dict.fromkeys(wanted, next(iter(trust.captured_by.values())))
    return floors(wanted, standings(snapshot, wanted), trust)


def protections(
    snapshot: Snapshot, trust: TrustRules, memory_ids: Collection[str]
) -> dict[str, TrustTier]:
    """Return the tier against which each of some memories is protected: see ``ceiling``."""
    found = _read(snapshot, list(dict.fromkeys(memory_ids)), 0)
    return {one: ceiling(each, trust) for one, each in found.items()}


def protections_then(
    snapshot: Snapshot, defaults: TrustRules, memory_ids: Collection[str], at: int
) -> dict[str, tuple[TrustTier, bool]]:
    """Return the tier that protected each of some memories at a time, and whether it is known.

    It is where all that an operator says of the sources that it had then was said by then, for a
    word takes the place of an earlier one. Elsewhere it is the tier in which these are now.

    Args:
        defaults: the settings' tiers, of which nobody knows what they were.
        at: milliseconds.
    """
    now = with_told(snapshot, defaults)
    since = {each.named: each.set_at for each in told(snapshot)}
    found = _read(snapshot, list(dict.fromkeys(memory_ids)), 0, at)
    return {
        one: (
            ceiling(each, now),
            all(
                (words := now.words(source)) and all(since[named] <= at for named, _ in words)
                for source in each.saying
            ),
        )
        for one, each in found.items()
    }


def may_replace(snapshot: Snapshot, trust: TrustRules, new_id: str, old_id: str) -> bool:
    """Return whether one memory is trusted far enough to replace another."""
    if trust.uniform:
        return True
    newer = tiers(snapshot, trust, [new_id])[new_id]
    return newer.level >= protections(snapshot, trust, [old_id])[old_id].level


def replaceable(
    snapshot: Snapshot, trust: TrustRules, source: CaptureFacts, memory_ids: Collection[str]
) -> set[str]:
    """Return those of some memories that a new one of this source, without grounds, may replace."""
    if trust.uniform:
        return set(memory_ids)
    newer = trust.tier(source)
    found = protections(snapshot, trust, memory_ids)
    return {one for one, tier in found.items() if newer.level >= tier.level}


@prepared
def _sources_by_id() -> sa.Select[Any]:
    f, s = listed("ids", "f"), tables.sources.alias("s")
    joined = ordered(f, (s, s.c.source_id == f.c.value))
    return sa.select(s.c.source_id, *captured_columns(s), sa.null()).select_from(joined)


def sources_by_id(snapshot: Snapshot, source_ids: Collection[str]) -> dict[str, CaptureFacts]:
    """Return sources by their ids, each without the session of a memory."""
    rows = _sources_by_id().rows(snapshot, ids=json.dumps(list(source_ids)))
    return {source_id: captured_from_row(row) for source_id, *row in rows}


@prepared
def _next_conversation() -> sa.Select[Any]:
    name = tables.sources.c.conversation_id
    return sa.select(sa.func.min(name)).where(name.is_not(None), name > value("after"))


@prepared
def _some_sessions() -> sa.Select[Any]:
    return sa.select(tables.sessions.c.session_id).limit(value("limit"))


def has_other_talks(snapshot: Snapshot, names: Collection[NamedSource]) -> bool:
    """Return whether there is a conversation, or a session, beside those of some names.

    Sessions count where none of the names is a conversation: a talk has many of them.
    """
    told = sorted({each.name for each in names if each.kind is SourceName.CONVERSATION})
    known, name = 0, ""
    # One look into the index for each conversation, however many turns it has.
    while (found := _next_conversation().scalar(snapshot, after=name)) is not None:
        if found not in told:
            return True
        known, name = known + 1, str(found)
    if known:
        return False
    sessions = _some_sessions().column(snapshot, limit=len(told) + 1)
    return any(session not in told for session in sessions)


def standings(snapshot: Snapshot, memory_ids: Iterable[str]) -> dict[str, TrustFacts]:
    """Return what memories stand on, and their grounds, ``MAX_LOOKED_AT`` of them at most."""
    found: dict[str, TrustFacts] = {}
    layer = list(memory_ids)
    while layer and len(found) < MAX_LOOKED_AT:
        fresh = _read(snapshot, layer, MAX_LOOKED_AT)
        found |= fresh
        grounds = dict.fromkeys(ground for each in fresh.values() for ground in each.grounds)
        layer = [one for one in grounds if one not in found][: MAX_LOOKED_AT - len(found)]
    return found


@prepared
def _sources() -> sa.Select[Any]:
    f = listed("ids", "f")
    m, s = tables.memories.alias("m"), tables.sources.alias("s")
    joined = ordered(f, (m, m.c.memory_id == f.c.value)).join(s, s.c.source_id == m.c.source_id)
    row = (*captured_columns(s), m.c.session_id)
    return sa.select(m.c.memory_id, _own_gone(m), *row).select_from(joined)


@prepared
def _supports() -> sa.Select[Any]:
    f = listed("ids", "f")
    p, s = tables.supports.alias("p"), tables.sources.alias("s")
    counts = sa.func.coalesce(_held(p), p.c.ended_at.is_(None))
    joined = ordered(f, (p, (p.c.memory_id == f.c.value) & counts))
    found = sa.select(p.c.memory_id, *captured_columns(s), sa.null())
    found = found.select_from(joined.join(s, s.c.source_id == p.c.source_id))
    return found.order_by(p.c.memory_id, p.c.added_at, p.c.source_id)


@prepared
def _grounds() -> sa.Select[Any]:
    f, d = listed("ids", "f"), tables.derivations.alias("d")
    derived = (d.c.memory_id == f.c.value) & d.c.added_at.is_(None)
    pair = (d.c.memory_id, d.c.derived_from_id)
    return (
        sa.select(*pair).select_from(ordered(f, (d, derived))).order_by(*pair).limit(value("most"))
    )


def _read(
    snapshot: Snapshot, memory_ids: Collection[str], most_grounds: int, at: int | None = None
) -> dict[str, TrustFacts]:
    """Return what memories stand on.

    Args:
        at: milliseconds; with the further sources of then, None: of now.
    """
    ids = json.dumps(list(memory_ids))
    own: dict[str, CaptureFacts] = {}
    own_gone: set[str] = set()
    for memory_id, gone, *row in _sources().rows(snapshot, ids=ids, at=at):
        own[memory_id] = captured_from_row(row)
        if gone:
            own_gone.add(memory_id)
    supports: dict[str, list[CaptureFacts]] = {}
    for memory_id, *row in _supports().rows(snapshot, ids=ids, at=at):
        supports.setdefault(memory_id, []).append(captured_from_row(row))
    grounds: dict[str, list[str]] = {}
    if most_grounds:
        found = _grounds().rows(snapshot, ids=ids, most=most_grounds + 1)
        for memory_id, ground in found[:most_grounds]:
            grounds.setdefault(memory_id, []).append(ground)
        if len(found) > most_grounds:
            # Whose grounds these are that stay unread is not known: none of them is trusted.
            grounds = {one: [*grounds.get(one, ()), _UNREAD] for one in own}
    return {
        one: TrustFacts(
            each, tuple(supports.get(one, ())), tuple(grounds.get(one, ())), one in own_gone
        )
        for one, each in own.items()
    }


def captured_columns(s: sa.FromClause) -> list[Column]:
    """Return the columns of a source that ``captured_from_row`` takes."""
    return _of(s, _CAPTURED)


def captured_from_row(row: Sequence[Any]) -> CaptureFacts:
    """Return what tells of a source how far it is trusted.

    Args:
        row: ``captured_columns``, and the session of the memory.
    """
    source_type, captured_by, *names = row
    return CaptureFacts(SourceType(source_type), CapturedBy(captured_by), *names)
