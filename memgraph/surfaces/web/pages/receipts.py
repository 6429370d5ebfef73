"""Receipts of what was handed out, and their replay."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from memgraph.clock import iso
from memgraph.errors import NotFound
from memgraph.model.access import Permission
from memgraph.model.receipts import WHY, Receipt, Replay
from memgraph.model.values import Memory
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.web.requests import ConsolePage, Visit

PER_PAGE: Final = 25
FILTERS: Final = ("conversation_id", "workflow_run_id", "task_id", "purpose")


def listing(visit: Visit) -> Response:
    """Show the newest receipts that are fully visible."""
    orc = visit.enter(Permission.AUDIT)
    asked = {name: visit.query(name) for name in FILTERS if visit.query(name)}
    size = visit.size(PER_PAGE)
    result = orc.receipts.list(limit=size, before=visit.query("before") or None, **asked)
    more = result.cut and result.receipts
    return visit.listing(
        "receipts.html",
        lambda: [_row(receipt) for receipt in result.receipts],
        following=visit.here(before=result.receipts[-1].receipt_id) if more else None,
        found=result.receipts,
        filters=FILTERS,
        filtered=bool(asked),
    )


def _row(receipt: Receipt) -> dict[str, Any]:
    return {
        "receipt_id": receipt.receipt_id,
        "at": iso(receipt.at),
        "purpose": receipt.purpose or "recall",
        "query": receipt.query,
        "query_sha256": receipt.query_sha256,
        "actor": receipt.actor,
        "conversation_id": receipt.conversation_id,
        "workflow_run_id": receipt.workflow_run_id,
        "memories": [item.memory_id for item in receipt.items],
    }


def receipt(visit: Visit) -> Response:
    """Show one receipt, item by item."""
    return _receipt_page(visit, visit.enter(Permission.AUDIT))


def replay(visit: Visit) -> Response:
    """Repeat the request, as of its moment.

    When only the digest of the query was kept, the form has its text.
    """
    orc = visit.enter(Permission.AUDIT)
    replayed = orc.receipts.replay(visit.path("receipt_id"), query=visit.form.get("query") or None)
    return _receipt_page(visit, orc, replayed)


def _receipt_page(visit: Visit, orc: Orchestrator, replayed: Replay | None = None) -> Response:
    result = orc.receipts.get(visit.path("receipt_id"))
    return visit.show(
        "receipt.html", receipt=result, memories=_memories(orc, result), replay=replayed, why=WHY
    )


def _memories(orc: Orchestrator, receipt: Receipt) -> dict[str, Memory]:
    """Return the memories that still exist, by id."""
    there = {}
    for item in receipt.items:
        try:
            there[item.memory_id] = orc.get(item.memory_id)
        except NotFound as error:
            # Erased since, perhaps; this is no refusal.
            error.journalled = True
    return there


PAGES: Final = (
    ConsolePage("/{orchestrator}/receipts", listing),
    ConsolePage("/{orchestrator}/receipts/{receipt_id}", receipt),
    ConsolePage("/{orchestrator}/receipts/{receipt_id}", replay, "POST"),
)
