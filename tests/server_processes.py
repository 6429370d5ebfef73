"""`memgraph serve` as a process of its own, started and ended by a test."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from programs import Program

PATIENCE_S = 30.0
SERVE = "import sys; from memgraph.surfaces.cli import main; sys.exit(main())"


@dataclass(frozen=True)
class ServerProcess:
    """A process that takes requests."""

    root: Path
    url: str
    process: subprocess.Popen[str]

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, verify=False, timeout=PATIENCE_S)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; gives the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def log(self) -> list[dict[str, Any]]:
        """The lines of the server's log so far."""
        file = self.root / "logs" / "server.log"
        return [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does; on a busy machine it takes its time."""
    over = time.monotonic() + 4 * PATIENCE_S
    while not condition():
        assert time.monotonic() < over, "it never came about"
        time.sleep(0.05)


@contextmanager
def server_process(
    root: Path, *options: str, keyless: bool = True, first: str = "", **environ: str
) -> Iterator[ServerProcess]:
    """Serve a root until the block ends; what still runs then is killed.

    Args:
        keyless: nobody needs a key.
        first: statements that the process executes before it serves.
    """

    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMGRAPH_")}
    # As in conftest.py: no shipped reader of pairs at work in the background.
    kept["MEMGRAPH_MEMORY__COMPARISON__READER"] = "none"
    process = Program(
        [
            *("-c", f"{first}\n{SERVE}", "serve", "--json"),
            *("--port", "0", *(["--allow-without-key"] if keyless else []), *options),
        ],
        env={**kept, "MEMGRAPH_ROOT": str(root), **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            _, complaint = process.communicate(timeout=PATIENCE_S)
            raise AssertionError(f"the server did not start: {complaint}")
        yield ServerProcess(root, json.loads(line)["data"]["url"], process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE_S)


@contextmanager
def nobody_writes(root: Path, name: str) -> Iterator[None]:
    """Holds the lock of an orchestrator's writers: what is to be written waits for the block."""
    lock = root / name / "memory" / "memory.lock"
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
