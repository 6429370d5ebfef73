"""Following memories: to their uses, and to their source lines."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from memgraph.model.influence import Grounds, Impact, SourceLines
from memgraph.model.values import Name
from memgraph.surfaces.http.entering import Auditor
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.routes.memories import AsOf, MemoryIdPath

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["auditing"])

MaxNodes = Annotated[int, Query(ge=1, le=10_000, description="Memories, and receipts, at most.")]


@router.get("/memories/{memory_id}/impact", operation_id="impact", response_model=Impact)
def impact(
    orc: Auditor, memory_id: MemoryIdPath, max_nodes: MaxNodes = 1_000, as_of: AsOf = None
) -> Response:
    """Return every recall, context, bulletin, run and derived memory that a memory reached."""
    return answered(orc.impact(memory_id, max_nodes=max_nodes, as_of=as_of))


@router.get("/memories/{memory_id}/lines", operation_id="source_lines", response_model=SourceLines)
def source_lines(orc: Auditor, memory_id: MemoryIdPath) -> Response:
    """Return what a memory was read from: its lines of the stored file, or turns."""
    return answered(orc.source_lines(memory_id))


@router.get("/grounds", operation_id="grounds", response_model=Grounds)
def grounds(
    orc: Auditor,
    memory_id: Annotated[Name | None, Query(description="Of this memory.")] = None,
    workflow_run_id: Annotated[Name | None, Query(description="Of this run.")] = None,
    max_nodes: MaxNodes = 1_000,
    lines: Annotated[
        int, Query(ge=0, le=1_000, description="Of so many memories, what they were read from.")
    ] = 0,
) -> Response:
    """Return all evidence of a memory, or of a run of a workflow: name one of them."""
    return answered(
        orc.grounds(memory_id, workflow_run_id=workflow_run_id, max_nodes=max_nodes, lines=lines)
    )
