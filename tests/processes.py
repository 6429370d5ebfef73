"""Processes that tests start, kill and wait for.

They are forked from one that has imported and done all of it once: each begins within some
hundredths of a second, where an interpreter of its own takes two seconds of work.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from typing import Any, Self
from unittest.mock import patch

PATIENCE_S = 60.0


def wait_until(holds: Callable[[], bool]) -> bool:
    """Whether it came to hold before a time in which it surely should."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.01)
    return False


def forked(
    function: Callable[..., object], *arguments: Any, daemon: bool = False
) -> ForkServerProcess:
    """Start a process that calls a function of a module."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["processes_preloaded"])
    # What is loaded beforehand is looked for where this process looks.
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
        forkserver.ensure_running()
    process: ForkServerProcess = context.Process(target=function, args=arguments, daemon=daemon)
    process.start()
    return process


class Process:
    """A process that calls a function of a module and ends; killed with the block that has it.

    Its exit code is 0 where the function returned, 1 where it raised.
    """

    def __init__(self, function: Callable[..., object], *arguments: Any) -> None:
        self._process = forked(function, *arguments, daemon=True)
        assert self._process.pid is not None
        self.pid = self._process.pid
        self._code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def ends_within(self, seconds: float) -> bool:
        """Wait so long at most; whether it has ended."""
        if self._code is None:
            self._process.join(seconds)
            self._code = self._process.exitcode
            if self._code is not None:
                self._process.close()
        return self._code is not None

    def wait(self) -> int:
        """Wait for the end; gives the exit code, or minus the number of the signal."""
        assert self.ends_within(PATIENCE_S)
        assert self._code is not None
        return self._code

    def kill(self) -> int:
        """SIGKILL: nothing is flushed, nothing is closed; gives the exit code."""
        if self._code is None:
            self._process.kill()
        return self.wait()
