"""Console pages for the state of an orchestrator: overview, changes, stale, health."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from memgraph.clock import MS_PER_DAY, iso
from memgraph.model.access import HealthMetric, Narrowing, Permission, StoreHealth
from memgraph.model.enums import Sensitivity
from memgraph.model.graph import Diff
from memgraph.model.values import validated
from memgraph.service.sanitizer import without_root
from memgraph.surfaces.web.export import sealed
from memgraph.surfaces.web.requests import ConsolePage, Visit

FEW: Final = 5
_SEPARATOR: Final = re.compile(r"[,\n]")


def orchestrators(visit: Visit) -> Response:
    """Show the orchestrators that the principal may use."""
    return visit.show("orchestrators.html", names=visit.gate.orchestrators(visit.principal))


def overview(visit: Visit) -> Response:
    """Show the state of an orchestrator, its open items, and the session's narrowing."""
    orc = visit.enter()
    service = visit.gate.service
    health = without_root(service.health(orc.name), service.root)
    ready = health["status"] == "ready"
    return visit.show(
        "overview.html",
        health=health,
        counts=orc.memories.counts() if ready else {},
        open_cases=orc.contradictions.list(limit=FEW, changes=False).items if ready else (),
        newest=orc.memories.list(limit=FEW) if ready else (),
        clearances=list(Sensitivity),
    )


def seal(visit: Visit) -> Response:
    """Check the journal entries since the last check, and return the result as one line."""
    orc = visit.enter(Permission.AUDIT)
    with visit.console.lengthy():
        result = sealed(visit, orc)
    return JSONResponse({"text": result.text, "ok": not result.problem})


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
    visit.session.narrowings[visit.orchestrator] = narrowing
    return visit.go(visit.link(), "Your view is updated.")


def _names(text: str) -> tuple[str, ...] | None:
    """Return the names in a text, separated by commas or lines; None if there are none."""
    result = tuple(item.strip() for item in _SEPARATOR.split(text) if item.strip())
    return result or None


# Changes between two times, and stale memories.

PER_PAGE: Final = 25
MOST: Final = 100
"""The maximum number of changes of each kind on a page."""
DEFAULT_DAYS: Final = 7
PRESETS: Final = (
    ("Today", "today"),
    ("Since yesterday", "yesterday"),
    ("Since last week", "last week"),
    ("Since last month", "last month"),
    ("Since last year", "last year"),
)
"""The texts of links, with the start of the period that each compares."""


def diff(visit: Visit) -> Response:
    """Show the changes between two times, by default in the last week."""
    orc = visit.enter()
    now = visit.console.now_ms()
    until, since = visit.moment("until", ends=True), visit.moment("since")
    end = now if until is None else until
    begin = end - DEFAULT_DAYS * MS_PER_DAY if since is None else since
    result = orc.history.diff(begin, end, limit=visit.size(MOST))
    return visit.listing(
        "diff.html",
        lambda: _changes(result),
        diff=result,
        since=iso(begin),
        until=iso(end),
        presets=PRESETS,
    )


def _changes(diff: Diff) -> list[dict[str, Any]]:
    events_by_change = diff.model_dump(mode="json", exclude={"counts", "since", "until", "cut"})
    return [
        {"change": change, **event}
        for change, events in events_by_change.items()
        for event in events
    ]


def stale(visit: Visit) -> Response:
    """Show memories that depend on superseded or retracted evidence, and that evidence."""
    orc = visit.enter(Permission.AUDIT)
    after = visit.query("after") or None
    page = orc.graph.stale(limit=visit.size(PER_PAGE), after=after, as_of=visit.as_of)
    return visit.listing(
        "stale.html",
        lambda: [
            {
                "memory_id": item.memory.memory_id,
                "content": item.memory.content,
                "evidence_id": item.premise.ground.memory_id,
                "evidence": item.premise.ground.content,
                "ended": item.premise.ended,
                "ended_at": iso(item.premise.ended_at),
            }
            for item in page.items
        ],
        following={"after": page.next_after},
        page=page,
    )


# Rates of possible problems in a store.

EXAMPLES: Final = 5
MEANS: Final[Mapping[HealthMetric, str]] = {
    HealthMetric.DUPLICATE: "repeat another memory word for word",
    HealthMetric.NEAR_DUPLICATE: "are nearly the same as another memory",
    HealthMetric.CONTRADICTION: "are in an open contradiction",
    HealthMetric.STALE: "depend on superseded or retracted evidence",
    HealthMetric.UNSOURCED: "have no named source",
    HealthMetric.ORPHAN: "have no edges",
    HealthMetric.UNEMBEDDED: "have no vector yet, so that vector search misses them",
}
"""The meaning of each measure."""


def health(visit: Visit) -> Response:
    """Show the available measures without measuring anything yet."""
    visit.enter(Permission.AUDIT)
    return _health_page(visit, None)


def measure(visit: Visit) -> Response:
    """Measure and show all rates. A large store takes seconds, so few requests run at a time."""
    orc = visit.enter(Permission.AUDIT)
    with visit.console.lengthy():
        return _health_page(visit, orc.audit.measure(examples=EXAMPLES))


def _health_page(visit: Visit, health: StoreHealth | None) -> Response:
    return visit.show("health.html", health=health, means=MEANS)


PAGES: Final = (
    ConsolePage("/", orchestrators),
    ConsolePage("/{orchestrator}/", overview),
    ConsolePage("/{orchestrator}/seal", seal, lengthy=True),
    ConsolePage("/{orchestrator}/view", choose, "POST"),
    ConsolePage("/{orchestrator}/diff", diff),
    ConsolePage("/{orchestrator}/stale", stale, timed=True),
    ConsolePage("/{orchestrator}/health", health),
    ConsolePage("/{orchestrator}/health", measure, "POST", lengthy=True),
)
