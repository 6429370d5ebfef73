"""Read receipts and bulletins, limited to what a reader may see."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from memgraph.errors import InvalidInput, NotFound
from memgraph.ids import BULLETIN_PREFIX, RECEIPT_PREFIX
from memgraph.model.receipts import BulletinHistory, Receipt, ReceiptList, StoredBulletin
from memgraph.rules.scope import Viewer, asks_within, covers, granted, viewer_of
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import memories, receipts
from memgraph.store.items import is_id
from memgraph.store.receipts import StoredReceipt
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_RECEIPTS_LOOKED_AT = 10_000
MAX_BULLETINS_LOOKED_AT = 2_000


def receipt(opened: OpenOrchestrator, view: View, receipt_id: str) -> Receipt:
    """Return a receipt as its reader may see it, after writing the pending receipts.

    Raises:
        NotFound: the receipt does not exist, or the reader may not see all of its memories; the
            error does not reveal which.
        InvalidInput: ``receipt_id`` is not an id.
    """
    _check_id(receipt_id, "receipt_id")
    opened.receipts.flush()
    with opened.database.read() as snapshot:
        stored = receipts.read(snapshot, receipt_id)
        if stored is not None and _listed(snapshot, view, stored.receipt):
            return _shown(snapshot, view, stored)
    raise NotFound(
        f"no receipt {receipt_id[:80]!r}; the receipt of a task or project is visible only to a"
        " handle that sees the task or project",
        receipt_id=receipt_id[:80],
    )


def receipt_list(
    opened: OpenOrchestrator,
    view: View,
    fields: Mapping[str, str | None],
    *,
    limit: int,
    before: str | None = None,
) -> ReceiptList:
    """Return the newest receipts that ``receipt`` would return; see ``Receipts.list``."""
    conditions = {name: value for name, value in fields.items() if value is not None}
    for name, value in conditions.items():
        _check_id(value, name)
    _check_page(before, RECEIPT_PREFIX)
    opened.receipts.flush()
    visible: list[Receipt] = []
    max_scanned = MAX_RECEIPTS_LOOKED_AT
    with opened.database.read() as snapshot:
        for receipt_id in receipts.newest(snapshot, conditions, limit=max_scanned, before=before):
            stored_receipt = receipts.read(snapshot, receipt_id)
            if stored_receipt is not None and _listed(snapshot, view, stored_receipt.receipt):
                visible.append(_shown(snapshot, view, stored_receipt))
            if len(visible) > limit:
                break
        cut = len(visible) > limit or receipts.is_count_above(snapshot, max_scanned)
    return ReceiptList(tuple(visible[:limit]), cut)


def bulletin_history(
    opened: OpenOrchestrator, view: View, *, limit: int, before: str | None
) -> BulletinHistory:
    """Return the bulletins that the view covers, newest first; see ``Receipts.bulletins``."""
    _check_page(before, BULLETIN_PREFIX)
    opened.receipts.flush()
    with opened.database.read() as snapshot:
        return receipts.bulletins(
            snapshot, view, limit=limit, before=before, scanned=MAX_BULLETINS_LOOKED_AT
        )


def bulletin_issued(opened: OpenOrchestrator, view: View, bulletin_id: str) -> StoredBulletin:
    """Return a bulletin exactly as it was delivered.

    Raises:
        NotFound: the bulletin does not exist, or was delivered to a reader who saw more; the error
            does not reveal which.
        InvalidInput: ``bulletin_id`` is not an id.
    """
    _check_id(bulletin_id, "bulletin_id")
    opened.receipts.flush()
    with opened.database.read() as snapshot:
        bulletin = receipts.bulletin(snapshot, view, bulletin_id)
    if bulletin is None:
        raise NotFound(f"no bulletin {bulletin_id[:80]!r}", bulletin_id=bulletin_id[:80])
    return bulletin


def named(receipt: Receipt) -> list[str]:
    """Return the ids of all memories in a receipt."""
    asked = (receipt.asked.get(name, {}) for name in ("bulletin", "profile"))
    beside = [memory_id for part in asked for memory_id in part.get("memory_ids", ())]
    return [*(item.memory_id for item in receipt.items), *beside]


def _shown(snapshot: Snapshot, view: View, stored_receipt: StoredReceipt) -> Receipt:
    reader = view.viewer
    receipt = replace(stored_receipt.receipt, asked=granted(stored_receipt.receipt.asked, reader))
    if receipt.viewer is None:
        return receipt
    left_out = None
    # To a reader who sees less than the original caller, the counts would reveal hidden memories.
    if receipt.left_out is not None and _is_covered(reader, receipt):
        hidden = {
            reason: len(memories.existing_ids(snapshot, ids, view))
            for reason, ids in stored_receipt.hidden.items()
        }
        left_out = {**receipt.left_out, **hidden}
    return replace(receipt, viewer=granted(receipt.viewer, reader), left_out=left_out)


def _listed(snapshot: Snapshot, view: View, receipt: Receipt) -> bool:
    if receipt.bulletin_id is not None and not _is_covered(view.viewer, receipt):
        return False
    names = named(receipt)
    if not names:
        # Without memories, the place that the query was asked for decides who may see the receipt.
        return _is_of(view.viewer, receipt)
    return not receipts.hidden_ids(snapshot, view, names)


def _is_covered(reader: Viewer, receipt: Receipt) -> bool:
    return receipt.viewer is not None and covers(reader, viewer_of(receipt.viewer))


def _is_of(viewer: Viewer, receipt: Receipt) -> bool:
    """Return True if a viewer sees the task, the project and the agent of a receipt."""
    request = receipt.asked
    task_id, project_id, agent_id = (
        request.get(f"{name}_id") for name in ("task", "project", "agent")
    )
    if agent_id is None and receipt.viewer is not None:
        # An agent always asks for itself, even if the request does not name it.
        agent_id = receipt.viewer["agent_id"]
    if task_id is not None and task_id not in viewer.session_ids:
        return False
    if project_id is not None and project_id not in viewer.project_ids:
        return False
    if not asks_within(request, viewer):
        return False
    own = viewer.agent_id is None or agent_id == viewer.agent_id
    return own or (viewer.shared and agent_id is None)


def _check_id(value: object, field: str) -> None:
    if not is_id(value):
        raise InvalidInput(f"{field} must be a valid text", field=field)


def _check_page(before: object, prefix: str) -> None:
    if before is None:
        return
    _check_id(before, "before")
    # Check only the form, so that the existence of hidden ids is not disclosed.
    if not re.fullmatch(rf"{prefix}[0-9A-Z]{{26}}", str(before)):
        raise InvalidInput("before must be the last id of the previous page", field="before")
