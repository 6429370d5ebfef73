"""Comparing times: what changed between two, and over the life of one memory."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from memgraph.model.graph import Diff, History
from memgraph.model.values import Millis
from memgraph.surfaces.http.entering import Reader
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.routes.memories import MemoryIdPath

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["auditing"])


@router.get("/diff", operation_id="diff", response_model=Diff)
def diff(
    orc: Reader,
    since: Annotated[Millis, Query(description="After this time.", examples=["2026-01-01"])],
    until: Annotated[
        Millis | None,
        Query(description="Up to this time; now, if none is.", examples=["2026-02-01"]),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Of each list.")] = 100,
) -> Response:
    """Return what was learnt, replaced, retracted, contradicted and decided between two times."""
    return answered(orc.diff(since, until, limit=limit))


@router.get("/memories/{memory_id}/history", operation_id="history", response_model=History)
def history(orc: Reader, memory_id: MemoryIdPath) -> Response:
    """Return every status and every value that a memory had, with their times."""
    return answered(orc.history(memory_id))
