"""Build the block of memories that belongs before a message."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from memgraph.context.excerpts import content_stems
from memgraph.context.selection import BlockPlan, Candidate, FilledBlock, filled
from memgraph.errors import AccessDenied
from memgraph.graph.marks import Marks, marked, marks_of
from memgraph.ids import RECEIPT_PREFIX, IdSource
from memgraph.model.context import (
    BlockFormat,
    BlockMemory,
    BlockProfile,
    ContextBlock,
    ContextRequest,
)
from memgraph.model.enums import MemoryKind, MemoryStatus, Sensitivity
from memgraph.model.recall import RecallItem, RecallRequest
from memgraph.model.values import Memory, StoredSource, one_of, validated
from memgraph.operations.handle import Handle
from memgraph.operations.read.recall import reading, with_damage
from memgraph.operations.read.receipts import of_text
from memgraph.rules.blocks import (
    MIN_RELEVANCE,
    is_question,
    is_unfinished,
    label,
    mark_from,
    record_text,
    says_nothing,
)
from memgraph.rules.budget import counted
from memgraph.rules.contradictions import MOST_NAMED
from memgraph.rules.decay import confidence_at
from memgraph.rules.lines import BlockLine, date_of, line_of
from memgraph.rules.ranking import MOST_BEFORE
from memgraph.rules.scope import Viewer, narrow
from memgraph.rules.sources import citation
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import entity_records, graph, recall as recall_rows, reflections
from memgraph.store.memories import short_ids
from memgraph.store.receipts import NewReceipt
from memgraph.store.snapshot import Snapshot, despite_damage
from memgraph.store.visibility import ACTIVE, View
from memgraph.text.sentences import split_sentences

if TYPE_CHECKING:
    from memgraph.retrieval.recall import Selection

PURPOSE = "get_context"
CANDIDATES = 200
"""Candidates by text and by vectors: more than for a recall, because a block shows more."""
FEWEST_CONSIDERED, MOST_CONSIDERED = 20, 100
"""The number of ranked memories from which a block is filled, by its budget."""
TOKENS_PER_LINE = 30
"""Few lines cost less: a dozen are for the head."""
PROFILE_SHARE = 4
"""The profile of an entity may take a quarter of the budget."""
INSIGHT_RANK = 3
"""The rank, from 0, at which the latest reflection is considered."""


def new_mark(ids: IdSource) -> str:
    """Return 6 unpredictable digits for the fence of a block."""
    return mark_from(ids.new("mark_"))


def plan_for(
    opened: OpenOrchestrator,
    query: str,
    *,
    format: BlockFormat,  # noqa: A002  the name in requests and settings
    budget_tokens: int,
    max_lines: int | None = None,
) -> BlockPlan:
    """Return the plan of a block, with a new mark."""
    return BlockPlan(
        budget_tokens=budget_tokens,
        format=format,
        mark=new_mark(opened.ids),
        zone=opened.zone,
        stems=content_stems(query),
        max_lines=max_lines,
    )


@dataclass(frozen=True, slots=True)
class BuiltBlock:
    """A block, its receipt, and the viewer that it was built for."""

    block: ContextBlock
    new: NewReceipt
    viewer: Viewer


@dataclass(slots=True)
class _Found:
    """The memories that a block may show, by id, in rank order."""

    memories: dict[str, Memory] = field(default_factory=dict)
    sources: dict[str, StoredSource] = field(default_factory=dict)
    items: dict[str, RecallItem] = field(default_factory=dict)
    beside: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, memory: Memory) -> None:
        self.memories.setdefault(memory.memory_id, memory)

    def insert(self, memory: Memory, rank: int) -> None:
        """Add a memory at a rank, or move it there."""
        others = [one for one in self.memories.values() if one.memory_id != memory.memory_id]
        others.insert(rank, memory)
        self.memories = {one.memory_id: one for one in others}

    def put_beside(self, memory_id: str, other: str) -> None:
        """Let a memory be shown only together with another one."""
        if other != memory_id:
            self.beside[memory_id] = (*self.beside.get(memory_id, ()), other)

    def read_sources(self, snapshot: Snapshot) -> None:
        missing = [
            memory for memory in self.memories.values() if memory.source_id not in self.sources
        ]
        if missing:
            rows = graph.sources_of(snapshot, missing)
            self.sources |= {source.source_id: source for source in rows}


def build_block(
    handle: Handle[Any],
    request: RecallRequest,
    *,
    format: BlockFormat | str | None = None,  # noqa: A002  the name in requests and settings
    budget_tokens: int | None = None,
    max_lines: int | None = None,
    include_insight: bool = False,
    handles: bool = False,
    clearance: Sensitivity | None = None,
    keep: bool = True,
) -> BuiltBlock:
    """Build the block for a request of a handle's caller, with its receipt.

    Args:
        max_lines: the maximum number of lines; None: as many as the budget allows.
        handles: end each line in the memory's short id, for a reader who can act on it.
        clearance: leave out what is more sensitive; None: what the handle may not see.
        keep: keep the receipt; otherwise the caller has to.

    Raises:
        InvalidInput: the format or the budget is invalid.
        AccessDenied: the handle sees only another agent's memories. The denial is logged.
        StorageError: the database cannot be read.
    """
    with handle._service.opened(handle.name) as opened:
        chosen = opened.settings.memory.context
        form = one_of(BlockFormat, chosen.format if format is None else format, "format")
        budget = validated(ContextRequest, {"budget_tokens": budget_tokens}).budget_tokens
        try:
            viewer = narrow(handle.viewer, agent_id=request.agent_id, clearance=clearance)
        except AccessDenied as error:
            raise handle._denied(error) from None
        plan = plan_for(
            opened,
            request.query,
            format=form,
            budget_tokens=chosen.block_tokens if budget is None else budget,
            max_lines=max_lines,
        )
        built, damaged = despite_damage(
            lambda: _built(opened, viewer, request, plan, include_insight, handles)
        )
        built = replace(built, block=with_damage(opened, built.block, damaged))
        if keep:
            handle._keep_receipt(opened, built.new, viewer=viewer)
        return built


def _built(
    opened: OpenOrchestrator,
    viewer: Viewer,
    request: RecallRequest,
    plan: BlockPlan,
    include_insight: bool,
    handles: bool,
) -> BuiltBlock:
    """Build the block of memories for a request, with its receipt.

    Turns and facts go in as recall ranks them until the budget is spent, and are written in order
    of time. A fact and the turn that it was derived from are one line. A question goes in with its
    answer, a statement with the one that replaced or probably changed it.
    """
    settings = opened.settings.memory
    considered = plan.budget_tokens // TOKENS_PER_LINE
    top_n = min(max(considered, FEWEST_CONSIDERED), MOST_CONSIDERED)
    wide = request.model_copy(update={"top_n": top_n, "include_superseded": True})
    related = MIN_RELEVANCE if request.query.strip() else None
    with reading(
        opened, viewer, wide, candidates=CANDIDATES, related=related, by_filters=True
    ) as answered:
        found, marks = _found(answered, request)
        if include_insight:
            reflection = reflections.latest(answered.snapshot, View(viewer))
            if reflection is not None:
                found.insert(reflection, INSIGHT_RANK)
        found.read_sources(answered.snapshot)
        profile = _profile(answered, request, plan)
        at = answered.narrowing.at
        ids = found.memories.keys() if handles else ()
        short = short_ids(answered.snapshot, ids, View(viewer))
    if profile is not None:
        plan = replace(plan, head=profile.text + "\n")
    block = filled(_candidates(found, marks, short), plan)
    receipt_id = opened.ids.new(RECEIPT_PREFIX)
    context = ContextBlock(
        text=block.text,
        format=plan.format,
        memories=_memories(block, found, marks, at, settings.decay.exponent),
        profile=profile if block.lines else None,
        left_out=len(block.left_out),
        receipt_id=receipt_id,
        token_cost=block.token_cost,
        degraded=answered.degraded,
    )
    new = of_text(
        context,
        answered,
        {line.memory_id: _reasons(line, found, block) for line in block.lines},
        query=request.query,
        asked=_asked(request, context, plan, include_insight) | {"purpose": PURPOSE},
        left_out={"budget": len(block.left_out)},
    )
    return BuiltBlock(context, new, viewer)


def _found(answered: Selection, request: RecallRequest) -> tuple[_Found, Marks]:
    """Return what recall ranked, without what says nothing, with answers and successors."""
    snapshot, narrowing = answered.snapshot, answered.narrowing
    found = _Found()
    asked = _folded(request.query)
    for item in answered.items:
        memory = item.memory
        found.items[memory.memory_id] = item
        found.sources[item.source.source_id] = item.source
        if _folded(memory.content) != asked and not _is_silent(memory):
            found.add(memory)
    _add_answers(found, snapshot, narrowing)
    marks = marks_of(
        snapshot,
        list(found.memories.values()),
        narrowing.view,
        answered.ties,
        answered.marks,
    )
    _add_successors(found, marks, answered, request)
    _add_changes(found, marks, answered, request)
    _merge(found, marks)
    return found, marks


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" .!?…")


def _is_silent(memory: Memory) -> bool:
    """Return True for a turn without any statement."""
    return memory.kind is MemoryKind.EPISODE and says_nothing(memory.content)


def _add_answers(found: _Found, snapshot: Snapshot, narrowing: recall_rows.RecallFilter) -> None:
    """Add the answer to each bare question, and the turn that goes on after an unfinished one.

    "No." answers a question, though it says nothing alone.
    """
    open_turns = [
        memory
        for memory in found.memories.values()
        if memory.kind is MemoryKind.EPISODE
        and memory.sequence is not None
        and (is_question(memory.content) or is_unfinished(memory.content))
    ]
    if not open_turns:
        return
    ids = [memory.memory_id for memory in open_turns]
    following = recall_rows.following(snapshot, ids, narrowing)
    for memory in open_turns:
        answer = following.get(memory.memory_id)
        if answer is not None and not is_question(answer.content):
            found.add(answer)
            found.beside[memory.memory_id] = (answer.memory_id,)
        elif is_question(memory.content):
            del found.memories[memory.memory_id]


def _add_successors(
    found: _Found, marks: Marks, answered: Selection, request: RecallRequest
) -> None:
    """Put each replaced memory beside its current successor; leave it out where there is none.

    So is a memory that ended without a successor, such as a todo that was done.
    """
    ends = {one: chain[-1] for one in found.memories if (chain := marks.of(one).replaced_by)}
    shown = {one: marks.shown_as(end, found.memories.keys()) for one, end in ends.items()}
    missing = {ends[one] for one, end in shown.items() if end is None}
    successors = _active(answered, request, missing)
    for memory_id, end in ends.items():
        if end in successors:
            found.add(successors[end])
        beside = end if end in successors else shown[memory_id]
        if beside is not None:
            found.put_beside(memory_id, beside)
        elif not marks.of(memory_id).in_part:
            del found.memories[memory_id]
    for memory_id, memory in list(found.memories.items()):
        if memory.status is not MemoryStatus.ACTIVE and memory_id not in ends:
            del found.memories[memory_id]


def _add_changes(found: _Found, marks: Marks, answered: Selection, request: RecallRequest) -> None:
    """Put before each memory what probably changed it, the newest first, where it is missing."""
    later = {
        memory_id: {
            one: marks.shown_as(one, found.memories.keys())
            for one in marks.of(memory_id).changed_by[:MOST_BEFORE]
        }
        for memory_id in found.memories
    }
    missing = {one for ids in later.values() for one, shown in ids.items() if shown is None}
    changes = _active(answered, request, missing)
    order: dict[str, Memory] = {}
    for memory_id, memory in found.memories.items():
        for one, shown in later[memory_id].items():
            if one in changes:
                order.setdefault(one, changes[one])
            beside = one if one in changes else shown
            if beside is not None:
                found.put_beside(memory_id, beside)
        order.setdefault(memory_id, memory)
    found.memories = order


def _active(
    answered: Selection, request: RecallRequest, memory_ids: Collection[str]
) -> dict[str, Memory]:
    """Return active memories, without what the reader of the block has in front of it anyway."""
    if not memory_ids:
        return {}
    view = replace(answered.narrowing.view, statuses=ACTIVE)
    memories = graph.visible_memories(answered.snapshot, sorted(memory_ids), view)
    here = request.exclude_session_id
    return {
        memory_id: memory
        for memory_id, memory in memories.items()
        if here is None or memory.session_id != here
    }


def _merge(found: _Found, marks: Marks) -> None:
    """Let a fact and the turn that it was derived from be one line.

    The turn is shown, at the better of both ranks, unless it is one sentence and the fact adds
    words to it, as a model's does. Of memories with the same text the first is kept, a fact before
    a turn.
    """
    memories = found.memories
    order = {memory_id: rank for rank, memory_id in enumerate(memories)}
    instead: dict[str, str] = {}
    for memory_id, memory in memories.items():
        turns = [turn for turn in marks.evidence.get(memory_id, ()) if turn in memories]
        if memory.kind is not MemoryKind.FACT or not turns:
            continue
        turn = memories[turns[0]]
        new = content_stems(memory.content) - content_stems(f"{turn.source_role} {turn.content}")
        # A quotation adds its speaker and date alone, which the turn's line has as well.
        adds = any(not word.isdigit() for word in new)
        if adds and len(split_sentences(turn.content)) == 1:
            instead[turn.memory_id] = memory_id
        else:
            instead[memory_id] = turn.memory_id
    first: dict[str, str] = {}
    for memory in sorted(
        memories.values(), key=lambda one: (one.kind is MemoryKind.EPISODE, order[one.memory_id])
    ):
        if memory.memory_id in instead:
            continue
        same = first.setdefault(memory.content_hash, memory.memory_id)
        if same != memory.memory_id:
            instead[memory.memory_id] = same
    for memory_id, other in list(instead.items()):
        other = _end_of(instead, other)
        order[other] = min(order[other], order[memory_id])
        found.beside[other] = (*found.beside.get(other, ()), *found.beside.get(memory_id, ()))
    found.beside = {
        memory_id: tuple(
            dict.fromkeys(end for one in others if (end := _end_of(instead, one)) != memory_id)
        )
        for memory_id, others in found.beside.items()
        if memory_id not in instead
    }
    found.memories = {
        memory_id: memories[memory_id]
        for memory_id in sorted(memories, key=order.__getitem__)
        if memory_id not in instead
    }


def _end_of(instead: Mapping[str, str], memory_id: str) -> str:
    seen = {memory_id}
    while (after := instead.get(memory_id)) is not None and after not in seen:
        seen.add(after)
        memory_id = after
    return memory_id


def _profile(answered: Selection, request: RecallRequest, plan: BlockPlan) -> BlockProfile | None:
    """Return the profile of the first entity that the message names, if there is one to show.

    It may take a quarter of the budget, and is shown only in a fenced block.
    """
    if plan.format is not BlockFormat.FENCED or request.as_of is not None:
        return None
    if request.kinds and MemoryKind.FACT not in request.kinds:
        return None
    snapshot = answered.snapshot
    named = {one.pk: one for one in entity_records.by_pks(snapshot, answered.entity_pks)}
    summaries = entity_records.summaries_shown(snapshot, list(named), answered.narrowing.view)
    for pk, summary in summaries.items():
        entity = named[pk]
        name = f"{label(entity.canonical_name)} ({entity.type.value})"
        written_at = date_of(summary.written_at, plan.zone)
        text = f"[0] {written_at}, profile of {name}: {record_text(summary.text)}"
        if counted(text) <= plan.budget_tokens // PROFILE_SHARE:
            return BlockProfile(
                entity_id=entity.entity_id,
                text=text,
                memory_ids=summary.cited,
                read=summary.read,
            )
    return None


def _candidates(found: _Found, marks: Marks, short: Mapping[str, str]) -> list[Candidate]:
    """Return the lines with their marks; sides of a contradiction stand beside each other."""
    candidates = []
    for memory_id, memory in found.memories.items():
        handle = short.get(memory_id, "")
        line = line_of(memory, found.sources[memory.source_id], handle=handle)
        line = marked(line, marks, found.memories.keys())
        sides = [other for other in line.contradicts if other in found.memories][:MOST_NAMED]
        candidates.append(Candidate(line, found.beside.get(memory_id, ()), tuple(sides)))
    return candidates


def entity_block(
    snapshot: Snapshot, viewer: Viewer, shown: Sequence[Memory], plan: BlockPlan
) -> str:
    """Return the block of memories about an entity, each line with the memory's short id.

    Args:
        shown: the memories, most important first.
        plan: with the entity's profile as ``head``.
    """
    found = _Found({memory.memory_id: memory for memory in shown})
    ties = recall_rows.read(snapshot).ties
    marks = marks_of(snapshot, shown, View(viewer, statuses=ACTIVE), ties)
    _merge(found, marks)
    found.read_sources(snapshot)
    short = short_ids(snapshot, found.memories.keys(), View(viewer))
    block = filled(_candidates(found, marks, short), plan)
    return block.text or plan.text_of(())


def _memories(
    block: FilledBlock, found: _Found, marks: Marks, at: int, exponent: float
) -> dict[int, BlockMemory]:
    numbers = {line.memory_id: number for number, line in enumerate(block.lines, start=1)}

    def numbered(ids: Iterable[str]) -> tuple[int, ...]:
        return tuple(numbers[one] for one in ids if one in numbers)

    result = {}
    for line in block.lines:
        memory = found.memories[line.memory_id]
        item = found.items.get(line.memory_id)
        result[numbers[line.memory_id]] = BlockMemory(
            memory_id=line.memory_id,
            kind=line.kind,
            type=line.type,
            text=line.text,
            shortened=line.memory_id in block.shortened,
            at=line.at,
            speaker=line.speaker or None,
            citation=citation(memory, found.sources[memory.source_id]),
            confidence=confidence_at(memory, at, exponent),
            score=0.0 if item is None else item.score,
            until=line.until,
            replaced_by=numbered(line.replaced_by),
            replaces=numbered(line.replaces),
            contradicts=numbered(line.contradicts),
            changed_by=numbered(line.changed_by),
            changes=numbered(line.changes),
            marks=marks.listed(line.memory_id),
        )
    return result


def _asked(
    request: RecallRequest, context: ContextBlock, plan: BlockPlan, include_insight: bool
) -> dict[str, Any]:
    """Return the request as its receipt states it."""
    asked = request.model_dump(mode="json", exclude_defaults=True, exclude={"query", "top_n"})
    profile = {} if context.profile is None else {"profile": {"memory_ids": context.profile.read}}
    return asked | {"budget_tokens": plan.budget_tokens, "insight": include_insight} | profile


def _reasons(line: BlockLine, found: _Found, block: FilledBlock) -> tuple[str, ...]:
    """Return why a memory is in the block, if recall did not rank it, and whether it is cut."""
    beside = None
    if line.memory_id not in found.items:
        beside = next((one for one, ids in found.beside.items() if line.memory_id in ids), None)
    because = () if beside is None else (f"beside:{beside}",)
    return (*because, "shortened") if line.memory_id in block.shortened else because
