"""Serving the API: serve."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memgraph.surfaces.cli.builder import make_command, value
from memgraph.surfaces.cli.invocation import CommandResult, invocation

if TYPE_CHECKING:
    from memgraph.surfaces.serve import RunningServer


def serve(
    context: typer.Context,
    host: Annotated[
        str | None, value("ADDRESS", "Where to listen. [memory.server.host: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="0: a free one. [memory.server.port: 8420]")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        value("NAME", "A name that clients know it by; repeatable. [memory.server.allowed_hosts]"),
    ] = None,
    allow_without_key: Annotated[
        bool,
        typer.Option(
            "--allow-without-key",
            help="Answer anybody on this machine, for everything; loopback alone.",
        ),
    ] = False,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Leave the jobs to a `memgraph worker`.")
    ] = False,
) -> None:
    """Serve the HTTP API, and run due jobs, until SIGTERM or Ctrl-C.

    Prints its address once it listens. Without keys (see `memgraph key`) it refuses every request,
    unless anybody on this machine may ask. At the first signal running requests may finish
    (memory.server.drain_s), a second one ends the process.
    """
    from memgraph.surfaces.serve import serve

    given = invocation(context)
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
        given.answer(
            CommandResult(
                data, lambda screen: screen.line(f"{serving.url}: Ctrl-C or SIGTERM ends it")
            )
        )

    serve(given.root, config=config, with_worker=not no_worker, ready=tell)
    # All is closed. The interpreter's last collections would walk over all that is loaded, for
    # seconds; without them the process ends when its log says so.
    gc.freeze()


COMMANDS: dict[str, Any] = {"serve": make_command(serve, "serve")}
