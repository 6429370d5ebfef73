"""Preview of decay: the facts that the nightly job would retire within a number of days."""

from __future__ import annotations

from heapq import nsmallest

from memgraph.clock import MAX_MS, MS_PER_DAY
from memgraph.model.jobs import ExpiringMemory, ExpiringReport
from memgraph.rules import decay
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import decay as decay_rows
from memgraph.store import graph
from memgraph.store.decay import DecayRow, ExpiryRule
from memgraph.store.visibility import View


def expiring(
    opened: OpenOrchestrator, viewer: Viewer, *, days: float, limit: int
) -> ExpiringReport:
    """Return the facts visible to the viewer that would be retired within ``days``."""
    # Memories returned a moment ago count as used, although their receipts are still buffered.
    opened.receipts.flush()
    settings = opened.settings.memory.decay
    now = opened.clock.now_ms()
    rule = ExpiryRule(
        min(now + round(days * MS_PER_DAY), MAX_MS), settings.threshold, settings.exponent
    )
    with opened.database.read() as snapshot:
        soonest: list[tuple[int, int, DecayRow]] = []
        total = 0
        for page in decay_rows.decaying_pages(snapshot, rule, View(viewer)):
            ending = [(_expires_at(row, rule), row.pk, row) for row in page if rule.ends(row)]
            total += len(ending)
            soonest = nsmallest(limit, soonest + ending, key=lambda item: item[:2])
        visible = graph.visible_memories(
            snapshot, [row.memory_id for _, _, row in soonest], View(viewer)
        )
    return ExpiringReport(
        at=now,
        until=rule.now_ms,
        threshold=rule.threshold,
        total=total,
        items=tuple(
            ExpiringMemory(
                memory=visible[row.memory_id],
                confidence_now=_confidence(row, now, rule.exponent),
                confidence_then=_confidence(row, rule.now_ms, rule.exponent),
                expires_at=end,
            )
            for end, _, row in soonest
        ),
    )


def _confidence(row: DecayRow, at_ms: int, exponent: float) -> float:
    days = decay.days_idle(at_ms, row.created_at, row.last_accessed_at)
    return decay.effective_confidence(row.confidence, row.decay_rate, days, exponent)


def _expires_at(row: DecayRow, rule: ExpiryRule) -> int:
    since = row.created_at if row.last_accessed_at is None else row.last_accessed_at
    end = decay.expires_at(row.confidence, row.decay_rate, since, rule.threshold, rule.exponent)
    # The row has expired by the end of the report, so None is not expected here.
    return rule.now_ms if end is None else end
