"""What would fade in the next days: the rule of the nightly job, asked about a day to come."""

from __future__ import annotations

from heapq import nsmallest

from memgraph.clock import MAX_MS, MS_PER_DAY
from memgraph.errors import InvalidInput
from memgraph.model.fading import FadingMemory, FadingReport
from memgraph.model.values import Memory
from memgraph.policy import decay
from memgraph.policy.scope import Viewer
from memgraph.service.life.decaying import has_faded
from memgraph.service.opened import Opened
from memgraph.storage import decay_queries, graph_queries
from memgraph.storage.decay_queries import Fading, Rule
from memgraph.storage.visibility import View

MAX_DAYS, MAX_ITEMS = 36_600.0, 1_000
# Moments of a memory's course: enough for a line of a terminal.
STEPS = 24


def fading(opened: Opened, viewer: Viewer, *, days: float, limit: int) -> FadingReport:
    """What the viewer may see of what would be retired within ``days``.

    Raises:
        InvalidInput: ``days`` or ``limit`` is out of range.
    """
    if not 0.0 <= days <= MAX_DAYS:
        raise InvalidInput(f"days lies between 0 and {MAX_DAYS:g}", field="days")
    if not 0 <= limit <= MAX_ITEMS:
        raise InvalidInput(f"limit lies between 0 and {MAX_ITEMS}", field="limit")
    # What was recalled a moment ago has been accessed, though nobody has written it down yet.
    opened.receipts.flush()
    settings = opened.settings.memory.decay
    now = opened.clock.now_ms()
    rule = Rule(min(now + round(days * MS_PER_DAY), MAX_MS), settings.threshold, settings.exponent)
    with opened.database.read() as connection:
        rows = decay_queries.visible_faded(connection, rule, View(viewer))
        ends = [(_fades_at(each, rule), each.pk, each) for each in rows if has_faded(each, rule)]
        first = nsmallest(limit, ends, key=lambda each: each[:2])
        shown = graph_queries.visible_memories(
            connection, [row.memory_id for _, _, row in first], View(viewer)
        )
    moments = [now + (rule.now_ms - now) * step // (STEPS - 1) for step in range(STEPS)]
    return FadingReport(
        at=now,
        until=rule.now_ms,
        threshold=rule.threshold,
        total=len(ends),
        items=tuple(_item(shown[row.memory_id], row, end, moments, rule) for end, _, row in first),
    )


def _fades_at(one: Fading, rule: Rule) -> int:
    since = _since(one)
    found = decay.fades_at(one.confidence, one.decay_rate, since, rule.threshold, rule.exponent)
    # It has faded by the end of the report, so there is such a moment.
    return rule.now_ms if found is None else found


def _item(memory: Memory, one: Fading, end: int, moments: list[int], rule: Rule) -> FadingMemory:
    course = decay.course(one.confidence, one.decay_rate, _since(one), moments, rule.exponent)
    return FadingMemory(
        memory=memory,
        confidence_now=course[0],
        confidence_then=course[-1],
        fades_at=end,
        course=course,
    )


def _since(one: Fading) -> int:
    return one.created_at if one.last_accessed_at is None else one.last_accessed_at
