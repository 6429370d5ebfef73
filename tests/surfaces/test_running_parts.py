"""The parts of a server's running: what is recorded and logged."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from serving_worlds import serving
from starlette.types import Message, Receive, Scope, Send

from memgraph.clock import FixedClock
from memgraph.config.schema import LogSettings
from memgraph.log import EventLog, MemorySink
from memgraph.model.jobs import OrchestratorState, ServiceReadiness
from memgraph.service.access.gate import Gate
from memgraph.surfaces import server_log
from memgraph.surfaces.http.envelope import NO_ROUTE, Envelope
from memgraph.surfaces.metrics import PrometheusMeters
from memgraph.surfaces.serve import application

CANARY = "The heron sleeps at Quillfen."


class Route:
    path = "/v1/orchestrators/{orchestrator}"


def ask(recorded: Envelope, **fields: object) -> None:
    """One request, whose answer nobody reads."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message: Message) -> None:
        return None

    scope = {"type": "http", "method": "GET", "path": f"/{CANARY}", "headers": [], **fields}
    asyncio.run(recorded(scope, receive, send))


async def found(scope: Scope, _receive: Receive, send: Send) -> None:
    scope["route"] = Route()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def failing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise ValueError(CANARY)


def figures(meters: PrometheusMeters, *standing: OrchestratorState) -> str:
    readiness = ServiceReadiness(status="ready", orchestrators=standing)
    return meters.exposition(readiness)[0].decode()


def test_a_request_is_measured_by_its_route_and_no_address_is_told() -> None:
    meters = PrometheusMeters()
    ask(Envelope(found, lambda: None, meters))
    ask(Envelope(failing, lambda: None, meters), method="BREW")
    told = figures(meters)
    for method, route, status in (("GET", Route.path, 200), ("other", NO_ROUTE, 500)):
        labels = f'{{method="{method}",route="{route}",status="{status}"}}'
        assert f"memgraph_http_request_seconds_count{labels} 1.0" in told
    assert "memgraph_http_requests_in_hand 0.0" in told
    assert "heron" not in told
    assert "BREW" not in told
    standing = OrchestratorState(orchestrator="orc-1", status="disabled")
    told = figures(meters, standing)
    assert 'memgraph_orchestrators{status="disabled"} 1.0' in told
    assert 'memgraph_orchestrators{status="ready"} 0.0' in told
    assert 'memgraph_orchestrators{status="disabled"} 0.0' in figures(meters)


def test_a_line_names_what_was_answered_and_the_route_that_was_meant(tmp_path: Path) -> None:
    lines = MemorySink()

    def app_of(gate: Gate) -> Any:
        app = application(gate, gate.service.settings().memory.server)
        app.state.log = EventLog(lines, FixedClock())
        return app

    small = {"memory.server.max_body_bytes": 1_000}
    memories = "/v1/orchestrators/orc-1/memories"
    with serving(tmp_path / "root", app_of=app_of, config=small) as served:
        served.orchestrator("orc-1")
        with served.client(served.key()) as client:
            client.get("/openapi.json")
            assert client.get("/").headers["location"] == "/console/"
            client.post(memories, json={"content": "x" * 2_000})
            client.get("/nowhere")
            client.get("/mcp/orc-1", headers={"authorization": "Bearer nobody's"})
            client.post("/console/login", content="x" * 2_000)
            client.post("/console/login", content="x")
            served.service.forget("orc-1")
            served.service.paths("orc-1").database.write_bytes(b"")
            client.get(memories)
            # The line of a request is written behind its answer, and before the next one's.
            client.get("/healthz")
    template = "/v1/orchestrators/{orchestrator}/memories"
    told = [json.loads(each) for each in lines.lines]
    assert [(each["route"], each["status"], each.get("code")) for each in told] == [
        ("/openapi.json", 200, None),
        ("/", 307, None),
        (template, 413, "request.too_large"),
        (NO_ROUTE, 404, "request.refused"),
        ("/mcp", 401, "access.unauthenticated"),
        ("/console", 413, "request.too_large"),
        ("/console/login", 403, "access.denied"),
        (template, 503, "storage.empty"),
    ]


def test_the_log_of_a_server_takes_complaints_without_their_texts(tmp_path: Path) -> None:
    before = logging.root.handlers[:], threading.excepthook

    def fail() -> None:
        raise ValueError(CANARY)

    with server_log.server_log(tmp_path, FixedClock(), LogSettings()) as log:
        log.info("serving", pid=1)
        logging.getLogger("elsewhere").warning("about %s", CANARY)
        logging.getLogger("elsewhere").info("quiet")
        try:
            fail()
        except ValueError:
            logging.getLogger("elsewhere").exception("it was: " + CANARY)
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    assert (logging.root.handlers, threading.excepthook) == before
    text = server_log.server_log_file(tmp_path).read_text(encoding="ascii")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["event"] for line in lines] == ["serving", "library", "library", "thread"]
    assert [line.get("error") for line in lines] == [None, None, "ValueError", "ValueError"]
    assert lines[3]["at"][-1].startswith("test_running_parts.py:")
    assert "heron" not in text


def test_who_logs_never_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_log, "MOST_WAITING", 2)
    let_go = threading.Event()
    entered = threading.Event()

    class Slow(MemorySink):
        def write(self, line: str) -> None:
            entered.set()
            assert let_go.wait(30)
            super().write(line)

    sink = Slow()
    queued = server_log.QueuedLog(sink)
    queued.write("first")
    assert entered.wait(30)
    for line in ("second", "third", "fourth"):
        queued.write(line)
    assert queued.dropped == 1
    let_go.set()
    queued.close()
    assert sink.lines == ["first", "second", "third"]
