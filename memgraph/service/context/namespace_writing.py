"""Writing items: each put is a new version with an Updates edge, each delete a retraction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from memgraph.audit.journal import Entry
from memgraph.errors import Conflict
from memgraph.model.enums import EdgeType
from memgraph.model.values import EdgeInput, Memory, MemoryInput
from memgraph.rules import namespaces as rules
from memgraph.rules.dedup import normalise_content
from memgraph.service import changes
from memgraph.service.context.namespace_items import first_put, holds
from memgraph.service.opened import JournalledTransaction, Opened
from memgraph.service.writing import Prepared
from memgraph.store import items as items_rows
from memgraph.store import memories
from memgraph.store.items import NamespacePlace

DELETED: Final = "deleted"
REPLACED: Final = "put again"


def write_all(
    opened: Opened,
    transaction: JournalledTransaction,
    place: NamespacePlace,
    drafts: Mapping[str, Prepared | None],
) -> None:
    """Store the drafts by their ``item_id``, and delete those without a draft.

    Raises:
        Conflict: a memory that is no item has the id of one and the same text.
    """
    at = transaction.at
    standing: dict[str, list[Memory]] = {one: [] for one in drafts}
    for row in items_rows.standing_in_namespace(transaction, place, list(drafts)):
        standing[row.item_id or ""].append(row)
    items: list[Prepared] = []
    links: list[EdgeInput] = []
    for one, draft in drafts.items():
        before = standing[one]
        if draft is None:
            _delete(transaction, place, before)
        elif before and holds(before[-1], at) and _same(before[-1], draft.given):
            _put_again(transaction, before[-1], draft.given)
        else:
            key = str(len(items))
            items.append(_following(opened, draft, key, before, at))
            links += [_replaces(key, each) for each in before]
    store = opened.writer.store
    written = store(transaction, items, links, at=at, actor=transaction.actor, view=place.view)
    if written.errors:
        raise written.errors[0]
    if any(each.outcome != "stored" for each in written.memories):
        raise Conflict("another memory bears the name of an item and says the same")
    transaction.tell(written.entries)


def _delete(
    transaction: JournalledTransaction, place: NamespacePlace, rows: Sequence[Memory]
) -> None:
    for row in rows:
        entries = changes.retract(
            transaction,
            row.memory_id,
            reason=DELETED,
            at=transaction.at,
            actor=transaction.actor,
            view=place.view,
        )
        transaction.tell(entries)


def _same(row: Memory, given: MemoryInput) -> bool:
    """Return True when a put changes nothing but times."""
    return (
        row.content.removesuffix(rules.DIFFERENT) == given.content
        and row.attributes.get("value") == given.attributes.get("value")
        and (row.tags, row.sensitivity, row.importance)
        == (given.tags, given.sensitivity, given.importance)
    )


def _put_again(transaction: JournalledTransaction, row: Memory, given: MemoryInput) -> None:
    """Refresh the time and expiry of an unchanged value, without a new version."""
    at, ttl = transaction.at, given.attributes.get("ttl")
    until = None if ttl is None else at + ttl
    attributes = {**row.attributes, "ttl": ttl} if ttl is not None else dict(row.attributes)
    if ttl is None:
        attributes.pop("ttl", None)
    memories.update(
        transaction,
        row.memory_id,
        updated_at=at,
        valid_until=until,
        attributes=attributes,
    )
    transaction.tell([Entry("put_again", row.memory_id, {"valid_until": until})])


def _following(
    opened: Opened, draft: Prepared, key: str, before: Sequence[Memory], at: int
) -> Prepared:
    """Return the draft as the version that follows the earlier ones."""
    given = draft.given
    ttl = given.attributes.get("ttl")
    update: dict[str, Any] = {"key": key, "valid_until": None if ttl is None else at + ttl}
    if before and holds(before[-1], at):
        update["attributes"] = given.attributes | {"first_put_at": first_put(before[-1])}
    said = normalise_content(given.content)
    if any(normalise_content(row.content) == said for row in before):
        update["content"] = given.content + rules.DIFFERENT
        return opened.writer.prepare(given.model_copy(update=update))
    return replace(draft, given=given.model_copy(update=update))


def _replaces(key: str, row: Memory) -> EdgeInput:
    return EdgeInput(
        from_id=f"#{key}", to_id=row.memory_id, edge_type=EdgeType.UPDATES, reason=REPLACED
    )
