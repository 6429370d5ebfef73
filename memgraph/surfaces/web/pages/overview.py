"""Console pages for the state of an orchestrator: open decisions and changes."""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.responses import Response

from memgraph.clock import MS_PER_DAY, iso
from memgraph.model.access import Narrowing, Permission
from memgraph.model.enums import Sensitivity
from memgraph.model.graph import Diff
from memgraph.model.values import validated
from memgraph.service.sanitizer import without_root
from memgraph.surfaces.web.requests import ConsolePage, Visit

FEW: Final = 10
MOST: Final = 50
"""The maximum number of changes of each kind on the page."""
DEFAULT_DAYS: Final = 7
PRESETS: Final = (
    ("Today", "today"),
    ("Since yesterday", "yesterday"),
    ("Since last week", "last week"),
    ("Since last month", "last month"),
    ("Since last year", "last year"),
)
"""The texts of links, with the start of the period that each compares."""
CHANGES: Final = {
    "learnt": "new",
    "replaced": "superseded",
    "retracted": "retracted",
    "restored": "restored",
    "contradicted": "contradiction raised",
    "resolved": "contradiction resolved",
    "accepted": "change accepted",
    "dismissed": "dismissed",
    "reopened": "reopened",
    "erased": "erased",
    "restores": "backup restored",
}
"""The lists of a ``Diff``, with what a page calls their events."""
_SEPARATOR: Final = re.compile(r"[,\n]")


def orchestrators(visit: Visit) -> Response:
    """Show the orchestrators that the principal may use."""
    return visit.show("orchestrators.html", names=visit.gate.orchestrators(visit.principal))


def overview(visit: Visit) -> Response:
    """Show the state, open decisions, the changes of a period, and the session's narrowing."""
    orc = visit.enter()
    service = visit.gate.service
    health = without_root(service.health(orc.name), service.root)
    ready = health["status"] == "ready"
    until, since = visit.moment("until", ends=True), visit.moment("since")
    end = visit.console.now_ms() if until is None else until
    begin = end - DEFAULT_DAYS * MS_PER_DAY if since is None else since
    return visit.show(
        "overview.html",
        health=health,
        journal=orc.maintenance.journal_state() if ready and visit.is_auditor else None,
        counts=orc.memories.counts() if ready else {},
        open_cases=orc.contradictions.list(limit=FEW).items if ready else (),
        diff=orc.history.diff(begin, end, limit=MOST) if ready else None,
        events_of=events_of,
        since=iso(begin),
        until=iso(end),
        presets=PRESETS,
        clearances=list(Sensitivity),
    )


def events_of(diff: Diff) -> list[tuple[str, Any]]:
    """Return the events of a diff with the names of their changes, newest first."""
    events: list[tuple[str, Any]] = [
        (title, event) for name, title in CHANGES.items() for event in getattr(diff, name)
    ]
    return sorted(events, key=lambda each: -each[1].at)


def choose(visit: Visit) -> Response:
    """Narrow the view of the session, after checking that the narrowing is allowed."""
    form = visit.form
    fields = {
        "project_ids": _names(form.get("projects", "")),
        "session_ids": _names(form.get("sessions", "")),
        "agent_id": form.get("agent", "").strip() or None,
        "clearance": form.get("clearance", "") or None,
    }
    narrowing = validated(Narrowing, fields)
    visit.enter(Permission.READ, narrowing)
    visit.narrow(narrowing)
    return visit.go(visit.link(), "Your view is updated.")


def _names(text: str) -> tuple[str, ...] | None:
    """Return the names in a text, separated by commas or lines; None if there are none."""
    result = tuple(item.strip() for item in _SEPARATOR.split(text) if item.strip())
    return result or None


PAGES: Final = (
    ConsolePage("/", orchestrators),
    ConsolePage("/{orchestrator}/", overview),
    ConsolePage("/{orchestrator}/view", choose, "POST"),
)
