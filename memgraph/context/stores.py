"""The base of the stores of a task, a project and the global tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from memgraph.clock import Clock, SystemClock, iso
from memgraph.errors import InvalidInput
from memgraph.ids import IdSource, UlidSource
from memgraph.model.context import ContextItem
from memgraph.model.values import validated
from memgraph.rules.budget import token_cost
from memgraph.rules.filters import MAX_LIMIT
from memgraph.rules.lifecycle import evicted, held

if TYPE_CHECKING:
    from memgraph.context.backend import MemoryBackend


@runtime_checkable
class BoundedBackend(Protocol):
    """A backend that adds an item and evicts the excess in one step."""

    def add_bounded(self, item: ContextItem, max_items: int) -> Sequence[str]:
        """Add an item; return the ids of the evicted ones."""
        ...


class Store:
    """A backend and the writes into it: the base of the three stores.

    Args:
        backend: stores the items.
        clock, ids: sources of timestamps and ids; by default the machine's clock.
    """

    def __init__(
        self, backend: MemoryBackend, *, clock: Clock | None = None, ids: IdSource | None = None
    ) -> None:
        self.backend = backend
        self._clock = clock or SystemClock()
        self._ids = ids or UlidSource(self._clock)

    def _item(
        self,
        prefix: str,
        text: str,
        *,
        kind: str,
        source: str,
        tags: Sequence[str],
        importance: float | None,
        payload: Mapping[str, Any],
    ) -> ContextItem:
        """Return a new item, stamped now. Raises InvalidInput, naming each field that is wrong."""
        fields = {
            "context_item_id": self._ids.new(f"{prefix}-"),
            "kind": kind,
            "source": source,
            "timestamp": iso(self._clock.now_ms()),
            "tags": tuple(dict.fromkeys(tags)),
            "importance": importance,
            "token_cost": token_cost(text),
            "payload": payload,
        }
        return validated(ContextItem, fields)

    @staticmethod
    def _statement(text: str) -> str:
        """Return the text. Raises InvalidInput: it is empty."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("a text that says something is needed", field="text")
        return text

    def _all(self, filters: Mapping[str, Any]) -> list[ContextItem]:
        """Return all items that pass the filters, newest first."""
        return self.backend.query(filters, limit=MAX_LIMIT)


def add_bounded(backend: MemoryBackend, item: ContextItem, max_items: int) -> tuple[str, ...]:
    """Add an item and evict the excess; return the ids of the evicted items.

    In one step if the backend can (see ``BoundedBackend``), else one after the other.
    """
    if isinstance(backend, BoundedBackend):
        return tuple(backend.add_bounded(item, max_items))
    backend.add(item)
    if backend.count() <= max_items:
        return ()
    gone = evicted(map(held, backend.list_all()), max_items, new=item.context_item_id)
    for one in gone:
        backend.delete(one)
    return gone
