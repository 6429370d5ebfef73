"""One search over everything: memories, entities, sources, contradictions, receipts, sessions."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from memgraph.graph.cases import MAX_SOUGHT_CHARS
from memgraph.model.access import Permission
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.web.pages import memories
from memgraph.surfaces.web.requests import ConsolePage, Visit

SHOWN: Final = 10
LOOKED_AT: Final = 100
"""Sessions and receipts whose names are compared, the newest ones."""
SOURCES: Final = 500
PREFIXES: Final = {
    "fact_": "memories",
    "ep_": "memories",
    "ref_": "memories",
    "edge_": "contradictions",
    "rcl_": "receipts",
    "bul_": "bulletins",
}
ULID_CHARS: Final = 26


def search(visit: Visit) -> Response:
    """Show what a text finds in each part; an id leads to its page."""
    orc = visit.enter()
    text = visit.query("q")[:MAX_SOUGHT_CHARS]
    for prefix, place in PREFIXES.items():
        if text.startswith(prefix) and len(text) == len(prefix) + ULID_CHARS:
            return RedirectResponse(visit.link(place, text), 303)
    names = ("pages", "memories", "contradictions", "entities", "sessions", "sources", "receipts")
    result = dict.fromkeys(names, ()) | (_parts(visit, orc, text) if text else {})
    return visit.show("search.html", text=text, parts_found=result, any_found=any(result.values()))


def _parts(visit: Visit, orc: Orchestrator, text: str) -> dict[str, Any]:
    sought = text.casefold()
    parts: dict[str, Any] = {
        "pages": [section for section in visit.sections if sought in section.title.casefold()],
        "memories": memories.search(visit, orc, text, SHOWN),
        "contradictions": orc.contradictions.list(text=text, limit=SHOWN, as_of=visit.as_of).items,
        "entities": orc.entities.list(prefix=text, limit=SHOWN),
        "sessions": [
            session
            for session in orc.sessions.list(limit=LOOKED_AT)
            if sought in session.session_id.casefold()
        ][:SHOWN],
    }
    if visit.may(Permission.AUDIT):
        page = orc.sources.list(kind="path", limit=SOURCES)
        parts["sources"] = [item for item in page.items if sought in item.name.casefold()][:SHOWN]
        receipts = orc.receipts.list(limit=LOOKED_AT).receipts
        parts["receipts"] = [
            receipt
            for receipt in receipts
            if any(
                sought in (name or "").casefold()
                for name in (receipt.query, receipt.conversation_id, receipt.workflow_run_id)
            )
        ][:SHOWN]
    return parts


PAGES: Final = (ConsolePage("/{orchestrator}/search", search, timed=True),)
