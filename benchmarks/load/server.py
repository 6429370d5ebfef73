"""A `memgraph serve` process, and what it takes of the machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

MAIN = "import sys; from memgraph.surfaces.cli import main; sys.exit(main())"
START_S = 60.0


@dataclass(slots=True)
class Taken:
    """The most that the processes of a server took, as far as it was looked at.

    Attributes:
        memory_mb: resident, in units of 1,000,000 bytes.
        cpu_s: processor time since they began.
    """

    memory_mb: float = 0.0
    files: int = 0
    threads: int = 0
    cpu_s: float = 0.0

    def see(self, pid: int) -> None:
        """Look at a process; what has ended takes nothing."""
        folder = Path("/proc", str(pid))
        try:
            fields = _fields(folder / "status")
            files = sum(1 for _ in (folder / "fd").iterdir())
            times = (folder / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return
        peak = int(fields["VmHWM"].split()[0]) * 1024 / 1_000_000
        self.memory_mb = max(self.memory_mb, round(peak, 1))
        self.files = max(self.files, files)
        self.threads = max(self.threads, int(fields["Threads"]))
        self.cpu_s = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """One server process over a root, for a `with` block; it listens at a free loopback port.

    Args:
        options: further arguments of `memgraph serve`.
    """

    def __init__(self, root: Path, *options: str, environ: dict[str, str] | None = None) -> None:
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        settings = {
            "MEMGRAPH_ROOT": str(root),
            "MEMGRAPH_MEMORY__SERVER__PORT": str(self._port),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "serve", *options],
            env={**os.environ, **settings, **(environ or {})},
            stdout=subprocess.DEVNULL,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Server:
        until = time.monotonic() + START_S
        while True:
            try:
                httpx.get(f"{self.url}/openapi.json", timeout=START_S)
            except httpx.TransportError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(START_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL, as a power cut for the process; returns when it has ended."""
        self._process.kill()
        self._process.wait()


def _fields(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    return {name: rest.strip() for name, _, rest in (line.partition(":") for line in lines)}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
