"""Entities that memories name."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field

from memgraph.model.entities import EntityInfo, EntityProfile
from memgraph.model.remote import EntityList, EntityProposals, Limit
from memgraph.model.values import Name, Reason, Value
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Admin, Reader
from memgraph.surfaces.http.envelope import answered

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}/entities", tags=["entities"])


class EntityWanted(Value):
    """An entity, by its id or one of its names; ``limit``: memories at most."""

    name: Name
    limit: Annotated[int, Field(ge=0, le=100)] = 10


class Merge(Value):
    """``other`` becomes a name of ``into``; both are ids or names."""

    into: Name
    other: Name
    reason: Reason


class Split(Value):
    """Names of an entity that belong to another one."""

    entity: Name
    names: Annotated[tuple[Name, ...], Field(min_length=1, max_length=50)]
    reason: Reason


class Protect(Value):
    """Protection of the facts about an entity from decay."""

    name: Name
    protected: bool = True
    reason: Reason


class Decide(Value):
    """The decision on a proposal that two entities are one."""

    proposal_id: Name
    accept: bool
    reason: Reason


@router.get("", operation_id="list_entities", response_model=EntityList)
def listed(
    orc: Reader,
    prefix: Annotated[str, Query(max_length=512, description="How a name begins.")] = "",
    limit: Annotated[Limit, Query()] = 50,
) -> Response:
    """Return entities named in memories that the caller may see, most mentioned first."""
    return answered(EntityList(items=tuple(orc.entities(prefix=prefix, limit=limit))))


@router.post("/info", operation_id="get_entity_info", response_model=EntityProfile)
def info(
    orc: Reader, body: Annotated[EntityWanted, Body(openapi_examples=examples.ENTITY)]
) -> Response:
    """Return one entity's profile. The name is not in the address, which proxies log."""
    return answered(orc.get_entity_info(body.name, limit=body.limit))


@router.post("/merge", operation_id="merge_entities", response_model=EntityInfo)
def merge(orc: Admin, body: Annotated[Merge, Body(openapi_examples=examples.MERGE)]) -> Response:
    """Merge two entities into one."""
    return answered(orc.merge_entities(body.into, body.other, reason=body.reason))


@router.post("/split", operation_id="split_entity", response_model=EntityInfo)
def split(orc: Admin, body: Annotated[Split, Body(openapi_examples=examples.SPLIT)]) -> Response:
    """Move some names of an entity to another one; return that one."""
    return answered(orc.split_entity(body.entity, names=body.names, reason=body.reason))


@router.post("/protect", operation_id="protect_entity", response_model=EntityInfo)
def protect(
    orc: Admin, body: Annotated[Protect, Body(openapi_examples=examples.PROTECT)]
) -> Response:
    """Protect the facts about an entity from decay."""
    found = orc.protect_entity(body.name, protected=body.protected, reason=body.reason)
    return answered(found)


@router.get("/proposals", operation_id="entity_proposals", response_model=EntityProposals)
def proposals(orc: Reader) -> Response:
    """Return the names that a model proposed as names of a known entity."""
    return answered(EntityProposals(items=tuple(orc.entity_proposals())))


@router.post("/decide", operation_id="decide_entity_proposal", response_model=EntityInfo)
def decide(orc: Admin, body: Annotated[Decide, Body(openapi_examples=examples.DECIDE)]) -> Response:
    """Merge the entities of a proposal, or reject it for good."""
    found = orc.decide_entity_proposal(body.proposal_id, accept=body.accept, reason=body.reason)
    return answered(found)
