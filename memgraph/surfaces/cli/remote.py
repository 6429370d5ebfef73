"""Commands on a server instead of a root of this machine: ``memgraph --server URL``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from memgraph.errors import InvalidInput, MemgraphError, Unauthenticated
from memgraph.operations.handle import Handle
from memgraph.surfaces.cli.invocation import InvalidContent

if TYPE_CHECKING:
    import ssl

    from memgraph.client import Client
    from memgraph.client.exchange import BackupFile
    from memgraph.surfaces.cli.invocation import Invocation

SERVER_VARIABLE: Final = "MEMGRAPH_SERVER"
KEY_VARIABLE: Final = "MEMGRAPH_KEY"
MAX_KEY_CHARS: Final = 1_000

REMOTE: Final = frozenset(
    {
        "init",
        "remember",
        "say",
        "sessions",
        "relate",
        "recall",
        "context",
        "subgraph",
        "graph",
        "bulletin",
        "contradictions",
        "resolve",
        "case show",
        "case dismiss",
        "case export",
        "stale",
        "trace",
        "diff",
        "history",
        "impact",
        "grounds",
        "timeline",
        "correct",
        "confirm",
        "retract",
        "source list",
        "source show",
        "source trust",
        "source distrust",
        "source trusted",
        "promote",
        "tier",
        "receipt list",
        "receipt show",
        "receipt replay",
        "receipt bulletins",
        "receipt bulletin",
        "expiring",
        "reflection",
        "list",
        "show",
        "entities list",
        "entities merge",
        "entities split",
        "entities protect",
        "entities proposals",
        "entities decide",
        "entity",
        "stats",
        "verify",
        "audit",
        "erase",
        "jobs",
        "run",
        "export",
        "backup",
        "orchestrators",
        "health",
    }
)
"""The commands of the table that work on a server, as all derived from operations do; the others
need a root of this machine.
"""


class LocalOnly(MemgraphError):
    """The command needs a root of this machine, and a server was named."""

    code = "cli.local_only"


def local_only(command: str) -> LocalOnly:
    """Return the error for a command, or an option of it, that servers do not support."""
    subject = f"{command} with these options" if command in REMOTE else command
    instead = "; files are sent by upload of memgraph.client, or PUT /ingest/files/{name}"
    return LocalOnly(
        f"memgraph {subject} works on a root of this machine, not on a server: leave --server and"
        f" {SERVER_VARIABLE} out, or name a --root{instead if command == 'ingest' else ''}"
    )


def address(call: Invocation, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the server that a command line names; None: a root of this machine.

    Raises:
        BadParameter: it names both, or has options for a server and names none.
    """
    if call.server is not None and call.root is not None:
        raise typer.BadParameter("name a --server or a --root, not both")
    url = call.server
    if url is None and call.root is None:
        url = environ.get(SERVER_VARIABLE) or None
    if url is None and (call.key or call.key_file or call.ca_file or call.plain_http):
        # With a key a server is meant: nothing may be written elsewhere.
        raise typer.BadParameter(
            "--key, --key-file, --ca-file and --plain-http are for a server: name it with --server"
        )
    return url


@contextmanager
def client(call: Invocation, url: str) -> Iterator[Client]:
    """Yield a client of the server for the time of a command.

    Raises:
        ExtraMissing: httpx is not installed. InvalidInput: an invalid address, or no key.
    """
    if call.actor is not None:
        raise typer.BadParameter("on a server the journal names the key: leave --actor out")
    from memgraph.client import Client

    key = _key(call)
    verify = _authorities(call.ca_file)
    with (
        _said_as_options(key),
        Client(url, key=key, verify=verify, plain_http=call.plain_http) as remote,
    ):
        yield remote


@contextmanager
def _said_as_options(key: str | None) -> Iterator[None]:
    """Raise errors about headers and arguments as errors about options."""
    try:
        yield
    except Unauthenticated as error:
        options = (
            "the server answers nobody without a key"
            if key is None
            else "the server knows no such key: it is mistyped, revoked or has expired"
        )
        raise Unauthenticated(
            f"{options}; name one with --key-file or {KEY_VARIABLE}", **error.details
        ) from error
    except InvalidInput as error:
        if error.details.get("option") != "plain_http":
            raise
        raise InvalidInput(
            "a key must not be sent to another machine unencrypted: use https, or --plain-http",
            **error.details,
        ) from error


def handle(call: Invocation, remote: Client, name: str) -> RemoteHandle:
    """Return the orchestrator that a command names, with the common options narrowing the key's
    view.
    """
    narrowing: dict[str, Any] = {
        "project_ids": tuple(call.project) or None,
        "session_ids": tuple(call.session) or None,
        "agent_id": call.agent,
        "clearance": call.clearance,
    }
    return RemoteHandle(remote.orchestrator(name, **narrowing), call.command)


class RemoteHandle:
    """A handle on a server, or one of its groups; what a server does not have is local only."""

    def __init__(self, remote: Any, command: str) -> None:
        self._remote = remote
        self._command = command

    def __getattr__(self, name: str) -> Any:
        member = None if name.startswith("_") else getattr(self._remote, name, None)
        if member is None:
            raise local_only(self._command)
        if isinstance(member, Handle):
            group = _Exchange if name == "exchange" else RemoteHandle
            return group(member, self._command)
        return member


class _Exchange(RemoteHandle):
    """Copies of all data, for commands that write them elsewhere or accept findings."""

    def export_lines(self, *, with_vectors: bool = False) -> Iterator[bytes]:
        """Yield the lines, once all of them have arrived and were checked."""
        with tempfile.TemporaryDirectory(prefix="memgraph-") as folder:
            file = Path(folder) / "export.jsonl"
            self._remote.export(file, with_vectors=with_vectors)
            with file.open("rb") as lines:
                yield from lines

    def backup(
        self, target: Path, *, force: bool, accept_findings: bool, progress: object = None
    ) -> BackupFile:
        if accept_findings:
            raise local_only(f"{self._command} --accept-findings")
        report: BackupFile = self._remote.backup(target, force=force, progress=progress)
        return report


def _key(call: Invocation, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the secret: from the option, else the file, else the variable; never shown in an
    error.
    """
    if call.key is not None and call.key_file is not None:
        raise typer.BadParameter("name a --key or a --key-file, not both")
    if call.key_file is None:
        return call.key or environ.get(KEY_VARIABLE) or None
    try:
        with Path(call.key_file).open(encoding="ascii") as file:
            text = file.read(MAX_KEY_CHARS + 1)
    except UnicodeDecodeError:
        text = ""
    words = text.split()
    if len(words) != 1 or len(text) > MAX_KEY_CHARS:
        raise InvalidContent("the file of --key-file holds one key and no more", field="key_file")
    return words[0]


def _authorities(ca_file: str | None) -> ssl.SSLContext | bool:
    """Return the trusted certificates. Raises InvalidInput: the file holds none."""
    if ca_file is None:
        return True
    import ssl

    # ssl does not name the missing file.
    with Path(ca_file).open("rb"):
        pass
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise InvalidContent(f"no certificates are in {ca_file}", field="ca_file") from None
