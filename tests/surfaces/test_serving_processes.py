"""`memgraph serve --processes 2`: two processes answer at one address, and a third starts them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from server_processes import ServerProcess, server_process, until

from memgraph import MemoryService
from memgraph.surfaces.processes import ServerProcesses

MEMORIES = "/v1/orchestrators/orc-1/memories"
WRITERS, WRITES = 4, 10


def serving(server: ServerProcess) -> dict[int, bool]:
    """The processes that began to serve, and whether each runs the jobs."""
    return {line["pid"]: line["worker"] for line in server.log() if line["event"] == "serving"}


def written(server: ServerProcess, writer: int) -> list[str]:
    made = []
    for number in range(WRITES):
        with server.client() as client:
            told = client.post(MEMORIES, json={"content": f"Note {number} of {writer}."})
        made.append(told.raise_for_status().json()["memory_id"])
    return made


def test_a_process_that_is_killed_is_replaced_and_nothing_acknowledged_is_lost(
    root: Path,
) -> None:
    with (
        server_process(root, "--processes", "2") as server,
        ThreadPoolExecutor(WRITERS) as pool,
    ):
        # The address answers as soon as one of them accepts.
        until(lambda: len(serving(server)) == 2)
        first = serving(server)
        made = [
            each for some in pool.map(lambda n: written(server, n), range(WRITERS)) for each in some
        ]
        with server.client() as client:
            figures = client.get("/metrics").text
        killed = next(pid for pid, with_jobs in first.items() if with_jobs)
        os.kill(killed, signal.SIGKILL)
        until(lambda: len(serving(server)) == 3)
        made += written(server, WRITERS)
        # A retry at whichever process answers it stores nothing.
        assert written(server, 0) == made[:WRITES]
        assert server.end() == 0
        after = serving(server)
        deaths = [line["pid"] for line in server.log() if line["event"] == "process.died"]
    assert sorted(first.values()) == [False, True]
    # The one that takes its place runs the jobs, too.
    assert [after[pid] for pid in after.keys() - first.keys()] == [True]
    assert deaths == [killed]
    assert f'status="201"}} {float(WRITERS * WRITES)}' in figures
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1")
        assert {orc.get(each).memory_id for each in made} == {*made}
        assert orc.verify().ok


def waits(_listener: socket.socket, _number: int, ready: Callable[[], None]) -> None:
    """What a process does here instead of serving."""
    ready()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.pause()


def test_a_signal_while_a_process_is_replaced_ends_all_of_them() -> None:
    ended: list[int] = []
    others = {*multiprocessing.active_children()}

    def killed_one() -> None:
        child = ({*multiprocessing.active_children()} - others).pop()
        os.kill(child.pid or 0, signal.SIGKILL)

    def died(pid: int, _exit_code: int) -> None:
        ended.append(pid)
        # It comes while the place of the process is empty.
        os.kill(os.getpid(), signal.SIGTERM)

    with socket.socket() as listener:
        ServerProcesses(2, listener, waits).run(killed_one, died)
    assert len(ended) == 1
    assert {*multiprocessing.active_children()} <= others


def test_a_signal_while_the_processes_start_is_no_failure() -> None:
    others = {*multiprocessing.active_children()}
    with socket.socket() as listener:
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        ServerProcesses(2, listener, waits).run(lambda: None, lambda *_: None)
        timer.join()
    assert {*multiprocessing.active_children()} <= others
