"""The worker does the background work of every orchestrator under a root.

Several workers may share a root, in one process or in many: each job of an orchestrator has one
runner at a time.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memgraph.errors import Conflict, DatabaseUnreachable, JobFailed, MemgraphError, StorageError
from memgraph.model.enums import JobName
from memgraph.model.jobs import STOPPED, JobPlan, JobRun
from memgraph.paths import Stamp, orchestrator_names
from memgraph.service import job_runs as jobs, pool
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import embeddings, jobs as jobs_rows, sessions

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService

POLL_S = 2.0
"""Seconds after which a change of a file by another process is noticed."""
TICK_S = 0.25
"""Seconds after which a change on a watched server is noticed."""
AT_ONCE_MS = 1_000
REVISIT_MS = 60_000
"""Milliseconds after which an orchestrator with an error or a postponed embedding is visited."""
LOOK_MS = 3_600_000
"""Milliseconds after which an unchanged orchestrator is visited again."""
EMBEDDED_AT_ONCE = 2_000
"""The maximum number of memories embedded before the other orchestrators get their turn."""
COMPARED_AT_ONCE = 100
"""The maximum number of memories compared before the other orchestrators get their turn."""
SESSIONS_AT_ONCE = 8
"""The maximum number of sessions processed before the other orchestrators get their turn."""


@dataclass(slots=True)
class _Visited:
    """The worker's record of an orchestrator at its last visit."""

    settings: Stamp = ()
    url: str = ""
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
        names: the orchestrators to serve; None: all, including new ones.
        ran: called with the orchestrator's name and the run when a run has ended.
        failed: called with the orchestrator's name and the error when it cannot be processed, or
            its job met an unexpected error; once per kind of error.
    """

    def __init__(
        self,
        service: MemoryService,
        *,
        names: Sequence[str] | None = None,
        ran: Callable[[str, JobRun], None] = lambda _name, _run: None,
        failed: Callable[[str, MemgraphError], None] = lambda _name, _error: None,
    ) -> None:
        self._service = service
        self._names = None if names is None else tuple(names)
        self._ran = ran
        self._failed = failed
        self._seen: dict[str, _Visited] = {}
        self._crowd = 0
        self._stopping = False
        # A SimpleQueue, because its ``put`` is safe in a signal handler; Event.set is not.
        self._stops: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Work until ``stop`` is called, and return after the current batch."""
        while not self._stopping:
            self.once()
            self._sleep()

    def once(self) -> None:
        """Visit every orchestrator once, and do the work that is due."""
        names = self._present() if self._names is None else self._names
        self._crowd = len(names)
        for removed in set(self._seen) - set(names):
            del self._seen[removed]
            self._service.forget(removed)
        for name in names:
            if self._stopping:
                return
            self._look_at(name)

    def _present(self) -> Sequence[str]:
        # Each orchestrator that cannot be read reports its own error.
        with suppress(OSError, StorageError):
            if not self._service.stores.is_any_away:
                return self._service.orchestrators()
        # If one server is unreachable, continue with the orchestrators known so far.
        with suppress(OSError):
            return sorted({*self._seen, *orchestrator_names(self._service.root)})
        return list(self._seen)

    def stop(self) -> None:
        """Stop after the current batch; may be called in a signal handler."""
        self._stopping = True
        self._stops.put(None)

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
        while not self._stopping and (remaining_s := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                self._stops.get(timeout=min(remaining_s, TICK_S))
            if self._service.stores.look():
                return

    def _look_at(self, name: str) -> None:
        state, now_ms = self._seen.setdefault(name, _Visited()), self._service.clock.now_ms()
        # A time before the last visit means that the clock was set back: visit at once.
        is_due = not state.visited_ms <= now_ms < state.again_ms
        try:
            located = self._service.located(name)
            if state.settings != located.settings:
                # Reopen it, because an open orchestrator keeps its settings.
                state.settings, is_due = located.settings, True
                self._service.forget(name)
            state.url = located.url
            self._service.stores.watch(state.url)
            stamp = located.store.stamp()
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
        if isinstance(error, DatabaseUnreachable):
            state.again_ms = self._service.stores.missed(state.url, error)
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
            for job in JobName:
                due_at = self._plan(opened, job).overdue_since
                if due_at is not None and not self._stopping:
                    self._run(name, opened, job, trigger="schedule", due_at=due_at)
            more = self._consolidate(name, opened, state)
            drained = opened.worker.drain(limit=EMBEDDED_AT_ONCE, stop=self._is_stopping)
            more |= drained.error_code is None and drained.ready >= EMBEDDED_AT_ONCE
            compared = opened.comparer.drain(limit=COMPARED_AT_ONCE, stop=self._is_stopping)
            done = max(compared.compared, compared.judged)
            more |= compared.error_code is None and done >= COMPARED_AT_ONCE
            opened.receipts.flush_in_steps(self._is_stopping)
            state.visited_ms = opened.clock.now_ms()
            state.again_ms = state.visited_ms if more else self._again(opened, state.visited_ms)
        if self._crowd > pool.MAX_OPEN:
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
        times = [self._plan(opened, job).next_due_at or latest for job in JobName]
        with opened.database.read() as snapshot:
            # The runner of a job may die, and an expiring lease changes no stamp.
            if jobs_rows.is_any_running(snapshot) or embeddings.has_pending(snapshot):
                times.append(now_ms + REVISIT_MS)
        return max(min(latest, *times), now_ms + AT_ONCE_MS)

    def _plan(self, opened: OpenOrchestrator, job: JobName) -> JobPlan:
        with opened.database.read() as snapshot:
            return jobs.plan(snapshot, opened.settings.memory.schedule, job, opened.clock.now_ms())

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
