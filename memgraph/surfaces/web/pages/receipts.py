"""Receipts of what was handed out, and their replay."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

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
    found = orc.receipts.list(limit=PER_PAGE, before=visit.query("before") or None, **asked)
    following = found.receipts[-1].receipt_id if found.cut and found.receipts else None
    return visit.show(
        "receipts.html",
        found=found.receipts,
        following=following,
        filters=FILTERS,
        filtered=bool(asked),
    )


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
    found = orc.receipts.get(visit.path("receipt_id"))
    return visit.show(
        "receipt.html", receipt=found, memories=_memories(orc, found), replay=replayed, why=WHY
    )


def _memories(orc: Orchestrator, found: Receipt) -> dict[str, Memory]:
    """Return the memories that still exist, by id."""
    there = {}
    for item in found.items:
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
