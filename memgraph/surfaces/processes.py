"""Serve a root with several processes that accept from one socket, and replace those that die."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Final

from memgraph.errors import ServerFailed

TURN_S: Final = 0.2
"""How long the parent waits at a time for the end of a process, in seconds."""


Target = Callable[[socket.socket, int, Callable[[], None]], None]


@dataclass(slots=True)
class _Child:
    process: SpawnProcess
    pipe: connection.Connection
    number: int
    is_ready: bool = False


class ServerProcesses:
    """The processes of one server, and the parent's loop.

    Args:
        count: the number of processes.
        listener: the bound socket that all of them accept from.
        target: what a process runs, importable: called with the socket, its number from 0, and
            a function to call once it accepts requests.
    """

    def __init__(self, count: int, listener: socket.socket, target: Target) -> None:
        self._listener = listener
        self._target = target
        self._context = multiprocessing.get_context("spawn")
        self._ending = False
        self._children = [self._started(number) for number in range(count)]

    def run(self, ready: Callable[[], None], died: Callable[[int, int], None]) -> None:
        """Wait until a signal has ended all processes.

        Args:
            ready: called once, when all processes accept requests.
            died: called with the id and exit code of each process that ended by itself; another
                takes its place.

        Raises:
            ServerFailed: a process ended before it accepted requests, or not in time.
        """
        waiting = True
        with self._signals():
            while any(child.process.exitcode is None for child in self._children):
                connection.wait([child.process.sentinel for child in self._children], TURN_S)
                for child in self._children:
                    if not child.is_ready and child.pipe.poll():
                        child.is_ready = _is_told(child.pipe)
                if waiting and all(child.is_ready for child in self._children):
                    waiting = False
                    ready()
                self._replace_dead(died)
        for child in self._children:
            if code := child.process.exitcode:
                raise ServerFailed(f"a process of the server ended with {code}", exit_code=code)

    def _replace_dead(self, died: Callable[[int, int], None]) -> None:
        for at, child in enumerate(self._children):
            code = child.process.exitcode
            if code is None or self._ending:
                continue
            if not child.is_ready:
                # The next one would fail the same way.
                self._end(signal.SIGTERM)
                return
            died(child.process.pid or 0, code)
            self._children[at] = self._started(child.number)

    def _started(self, number: int) -> _Child:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_run, args=(self._target, self._listener, number, theirs)
        )
        process.start()
        theirs.close()
        return _Child(process, ours, number)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass SIGTERM and SIGINT on to the processes, as SIGTERM, while the block runs."""

        def passed_on(_number: int, _frame: FrameType | None) -> None:
            self._end(signal.SIGTERM)

        numbers = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, passed_on) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _end(self, number: int) -> None:
        self._ending = True
        for child in self._children:
            if child.process.exitcode is None and child.process.pid is not None:
                os.kill(child.process.pid, number)


def _is_told(pipe: connection.Connection) -> bool:
    try:
        pipe.recv()
    except EOFError:
        # The process ended; its exit code is looked at elsewhere.
        return False
    return True


def _run(target: Target, listener: socket.socket, number: int, pipe: connection.Connection) -> None:
    # Ctrl-C reaches the parent alone, which passes it on.
    os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    target(listener, number, lambda: pipe.send(None))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def empty_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder, removed at the end; what a killed process left there goes, too."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700, parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
