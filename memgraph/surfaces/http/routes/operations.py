"""Operator's routes: counts, jobs, the audit."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query, Request, Response

from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.jobs import JobRun, SessionReport
from memgraph.model.remote import AuditReport, JobBoard, JobResult, Limit
from memgraph.model.values import Millis, Name, Value
from memgraph.operations.orchestrator import Orchestrator
from memgraph.rules.access import sees_everything
from memgraph.service.memory_service import MemoryService
from memgraph.service.sanitizer import below
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.access import Admin, Asking, Auditor, gate_of, lengthy_of, untimed
from memgraph.surfaces.http.envelope import answered

UNTIMED = [Depends(untimed)]

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["operating"])


class RunnableJob(StrEnum):
    """The jobs that can be run; ``consolidate`` is consolidation, decay and reflection."""

    ENRICHMENT = "enrichment"
    CONSOLIDATION = "consolidation"
    DECAY = "decay"
    REFLECTION = "reflection"
    VERIFICATION = "verification"
    CONSOLIDATE = "consolidate"


class RunOptions(Value):
    """The options of a run.

    Attributes:
        session_id: of a consolidation: of this session alone.
        now: as if this were the time.
        dry_run: of a consolidation: report what it would do, and write nothing.
    """

    session_id: Name | None = None
    now: Millis | None = None
    dry_run: bool = False


@router.get("/jobs", operation_id="list_jobs", response_model=JobBoard)
def jobs(request: Request, orc: Admin, limit: Annotated[Limit, Query()] = 50) -> Response:
    """Return when each job is due, and past runs, latest first."""
    runs = _outward(request, orc.jobs.list(limit=limit))
    return answered(JobBoard(plans=tuple(orc.jobs.plans()), runs=runs))


@router.post(
    "/jobs/{job}/run", operation_id="run_job", response_model=JobResult, dependencies=UNTIMED
)
def run(
    request: Request,
    orc: Admin,
    asking: Asking,
    job: RunnableJob,
    body: Annotated[RunOptions, Body(default_factory=RunOptions, openapi_examples=examples.RUN)],
) -> Response:
    """Run a job now, whatever its schedule; a failure is recorded in the run.

    The report of a dry run contains turns: it requires a key from which nothing is hidden.
    """
    if body.dry_run and not sees_everything(asking):
        raise AccessDenied("a dry run needs a key that may see everything", field="dry_run")
    with lengthy_of(request).one():
        if body.dry_run:
            return answered(
                JobResult(sessions=_rehearsed(gate_of(request).service, orc, job, body))
            )
        if job is RunnableJob.CONSOLIDATE and body.session_id is None:
            return answered(JobResult(runs=_outward(request, orc.jobs.maintain(now=body.now))))
        name = RunnableJob.CONSOLIDATION if job is RunnableJob.CONSOLIDATE else job
        ran = orc.jobs.run(name.value, session_id=body.session_id, now=body.now)
        return answered(JobResult(runs=_outward(request, [ran])))


@router.post("/verify", operation_id="verify", response_model=AuditReport, dependencies=UNTIMED)
def verify(request: Request, orc: Auditor) -> Response:
    """Audit the database and its journal; nothing is changed."""
    with lengthy_of(request).one():
        root = gate_of(request).service.root
        return answered(AuditReport.model_validate(below(orc.verify().as_dict(), root)))


def _outward(request: Request, runs: Iterable[JobRun]) -> tuple[JobRun, ...]:
    """Return runs with the paths in their reasons made relative."""
    root = gate_of(request).service.root
    return tuple(run.model_copy(update={"reason": below(run.reason, root)}) for run in runs)


def _rehearsed(
    service: MemoryService, orc: Orchestrator, job: RunnableJob, body: RunOptions
) -> tuple[SessionReport, ...]:
    if job not in (RunnableJob.CONSOLIDATION, RunnableJob.CONSOLIDATE):
        raise InvalidInput("dry_run is for a consolidation", field="dry_run")
    if body.now is None:
        return tuple(orc.jobs.consolidate(body.session_id, dry_run=True))
    with service.at(body.now) as then:
        handle = then.orchestrator(orc.name, viewer=orc.viewer, actor=orc.actor)
        return tuple(handle.jobs.consolidate(body.session_id, dry_run=True))
