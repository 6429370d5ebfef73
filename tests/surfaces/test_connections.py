"""Connections of a real server: those that send slowly or read nothing."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from server_processes import PATIENCE_S, ServerProcess, server_process

MEMORIES = "/v1/orchestrators/orc-1/memories"
HALF = f"GET {MEMORIES} HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".encode()


QUICK_HEADS = "from memgraph.surfaces import shutdown; shutdown.TimedHeads.head_timeout_s = 3.0"


def connected(server: ServerProcess) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


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
    with ExitStack() as held, server_process(root, first=QUICK_HEADS) as server:
        slow = [held.enter_context(connected(server)) for _ in range(256)]
        for each in slow:
            each.sendall(HALF)
        over = time.monotonic() + PATIENCE_S
        answers = []
        while time.monotonic() < over and not all(map(is_closed, slow)):
            trickle(slow)
            with server.client() as client:
                answers.append(client.get(MEMORIES).status_code)
            threading.Event().wait(0.2)
        assert set(answers) == {200}
        assert [each for each in slow if not is_closed(each)] == []


def test_a_later_head_has_its_time_too_and_an_idle_connection_stays(root: Path) -> None:
    with ExitStack() as held, server_process(root, first=QUICK_HEADS) as server:
        slow, idle, silent = (held.enter_context(connected(server)) for _ in range(3))
        for each in (slow, idle):
            each.sendall(f"GET {MEMORIES} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        for each in (slow, idle):
            assert each.recv(12) == b"HTTP/1.1 200"
        slow.sendall(HALF)
        over = time.monotonic() + PATIENCE_S
        while not (is_closed(slow) and is_closed(silent)):
            assert time.monotonic() < over
            trickle([slow])
            threading.Event().wait(0.1)
        assert not is_closed(idle)


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
            over = time.monotonic() + PATIENCE_S
            while f"{figure} 1.0" not in client.get("/metrics").text:
                assert time.monotonic() < over, "its requests are still in hand"
                threading.Event().wait(0.1)
