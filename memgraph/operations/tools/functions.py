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
from memgraph.model.enums import EdgeType, JobName, JobState, KindFilter, MemoryType
from memgraph.model.values import Name, Reason
from memgraph.operations.tools.schemas import MAX_LISTED, LineId, Query, Statement
from memgraph.rules.lines import said_at
from memgraph.rules.sources import short_citation

if TYPE_CHECKING:
    from memgraph.model.graph import Contradiction, Link, Trace
    from memgraph.model.values import Memory, StoredSource
    from memgraph.operations.orchestrator import Orchestrator

MAX_TEXT_CHARS: Final = 300
"""The maximum number of characters of a memory in a JSON result; the rest is cut and marked."""
PAUSE_MS: Final = 15 * 60_000
"""The minimum time between two runs of ``memory_consolidate``, by the job records."""
CUT: Final = " […]"
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


def relate(
    handle: Orchestrator,
    from_id: Annotated[Name, Field(description="The newer, the effect, or the part.")],
    edge_type: Annotated[
        EdgeType,
        Field(
            description="Updates: from_id replaces to_id. CausedBy: to_id is the evidence of"
            " from_id. PartOf: to_id is the whole. Contradicts, RelatedTo: either way round."
        ),
    ],
    to_id: Name,
    reason: Reason | None = None,
) -> dict[str, Any]:
    proposed = handle.agents.propose_relation(from_id, edge_type, to_id, reason=reason)
    return {"outcome": proposed.outcome, "edge_id": proposed.edge_id}


def contradictions(
    handle: Orchestrator,
    resolved: Annotated[
        bool, Field(description="Those that were decided, not the open ones.")
    ] = False,
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] = 10,
    after: Annotated[Name | None, Field(description="The next_after of the page before.")] = None,
) -> dict[str, Any]:
    page = handle.contradictions.list(resolved=resolved, limit=limit, after=after)
    return {
        "contradictions": [_contradiction(item) for item in page.items],
        "next_after": page.next_after,
    }


def trace(handle: Orchestrator, memory_id: LineId) -> dict[str, Any]:
    result = handle.trace(memory_id)
    memory = result.memory
    return {
        "memory": {**_sourced(memory, result.source), "status": memory.status.value},
        "independent_sources": result.independent_sources,
        "also_said_in": [
            _place(memory, support.source) for support in result.supports[:MAX_LISTED]
        ],
        "history": [
            {"status": item.status.value, "since": iso(item.since)}
            for item in result.status_history[-MAX_LISTED:]
        ],
        "contradicted_by": _opponents(result),
        "probably_changed_by": _changing(result),
        "stale_grounds": list(result.stale_grounds[:MAX_LISTED]),
        "linked": _linked(result)[:MAX_LISTED],
        "cut": result.cut,
    }


def _contradiction(contradiction: Contradiction) -> dict[str, Any]:
    sides = sorted(
        zip((contradiction.first, contradiction.second), contradiction.sources, strict=True),
        key=lambda side: (said_at(side[0]), side[0].memory_id),
        reverse=True,
    )
    return {
        "edge_id": contradiction.edge.edge_id,
        "relation": contradiction.edge.relation,
        "weight": contradiction.edge.weight,
        "since": iso(contradiction.since),
        "resolved": contradiction.resolved,
        "moot": contradiction.moot,
        "sides": [_sourced(memory, source) for memory, source in sides],
    }


def _linked(trace: Trace) -> list[dict[str, Any]]:
    """Return every memory in a trace once, with its relation to the traced one."""
    by_role: dict[str, tuple[Link, ...]] = {
        "replaced_by": trace.replaced_by,
        "replaced": trace.replaced,
        "ground": trace.grounds,
        "dependent": trace.dependents,
    }
    entries: dict[str, dict[str, Any]] = {}
    for role, links in by_role.items():
        for link in links:
            memory = trace.memory_by_id[link.memory_id]
            entries.setdefault(
                link.memory_id, {"role": role, "distance": link.distance, **_fields(memory)}
            )
    return list(entries.values())


def _opponents(trace: Trace) -> list[str]:
    ends = [
        end
        for open_contradiction in trace.open_contradictions
        for end in (open_contradiction.from_id, open_contradiction.to_id)
    ]
    opponents = [end for end in dict.fromkeys(ends) if end != trace.memory.memory_id]
    return opponents[:MAX_LISTED]


def _changing(trace: Trace) -> list[str]:
    memory_id = trace.memory.memory_id
    laters = [edge.from_id for edge in trace.probable_changes if edge.to_id == memory_id]
    return laters[:MAX_LISTED]


def _sourced(memory: Memory, source: StoredSource) -> dict[str, Any]:
    return {**_fields(memory), "source": _place(memory, source)}


def _place(memory: Memory, source: StoredSource) -> str:
    return _cut(short_citation(memory, source))


def _fields(memory: Memory) -> dict[str, Any]:
    return {
        "memory_id": memory.memory_id,
        "kind": memory.kind.value,
        "type": memory.type.value,
        "at": iso(said_at(memory)),
        "text": _cut(memory.content),
    }


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - len(CUT)] + CUT
