"""The keys of a server: key create, key list, key revoke, key rotate, key forget."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from memgraph.clock import SystemClock
from memgraph.errors import Conflict
from memgraph.model.access import ANY, ApiKey, NewKey, Permission
from memgraph.paths import orchestrator_names, runtime_root
from memgraph.rules.access import moment_ms, span_ms
from memgraph.surfaces.cli.builder import choice, make_group, value
from memgraph.surfaces.cli.files import plain
from memgraph.surfaces.cli.formats import moment
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, invocation
from memgraph.surfaces.cli.screen import Screen, note

if TYPE_CHECKING:
    from memgraph.service.access.keys import KeyStore

SECRET_CHARS: Final = 60
"""The length of every secret, see ``KeyStore``."""
COLUMNS = ("id", "name", "state", "orchestrators", "permissions", "up to", "places", "ends")
KeyId = Annotated[
    str, typer.Argument(metavar="ID", help="As `memgraph key list` shows it.", show_default=False)
]
Expires = Annotated[
    str | None,
    value("TIME", "When it ends: 90d, 12h, 30m, or a time in ISO 8601. [never]", "--expires"),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the secret into a new file that you alone may read, and print it nowhere.",
    ),
]


def create(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What it is for.", show_default=False)
    ],
    orchestrator: Annotated[
        list[str],
        value("ORC", "An orchestrator that it opens; repeatable. '*': all, later ones too."),
    ],
    permission: Annotated[
        list[Permission],
        choice(Permission, text="What it may do; repeatable. None contains another."),
    ],
    agent: Annotated[
        str | None, value("ID", "Only this agent's memories and those of no agent.")
    ] = None,
    expires: Expires = None,
    output: Output = None,
) -> CommandResult:
    """Create a key and print its secret, this once: only its digest is stored.

    --clearance, --project and --session limit what it sees; '*' for a project or session lets each
    request name its own. A running server accepts the key at once.
    """
    given = invocation(context)
    now = SystemClock().now_ms()
    fields = {
        "name": name,
        "orchestrators": orchestrator,
        "permissions": permission,
        "project_ids": given.project,
        "session_ids": given.session,
        "agent_id": agent,
        "expires_at": None if expires is None else moment_ms(expires, now_ms=now),
    }
    if given.clearance is not None:
        fields["clearance"] = given.clearance
    with _place_for_secret(output) as keep:
        made = _keys(given).create(fields)
        keep(made.secret)
    return _key_result(made, output, _not_there(given, made.key.orchestrators))


def list_keys(context: typer.Context) -> CommandResult:
    """List the keys, including revoked and expired ones, oldest first."""
    keys = _keys(invocation(context)).listed()
    now = SystemClock().now_ms()

    def show(screen: Screen) -> None:
        if keys:
            screen.table(COLUMNS, [_row(key, now) for key in keys])
        else:
            screen.line("there is no key; make one: memgraph key create")

    return CommandResult({"keys": [_as_json(key, now) for key in keys]}, show)


def revoke(context: typer.Context, key_id: KeyId) -> CommandResult:
    """Revoke a key at once, in running servers too."""
    ended = _keys(invocation(context)).revoke(key_id)
    return CommandResult(
        _as_json(ended, SystemClock().now_ms()),
        lambda screen: screen.line(f"revoked {ended.key_id} ({ended.name})"),
    )


def forget(context: typer.Context, key_id: KeyId) -> CommandResult:
    """Remove a revoked or expired key from the list.

    The journals keep its id, but nothing records its grants any more.
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
        str | None, value("SPAN", "How long the old secret still counts: 1d, 12h, 30m. [not]")
    ] = None,
    expires: Expires = None,
    output: Output = None,
) -> CommandResult:
    """Create a key with the same grants and a new secret, and end the old one.

    The new one expires when the old one would have, unless --expires is given.
    """
    given = invocation(context)
    now = SystemClock().now_ms()
    overlap_ms = 0 if overlap is None else span_ms(overlap)
    expires_at = None if expires is None else moment_ms(expires, now_ms=now)
    with _place_for_secret(output) as keep:
        made = _keys(given).rotate(key_id, overlap_ms=overlap_ms, expires_at=expires_at)
        keep(made.secret)
    return _key_result(made, output)


def _keys(call: Invocation) -> KeyStore:
    from memgraph.config import load_settings
    from memgraph.service.access.keys import KeyStore

    root = runtime_root(call.root)
    return KeyStore(root, SystemClock(), url=load_settings(root).memory.storage.url)


@contextmanager
def _place_for_secret(output: Path | None) -> Iterator[Callable[[str], object]]:
    """Yield a function that stores a secret; the space is reserved before keys change.

    Raises:
        Conflict: there is a file already.
        OSError: it cannot be made, or the disk is full.
    """
    if output is None:
        yield len
        return
    try:
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(f"there is a file {output} already", path=str(output)) from None
    try:
        _put(handle, output, " " * SECRET_CHARS)
        yield lambda secret: _put(handle, output, secret)
    except BaseException:
        output.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def _put(handle: int, path: Path, text: str) -> None:
    """Write a text as the only line of a file; it is durable on return."""
    line = f"{text}\n".encode("ascii")
    try:
        written = os.pwrite(handle, line, 0)
        os.fsync(handle)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    if written < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def _not_there(call: Invocation, names: Sequence[str]) -> list[str]:
    there = {ANY, *orchestrator_names(runtime_root(call.root))}
    return [name for name in names if name not in there]


def _key_result(made: NewKey, output: Path | None, not_there: Sequence[str] = ()) -> CommandResult:
    shown_rows: dict[str, Any] = (
        {"secret": made.secret} if output is None else {"path": str(output)}
    )

    def show(screen: Screen) -> None:
        if output is None:
            screen.line(made.secret)
            screen.line()
            screen.line(f"the secret of key {made.key.key_id}; it is not shown again")
        else:
            screen.line(f"wrote the secret of key {made.key.key_id} to {output}")
        for name in not_there:
            note(f"there is no orchestrator {name} yet; the key opens it once it is made")

    return CommandResult(_as_json(made.key, made.key.created_at) | shown_rows, show)


def _as_json(key: ApiKey, now: int) -> dict[str, Any]:
    """Return a key without its digest, and its state."""
    message = key.model_dump(mode="json", exclude={"sha256"})
    return message | {"permissions": sorted(key.permissions), "state": key.state(now)}


def _row(key: ApiKey, now: int) -> tuple[str, ...]:
    narrowed = [f"{kind} {value}" for kind, value in _narrowed(key)]
    return (
        key.key_id,
        plain(key.name),
        key.state(now),
        ", ".join(key.orchestrators),
        ", ".join(sorted(key.permissions)),
        key.clearance.value,
        plain(", ".join(narrowed)),
        moment(key.expires_at),
    )


def _narrowed(key: ApiKey) -> Iterator[tuple[str, str]]:
    yield from (("project", project_id) for project_id in key.project_ids)
    yield from (("session", session_id) for session_id in key.session_ids)
    if key.agent_id is not None:
        yield "agent", key.agent_id


COMMANDS: dict[str, Any] = {
    "key": make_group(
        "key",
        "Make, list, revoke, rotate and forget the keys of a server.",
        {
            "create": create,
            "list": list_keys,
            "revoke": revoke,
            "rotate": rotate,
            "forget": forget,
        },
    )
}
