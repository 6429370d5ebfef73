"""The command ``key``: the keys of a server."""

from __future__ import annotations

import os
from collections.abc import Callable
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
from memgraph.surfaces.cli.render import fields_of, show_result
from memgraph.surfaces.cli.screen import note

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
    orchestrators: Annotated[
        list[str],
        value(
            "ORC",
            "An orchestrator that it opens; repeatable. '*': all, including new ones.",
            "--orchestrator",
        ),
    ],
    permissions: Annotated[
        list[Permission],
        choice(
            Permission,
            "--permission",
            text="What it may do; repeatable. Permissions do not imply others.",
        ),
    ],
    agent_id: Annotated[
        str | None, value("ID", "Only this agent's memories and those of no agent.", "--agent")
    ] = None,
    expires_at: Expires = None,
    output: Output = None,
) -> CommandResult:
    """Create a key and print its secret once, because only its digest is stored.

    --clearance, --project and --session limit what it sees; '*' for a project or session lets each
    request name its own. A running server accepts the key at once.
    """
    call = invocation(context)
    grants = {
        "name": name,
        "orchestrators": orchestrators,
        "permissions": permissions,
        "project_ids": call.project,
        "session_ids": call.session,
        "agent_id": agent_id,
        "expires_at": _moment(expires_at),
    }
    if call.clearance is not None:
        grants["clearance"] = call.clearance
    result = _with_secret(lambda: _keys(call).create(grants), output)
    existing = {ANY, *orchestrator_names(runtime_root(call.root))}
    for missing in (name for name in orchestrators if name not in existing and not call.as_json):
        note(f"there is no orchestrator {missing} yet; the key will open it once it is created")
    return result


def list_keys(context: typer.Context) -> CommandResult:
    """List the keys, including revoked and expired ones, oldest first."""
    keys = _keys(invocation(context)).listed()
    shown = [_shown(key) for key in keys]
    return CommandResult(
        {"keys": [_fields(key) for key in keys]}, lambda screen: show_result(screen, shown)
    )


def revoke(context: typer.Context, key_id: KeyId) -> CommandResult:
    """Revoke a key immediately, also in running servers."""
    return _ended(_keys(invocation(context)).revoke(key_id))


def forget(context: typer.Context, key_id: KeyId) -> CommandResult:
    """Remove a revoked or expired key from the list.

    The journals keep its id, but its grants are no longer recorded anywhere.
    """
    return _ended(_keys(invocation(context)).forget(key_id))


def rotate(
    context: typer.Context,
    key_id: KeyId,
    overlap: Annotated[
        str | None, value("SPAN", "How long the old secret stays valid: 1d, 12h, 30m. [0]")
    ] = None,
    expires_at: Expires = None,
    output: Output = None,
) -> CommandResult:
    """Create a key with the same grants and a new secret, and end the old key.

    The new key expires when the old one would have, unless --expires is used.
    """
    keys = _keys(invocation(context))
    overlap_ms = 0 if overlap is None else span_ms(overlap)
    expires_ms = _moment(expires_at)
    return _with_secret(
        lambda: keys.rotate(key_id, overlap_ms=overlap_ms, expires_at=expires_ms), output
    )


def _keys(call: Invocation) -> KeyStore:
    from memgraph.config import load_settings
    from memgraph.service.access.keys import KeyStore

    call.require_root()
    root = runtime_root(call.root)
    return KeyStore(root, SystemClock(), url=load_settings(root).memory.storage.url)


def _moment(expires: str | None) -> int | None:
    return None if expires is None else moment_ms(expires, now_ms=SystemClock().now_ms())


def _with_secret(create: Callable[[], NewKey], output: Path | None) -> CommandResult:
    """Create a key, and print its secret or write it to a file.

    Raises:
        Conflict: the file already exists.
        OSError: the file cannot be created, or the disk is full; no key has changed.
    """
    new_key = create() if output is None else _written(create, output)
    about = f"the secret of key {new_key.key.key_id}"
    data = _fields(new_key.key)
    if output is None:
        data["secret"] = new_key.secret
        text = f"{new_key.secret}\n\n{about}; it is not shown again\n"
    else:
        data["path"] = str(output)
        text = f"wrote {about} to {output}\n"
    return CommandResult(data, lambda screen: screen.raw_lines(text))


def _written(create: Callable[[], NewKey], output: Path) -> NewKey:
    """Create a key whose secret is in a file, which is allocated before any key changes."""
    try:
        number = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        message = f"the file already exists: {output}; name a new file"
        raise Conflict(message, path=str(output)) from None
    try:
        with os.fdopen(number, "wb", buffering=0) as file:
            file.write(b" " * SECRET_CHARS + b"\n")
            os.fsync(file)
            new_key = create()
            file.seek(0)
            file.write(f"{new_key.secret.ljust(SECRET_CHARS)}\n".encode("ascii"))
            os.fsync(file)
    except OSError as error:
        output.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, error.filename or str(output)) from error
    except BaseException:
        output.unlink(missing_ok=True)
        raise
    return new_key


def _fields(key: ApiKey) -> dict[str, Any]:
    """Return the fields of a key with its state and without its digest."""
    fields = key.model_dump(mode="json", exclude={"sha256"})
    state = key.state(SystemClock().now_ms())
    first = {"key_id": key.key_id, "name": key.name, "state": state}
    return first | fields | {"permissions": sorted(key.permissions)}


def _shown(key: ApiKey) -> dict[str, Any]:
    """Return the fields of a key with its times as people read them."""
    times = {name: text for name, text in fields_of(key).items() if name.endswith("_at")}
    return _fields(key) | times


def _ended(key: ApiKey) -> CommandResult:
    return CommandResult(_fields(key), lambda screen: show_result(screen, _shown(key)))


key = make_group(
    "key",
    "Create, list, revoke, rotate and forget the keys of a server.",
    {"create": create, "list": list_keys, "revoke": revoke, "rotate": rotate, "forget": forget},
)
