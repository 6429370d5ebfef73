"""A context backend that stores items as memories in an orchestrator's database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from memgraph.context.items import checked, equal, item_of, memory_input_of, type_of
from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.model.enums import Scope, Sensitivity
from memgraph.model.values import ActorReason, validated
from memgraph.operations.context.promotion import evict, retract_all, store_version, tier_place
from memgraph.operations.handle import Handle, closed_to_viewer
from memgraph.rules.filters import EQ, matches, ordered, parse, parse_limit, parse_order
from memgraph.rules.lifecycle import CLEARED, TASK_CLOSED
from memgraph.rules.scope import ScopeFacts
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import items, memories
from memgraph.store.items import ItemPlace

DELETED: Final = "deleted"
REPLACED: Final = "replaced by a newer item of its id"
CLEARED_AT_A_TIME: Final = 200
"""The number of memories that ``clear`` retracts per transaction, so that others can write."""

_INHERITED = ("kind", "sensitivity", "agent_id")


class DatabaseBackend(Handle):
    """The memory backend of one scope, with the behaviour of ``InMemoryBackend``.

    Its items are the active facts and reflections of exactly that scope that the handle may see,
    whether or not they were stored as items; turns are excluded. Deleting, clearing and evicting
    retract memories, replacing supersedes them, and every change is journalled.

    Args:
        handle: an orchestrator's handle, whose viewer and actor are used.
        scope_id: the id of the task or project; None for the global tier.

    Raises:
        AccessDenied: the handle's viewer has no access to that scope; the denial is logged.
        InvalidInput: a task or project without an id, or the global tier with one.
    """

    def __init__(self, handle: Handle[Any], tier: Scope, scope_id: str | None = None) -> None:
        self._like(handle)
        self.tier = tier
        self.scope_id = scope_id
        # The viewer must be able to see what it stores, so the clearance limits the sensitivity.
        self._sensitivity = min(
            Sensitivity.INTERNAL, self.viewer.clearance, key=lambda level: level.level
        )
        self._agent_id = None if self.viewer.shared else self.viewer.agent_id
        facts = ScopeFacts(tier, scope_id, self._sensitivity, self._agent_id)
        if (tier is Scope.GLOBAL) != (scope_id is None) or not isinstance(scope_id, str | None):
            raise InvalidInput("a task or project requires an id; global has none", field=tier.tier)
        self._require_visible(facts, closed_to_viewer(tier), field=tier.tier)

    def add(self, item: ContextItem) -> None:
        """Store an item; it supersedes a different item with the same id, see ``MemoryBackend``."""
        self._add(item, None)

    def add_bounded(self, item: ContextItem, max_items: int) -> Sequence[str]:
        """Store an item and evict the excess in one transaction; return the evicted ids."""
        return self._add(item, max_items)

    def query(
        self, filters: Mapping[str, Any], limit: int = 100, order_by: str = "timestamp"
    ) -> list[ContextItem]:
        """Return the items that pass a filter, see ``MemoryBackend``."""
        terms, order, count = parse(filters), parse_order(order_by), parse_limit(limit)
        kinds = [term.operand for term in terms if (term.field, term.operator) == ("kind", EQ)]
        in_time = order.field == "timestamp"
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            rows = items.select(
                snapshot,
                self._place(opened),
                newest_first=in_time and order.descending,
                of_type=type_of(kinds[0]) if kinds else None,
                limit=count if in_time and not terms else None,
            )
            matching = (item for item in map(item_of, rows) if matches(item, terms))
            return list(islice(matching if in_time else ordered(matching, order), count))

    def newest(self, limit: int) -> list[tuple[str, ContextItem]]:
        """Return the newest items, each after the id of its memory."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            rows = items.select(snapshot, self._place(opened), newest_first=True, limit=limit)
            return [(memory.memory_id, item_of(memory)) for memory in rows]

    def get(self, item_id: str) -> ContextItem | None:
        """Return the item with that id; if several match, the newest."""
        if not items.is_id(item_id):
            return None
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            memories = items.find(snapshot, self._place(opened), [item_id])
        return item_of(memories[0]) if memories else None

    def delete(self, item_id: str) -> bool:
        """Retract an item with the reason ``deleted``; return False if there is none."""
        if not items.is_id(item_id):
            return False
        with self._write() as (opened, transaction):
            memories = items.find(transaction, self._place(opened), [item_id])
            retract_all(transaction, [memory.memory_id for memory in memories], DELETED)
        return bool(memories)

    def list_all(self) -> list[ContextItem]:
        """Return every item, oldest first, ties by id."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            rows = items.select(snapshot, self._place(opened), newest_first=False)
            return list(map(item_of, rows))

    def clear(self, reason: str | None = None) -> int:
        """Retract every item that exists at the start of the call; return their number.

        It uses transactions of 200 items, so that others can write in between. After an error the
        items cleared so far stay cleared, and another call clears the rest.

        Args:
            reason: None: ``task_closed`` for a task, else ``cleared``.
        """
        because = reason or (TASK_CLOSED if self.tier is Scope.SESSION else CLEARED)
        because = validated(ActorReason, {"actor": self.actor, "reason": because}).reason
        with self._service.opened(self.name) as opened:
            with opened.database.read() as snapshot:
                through = memories.last_pk(snapshot)
            cleared = after = 0
            while True:
                with opened.transaction(self.actor) as transaction:
                    some = items.next_items(
                        transaction,
                        self._place(opened),
                        after=after,
                        through=through,
                        number=CLEARED_AT_A_TIME,
                    )
                    retract_all(transaction, [memory_id for _, memory_id in some], because)
                cleared += len(some)
                if len(some) < CLEARED_AT_A_TIME:
                    return cleared
                after = some[-1][0]

    def count(self) -> int:
        """Return the number of items."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return items.count(snapshot, self._place(opened))

    def _place(self, opened: OpenOrchestrator) -> ItemPlace:
        return tier_place(self.viewer, self.tier, self.scope_id, at=opened.clock.now_ms())

    def _add(self, item: ContextItem, max_items: int | None) -> Sequence[str]:
        checked_item = checked(item)
        item_id = checked_item.context_item_id
        memory = memory_input_of(
            checked_item,
            self.tier,
            self.scope_id,
            sensitivity=self._sensitivity,
            agent_id=self._agent_id,
        )
        evicted: Sequence[str] = ()
        with self._service.opened(self.name) as opened:
            prepared = opened.writer.prepare(memory)
            with opened.transaction(self.actor) as transaction:
                existing = items.find(transaction, self._place(opened), [item_id])
                if len(existing) != 1 or not equal(item_of(existing[0]), checked_item):
                    if existing:
                        # It stays visible to the same readers.
                        inherited = {name: getattr(existing[0], name) for name in _INHERITED}
                        given = prepared.given.model_copy(update=inherited)
                        prepared = replace(prepared, given=given)
                    store_version(opened, transaction, prepared, existing, self._view, REPLACED)
                if max_items is not None:
                    evicted = evict(transaction, self._place(opened), max_items, new=item_id)
            opened.background.wake()
        return evicted
