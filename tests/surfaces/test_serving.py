"""The server as a real process: how it begins, ends in peace, ends at once, and is killed."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest
from anyio.to_thread import run_sync
from programs import ran
from server_processes import PATIENCE_S, ServerProcess, nobody_writes, server_process, until
from serving_worlds import EVERYTHING

from memgraph import MemoryService
from memgraph.clock import SystemClock
from memgraph.errors import ExtraMissing, InvalidConfig, ServerEnding
from memgraph.service.access.keys import KeyStore
from memgraph.service.worker import Worker
from memgraph.surfaces.http import app
from memgraph.surfaces.serve import RunningServer, serve
from memgraph.surfaces.shutdown import CUT_OFF, REQUEST_THREAD, DrainingServer

if TYPE_CHECKING:
    from conftest import CommandLine

MEMORIES = "/v1/orchestrators/orc-1/memories"
# However slow the machine is, a write that waits for its turn is neither refused nor broken off.
PATIENT = {
    "MEMGRAPH_MEMORY__STORAGE__BUSY_TIMEOUT_MS": "600000",
    "MEMGRAPH_MEMORY__SERVER__REQUEST_TIMEOUT_S": "600",
    "MEMGRAPH_MEMORY__SERVER__DRAIN_S": "600",
    "MEMGRAPH_MEMORY__EMBEDDING__PROVIDER": "fake",
}


def drains(server: ServerProcess) -> bool:
    return any(line["event"] == "draining" for line in server.log())


def write_that_waits(pool: ThreadPoolExecutor, server: ServerProcess) -> Future[httpx.Response]:
    """A request that has arrived and waits for its turn to write."""

    def write() -> httpx.Response:
        with server.client() as client:
            return client.post(MEMORIES, json={"content": "Written while it ended."})

    asked = pool.submit(write)
    with server.client() as client:
        # The other one is the question itself.
        until(lambda: "memgraph_http_requests_in_hand 2.0" in client.get("/metrics").text)
    return asked


def consolidated(server: ServerProcess) -> None:
    """A conversation that ended becomes facts: the worker inside does it."""
    path = "/v1/orchestrators/orc-1"
    turn = {"session_id": "monday", "source_role": "user", "content": "I live in Lisbon."}
    with server.client() as client:
        assert client.post(f"{path}/episodes", json=turn).status_code == 201
        assert client.post(f"{path}/sessions/end", json={"session_id": "monday"}).is_success

        def done() -> bool:
            runs: list[dict[str, Any]] = client.get(f"{path}/jobs").json()["runs"]
            return any((run["job"], run["state"]) == ("consolidation", "done") for run in runs)

        until(done)
        until(lambda: client.get("/readyz").json()["orchestrators"][0]["pending"] == 0)
        figures = client.get("/metrics").text
    assert 'memgraph_jobs_total{job="consolidation",state="done"}' in figures


def test_the_first_signal_lets_running_requests_finish(root: Path) -> None:
    with server_process(root, **PATIENT) as server, ThreadPoolExecutor(1) as pool:
        consolidated(server)
        with server.client() as client:
            bundle = client.post("/v1/orchestrators/orc-1/recall", json={"query": "Lisbon"}).json()
        with nobody_writes(root, "orc-1"):
            asked = write_that_waits(pool, server)
            server.process.send_signal(signal.SIGTERM)
            until(lambda: drains(server))
            with server.client() as late, pytest.raises(httpx.TransportError):
                late.get("/healthz")
            assert not asked.done()
        answer = asked.result()
        assert server.process.wait(PATIENCE_S) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""
        events = [line["event"] for line in server.log()]
    assert answer.status_code == 201
    assert [each for each in events if each != "request"] == ["serving", "draining", "ended"]
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        memory = orc.get(answer.json()["memory_id"])
        receipt = orc.receipts.get(bundle["receipt_id"])
    assert bundle["items"]
    assert [each.memory_id for each in receipt.items] == [
        each["memory"]["memory_id"] for each in bundle["items"]
    ]
    assert memory.content == "Written while it ended."


@pytest.mark.parametrize("mode", [None, 0o644, 0o600])
def test_an_operator_is_told_why_nobody_is_answered(
    root: Path, monkeypatch: pytest.MonkeyPatch, mode: int | None
) -> None:
    if mode is not None:
        KeyStore(root, SystemClock()).create({"name": "one", **EVERYTHING})
        (root / "keys.json").chmod(mode)
    monkeypatch.setattr(DrainingServer, "serve_at", lambda _self, _listener, ready: ready())
    # A server that ends at once leaves the thread that reads it, beside the next one's.
    monkeypatch.setattr(app, "known_queries", dict)
    told: list[RunningServer] = []
    serve(root, config={"memory.server.port": 0}, with_worker=False, ready=told.append)
    log = (root / "logs" / "server.log").read_text()
    wanted = {None: "memgraph key create", 0o644: f"chmod 600 {root / 'keys.json'}", 0o600: None}
    if (advice := wanted[mode]) is None:
        assert told[0].nobody is None
        assert '"nobody"' not in log
    else:
        assert told[0].nobody is not None
        assert advice in told[0].nobody
        assert advice in log


def test_what_waits_is_written_before_a_worker_that_may_be_cut_off_is_waited_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(DrainingServer, "serve_at", lambda *_: done.append("requests"))
    monkeypatch.setattr(MemoryService, "write_down", lambda _: done.append("written"))
    monkeypatch.setattr(Worker, "__exit__", lambda *_: done.append("worker"))
    monkeypatch.setattr(Worker, "__enter__", lambda one: one)
    serve(root, config={"memory.server.port": 0})
    assert done == ["requests", "written", "worker"]


def test_a_second_signal_ends_it_at_once(root: Path) -> None:
    with server_process(root, **PATIENT) as server, ThreadPoolExecutor(1) as pool:
        with nobody_writes(root, "orc-1"):
            asked = write_that_waits(pool, server)
            server.process.send_signal(signal.SIGTERM)
            until(lambda: drains(server))
            # Of the two it is the one to which Python has an answer of its own.
            assert server.end(signal.SIGINT) == -signal.SIGINT
        with pytest.raises(httpx.TransportError):
            asked.result()


def test_a_request_that_outlasts_the_drain_is_answered_503(root: Path) -> None:
    drain = {**PATIENT, "MEMGRAPH_MEMORY__SERVER__DRAIN_S": "0"}
    # The usual time for closing may be too short for a busy machine.
    unhurried = "from memgraph.surfaces import serve; serve.CLOSING_S = 600.0"
    with server_process(root, first=unhurried, **drain) as server, ThreadPoolExecutor(1) as pool:
        with nobody_writes(root, "orc-1"):
            asked = write_that_waits(pool, server)
            server.process.send_signal(signal.SIGTERM)
            answer = asked.result()
            # The request's thread waits on: nobody can break it off, so that the process lives.
            assert server.process.poll() is None
        assert server.process.wait(PATIENCE_S) == 0
        told = server.log()
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["code"]) == (503, ServerEnding.code)
    line = next(line for line in told if line["event"] == "request" and line["method"] == "POST")
    assert (line["status"], line["request_id"]) == (503, answer.headers["x-request-id"])


def test_a_process_whose_threads_do_not_end_is_cut_off() -> None:
    assert anyio.run(run_sync, threading.current_thread).name == REQUEST_THREAD
    script = (
        "import threading\n"
        "from memgraph.surfaces.shutdown import REQUEST_THREAD, ended_at_the_latest\n"
        "waits = threading.Thread(target=threading.Event().wait, args=[60], name=REQUEST_THREAD)\n"
        "with ended_at_the_latest() as within:\n"
        "    waits.start()\n"
        "    within(0.01)"
    )
    assert ran(["-c", script]).returncode == CUT_OFF


def test_without_its_packages_it_says_which_extra_has_them() -> None:
    script = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from memgraph.surfaces.cli import main; sys.exit(main(['serve', '--json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    error = json.loads(done.stderr)["error"]
    assert (error["code"], error["details"]) == (ExtraMissing.code, {"extra": "server"})


def test_a_killed_server_has_lost_nothing_that_it_acknowledged(root: Path) -> None:
    acknowledged: list[str] = []
    enough = threading.Event()

    def write(server: ServerProcess, writer: int) -> None:
        with server.client() as client:
            for number in range(10_000):
                try:
                    told = client.post(MEMORIES, json={"content": f"Note {number} of {writer}."})
                except httpx.TransportError:
                    return
                acknowledged.append(told.json()["memory_id"])
                if len(acknowledged) >= 40:
                    enough.set()

    with server_process(root) as server, ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, server, writer) for writer in range(4)]
        assert enough.wait(60)
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
        for each in writers:
            each.result()
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        assert {orc.get(each).memory_id for each in acknowledged} == {*acknowledged}
        assert orc.verify().ok


def test_an_address_that_others_reach_takes_keys_and_names(empty: CommandLine) -> None:
    named = ["--allow-host", "memory.example"]
    KeyStore(empty.root, SystemClock()).create({"name": "one", **EVERYTHING})
    for options in ([], ["--allow-without-key", *named]):
        error = empty.error("serve", "--host", "0.0.0.0", "--port", "0", *options)
        assert error["code"] == InvalidConfig.code
        assert error["details"]["host"] == "0.0.0.0"
    (empty.root / "keys.json").unlink()
    for options in (named, ["--allow-without-key"]):
        error = empty.error("serve", "--host", "0.0.0.0", "--port", "0", *options)
        assert error["code"] == InvalidConfig.code
        assert error["details"]["host"] == "0.0.0.0"


def test_a_proxy_is_an_address_and_takes_keys(root: Path) -> None:
    for proxies in (["proxy.example"], ["*"], ["10.0.0.1/8"], ["10.0.0.1", "0.0.0.0/0"], ["::/0"]):
        with pytest.raises(InvalidConfig, match="trusted_proxies"):
            serve(root, config={"memory": {"server": {"port": 0, "trusted_proxies": proxies}}})
    keyless = {"port": 0, "trusted_proxies": ["10.0.0.1"], "allow_without_key": True}
    with pytest.raises(InvalidConfig, match="trusted_proxies"):
        serve(root, config={"memory": {"server": keyless}})


def test_an_address_in_use_is_told_like_any_wrong_setting(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InvalidConfig) as caught:
        serve(root, config={"memory.server.port": taken.getsockname()[1]})
    assert "cannot listen" in caught.value.message
