"""What other processes do through a service in tests. Each starts by itself, as programs do."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from memgraph import MemoryService
from memgraph.errors import Conflict
from memgraph.providers.fake import FakeEmbedding

NAME = "orc-1"
THREADS = 2
PATIENCE_S = 60
SETTINGS = {"memory.storage.synchronous": "NORMAL"}

Tell = Callable[[str, str], None]


class Process:
    """A process that works until its input ends; what it was told is stored stands in a file."""

    def __init__(self, root: Path, told: Path) -> None:
        self.told = told
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import service_workers as w; w.main()", str(root), str(told)],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
            stdin=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nothing is closed."""
        self._process.kill()
        self._process.wait()

    def finish(self) -> int:
        """Let it come to its end; gives its exit code."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        return self._process.wait(timeout=PATIENCE_S)

    @property
    def acknowledged(self) -> list[tuple[str, str]]:
        """(what, id) of everything that a call has returned. A line that was cut does not count."""
        if not self.told.exists():
            return []
        lines = self.told.read_text().split("\n")[:-1]
        return [(what, found) for what, _, found in (line.partition(" ") for line in lines)]


def main() -> None:
    """Runs in the process: some threads share one service until standard input ends."""
    root, told = Path(sys.argv[1]), Path(sys.argv[2])
    stop = threading.Event()
    failed: list[BaseException] = []
    with (
        told.open("ab", buffering=0) as file,
        MemoryService(root, environ={}, embedding=FakeEmbedding(16), config=SETTINGS) as service,
    ):

        def tell(what: str, found: str) -> None:
            file.write(f"{what} {found}\n".encode())

        def work(number: int) -> None:
            try:
                _work(service, f"{os.getpid()}-{number}", stop, tell)
            except BaseException as error:
                failed.append(error)
                raise

        threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
        for each in threads:
            each.start()
        sys.stdin.read()
        stop.set()
        for each in threads:
            each.join()
    sys.exit(1 if failed else 0)


def _work(service: MemoryService, who: str, stop: threading.Event, tell: Tell) -> None:
    """A turn and two claims that contradict each other, decided; over and over."""
    orc = service.orchestrator(NAME)
    step = 0
    while not stop.is_set():
        step += 1
        tell("memory", orc.remember("Hello.", kind="episode", session_id="shared"))
        one = orc.remember(f"Gate {who} opens at {step}.")
        other = orc.remember(f"Gate {who} never opens, {step}.")
        tell("memory", one)
        edge = orc.relate(one, "Contradicts", other)
        tell("edge", edge)
        try:
            orc.resolve(edge, winner=other, reason="looked")
            tell("resolved", edge)
        except Conflict as error:
            # Seen once in some thousands: a clock that is set back makes the first the later one.
            tell("conflict", error.code)
        orc.recall(f"gate {who}", top_n=3)
        # All of them write this one, and one of them corrects it.
        shared = orc.remember(f"Shared {step % 7}.")
        try:
            tell(
                "memory", orc.correct(shared, f"Shared {step % 7}, seen {who} {step}.", reason="x")
            )
        except Conflict as error:
            tell("conflict", error.code)
