"""Consolidate sessions: extract facts from turns, one page at a time.

Reading, extracting and writing are separate: no transaction is open while an extractor works, and
one transaction holds all that a page writes. A killed run leaves a page done or not done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from memgraph.consolidation.labels import LabelExtractor
from memgraph.consolidation.ports import Extractor, PageUnread
from memgraph.errors import MemgraphError, NotFound, ProviderError
from memgraph.model.jobs import MAX_REJECTED_KEPT, JobReport, RejectedItem, SessionReport
from memgraph.operations.life.models import chosen_extractor
from memgraph.operations.life.pages import (
    PageChanged,
    PageResult,
    PageTurns,
    PageWork,
    StoreChanged,
    match_all,
    preview,
    propose,
    read_page,
    write_page,
)
from memgraph.providers.usage import ModelUsage, usage_tally
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import sessions as queries
from memgraph.store.sessions import Consolidation

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


def consolidate_session(
    opened: OpenOrchestrator,
    session_id: str,
    *,
    actor: str = ACTOR,
    extractor: Extractor | None = None,
    dry_run: bool = False,
    now_ms: int | None = None,
    progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> SessionReport:
    """Read the new turns of a session, and store the facts in them.

    Args:
        extractor: None: as configured in the settings.
        dry_run: do the same work and write nothing.
        now_ms: the time as of which the store is read; None: now.
        progress: called with ``turns``, the number of turns done and their total.
        stop: checked before each page and between the groups of a page; what was written until
            then stays.

    Raises:
        NotFound: no turn of this session was ever stored.
        StorageError: pages already written are kept.
    """
    at = opened.clock.now_ms() if now_ms is None else now_ms
    extractor = extractor or chosen_extractor(opened.llm)
    run = _Run(opened, actor, extractor, dry_run, at, stop, progress)
    run.reopen_labelled()
    return run.session(session_id)


def consolidate_pending(
    opened: OpenOrchestrator,
    *,
    now_ms: int | None = None,
    actor: str = ACTOR,
    extractor: Extractor | None = None,
    dry_run: bool = False,
    progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
    on_session: Callable[[SessionReport], None] = lambda _report: None,
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
    at = opened.clock.now_ms() if now_ms is None else now_ms
    extractor = extractor or chosen_extractor(opened.llm)
    run = _Run(opened, actor, extractor, dry_run, at, stop=stop)
    run.reopen_labelled()
    with opened.database.read() as snapshot:
        waiting = queries.ended_sessions(snapshot, at - IDLE_MS)
    totals: Counter[str] = Counter(sessions=0, contended=0, waiting=len(waiting))
    rejected: list[RejectedItem] = []
    ended: SessionReport | None = None
    failures = 0
    for done, session_id in enumerate(waiting):
        if stop():
            break
        report = run.session(session_id)
        on_session(report)
        totals.update(report.counts)
        totals["sessions"] += report.state == "consolidated"
        rejected += report.rejected[: MAX_REJECTED_KEPT - len(rejected)]
        progress(PART, done + 1, len(waiting))
        # A single failure may be due to the session; several in a row mean that the model is down.
        failures = failures + 1 if report.error_code is not None else 0
        totals["contended"] += report.reason == CONTENDED
        if report.reason in (BUDGET, STOPPED) or report.error_code is not None:
            ended = ended if ended is not None and ended.error_code is not None else report
        if report.reason in (BUDGET, STOPPED) or failures >= MAX_FAILURES:
            break
    return _job_report(dict(totals), rejected, ended, stopped=stop())


def _job_report(
    counts: dict[str, int],
    rejected: list[RejectedItem],
    ended: SessionReport | None,
    *,
    stopped: bool,
) -> JobReport:
    if ended is not None and ended.error_code is not None:
        error = MemgraphError(ended.reason or "")
        failed = JobReport.failed(error, counts, rejected)
        return failed.model_copy(update={"error_code": ended.error_code})
    report = JobReport.done(counts, rejected)
    if ended is not None or stopped:
        reason = STOPPED if ended is None else ended.reason
        return report.model_copy(update={"reason": reason})
    if counts["contended"]:
        return report.model_copy(update={"reason": CONTENDED})
    return report


@dataclass(slots=True)
class _Notes:
    pages: int = 0
    work: Counter[str] = field(default_factory=Counter)
    done: PageResult = field(default_factory=PageResult)
    reason: str | None = None
    error_code: str | None = None

    def add(self, work: PageWork, done: PageResult) -> None:
        self.pages += 1
        self.done.facts += done.facts
        self.done.edges += done.edges
        self.done.replaced += done.replaced
        self.done.rejected += done.rejected
        self.done.last = done.last
        self.work.update(turns=work.turns, echoes=work.echoes)


@dataclass
class _Run:
    opened: OpenOrchestrator
    actor: str
    extractor: Extractor
    dry_run: bool
    now_ms: int
    stop: Callable[[], bool]
    progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None
    usage: ModelUsage = field(default_factory=ModelUsage)

    @property
    def by_model(self) -> bool:
        """False if the extractor reads only labelled sentences."""
        return self.extractor.name != LabelExtractor.name

    def reopen_labelled(self) -> None:
        """Let a model read, once, what was consolidated while there was none; not on a dry run."""
        if self.dry_run or not self.by_model:
            return
        with self.opened.database.read() as snapshot:
            if not queries.has_labelled(snapshot):
                return
        with self.opened.database.write() as transaction:
            queries.reopen_labelled(transaction)

    def session(self, session_id: str) -> SessionReport:
        if self.by_model and self.opened.other_model is None:
            # What a page may touch is found by its vectors, too.
            self.opened.worker.drain(stop=self.stop)
        notes = _Notes()
        cursor: Consolidation | None = None
        moved = 0
        while True:
            page = self._read(session_id, cursor)
            if not page.turns and (page.state.consolidated_at is not None or self.dry_run):
                notes.done.last = notes.done.last or notes.pages > 0
                break
            if self.stop():
                notes.reason = STOPPED
                break
            if page.turns and self.usage.ends_run:
                notes.reason = BUDGET
                break
            self.opened.recalls.wait(PATIENCE_S)
            try:
                done = self._page(page, notes)
            except PageChanged:
                moved += 1
                if moved >= MAX_MOVES:
                    notes.reason = CONTENDED
                    break
                continue
            except ProviderError as error:
                notes.reason, notes.error_code = error.message, error.code
                break
            if done is None or done.last:
                break
            last = page.turns[-1]
            cursor = page.state._replace(through=last.memory_id, through_pk=last.pk)
            moved = 0
        return self._report(session_id, notes)

    def _read(self, session_id: str, cursor: Consolidation | None) -> PageTurns:
        with self.opened.database.read() as snapshot:
            state = queries.session_state(snapshot, session_id)
            if state is None:
                raise NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])
            if cursor is not None and self.dry_run:
                state = cursor
            return read_page(snapshot, state, PAGE_TURNS)

    def _page(self, page: PageTurns, notes: _Notes) -> PageResult | None:
        """Process one page, and match it again when memory changes; None if it stays pending."""
        with usage_tally() as usage:
            try:
                work = propose(
                    self.opened,
                    self.extractor,
                    page,
                    self.now_ms,
                    lambda: self._ended(usage) is not None,
                )
            except PageUnread:
                notes.reason = self._ended(usage) or UNREAD
                return None
            finally:
                # If the page is lost, its cost is reported.
                self.usage.add(usage)
                notes.work.update(calls=usage.calls, tokens=usage.tokens)
        for _ in range(MAX_ATTEMPTS):
            match_all(self.opened, work, self.now_ms)
            if self.dry_run:
                done = preview(work)
            else:
                try:
                    done = write_page(self.opened, page, work, actor=self.actor)
                except StoreChanged:
                    continue
            notes.add(work, done)
            self.progress("turns", notes.work["turns"], notes.work["turns"])
            return done
        notes.reason = CONTENDED
        return None

    def _ended(self, usage: ModelUsage) -> str | None:
        """Return why the run reads no more, after ``usage`` for the current page; None: it does."""
        if self.stop():
            return STOPPED
        used = replace(self.usage)
        used.add(usage)
        return BUDGET if used.ends_run else None

    def _report(self, session_id: str, notes: _Notes) -> SessionReport:
        state: Literal["consolidated", "unchanged", "pending"] = "pending"
        if notes.reason is None:
            state = "consolidated" if notes.pages else "unchanged"
        return SessionReport(
            session_id=session_id,
            state=state,
            dry_run=self.dry_run,
            extractor=self.extractor.name,
            pages=notes.pages,
            turns=notes.work["turns"],
            echoes=notes.work["echoes"],
            facts=tuple(notes.done.facts),
            edges=tuple(notes.done.edges),
            replaced=tuple(notes.done.replaced),
            rejected=tuple(notes.done.rejected),
            calls=notes.work["calls"],
            tokens=notes.work["tokens"],
            reason=notes.reason,
            error_code=notes.error_code,
        )
