"""A LangGraph ``BaseStore`` (long-term memory) over one orchestrator.

Requires the extra ``langgraph``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from memgraph.errors import ExtraMissing, InvalidInput
from memgraph.model.enums import Scope, Sensitivity
from memgraph.operations.context.namespaces import IMPORTANCE, ItemPut, NamespaceHandle, StoredItem
from memgraph.operations.orchestrator import Orchestrator

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise ExtraMissing.of("LangGraph's store is not installed", extra="langgraph") from error

Namespace = tuple[str, ...]
_EPOCH = datetime.fromtimestamp(0, UTC)
_MS_PER_MINUTE = 60_000
_WHOLE = "$"


class MemgraphStore(BaseStore):
    """Items in namespaces, kept as memories of one orchestrator. Thread-safe.

    Putting an item again corrects the earlier one, which stays in the history; deleting retracts
    it. Searches with a query use recall, followed by the items that recall does not find, without
    a score and most recently put first. Without a query all items have this order. In a batch all
    reads come before all writes, the last put of a key wins, and the writes are one transaction.

    Args:
        orchestrator: the orchestrator, whose viewer and actor the store uses.
        scope, scope_id: the scope of the items: ``global``, ``project`` or ``session``. Stores with
            different scopes do not see one another's items.
        sensitivity: the sensitivity of the items.
        importance: the importance of the items, 0..100.
        fields: the paths of the fields to search, like ``index`` of ``put``; None: all fields.
        ttl: ``default_ttl`` in minutes and ``refresh_on_read``. Expired items are not returned.

    Raises:
        InvalidInput, AccessDenied: see ``NamespaceHandle``.
    """

    __slots__ = ("_fields", "_items", "ttl_config")

    supports_ttl = True

    def __init__(
        self,
        orchestrator: Orchestrator,
        *,
        scope: Scope | str = Scope.GLOBAL,
        scope_id: str | None = None,
        sensitivity: Sensitivity | str = Sensitivity.INTERNAL,
        importance: int = IMPORTANCE,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._items = NamespaceHandle(
            orchestrator,
            scope=scope,
            scope_id=scope_id,
            sensitivity=sensitivity,
            importance=importance,
        )
        self._fields = None if fields is None else tuple(fields)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations and return their results in order, None for a put.

        Raises:
            InvalidNamespaceError: a label of a namespace is empty, not a string, or contains a dot.
            InvalidInput: a value is not plain JSON or has more than 32,000 characters, a namespace
                and a key together have more than 504, or a filter or number is invalid; nothing
                was written.
            StorageError: the database failed.
        """
        operations = list(ops)
        for op in operations:
            validate_op_namespace(op)
        answers = [self._read(op) for op in operations]
        self._items.put_all([self._put(op) for op in operations if isinstance(op, PutOp)])
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run ``batch`` in a thread, without blocking the event loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            [result] = self._items.items([(op.namespace, op.key)], refresh=op.refresh_ttl)
            return None if result is None else _item(result)
        if isinstance(op, SearchOp):
            found_items = self._items.search(
                op.namespace_prefix,
                query=op.query or "",
                filters=op.filter,
                limit=op.limit,
                offset=op.offset,
                refresh=op.refresh_ttl,
            )
            return [_search_item(found_item) for found_item in found_items]
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise InvalidInput(f"{type(op).__name__} is not a store operation")

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        if op.limit < 0 or op.offset < 0:
            raise InvalidInput("limit and offset must be 0 or more", field="limit")
        conditions = op.match_conditions or ()
        results: Iterable[Namespace] = (
            namespace
            for namespace in self._items.namespaces(_common_prefix(conditions))
            if all(_fits(condition, namespace) for condition in conditions)
        )
        if op.max_depth is not None:
            results = sorted({item[: op.max_depth] for item in results})
        return list(results)[op.offset : op.offset + op.limit]

    def _put(self, op: PutOp) -> ItemPut:
        return ItemPut(op.namespace, op.key, op.value, self._texts(op), _ms(op.ttl))

    def _texts(self, op: PutOp) -> tuple[str, ...] | None:
        """Return the texts to search, or None to search the whole value."""
        if op.index is False:
            return ()
        paths = self._fields if op.index is None else tuple(op.index)
        if op.value is None or paths is None or _WHOLE in paths:
            return None
        return tuple(text for path in paths for text in get_text_at_path(op.value, path))


def _ms(minutes: float | None) -> int | None:
    if minutes is None:
        return None
    if not math.isfinite(minutes):
        raise InvalidInput("a time to live must be a finite number of minutes", field="ttl")
    return math.ceil(minutes * _MS_PER_MINUTE)


def _common_prefix(conditions: Sequence[MatchCondition]) -> Namespace:
    """Return the longest prefix without wildcards that all matching namespaces have."""
    result: Namespace = ()
    for condition in conditions:
        if condition.match_type == "prefix":
            plain = condition.path
            if "*" in plain:
                plain = plain[: plain.index("*")]
            result = max(result, plain, key=len)
    return result


def _fits(condition: MatchCondition, namespace: Namespace) -> bool:
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInput("match_type must be prefix or suffix", field="match_type")
    size = len(condition.path)
    if size > len(namespace):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - size
    part = namespace[start : start + size]
    return all(pattern in ("*", label) for pattern, label in zip(condition.path, part, strict=True))


def _item(item: StoredItem) -> Item:
    return Item(
        value=item.value,
        key=item.key,
        namespace=item.namespace,
        created_at=_time(item.created_at),
        updated_at=_time(item.updated_at),
    )


def _search_item(item: StoredItem) -> SearchItem:
    return SearchItem(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        created_at=_time(item.created_at),
        updated_at=_time(item.updated_at),
        score=item.score,
    )


def _time(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)
