"""The nightly job of decay: what nobody asked for in a long time is retired, never rewritten.

Confidence fades by computation alone, so a second run, a run that was broken off and one that was
left out for a month come to the same: what is under the threshold at the time of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgraph.audit.journal import Entry
from memgraph.config.life import DecaySettings
from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.model.jobs import JobReport
from memgraph.policy.decay import days_idle, should_retire
from memgraph.service.opened import Opened
from memgraph.storage import decay_queries
from memgraph.storage.decay_queries import REASON, Fading

PART = "decay"
# Read at once, and retired in one transaction: another writer waits for one of these at most.
_READ, _RETIRED = 10_000, 1_000


def decay(
    opened: Opened,
    *,
    now_ms: int,
    actor: str,
    progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> JobReport:
    """Retire every active fact whose effective confidence is under the threshold.

    Args:
        now_ms: the time that decides what has faded. What is written bears the clock's time.
        stop: asked between two transactions; what was retired until then stays so.

    Returns:
        Counts: ``looked_at``, ``retired``, and ``kept``: memories that had faded when they were
        read and were used, protected or taken back before they could be retired.

    Raises:
        StorageError: what was retired until then stays so, and the next run goes on.
    """
    # What was recalled a moment ago has been accessed, though nobody has written it down yet.
    opened.receipts.flush()
    settings = opened.settings.memory.decay
    counts = {"looked_at": 0, "retired": 0, "kept": 0}
    total, after = _last_key(opened), 0
    while not stop():
        with opened.database.read() as connection:
            rows = decay_queries.may_fade_after(connection, after, _READ)
        if not rows:
            progress(PART, total, total)
            return JobReport.done(counts)
        faded = [each.memory_id for each in rows if _has_faded(each, now_ms, settings)]
        for start in range(0, len(faded), _RETIRED):
            if stop():
                break
            batch = faded[start : start + _RETIRED]
            retired = _retire(opened, batch, now_ms=now_ms, actor=actor)
            counts["retired"] += retired
            counts["kept"] += len(batch) - retired
        counts["looked_at"] += len(rows)
        after = rows[-1].pk
        progress(PART, after, total)
    return JobReport.done(counts).model_copy(update={"reason": "stopped"})


def _retire(opened: Opened, memory_ids: Sequence[str], *, now_ms: int, actor: str) -> int:
    """One transaction; decided anew in it, on what the memories are by now. Gives how many."""
    opened.receipts.flush()
    settings = opened.settings.memory.decay
    with opened.transaction(actor) as transaction:
        faded = [
            each
            for each in decay_queries.may_fade(transaction.connection, memory_ids)
            if _has_faded(each, now_ms, settings) and not _was_wanted(each, settings)
        ]
        if not faded:
            return 0
        ids = [each.memory_id for each in faded]
        decay_queries.retire(transaction.connection, ids, at=transaction.at, actor=actor)
        transaction.tell([Entry("retract", each, {"reason": REASON}) for each in ids])
    return len(ids)


def _has_faded(one: Fading, now_ms: int, settings: DecaySettings) -> bool:
    return should_retire(
        kind=MemoryKind.FACT,
        status=MemoryStatus.ACTIVE,
        confidence=one.confidence,
        decay_rate=one.decay_rate,
        days=days_idle(now_ms, one.created_at, one.last_accessed_at),
        threshold=settings.threshold,
        exponent=settings.exponent,
    )


def _was_wanted(one: Fading, settings: DecaySettings) -> bool:
    """Restored by someone, and of so little confidence that no access keeps it."""
    return bool(one.restored) and one.confidence < settings.threshold


def _last_key(opened: Opened) -> int:
    with opened.database.read() as connection:
        return decay_queries.last_key(connection)
