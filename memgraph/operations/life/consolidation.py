"""Consolidate sessions: extract facts from turns, one page at a time.

Reading, extracting and writing are separate: no transaction is open while an extractor works, and
one transaction holds all that a page writes. A killed run leaves a page done or not done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from memgraph.consolidation.labels import LabelExtractor
from memgraph.consolidation.ports import Extractor, PageUnread
from memgraph.errors import NotFound, ProviderError
from memgraph.model.enums import EdgeType, JobState
from memgraph.model.jobs import MAX_REJECTED_KEPT, JobReport, RejectedItem, rejected_count
from memgraph.model.operation import Progress, untold
from memgraph.operations.life.models import chosen_extractor
from memgraph.operations.life.pages import (
    PageChanged,
    PageReport,
    PageTurns,
    StoreChanged,
    match_all,
    propose,
    read_page,
    write_page,
)
from memgraph.providers.usage import ModelUsage, usage_tally
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import sessions as queries

ACTOR = "consolidation"
"""The actor of the background job that extracts facts from turns."""
PART = "sessions"
PAGE_TURNS = 30
"""The number of turns that are processed at once."""
IDLE_MS = 30 * 60 * 1_000
"""A session whose last turn is more recent is not over."""
# After this many concurrent changes a page is left to a later run.
MAX_ATTEMPTS = 5
MAX_MOVES = 50
MAX_FAILURES = 3
# Recalls go first: before each page, wait this long for running recalls to end.
PATIENCE_S = 2.0

BUDGET = "budget"
STOPPED = "stopped"
UNREAD = "unread"
CONTENDED = "contended"


@dataclass(slots=True, kw_only=True)
class SessionReport(PageReport):
    """The outcome of consolidating a session: what was read and written of all its pages.

    Attributes:
        extractor: the name of the extractor that proposed the facts.
        calls, tokens: the use of the language model.
        reason: why some turns remain for a later run; None: all were read.
        error_code: the error because of which they remain.
    """

    session_id: str
    extractor: str
    pages: int = 0
    calls: int = 0
    tokens: int = 0
    reason: str | None = None
    error_code: str | None = None

    @property
    def state(self) -> Literal["consolidated", "unchanged", "pending"]:
        """``pending``: some turns remain; ``unchanged``: there were no new ones."""
        if self.reason is not None:
            return "pending"
        return "consolidated" if self.pages else "unchanged"

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts that a job sums over its sessions."""
        outcomes = [fact.outcome for fact in self.facts]
        kinds = [edge.edge_type for edge in self.edges]
        return {
            "pages": self.pages,
            "turns": self.turns,
            "echoes": self.echoes,
            "facts": outcomes.count("stored"),
            "strengthened": outcomes.count("strengthened"),
            "contradictions": kinds.count(EdgeType.CONTRADICTS),
            "updates": kinds.count(EdgeType.UPDATES),
            "replaced": len(self.replaced),
            "calls": self.calls,
            "tokens": self.tokens,
            "rejected": rejected_count(self.rejected),
        }

    def as_job(self) -> JobReport:
        """Return the report of a job that was for this session alone."""
        report = JobReport.done(self.counts, self.rejected, reason=self.reason or self.state)
        state = JobState.SKIPPED if self.state == "unchanged" else JobState.DONE
        if self.error_code is not None:
            state = JobState.FAILED
        return report.model_copy(update={"state": state, "error_code": self.error_code})


def consolidate(
    opened: OpenOrchestrator,
    session_id: str | None = None,
    *,
    now_ms: int,
    actor: str,
    progress: Progress,
    stop: Callable[[], bool],
) -> JobReport:
    """Run the job: consolidate one session, or all that are over; then write summaries of entities.

    If the model fails at the summaries, the consolidation is done: the report has the error as its
    reason, and the next run writes what is missing.
    """
    run = Consolidator(opened, actor, None, now_ms, progress, stop)
    if session_id is not None:
        return run.session(session_id).as_job()
    report = run.pending()
    if report.state is not JobState.DONE or report.reason is not None:
        return report
    from memgraph.operations.life.summaries import write_summaries

    after = write_summaries(opened, now_ms=now_ms, progress=progress, stop=stop)
    if after is None:
        return report
    if after.error_code is not None:
        opened.log.warning("profiles.unwritten", code=after.error_code)
    counts = {**after.counts, **report.counts}
    return report.model_copy(update={"counts": counts, "reason": after.error_code})


@dataclass
class Consolidator:
    """Reads the new turns of sessions, and stores the facts in them.

    Args:
        extractor: None: as configured in the settings.
        now_ms: the time as of which the store is read; None: now.
        progress: called with ``turns`` and the number of turns done, twice; over many sessions
            with ``sessions``, the number done and their total.
        stop: checked before each page and between the groups of a page; what was written until
            then stays.
    """

    opened: OpenOrchestrator
    actor: str = ACTOR
    extractor: Extractor | None = None
    now_ms: int | None = None
    progress: Progress = untold
    stop: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self._at = self.opened.clock.now_ms() if self.now_ms is None else self.now_ms
        self._extractor = self.extractor or chosen_extractor(self.opened.llm)
        self._is_model = self._extractor.name != LabelExtractor.name
        self._usage = ModelUsage()

    def _reopen_labelled(self) -> None:
        """Let the configured model read, once, what was consolidated while there was none."""
        if self.extractor is not None or not self._is_model:
            return
        with self.opened.database.read() as snapshot:
            if not queries.has_labelled(snapshot):
                return
        with self.opened.database.write() as transaction:
            queries.reopen_labelled(transaction)

    def pending(
        self, on_session: Callable[[SessionReport], None] = lambda _report: None
    ) -> JobReport:
        """Consolidate every session that is over, or silent for ``IDLE_MS``.

        Args:
            on_session: called with each session's report; the reports are not kept.

        Returns:
            Counts over all sessions. After 200 calls the rest stays pending and ``reason``
            is ``budget``. Sessions that other processes kept changing stay pending too, counted as
            ``contended``, which is the ``reason`` of a run that otherwise succeeded. A session at
            which a model fails stays pending and the run failed; others go on, unless
            ``MAX_FAILURES`` fail in a row. What was done stays.

        Raises:
            StorageError: sessions already consolidated stay consolidated.
        """
        self._reopen_labelled()
        with self.opened.database.read() as snapshot:
            waiting = queries.ended_sessions(snapshot, self._at - IDLE_MS)
        totals: Counter[str] = Counter(sessions=0, contended=0, waiting=len(waiting))
        rejected: list[RejectedItem] = []
        error_code = reason = None
        failures = 0
        for done, session_id in enumerate(waiting, start=1):
            if self.stop():
                reason = reason or STOPPED
                break
            report = self._session(session_id)
            on_session(report)
            totals.update(report.counts)
            totals["sessions"] += report.state == "consolidated"
            totals["contended"] += report.reason == CONTENDED
            rejected += report.rejected[: MAX_REJECTED_KEPT - len(rejected)]
            self.progress(PART, done, len(waiting))
            # One failure may be due to the session; several in a row mean that the model is down.
            failures = failures + 1 if report.error_code is not None else 0
            is_over = report.reason in (BUDGET, STOPPED)
            # The first error is reported, whatever ends the run.
            if error_code is None and (is_over or report.error_code is not None):
                error_code, reason = report.error_code, report.reason
            if is_over or failures >= MAX_FAILURES:
                break
        if reason is None and totals["contended"]:
            reason = CONTENDED
        result = JobReport.done(dict(totals), rejected, reason=reason)
        if error_code is None:
            return result
        return result.model_copy(update={"state": JobState.FAILED, "error_code": error_code})

    def session(self, session_id: str) -> SessionReport:
        """Consolidate one session, even if it goes on.

        Raises:
            NotFound: no turn of this session was ever stored.
            StorageError: pages already written are kept.
        """
        self._reopen_labelled()
        return self._session(session_id, self.progress)

    def _session(
        self,
        session_id: str,
        progress: Progress = untold,
    ) -> SessionReport:
        if self._is_model and self.opened.other_model is None:
            # What a page may touch is found by its vectors, too.
            self.opened.worker.drain(stop=self.stop)
        report = SessionReport(session_id=session_id, extractor=self._extractor.name)
        moved = 0
        while report.reason is None:
            page = self._read(session_id)
            if not page.turns and page.state.consolidated_at is not None:
                break
            if self.stop():
                report.reason = STOPPED
            elif page.turns and self._usage.ends_run:
                report.reason = BUDGET
            else:
                self.opened.recalls.wait(PATIENCE_S)
                try:
                    is_last = self._page(page, report)
                except PageChanged:
                    moved += 1
                    if moved >= MAX_MOVES:
                        report.reason = CONTENDED
                    continue
                except ProviderError as error:
                    report.reason, report.error_code = error.message, error.code
                    break
                progress("turns", report.turns, report.turns)
                if is_last:
                    break
                moved = 0
        return report

    def _read(self, session_id: str) -> PageTurns:
        with self.opened.database.read() as snapshot:
            state = queries.session_state(snapshot, session_id)
            if state is None:
                raise NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])
            return read_page(snapshot, state, PAGE_TURNS)

    def _page(self, page: PageTurns, report: SessionReport) -> bool:
        """Process one page, and match it again when memory changes; return True for the last one.

        If it stays pending, the report has the reason.
        """
        with usage_tally() as usage:
            try:
                work = propose(
                    self.opened,
                    self._extractor,
                    page,
                    self._at,
                    lambda: self._ended(usage) is not None,
                )
            except PageUnread:
                report.reason = self._ended(usage) or UNREAD
                return False
            finally:
                # If the page is lost, its cost is reported.
                self._usage.add(usage)
                report.calls += usage.calls
                report.tokens += usage.tokens
        for _ in range(MAX_ATTEMPTS):
            match_all(self.opened, work, self._at)
            try:
                done, is_last = write_page(self.opened, page, work, actor=self.actor)
            except StoreChanged:
                continue
            report.pages += 1
            report.add(done)
            return is_last
        report.reason = CONTENDED
        return False

    def _ended(self, usage: ModelUsage) -> str | None:
        """Return why the run reads no more, after ``usage`` for the current page; None: it does."""
        if self.stop():
            return STOPPED
        used = replace(self._usage)
        used.add(usage)
        return BUDGET if used.ends_run else None
