"""Commands for the service and agents: serve, mcp."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.model.enums import Scope, ToolChoice
from memgraph.surfaces.cli.invocation import CommandResult, choice, invocation, value

if TYPE_CHECKING:
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
