"""Items of a store and the memories that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from memgraph.errors import DatabaseCorrupt, InvalidInput
from memgraph.model.values import Memory, MemoryInput, validated
from memgraph.rules import namespaces as rules
from memgraph.rules.namespaces import Namespace

MAX_TTL: Final = 100 * 366 * 24 * 3_600_000
"""100 years, in milliseconds."""


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as it is handed out.

    Attributes:
        created_at, updated_at: milliseconds; when the key was first put, and when last.
        ttl: milliseconds for which it stays after it was last put or read; None: for ever.
        score: how well it answers a query, comparable within one answer; None: it was not asked,
            or does not.
    """

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: int
    updated_at: int
    memory_id: str
    ttl: int | None = None
    score: float | None = None

    @property
    def name(self) -> tuple[Namespace, str]:
        return self.namespace, self.key


@dataclass(frozen=True, slots=True)
class ItemPut:
    """An item to be stored; ``value`` None: to be deleted, if it is there.

    Attributes:
        texts: what a search is to find it by; None: all of the value, empty: nothing.
        ttl: milliseconds for which it stays after it was last put or read; None: for ever.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    texts: tuple[str, ...] | None = None
    ttl: int | None = None


def input_of(put: ItemPut, fields: Mapping[str, Any]) -> MemoryInput:
    """The memory of an item, but for what depends on the one that it replaces.

    Args:
        fields: of every memory of the store.

    Raises:
        InvalidInput: see ``NamespaceHandle.put_all``.
    """
    value = put.value or {}
    text, attributes = rules.value_text(value), dict[str, Any]()
    searched = put.texts is None
    # The value stands beside it: what no text may hold can be left out of what is searched.
    texts = dict.fromkeys(each.replace("\0", " ").strip() for each in put.texts or ())
    said = "\n".join(each for each in texts if each)
    if said:
        attributes["value"], text, searched = rules.plain_text(value), said, True
    if put.ttl is not None:
        if not 0 < put.ttl <= MAX_TTL:
            raise InvalidInput("a time to live is over 0, up to 100 years", field="ttl")
        attributes["ttl"] = put.ttl
    own = {
        "content": text,
        "item_id": rules.item_id(put.namespace, put.key),
        "tags": rules.tags_of(put.namespace, searched=searched),
        "attributes": attributes,
    }
    return validated(MemoryInput, {**fields, **own})


def holds(row: Memory, at: int) -> bool:
    """Whether it is valid still."""
    return row.valid_until is None or row.valid_until > at


def first_put(row: Memory) -> int:
    """When the key of an item was put first."""
    return int(row.attributes.get("first_put_at", row.created_at))


def item_of(row: Memory, score: float | None = None) -> StoredItem:
    """Raises DatabaseCorrupt: the memory bears the name of an item and holds no value."""
    namespace, key = rules.parse_item_id(row.item_id or "")
    try:
        value = rules.value_of(row.attributes.get("value", row.content))
    except (ValueError, TypeError) as error:
        raise DatabaseCorrupt("a stored item cannot be read", id=row.memory_id) from error
    return StoredItem(
        namespace=namespace,
        key=key,
        value=value,
        created_at=first_put(row),
        updated_at=row.updated_at,
        memory_id=row.memory_id,
        ttl=row.attributes.get("ttl"),
        score=score,
    )
