"""The nightly decay job: inferred and unused facts are retired, never rewritten.

Confidence decays by computation alone, so a repeated, an interrupted and a late run have the same
result: the facts under the threshold at the time of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.model.jobs import JobReport
from memgraph.operations.life.echoes import forget_old_lines
from memgraph.operations.write import changes
from memgraph.rules.decay import days_idle, should_retire
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import decay as decay_rows
from memgraph.store.decay import REASON, DecayRow, ExpiryRule
from memgraph.store.snapshot import NewEntry

PART = "decay"
USED = "used before it was retired"
# Of one transaction: another writer waits for one at most.
BATCH = 1_000


def decay(
    opened: OpenOrchestrator,
    *,
    now_ms: int,
    actor: str,
    progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> JobReport:
    """Retire every decaying fact whose effective confidence is under the threshold.

    Args:
        now_ms: the time that decides what has expired. Writes bear the clock's time.
        stop: checked between two transactions; what was retired until then stays so.

    Returns:
        Counts: ``looked_at``, ``retired``, and ``kept``: memories that had expired when they were
        read and were used, confirmed or retracted before they could be retired.

    Raises:
        StorageError: what was retired until then stays so, and the next run continues.
    """
    # What was handed out a moment ago was used, though its receipt is not written yet.
    opened.receipts.flush()
    chosen = opened.settings.memory.decay
    rule = ExpiryRule(now_ms, chosen.threshold, chosen.exponent)
    with opened.database.read() as snapshot:
        number, last = decay_rows.decaying_count(snapshot)
    counts, after = {"looked_at": number, "retired": 0, "kept": 0}, 0
    while not stop():
        with opened.database.read() as snapshot:
            batch = decay_rows.expired_after(snapshot, rule, after, BATCH)
        if not batch:
            progress(PART, number, number)
            forget_old_lines(opened, now_ms=now_ms)
            return JobReport.done(counts)
        retired = _retire(opened, batch, rule, actor)
        counts["retired"] += retired
        counts["kept"] += len(batch) - retired
        after = batch[-1]
        progress(PART, number * min(after, last) // last if last else 0, number)
    return JobReport.done(counts).model_copy(update={"reason": "stopped"})


def restore_used(opened: OpenOrchestrator, used: Mapping[str, int]) -> int:
    """Restore what a run retired because it did not know of a use; return how many.

    Args:
        used: memories, each with the time at which another process handed it out.

    Raises:
        StorageError: nothing was restored.
    """
    chosen = opened.settings.memory.decay
    with opened.transaction(PART, claimed=False) as transaction:
        restored = 0
        for memory_id, at in used.items():
            retired = decay_rows.retired(transaction, memory_id)
            if retired is None or retired[1] < at:
                continue
            row, since = retired
            rule = ExpiryRule(since, chosen.threshold, chosen.exponent)
            # It may have been used long before, and have expired again since.
            if has_expired(row._replace(last_accessed_at=at), rule):
                continue
            transaction.record(changes.restore(transaction, memory_id, reason=USED, view=None))
            restored += 1
    return restored


def has_expired(row: DecayRow, rule: ExpiryRule) -> bool:
    """Return True when the job retires this row, which is an active fact."""
    # One of hardly any confidence that was restored stays: whoever restored it wanted it.
    return not row.restored and should_retire(
        kind=MemoryKind.FACT,
        status=MemoryStatus.ACTIVE,
        confidence=row.confidence,
        decay_rate=row.decay_rate,
        days=days_idle(rule.now_ms, row.created_at, row.last_accessed_at),
        threshold=rule.threshold,
        exponent=rule.exponent,
    )


def _retire(opened: OpenOrchestrator, pks: Sequence[int], rule: ExpiryRule, actor: str) -> int:
    """Retire in one transaction what is still expired; return how many."""
    opened.receipts.flush()
    with opened.transaction(actor) as transaction:
        expired = [
            row
            for row in decay_rows.decaying_now(transaction, pks, rule.threshold)
            if has_expired(row, rule)
        ]
        if expired:
            decay_rows.retire(transaction, [row.memory_id for row in expired])
            transaction.record(
                [NewEntry("retract", row.memory_id, {"reason": REASON}) for row in expired]
            )
    return len(expired)
