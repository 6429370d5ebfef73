"""What ``memgraph bench latency`` prints: progress while it runs, then its tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from memgraph.surfaces.cli.screen import Screen, note, stages

# Without a terminal a line is written so often, and only where so many memories are measured.
SECONDS_BETWEEN_LINES = 20.0
MANY = 10_000
_TIMES = (
    ("recall", "recall"),
    ("plain SQL for recall", "raw_recall"),
    ("durable write", "write"),
    ("plain SQL for a write", "raw_write"),
    ("save_episode", "save_episode"),
    ("bulletin after a write", "bulletin_changed"),
    ("bulletin unchanged", "bulletin_unchanged"),
    ("subgraph", "subgraph"),
)


@contextmanager
def told_progress(sizes: Sequence[int]) -> Iterator[Callable[[str, int, int], None]]:
    """A bar, or a line now and then on standard error, with the rate and the time left."""
    pace = _Pace()
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    last = time.monotonic()
    with stages("measuring") as bar:

        def tell(stage: str, done: int, total: int) -> None:
            nonlocal last
            text = stage + pace.of(stage, done, total)
            if is_terminal:
                bar(text, done, total)
            elif max(sizes, default=0) >= MANY and time.monotonic() - last >= SECONDS_BETWEEN_LINES:
                last = time.monotonic()
                note(f"{text} ({done:,} of {total:,})")

        yield tell


def show(found: Mapping[str, Any], screen: Screen) -> None:
    """The targets beside what was measured, the worst cases, and the times of each kind."""
    sizes = {f"{int(size):,}": figures for size, figures in found["sizes"].items()}
    screen.heading("Targets")
    rows = []
    for at, target in enumerate(next(iter(sizes.values()))["targets"]):
        each = [figures["targets"][at] for figures in sizes.values()]
        rows.append([target["what"], *(_asked(one["value"], one) for one in each)])
    screen.table(("what", *sizes), rows)
    screen.line()
    screen.heading("Worst cases, p95 ms")
    names = next(iter(sizes.values()))["worst"]
    screen.table(
        ("what", *sizes),
        [[name, *(_worst(figures["worst"][name]) for figures in sizes.values())] for name in names],
    )
    screen.line()
    screen.heading("Times, ms: p50 / p95 / p99")
    screen.table(
        ("what", *sizes),
        [[name, *(_times(figures[key]) for figures in sizes.values())] for name, key in _TIMES],
    )
    screen.line()
    screen.fields(
        [(name, str(value)) for name, value in found["machine"].items()]
        + [("rounds", str(found["rounds"]))]
        + [(f"seconds at {size}", str(figures["seconds"])) for size, figures in sizes.items()]
        + [(f"drawn to {number}", path) for number, path in enumerate(found.get("plots", ()), 1)]
    )


class _Pace:
    """How fast a stage goes on, and how long it will take."""

    def __init__(self) -> None:
        self._stage = ""
        self._start = (0.0, 0)

    def of(self, stage: str, done: int, total: int) -> str:
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._start = stage, (now, done)
        since, first = self._start
        if done <= first or now <= since:
            return ""
        rate = (done - first) / (now - since)
        return f", {rate:,.0f}/s, {(total - done) / rate:,.0f} s left"


def _asked(value: float | None, target: Mapping[str, Any]) -> str:
    if target["met"] is None:
        return _number(value)
    sign = ">=" if target["at_least"] else "<="
    mark = "met" if target["met"] else "MISSED"
    return f"{_number(value)} ({sign} {_number(target['target'])}) {mark}"


def _worst(case: Mapping[str, Any]) -> str:
    told = _asked(case["p95"], {**case, "at_least": False})
    return f"{told} [{', '.join(case['degraded'])}]" if case.get("degraded") else told


def _times(each: Mapping[str, float]) -> str:
    return " / ".join(_number(each[share]) for share in ("p50", "p95", "p99"))


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.4g}"
