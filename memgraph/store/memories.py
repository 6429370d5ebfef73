"""Store and read the rows of ``memories``, with sources, status history and derivations.

Every function works on the caller's snapshot or transaction.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from memgraph.errors import Conflict, NotFound
from memgraph.ids import SHORT_CHARS, SOURCE_PREFIX, short_id
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.values import Memory, MemoryInput, Source
from memgraph.store import embeddings, tables
from memgraph.store.rows import MEMORY_FIELDS, SOURCE_FIELDS, json_text, memory_from_row
from memgraph.store.snapshot import InsertRows, JournalledTransaction, Snapshot, Transaction
from memgraph.store.statements import (
    Column,
    among,
    bound,
    element,
    greatest,
    holds_all,
    listed,
    ordered,
    prepared,
    unindexed,
)
from memgraph.store.visibility import (
    ACTIVE,
    View,
    beginning,
    is_unexpired,
    memory_fields,
    params_of,
    shape_of,
    shown_by,
)

_SHORT_ID = re.compile(rf"#?([0-9A-HJKMNP-TV-Z]{{{SHORT_CHARS},25}})", re.IGNORECASE)
_COLUMNS = ("pk", *MEMORY_FIELDS, "search_terms")
_STATUS_COLUMNS = ("memory_id", "status", "since", "until", "actor", "reason")
insert = InsertRows("memories", _COLUMNS)
"""Store rows with every column of the table, ``pk`` included."""
_insert_source = InsertRows("memory_sources", SOURCE_FIELDS, or_ignore=True)
insert_statuses = InsertRows("memory_status", _STATUS_COLUMNS)
_insert_derivation = InsertRows(
    "memory_derivations", ("memory_id", "derived_from_id", "added_at"), or_ignore=True
)


class TurnIdentity(NamedTuple):
    """The fields that identify a turn: two turns with equal values are the same turn."""

    session_id: str
    turn_id: str
    content_hash: str
    source_role: str | None
    scope: str
    scope_id: str | None
    agent_id: str | None
    item_id: str | None


class MemoryIdentity(NamedTuple):
    """The fields by which memories other than turns are deduplicated; enums or their values.

    They include the speaker and the visibility: a repeated text must not disappear behind a hidden
    memory.
    """

    content_hash: str
    kind: str
    type: str
    scope: str
    scope_id: str | None
    sensitivity: str
    agent_id: str | None
    source_role: str | None
    item_id: str | None

    @classmethod
    def of(cls, content_hash: str, memory: MemoryInput | Memory) -> MemoryIdentity:
        """Return the identity of a memory whose text has this hash."""
        return cls(
            *(content_hash, memory.kind, memory.type, memory.scope, memory.scope_id),
            *(memory.sensitivity, memory.agent_id, memory.source_role, memory.item_id),
        )


@prepared
def _last_pk() -> sa.Select[Any]:
    return sa.select(sa.func.max(tables.memories.c.pk))


def last_pk(snapshot: Snapshot) -> int:
    """Return the key of the newest memory, or 0 without memories."""
    return int(_last_pk().scalar(snapshot) or 0)


@lru_cache(maxsize=1024)
def source_id(source: Source) -> str:
    """Return the id of a source, a digest of its fields: equal sources share one row."""
    fields = json_text(source.model_dump(mode="json"))
    return SOURCE_PREFIX + hashlib.sha256(fields.encode()).hexdigest()[:32]


def insert_sources(transaction: Transaction, sources: Mapping[str, Source]) -> None:
    """Store sources that are not stored yet, by ``source_id``."""
    _insert_source(
        transaction,
        [(key, *source.model_dump(mode="json").values()) for key, source in sources.items()],
    )


def insert_derivations(
    transaction: Transaction, pairs: Sequence[tuple[str, str]], *, added_at: int | None = None
) -> None:
    """Store (memory id, evidence id) pairs; existing pairs are left unchanged.

    Args:
        added_at: when the evidence was added, in milliseconds; None: together with the memory.
    """
    _insert_derivation(transaction, [(*pair, added_at) for pair in pairs])


@prepared
def _same_content(by_item_id: bool) -> sa.Select[Any]:
    m = tables.memories
    # With item ids, use their index: thousands of items may share a text, but few share an id.
    content_hash = unindexed(m.c.content_hash) if by_item_id else m.c.content_hash
    return (
        sa.select(*(m.c[name] for name in MemoryIdentity._fields), m.c.memory_id)
        .where(
            among(content_hash, "hashes"),
            among(m.c.item_id, "item_ids") if by_item_id else m.c.item_id.is_(None),
            m.c.status == MemoryStatus.ACTIVE,
            m.c.kind != MemoryKind.EPISODE,
            is_unexpired(m),
        )
        .order_by(m.c.pk)
    )


def same_content(
    snapshot: Snapshot,
    hashes: Sequence[str],
    view: View | None = None,
    *,
    item_ids: Sequence[str] | None = None,
    at: int,
) -> dict[MemoryIdentity, str]:
    """Return active memories, without turns, with one of the content hashes: the oldest of each.

    Args:
        view: limits the result to visible memories; None: all.
        item_ids: only memories with one of these item ids; None: only memories without an item id.
        at: the time in milliseconds; memories that have expired by then are left out.
    """
    if not hashes:
        return {}
    values = {"hashes": hashes, "item_ids": item_ids or ()}
    rows = _same_content(item_ids is not None).rows(snapshot, values, at=at)
    visible = existing_ids(snapshot, [row[-1] for row in rows], view)
    return {MemoryIdentity(*row[:-1]): row[-1] for row in reversed(rows) if row[-1] in visible}


@prepared
def _same_turns() -> sa.Select[Any]:
    f, m = listed("turns", "f"), tables.memories.alias("m")
    is_it = (m.c.session_id == element(f.c.value, 0)) & (m.c.turn_id == element(f.c.value, 1))
    return (
        sa.select(*(m.c[name] for name in TurnIdentity._fields), m.c.memory_id)
        .select_from(ordered(f, (m, is_it)))
        .where(m.c.turn_id.is_not(None), m.c.kind == MemoryKind.EPISODE)
        .where(m.c.status != MemoryStatus.RETRACTED)
    )


def same_turns(
    snapshot: Snapshot, turns: Collection[tuple[str, str]], view: View | None = None
) -> dict[TurnIdentity, str]:
    """Return the ids of turns stored with these (session id, turn id) pairs, by identity."""
    if not turns:
        return {}
    rows = _same_turns().rows(snapshot, turns=turns)
    visible = existing_ids(snapshot, [row[-1] for row in rows], view)
    return {TurnIdentity(*row[:-1]): row[-1] for row in rows if row[-1] in visible}


@prepared
def _existing(view: View | None, statuses: frozenset[MemoryStatus]) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    ids = sa.select(m.c.memory_id).where(among(m.c.memory_id, "ids"), shown_by(view, m))
    return ids.where(m.c.status.in_(sorted(statuses))) if statuses else ids


def existing_ids(
    snapshot: Snapshot,
    ids: Collection[str],
    view: View | None = None,
    *,
    statuses: frozenset[MemoryStatus] = frozenset(),
) -> set[str]:
    """Return the ids that are stored and visible.

    Args:
        view: the reader's view; None: all memories are visible.
        statuses: only memories with one of these statuses now; empty: any.
    """
    if not ids:
        return set()
    statement = _existing(shape_of(view), statuses)
    return set(statement.column(snapshot, params_of(view), ids=ids))


def active_ids(snapshot: Snapshot, ids: Collection[str]) -> set[str]:
    """Return the ids that are stored and active."""
    return existing_ids(snapshot, ids, statuses=ACTIVE)


def require(snapshot: Snapshot, ids: Sequence[str], view: View | None = None) -> None:
    """Raise NotFound if a memory does not exist or is not visible, without revealing which."""
    existing = existing_ids(snapshot, ids, view)
    for memory_id in ids:
        if memory_id not in existing:
            raise NotFound(f"no memory {memory_id[:80]!r}", memory_id=memory_id[:80])


def is_short(text: object) -> bool:
    """Return True if a text looks like a short id, by which prompts cite memories."""
    return isinstance(text, str) and _SHORT_ID.fullmatch(text) is not None


def _by_end(snapshot: Snapshot, ends: Collection[str], view: View) -> dict[str, list[str]]:
    """Return the visible memories by the last characters of their ids."""
    result: dict[str, list[str]] = {end: [] for end in ends}
    if ends:
        m = tables.memories.alias("m")
        its_end = sa.func.substr(m.c.memory_id, -SHORT_CHARS)
        query = sa.select(its_end, m.c.memory_id).where(among(its_end, sorted(result)))
        for end, memory_id in snapshot.rows(query.where(view.where(m)), view.params):
            result[end].append(memory_id)
    return result


def short_ids(snapshot: Snapshot, ids: Collection[str], view: View) -> dict[str, str]:
    """Return for each id the shortest form that no other visible memory has."""
    if not ids:
        # The ends of ids have no index: every memory would be read.
        return {}
    by_end = _by_end(snapshot, {memory_id[-SHORT_CHARS:] for memory_id in ids}, view)
    result = {}
    for memory_id in ids:
        others = [one for one in by_end[memory_id[-SHORT_CHARS:]] if one != memory_id]
        chars = SHORT_CHARS
        while any(other.endswith(memory_id[-chars:]) for other in others):
            chars += 1
        result[memory_id] = short_id(memory_id, chars)
    return result


def full_ids(snapshot: Snapshot, ids: Sequence[str], view: View) -> list[str]:
    """Replace short ids by full ids, in order; other texts are returned unchanged.

    A short id that no visible memory has is returned unchanged.

    Raises:
        Conflict: several visible memories have the short id; ``details["candidates"]``.
    """
    short = {
        memory_id: match[1].upper()
        for memory_id in ids
        if (match := _SHORT_ID.fullmatch(memory_id))
    }
    by_end = _by_end(snapshot, {end[-SHORT_CHARS:] for end in short.values()}, view)
    result = []
    for memory_id in ids:
        end = short.get(memory_id)
        found = [] if end is None else by_end[end[-SHORT_CHARS:]]
        found = [one for one in found if one.endswith(end or "")]
        if len(found) > 1:
            raise Conflict(
                f"{memory_id} is the short id of {len(found)} memories: give more of the id",
                candidates=sorted(found),
            )
        result.append(found[0] if found else memory_id)
    return result


def get(snapshot: Snapshot, memory_id: str, view: View | None = None) -> Memory:
    """Return a memory of any status. Raises NotFound, as ``require`` does."""
    require(snapshot, [memory_id], view)
    return get_many(snapshot, [memory_id])[0]


def of_hashes(snapshot: Snapshot, hashes: Collection[str], view: View) -> list[str]:
    """Return the active visible memories, without turns, whose text has one of these hashes."""
    m = tables.memories.alias("m")
    # The index by hash is without turns.
    is_equal = (among(m.c.content_hash, hashes), m.c.kind != MemoryKind.EPISODE)
    is_active = m.c.status == MemoryStatus.ACTIVE
    query = sa.select(m.c.memory_id).where(*is_equal, is_active, view.where(m))
    return snapshot.column(query, view.params)


def get_many(snapshot: Snapshot, ids: Sequence[str]) -> list[Memory]:
    """Return memories in the order of their keys; unknown ids are left out."""
    m = tables.memories
    query = memory_fields(m).where(among(m.c.memory_id, ids)).order_by(m.c.pk)
    return snapshot.mapped(memory_from_row, query)


def set_status(
    transaction: JournalledTransaction, memory_id: str, status: MemoryStatus, *, reason: str | None
) -> None:
    """Change the status of one memory; see ``set_statuses``."""
    set_statuses(transaction, [memory_id], status, reason=reason)


def update(transaction: Transaction, memory_id: str, **values: Any) -> None:
    """Set columns of a memory other than its content, which never changes.

    Every change except the enrichment stamp must set ``updated_at``: the former values are recorded
    as valid until that time, and as-of reads skip the history of memories not updated since.
    """
    if "attributes" in values:
        values["attributes"] = json_text(values["attributes"])
    if "updated_at" in values:
        then = sa.literal(values["updated_at"])
        values["updated_at"] = greatest(tables.memories.c.updated_at, then)
    transaction.execute(
        sa.update(tables.memories).where(tables.memories.c.memory_id == memory_id).values(**values)
    )


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """A filter of memories; an empty field leaves nothing out.

    Attributes:
        tags: a memory must have all of them.
        before: the id of the last memory on the previous page.
        statuses: statuses as shown; an erased memory is only ``erased``, at any time.
        since, until: when the memory was stored, both inclusive, in milliseconds.
    """

    memory_ids: tuple[str, ...] = ()
    types: tuple[MemoryType, ...] = ()
    kinds: tuple[MemoryKind, ...] = ()
    tags: tuple[str, ...] = ()
    session_id: str | None = None
    before: str | None = None
    statuses: frozenset[MemoryStatus] = frozenset()
    since: int | None = None
    until: int | None = None
    source_path: str | None = None

    def stored(self, as_of: int | None) -> frozenset[MemoryStatus] | None:
        """Return the statuses in the database that matching memories may have; None: any."""
        if MemoryStatus.ERASED not in self.statuses:
            return self.statuses or None
        if as_of is not None:
            return None
        return self.statuses - {MemoryStatus.ERASED} | {MemoryStatus.RETRACTED}


def _is_erased(m: sa.FromClause) -> Column:
    return (m.c.status == MemoryStatus.RETRACTED) & (m.c.content == "")


def _shown_as(statuses: frozenset[MemoryStatus], view: View, m: sa.FromClause) -> Column:
    """Return the SQL condition that a memory is shown with one of the statuses; empty: any."""
    others = sorted(status.value for status in statuses - {MemoryStatus.ERASED})
    if MemoryStatus.ERASED not in statuses:
        # As of an earlier time an erased memory may have had any status.
        leaves_out = view.as_of is not None or MemoryStatus.RETRACTED in statuses
        return sa.not_(_is_erased(m)) if statuses and leaves_out else sa.true()
    return _is_erased(m) | view.status(m).in_(others) if others else _is_erased(m)


def _terms(chosen: MemoryFilter, view: View, m: sa.FromClause) -> list[Column]:
    b, s = tables.memories.alias("b"), tables.sources.alias("s")
    # A hidden memory cannot mark a page, which would reveal it; one of another status can.
    before = sa.select(b.c.pk).where(b.c.memory_id == bound(chosen.before))
    before = before.where(View(view.viewer).where(b))
    of_source = sa.select(s.c.source_id).where(s.c.source_path == bound(chosen.source_path))
    terms = (
        (chosen.memory_ids, among(m.c.memory_id, chosen.memory_ids)),
        (chosen.types, among(m.c.type, chosen.types)),
        (chosen.kinds, among(m.c.kind, chosen.kinds)),
        (chosen.tags, holds_all(m.c.tags, chosen.tags)),
        (chosen.session_id, m.c.session_id == bound(chosen.session_id)),
        (chosen.before, m.c.pk < before.scalar_subquery()),
        (chosen.since, m.c.created_at >= bound(chosen.since)),
        (chosen.until, m.c.created_at <= bound(chosen.until)),
        (chosen.source_path, m.c.source_id.in_(of_source)),
    )
    return [term for wanted, term in terms if wanted not in (None, ())]


def select(snapshot: Snapshot, view: View, chosen: MemoryFilter, *, limit: int) -> list[Memory]:
    """Return visible memories that pass the filter, newest first."""
    m = tables.memories.alias("m")
    query = (
        sa.select(*view.memory_columns(m))
        .where(view.where(m), _shown_as(chosen.statuses, view, m), *_terms(chosen, view, m))
        .order_by(m.c.pk.desc())
        .limit(bound(limit))
    )
    return snapshot.mapped(memory_from_row, query, view.params)


def counts(snapshot: Snapshot, view: View | None = None) -> dict[str, dict[str, int]]:
    """Return the number of visible memories by kind, type and shown status.

    Args:
        view: the reader's view; None: count all memories.
    """
    m, values = tables.memories.alias("m"), params_of(view)
    result: dict[str, Counter[str]] = {"kind": Counter(), "type": Counter(), "status": Counter()}
    # An index covers type and status, so that only the query for kinds reads the table.
    for columns in ((m.c.kind,), (m.c.type, m.c.status)):
        query = sa.select(*columns, sa.func.count()).where(shown_by(view, m)).group_by(*columns)
        for *names, count in snapshot.rows(query, values):
            for column, name in zip(columns, names, strict=True):
                result[column.name][str(name)] += count
    erased_rows = sa.select(sa.func.count()).where(_is_erased(m), shown_by(view, m))
    erased = snapshot.scalar(erased_rows, values)
    moved = Counter({MemoryStatus.RETRACTED.value: -erased, MemoryStatus.ERASED.value: erased})
    result["status"].update(moved)
    result["status"] = +result["status"]
    return {column: dict(sorted(counter.items())) for column, counter in result.items()}


# Change the status of many memories in a few statements: column, history and vector index.


def set_statuses(
    transaction: JournalledTransaction,
    memory_ids: Sequence[str],
    status: MemoryStatus,
    *,
    reason: str | None,
) -> None:
    """Change the status of memories, with their history and the vector index.

    The memories must have another status. The old period ends when the new one begins. A retracted
    memory that becomes active again counts as accessed, so that its decay starts again.
    """
    m, all_periods, at = tables.memories, tables.statuses, bound(transaction.at)
    current = (all_periods.c.until.is_(None), among(all_periods.c.memory_id, memory_ids))
    ended = sa.update(all_periods).where(*current)
    transaction.write(ended.values(until=greatest(all_periods.c.since, at)))
    f, h = listed(memory_ids, "f"), all_periods.alias("h")
    last = sa.select(sa.func.max(h.c.until)).where(h.c.memory_id == f.c.value).correlate(f)
    # If the clock was set back, a period must still not begin before the previous one ended.
    since = greatest(at, sa.func.coalesce(last.scalar_subquery(), 0))
    by = (bound(transaction.actor), bound(reason))
    period = sa.select(f.c.value, bound(status.value), since, sa.null(), *by)
    transaction.write(sa.insert(all_periods).from_select(_STATUS_COLUMNS, period))
    changed = {"status": bound(status.value), "updated_at": greatest(m.c.updated_at, at)}
    if status is MemoryStatus.ACTIVE:
        began = sa.select(h.c.since).where(h.c.memory_id == m.c.memory_id, h.c.until.is_(None))
        used = sa.func.coalesce(m.c.last_accessed_at, 0)
        restored = greatest(used, began.correlate(m).scalar_subquery())
        is_retracted = m.c.status == MemoryStatus.RETRACTED
        changed["last_accessed_at"] = sa.case((is_retracted, restored), else_=m.c.last_accessed_at)
    transaction.write(sa.update(m).where(among(m.c.memory_id, memory_ids)).values(changed))
    embeddings.index(transaction).refresh(memory_ids)


def beginnings(snapshot: Snapshot, memory_ids: Collection[str], chars: int) -> dict[str, str]:
    """Return the first characters of memories' contents by id, sorted by id."""
    m = tables.memories
    query = sa.select(m.c.memory_id, beginning(m, bound(chars)))
    selected = query.where(among(m.c.memory_id, memory_ids)).order_by(m.c.memory_id)
    return dict(snapshot.rows(selected))
