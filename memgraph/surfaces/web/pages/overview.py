"""The orchestrators of a principal, the state of one, and the narrowing of the session."""

from __future__ import annotations

import re
from typing import Final

from starlette.responses import JSONResponse, Response

from memgraph.model.access import Narrowing, Permission
from memgraph.model.enums import Sensitivity
from memgraph.model.values import validated
from memgraph.service.sanitizer import below
from memgraph.surfaces.web.requests import ConsolePage, Visit
from memgraph.surfaces.web.seals import sealed

FEW: Final = 5
_SEPARATOR: Final = re.compile(r"[,\n]")


def orchestrators(visit: Visit) -> Response:
    """Show the orchestrators that the principal may use."""
    return visit.show("orchestrators.html", names=visit.gate.orchestrators(visit.principal))


def overview(visit: Visit) -> Response:
    """Show the state of an orchestrator, its open items, and the session's narrowing."""
    orc = visit.enter()
    service = visit.gate.service
    health = below(service.health(orc.name), service.root)
    ready = health["status"] == "ready"
    return visit.show(
        "overview.html",
        health=health,
        counts=orc.memories.counts() if ready else {},
        open_cases=orc.contradictions.list(limit=FEW).items if ready else (),
        newest=orc.memories.list(limit=FEW) if ready else (),
        clearances=list(Sensitivity),
    )


def seal(visit: Visit) -> Response:
    """Check the journal, from where it was checked last, and return that in one line."""
    orc = visit.enter(Permission.AUDIT)
    with visit.console.lengthy():
        result = sealed(visit, orc)
    return JSONResponse({"text": result.text, "ok": not result.problem})


def choose(visit: Visit) -> Response:
    """Narrow the view of the session; the choice is tried before it is kept."""
    form = visit.form
    asked = {
        "project_ids": _names(form.get("projects", "")),
        "session_ids": _names(form.get("sessions", "")),
        "agent_id": form.get("agent", "").strip() or None,
        "clearance": form.get("clearance", "") or None,
    }
    chosen = validated(Narrowing, asked)
    visit.enter(Permission.READ, chosen)
    visit.session.narrowings[visit.orchestrator] = chosen
    return visit.go(visit.link(), "What you look at was changed.")


def _names(text: str) -> tuple[str, ...] | None:
    """Return names separated by commas or lines; None: none was given, so nothing is narrowed."""
    result = tuple(item.strip() for item in _SEPARATOR.split(text) if item.strip())
    return result or None


PAGES: Final = (
    ConsolePage("/", orchestrators),
    ConsolePage("/{orchestrator}/", overview),
    ConsolePage("/{orchestrator}/seal", seal, lengthy=True),
    ConsolePage("/{orchestrator}/view", choose, "POST"),
)
