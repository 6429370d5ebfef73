"""The functions of the tools: what a model's call does, and what it is answered.

The positional parameters after the handle are the tool's arguments, with pydantic's constraints and
descriptions; keyword-only ones are passed by the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from memgraph.clock import iso
from memgraph.errors import Conflict
from memgraph.model.access import Permission
from memgraph.model.enums import JobName, JobState, KindFilter, MemoryType
from memgraph.model.values import Name, Reason
from memgraph.operations.tools.schemas import LineId, Query, Statement

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

PAUSE_MS: Final = 15 * 60_000
"""The minimum time between two runs of ``memory_consolidate``, by the job records."""
NOTHING_FOUND: Final = "Nothing related is remembered."
FORGOTTEN: Final = "forgotten by a model"
_FOUND: Final = {"reasons", "comparison"}


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
    block = handle.agents.search(
        query,
        max_lines=limit,
        kinds=() if kind is None else (kind,),
        types=() if type is None else (type,),
        tags=() if tag is None else (tag,),
        for_conversation_id=session_id,
    )
    return block.text or NOTHING_FOUND


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
    proposed = handle.agents.propose_fact(
        content,
        confidence=confidence,
        entity_names=entity_names,
        kind=kind,
        session_id=session_id,
        scope=scope,
        scope_id=scope_id,
    )
    found = {} if proposed.found is None else proposed.found.model_dump(include=_FOUND)
    found = {name: value for name, value in found.items() if value}
    return {"outcome": proposed.outcome, "memory_id": proposed.memory_id, **found}


def correct_fact(
    handle: Orchestrator,
    memory_id: LineId,
    new_content: Annotated[Statement, Field(description="What is right; can be understood alone.")],
    *,
    session_id: str | None = None,
) -> dict[str, Any]:
    corrected = handle.agents.propose_correction(memory_id, new_content, session_id=session_id)
    return {"memory_id": corrected.memory_id, "replaced": corrected.replaced}


def confirm_fact(
    handle: Orchestrator, memory_id: LineId, *, session_id: str | None = None
) -> dict[str, Any]:
    handle.agents.confirm_proposed(memory_id, session_id=session_id)
    return {"memory_id": memory_id, "protected": True}


def get_entity_info(
    handle: Orchestrator, name: Annotated[Name, Field(description="Name, alias or nickname.")]
) -> str:
    return handle.agents.entity_block(name)


def forget(
    handle: Orchestrator,
    memory_id: LineId,
    reason: Reason | None = None,
    *,
    session_id: str | None = None,
) -> dict[str, Any]:
    because = reason or FORGOTTEN
    return {"retracted": handle.agents.forget(memory_id, reason=because, session_id=session_id)}


def memory_stats(handle: Orchestrator) -> dict[str, Any]:
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


def memory_consolidate(handle: Orchestrator) -> dict[str, Any]:
    """Run consolidation, decay and reflection now. May take minutes.

    Raises:
        Conflict: the maintenance ran within the last ``PAUSE_MS``, requested by anyone.
    """
    if handle.agents.maintained_since(PAUSE_MS):
        raise Conflict("the maintenance ran a short time ago")
    return {
        "runs": [
            {
                "job": run.job.value,
                "state": run.state.value,
                "counts": {name: count for name, count in run.counts.items() if count},
                "error": run.error_code,
            }
            for run in handle.jobs.maintain()
        ]
    }
