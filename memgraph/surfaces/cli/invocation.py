"""The options that all commands share: where they work, and how their results are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from memgraph.clock import MachineZone
from memgraph.errors import InvalidInput, MemgraphError
from memgraph.model.enums import Sensitivity
from memgraph.surfaces.cli.screen import LINES_EVERY_S, Screen, json_line, note, stages

if TYPE_CHECKING:
    from typer._click.core import Context

    from memgraph.client import Client
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.rules.scope import Viewer
    from memgraph.service.memory_service import MemoryService

LOCAL_PROVIDERS = ("local", "fake")
# About two seconds with the local model; the next command embeds the rest.
MAX_EMBEDDED = 20_000
MAX_COMPARED = 2_000
SERVER_VARIABLE = "MEMGRAPH_SERVER"
KEY_VARIABLE = "MEMGRAPH_KEY"
MAX_KEY_CHARS = 1_000


@dataclass(slots=True)
class CommandResult:
    """The result of a command; other packages return a class of their own with these attributes.

    Attributes:
        data: the result as JSON values, for programs.
        show: prints the result for a person; None: as a table or a tree, see ``show_result``.
        error: a failure that still has a result, such as damage that was found. ``data`` becomes
            its details, and the exit code is 1.
    """

    data: dict[str, Any]
    show: Callable[[Screen], None] | None = None
    error: MemgraphError | None = None


class InvalidContent(InvalidInput):
    """Invalid content of a file, of standard input or of the settings; not a usage error."""

    code = "cli.unusable"


class LocalOnly(MemgraphError):
    """The command needs a root on this machine, but a server was named."""

    code = "cli.local_only"

    @classmethod
    def of(cls, command: str) -> LocalOnly:
        """Return the error for a command, or for its options, that servers do not support."""
        hint = "; send files with upload of memgraph.client, or with PUT /ingest/files/{name}"
        return cls(
            f"memgraph {command} works on a root on this machine, not on a server: omit --server"
            f" and {SERVER_VARIABLE}, or name a --root{hint if command == 'ingest' else ''}"
        )


def choice(kind: type[StrEnum], *names: str, text: str | None = None) -> Any:
    """Return an option for a value of ``kind``, in upper or lower case, listed in the help."""
    values = "|".join(item.value for item in kind)
    return typer.Option(*names, case_sensitive=False, metavar=values, help=text)


def value(metavar: str, text: str | None = None, *names: str) -> Any:
    """Return an option that takes free text, shown as ``metavar`` in the help."""
    return typer.Option(*names, metavar=metavar, help=text)


@dataclass(slots=True)
class Invocation:
    """The options that every command accepts; those after its name override those before it.

    Attributes:
        command: the names of the command, such as ``key create``.
        named: the name of the orchestrator, once the command has opened it.
    """

    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of text.")
    ] = False
    root: Annotated[
        str | None,
        value(
            "FOLDER",
            "The folder of the orchestrators. [MEMGRAPH_ROOT, or the user's data folder]",
        ),
    ] = None
    actor: Annotated[str | None, value("NAME", "The actor of changes in the journal. [user]")] = (
        None
    )
    clearance: Annotated[
        Sensitivity | None, choice(Sensitivity, text="See memories up to this. [Internal]")
    ] = None
    project: Annotated[list[str], value("ID", "Also see memories of this project; repeatable.")] = (
        field(default_factory=list)
    )
    session: Annotated[list[str], value("ID", "Also see memories of this session; repeatable.")] = (
        field(default_factory=list)
    )
    server: Annotated[
        str | None, value("URL", "Use this server instead of a root. [MEMGRAPH_SERVER]")
    ] = None
    key: Annotated[
        str | None,
        value("SECRET", "The server's key; other users here may see the option. [MEMGRAPH_KEY]"),
    ] = field(default=None, repr=False)
    key_file: Annotated[str | None, value("FILE", "A file with the server's key.")] = None
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Send the key unencrypted to another machine.")
    ] = False
    command: str = ""
    named: str | None = None

    def set(self, name: str, value: Any) -> None:
        """Set an option unless its value is empty, which means that it was not passed."""
        if value not in (None, False, [], ()):
            setattr(self, name, list(value) if name in ("project", "session") else value)

    @property
    def viewer(self) -> Viewer:
        from memgraph.rules.scope import DEFAULT_VIEWER, Viewer

        return Viewer(
            clearance=self.clearance or DEFAULT_VIEWER.clearance,
            project_ids=frozenset(self.project),
            session_ids=frozenset(self.session),
        )

    @property
    def server_url(self) -> str | None:
        """The URL of the server; None for a root on this machine.

        Raises:
            BadParameter: both are named, or an option needs a server and none is named.
        """
        if self.server is not None and self.root is not None:
            raise typer.BadParameter("name a --server or a --root, not both")
        url = self.server
        if url is None and self.root is None:
            url = os.environ.get(SERVER_VARIABLE) or None
        if url is None and (self.key or self.key_file or self.plain_http):
            # A key implies a server, so a forgotten --server must not write to the local root.
            raise typer.BadParameter(
                "--key, --key-file and --plain-http are for a server: name it with --server"
            )
        return url

    def require_root(self) -> None:
        """Raise LocalOnly if a server is named, BadParameter if the options are ambiguous."""
        if self.server_url is not None:
            raise LocalOnly.of(self.command)

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Yield a client of the server for the duration of the command.

        Raises:
            ExtraMissing: httpx is not installed.
            InvalidInput: the URL is invalid, or the key file has no key.
            BadParameter: ``--actor`` was passed; on a server the key is the actor.
        """
        if self.actor is not None:
            raise typer.BadParameter("on a server the journal records the key: omit --actor")
        import ssl

        from memgraph.client import Client

        url = self.server_url or ""
        # Loading certificates takes 50 ms, and only https needs them.
        authorities = os.environ.get("SSL_CERT_FILE") if url.startswith("https:") else None
        verify = ssl.create_default_context(cafile=authorities) if authorities else True
        key = _key(self.key, self.key_file)
        with Client(url, key=key, verify=verify, plain_http=self.plain_http) as remote:
            yield remote

    @contextmanager
    def service(self) -> Iterator[MemoryService]:
        """Yield the service for the duration of the command; it embeds only on request."""
        # Importing the service takes most of a command's start-up time; --help must not need it.
        from memgraph.service.memory_service import MemoryService

        self.require_root()
        with MemoryService(self.root, background=False) as service:
            service.zone = MachineZone()
            yield service

    @contextmanager
    def orchestrator(self, name: str) -> Iterator[Orchestrator]:
        """Yield the orchestrator that a command names, limited by the common options.

        On a server it has the methods of the client; any other method raises LocalOnly.
        """
        self.named = name
        if self.server_url is None:
            with self.service() as service:
                yield self.handle(service, name)
            return
        with self.client() as client:
            # The common options narrow the key's view.
            narrowing: dict[str, Any] = {
                "project_ids": tuple(self.project) or None,
                "session_ids": tuple(self.session) or None,
                "clearance": self.clearance,
            }
            remote = client.orchestrator(name, **narrowing)
            yield cast("Orchestrator", _RemoteHandle(remote, self.command))

    def handle(self, service: MemoryService, name: str) -> Orchestrator:
        from memgraph.service.memory_service import DEFAULT_ACTOR

        self.named = name
        return service.orchestrator(name, viewer=self.viewer, actor=self.actor or DEFAULT_ACTOR)

    def after_writing(self, handle: Orchestrator) -> dict[str, Any]:
        """Compare new facts, and embed memories if the model is local; else count the pending ones.

        Returns:
            ``{"embedded": n, "pending": n}`` and, if embedding stopped early, the error's ``code``;
            for a server, which does this itself, ``{"by": "server"}``.
        """
        if self.server_url is not None:
            return {"by": "server"}
        provider, maintenance = handle.settings.memory.embedding.provider, handle.maintenance
        maintenance.compare_pending(limit=MAX_COMPARED)
        report: dict[str, Any] = {"embedded": 0, "pending": 0}
        waiting = 0 if provider == "none" else maintenance.pending_embeddings()
        if waiting and provider in LOCAL_PROVIDERS:
            drained = handle.settle(limit=MAX_EMBEDDED).embedded
            report["embedded"] = drained.ready
            if drained.error_code is not None:
                report["code"] = drained.error_code
            waiting = maintenance.pending_embeddings()
        report["pending"] = waiting
        if waiting:
            code = report.get("code", "")
            rebuild = " --rebuild" if code == "embedding.model_changed" else ""
            why = f" ({code})" if code else ""
            self.note(f"{waiting} to embed{why}; run: memgraph embed {handle.name}{rebuild}")
        return report

    def stages(self, title: str) -> AbstractContextManager[Callable[[str, int, int], None]]:
        """Show progress of work in named stages, as a bar or as lines; see ``screen.stages``."""
        return stages(title, lines_every_s=None if self.as_json else LINES_EVERY_S)

    def note(self, text: str) -> None:
        """Print a line to standard error, unless the answer is JSON."""
        if not self.as_json:
            note(text)

    def screen(self) -> Screen:
        """Return a screen that prints to standard output."""
        return Screen()

    def answer(self, report: CommandResult) -> int:
        """Print a report; return the exit code."""
        if self.as_json:
            if report.error is None:
                write_json({"ok": True, "command": self.command, "data": report.data})
        elif report.show is not None:
            report.show(Screen())
        else:
            from memgraph.surfaces.cli.render import show_result

            show_result(Screen(), report.data)
        flush()
        if report.error is None:
            return 0
        report.error.details = report.data
        return self.refuse(report.error.as_dict())

    def refuse(self, error: dict[str, Any], *, code: int = 1) -> int:
        """Print an error on standard error; return the exit code."""
        if not self.as_json:
            note(f"error[{error['code']}]: {error['message']}")
        elif sys.stderr is not None:
            sys.stderr.write(json_line({"ok": False, "error": error}, ascii_only=True) + "\n")
            sys.stderr.flush()
        return code


class _RemoteHandle:
    """A handle on a server, or a group of its methods; other methods raise LocalOnly."""

    def __init__(self, remote: Any, command: str) -> None:
        self._remote = remote
        self._command = command

    def __getattr__(self, name: str) -> Any:
        from memgraph.operations.handle import Handle

        member = None if name.startswith("_") else getattr(self._remote, name, None)
        if member is None:
            raise LocalOnly.of(self._command)
        return _RemoteHandle(member, self._command) if isinstance(member, Handle) else member


def _key(key: str | None, key_file: str | None) -> str | None:
    """Return the key from --key, --key-file or the environment variable; errors never show it."""
    if key is not None and key_file is not None:
        raise typer.BadParameter("name a --key or a --key-file, not both")
    if key_file is None:
        return key or os.environ.get(KEY_VARIABLE) or None
    with Path(key_file).open("rb") as file:
        data = file.read(MAX_KEY_CHARS + 1)
    words = data.decode("ascii", "replace").split()
    if len(words) != 1 or not data.isascii() or len(data) > MAX_KEY_CHARS:
        raise InvalidContent("the --key-file must contain exactly one key", field="key_file")
    return words[0]


def invocation(context: Context) -> Invocation:
    """Return the invocation stored in a command's context."""
    return cast(Invocation, context.find_root().obj)


def read_stdin(max_chars: int = -1) -> str:
    """Return standard input without its last line end, or its first ``max_chars`` characters.

    Raises:
        InvalidContent: it is not UTF-8.
    """
    try:
        return sys.stdin.read(max_chars).removesuffix("\n")
    except UnicodeDecodeError:
        raise InvalidContent("standard input is not UTF-8") from None


def write_json(value: Any) -> None:
    """Write one line of JSON to standard output."""
    if sys.stdout is not None:
        encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
        sys.stdout.write(json_line(value, ascii_only=encoding != "utf8") + "\n")


def flush() -> None:
    """Flush standard output, so that a closed pipe or a full disk is detected before the exit."""
    if sys.stdout is not None:
        sys.stdout.flush()
