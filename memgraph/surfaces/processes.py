"""Serve a root with several processes that accept from one socket, and replace those that die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from types import FrameType
from typing import Final

from memgraph.errors import ServerFailed

TURN_S: Final = 0.2
"""How long the parent waits at a time for the end of a process, in seconds."""
PAUSE_S: Final = 5.0
"""A process is replaced this many seconds after its start at the earliest."""


Target = Callable[[socket.socket, int, Callable[[], None]], None]


@dataclass(slots=True)
class _Child:
    process: SpawnProcess
    ready: Event
    number: int
    started_at: float = field(default_factory=time.monotonic)
    is_reported: bool = False


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
                takes its place, at most every ``PAUSE_S`` seconds.

        Raises:
            ServerFailed: a process ended with an error at the start or at the end.
        """
        starting = True
        with self._signals():
            for number in range(self._count):
                if not self._ending:
                    self._children.append(self._started(number))
            while (running := self._running()) or not self._ending:
                connection.wait(running, TURN_S)
                if starting and all(child.ready.is_set() for child in self._children):
                    starting = False
                    ready()
                self._replace_dead(died, starting=starting)
        for child in self._children:
            code = child.process.exitcode
            # A process that had no handler yet was ended by the signal itself.
            by_signal = self._ended_by_signal and code == -signal.SIGTERM
            if code and not by_signal and not child.is_reported:
                raise ServerFailed(f"a process of the server ended with {code}", exit_code=code)

    def _running(self) -> list[int]:
        """Return the sentinels of the processes that run."""
        return [
            child.process.sentinel for child in self._children if child.process.exitcode is None
        ]

    def _replace_dead(self, died: Callable[[int, int], None], *, starting: bool) -> None:
        for at, child in enumerate(self._children):
            code = child.process.exitcode
            if code is None or self._ending:
                continue
            if starting and not child.ready.is_set():
                # The next one would fail the same way.
                self._ending = True
            elif not child.is_reported:
                child.is_reported = True
                died(child.process.pid or 0, code)
            elif time.monotonic() >= child.started_at + PAUSE_S:
                self._children[at] = self._started(child.number)
        if self._ending:
            # A signal may have come while a process started.
            self._end()

    def _started(self, number: int) -> _Child:
        ready = self._context.Event()
        process = self._context.Process(
            target=_run, args=(self._target, self._listener, number, ready)
        )
        process.start()
        return _Child(process, ready, number)

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


def _run(target: Target, listener: socket.socket, number: int, ready: Event) -> None:
    # Ctrl-C reaches the parent alone, which passes it on.
    os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    target(listener, number, ready.set)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
