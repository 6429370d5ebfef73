"""What the latency bench asks for at each size, and whether a run came up to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SIZES = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Target:
    """One row of the table.

    Attributes:
        figure: where the value lies in the figures of a size, by dots.
        bounds: one for each of ``SIZES``, or None; other sizes have none.
        at_least: the value may not be lower; otherwise it may not be higher.
    """

    what: str
    figure: str
    bounds: tuple[float | None, float | None, float | None]
    at_least: bool = False

    def bound(self, size: int) -> float | None:
        return self.bounds[SIZES.index(size)] if size in SIZES else None

    def is_met(self, size: int, value: float | None) -> bool | None:
        """None: nothing is asked at this size, or nothing was measured."""
        bound = self.bound(size)
        if bound is None or value is None:
            return None
        return value >= bound if self.at_least else value <= bound


RECALL_P95 = Target("recall p95, ms", "recall.p95", (10.0, 25.0, 120.0))
TARGETS = (
    Target("recall p50, ms", "recall.p50", (5.0, 12.0, 60.0)),
    RECALL_P95,
    Target("recall p50, ratio to plain SQL", "recall_ratio", (2.0, 0.8, 0.4)),
    Target("context p50, ms", "context.p50", (7.0, None, None)),
    Target("overlap@20 with exact search", "overlap_at_20", (0.99, 0.98, 0.96), at_least=True),
    Target("durable write p50, ms", "write.p50", (2.5, 2.5, 2.5)),
    Target("durable write p50, ratio to plain SQL", "write_ratio", (4.0, 4.0, 4.0)),
    Target("save_episode p99, ms", "save_episode.p99", (10.0, 10.0, 15.0)),
    Target("bulk load with embedding, per s", "bulk_per_s", (4_000, 4_000, 4_000), at_least=True),
    Target("bulletin after a write p50, ms", "bulletin_changed.p50", (3.0, 4.0, 8.0)),
    Target("bulletin unchanged p50, ms", "bulletin_unchanged.p50", (0.3, 0.3, 0.3)),
    Target("subgraph, 2 hops, 200 nodes p50, ms", "subgraph.p50", (10.0, 12.0, 20.0)),
    Target("peak memory of the process, MB", "peak_memory_mb", (300.0, 450.0, 1_500.0)),
    Target(
        "disk per memory beyond its text, bytes", "disk_bytes_per_memory", (2_000, 2_000, 2_000)
    ),
    Target("import of MemoryService, s", "start.import", (0.4, 0.4, 0.4)),
    Target("memgraph list, s", "start.list", (0.7, 0.7, 0.7)),
    Target("memgraph recall, s", "start.recall_command", (0.9, 1.0, 2.0)),
    Target("first recall of a process, s", "start.first_recall", (0.4, 0.5, 1.5)),
    Target("first answer of memgraph serve, s", "start.serve", (1.2, 1.2, 1.2)),
    Target("recalls over HTTP, per s", "http.recalls_per_s", (60.0, None, None), at_least=True),
    Target("writes over HTTP, per s", "http.writes_per_s", (250.0, None, None), at_least=True),
    Target("recalls, two processes to one", "http.recalls_two", (1.3, None, None), at_least=True),
    Target("writes, two processes to one", "http.writes_two", (1.0, None, None), at_least=True),
)
# The worst cases stay within so many times the p95 of an ordinary recall.
WORST_FACTOR = 2.0


def check(figures: Mapping[str, Any], size: int) -> list[dict[str, Any]]:
    """Each target of a size: ``what``, ``figure``, ``value``, ``target``, ``at_least``, ``met``."""
    return [
        {
            "what": each.what,
            "figure": each.figure,
            "value": value,
            "target": each.bound(size),
            "at_least": each.at_least,
            "met": each.is_met(size, value),
        }
        for each in TARGETS
        for value in [_at(figures, each.figure)]
    ]


def check_worst(worst: Mapping[str, Mapping[str, Any]], size: int) -> dict[str, dict[str, Any]]:
    """The worst cases by name, each with its ``target`` for the p95 and whether it is ``met``."""
    usual = RECALL_P95.bound(size)
    target = None if usual is None else WORST_FACTOR * usual
    return {
        name: {**each, "target": target, "met": None if target is None else each["p95"] <= target}
        for name, each in worst.items()
    }


def _at(figures: Mapping[str, Any], path: str) -> float | None:
    found: Any = figures
    for name in path.split("."):
        found = found[name]
    return None if found is None else float(found)
