"""Commands for the service and agents: serve, mcp, key, tools, call."""

from __future__ import annotations

import errno
import gc
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memgraph.clock import SystemClock
from memgraph.errors import Conflict, ToolRefused
from memgraph.model.access import ANY, ApiKey, NewKey, Permission
from memgraph.model.enums import Scope, ToolChoice
from memgraph.paths import orchestrator_names, runtime_root
from memgraph.rules.access import moment_ms, span_ms
from memgraph.surfaces.cli.builder import OrchestratorName, choice, make_command, make_group, value
from memgraph.surfaces.cli.files import plain
from memgraph.surfaces.cli.formats import moment
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation
from memgraph.surfaces.cli.mcp_clients import (
    ConfigChange,
    McpClient,
    config_path,
    program,
    with_server,
)
from memgraph.surfaces.cli.screen import Screen, note

if TYPE_CHECKING:
    from memgraph.service.access.keys import KeyStore
    from memgraph.surfaces.cli.screen import Screen
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
) -> None:
    """Serve the HTTP API and run due jobs, until SIGTERM or Ctrl-C.

    Prints its URL once it listens. Without keys (see `memgraph key`) it refuses every request,
    unless --allow-without-key is used. After the first signal running requests may finish
    (memory.server.drain_s); a second signal ends the process.
    """
    from memgraph.surfaces.serve import serve

    call = invocation(context)
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

    serve(call.root, config=config, with_worker=not no_worker, ready=tell)
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
    install: Annotated[
        McpClient | None,
        choice(McpClient, "--install", text="Add this server to a client's configuration instead."),
    ] = None,
    config: Annotated[
        Path | None, value("FILE", "The configuration to change. [the client's default]")
    ] = None,
    name: Annotated[str, value("NAME", "With --install: the server's name in the client.")] = (
        "memory"
    ),
    yes: Annotated[
        bool, typer.Option("--yes", help="With --install: change the file without asking.")
    ] = False,
) -> CommandResult:
    """Serve one agent over standard input and output with the Model Context Protocol.

    --clearance, --project and --session limit what the agent sees; --actor is the actor of its
    changes in the journal. Ends when its input ends.

    With --install, configure a client to start this server with the same options: the change is
    shown, a copy of the file is kept, and the client is the actor unless --actor is used.
    """
    from memgraph.service.memory_service import MemoryService
    from memgraph.surfaces.mcp.stdio import run

    call = invocation(context)
    if install is not None:
        with call.orchestrator(orchestrator):
            pass  # check that it exists
        arguments = _arguments(call, orchestrator, scope, tools, install)
        path = config or config_path(install, os.environ, sys.platform)
        change = with_server(install, path, name, program(), arguments)
        return _install(call, install, change, yes=yes)
    with MemoryService(call.root) as service:
        handle = call.handle(service, orchestrator)
        # Standard output belongs to the protocol, so no JSON may be printed at the end either.
        call.as_json = False
        run(handle, service.root, scope=scope, tools=tools)
    return CommandResult({}, lambda _screen: None)


def _arguments(
    call: Invocation,
    orchestrator: str,
    scope: Scope | None,
    tools: ToolChoice,
    client: McpClient,
) -> list[str]:
    """Return the arguments for the client to start the server with the options of this call."""
    arguments = ["mcp", "--orchestrator", orchestrator, "--actor", call.actor or client.value]
    root = call.root or os.environ.get("MEMGRAPH_ROOT")
    arguments += ["--root", str(Path(root).absolute())] if root else []
    arguments += ["--clearance", call.clearance.value] if call.clearance else []
    arguments += [part for item in call.project for part in ("--project", item)]
    arguments += [part for item in call.session for part in ("--session", item)]
    arguments += ["--scope", scope.value] if scope else []
    return arguments + (["--tools", tools.value] if tools is ToolChoice.ALL else [])


def _install(
    call: Invocation, client: McpClient, change: ConfigChange, *, yes: bool
) -> CommandResult:
    diff = change.diff
    if diff and not yes:
        if call.as_json:
            raise typer.BadParameter("--json cannot ask to confirm: use --yes, or omit --json")
        call.screen().raw_lines(diff)
        typer.confirm(f"Change {change.path}?", abort=True)
    backup = change.write() if diff else None
    data = {
        "client": client.value,
        "path": str(change.path),
        "changed": bool(diff),
        "backup": None if backup is None else str(backup),
        "diff": diff,
    }

    def show(screen: Screen) -> None:
        if not diff:
            screen.line(f"nothing to do: {change.path} already has this server")
            return
        if yes:
            screen.raw_lines(diff)
        screen.line(f"changed {change.path}" + (f"; the old file is {backup}" if backup else ""))
        screen.line(f"restart {client.value}, and ask it what it remembers")

    return CommandResult(data, show)


SECRET_CHARS: Final = 60
"""The length of every secret, see ``KeyStore``."""
COLUMNS = ("id", "name", "state", "orchestrators", "permissions", "up to", "places", "ends")
KeyId = Annotated[
    str, typer.Argument(metavar="ID", help="As `memgraph key list` shows it.", show_default=False)
]
Expires = Annotated[
    str | None,
    value("TIME", "When it expires: 90d, 12h, 30m, or a time, ISO 8601. [never]", "--expires"),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the secret to a new file that only you can read, instead of printing it.",
    ),
]


def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its purpose.", show_default=False)],
    orchestrator: Annotated[
        list[str],
        value("ORC", "An orchestrator that it opens; repeatable. '*': all, including new ones."),
    ],
    permission: Annotated[
        list[Permission],
        choice(Permission, text="What it may do; repeatable. Permissions do not imply others."),
    ],
    agent: Annotated[
        str | None, value("ID", "Only this agent's memories and those of no agent.")
    ] = None,
    expires: Expires = None,
    output: Output = None,
) -> CommandResult:
    """Create a key and print its secret once, because only its digest is stored.

    --clearance, --project and --session limit what it sees; '*' for a project or session lets each
    request name its own. A running server accepts the key at once.
    """
    call = invocation(context)
    now = SystemClock().now_ms()
    fields = {
        "name": name,
        "orchestrators": orchestrator,
        "permissions": permission,
        "project_ids": call.project,
        "session_ids": call.session,
        "agent_id": agent,
        "expires_at": None if expires is None else moment_ms(expires, now_ms=now),
    }
    if call.clearance is not None:
        fields["clearance"] = call.clearance
    with _secret_writer(output) as store_secret:
        new_key = _keys(call).create(fields)
        store_secret(new_key.secret)
    return _key_result(new_key, output, _missing_orchestrators(call, new_key.key.orchestrators))


def list_keys(context: typer.Context) -> CommandResult:
    """List the keys, including revoked and expired ones, oldest first."""
    keys = _keys(invocation(context)).listed()
    now = SystemClock().now_ms()

    def show(screen: Screen) -> None:
        if keys:
            screen.table(COLUMNS, [_row(key, now) for key in keys])
        else:
            screen.line("there are no keys; create one: memgraph key create")

    return CommandResult({"keys": [_as_json(key, now) for key in keys]}, show)


def revoke(context: typer.Context, key_id: KeyId) -> CommandResult:
    """Revoke a key immediately, also in running servers."""
    ended = _keys(invocation(context)).revoke(key_id)
    return CommandResult(
        _as_json(ended, SystemClock().now_ms()),
        lambda screen: screen.line(f"revoked {ended.key_id} ({ended.name})"),
    )


def forget(context: typer.Context, key_id: KeyId) -> CommandResult:
    """Remove a revoked or expired key from the list.

    The journals keep its id, but its grants are no longer recorded anywhere.
    """
    removed = _keys(invocation(context)).forget(key_id)
    return CommandResult(
        _as_json(removed, SystemClock().now_ms()),
        lambda screen: screen.line(f"forgot {removed.key_id} ({removed.name})"),
    )


def rotate(
    context: typer.Context,
    key_id: KeyId,
    overlap: Annotated[
        str | None, value("SPAN", "How long the old secret stays valid: 1d, 12h, 30m. [0]")
    ] = None,
    expires: Expires = None,
    output: Output = None,
) -> CommandResult:
    """Create a key with the same grants and a new secret, and end the old key.

    The new key expires when the old one would have, unless --expires is used.
    """
    call = invocation(context)
    now = SystemClock().now_ms()
    overlap_ms = 0 if overlap is None else span_ms(overlap)
    expires_at = None if expires is None else moment_ms(expires, now_ms=now)
    with _secret_writer(output) as store_secret:
        new_key = _keys(call).rotate(key_id, overlap_ms=overlap_ms, expires_at=expires_at)
        store_secret(new_key.secret)
    return _key_result(new_key, output)


def _keys(call: Invocation) -> KeyStore:
    from memgraph.config import load_settings
    from memgraph.service.access.keys import KeyStore

    root = runtime_root(call.root)
    return KeyStore(root, SystemClock(), url=load_settings(root).memory.storage.url)


@contextmanager
def _secret_writer(output: Path | None) -> Iterator[Callable[[str], object]]:
    """Yield a function that stores a secret. The file is allocated before any key changes.

    Raises:
        Conflict: the file already exists.
        OSError: the file cannot be created, or the disk is full.
    """
    if output is None:
        yield len
        return
    try:
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(f"the file already exists: {output}", path=str(output)) from None
    try:
        _put(handle, output, " " * SECRET_CHARS)
        yield lambda secret: _put(handle, output, secret)
    except BaseException:
        output.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def _put(handle: int, path: Path, text: str) -> None:
    """Write a text as the only line of a file, durably."""
    line = f"{text}\n".encode("ascii")
    try:
        written = os.pwrite(handle, line, 0)
        os.fsync(handle)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    if written < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def _missing_orchestrators(call: Invocation, names: Sequence[str]) -> list[str]:
    existing = {ANY, *orchestrator_names(runtime_root(call.root))}
    return [name for name in names if name not in existing]


def _key_result(new_key: NewKey, output: Path | None, missing: Sequence[str] = ()) -> CommandResult:
    secret_field: dict[str, Any] = (
        {"secret": new_key.secret} if output is None else {"path": str(output)}
    )

    def show(screen: Screen) -> None:
        if output is None:
            screen.line(new_key.secret)
            screen.line()
            screen.line(f"the secret of key {new_key.key.key_id}; it is not shown again")
        else:
            screen.line(f"wrote the secret of key {new_key.key.key_id} to {output}")
        for name in missing:
            note(f"there is no orchestrator {name} yet; the key will open it once it is created")

    return CommandResult(_as_json(new_key.key, new_key.key.created_at) | secret_field, show)


def _as_json(key: ApiKey, now: int) -> dict[str, Any]:
    """Return the fields of a key with its state and without its digest."""
    fields = key.model_dump(mode="json", exclude={"sha256"})
    return fields | {"permissions": sorted(key.permissions), "state": key.state(now)}


def _row(key: ApiKey, now: int) -> tuple[str, ...]:
    restrictions = [f"{kind} {value}" for kind, value in _restrictions(key)]
    return (
        key.key_id,
        plain(key.name),
        key.state(now),
        ", ".join(key.orchestrators),
        ", ".join(sorted(key.permissions)),
        key.clearance.value,
        plain(", ".join(restrictions)),
        moment(key.expires_at),
    )


def _restrictions(key: ApiKey) -> Iterator[tuple[str, str]]:
    yield from (("project", project_id) for project_id in key.project_ids)
    yield from (("session", session_id) for session_id in key.session_ids)
    if key.agent_id is not None:
        yield "agent", key.agent_id


ReadOnly = Annotated[bool, typer.Option("--read-only", help="Only tools that change nothing.")]
AllTools = Annotated[bool, typer.Option("--all", help="All tools, not only the default ones.")]
Maintenance = Annotated[
    bool,
    typer.Option("--maintenance", help="Include memory_consolidate, which works on all memories."),
]


def tools(
    context: typer.Context,
    orchestrator: OrchestratorName,
    read_only: ReadOnly = False,
    all_tools: AllTools = False,
    maintenance: Maintenance = False,
) -> CommandResult:
    """Print the tools for a language model.

    With --json also their schemas, in OpenAI's format for the `tools` of a request.
    """
    from memgraph.operations.tools.tools import tools_for

    with invocation(context).orchestrator(orchestrator) as handle:
        results = tools_for(handle, read_only=read_only, all=all_tools, maintenance=maintenance)
    rows = [(item["function"]["name"], item["function"]["description"]) for item in results]
    return CommandResult({"tools": results}, lambda screen: screen.fields(rows))


def call(
    context: typer.Context,
    orchestrator: OrchestratorName,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.")],
    arguments: Annotated[
        str, typer.Argument(metavar="JSON", help="The tool's arguments, a JSON object.")
    ] = "{}",
    read_only: ReadOnly = False,
    all_tools: AllTools = False,
    maintenance: Maintenance = False,
) -> CommandResult:
    """Run one tool call as a language model would, and print the model's answer.

    Exits with 1 if the answer is an error. --actor is the actor of changes in the journal.
    """
    from memgraph.operations.tools.tools import call_tool

    with invocation(context).orchestrator(orchestrator) as handle:
        answer = call_tool(
            handle,
            tool,
            arguments,
            read_only=read_only,
            all=all_tools,
            maintenance=maintenance,
        )
    if isinstance(answer, str):
        text, refused = answer.rstrip("\n"), None
    else:
        text, refused = json.dumps(answer, ensure_ascii=False, indent=2), answer.get("error")

    def show(screen: Screen) -> None:
        screen.raw_lines(text + "\n")

    return CommandResult({"answer": answer}, show, None if refused is None else _refusal(refused))


def _refusal(details: dict[str, str]) -> ToolRefused:
    return ToolRefused(
        f"{details['message']}; memgraph tools lists the tools", cause=details["code"]
    )


COMMANDS: dict[str, Any] = {
    "serve": make_command(serve, "serve"),
    "mcp": make_command(mcp, "mcp"),
    "key": make_group(
        "key",
        "Create, list, revoke, rotate and forget the keys of a server.",
        {
            "create": create,
            "list": list_keys,
            "revoke": revoke,
            "rotate": rotate,
            "forget": forget,
        },
    ),
    "tools": make_command(tools, "tools"),
    "call": make_command(call, "call"),
}
