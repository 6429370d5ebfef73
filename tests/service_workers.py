"""What other processes do through a service in tests."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import processes
from pair_readers import CHANGES, ScriptedReader
from processes import wait_until

from memgraph import MemoryService
from memgraph.errors import Conflict, DatabaseMissing, DatabaseReplaced
from memgraph.providers.fake import FakeEmbedding

NAME = "orc-1"
THREADS = 2
SETTINGS = {"memory.storage.synchronous": "NORMAL"}

_MOVED = DatabaseMissing, DatabaseReplaced

Tell = Callable[[str, str], None]


class Process(processes.Process):
    """A process that works until it is to finish; what it was told is stored stands in a file.

    Args:
        moving: whether the store is moved meanwhile; then the next call finds the new one.
    """

    def __init__(self, root: Path, told: Path, *, moving: bool = False) -> None:
        self.told = told
        self._stop = told.with_name(f"{told.name}-stop")
        super().__init__(_work_until, root, told, self._stop, moving)

    def finish(self) -> int:
        """Let it come to its end; gives its exit code."""
        self._stop.touch()
        return self.wait()

    @property
    def acknowledged(self) -> list[tuple[str, str]]:
        """(what, id) of everything that a call has returned. A line that was cut does not count."""
        if not self.told.exists():
            return []
        lines = self.told.read_text().split("\n")[:-1]
        return [(what, found) for what, _, found in (line.partition(" ") for line in lines)]


def _work_until(root: Path, told: Path, end: Path, moving: bool) -> None:
    """Runs in the process: some threads share one service until a file is there."""
    stop = threading.Event()
    failed: list[BaseException] = []
    with (
        told.open("ab", buffering=0) as file,
        MemoryService(
            root,
            environ={},
            embedding=FakeEmbedding(16),
            config=SETTINGS,
            pair_reader=ScriptedReader(otherwise=CHANGES),
        ) as service,
    ):

        def tell(what: str, found: str) -> None:
            file.write(f"{what} {found}\n".encode())

        def work(number: int) -> None:
            try:
                while not stop.is_set():
                    with contextlib.suppress(*_MOVED if moving else ()):
                        _work(service, f"{os.getpid()}-{number}", stop, tell)
            except BaseException as error:
                failed.append(error)
                raise

        threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
        for each in threads:
            each.start()
        wait_until(end.exists)
        stop.set()
        for each in threads:
            each.join()
    assert not failed


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
            orc.contradictions.resolve(edge, winner=other, reason="looked")
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
