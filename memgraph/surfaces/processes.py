"""Serve a root with several processes that accept from one socket, and replace those that die."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Final

from memgraph.errors import ServerFailed

TURN_S: Final = 0.2
"""How long the parent waits at a time for the end of a process, in seconds."""
PAUSE_S: Final = 1.0
MOST_PAUSE_S: Final = 60.0
"""The first and the longest pause before a process that lived for less is replaced."""


Target = Callable[[socket.socket, int, Callable[[], None]], None]


@dataclass(slots=True)
class _Child:
    process: SpawnProcess
    pipe: connection.Connection
    number: int
    pause_s: float
    started_at: float = field(default_factory=time.monotonic)
    is_ready: bool = False
    replaced_at: float = 0.0


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
        self._count = count
        self._ending = self._ended_by_signal = False
        self._children: list[_Child] = []

    def run(self, ready: Callable[[], None], died: Callable[[int, int], None]) -> None:
        """Start the processes, and wait until a signal has ended all of them.

        Args:
            ready: called once, when all processes accept requests.
            died: called with the id and exit code of each process that ended by itself; another
                takes its place, after a pause that doubles while processes live for seconds alone.

        Raises:
            ServerFailed: a process ended with an error at the start or at the end.
        """
        waiting = True
        with self._signals():
            for number in range(self._count):
                if not self._ending:
                    self._children.append(self._started(number))
            while (running := self._running()) or not self._ending:
                connection.wait(running, TURN_S)
                for child in self._children:
                    if not child.is_ready and child.pipe.poll():
                        child.is_ready = _is_told(child.pipe)
                if waiting and all(child.is_ready for child in self._children):
                    waiting = False
                    ready()
                self._replace_dead(died, starting=waiting)
        for child in self._children:
            code = child.process.exitcode
            # A process that had no handler yet was ended by the signal itself.
            by_signal = self._ended_by_signal and code == -signal.SIGTERM
            if code and not by_signal and not child.replaced_at:
                raise ServerFailed(f"a process of the server ended with {code}", exit_code=code)

    def _running(self) -> list[int]:
        """Return the sentinels of the processes that run."""
        return [
            child.process.sentinel for child in self._children if child.process.exitcode is None
        ]

    def _replace_dead(self, died: Callable[[int, int], None], *, starting: bool) -> None:
        for at, child in enumerate(self._children):
            code = child.process.exitcode
            if code is None or self._ending or time.monotonic() < child.replaced_at:
                continue
            if not child.is_ready and starting:
                # The next one would fail the same way.
                self._end()
                return
            if child.replaced_at == 0.0:
                died(child.process.pid or 0, code)
                lived_s = time.monotonic() - child.started_at
                child.pause_s = (
                    0.0
                    if lived_s > MOST_PAUSE_S
                    else min(max(2 * child.pause_s, PAUSE_S), MOST_PAUSE_S)
                )
                child.replaced_at = time.monotonic() + child.pause_s
            else:
                self._children[at] = self._started(child.number, child.pause_s)
        if self._ending:
            # A signal may have come while a process started.
            self._end()

    def _started(self, number: int, pause_s: float = 0.0) -> _Child:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_run, args=(self._target, self._listener, number, theirs)
        )
        process.start()
        theirs.close()
        return _Child(process, ours, number, pause_s=pause_s)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass SIGTERM and SIGINT on to the processes, as SIGTERM, while the block runs."""

        def passed_on(_number: int, _frame: FrameType | None) -> None:
            self._ended_by_signal = True
            self._end()

        numbers = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, passed_on) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _end(self) -> None:
        self._ending = True
        for child in self._children:
            if child.process.exitcode is None and child.process.pid is not None:
                os.kill(child.process.pid, signal.SIGTERM)


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
