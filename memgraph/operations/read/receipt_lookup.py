"""Reading receipts; what a reader may not see of them does not exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.receipts import (
    BulletinEntry,
    BulletinHistory,
    Receipt,
    ReceiptList,
    StoredBulletin,
)
from memgraph.operations.read.lookup import MAX_PAGE
from memgraph.rules.scope import Viewer, asked_of, asks_within, covers, granted, viewer_of
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import receipts
from memgraph.store.items import is_id
from memgraph.store.receipts import IssuedBulletin, StoredReceipt
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

EntryT = TypeVar("EntryT", bound=BulletinEntry)

MAX_RECEIPTS_LOOKED_AT = 10_000
MAX_BULLETINS_LOOKED_AT = 2_000


def receipt(opened: OpenOrchestrator, view: View, receipt_id: str) -> Receipt:
    """Return a receipt, after writing the pending ones.

    Raises:
        NotFound: there is none, or the reader may not see all of it; both read the same.
        InvalidInput: it is no id.
    """
    return shown_to(opened, view, stored(opened, view, receipt_id))


def stored(opened: OpenOrchestrator, view: View, receipt_id: str) -> StoredReceipt:
    """Return the receipt as it is stored, for a reader who may see it. Raises: as ``receipt``."""
    _check_id(receipt_id, "receipt_id")
    opened.receipts.flush()
    with opened.database.read() as snapshot:
        found = receipts.read(snapshot, receipt_id)
        if found is not None and _listed(snapshot, view, found.receipt):
            return found
    raise NotFound(
        f"no receipt {receipt_id[:80]!r}; a receipt of a task or a project needs a handle"
        " that sees it",
        receipt_id=receipt_id[:80],
    )


def receipt_list(
    opened: OpenOrchestrator,
    view: View,
    asked: Mapping[str, str | None],
    *,
    limit: int,
    before: str | None = None,
) -> ReceiptList:
    """Return the newest receipts that ``receipt`` would return; see ``ReceiptsHandle.receipts``."""
    wanted = {name: value for name, value in asked.items() if value is not None}
    for name, value in wanted.items():
        _check_id(value, name)
    _check_page(limit, before, "rcl_")
    opened.receipts.flush()
    seen: list[Receipt] = []
    most = MAX_RECEIPTS_LOOKED_AT
    with opened.database.read() as snapshot:
        for one in receipts.newest(snapshot, wanted, most=most, before=before):
            found = receipts.read(snapshot, one)
            if found is not None and _listed(snapshot, view, found.receipt):
                seen.append(_shown(snapshot, view, found))
            if len(seen) > limit:
                break
        cut = len(seen) > limit or receipts.are_more_than(snapshot, most)
    return ReceiptList(tuple(seen[:limit]), cut)


def bulletin_history(
    opened: OpenOrchestrator, view: View, *, limit: int, before: str | None
) -> BulletinHistory:
    """Return bulletins for readers who saw no more; see ``ReceiptsHandle.bulletins``."""
    _check_page(limit, before, "bul_")
    opened.receipts.flush()
    with opened.database.read() as snapshot:
        found = receipts.bulletins(
            snapshot, view, limit=limit + 1, before=before, most=MAX_BULLETINS_LOOKED_AT
        )
        unread = receipts.are_more_bulletins(snapshot, before, MAX_BULLETINS_LOOKED_AT)
    entries = tuple(_entry(BulletinEntry, each) for each in found[:limit])
    return BulletinHistory(bulletins=entries, cut=len(found) > limit or unread)


def bulletin_issued(opened: OpenOrchestrator, view: View, bulletin_id: str) -> StoredBulletin:
    """Return a bulletin as it was handed out.

    Raises:
        NotFound: there is none, or it was for a reader who saw more; both read the same.
        InvalidInput: it is no id.
    """
    _check_id(bulletin_id, "bulletin_id")
    opened.receipts.flush()
    with opened.database.read() as snapshot:
        found = receipts.bulletin(snapshot, view, bulletin_id)
    if found is None:
        raise NotFound(f"no bulletin {bulletin_id[:80]!r}", bulletin_id=bulletin_id[:80])
    head, text = found
    return _entry(StoredBulletin, head, memory_ids=text.memory_ids, body=text.body)


def shown_to(opened: OpenOrchestrator, view: View, found: StoredReceipt) -> Receipt:
    """Return what a reader may see of a visible receipt."""
    with opened.database.read() as snapshot:
        return _shown(snapshot, view, found)


def named(found: Receipt) -> list[str]:
    """Return every memory that a receipt names."""
    bulletin = found.asked.get("bulletin", {}).get("memory_ids", ())
    return [*(item.memory_id for item in found.items), *bulletin]


def _shown(snapshot: Snapshot, view: View, found: StoredReceipt) -> Receipt:
    reader = view.viewer
    receipt = replace(found.receipt, asked=asked_of(found.receipt.asked, reader))
    if not reader.sees_use:
        items = (replace(one, access_count=None, last_accessed_at=None) for one in receipt.items)
        receipt = replace(receipt, items=tuple(items))
    if receipt.viewer is None:
        return receipt
    told = None
    # Numbers of what the asker saw would tell a reader who sees less what it does not see.
    if receipt.left_out is not None and _is_covered(reader, receipt):
        hidden = {
            reason: len(receipts.visible_ids(snapshot, view, ids))
            for reason, ids in found.hidden.items()
        }
        told = {**receipt.left_out, **hidden}
    return replace(receipt, viewer=granted(receipt.viewer, reader), left_out=told)


def _listed(snapshot: Snapshot, view: View, found: Receipt) -> bool:
    if found.bulletin_id is not None and not _is_covered(view.viewer, found):
        return False
    names = named(found)
    if not names:
        # Nothing in it says who may see it; but its query is of the place that it was asked for.
        return _is_of(view.viewer, found)
    return receipts.all_visible(snapshot, view, names)


def _is_covered(reader: Viewer, found: Receipt) -> bool:
    return found.viewer is not None and covers(reader, viewer_of(found.viewer))


def _is_of(viewer: Viewer, found: Receipt) -> bool:
    """Return True when a viewer sees the task, the project and the agent of a receipt."""
    asked = found.asked
    task_id, project_id, agent_id = (asked.get(f"{one}_id") for one in ("task", "project", "agent"))
    if agent_id is None and found.viewer is not None:
        # An agent asks for itself, whether it says so or not.
        agent_id = found.viewer["agent_id"]
    if task_id is not None and task_id not in viewer.session_ids:
        return False
    if project_id is not None and project_id not in viewer.project_ids:
        return False
    if not asks_within(asked, viewer):
        return False
    own = viewer.agent_id is None or agent_id == viewer.agent_id
    return own or (viewer.shared and agent_id is None)


def _entry(kind: type[EntryT], found: IssuedBulletin, **more: Any) -> EntryT:
    return kind.model_construct(**found._asdict(), **more)


def _check_id(given: object, field: str) -> None:
    if not is_id(given):
        raise InvalidInput(f"{field} is a text", field=field)


def _check_page(limit: object, before: object, prefix: str) -> None:
    if not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit must be between 1 and {MAX_PAGE}", limit=limit)
    if before is None:
        return
    _check_id(before, "before")
    # Checked by its form only, so that hidden ones are not disclosed.
    if not re.fullmatch(rf"{prefix}[0-9A-Z]{{26}}", str(before)):
        raise InvalidInput("before must be the last id of the previous page", field="before")
