"""Console pages for answers: what was handed out, to whom, and why, from the receipts."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from memgraph.model.access import Permission
from memgraph.surfaces.web.pages.memories import by_id
from memgraph.surfaces.web.requests import ConsolePage, Visit

PER_PAGE: Final = 25
FILTERS: Final = ("conversation_id", "workflow_run_id", "task_id", "purpose")


def listing(visit: Visit) -> Response:
    """Show the newest receipts whose memories the visitor may all see."""
    orc = visit.enter(Permission.AUDIT)
    filters = {name: visit.query(name) for name in FILTERS if visit.query(name)}
    result = orc.receipts.list(limit=PER_PAGE, before=visit.query("before") or None, **filters)
    last = result.receipts[-1].receipt_id if result.cut and result.receipts else None
    return visit.show(
        "answers.html",
        receipts=result.receipts,
        filters=FILTERS,
        filtered=bool(filters),
        following=visit.following(before=last),
    )


def answer(visit: Visit) -> Response:
    """Show a receipt: the question, the answer, its memories and the text of a bulletin."""
    orc = visit.enter(Permission.AUDIT)
    receipt = orc.receipts.get(visit.path("receipt_id"))
    bulletin = None if receipt.bulletin_id is None else orc.receipts.bulletin(receipt.bulletin_id)
    memories = by_id(orc, [item.memory_id for item in receipt.items])
    return visit.show("answer.html", receipt=receipt, bulletin=bulletin, memories=memories)


PAGES: Final = (
    ConsolePage("/{orchestrator}/answers", listing),
    ConsolePage("/{orchestrator}/answers/{receipt_id}", answer),
)
