"""Which items a project gives up when it holds too many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.model.enums import MemoryType

SHARE = 10
"""Of so many items one goes at a time, so that not every write has to look for one."""

KEPT_TYPES = frozenset({MemoryType.GOAL, MemoryType.TODO, MemoryType.DECISION})
"""What a project works for and by; given up only when nothing else is left."""

_KEPT_KINDS = frozenset(each.value.lower() for each in KEPT_TYPES)


class Held(NamedTuple):
    """An item that may have to go.

    Attributes:
        id: of the item; ties are broken by it.
        importance: on any one scale; what nobody weighed counts 0.
        at: when it came, milliseconds.
        kept: it is of ``KEPT_TYPES``, or a person confirmed it: it goes last.
    """

    id: str
    importance: float
    at: int
    kept: bool


def evicted(items: Iterable[Held], max_items: int, *, new: str | None = None) -> tuple[str, ...]:
    """The ids of what has to go, the first to go first; empty while ``max_items`` are not exceeded.

    A tenth of what is there, and at least as many as are too many: what is not kept before what
    is, of these the least important, of these the oldest.

    Args:
        max_items: 1 or more.
        new: the item for which room is made. It stays: whoever wrote it would be told of an item
            that is gone.

    Raises:
        InvalidInput: ``max_items`` is below 1.
    """
    there = list(items)
    number = excess(len(there), max_items)
    there = [each for each in there if each.id != new]
    there.sort(key=lambda each: (each.kept, each.importance, each.at, each.id))
    return tuple(each.id for each in there[:number])


def excess(count: int, max_items: int) -> int:
    """How many of so many items have to go: 0, or a tenth and at least as many as are too many.

    Raises:
        InvalidInput: ``max_items`` is below 1.
    """
    if max_items < 1:
        raise InvalidInput("max_items is 1 or more", field="max_items")
    too_many = count - max_items
    return max(too_many, count // SHARE) if too_many > 0 else 0


def held(item: ContextItem) -> Held:
    """An item as it is judged where nothing else is known of it."""
    return Held(
        item.context_item_id,
        item.importance or 0.0,
        parse_time(item.timestamp),
        item.kind in _KEPT_KINDS,
    )
