"""What every test may use: a service in a folder of its own, a clock that stands still."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from model_server import ModelServer

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.ids import CountingIds
from memgraph.providers import completion
from tests.postgres_servers import asked_as_sqlite, drop_schemas, postgres_database

if TYPE_CHECKING:
    # Tests of rules load no database.
    from filling import Filling

    from memgraph.store.engine import Database

# A machine that is busy with something else is no reason to fail.
settings.register_profile("memgraph", deadline=None)
settings.load_profile("memgraph")

ROOT = Path(__file__).resolve().parent.parent
IN_MEMORY = Path("/dev/shm")
ENGINES = ["sqlite", "postgresql"]
SHIPPED_READER = MemoryService.pair_reader
ROOM = 2 * 2**30
"""Bytes that must be free; what a test has stored goes when it has passed."""


def pytest_configure(config: pytest.Config) -> None:
    """Store in memory where there is room, else most of the time goes by waiting for the disk; have
    no event loop but those that somebody asks for; and let interrupts reach the processes of tests.
    """
    if not {"TMPDIR", "TEMP", "TMP"} & os.environ.keys() and _holds(IN_MEMORY):
        os.environ["TMPDIR"] = str(IN_MEMORY)
        tempfile.tempdir = None  # another plugin may have asked for it before
    # Else litellm makes an event loop for a thread that has none, which nobody closes.
    asyncio.set_event_loop(None)
    # A shell's background job ignores interrupts, and so would every process that it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection(session: pytest.Session) -> None:
    """Look for no garbage while tests are collected: it takes a third of the time."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was loaded and collected stays: it need not be looked through for garbage again."""
    gc.enable()
    gc.collect()
    gc.freeze()


def _holds(folder: Path) -> bool:
    """Is there room in a folder, for programs too?"""
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(folder).free >= ROOM


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A server of models on loopback, which answers as it is told to."""
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database of its own, for tests below the service."""
    from filling import fresh_database

    with fresh_database(tmp_path) as opened:
        yield opened


@pytest.fixture
def filling(database: Database) -> Filling:
    from filling import Filling

    return Filling(database)


@pytest.fixture
def asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a language model that fails not asked again."""
    monkeypatch.setitem(completion.DEFAULTS, "retries", 0)


@pytest.fixture(scope="session", autouse=True)
def reads_no_pairs() -> Iterator[None]:
    """Have no reader of pairs but the one that a test passes in; of services of modules, too.

    The shipped one would run in the background of every test, and mark what no test is about.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MemoryService, "pair_reader", lambda self, _settings: self._pair_reader)
        yield


@pytest.fixture(autouse=True)
def reads_pairs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the shipped reader of pairs where a test marks that it wants it."""
    if request.node.get_closest_marker("reads_pairs") is not None:
        monkeypatch.setattr(MemoryService, "pair_reader", SHIPPED_READER)


@pytest.fixture
def shared() -> Path:
    """Real input that lies beside the project, where it is to be had."""
    folder = Path(os.environ.get("MEMGRAPH_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("needs the shared data: set MEMGRAPH_SHARED to its folder")
    return folder


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine", choices=ENGINES, help="Run every test of a service on this engine alone."
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what is marked ``engines`` on each of them."""
    chosen = metafunc.config.getoption("--engine")
    has = metafunc.definition.get_closest_marker
    if "storage_url" not in metafunc.fixturenames or has("sqlite"):
        return
    if chosen or has("engines"):
        metafunc.parametrize("storage_url", [chosen] if chosen else ENGINES, indirect=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a database of its own: of a server that is started, or of the one that
    ``MEMGRAPH_TEST_POSTGRES_URL`` names.
    """
    # Not below pytest's folder: another pytest of the same user closes that to the server's user.
    prefix = "memgraph-postgres-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with postgres_database(Path(folder)) as url:
            yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a database of PostgreSQL without any schema of ours."""
    yield postgres_server
    drop_schemas(postgres_server)


@pytest.fixture
def storage_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """What ``memory.storage.url`` is: empty, or that of a database without any schema of ours."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield ""
        return
    with asked_as_sqlite():
        yield request.getfixturevalue("postgres_url")


@pytest.fixture
def service(tmp_path: Path, clock: FixedClock, storage_url: str) -> Iterator[MemoryService]:
    """Repeatable: fixed time, counted ids, no environment, nothing in the background."""
    with MemoryService(
        tmp_path / "root",
        # On a busy machine a write may wait longer than the default.
        config={"memory.storage.url": storage_url, "memory.storage.busy_timeout_ms": 30_000},
        clock=clock,
        ids=CountingIds(),
        environ={},
        background=False,
    ) as made:
        yield made


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    return service.orchestrator("orc-1", create=True)
