"""The command ``key``: the keys of a server."""

from __future__ import annotations

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
from memgraph.surfaces.cli.builder import make_group
from memgraph.surfaces.cli.invocation import CommandResult, Invocation, choice, invocation, value
from memgraph.surfaces.cli.render import show_table
from memgraph.surfaces.cli.screen import Screen, note

if TYPE_CHECKING:
    from memgraph.service.access.keys import KeyStore

SECRET_CHARS: Final = 60
"""The length of every secret, see ``KeyStore``."""
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

    rows = [_as_json(key, now) for key in keys]

    def show(screen: Screen) -> None:
        if rows:
            show_table(screen, rows)
        else:
            screen.line("there are no keys; create one: memgraph key create")

    return CommandResult({"keys": rows}, show)


def revoke(context: typer.Context, key_id: KeyId) -> CommandResult:
    """Revoke a key immediately, also in running servers."""
    key = _keys(invocation(context)).revoke(key_id)
    return CommandResult(_as_json(key, SystemClock().now_ms()))


def forget(context: typer.Context, key_id: KeyId) -> CommandResult:
    """Remove a revoked or expired key from the list.

    The journals keep its id, but its grants are no longer recorded anywhere.
    """
    key = _keys(invocation(context)).forget(key_id)
    return CommandResult(_as_json(key, SystemClock().now_ms()))


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
        file = open(  # noqa: SIM115 - it is closed below
            output, "xb", buffering=0, opener=lambda path, flags: os.open(path, flags, 0o600)
        )
    except FileExistsError:
        raise Conflict(f"the file already exists: {output}", path=str(output)) from None

    def put(secret: str) -> None:
        try:
            file.seek(0)
            file.write(f"{secret.ljust(SECRET_CHARS)}\n".encode("ascii"))
            os.fsync(file)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(output)) from error

    try:
        with file:
            put("")
            yield put
    except BaseException:
        output.unlink(missing_ok=True)
        raise


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
    first = {"key_id": key.key_id, "name": key.name, "state": key.state(now)}
    return first | fields | {"permissions": sorted(key.permissions)}


key = make_group(
    "key",
    "Create, list, revoke, rotate and forget the keys of a server.",
    {"create": create, "list": list_keys, "revoke": revoke, "rotate": rotate, "forget": forget},
)
