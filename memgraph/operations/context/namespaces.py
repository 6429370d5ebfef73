"""Store and search items by namespace and key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final

from memgraph.errors import Conflict, DatabaseCorrupt, InvalidInput
from memgraph.model.enums import (
    CapturedBy,
    MemoryKind,
    MemoryStatus,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.model.recall import MAX_TOP_N, Bundle, RecallItem, RecallRequest
from memgraph.model.receipts import Receipt, ReceiptItem
from memgraph.model.values import Memory, MemoryInput, Source, validated
from memgraph.operations.context.promotion import retract_all, store_versions
from memgraph.operations.handle import Handle
from memgraph.operations.read.recall import answer
from memgraph.operations.write.writer import PreparedMemory
from memgraph.retrieval.recall import RECEIPT_PREFIX
from memgraph.rules import namespaces as rules
from memgraph.rules import value_filters
from memgraph.rules.namespaces import Namespace
from memgraph.rules.scope import ScopeFacts
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import items as items_rows
from memgraph.store import journal, memories
from memgraph.store.items import ItemPlace
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.store.visibility import View

PURPOSE: Final = "store.search"
IMPORTANCE: Final = 20
"""Below the importance of other memories (50), so that items do not displace people's statements.
"""
_SOURCE = Source(source_type=SourceType.WORKFLOW_OUTPUT, captured_by=CapturedBy.SYSTEM)


class NamespaceHandle(Handle):
    """The items of a handle in one scope. Thread-safe; several processes may share them.

    Args:
        handle: provides the viewer of the items, and the actor for the journal. The items of an
            agent's own handle belong to that agent.
        scope, scope_id: the scope of the items.
        sensitivity, importance: the values of the items' memories.

    Raises:
        InvalidInput: a field is invalid, a scope lacks its id, or global has one.
        AccessDenied: the handle could not see the items that it stores.
    """

    def __init__(
        self,
        handle: Handle,
        *,
        scope: Scope | str = Scope.GLOBAL,
        scope_id: str | None = None,
        sensitivity: Sensitivity | str = Sensitivity.INTERNAL,
        importance: int = IMPORTANCE,
    ) -> None:
        self._like(handle)
        self._fields: dict[str, Any] = {
            "kind": MemoryKind.FACT,
            "scope": scope,
            "scope_id": scope_id,
            "sensitivity": sensitivity,
            "importance": importance,
            "agent_id": self.viewer.agent_id,
            "source": _SOURCE,
        }
        checked = validated(MemoryInput, {**self._fields, "content": "-"})
        facts = ScopeFacts(checked.scope, checked.scope_id, checked.sensitivity, checked.agent_id)
        self._require_visible(facts, "the handle could not see the items that it stores")
        self._scope, self._scope_id = checked.scope, checked.scope_id
        self._place = ItemPlace(
            View(self.viewer, statuses=frozenset({MemoryStatus.ACTIVE})),
            checked.scope,
            checked.scope_id,
            namespaced=True,
            agent_id=checked.agent_id,
        )

    def items(
        self, names: Sequence[tuple[Namespace, str]], *, refresh: bool = True
    ) -> list[StoredItem | None]:
        """Return the items of these namespaces and keys, None for missing ones.

        Args:
            refresh: restart the time to live of expiring items.

        Raises:
            InvalidInput: a namespace or key is invalid.
        """
        ids = [rules.item_id(namespace, key) for namespace, key in names]
        with self._service.opened(self.name) as opened:
            with opened.database.read() as snapshot:
                rows = self._current(snapshot, ids, opened.clock.now_ms())
            by_id = {item_id: item_of(row) for item_id, row in rows.items()}
            if refresh:
                self._refresh(opened, list(by_id.values()))
            return [by_id.get(item_id) for item_id in ids]

    def search(
        self,
        prefix: Namespace,
        *,
        query: str = "",
        filters: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
    ) -> list[StoredItem]:
        """Return items at or below a namespace: first the matches of a query, then the others.

        Recall ranks the matches. The others, or all items without a query, are sorted by the time
        of their last put, newest first. A receipt records the result.

        Args:
            filters: a filter on the values; see ``value_filters``.
            limit, offset: 0 or more.
            refresh: see ``items``.

        Raises:
            InvalidInput: the prefix, the filter or a number is invalid.
        """
        if limit < 0 or offset < 0:
            raise InvalidInput("limit and offset must be 0 or more", field="limit")
        value_filters.check(filters or {})
        end = offset + limit
        with self._service.opened(self.name) as opened:
            bundle = self._answers(opened, prefix, query, MAX_TOP_N if filters else end)
            recalled = (
                {} if bundle is None else {item.memory.memory_id: item for item in bundle.items}
            )
            with opened.database.read() as snapshot:
                now = opened.clock.now_ms()
                seq, _ = journal.head(snapshot)
                ids = [item.memory.item_id for item in recalled.values() if item.memory.item_id]
                current = {row.memory_id for row in self._current(snapshot, ids, now).values()}
                ranked = [
                    item_of(item.memory, item.score)
                    for memory_id, item in recalled.items()
                    if memory_id in current
                ]
                place, most = replace(self._place, at=now), None if filters else end
                newest = items_rows.newest(snapshot, place, prefix, limit=most)
                candidates = chain(ranked, map(item_of, newest))
                page = list(islice(_matching(candidates, filters or {}), offset, end))
            items = [
                ReceiptItem(item.memory_id, item.score or 0.0, *_reasons(recalled, item))
                for item in page
            ]
            receipt = Receipt(
                receipt_id=opened.ids.new(RECEIPT_PREFIX) if bundle is None else bundle.receipt_id,
                at=now,
                query=query,
                asked={"purpose": PURPOSE, "namespace": list(prefix)},
                items=tuple(items),
                change_seq=seq,
            )
            self._keep_receipt(opened, receipt)
            if refresh:
                self._refresh(opened, page)
            return page

    def namespaces(self, prefix: Namespace = ()) -> list[Namespace]:
        """Return the namespaces at or below a prefix that have items, sorted, without values."""
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            place = replace(self._place, at=opened.clock.now_ms())
            return sorted(items_rows.namespaces(snapshot, place, prefix))

    def put_all(self, puts: Sequence[ItemPut]) -> None:
        """Store and delete items in one transaction; the last put of a key wins.

        Raises:
            InvalidInput: a namespace, key, value or time is invalid; nothing was written.
        """
        last = {rules.item_id(put.namespace, put.key): put for put in puts}
        inputs = {
            item_id: None if put.value is None else input_of(put, self._fields)
            for item_id, put in last.items()
        }
        if not inputs:
            return
        with self._service.opened(self.name) as opened:
            prepare = opened.writer.prepare
            drafts = {
                item_id: None if memory is None else prepare(memory)
                for item_id, memory in inputs.items()
            }
            with opened.transaction(self.actor) as transaction:
                self._write_all(opened, transaction, drafts)
            self._embed_soon(opened)

    def _answers(
        self, opened: OpenOrchestrator, prefix: Namespace, query: str, top_n: int
    ) -> Bundle | None:
        """Recall the matches of a query below a prefix; return None without a query."""
        if not query.strip() or not top_n:
            return None
        scope, scope_id = self._scope, self._scope_id
        fields = {
            "query": query,
            "top_n": min(top_n, MAX_TOP_N),
            "kinds": (MemoryKind.FACT,),
            "tags": (rules.search_tag(rules.checked(prefix)),),
            "scopes": (scope,),
            "project_ids": (scope_id,) if scope is Scope.PROJECT else None,
            "session_scope_ids": (scope_id,) if scope is Scope.SESSION else None,
        }
        return answer(opened, self.viewer, validated(RecallRequest, fields))

    def _current(self, snapshot: Snapshot, item_ids: Sequence[str], at: int) -> dict[str, Memory]:
        """Return the valid memories by their item ids; if two have the same id, the later one."""
        rows = items_rows.find(snapshot, replace(self._place, at=at), item_ids)
        return {row.item_id or "": row for row in reversed(rows)}

    def _write_all(
        self,
        opened: OpenOrchestrator,
        transaction: JournalledTransaction,
        drafts: Mapping[str, PreparedMemory | None],
    ) -> None:
        """Store the drafts by ``item_id``, and delete the items whose draft is None.

        Raises:
            Conflict: a memory that is not an item has the same id and text as one.
        """
        at = transaction.at
        # Expired items as well, until the nightly job retracts them.
        existing: dict[str, list[Memory]] = {item_id: [] for item_id in drafts}
        for row in items_rows.find(transaction, self._place, list(drafts)):
            existing[row.item_id or ""].append(row)
        versions: list[tuple[PreparedMemory, Sequence[Memory]]] = []
        for item_id, draft in drafts.items():
            before = existing[item_id]
            valid = before[0] if before and holds(before[0], at) else None
            if draft is None:
                retract_all(transaction, [row.memory_id for row in before], DELETED)
            elif valid is not None and _same(valid, draft.given):
                _put_again(transaction, valid, draft.given)
            else:
                versions.append((_next_version(draft, valid, at), before))
        written = store_versions(opened, transaction, versions, self._view, REPLACED)
        if any(memory.outcome != "stored" for memory in written.memories):
            raise Conflict("another memory has the same text and the item's id")

    def _refresh(self, opened: OpenOrchestrator, items: Sequence[StoredItem]) -> None:
        expiring = [item.memory_id for item in items if item.ttl is not None]
        if not expiring:
            return
        with opened.database.write() as transaction:
            items_rows.prolong(transaction, expiring, at=opened.clock.now_ms())


def _matching(items: Iterable[StoredItem], filters: Mapping[str, Any]) -> Iterator[StoredItem]:
    """Yield the items that pass the filters, the first of each name."""
    names: set[tuple[Namespace, str]] = set()
    for item in items:
        name = item.namespace, item.key
        if name not in names and value_filters.matches(item.value, filters):
            names.add(name)
            yield item


def _reasons(
    recalled: Mapping[str, RecallItem], item: StoredItem
) -> tuple[Mapping[str, int], Mapping[str, float]]:
    recall_item = recalled.get(item.memory_id)
    return ({}, {}) if recall_item is None else (recall_item.legs, recall_item.modifiers)


MAX_TTL: Final = 100 * 366 * 24 * 3_600_000
"""100 years, in milliseconds."""


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A stored item.

    Attributes:
        created_at, updated_at: the times of the first and the last put of the key, in
            milliseconds.
        ttl: milliseconds from the last put or read until it expires; None: never.
        score: how well it matches the query, comparable within one result; None: no query, or no
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


@dataclass(frozen=True, slots=True)
class ItemPut:
    """An item to store, or, if ``value`` is None, to delete.

    Attributes:
        texts: the texts to search; None: the whole value; empty: none.
        ttl: milliseconds from the last put or read until it expires; None: never.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    texts: tuple[str, ...] | None = None
    ttl: int | None = None


def input_of(put: ItemPut, fields: Mapping[str, Any]) -> MemoryInput:
    """Return the memory input for an item, without the fields that depend on earlier versions.

    Args:
        fields: the fields that all memories of the handle have.

    Raises:
        InvalidInput: see ``NamespaceHandle.put_all``.
    """
    value = put.value or {}
    text, attributes = rules.value_text(value), dict[str, Any]()
    searched = put.texts is None
    # The value is stored separately, so the searched text may omit invalid characters.
    distinct_texts = dict.fromkeys(text.replace("\0", " ").strip() for text in put.texts or ())
    joined = "\n".join(text for text in distinct_texts if text)
    if joined:
        attributes["value"], text, searched = rules.plain_text(value), joined, True
    if put.ttl is not None:
        if not 0 < put.ttl <= MAX_TTL:
            raise InvalidInput("a time to live must be above 0, up to 100 years", field="ttl")
        attributes["ttl"] = put.ttl
    item_fields = {
        "content": text,
        "item_id": rules.item_id(put.namespace, put.key),
        "tags": rules.tags_of(put.namespace, searched=searched),
        "attributes": attributes,
    }
    return validated(MemoryInput, {**fields, **item_fields})


def holds(row: Memory, at: int) -> bool:
    """Return True if the memory has not expired."""
    return row.valid_until is None or row.valid_until > at


def first_put(row: Memory) -> int:
    """Return the time of the first put of an item's key, in milliseconds."""
    return int(row.attributes.get("first_put_at", row.created_at))


def item_of(row: Memory, score: float | None = None) -> StoredItem:
    """Return the item of a memory. Raises DatabaseCorrupt if it has no valid value."""
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


DELETED: Final = "deleted"
REPLACED: Final = "put again"


def _same(row: Memory, memory: MemoryInput) -> bool:
    """Return True if a put changes only times."""
    return (
        row.content == memory.content
        and row.attributes.get("value") == memory.attributes.get("value")
        and (row.tags, row.sensitivity, row.importance)
        == (memory.tags, memory.sensitivity, memory.importance)
    )


def _put_again(transaction: JournalledTransaction, row: Memory, memory: MemoryInput) -> None:
    """Update the time and expiry of an unchanged value, without storing a new version."""
    at, ttl = transaction.at, memory.attributes.get("ttl")
    until = None if ttl is None else at + ttl
    attributes = {**row.attributes, "ttl": ttl} if ttl is not None else dict(row.attributes)
    if ttl is None:
        attributes.pop("ttl", None)
    memories.update(
        transaction, row.memory_id, updated_at=at, valid_until=until, attributes=attributes
    )
    transaction.record([NewEntry("put_again", row.memory_id, {"valid_until": until})])


def _next_version(draft: PreparedMemory, valid: Memory | None, at: int) -> PreparedMemory:
    """Return the draft as the next version of an item, or as the first if none is valid."""
    memory = draft.given
    ttl = memory.attributes.get("ttl")
    update: dict[str, Any] = {"valid_until": None if ttl is None else at + ttl}
    if valid is not None:
        update["attributes"] = memory.attributes | {"first_put_at": first_put(valid)}
    return replace(draft, given=memory.model_copy(update=update))
