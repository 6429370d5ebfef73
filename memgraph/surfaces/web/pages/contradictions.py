"""Console pages for contradictions: the list, and a case with both sides and the decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from memgraph.clock import iso
from memgraph.errors import InvalidInput
from memgraph.graph.cases import MAX_SOUGHT_CHARS
from memgraph.model.access import Permission
from memgraph.model.graph import Case, Contradiction
from memgraph.surfaces.web.export import case_document
from memgraph.surfaces.web.pages.memories import bulk
from memgraph.surfaces.web.requests import ConsolePage, Visit

PER_PAGE: Final = 25
OPEN, OLDEST = "open", "oldest first"
STATES: Final = (OPEN, "decided", "resolved", "dismissed")
DISMISSED_OF: Final[Mapping[str, bool]] = {"resolved": False, "dismissed": True}
ORDERS: Final = ("newest first", OLDEST)
FILTERS: Final = ("text", "memory", "order")


def listing(visit: Visit) -> Response:
    """Show a page of contradictions, filtered by state, by the text of a side or by a memory."""
    orc = visit.enter()
    state = visit.one_of("state", STATES)
    order = visit.one_of("order", ORDERS)
    page = orc.contradictions.list(
        resolved=state != OPEN,
        dismissed=DISMISSED_OF.get(state),
        text=visit.query("text") or None,
        memory_id=visit.query("memory") or None,
        oldest_first=order == OLDEST,
        limit=visit.size(PER_PAGE),
        after=visit.query("after") or None,
        as_of=visit.as_of,
        changes=False,
    )
    return visit.listing(
        "contradictions.html",
        lambda: [_row(item) for item in page.items],
        following={"after": page.next_after},
        may_write=visit.may_decide and state == OPEN,
        page=page,
        states=STATES,
        state=state,
        orders=ORDERS,
        order=order,
        oldest_first=order == OLDEST,
        filters=FILTERS,
        filtered=any(visit.query(name) for name in FILTERS),
        most=MAX_SOUGHT_CHARS,
    )


def _row(item: Contradiction) -> dict[str, Any]:
    return {
        "edge_id": item.edge.edge_id,
        "older": item.first.content,
        "newer": item.second.content,
        "older_id": item.first.memory_id,
        "newer_id": item.second.memory_id,
        "older_source": item.sources[0].source_path,
        "newer_source": item.sources[1].source_path,
        "raised_at": iso(item.since),
        "resolved": item.resolved,
        "dismissed": item.dismissed,
        "moot": item.moot,
    }


def decide_many(visit: Visit) -> Response:
    """Apply one decision to all chosen contradictions, each in a separate change."""
    orc = visit.enter(Permission.WRITE)
    reason, decision = visit.required("reason"), visit.form.get("decision", "")

    def decide_one(edge_id: str) -> None:
        if decision == "dismiss":
            orc.contradictions.dismiss(edge_id, reason=reason)
        else:
            side = orc.contradictions.get(edge_id, names=False).sides[decision == "newer"]
            orc.contradictions.resolve(edge_id, winner=side.memory.memory_id, reason=reason)

    if decision not in ("newer", "older", "dismiss"):
        raise InvalidInput("decision must be newer, older or dismiss", field="decision")
    return bulk(visit, decide_one, visit.link("contradictions"))


def _file_name_part(case: Case) -> str:
    """Return the id of a case in a form that is safe in a file name."""
    characters = (
        item for item in case.edge.edge_id if item.isascii() and (item.isalnum() or item in "_-")
    )
    return "".join(characters)[:80]


def case(visit: Visit) -> Response:
    """Show both sides of a contradiction with their source lines, and the possible decisions."""
    orc = visit.enter()
    result = orc.contradictions.get(visit.path("edge_id"), as_of=visit.as_of)
    return visit.show(
        "case.html",
        case=result,
        lines=visit.lines(*(side.memory.memory_id for side in result.sides)),
        may_write=visit.may_decide,
    )


def export(visit: Visit) -> Response:
    """Return the case as a self-contained HTML file without scripts."""
    orc = visit.enter()
    result = orc.contradictions.get(visit.path("edge_id"), as_of=visit.as_of)
    lines = visit.lines(*(side.memory.memory_id for side in result.sides))
    root = visit.gate.service.root
    text = case_document(result, orchestrator=orc.name, lines=lines, root=root)
    headers = {"Content-Disposition": f'attachment; filename="case-{_file_name_part(result)}.html"'}
    return Response(text, media_type="text/html", headers=headers)


def resolve(visit: Visit) -> Response:
    """Resolve the contradiction in favour of one side; the other is superseded."""
    orc = visit.enter(Permission.WRITE)
    edge_id = visit.path("edge_id")
    orc.contradictions.resolve(
        edge_id, winner=visit.required("winner"), reason=visit.required("reason")
    )
    return visit.go(visit.link("contradictions", edge_id), "The contradiction is resolved.")


def dismiss(visit: Visit) -> Response:
    """Dismiss the contradiction, so that it is not raised again."""
    orc = visit.enter(Permission.WRITE)
    edge_id = visit.path("edge_id")
    orc.contradictions.dismiss(edge_id, reason=visit.required("reason"))
    return visit.go(visit.link("contradictions", edge_id), "The contradiction is dismissed.")


def reopen(visit: Visit) -> Response:
    """Reopen the contradiction, which undoes the decision."""
    orc = visit.enter(Permission.WRITE)
    edge_id = visit.path("edge_id")
    orc.contradictions.reopen(edge_id, reason=visit.required("reason"))
    return visit.go(visit.link("contradictions", edge_id), "The contradiction is reopened.")


def decide(visit: Visit) -> Response:
    """Apply the decision of the pressed button: resolve, dismiss or reopen."""
    handlers = {"resolve": resolve, "dismiss": dismiss, "reopen": reopen}
    handler = handlers.get(visit.form.get("decision", ""))
    if handler is None:
        raise InvalidInput("decision must be resolve, dismiss or reopen", field="decision")
    return handler(visit)


PAGES: Final = (
    ConsolePage("/{orchestrator}/contradictions", listing, timed=True),
    ConsolePage("/{orchestrator}/contradictions", decide_many, "POST"),
    ConsolePage("/{orchestrator}/contradictions/{edge_id}", case, timed=True),
    ConsolePage("/{orchestrator}/contradictions/{edge_id}", decide, "POST"),
    ConsolePage("/{orchestrator}/contradictions/{edge_id}/export", export, timed=True),
)
