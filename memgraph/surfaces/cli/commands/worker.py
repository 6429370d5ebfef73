"""The command that runs jobs when they are due: worker."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from memgraph.errors import JobFailed, MemgraphError
from memgraph.surfaces.cli.formats import moment
from memgraph.surfaces.cli.invocation import CommandResult, flush, invocation, value, write_json
from memgraph.surfaces.cli.screen import counted, note

if TYPE_CHECKING:
    from memgraph.model.jobs import JobRun
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
    from memgraph.service.worker import Worker

    call = invocation(context)
    runs: list[JobRun] = []
    failed: list[MemgraphError] = []

    def report(name: str, run: JobRun) -> None:
        runs.append(run)
        if call.as_json:
            data = {"orchestrator": name, **run.model_dump(mode="json")}
            write_json({"ok": not run.failed, "command": "worker", "data": data})
        else:
            counts = ", ".join(f"{name} {count}" for name, count in run.counts.items() if count)
            parts = (moment(run.started_at), name, run.job, run.state, counts, run.remark)
            call.screen().line(" ".join(part for part in parts if part))
        flush()

    def complain(name: str, error: MemgraphError) -> None:
        failed.append(error)
        note(f"{name}: error[{error.code}]: {error.message}")

    with call.service() as service:
        for name in orchestrators or ():
            service.orchestrator(name)
        working = Worker(service, names=orchestrators or (), ran=report, failed=complain)
        with _ended_by_signals(working):
            if once:
                working.once()
            else:
                if not call.as_json:
                    note("working; Ctrl-C or SIGTERM ends it after the current batch")
                working.run()
    data = {"runs": len(runs), "failed": sum(run.failed for run in runs)}
    line = f"{counted(data['runs'], 'run')}, {data['failed']} failed"
    refusal = failed[0] if failed else JobFailed(line) if data["failed"] else None
    return CommandResult(data, lambda screen: screen.line(line), refusal if once else None)


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
