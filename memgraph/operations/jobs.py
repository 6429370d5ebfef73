"""Background jobs: list past runs, show what is due, and run a job now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.access import Permission
from memgraph.model.enums import JobName
from memgraph.model.jobs import JobPlan, JobRun
from memgraph.model.operation import F, Progress, WireFormat, local, operation, untold
from memgraph.model.remote import JobRuns, Limit as PageLimit
from memgraph.model.values import Name, one_of
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.consolidation.ports import Extractor
    from memgraph.operations.life.consolidation import SessionReport
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.visibility import View


Stop = Callable[[], bool]


class Jobs(Handle[F], group="jobs", tag="operating"):
    """Background jobs: ``orc.jobs``."""

    @operation(
        Permission.ADMIN,
        "GET /jobs",
        id="list_jobs",
        answer=JobRuns,
        command="jobs",
    )
    def list(self, *, limit: PageLimit = 50) -> Sequence[JobRun]:
        """Return past runs, latest first; ``limit`` is 1..1000.

        A run for a session that this handle may not see is returned with its time and state only,
        and the places of rejected items only if this handle may see every memory.
        """
        from memgraph.store import jobs

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return jobs.as_seen(snapshot, self._view, jobs.latest(snapshot, limit))

    @operation(Permission.ADMIN, "GET /jobs/plans", id="list_job_plans", command="")
    def plans(self) -> Sequence[JobPlan]:
        """Return when each job is next due and whether it is overdue."""
        from memgraph.service import job_runs as jobs

        with self._service.opened(self.name) as opened:
            return jobs.plans(opened)

    @operation(
        Permission.ADMIN,
        "POST /jobs/{job}/run",
        id="run_job",
        slow=True,
        once=True,
        command="run",
    )
    def run(
        self,
        job: Annotated[JobName | str, WireFormat(JobName)],
        *,
        session_id: Name | None = None,
        progress: Progress = untold,
        stop: Stop = lambda: False,
    ) -> JobRun:
        """Run a job now, regardless of its schedule; return the record of the run.

        A failed job does not raise: see ``state`` and ``error_code`` of the run; the command exits
        with 1. A client does not repeat the call if the response is lost: see ``list``.

        Args:
            session_id: consolidate only this session, even if it has not been idle for long.
            progress: called with the name of the step, the amount done and the total.
            stop: checked between batches; finished batches are kept.

        Raises:
            Conflict: another process is running this job.
            InvalidInput: the job is unknown, or does not take a session.
            NotFound: the session does not exist, or none of its turns is visible.
        """
        from memgraph.service import job_runs as jobs

        job = one_of(JobName, job, "job")
        if session_id is not None and job is not JobName.CONSOLIDATION:
            raise InvalidInput("only the consolidation job takes a session", field="session_id")
        with self._service.opened(self.name) as opened:
            if session_id is not None:
                _require_session(opened, self._view, session_id)
            job_run = jobs.run(
                opened,
                job,
                session_id=session_id,
                actor=self.actor,
                progress=progress,
                stop=stop,
            )
            opened.background.wake()
        return job_run


class LocalJobs(Jobs[F]):
    """Jobs that run in this process."""

    @local
    def consolidate(
        self,
        session_id: str | None = None,
        *,
        extractor: Extractor | None = None,
        progress: Progress = untold,
        stop: Stop = lambda: False,
    ) -> Sequence[SessionReport]:
        """Extract facts from the turns that were not consolidated yet.

        A second call finds nothing to do.

        Args:
            session_id: only this session, even if it goes on; None: all sessions that have ended
                or have been idle for long.
            extractor: None: the language model of ``memory.llm``, or else the rules.
            progress: called with the name of the step, the amount done and the total.
            stop: checked before each page; pages already written are kept.

        Returns:
            A report for each session. Facts and edges that this handle may not see are processed
            but not reported.

        Raises:
            NotFound: the session does not exist, or none of its turns is visible.
            StorageError: pages already written are kept.
        """
        from memgraph.operations.life.consolidation import Consolidator

        reports: list[SessionReport] = []
        with self._service.opened(self.name) as opened:
            run = Consolidator(opened, self.actor, extractor, progress=progress, stop=stop)
            if session_id is None:
                run.pending(reports.append)
            else:
                _require_session(opened, self._view, session_id)
                reports.append(run.session(session_id))
            visible_reports = [self._as_seen(opened, report) for report in reports]
            opened.background.wake()
        return visible_reports

    def _as_seen(self, opened: OpenOrchestrator, report: SessionReport) -> SessionReport:
        """Return the report without facts from invisible turns and without their edges."""
        from memgraph.store import memories

        turn_ids = {item for fact in report.facts for item in fact.evidence}
        with opened.database.read() as snapshot:
            visible_ids = memories.existing_ids(snapshot, sorted(turn_ids), self._view)
        facts = [fact for fact in report.facts if visible_ids.issuperset(fact.evidence)]
        if len(facts) == len(report.facts):
            return report
        hidden = {fact.memory_id for fact in report.facts if fact not in facts}
        edges = [edge for edge in report.edges if not {edge.from_id, edge.to_id} & hidden]
        return replace(report, facts=facts, edges=edges)


def _require_session(opened: OpenOrchestrator, view: View, session_id: str) -> None:
    from memgraph.store import sessions

    with opened.database.read() as snapshot:
        if sessions.visible(snapshot, view, session_id) is None:
            raise NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])
