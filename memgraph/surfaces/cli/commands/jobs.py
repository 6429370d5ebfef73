"""Commands for background jobs: worker, jobs, run."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import InvalidInput, JobFailed, MemgraphError
from memgraph.model.enums import JobName
from memgraph.surfaces.cli.builder import OrchestratorName, make_command, value
from memgraph.surfaces.cli.files import counted
from memgraph.surfaces.cli.formats import as_json, moment
from memgraph.surfaces.cli.invocation import (
    CommandResult,
    Invocation,
    flush,
    invocation,
    write_json,
)
from memgraph.surfaces.cli.render import show_table
from memgraph.surfaces.cli.screen import Screen, note, stages

if TYPE_CHECKING:
    from memgraph.model.jobs import JobRun, SessionReport
    from memgraph.service.worker import Worker


def worker(
    context: typer.Context,
    orchestrators: Annotated[
        list[str] | None,
        value("NAME", "Only this orchestrator; repeatable. [all]", "--orchestrator"),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Do what is due now and exit, e.g. from cron.")
    ] = False,
) -> CommandResult:
    """Run every job when it is due, consolidate ended sessions, and embed pending memories.

    Prints a line per run, or a JSON object per line with --json. SIGTERM and SIGINT end it after
    the current batch. Several workers may share a root: each job runs in only one of them. With
    --once it exits with 1 if a run failed.
    """
    call = invocation(context)
    ran: list[str] = []
    failed: list[MemgraphError] = []

    def tell(name: str, run: JobRun) -> None:
        ran.append(run.state.value)
        _report_run(call, name, run)

    def complain(name: str, error: MemgraphError) -> None:
        failed.append(error)
        note(f"{name}: error[{error.code}]: {error.message}")

    from memgraph.service.worker import Worker

    with call.service() as service:
        for name in orchestrators or ():
            service.orchestrator(name)
        working = Worker(service, names=orchestrators or None, ran=tell, failed=complain)
        with _ended_by_signals(working):
            if once:
                working.once()
            else:
                if not call.as_json:
                    note("working; Ctrl-C or SIGTERM ends it after the current batch")
                working.run()
    data = {"runs": len(ran), "failed": sum(item in ("failed", "abandoned") for item in ran)}
    line = f"{counted(data['runs'], 'run')}, {data['failed']} failed"
    refusal = failed[0] if failed else JobFailed(line) if data["failed"] else None
    return CommandResult(data, lambda screen: screen.line(line), refusal if once else None)


def jobs(
    context: typer.Context,
    orchestrator: OrchestratorName,
    limit: Annotated[int, typer.Option(help="1 to 1000.")] = 20,
) -> CommandResult:
    """Show when each job is due next, and the latest runs."""
    with invocation(context).orchestrator(orchestrator) as handle:
        plans, runs = handle.jobs.plans(), handle.jobs.list(limit=limit)

    def show(screen: Screen) -> None:
        show_table(screen, plans)
        screen.line()
        if runs:
            show_table(screen, runs)
        else:
            screen.line("no job has run yet")

    data = {"plans": [as_json(plan) for plan in plans], "runs": [as_json(item) for item in runs]}
    return CommandResult(data, show)


def run(
    context: typer.Context,
    job: Annotated[JobName, typer.Argument(metavar="JOB", case_sensitive=False)],
    orchestrator: OrchestratorName,
    now: Annotated[
        str | None, value("TIME", "Run as if it were this time, ISO 8601; writes are dated so.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Consolidation: show what it would do, write nothing.")
    ] = False,
) -> CommandResult:
    """Run a job now, regardless of its schedule.

    With --session, only that session is consolidated, even if it has not ended. Exits with 1 if
    the run fails.
    """
    call = invocation(context)
    session_id = _session(call, job)
    if dry_run and job is not JobName.CONSOLIDATION:
        raise InvalidInput("--dry-run requires a consolidation", field="dry_run")
    with (
        _term_is_interrupt(),
        call.orchestrator(orchestrator) as handle,
        stages(job.value) as advance,
    ):
        if dry_run:
            return _dry_run_result(
                handle.jobs.consolidate(session_id, dry_run=True, now=now, progress=advance)
            )
        ran = handle.jobs.run(job, session_id=session_id, now=now, progress=advance)
        embedding = call.after_writing(handle)
    return _run_result(ran, embedding)


@contextmanager
def _ended_by_signals(working: Worker) -> Iterator[None]:
    """Stop the worker at the first signal, and end the process at the second."""
    before = {item: signal.getsignal(item) for item in (signal.SIGTERM, signal.SIGINT)}

    def ask(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, before[signal.Signals(number)])
        working.stop()

    for item in before:
        signal.signal(item, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _term_is_interrupt() -> Iterator[None]:
    """Let SIGTERM end a run like Ctrl-C: its lease is released and it is recorded as stopped."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _session(call: Invocation, job: JobName) -> str | None:
    if not call.session:
        return None
    if job is not JobName.CONSOLIDATION or len(call.session) > 1:
        raise InvalidInput("--session requires a consolidation, and only one", field="session")
    return call.session[0]


def _report_run(call: Invocation, name: str, run: JobRun) -> None:
    if call.as_json:
        data = {"orchestrator": name, **as_json(run)}
        write_json({"ok": not run.failed, "command": "worker", "data": data})
    else:
        message = f"{moment(run.started_at)} {name} {run.job} {run.state} {_counts(run)}"
        call.screen().line(" ".join([message.rstrip(), _error(run)]).rstrip())
    flush()


def _run_result(ran: JobRun, embedding: dict[str, Any]) -> CommandResult:
    refusal = None
    if ran.failed:
        refusal = JobFailed(f"{ran.job} {ran.state}: {_error(ran)}", cause=ran.error_code)
    return CommandResult(
        {"runs": [as_json(ran)], "embedding": embedding},
        lambda screen: show_table(screen, [ran]),
        refusal,
    )


def _dry_run_result(reports: Sequence[SessionReport]) -> CommandResult:
    def show(screen: Screen) -> None:
        if not reports:
            screen.line("no session waits for consolidation")
        for report in reports:
            turns = counted(report.turns, "turn")
            screen.heading(f"session {report.session_id}: {turns}, by {report.extractor}")
            for name, items in (("facts", report.facts), ("rejected", report.rejected)):
                screen.line(f"{name}: {len(items)}")
                if items:
                    show_table(screen, items)
            if report.reason is not None:
                screen.line(f"left pending: {report.reason}")

    return CommandResult({"sessions": [report.as_dict() for report in reports]}, show)


def _counts(run: JobRun) -> str:
    return ", ".join(f"{name} {count}" for name, count in run.counts.items() if count)


def _error(run: JobRun) -> str:
    return ": ".join(item for item in (run.error_code, run.reason) if item)


COMMANDS: dict[str, Any] = {
    "worker": make_command(worker, "worker"),
    "jobs": make_command(jobs, "jobs"),
    "run": make_command(run, "run"),
}
