"""The worker does the background work of every orchestrator under a root.

Several workers may share a root, in one process or in many: each job of an orchestrator has one
runner at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memgraph.errors import Conflict, DatabaseUnreachable, JobFailed, MemgraphError, StorageError
from memgraph.model.enums import JobName
from memgraph.model.jobs import STOPPED, JobRun
from memgraph.paths import Stamp
from memgraph.service import job_runs as jobs, pool
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import embeddings, jobs as jobs_rows, sessions

if TYPE_CHECKING:
    from memgraph.service.memory_service import Location, MemoryService

POLL_S = 2.0
"""Seconds after which a change of a file by another process is noticed."""
TICK_S = 0.25
"""Seconds after which a change on a watched server, or the request to stop, is noticed."""
AT_ONCE_MS = 1_000
REVISIT_MS = 60_000
"""Milliseconds after which an orchestrator with an error or a postponed embedding is visited."""
LOOK_MS = 3_600_000
"""Milliseconds after which an unchanged orchestrator is visited again."""
SHARE_S = 5.0
"""Seconds of background work after which the other orchestrators get their turn."""
SESSIONS_AT_ONCE = 8
"""The maximum number of sessions processed before the other orchestrators get their turn."""


@dataclass(slots=True)
class _Visited:
    """The worker's record of an orchestrator at its last visit."""

    place: Location | None = None
    stamp: Stamp | None = ()
    visited_ms: int = 0
    again_ms: int = 0
    error: str | None = None
    # The completed sessions that were processed here, each with the time at which it ended.
    sessions: set[tuple[str, int]] = field(default_factory=set)


class Worker:
    """Runs due jobs, consolidates ended sessions and embeds, one orchestrator after another.

    ``run`` works in the calling thread; a context manager works in its own thread.

    Args:
        names: the orchestrators to serve; none: all, including new ones.
        ran: called with the orchestrator's name and the run when a run has ended.
        failed: called with the orchestrator's name and the error when it cannot be processed; once
            per kind of error.
    """

    def __init__(
        self,
        service: MemoryService,
        *,
        names: Sequence[str] = (),
        ran: Callable[[str, JobRun], None] = lambda _name, _run: None,
        failed: Callable[[str, MemgraphError], None] = lambda _name, _error: None,
    ) -> None:
        self._service = service
        self._names = names
        self._ran = ran
        self._failed = failed
        self._seen: dict[str, _Visited] = {}
        self._stopping = False
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Work until ``stop`` is called, and return after the current batch."""
        while not self._stopping:
            self.once()
            self._sleep()

    def once(self) -> None:
        """Visit every orchestrator once, and do the work that is due."""
        names = self._names or self._service.names_known(self._seen)
        for removed in set(self._seen) - set(names):
            del self._seen[removed]
            self._service.forget(removed)
        for name in names:
            if self._stopping:
                return
            self._look_at(name)

    def stop(self) -> None:
        """Stop after the current batch; may be called in a signal handler."""
        self._stopping = True

    def __enter__(self) -> Worker:
        self._thread = threading.Thread(target=self.run, name="memgraph-worker", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def _sleep(self) -> None:
        """Wait until the next visit or round is due, a server has a change, or it is stopped."""
        next_ms = min((state.again_ms for state in self._seen.values()), default=None)
        pause_s = POLL_S
        if next_ms is not None:
            pause_s = min(pause_s, max((next_ms - self._service.clock.now_ms()) / 1000, 0.01))
        until = time.monotonic() + pause_s
        # No event: setting one in a signal handler may wait for the very thread that it interrupts.
        while not self._stopping and (remaining_s := until - time.monotonic()) > 0:
            time.sleep(min(remaining_s, TICK_S))
            if self._service.stores.look():
                return

    def _look_at(self, name: str) -> None:
        state, now_ms = self._seen.setdefault(name, _Visited()), self._service.clock.now_ms()
        # A time before the last visit means that the clock was set back: visit at once.
        is_due = not state.visited_ms <= now_ms < state.again_ms
        try:
            place = self._service.located(name)
            if state.place is None or state.place.settings != place.settings:
                # Reopen it, because an open orchestrator keeps its settings.
                is_due = True
                self._service.forget(name)
            state.place = place
            self._service.stores.watch(place.url)
            stamp = place.store.stamp()
            if is_due or stamp != state.stamp:
                # The stamp from before the visit, so that a change during it is noticed.
                state.stamp = stamp
                self._visit(name, state)
                state.error = None
        # An unexpected error in one orchestrator is reported and logged, and does not affect the
        # others.
        except Exception as error:  # noqa: BLE001 - the other orchestrators must get their turn
            self._report(name, state, error)

    def _report(self, name: str, state: _Visited, error: Exception) -> None:
        state.visited_ms = self._service.clock.now_ms()
        state.again_ms = state.visited_ms + REVISIT_MS
        if isinstance(error, DatabaseUnreachable) and state.place is not None:
            self._service.stores.missed(state.place.url, error)
        if isinstance(error, MemgraphError):
            reported = error
        elif isinstance(error, OSError):
            reported = StorageError(f"{name} cannot be worked on: {error.strerror}")
        else:
            reported = JobFailed(f"{name} cannot be worked on: {type(error).__name__}")
            self._service.log_of(name).failure("worker", error)
        if state.error != reported.code:
            state.error = reported.code
            self._failed(name, reported)

    def _visit(self, name: str, state: _Visited) -> None:
        with self._service.opened(name) as opened:
            jobs.close_left(opened)
            for plan in jobs.plans(opened):
                if plan.overdue_since is not None and not self._stopping:
                    how = {"trigger": "schedule", "due_at": plan.overdue_since}
                    self._run(name, opened, plan.job, **how)
            more = self._consolidate(name, opened, state)
            until = time.monotonic() + SHARE_S
            while (left := opened.background.once(self._is_stopping)) and time.monotonic() < until:
                pass
            more |= left
            state.visited_ms = opened.clock.now_ms()
            state.again_ms = state.visited_ms if more else self._again(opened, state.visited_ms)
        if len(self._seen) > pool.MAX_OPEN:
            # It would soon be closed to make room for another, which changes its files.
            self._service.forget(name)

    def _consolidate(self, name: str, opened: OpenOrchestrator, state: _Visited) -> bool:
        """Consolidate completed sessions; return True when there are more to consolidate now.

        A session whose run failed is left to the nightly job.
        """
        with opened.database.read() as snapshot:
            completed = sessions.completed(snapshot).items()
        state.sessions &= completed
        waiting = [session for session in completed if session not in state.sessions]
        for session in waiting[:SESSIONS_AT_ONCE]:
            if self._stopping:
                break
            job = JobName.CONSOLIDATION
            ended = self._run(name, opened, job, trigger="event", session_id=session[0])
            if ended is None:
                # Another worker consolidates; the end of its run is noticed as a change.
                return False
            if ended.error_code != STOPPED:
                state.sessions.add(session)
        return len(waiting) > SESSIONS_AT_ONCE

    def _again(self, opened: OpenOrchestrator, now_ms: int) -> int:
        """Return the time of the next visit if nothing changes until then, in milliseconds."""
        latest = now_ms + LOOK_MS
        times = [plan.next_due_at or latest for plan in jobs.plans(opened)]
        with opened.database.read() as snapshot:
            # The runner of a job may die, and an expiring lease changes no stamp.
            if jobs_rows.is_any_running(snapshot) or embeddings.has_pending(snapshot):
                times.append(now_ms + REVISIT_MS)
        return max(min(latest, *times), now_ms + AT_ONCE_MS)

    def _run(
        self, name: str, opened: OpenOrchestrator, job: JobName, **options: Any
    ) -> JobRun | None:
        """Run a job and return its run; None if another worker is running it or has done so."""
        try:
            ended = jobs.run(opened, job, stop=self._is_stopping, **options)
        except Conflict:
            return None
        self._ran(name, ended)
        return ended

    def _is_stopping(self) -> bool:
        return self._stopping
