"""Items of a store and the memories that hold them."""

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
    """An item as it is returned.

    Attributes:
        created_at, updated_at: milliseconds; when the key was first put, and when last.
        ttl: milliseconds until it expires after it was last put or read; None: never.
        score: how well it answers a query, comparable within one answer; None: no query, or no
            match.
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
    """An item to be stored; ``value`` None: to be deleted, if it exists.

    Attributes:
        texts: the texts a search looks at; None: all of the value, empty: none.
        ttl: milliseconds until it expires after it was last put or read; None: never.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    texts: tuple[str, ...] | None = None
    ttl: int | None = None


def input_of(put: ItemPut, fields: Mapping[str, Any]) -> MemoryInput:
    """Return the memory of an item, without what depends on the version it replaces.

    Args:
        fields: of every memory of the store.

    Raises:
        InvalidInput: see ``NamespaceHandle.put_all``.
    """
    value = put.value or {}
    text, attributes = rules.value_text(value), dict[str, Any]()
    searched = put.texts is None
    # The value is stored beside it: the searched text can omit what no text may hold.
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
    """Return True while it is valid."""
    return row.valid_until is None or row.valid_until > at


def first_put(row: Memory) -> int:
    """Return when the key of an item was first put."""
    return int(row.attributes.get("first_put_at", row.created_at))


def item_of(row: Memory, score: float | None = None) -> StoredItem:
    """Return the item of a memory. Raises DatabaseCorrupt: it has an item's id and no value."""
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
