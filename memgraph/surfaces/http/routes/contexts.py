"""Contexts: what a task needs to know, the block before a message, the items of a tier."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field

from memgraph.model.context import (
    BlockFormat,
    ContextBlock,
    ContextPackage,
    ContextRequest,
    Task,
    Tier,
)
from memgraph.model.enums import MemoryKind
from memgraph.model.recall import MAX_TOP_N
from memgraph.model.recall import Query as Question
from memgraph.model.remote import Limit, TierPage
from memgraph.model.values import Name, Value
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Reader
from memgraph.surfaces.http.envelope import answered

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["contexts"])


class ContextWanted(Value):
    """The task (or its id, or none), and the request for its context."""

    task: Task | Name | None = None
    request: ContextRequest | None = None


class BlockWanted(Value):
    """The message, and options of its block; see ``Orchestrator.get_context``."""

    prompt: Question
    limit: Annotated[int, Field(ge=1, le=MAX_TOP_N)] | None = None
    format: BlockFormat | None = None
    exclude_session_id: Name | None = None
    include_insight: bool = True
    kinds: tuple[MemoryKind, ...] = (MemoryKind.FACT,)
    agent_id: Name | None = None


@router.post("/context", operation_id="build_context", response_model=ContextPackage)
def build_context(
    orc: Reader,
    body: Annotated[
        ContextWanted, Body(default_factory=ContextWanted, openapi_examples=examples.CONTEXT)
    ],
) -> Response:
    """Build the context that a task needs, within a token budget.

    The view needs the task among its sessions and the task's project among its projects.
    """
    return answered(orc.build_context(body.task, body.request))


@router.post("/context/block", operation_id="get_context", response_model=ContextBlock)
def get_context(
    orc: Reader, body: Annotated[BlockWanted, Body(openapi_examples=examples.BLOCK)]
) -> Response:
    """Return the block of memories to put before a message, and its items."""
    return answered(orc.get_context(**dict(body)))


@router.get("/tiers/{tier}", operation_id="list_tier", response_model=TierPage)
def list_tier(
    orc: Reader,
    tier: Tier,
    scope_id: Annotated[Name | None, Query(description="The task or project; none is global.")] = (
        None
    ),
    limit: Annotated[Limit, Query()] = 50,
) -> Response:
    """Return the items of a task, a project or the global tier, newest first.

    The view needs the task among its sessions, or the project among its projects.
    """
    return answered(orc.tier(tier, scope_id, limit=limit))
