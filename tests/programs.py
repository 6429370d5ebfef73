"""Programs in Python that tests start, forked from a process that has loaded memgraph.

To import memgraph, and to use it for the first time, takes an interpreter of its own a second and a
half. How installed programs start is tested in surfaces/test_cli_process.py and test_package.py.
"""

from __future__ import annotations

import atexit
import os
import runpy
import subprocess
import sys
from multiprocessing import reduction
from pathlib import Path
from types import ModuleType
from typing import Any

from processes import forked

STREAMS = (0, 1, 2)


class Program(subprocess.Popen[Any]):
    """As ``Popen`` of ``[sys.executable, *words]``; see ``execute`` for the words.

    Takes those arguments of ``Popen`` that say nothing else of how a process starts.
    """

    def __init__(self, words: list[str], **given: Any) -> None:
        super().__init__(words, **given)

    def _execute_child(self, words: Any, *more: Any) -> None:
        # In the order of ``Popen.__init__``, the same from Python 3.11 to 3.14.
        folder, environ = more[4:6]
        pipes = more[9:15]
        ends = [pipes[0], pipes[3], pipes[5]]
        self._process = forked(
            _run,
            [str(word) for word in words],
            dict(os.environ if environ is None else environ),
            str(folder or Path.cwd()),
            *(_Stream(own if end == -1 else end) for end, own in zip(ends, STREAMS, strict=True)),
        )
        assert self._process.pid is not None
        self.pid = self._process.pid
        self._close_pipe_fds(*pipes)

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None:
            self._process.join(seconds)
            self.returncode = self._process.exitcode
        return self.returncode


def ran(
    words: list[str], timeout: float | None = None, **given: Any
) -> subprocess.CompletedProcess[Any]:
    """Run it and wait for its end, with what it wrote; killed where it takes too long."""
    pipe = subprocess.PIPE
    given = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "text": True} | given
    with Program(words, **given) as program:
        try:
            out, err = program.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
    return subprocess.CompletedProcess(words, program.returncode, out, err)


class _Stream:
    """An open file that goes with the arguments of a process, as its number there."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _number_of, (reduction.DupFd(self._number),)


def _number_of(duplicate: Any) -> int:
    number: int = duplicate.detach()
    return number


def _run(words: list[str], environ: dict[str, str], folder: str, *streams: int) -> None:
    """Runs in the process."""
    become(environ, folder, *streams)
    try:
        execute(words)
    finally:
        atexit._run_exitfuncs()


def become(environ: dict[str, str], folder: str, *streams: int) -> None:
    """Have of this process what it would have if an interpreter had been started in its place."""
    # Of the loaded process, for tests of the library: programs go by their settings.
    sys.modules["processes_preloaded"].scripted.stop()
    for stream, place in zip(streams, STREAMS, strict=True):
        os.dup2(stream, place)
        os.close(stream)
    # Those that were made there know what they were made on.
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(place, mode, encoding="utf-8") for place, mode in zip(STREAMS, "rww", strict=True)
    )
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)


def execute(words: list[str]) -> None:
    """Do what an interpreter does with these words: ``-c code …``, ``-m name …`` or ``file …``."""
    kind = words[0]
    if kind == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), sys.modules["__main__"].__dict__)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")
