"""Promote items to a wider scope, and evict items."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from memgraph.context.assembly import ConfirmationCallback, confirmed
from memgraph.context.items import RECORD, RESERVED
from memgraph.errors import Conflict, InvalidInput
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, Scope
from memgraph.model.values import EdgeInput, Memory, MemoryInput, Source
from memgraph.operations.write import changes
from memgraph.operations.write.writer import PreparedMemory
from memgraph.rules.access import question_about
from memgraph.rules.lifecycle import EVICTED, excess
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import graph, items, memories
from memgraph.store.items import ItemPlace
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.store.visibility import View

MAX_PROJECT_ITEMS: Final = 1_000
"""If a project has more items, a tenth is retracted, the least important first."""
HIGH_RISK: Final = frozenset({MemoryType.PREFERENCE, MemoryType.IDENTITY})
"""Memory types whose promotion to global requires a person's consent."""

_NARROWER: Final = {Scope.PROJECT: Scope.SESSION, Scope.GLOBAL: Scope.PROJECT}
_COPIED_FIELDS: Final = (
    "content",
    "summary",
    "kind",
    "type",
    "importance",
    "confidence",
    "sensitivity",
    "agent_id",
    "session_id",
    "source_role",
    "event_time",
    "valid_until",
    "decay_rate",
    "tags",
)


class PromotionTarget(NamedTuple):
    """The scope to which a memory is promoted; ``scope_id`` is None for global."""

    scope: Scope
    scope_id: str | None


def target_of(to: Scope | str, scope_id: str | None) -> PromotionTarget:
    """Return the target of a promotion. Raises InvalidInput if it is not valid."""
    if to not in _NARROWER:
        raise InvalidInput("a memory can be promoted to 'project' or 'global'", field="to")
    scope = Scope(to)
    if (scope is Scope.GLOBAL) != (scope_id is None):
        raise InvalidInput("a project requires an id; global has none", field="scope_id")
    return PromotionTarget(scope, scope_id)


def promote(
    opened: OpenOrchestrator,
    memory_id: str,
    target: PromotionTarget,
    *,
    view: View,
    actor: str,
    reason: str,
    callback: ConfirmationCallback | None,
) -> str | None:
    """Promote a memory and return the new id, or None if the person declined."""
    with opened.database.read() as snapshot:
        memory = _promotable(snapshot, memory_id, target, view, opened.clock.now_ms())
        existing_id = _existing_copy(snapshot, memory_id, target)
        [source] = graph.sources_of(snapshot, [memory])
    if existing_id is not None:
        return existing_id
    # No transaction is open while a person decides.
    is_risk = target.scope is Scope.GLOBAL and memory.type in HIGH_RISK
    if is_risk and not confirmed(callback, question_about(memory)):
        return None
    source_fields = Source(**source.model_dump(exclude={"source_id"}))
    prepared = opened.writer.prepare(_promotion(memory, target, source_fields))
    with opened.transaction(actor) as transaction:
        # Check again: it may have been promoted or retracted in the meantime.
        _promotable(transaction, memory_id, target, view, transaction.at)
        existing_id = _existing_copy(transaction, memory_id, target)
        if existing_id is not None:
            return existing_id
        written = opened.writer.store_all(transaction, [prepared], [], view=view)
        if written.memories[0].outcome != "stored":
            raise Conflict("another item with the same text and name exists")
        new_id = written.memories[0].memory_id or ""
        details = {"from": memory_id, "to": target.scope.tier, "scope_id": target.scope_id}
        transaction.record([NewEntry("promote", new_id, details | {"reason": reason})])
        if target.scope is Scope.PROJECT:
            place = tier_place(view.viewer, Scope.PROJECT, target.scope_id, at=transaction.at)
            evict(transaction, place, MAX_PROJECT_ITEMS, new=items.item_id_of(memory_id))
    return new_id


def _promotable(
    snapshot: Snapshot, memory_id: str, target: PromotionTarget, view: View, at: int
) -> Memory:
    memory = memories.get(snapshot, memory_id, view)
    if memory.kind is not MemoryKind.FACT:
        raise InvalidInput(
            f"only facts can be promoted; this is a {memory.kind.value}",
            memory_id=memory_id,
        )
    if memory.scope is not _NARROWER[target.scope]:
        raise Conflict(
            "a memory is promoted from a task to its project, and from a project to global;"
            f" this one has the scope {memory.scope.value}",
            memory_id=memory_id,
        )
    if memory.status is not MemoryStatus.ACTIVE:
        changes.require_unreplaced(snapshot, memory_id, view=view)
        raise Conflict(
            f"only an active memory can be promoted; this one is {memory.status.value}",
            memory_id=memory_id,
        )
    if memory.valid_until is not None and memory.valid_until <= at:
        raise Conflict("the memory is no longer valid", memory_id=memory_id)
    return memory


def _existing_copy(snapshot: Snapshot, memory_id: str, target: PromotionTarget) -> str | None:
    """Return the id of the active memory to which this one was already promoted, or None.

    Raises:
        Conflict: that memory has been superseded, so the old text must not be promoted again.
    """
    pairs = items.promotions_of(snapshot, memory_id, target.scope, target.scope_id)
    copies = {status: copy_id for copy_id, status in reversed(pairs)}
    if MemoryStatus.ACTIVE not in copies and MemoryStatus.SUPERSEDED in copies:
        message = "it was promoted before, and that copy was superseded"
        raise Conflict(message, memory_id=copies[MemoryStatus.SUPERSEDED])
    return copies.get(MemoryStatus.ACTIVE)


def _promotion(memory: Memory, target: PromotionTarget, source: Source) -> MemoryInput:
    """Return the memory to store in the wider scope."""
    fields: dict[str, Any] = {name: getattr(memory, name) for name in _COPIED_FIELDS}
    if target.scope is Scope.GLOBAL:
        # Like other global items, it does not decay.
        fields["decay_rate"] = 0.0
    attributes = {
        name: value for name, value in memory.attributes.items() if name not in RESERVED - {RECORD}
    }
    record = attributes.get(RECORD)
    if isinstance(record, dict):
        # The source of the item changes with its scope; its other fields stay.
        attributes[RECORD] = {name: value for name, value in record.items() if name != "source"}
    return MemoryInput(
        **fields,
        scope=target.scope,
        scope_id=target.scope_id,
        item_id=items.item_id_of(memory.memory_id),
        attributes=attributes,
        source=source,
        derived_from=(memory.memory_id,),
    )


def tier_place(viewer: Viewer, scope: Scope, scope_id: str | None, *, at: int) -> ItemPlace:
    """Return the place of the items of a task, of a project or of the global tier."""
    view = View(viewer, statuses=frozenset({MemoryStatus.ACTIVE}))
    return ItemPlace(view, scope, scope_id, at)


def store_version(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    prepared: PreparedMemory,
    replaced: Sequence[Memory],
    view: View,
    reason: str,
) -> None:
    """Store an item, which supersedes some memories.

    Raises:
        MemgraphError: it cannot be stored.
    """
    old_ids = [memory.memory_id for memory in replaced]
    for memory_id in old_ids:
        # Before the new one: with the same text that would count as a repetition.
        memories.set_status(transaction, memory_id, MemoryStatus.SUPERSEDED, reason=reason)
    new = dataclasses.replace(prepared, given=prepared.given.model_copy(update={"key": "new"}))
    links = [
        EdgeInput(from_id="#new", to_id=memory_id, edge_type=EdgeType.UPDATES, reason=reason)
        for memory_id in old_ids
    ]
    written = opened.writer.store_all(transaction, [new], links, view=view)
    by = {"by": written.ids_by_key["new"]}
    transaction.record([NewEntry("supersede", memory_id, by) for memory_id in old_ids])


def evict(
    transaction: JournalledTransaction, place: ItemPlace, max_items: int, *, new: str | None = None
) -> tuple[str, ...]:
    """Retract the excess items of a place with the reason ``evicted``; return their ids.

    Only items in the place's view are counted and evicted, so nobody evicts hidden items.
    ``memgraph.rules.lifecycle`` decides the order.

    Args:
        new: the item that was just added, which is not evicted.
    """
    number = excess(items.count(transaction, place), max_items)
    if number == 0:
        return ()
    evicted = items.next_to_evict(transaction, place, number, but=new)
    retract_all(transaction, list(evicted), EVICTED)
    return tuple(evicted.values())


def retract_all(transaction: JournalledTransaction, memory_ids: Sequence[str], reason: str) -> None:
    """Retract active memories with a few statements.

    ``changes.retract`` handles one memory at a time, and takes 0.3 s for a hundred.
    """
    memories.set_statuses(transaction, memory_ids, MemoryStatus.RETRACTED, reason=reason)
    transaction.record(
        [NewEntry("retract", memory_id, {"reason": reason}) for memory_id in memory_ids]
    )
