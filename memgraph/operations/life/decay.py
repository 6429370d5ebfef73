"""The nightly decay job: it retires inferred facts that were not used.

The decayed confidence is computed, never stored. A repeated, interrupted or late run therefore has
the same result: it retires the facts below the threshold at the time of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgraph.model.enums import MemoryStatus
from memgraph.model.jobs import JobReport
from memgraph.model.operation import Progress, untold
from memgraph.rules.lifecycle import DECAYED
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import decay as decay_rows
from memgraph.store.decay import ExpiryRule
from memgraph.store.memories import set_statuses
from memgraph.store.snapshot import NewEntry

PART = "decay"


def decay(
    opened: OpenOrchestrator,
    *,
    now_ms: int,
    actor: str,
    progress: Progress = untold,
    stop: Callable[[], bool] = lambda: False,
) -> JobReport:
    """Retire every decaying fact whose effective confidence is below the threshold.

    Args:
        now_ms: the time at which facts must have expired. Writes have the clock's time.
        stop: checked before each transaction; facts retired so far stay retired.

    Returns:
        Counts: ``looked_at``, ``retired``, and ``kept`` (expired memories that were used, confirmed
        or retracted before they could be retired).

    Raises:
        StorageError: facts retired so far stay retired, and the next run continues.
    """
    # Write pending receipts first: the memories in them were used.
    opened.receipts.flush()
    settings = opened.settings.memory.decay
    rule = ExpiryRule(now_ms, settings.threshold, settings.exponent)
    with opened.database.read() as snapshot:
        total = decay_rows.count_decaying(snapshot, rule)
    counts, after = {"looked_at": 0, "retired": 0, "kept": 0}, 0
    while True:
        with opened.database.read() as snapshot:
            rows = decay_rows.decaying(snapshot, rule, after=after, limit=decay_rows.PAGE)
        if not rows:
            return JobReport.done(counts)
        if stop():
            return JobReport.done(counts, reason="stopped")
        after = rows[-1].pk
        counts["looked_at"] += len(rows)
        # Those that somebody restored are counted as kept.
        expired = [row.pk for row in rows if rule.ends(row._replace(restored=0))]
        if expired:
            retired = _retire(opened, expired, rule, actor)
            counts["retired"] += retired
            counts["kept"] += len(expired) - retired
        progress(PART, min(counts["looked_at"], total), total)


def _retire(opened: OpenOrchestrator, pks: Sequence[int], rule: ExpiryRule, actor: str) -> int:
    """Retire the facts that are still expired, in one transaction; return their number."""
    opened.receipts.flush()
    with opened.transaction(actor) as transaction:
        rows = decay_rows.decaying(transaction, rule, pks=pks)
        expired = [row for row in rows if rule.ends(row)]
        if expired:
            ids = [row.memory_id for row in expired]
            set_statuses(transaction, ids, MemoryStatus.RETRACTED, reason=DECAYED)
            transaction.record(
                [NewEntry("retract", row.memory_id, {"reason": DECAYED}) for row in expired]
            )
    return len(expired)
