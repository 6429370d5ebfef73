"""Collect metrics for Prometheus. No label contains user data or the name of an orchestrator."""

from __future__ import annotations

import os
from collections import Counter as Tally
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, get_args

from memgraph.errors import ExtraMissing, JournalBroken
from memgraph.model.jobs import ServiceReadiness, StandingStatus
from memgraph.service.meters import COUNTERS, TOTAL, Counted, Meters, Work

try:
    from prometheus_client import (
        CONTENT_TYPE_LATEST,
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        ProcessCollector,
        generate_latest,
        multiprocess,
    )
except ModuleNotFoundError:
    raise ExtraMissing.of("metrics need the extra server", extra="server") from None

_UNSOUND: Final = frozenset({"verify.failed", "journal.unanchored", JournalBroken.code})
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
LONG_SECONDS: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0)
HISTOGRAMS: Final[Mapping[Work, tuple[str, str, tuple[float, ...]]]] = {
    "recall": ("Time of recalls, by leg and in total.", "leg", SECONDS),
    "write": ("Time of writes, by part; wait: for the write lock.", "part", SECONDS),
    "job": ("Time of job runs.", "job", LONG_SECONDS),
}
GAUGES: Final = {
    "orchestrators": ("Orchestrators by status.", "status"),
    "unsound_orchestrators": (
        "Orchestrators whose last audit failed, or whose journal lost entries.",
    ),
    "outbox_depth": ("Memories waiting to be embedded.",),
    "outbox_oldest_seconds": ("Age of the oldest waiting memory.",),
    "disk_free_bytes": ("Free space on the disk of the databases.",),
}

SHARED_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder in which processes share their metrics."""


class PrometheusMeters(Meters):
    """Collects the metrics of this process; ``exposition`` returns them.

    With ``SHARED_FOLDER`` in the environment, it returns those of all processes that share the
    folder, and nothing about the process itself, such as its memory.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._is_shared = SHARED_FOLDER in os.environ
        if not self._is_shared:
            ProcessCollector(registry=self._registry)
        shared: dict[str, Any] = {"registry": self._registry}
        self._work = {
            work: Histogram(f"memgraph_{work}_seconds", text, (label,), buckets=buckets, **shared)
            for work, (text, label, buckets) in HISTOGRAMS.items()
        }
        self._requests = Histogram(
            "memgraph_http_request_seconds",
            "Time of answered requests, by route.",
            ("method", "route", "status"),
            buckets=SECONDS,
            **shared,
        )
        self._counters = {
            counted: Counter(f"memgraph_{counted}", text, labels, **shared)
            for counted, (text, labels) in COUNTERS.items()
        }
        self._in_hand = Gauge(
            "memgraph_http_requests_in_hand",
            "Requests in progress.",
            multiprocess_mode="livesum",
            **shared,
        )
        self._gauges = {
            name: Gauge(
                f"memgraph_{name}", text, labels, multiprocess_mode="livemostrecent", **shared
            )
            for name, (text, *labels) in GAUGES.items()
        }

    def timed(self, work: Work, part: str = TOTAL) -> AbstractContextManager[object]:
        return self._work[work].labels(part).time()

    def count(self, counted: Counted, *labels: str, amount: int = 1) -> None:
        self._counters[counted].labels(*labels).inc(amount)

    def request_began(self) -> None:
        self._in_hand.inc()

    def request_ended(self, method: str, route: str, status: int, seconds: float) -> None:
        self._in_hand.dec()
        self._requests.labels(method, route, str(status)).observe(seconds)

    def exposition(self, ready: ServiceReadiness) -> tuple[bytes, str]:
        """Return all metrics in Prometheus's text format, with its media type."""
        states = ready.orchestrators or ()
        counts = Tally(item.status for item in states)
        # Set every status, even to 0: removing a label would race with concurrent requests.
        for status in get_args(StandingStatus):
            self._gauges["orchestrators"].labels(status).set(counts[status])
        for name, value in {
            "unsound_orchestrators": sum(not _UNSOUND.isdisjoint(item.codes) for item in states),
            "outbox_depth": sum(item.pending for item in states),
            "outbox_oldest_seconds": max(
                (item.oldest_pending_s or 0 for item in states), default=0
            ),
            "disk_free_bytes": ready.disk_free_bytes or 0,
        }.items():
            self._gauges[name].set(value)
        registry = self._registry
        if self._is_shared:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST


def forget_process(pid: int, folder: Path) -> None:
    """Remove the gauges of a process that ended from the folder of shared metrics."""
    multiprocess.mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
