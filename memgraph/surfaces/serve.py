"""Run `memgraph serve`: assemble the surfaces in one process, serve, and shut down."""

from __future__ import annotations

import errno
import gc
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from memgraph.config.server import ServerSettings
from memgraph.errors import ExtraMissing, InvalidConfig, MemgraphError
from memgraph.log import EventLog
from memgraph.service.access.gate import Gate
from memgraph.service.access.keys import KeyStore
from memgraph.service.memory_service import MemoryService
from memgraph.service.worker import Worker
from memgraph.surfaces.metrics import SHARED_FOLDER, PrometheusMeters, forget_process
from memgraph.surfaces.processes import ServerProcesses
from memgraph.surfaces.server_log import server_log
from memgraph.surfaces.shutdown import DrainingServer, ended_at_the_latest

if TYPE_CHECKING:
    from fastapi import FastAPI

    from memgraph.surfaces.mcp.http import McpApp

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
BACKLOG = 2_048
CLOSING_S = 5.0
"""The time for closing after ``memory.server.drain_s`` for the requests, in seconds."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts requests.

    Attributes:
        url: the address of the server.
        worker: True if the server also runs jobs.
        nobody: why every request is refused for now, with the remedy; None: requests are accepted.
    """

    url: str
    pid: int
    worker: bool
    nobody: str | None = None


def serve(
    root: str | Path | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    with_worker: bool = True,
    listener: socket.socket | None = None,
    ready: Callable[[RunningServer], None] = lambda _serving: None,
) -> None:
    """Serve the orchestrators of a root until SIGTERM or SIGINT, then finish running work.

    After the first signal, no requests are accepted, running requests have
    ``memory.server.drain_s`` seconds, and the worker stops after its batch. A second signal ends
    the process. Signals are only handled in the main thread.

    Args:
        root, config: as for ``MemoryService``.
        with_worker: also run the jobs of all orchestrators in this process.
        listener: a bound socket; None: bind one to the address in the settings.
        ready: called when the server accepts requests.

    Raises:
        InvalidConfig: the settings would let others in without a key, or the address cannot be
            used.
        ExtraMissing: the packages of the extra ``server`` are not installed.
    """
    meters = PrometheusMeters()
    with (
        ended_at_the_latest() as end_within,
        MemoryService(root, config=config, meters=meters) as service,
    ):
        settings = service.settings().memory
        gate = _gate(service, settings.server)
        with (
            nullcontext(listener) if listener else _bound_socket(settings.server) as accepting,
            server_log(service.root, service.clock, settings.log) as log,
        ):
            app = application(gate, settings.server)
            app.state.log = log
            worker = _worker(service, log) if with_worker else None
            serving = RunningServer(
                _url(accepting), os.getpid(), with_worker, _refusal_reason(gate)
            )

            def started() -> None:
                log.info("serving", url=serving.url, pid=serving.pid, worker=with_worker)
                if serving.nobody is not None:
                    log.warning("keys", nobody=serving.nobody)
                # The objects that exist now are permanent; exclude them from garbage collection.
                gc.freeze()
                ready(serving)
                # What no request waits for.
                threading.Thread(target=remaining_start, daemon=True).start()

            def remaining_start() -> None:
                service.intake.wake_waiting()
                app.state.known()

            def draining() -> None:
                log.info("draining", drain_s=settings.server.drain_s)
                end_within(settings.server.drain_s + CLOSING_S)
                if worker is not None:
                    worker.stop()

            server = DrainingServer(app, settings=settings.server, draining=draining)
            with nullcontext() if worker is None else worker:
                server.serve_at(accepting, started)
                # Write before waiting for the worker, which may be killed in a call to a model.
                service.write_down()
            service.close()
            log.info("ended", pid=serving.pid)


def serve_with_processes(
    count: int,
    root: str | Path | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    with_worker: bool = True,
    ready: Callable[[RunningServer], None] = lambda _serving: None,
) -> None:
    """Serve as ``serve`` does, with several processes that answer requests.

    This process binds the address, starts the others, passes signals on to them, and replaces
    those that die.

    Args:
        count: the number of processes that answer.
        with_worker: run the jobs in the first of them.
        root, config, ready: as for ``serve``.

    Raises:
        InvalidConfig: as for ``serve``.
        ServerFailed: a process ended with an error.
    """
    with ExitStack() as held:
        service = held.enter_context(MemoryService(root, config=config, background=False))
        settings = service.settings().memory
        gate = _gate(service, settings.server)
        listener = held.enter_context(_bound_socket(settings.server))
        log = held.enter_context(server_log(service.root, service.clock, settings.log))
        metrics = Path(held.enter_context(TemporaryDirectory(prefix="memgraph-metrics-")))
        os.environ[SHARED_FOLDER] = str(metrics)
        held.callback(os.environ.pop, SHARED_FOLDER)

        def died(pid: int, exit_code: int) -> None:
            log.warning("process.died", pid=pid, exit_code=exit_code)
            forget_process(pid, metrics)

        serving = RunningServer(_url(listener), os.getpid(), with_worker, _refusal_reason(gate))
        child = partial(_serve_as_child, service.root, config, with_worker)
        ServerProcesses(count, listener, child).run(lambda: ready(serving), died)


def _serve_as_child(
    root: Path,
    config: Mapping[str, Any] | None,
    with_worker: bool,
    listener: socket.socket,
    number: int,
    ready: Callable[[], None],
) -> None:
    with_jobs = with_worker and number == 0
    serve(root, config=config, with_worker=with_jobs, listener=listener, ready=lambda _: ready())
    # As in the command: the interpreter's last garbage collections would delay the end.
    gc.freeze()


def _gate(service: MemoryService, chosen: ServerSettings) -> Gate:
    keys = KeyStore(service.root, service.clock, url=service.settings().memory.storage.url)
    if chosen.allow_without_key and chosen.trusted_proxies:
        raise InvalidConfig(
            "access without a key is allowed only from this machine, and behind a proxy every"
            " request seems to come from it: remove memory.server.allow_without_key or"
            " memory.server.trusted_proxies",
            host=chosen.host,
        )
    if chosen.host not in LOOPBACK:
        if chosen.allow_without_key:
            raise InvalidConfig(
                "access without a key is allowed only on a loopback address: remove "
                "memory.server.allow_without_key",
                host=chosen.host,
            )
        if not keys.has_any or not chosen.allowed_hosts:
            raise InvalidConfig(
                "an address that other machines can reach requires a key (memgraph key create) and "
                "memory.server.allowed_hosts",
                host=chosen.host,
            )
    return Gate(service, keys, keyless=chosen.allow_without_key)


def _refusal_reason(gate: Gate) -> str | None:
    """Return why every request would be refused (no keys, or an unsafe key file), or None."""
    if gate.keyless:
        return None
    try:
        if gate.keys.has_any:
            return None
    except InvalidConfig as error:
        return error.message
    return "there is no valid key, so every request is refused; run: memgraph key create"


def application(gate: Gate, chosen: ServerSettings) -> FastAPI:
    """Return the application of all surfaces: HTTP API, MCP (``/mcp``), console (``/console``)."""
    from memgraph.surfaces.http.app import create_app
    from memgraph.surfaces.web.app import console_pages

    pages = console_pages(gate) if chosen.console.enabled else None
    app = create_app(gate, pages=pages)
    mcp = _Mcp(gate, chosen)
    own_lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app_started: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        async with own_lifespan(app_started) as state, mcp.lifespan():
            yield state or {}

    app.router.lifespan_context = lifespan
    app.mount("/mcp", mcp)
    if pages is not None:
        app.mount(pages.place, pages.app)
    return app


class _Mcp:
    """The MCP application, imported at its first request: its packages take half a second."""

    def __init__(self, gate: Gate, chosen: ServerSettings) -> None:
        if find_spec("mcp") is None:
            raise ExtraMissing.of("serving needs the extra server", extra="server")
        self._gate = gate
        self._chosen = chosen

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run the application for the duration of this context. It can be entered only once."""
        import anyio

        self._wanted, self._ready = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
            yield
            tasks.cancel_scope.cancel()

    async def _run(self) -> None:
        import anyio

        await self._wanted.wait()
        self._app = await anyio.to_thread.run_sync(self._load)
        # The lifespan must be entered and left in the same task.
        async with self._app.lifespan():
            self._ready.set()
            await anyio.sleep_forever()

    def _load(self) -> McpApp:
        from memgraph.surfaces.mcp.http import McpApp

        return McpApp(self._gate, self._chosen)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        await self._ready.wait()
        await self._app(scope, receive, send)


def _worker(service: MemoryService, log: EventLog) -> Worker:
    def failed(name: str, error: MemgraphError) -> None:
        log.failure("worker", error, level="warning", orchestrator=name)

    return Worker(service, failed=failed)


@contextmanager
def _bound_socket(chosen: ServerSettings) -> Iterator[socket.socket]:
    """Yield a bound socket; an address that cannot be used raises InvalidConfig."""
    try:
        family, *_, address = socket.getaddrinfo(
            chosen.host, chosen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    # An invalid host name raises UnicodeError.
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the host name is invalid"
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            reason = (
                "another program is using the port; choose another with --port (0: any free port)"
            )
        raise InvalidConfig(
            f"cannot listen at {chosen.host}:{chosen.port}: {reason}",
            host=chosen.host,
            port=chosen.port,
        ) from None
    with listener:
        # Accepted sockets inherit this option. Without it, the body of a response would wait up to
        # 40 ms for the acknowledgement of its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
