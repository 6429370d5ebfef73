"""Commands that run until they are stopped: serve, mcp, worker."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.errors import JobFailed, MemgraphError
from memgraph.model.enums import Scope, ToolChoice
from memgraph.surfaces.cli.formats import moment
from memgraph.surfaces.cli.invocation import (
    CommandResult,
    choice,
    flush,
    invocation,
    value,
    write_json,
)
from memgraph.surfaces.cli.screen import counted, note

if TYPE_CHECKING:
    from memgraph.model.jobs import JobRun
    from memgraph.service.worker import Worker
    from memgraph.surfaces.serve import RunningServer


def serve(
    context: typer.Context,
    host: Annotated[
        str | None, value("ADDRESS", "The address to listen on. [memory.server.host: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="0: any free port. [memory.server.port: 8420]")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        value("NAME", "A host name that clients use; repeatable. [memory.server.allowed_hosts]"),
    ] = None,
    allow_without_key: Annotated[
        bool,
        typer.Option(
            "--allow-without-key",
            help="Allow all requests from this machine without a key; only on loopback.",
        ),
    ] = False,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Leave the jobs to a `memgraph worker`.")
    ] = False,
    processes: Annotated[
        int, typer.Option(min=1, max=64, help="The number of processes that answer requests.")
    ] = 1,
) -> None:
    """Serve the HTTP API and run due jobs, until SIGTERM or Ctrl-C.

    Prints its URL once it listens. Without keys (see `memgraph key`) it refuses every request,
    unless --allow-without-key is used. After the first signal running requests may finish
    (memory.server.drain_s); a second signal ends the process.
    """
    from memgraph.surfaces.serve import serve, serve_with_processes

    call = invocation(context)
    call.require_root()
    options = {
        "host": host,
        "port": port,
        "allowed_hosts": allow_host or None,
        "allow_without_key": allow_without_key or None,
    }
    config = {
        f"memory.server.{key}": option for key, option in options.items() if option is not None
    }

    def tell(serving: RunningServer) -> None:
        if serving.nobody is not None:
            typer.echo(serving.nobody, err=True)
        data = {"url": serving.url, "pid": serving.pid, "worker": serving.worker}
        call.answer(
            CommandResult(
                data, lambda screen: screen.line(f"{serving.url}: Ctrl-C or SIGTERM ends it")
            )
        )

    chosen: dict[str, Any] = {"config": config, "with_worker": not no_worker, "ready": tell}
    if processes > 1:
        serve_with_processes(processes, call.root, **chosen)
    else:
        serve(call.root, **chosen)
    # Everything is closed. Without this, the interpreter's last garbage collections would delay the
    # end of the process by seconds.
    gc.freeze()


def mcp(
    context: typer.Context,
    orchestrator: Annotated[
        str, typer.Option("--orchestrator", metavar="ORC", help="The orchestrator's name.")
    ],
    scope: Annotated[
        Scope | None,
        choice(Scope, "--scope", text="The scope of new facts, if several are visible."),
    ] = None,
    tools: Annotated[
        ToolChoice, choice(ToolChoice, "--tools", text="The tools to offer.")
    ] = ToolChoice.DEFAULT,
) -> CommandResult:
    """Serve one agent over standard input and output with the Model Context Protocol.

    --clearance, --project and --session limit what the agent sees; --actor is the actor of its
    changes in the journal. Ends when its input ends.
    """
    from memgraph.service.memory_service import MemoryService
    from memgraph.surfaces.mcp.stdio import run

    call = invocation(context)
    call.require_root()
    with MemoryService(call.root) as service:
        handle = call.handle(service, orchestrator)
        # Standard output belongs to the protocol, so no JSON may be printed at the end either.
        call.as_json = False
        run(handle, service.root, scope=scope, tools=tools)
    return CommandResult({}, lambda _screen: None)


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
