"""The jobs of an orchestrator through a handle: past runs, the schedule, and manual runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import JobName
from memgraph.model.jobs import JobPlan, JobRun
from memgraph.service.handle import Handle
from memgraph.store import jobs as jobs_rows
from memgraph.store import sessions

if TYPE_CHECKING:
    from memgraph.service.life.jobs import Asked
    from memgraph.service.opened import Opened

MAX_RUNS = 1_000
MAINTENANCE = (JobName.CONSOLIDATION, JobName.DECAY, JobName.REFLECTION)
"""The jobs that ``maintain`` runs, in this order."""

Time = str | int | datetime
Told = Callable[[str, int, int], None]
Stop = Callable[[], bool]


class JobsHandle(Handle):
    """The part of ``Orchestrator`` for background jobs."""

    def jobs(self, *, limit: int = 50) -> Sequence[JobRun]:
        """Return past runs, latest first; ``limit`` is 1..1000.

        Of a run about a session that this handle may not see, only its time and state are returned.
        """
        from memgraph.service.seen_runs import as_seen

        if not 1 <= limit <= MAX_RUNS:
            raise InvalidInput(f"limit is 1 to {MAX_RUNS}", field="limit")
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return [
                as_seen(snapshot, self._view, each) for each in jobs_rows.latest(snapshot, limit)
            ]

    def job_plans(self) -> Sequence[JobPlan]:
        """Return when each job is next due, and what is overdue."""
        from memgraph.service.life import agenda

        with self._service.opened(self.name) as opened:
            return [agenda.plan(opened, job, opened.clock.now_ms()) for job in JobName]

    def run(
        self,
        job: JobName | str,
        *,
        session_id: str | None = None,
        now: Time | None = None,
        progress: Told = lambda _part, _done, _total: None,
        stop: Stop = lambda: False,
    ) -> JobRun:
        """Run a job now, whatever its schedule; return the record of the run.

        A job that fails raises nothing: see ``state`` and ``error_code`` of the run.

        Args:
            session_id: of a consolidation: only this session, even if it was not long idle.
            now: run as if this were the time; the lease still uses the wall clock.
            progress: called with the step, how much of it is done, and how much there is.
            stop: checked between batches; what was done until then stays.

        Raises:
            Conflict: another process is running this job.
            InvalidInput: no such job, or a session for a job that takes none.
            NotFound: no such session, or none of its turns is visible.
        """
        from memgraph.service.life import jobs

        wanted = _job(job)
        if session_id is None:
            asked = jobs.of_job(wanted, actor=self.actor)
        elif wanted is JobName.CONSOLIDATION:
            asked = jobs.of_session(session_id, actor=self.actor)
        else:
            raise InvalidInput("only a consolidation is of one session", field="session_id")
        return self._run(asked, now, progress, stop)

    def maintain(
        self,
        *,
        now: Time | None = None,
        progress: Told = lambda _part, _done, _total: None,
        stop: Stop = lambda: False,
    ) -> Sequence[JobRun]:
        """Run consolidation, decay and reflection in turn; stop at one that fails.

        Raises:
            Conflict: another process is running one of them.
        """
        ended: list[JobRun] = []
        for job in MAINTENANCE:
            ended.append(self.run(job, now=now, progress=progress, stop=stop))
            if ended[-1].failed or stop():
                break
        return ended

    @contextmanager
    def _then(self, now: Time | None) -> Iterator[Opened]:
        """Yield the open orchestrator, with its clock at a time if one is given."""
        if now is None:
            with self._service.opened(self.name) as opened:
                yield opened
            return
        # The other service has books of its own: what this one knows is written down first.
        with self._service.opened(self.name) as opened:
            opened.receipts.flush()
        # What is written bears that time too, so everything about it has the clock stand there.
        with self._service.at(parse_time(now)) as then, then.opened(self.name) as opened:
            opened.upkeep.removes = False
            yield opened

    def _run(self, asked: Asked, now: Time | None, progress: Told, stop: Stop) -> JobRun:
        from memgraph.service.life import jobs

        with self._then(now) as opened:
            if asked.session_id is not None:
                self._require_session(opened, asked.session_id)
            ended = jobs.run(opened, asked, jobs.Reins(progress=progress, stop=stop))
            self._embed_soon(opened)
        return ended

    def _require_session(self, opened: Opened, session_id: str) -> None:
        with opened.database.read() as snapshot:
            if sessions.visible(snapshot, self._view, session_id) is None:
                raise NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])


def _job(name: JobName | str) -> JobName:
    try:
        return JobName(name)
    except ValueError:
        raise InvalidInput(f"a job is one of {', '.join(JobName)}", field="job") from None
