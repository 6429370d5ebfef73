"""Connections of a real server: many that send slowly, and what is no HTTP to the letter."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from server_processes import PATIENCE_S, ServerProcess, server_process

from memgraph import MemoryService

MEMORIES = "/v1/orchestrators/orc-1/memories"
HALF = f"GET {MEMORIES} HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".encode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    with MemoryService(made, environ={}, background=False) as service:
        service.create("orc-1")
    return made


def connected(server: ServerProcess, address: str = "127.0.0.1") -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE_S, source_address=(address, 0))


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end closed it; what it sent before is read."""
    connection.setblocking(False)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def trickle(connections: list[socket.socket]) -> None:
    """Send one more byte on every connection that is still there."""
    for each in connections:
        try:
            each.send(b"x")
        except (ConnectionError, BlockingIOError):
            continue


def test_many_slow_heads_stop_nobody_and_end_in_time(root: Path) -> None:
    environ = {"MEMGRAPH_MEMORY__SERVER__HEAD_TIMEOUT_S": "3"}
    with ExitStack() as held, server_process(root, **environ) as server:
        slow = [held.enter_context(connected(server)) for _ in range(256)]
        for each in slow:
            each.sendall(HALF)
        over = time.monotonic() + 10
        answers = []
        while time.monotonic() < over and not all(map(is_closed, slow)):
            trickle(slow)
            with server.client() as client:
                answers.append(client.get(MEMORIES).status_code)
            threading.Event().wait(0.2)
        assert set(answers) == {200}
        assert [each for each in slow if not is_closed(each)] == []


def test_more_connections_than_files_take_the_place_of_idle_ones(root: Path) -> None:
    with ExitStack() as held, server_process(root, max_files=256) as server:
        slow = [held.enter_context(connected(server, f"127.0.1.{n % 8 + 1}")) for n in range(400)]
        for each in slow:
            each.setblocking(False)
        for _ in range(3):
            trickle(slow)
            with server.client() as client:
                assert client.post(MEMORIES, json={"content": "mine"}).status_code in (200, 201)


def test_one_address_takes_no_more_than_its_share(root: Path) -> None:
    environ = {"MEMGRAPH_MEMORY__SERVER__CONNECTIONS_PER_ADDRESS": "8"}
    with ExitStack() as held, server_process(root, **environ) as server, server.client() as idle:
        other = held.enter_context(connected(server, "127.0.1.1"))
        assert idle.get(MEMORIES).status_code == 200
        slow = [held.enter_context(connected(server)) for _ in range(40)]
        with httpx.Client(base_url=server.url, trust_env=False) as late:
            assert late.get(MEMORIES).status_code == 200
        over = time.monotonic() + PATIENCE_S
        while sum(not is_closed(each) for each in slow) > 8 and time.monotonic() < over:
            threading.Event().wait(0.05)
        assert sum(not is_closed(each) for each in slow) <= 8
        assert not is_closed(other)
        # It was used once, and those that sent nothing went before it.
        assert idle.get(MEMORIES).status_code == 200


def test_a_client_that_reads_nothing_is_cut_off(root: Path) -> None:
    environ = {"MEMGRAPH_MEMORY__SERVER__REQUEST_TIMEOUT_S": "1"}
    with ExitStack() as held, server_process(root, **environ) as server:
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        host, port = server.url.removeprefix("http://").split(":")
        deaf = held.enter_context(socket.socket())
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.connect((host, int(port)))
        deaf.sendall(asked * 20)
        with server.client() as client:
            figure = "memgraph_http_requests_in_hand"
            over = time.monotonic() + 15
            while f"{figure} 1.0" not in client.get("/metrics").text:
                assert time.monotonic() < over, "its requests are still in hand"
                threading.Event().wait(0.1)


@pytest.mark.parametrize(
    "sent",
    [
        f"GET {MEMORIES} HTTP/1.1\nHost: localhost\n\n",
        f"GET {MEMORIES} HTTP/1.1\r\nHost: localhost\n\r\n",
        f"GET {MEMORIES} HTTP/1.1\r\nHost: localhost\r\n\n",
        f"GET {MEMORIES} HTTP/1.1\r\nHost: localhost\r\nX-A: b\nX-B: c\r\n\r\n",
        f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        f"GET {MEMORIES} HTTP/1.1\nHost: localhost\n\n",
        f"POST {MEMORIES} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\nX-Trailer: a\n\r\n",
    ],
)
def test_a_line_that_ends_with_lf_alone_is_refused(sent: str, small: ServerProcess) -> None:
    with connected(small) as connection:
        connection.sendall(sent.encode())
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    assert_refused(b"".join(parts))


def assert_refused(answers: bytes) -> None:
    """Assert that the last of some answers is a problem with the status 400."""
    head, _, body = answers.rpartition(b"HTTP/1.1 ")[2].partition(b"\r\n\r\n")
    assert head[:3] == b"400"
    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["code"] == "request.refused"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("small") / "root"
    with MemoryService(root, environ={}, background=False) as service:
        service.create("orc-1")
    with server_process(root) as server:
        yield server


def test_a_head_that_comes_byte_by_byte_is_read(small: ServerProcess) -> None:
    with connected(small) as connection:
        head = f"GET {MEMORIES} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        for byte in head.encode():
            connection.send(bytes([byte]))
        assert connection.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(
    "sent",
    [
        b"no HTTP\r\n\r\n",
        f"GET {MEMORIES} HTTP/1.1\r\nHost: localhost\r\nX-A: b\0c\r\n\r\n".encode(),
        f"POST {MEMORIES} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        "no chunk\r\n".encode(),
    ],
    ids=["line", "header", "chunk"],
)
def test_what_is_no_http_is_answered_as_a_problem(sent: bytes, small: ServerProcess) -> None:
    with connected(small) as connection:
        connection.sendall(sent)
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    assert_refused(b"".join(parts))


def test_what_is_no_http_behind_the_head_of_an_answer_ends_the_connection(root: Path) -> None:
    with server_process(root) as server:
        with connected(server) as connection:
            events = MEMORIES.replace("memories", "events")
            head = f"GET {events} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head.encode())
            assert connection.recv(12) == b"HTTP/1.1 200"
            connection.sendall(b"no chunk\r\n")
            rest = b""
            while part := connection.recv(65_536):
                rest += part
        assert b"HTTP/1.1" not in rest
        server.end()
        assert {"error", "critical"}.isdisjoint(each["level"] for each in server.log())
