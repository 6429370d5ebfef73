"""Run commands on a server instead of a root on this machine: ``memgraph --server URL``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from memgraph.errors import MemgraphError
from memgraph.operations.handle import Handle
from memgraph.surfaces.cli.invocation import InvalidContent, Invocation

if TYPE_CHECKING:
    from memgraph.client import Client

SERVER_VARIABLE: Final = "MEMGRAPH_SERVER"
KEY_VARIABLE: Final = "MEMGRAPH_KEY"
MAX_KEY_CHARS: Final = 1_000


class LocalOnly(MemgraphError):
    """The command needs a root on this machine, but a server was named."""

    code = "cli.local_only"


def local_only(command: str) -> LocalOnly:
    """Return the error for a command, or for its options, that servers do not support."""
    hint = "; send files with upload of memgraph.client, or with PUT /ingest/files/{name}"
    return LocalOnly(
        f"memgraph {command} works on a root on this machine, not on a server: omit --server and"
        f" {SERVER_VARIABLE}, or name a --root{hint if command == 'ingest' else ''}"
    )


def address(call: Invocation, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the URL of the server that a command line names; None for a root on this machine.

    Raises:
        BadParameter: both are named, or an option needs a server and none is named.
    """
    if call.server is not None and call.root is not None:
        raise typer.BadParameter("name a --server or a --root, not both")
    url = call.server
    if url is None and call.root is None:
        url = environ.get(SERVER_VARIABLE) or None
    if url is None and (call.key or call.key_file or call.plain_http):
        # A key implies a server, so a forgotten --server must not write to the local root.
        raise typer.BadParameter(
            "--key, --key-file and --plain-http are for a server: name it with --server"
        )
    return url


@contextmanager
def client(call: Invocation, url: str) -> Iterator[Client]:
    """Yield a client of the server for the duration of a command.

    Raises:
        ExtraMissing: httpx is not installed.
        InvalidInput: the URL is invalid, or the key file has no key.
        BadParameter: ``--actor`` was passed; on a server the key is the actor.
    """
    if call.actor is not None:
        raise typer.BadParameter("on a server the journal records the key: omit --actor")
    import ssl

    from memgraph.client import Client

    # Loading certificates takes 50 ms, and only https needs them.
    authorities = os.environ.get("SSL_CERT_FILE") if url.startswith("https:") else None
    verify = ssl.create_default_context(cafile=authorities) if authorities else True
    with Client(url, key=_key(call), verify=verify, plain_http=call.plain_http) as remote:
        yield remote


class RemoteHandle:
    """A handle on a server, or a group of its methods; other methods raise LocalOnly."""

    def __init__(self, remote: Any, command: str) -> None:
        self._remote = remote
        self._command = command

    def __getattr__(self, name: str) -> Any:
        member = None if name.startswith("_") else getattr(self._remote, name, None)
        if member is None:
            raise local_only(self._command)
        return RemoteHandle(member, self._command) if isinstance(member, Handle) else member


def _key(call: Invocation, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the key from --key, --key-file or the environment variable, in this order.

    Errors never show it.
    """
    if call.key is not None and call.key_file is not None:
        raise typer.BadParameter("name a --key or a --key-file, not both")
    if call.key_file is None:
        return call.key or environ.get(KEY_VARIABLE) or None
    with Path(call.key_file).open("rb") as file:
        data = file.read(MAX_KEY_CHARS + 1)
    words = data.decode("ascii", "replace").split()
    if len(words) != 1 or not data.isascii() or len(data) > MAX_KEY_CHARS:
        raise InvalidContent("the --key-file must contain exactly one key", field="key_file")
    return words[0]
