"""The weekly reflection job: it summarises the last days and cites the memories it used.

The week is read in one short transaction. The reflection is written outside a transaction, because
a model may take a while; it is then checked again and stored in a second transaction. It lists what
changed, what was decided and what is open; a language model adds sentences about the week. Where
there is nothing to list, nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from memgraph.clock import iso
from memgraph.consolidation.week import MemoryPair, WeekLine, WeekLines, WeekMaterial, lines_of
from memgraph.errors import ProviderError
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    MemoryKind,
    MemoryType,
    ModelUse,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.model.jobs import JobReport, RejectedItem
from memgraph.model.operation import Progress, untold
from memgraph.model.values import Memory, MemoryInput, Source
from memgraph.providers.usage import ModelUsage, usage_tally
from memgraph.rules import conversations as rules
from memgraph.rules.conversations import CLEARANCE, ReflectionPeriod
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import memories, reflections as queries
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import STANDING, View

# Reading a week: the material for a reflection on one scope, read in one short transaction.


MAX_PROJECTS = 50
DAYS = 7
"""The days that a reflection looks back."""
MIN_MEMORIES = 3
"""Fewer new memories are not shown to a model."""
MIN_DAYS_BETWEEN = 6.0
"""The minimum number of days between reflections on a scope."""
MAX_MEMORIES = 200
"""The maximum number of memories for a reflection, the latest."""
MAX_PAIRS, MAX_TASKS = 50, 500


@dataclass(frozen=True, slots=True)
class ReflectionScope:
    """The scope of a reflection: global, or one project.

    It reads only what its own readers may see. Conversations have no reflections, because their
    contents must not leave them.
    """

    scope: Scope = Scope.GLOBAL
    scope_id: str | None = None

    @property
    def view(self) -> View:
        granted = frozenset() if self.scope_id is None else frozenset({self.scope_id})
        return View(Viewer(CLEARANCE, project_ids=granted, scopes=frozenset({self.scope})))


def places(snapshot: Snapshot, during: ReflectionPeriod) -> list[ReflectionScope]:
    """Return the global scope, then every project with new memories, busiest first."""
    levels = [level.value for level in Sensitivity if level.level <= CLEARANCE.level]
    project_ids = queries.projects(snapshot, during, levels, MAX_PROJECTS)
    return [
        ReflectionScope(),
        *(ReflectionScope(Scope.PROJECT, project_id) for project_id in project_ids),
    ]


def read_week(
    snapshot: Snapshot, place: ReflectionScope, during: ReflectionPeriod, now_ms: int, limit: int
) -> WeekMaterial:
    """Return the last ``limit`` memories of a period, with its changes, decisions and tasks."""
    view = place.view

    def pairs(edge_type: EdgeType, *, resolved: bool = False) -> list[MemoryPair]:
        found = queries.joined(snapshot, view, during, edge_type, MAX_PAIRS, resolved=resolved)
        ids = sorted({end for edge in found for end in edge[:2]})
        by_id = {memory.memory_id: memory for memory in memories.get_many(snapshot, ids)}
        return [MemoryPair(by_id[first], by_id[other], weight) for first, other, weight in found]

    return WeekMaterial(
        during=during,
        now_ms=now_ms,
        memories=queries.of_period(snapshot, view, during, limit),
        changes=pairs(EdgeType.UPDATES),
        contradictions=pairs(EdgeType.CONTRADICTS),
        resolved=pairs(EdgeType.CONTRADICTS, resolved=True),
        tasks=queries.tasks(snapshot, view, MAX_TASKS),
    )


PART = "reflection"
TOO_SOON, NOTHING, SAVED = "too_soon", "nothing_to_say", "saved"
MODEL_FAILED = "reflection.model_failed"
SOURCE = Source(
    source_type=SourceType.WORKFLOW_OUTPUT, captured_by=CapturedBy.SYSTEM, step_id="reflection"
)


@dataclass(slots=True)
class _Run:
    opened: OpenOrchestrator
    now_ms: int
    actor: str
    during: ReflectionPeriod
    usage: ModelUsage
    rejected: list[RejectedItem] = field(default_factory=list)
    by_model: int = 0
    sources: int = 0


def reflect(
    opened: OpenOrchestrator,
    *,
    now_ms: int,
    actor: str,
    progress: Progress = untold,
    stop: Callable[[], bool] = lambda: False,
) -> JobReport:
    """Reflect on the last days: on global memories, and on each project with new ones.

    Returns:
        DONE with the counts ``saved``, ``by_model``, ``sources`` (memories cited) and, for scopes
        without a new reflection, ``too_soon`` and ``nothing_to_say``; SKIPPED, with the first of
        these reasons, if nothing was saved. ``rejected`` includes failures of the model, which is
        asked no more once the run has used as much as it may.

    Raises:
        StorageError: reflections already saved are kept.
    """
    with usage_tally() as usage:
        run = _Run(opened, now_ms, actor, rules.period(now_ms, DAYS), usage)
        with opened.database.read() as snapshot:
            scopes = places(snapshot, run.during)
        outcomes: list[str] = []
        for number, place in enumerate(scopes):
            if stop():
                break
            outcomes.append(_reflect_on(run, place))
            progress(PART, number + 1, len(scopes))
    if outcomes and SAVED not in outcomes:
        skipped = JobReport.skipped(outcomes[0])
        return skipped.model_copy(update={"rejected": tuple(run.rejected)})
    counts = {"saved": outcomes.count(SAVED), "by_model": run.by_model, "sources": run.sources}
    for reason in (TOO_SOON, NOTHING):
        if reason in outcomes:
            counts[reason] = outcomes.count(reason)
    return JobReport.done(counts, run.rejected)


def _reflect_on(run: _Run, place: ReflectionScope) -> str:
    """Reflect on one scope; return ``saved``, or why no reflection was saved."""
    with run.opened.database.read() as snapshot:
        if _is_too_soon(run, snapshot, place):
            return TOO_SOON
        week = read_week(snapshot, place, run.during, run.now_ms, MAX_MEMORIES)
    sentences = _said(run, place, week)
    lines = lines_of(week, sentences)
    if not lines.cited:
        return NOTHING
    with run.opened.transaction(run.actor) as transaction:
        # Another process may have been faster, and cited memories may have been retracted.
        if _is_too_soon(run, transaction, place):
            return TOO_SOON
        existing = memories.existing_ids(transaction, lines.cited, place.view, statuses=STANDING)
        lines = lines.without(set(lines.cited) - existing)
        if not lines.cited:
            return NOTHING
        writer = run.opened.writer
        reflection = _given(run, place, week, lines, by_model=bool(sentences))
        writer.store_all(transaction, [writer.prepare(reflection)], [])
    run.by_model += bool(sentences)
    run.sources += len(lines.cited)
    return SAVED


def _is_too_soon(run: _Run, snapshot: Snapshot, place: ReflectionScope) -> bool:
    times = queries.times(snapshot, place.scope.value, place.scope_id)
    return rules.is_too_soon(times, run.now_ms, MIN_DAYS_BETWEEN)


def _said(run: _Run, place: ReflectionScope, week: WeekMaterial) -> list[WeekLine]:
    """Return the model's lines on the week; empty without a model, if it fails, if the run has used
    as much as it may, or if the week has fewer than ``MIN_MEMORIES`` memories.
    """
    model = run.opened.llm
    if model is None or run.usage.ends_run or len(week.memories) < MIN_MEMORIES:
        return []
    # Imported late: its module is slow to load, and not needed without a model.
    from memgraph.consolidation.reflection_model import reflect_with_model

    ends = [end for pair in week.changes for end in pair[:2]]
    material = {memory.memory_id: memory for memory in (*week.memories, *ends)}
    inputs = sorted(material.values(), key=_order)
    changes = [(pair.first.memory_id, pair.other.memory_id, pair.weight) for pair in week.changes]
    try:
        lines, rejected = reflect_with_model(
            model.completion_for(ModelUse.REFLECTION),
            inputs,
            changes,
            max_sensitivity=model.max_sensitivity,
        )
    except ProviderError as error:
        where = place.scope.value if place.scope_id is None else f"project {place.scope_id}"
        run.rejected.append(RejectedItem(code=MODEL_FAILED, where=f"{where}: {error.code}"))
        run.rejected += [
            RejectedItem(code=code, where=at) for code, at in error.details.get("rejected", ())
        ]
        return []
    run.rejected += rejected
    return lines


def _order(memory: Memory) -> tuple[bool, float, str]:
    """Return the key that orders the memories for the model: facts first, the important first."""
    weight = memory.importance * memory.confidence
    return memory.kind is MemoryKind.EPISODE, -weight, memory.memory_id


def _given(
    run: _Run,
    place: ReflectionScope,
    week: WeekMaterial,
    lines: WeekLines,
    *,
    by_model: bool,
) -> MemoryInput:
    pairs = (*week.changes, *week.contradictions, *week.resolved)
    seen = [*week.memories, *week.tasks, *(end for pair in pairs for end in pair[:2])]
    cited = set(lines.cited)
    sensitivities = [memory.sensitivity for memory in seen if memory.memory_id in cited]
    period = {"since": iso(run.during.since), "until": iso(run.now_ms)}
    return MemoryInput(
        content=lines.text,
        summary=lines.summary,
        kind=MemoryKind.REFLECTION,
        type=MemoryType.OBSERVATION,
        importance=rules.IMPORTANCE,
        confidence=rules.MODEL_CONFIDENCE if by_model else rules.LISTED_CONFIDENCE,
        sensitivity=rules.highest(sensitivities),
        scope=place.scope,
        scope_id=place.scope_id,
        tags=(rules.WEEKLY,),
        attributes={"period": period, "by": "model" if by_model else "marks"},
        source=SOURCE,
        derived_from=lines.cited,
    )
