"""The state of an orchestrator's memory, past runs of its jobs, and its schedule."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from memgraph.model.access import Permission
from memgraph.model.jobs import JobPlan, JobRun
from memgraph.service.sanitizer import below
from memgraph.surfaces.web.requests import ConsolePage, Visit

RUNS: Final = 50


def jobs(visit: Visit) -> Response:
    """Show health to every reader; runs and plans to an admin, as over HTTP."""
    orc = visit.enter()
    service = visit.gate.service
    health = below(service.health(orc.name), service.root)
    plans: list[JobPlan] = []
    runs: list[JobRun] = []
    if visit.may(Permission.ADMIN) and health["status"] == "ready":
        plans, runs = list(orc.jobs.plans()), list(orc.jobs.list(limit=RUNS))
    return visit.show(
        "jobs.html",
        health=health,
        plans=plans,
        runs=[(run, below(run.reason, service.root)) for run in runs],
        is_admin=visit.may(Permission.ADMIN),
    )


PAGES: Final = (ConsolePage("/{orchestrator}/jobs", jobs),)
