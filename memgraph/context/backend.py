"""Backends for the items of a tier: the protocol, and one that keeps them in memory.

``memgraph.operations.context.database_backend`` keeps them in an orchestrator's database. Both give
the same answers; the language of ``filters`` is that of ``memgraph.rules.filters``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from memgraph.context.items import checked, equal
from memgraph.model.context import ContextItem
from memgraph.rules.filters import matches, ordered, parse, parse_limit, parse_order
from memgraph.rules.lifecycle import evicted, held

OLDEST_FIRST = "-timestamp"


@runtime_checkable
class MemoryBackend(Protocol):
    """The items of one task, of one project or of the global tier. Thread-safe."""

    def add(self, item: ContextItem) -> None:
        """Store an item; it replaces one with the same id, and an equal one is not stored again.

        Raises:
            InvalidInput: it cannot be stored, see ``memgraph.context.items.memory_input_of``.
            StorageError: it was not stored.
        """
        ...

    def add_bounded(self, item: ContextItem, max_items: int) -> Sequence[str]:
        """Store an item and evict the excess, in one step.

        What is evicted is decided by ``memgraph.rules.lifecycle``.

        Returns:
            The ids of the evicted items, in order.

        Raises:
            InvalidInput, StorageError: as ``add``; or ``max_items`` is below 1. Nothing changed.
        """
        ...

    def trim(self, max_items: int) -> int:
        """Evict what is over ``max_items``; return how many. Raises as ``add_bounded``."""
        ...

    def query(
        self, filters: Mapping[str, Any], limit: int = 100, order_by: str = "timestamp"
    ) -> list[ContextItem]:
        """Return the items that pass a filter, sorted.

        Args:
            filters: ``{"kind": "code", "tags": ["bug"], "importance": {"$gte": 0.7}}``; empty:
                every item passes.
            limit: 1 to 1,000,000 items.
            order_by: ``timestamp`` is newest first, ``-timestamp`` oldest first; so with
                ``importance``, ``token_cost``, ``kind``, ``source`` and ``context_item_id``. Ties
                are broken by id, the lowest first; items without the field come last either way.

        Raises:
            InvalidInput: an unknown field or operator, an operand that the field cannot have, an
                unknown order, or a limit out of range.
        """
        ...

    def get(self, item_id: str) -> ContextItem | None:
        """Return the item with that id; None: there is none."""
        ...

    def delete(self, item_id: str) -> bool:
        """Remove an item; False: there is none with that id."""
        ...

    def list_all(self) -> list[ContextItem]:
        """Return every item, oldest first, ties by id."""
        ...

    def clear(self) -> int:
        """Remove every item; return how many there were."""
        ...

    def count(self) -> int:
        """Return the number of items."""
        ...


class InMemoryBackend:
    """Items that are lost with the process: for tests, and for temporary data."""

    def __init__(self) -> None:
        self._items: dict[str, ContextItem] = {}
        self._lock = threading.RLock()

    def add(self, item: ContextItem) -> None:
        stored = checked(item)
        with self._lock:
            existing = self._items.get(stored.context_item_id)
            if existing is None or not equal(existing, stored):
                self._items[stored.context_item_id] = stored

    def add_bounded(self, item: ContextItem, max_items: int) -> Sequence[str]:
        evicted((), max_items)
        with self._lock:
            self.add(item)
            return self._evict(max_items, new=item.context_item_id)

    def trim(self, max_items: int) -> int:
        with self._lock:
            return len(self._evict(max_items))

    def query(
        self, filters: Mapping[str, Any], limit: int = 100, order_by: str = "timestamp"
    ) -> list[ContextItem]:
        terms, order, max_count = parse(filters), parse_order(order_by), parse_limit(limit)
        with self._lock:
            there = list(self._items.values())
        matching = ordered((item for item in there if matches(item, terms)), order)
        return [item.model_copy(deep=True) for item in matching[:max_count]]

    def get(self, item_id: str) -> ContextItem | None:
        with self._lock:
            item = self._items.get(item_id)
        return None if item is None else item.model_copy(deep=True)

    def delete(self, item_id: str) -> bool:
        with self._lock:
            return self._items.pop(item_id, None) is not None

    def list_all(self) -> list[ContextItem]:
        with self._lock:
            there = list(self._items.values())
        return [item.model_copy(deep=True) for item in ordered(there, parse_order(OLDEST_FIRST))]

    def clear(self) -> int:
        with self._lock:
            number = len(self._items)
            self._items.clear()
            return number

    def count(self) -> int:
        with self._lock:
            return len(self._items)

    def _evict(self, max_items: int, new: str | None = None) -> Sequence[str]:
        evicted_ids = evicted(map(held, self._items.values()), max_items, new=new)
        for item_id in evicted_ids:
            del self._items[item_id]
        return evicted_ids
