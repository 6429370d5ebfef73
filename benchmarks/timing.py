"""Times of repeated actions, and the peak memory of this process."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

Item = TypeVar("Item")
NO_READER: Final = {"memory.comparison.reader": "none"}
"""Settings for what is timed alone: reading pairs takes a core in the background."""
Tell = Callable[[str, int, int], None]
"""Takes a stage, how much of it is done, and how much there is."""


def seconds(action: Callable[..., object], *args: Any, **values: Any) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    action(*args, **values)
    return time.perf_counter() - start


def percentiles(taken: Sequence[float], *, unit: float = 1000.0) -> dict[str, float]:
    """p50, p95 and p99 (nearest rank) of some times, each multiplied by ``unit``."""
    ordered = sorted(taken)
    return {
        f"p{share}": round(ordered[max(-(-share * len(ordered) // 100) - 1, 0)] * unit, 3)
        for share in (50, 95, 99)
    }


def ratio(measured: dict[str, float], floor: dict[str, float]) -> float:
    """That of the medians."""
    return round(measured["p50"] / max(floor["p50"], 1e-6), 3)


class Stopwatch(Iterable[Item]):
    """Hands items on and keeps the time that it took to make them, to be left out of a sum.

    Attributes:
        taken: seconds so far.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self.taken = 0.0

    def __iter__(self) -> Iterator[Item]:
        while True:
            start = time.perf_counter()
            try:
                item = next(self._items)
            except StopIteration:
                return
            finally:
                self.taken += time.perf_counter() - start
            yield item


def peak_memory_mb() -> float:
    """The most that was resident so far, in units of 1,000,000 bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # What getrusage tells of a process begins with what its parent held before the exec.
        [kib] = [
            line.split()[1]
            for line in status.read_text(encoding="ascii", errors="replace").splitlines()
            if line.startswith("VmHWM:")
        ]
    else:
        kib = str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return round(int(kib) * 1024 / 1_000_000, 1)
