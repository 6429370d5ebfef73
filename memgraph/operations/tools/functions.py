"""The functions of the tools: what a model's call does, and what it is answered.

``session_id`` is the conversation at hand: if its last turn is a person's, a model acts on that
person's word, and the turn is recorded.

What a model stores has the source ``manual``, captured by an ``extractor``, so it decays. It is
never an Identity, and its importance is at most 90. The errors are those of
``memgraph.operations.tools.rules``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from memgraph.clock import iso
from memgraph.errors import Conflict
from memgraph.model.access import Permission
from memgraph.model.context import BlockFormat
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    JobName,
    JobState,
    KindFilter,
    MemoryKind,
    MemoryType,
    Sensitivity,
)
from memgraph.model.jobs import JobRun
from memgraph.model.recall import RecallRequest
from memgraph.model.values import EdgeInput, Memory, MemoryInput, Name, Reason, Source, validated
from memgraph.operations.tools.declaration import LineId, Query, Statement, tool
from memgraph.operations.tools.rules import (
    FactPlace,
    fact_meant,
    forgettable,
    persons_turn,
    place_of,
    require_confirmable,
    require_correctable,
    require_no_wider,
    sensitivity_of,
)
from memgraph.operations.write import changes
from memgraph.rules.lines import profile_line
from memgraph.rules.proposals import MAX_CONFIDENCE, MAX_IMPORTANCE
from memgraph.rules.similarity import content_hash, folded, normalise_content, statements
from memgraph.rules.workflow import labelled
from memgraph.store import jobs, memories, receipts
from memgraph.store.entities import ENTITY_NAMES
from memgraph.store.snapshot import NewEntry
from memgraph.store.visibility import ACTIVE
from memgraph.text.sentences import split_sentences

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.service.open_orchestrator import OpenOrchestrator

PAUSE_MS: Final = 15 * 60_000
"""The minimum time between two runs of ``memory_consolidate``, by the job records."""
NOTHING_FOUND: Final = "Nothing related is remembered."
FORGOTTEN: Final = "forgotten by a model"
_FOUND: Final = {"reasons", "comparison"}
_INHERITED: Final = ("type", "scope", "scope_id", "agent_id", "tags")
_RUNS_LOOKED_AT: Final = 500


@tool("Search memory", default=True)
def search_memory(
    handle: Orchestrator,
    query: Query,
    kind: KindFilter | None = None,
    type: MemoryType | None = None,  # noqa: A002 - the documents' word
    tag: Name | None = None,
    limit: Annotated[
        Annotated[int, Field(ge=1, le=100)] | None, Field(description="Lines at most.")
    ] = None,
    *,
    session_id: str | None = None,
) -> str:
    """Search the long-term memory. Use it before answering what may have been told before.

    Returns:
        The lines of the memories in order of time, best ones first to be chosen, each ending in its
        short id.
    """
    fields = {
        "query": query,
        "kinds": () if kind is None else (kind,),
        "types": () if type is None else (type,),
        "tags": () if tag is None else (tag,),
        "for_conversation_id": session_id,
    }
    request = validated(RecallRequest, fields)
    from memgraph.operations.context.block import build_block

    built = build_block(handle, request, format=BlockFormat.FENCED, max_lines=limit, handles=True)
    return built.block.text or NOTHING_FOUND


@tool("Remember a fact", permission=Permission.WRITE, default=True)
def remember_fact(
    handle: Orchestrator,
    content: Annotated[
        Statement,
        Field(description="One statement that can be understood alone, with names and dates."),
    ],
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0,
    entity_names: Annotated[
        tuple[Name, ...], Field(max_length=20, description="Whom and what it is about.")
    ] = (),
    kind: Literal["fact", "preference"] = "fact",
    *,
    session_id: str | None = None,
    scope: str | None = None,
    scope_id: str | None = None,
) -> dict[str, Any]:
    """Remember something that the user said and that will matter in later conversations. Do not
    repeat what the memory returned.

    Returns:
        ``outcome`` (``stored`` or ``duplicate``) and ``memory_id``; where they apply, ``reasons``
        and ``comparison`` (``pending``: what it may change is looked for in the background).
    """
    place = place_of(handle.viewer, scope, scope_id)
    with handle._service.opened(handle.name) as opened:
        repeated = _repeated(handle, opened, content, session_id)
        form = folded(content)
        for memory in repeated:
            if memory.kind is not MemoryKind.EPISODE and folded(memory.content) == form:
                return {"outcome": "duplicate", "memory_id": memory.memory_id}
        require_no_wider(place, repeated)
        # At least the sensitivity of the memories of which it repeats a line.
        floor = min(handle.viewer.clearance, Sensitivity.INTERNAL, key=lambda level: level.level)
        label = labelled(content)
        of_label = MemoryType.FACT if label is None else label[0]
        fields = {
            "content": content,
            "type": MemoryType.PREFERENCE if kind == "preference" else of_label,
            "confidence": confidence,
            "sensitivity": sensitivity_of(floor, repeated),
            "source": _source(session_id),
            # Stored with the memory, for a rebuild of the links to entities.
            "attributes": {ENTITY_NAMES: list(entity_names)} if entity_names else {},
        }
        memory_input = validated(MemoryInput, fields | place._asdict())
        [stored] = handle._store(opened, [memory_input], []).memories
        opened.background.wake()
    answer = {"outcome": stored.outcome, "memory_id": stored.memory_id}
    if stored.outcome != "duplicate":
        found = handle._readable(stored).model_dump(include=_FOUND)
        answer |= {name: value for name, value in found.items() if value}
    return answer


@tool("Correct a fact", permission=Permission.WRITE, destructive=True, default=True)
def correct_fact(
    handle: Orchestrator,
    memory_id: LineId,
    new_content: Annotated[Statement, Field(description="What is right; can be understood alone.")],
    *,
    session_id: str | None = None,
) -> dict[str, Any]:
    """Replace a remembered fact that the user says is wrong or out of date. Find it with
    search_memory first.

    Returns:
        ``memory_id`` of the new fact, and ``replaced``: the old one, or null if it has another
        author and the two contradict each other.
    """
    memory_id, view = handle._whole_id(memory_id), handle._view
    with handle._service.opened(handle.name) as opened:
        with opened.database.read() as snapshot:
            memory_id = fact_meant(snapshot, memory_id, view)
            old = memories.get(snapshot, memory_id, view)
            turn = persons_turn(snapshot, session_id, view)
        repeated = _repeated(handle, opened, new_content, session_id)
        others = [memory for memory in repeated if memory.memory_id != memory_id]
        fields = {
            **{name: getattr(old, name) for name in _INHERITED},
            "key": "new",
            "content": new_content,
            "importance": min(old.importance, MAX_IMPORTANCE),
            "confidence": MAX_CONFIDENCE if turn is None else 1.0,
            "sensitivity": sensitivity_of(old.sensitivity, others),
            "source": _source(session_id),
            "derived_from": () if turn is None else (turn.memory_id,),
        }
        prepared = opened.writer.prepare(validated(MemoryInput, fields))
        word = "" if turn is None else f" on the word of {turn.source_role}"
        link = EdgeInput(
            from_id="#new",
            to_id=memory_id,
            edge_type=EdgeType.UPDATES,
            reason=f"corrected by a model{word}",
        )
        with opened.transaction(handle.actor) as transaction:
            old = require_correctable(transaction, memory_id, view, turn)
            if normalise_content(new_content) == normalise_content(old.content):
                raise Conflict("the new text equals the old one", memory_id=memory_id)
            require_no_wider(FactPlace(old.scope, old.scope_id, old.agent_id), others)
            written = opened.writer.store_all(
                transaction, [prepared], [link], view=view, replacing=memory_id
            )
            is_active = bool(memories.active_ids(transaction, [memory_id]))
        opened.background.wake()
    new_id = written.ids_by_key["new"]
    return {"memory_id": new_id, "replaced": None if is_active else memory_id}


@tool("Confirm a fact", permission=Permission.WRITE, default=True)
def confirm_fact(
    handle: Orchestrator, memory_id: LineId, *, session_id: str | None = None
) -> dict[str, Any]:
    """Protect a remembered fact for good. Only when the user confirmed just this fact.

    Returns:
        ``memory_id`` and ``protected``.
    """
    whole_id = handle._whole_id(memory_id)
    with handle._write() as (_, transaction):
        whole_id = fact_meant(transaction, whole_id, handle._view)
        turn = persons_turn(transaction, session_id, handle._view)
        require_confirmable(transaction, whole_id, handle._view, turn)
        entries = changes.confirm(transaction, whole_id, view=handle._view)
        transaction.record(_on_the_word_of(turn, entries))
    return {"memory_id": memory_id, "protected": True}


@tool("Get entity info", default=True)
def get_entity_info(
    handle: Orchestrator, name: Annotated[Name, Field(description="Name, alias or nickname.")]
) -> str:
    """Return all that is remembered about a person, project, place or other entity.

    Returns:
        A line with the entity's profile, then the lines of its memories, as of ``search_memory``.
    """
    from memgraph.operations.context.block import entity_block, plan_for
    from memgraph.operations.life.profiles import MAX_MEMORIES, profile

    with handle._service.opened(handle.name) as opened:
        found = profile(opened, handle.viewer, name, limit=MAX_MEMORIES)
        plan = plan_for(
            opened,
            found.canonical_name,
            format=BlockFormat.FENCED,
            budget_tokens=opened.settings.memory.context.block_tokens,
        )
        plan = replace(plan, head=profile_line(found, plan.zone))
        with opened.database.read() as snapshot:
            return entity_block(snapshot, handle.viewer, found.memories, plan)


@tool("Forget", permission=Permission.WRITE, destructive=True, default=True)
def forget(
    handle: Orchestrator,
    memory_id: LineId,
    reason: Reason | None = None,
    *,
    session_id: str | None = None,
) -> dict[str, Any]:
    """Retract a memory that the user asks to forget. Find it with search_memory first.

    Returns:
        ``retracted``: the ids of the memory, and of the facts or turns that say the same.
    """
    because = handle._because(reason or FORGOTTEN)
    memory_id = handle._whole_id(memory_id)
    with handle._write() as (_, transaction):
        turn = persons_turn(transaction, session_id, handle._view)
        ids = forgettable(transaction, memory_id, handle._view, turn)
        for one in ids:
            entries = changes.retract(transaction, one, reason=because, view=handle._view)
            transaction.record(_on_the_word_of(turn, entries))
    return {"retracted": ids}


@tool("Memory statistics")
def memory_stats(handle: Orchestrator) -> dict[str, Any]:
    """Return how much is remembered.

    Returns:
        ``memories``: counts by kind, type and status; ``latest_at``; for an admin
        ``last_consolidation_at``.
    """
    latest = handle.memories.list(limit=1)
    answer: dict[str, Any] = {
        "memories": handle.memories.counts(),
        "latest_at": iso(latest[0].created_at) if latest else None,
    }
    if Permission.ADMIN in handle.permissions:
        done = [
            run.ended_at
            for run in handle.jobs.list(limit=200)
            if run.job is JobName.CONSOLIDATION and run.state is JobState.DONE and run.ended_at
        ]
        answer["last_consolidation_at"] = iso(done[0]) if done else None
    return answer


@tool("Consolidate the memory", permission=Permission.ADMIN, maintenance=True)
def memory_consolidate(handle: Orchestrator) -> dict[str, Any]:
    """Run the nightly maintenance now. Slow: only when the user asks for it.

    Returns:
        ``runs``, each with ``job``, ``state``, ``counts`` and ``error``.
    """
    with handle._service.opened(handle.name) as opened, opened.database.read() as snapshot:
        since = opened.clock.now_ms() - PAUSE_MS
        runs = jobs.latest(snapshot, _RUNS_LOOKED_AT)
    if any(
        run.job is JobName.CONSOLIDATION and run.trigger != "event" and run.started_at > since
        for run in runs
    ):
        raise Conflict("the maintenance ran a short time ago")
    ended: list[JobRun] = []
    for job in (JobName.CONSOLIDATION, JobName.DECAY, JobName.REFLECTION):
        ended.append(handle.jobs.run(job))
        if ended[-1].failed:
            break
    return {
        "runs": [
            {
                "job": run.job.value,
                "state": run.state.value,
                "counts": {name: count for name, count in run.counts.items() if count},
                "error": run.error_code,
            }
            for run in ended
        ]
    }


def _repeated(
    handle: Orchestrator, opened: OpenOrchestrator, content: str, session_id: str | None
) -> list[Memory]:
    """Return the active memories of which a text repeats a line or sentence.

    The whole text of any memory counts, and each line of those handed out to the session.
    """
    opened.receipts.flush()
    stated = statements(content)
    parts = [content, *content.splitlines(), *split_sentences(content)]
    with opened.database.read() as snapshot:
        ids = memories.of_hashes(snapshot, {content_hash(part) for part in parts}, handle._view)
        if session_id is not None:
            ids += [
                memory.memory_id
                for memory in receipts.handed_out(snapshot, session_id)
                if not stated.isdisjoint(statements(memory.content))
            ]
        visible = memories.existing_ids(snapshot, ids, handle._view, statuses=ACTIVE)
        return memories.get_many(snapshot, sorted(visible))


def _source(session_id: str | None) -> Source:
    return Source(captured_by=CapturedBy.EXTRACTOR, conversation_id=session_id)


def _on_the_word_of(turn: Memory | None, entries: Sequence[NewEntry]) -> Sequence[NewEntry]:
    """Note a person's turn in journal entries, and return them."""
    if turn is not None:
        for entry in entries:
            entry.details["on_the_word_of"] = turn.memory_id
    return entries
