"""``memgraph bench life``: time and memory of consolidation and decay without a model.

The public interface with default settings, on sessions of ``benchmarks.talks``.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from benchmarks import nights
from benchmarks.talks import TURNS, talks
from memgraph.errors import InvalidInput
from memgraph.operations.life import consolidation
from memgraph.operations.life.consolidation import SessionReport
from memgraph.service.memory_service import MemoryService

MAX_SESSIONS = 100_000
MAX_FACTS = 1_000_000
_NAME = "bench"


def run(
    sessions: int = 1_000,
    facts: int = 100_000,
    seed: int = 1,
    progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None,
) -> dict[str, Any]:
    """Store sessions of 20 turns and consolidate all of them; then let facts decay.

    Args:
        facts: how many are looked at by the nights of ``benchmarks.nights``; 0: none.

    Returns:
        ``seconds`` of the consolidation, ``ms_p50`` and ``ms_p99`` of a session, its counts,
        ``rss_mb`` (the process's peak, MB) after a tenth of the sessions and after all, and
        ``decay``: what each night took.

    Raises:
        InvalidInput: a number of sessions outside 1..100,000, or of facts outside 0..1,000,000.
    """
    if not 1 <= sessions <= MAX_SESSIONS:
        raise InvalidInput(f"sessions: 1 to {MAX_SESSIONS:,}", field="sessions")
    if not 0 <= facts <= MAX_FACTS:
        raise InvalidInput(f"facts: 0 to {MAX_FACTS:,}", field="facts")
    took: list[float] = []
    rss: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        patch.object(consolidation, "IDLE_MS", 0),
        MemoryService(root, environ={}, background=False) as service,
    ):
        progress("storing", 0, sessions)
        service.orchestrator(_NAME, create=True).save_episodes(talks(sessions, seed))
        begun = last = time.perf_counter()

        def note(_report: SessionReport) -> None:
            nonlocal last
            now = time.perf_counter()
            took.append((now - last) * 1_000)
            last = now
            if len(took) in (max(sessions // 10, 1), sessions):
                rss.append(_peak_mb())

        with service.opened(_NAME) as opened:
            report = consolidation.Consolidator(opened, progress=progress).pending(note)
        seconds = time.perf_counter() - begun
    took.sort()
    return {
        "sessions": sessions,
        "turns": sessions * TURNS,
        "seconds": round(seconds, 1),
        "ms_p50": round(took[len(took) // 2], 1),
        "ms_p99": round(took[int(len(took) * 0.99)], 1),
        "rss_mb": {"after a tenth": rss[0], "after all": rss[-1]},
        "counts": dict(report.counts),
        "decay": nights.run(facts, seed, progress) if facts else {},
    }


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024, 1)
