"""Sources: their memories, their trust, retracting them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response
from pydantic import Field

from memgraph.model.enums import SourceName, TrustTier
from memgraph.model.sources import (
    MAX_SOURCES,
    SourceInfo,
    SourcePage,
    SourceRestoration,
    SourceRetraction,
    SourceText,
    TrustedList,
    TrustedSource,
)
from memgraph.model.values import Reason, Value
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Admin, Auditor
from memgraph.surfaces.http.envelope import answered, done

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}/sources", tags=["sources"])


class SourceNamed(Value):
    """A source by one of its names."""

    kind: SourceName
    name: SourceText


class SourceTrust(SourceNamed):
    """The trust of a source; without ``max_memories`` the settings limit its memories."""

    tier: TrustTier
    max_memories: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    reason: Reason


class SourceDistrust(SourceNamed):
    """The source whose trust assignment is removed, and why."""

    reason: Reason


class SourceTaken(Value):
    """The source to retract or restore, by exactly one name, and why; by default a preview."""

    path: SourceText | None = None
    conversation_id: SourceText | None = None
    workflow_run_id: SourceText | None = None
    content_sha256: SourceText | None = None
    reason: Reason
    dry_run: bool = True


@router.get("", operation_id="list_sources", response_model=SourcePage)
def list_sources(
    orc: Auditor,
    kind: Annotated[
        SourceName | None, Query(description="Without one: paths, conversations and runs.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_SOURCES, description="Of a page.")] = 50,
    cursor: Annotated[
        SourceText | None, Query(description="`next_after` of the page before.")
    ] = None,
    sender: Annotated[
        SourceText | None,
        Query(description="Only sources with statements by this sender, or stored by it."),
    ] = None,
) -> Response:
    """Return sources of memories that the caller sees, by kind and name."""
    return answered(orc.sources(kind=kind, limit=limit, after=cursor, sender=sender))


@router.post("/info", operation_id="source_info", response_model=SourceInfo)
def source_info(
    orc: Auditor, body: Annotated[SourceNamed, Body(openapi_examples=examples.SOURCE)]
) -> Response:
    """Return the memories of one source and its trust."""
    return answered(orc.source(body.kind, body.name))


@router.get("/trust", operation_id="list_trusted", response_model=TrustedList)
def list_trusted(orc: Auditor) -> Response:
    """Return trust assignments that the caller may see."""
    return answered(TrustedList(items=tuple(orc.trusted())))


@router.post("/trust", operation_id="trust_source", response_model=TrustedSource)
def trust_source(
    orc: Admin, body: Annotated[SourceTrust, Body(openapi_examples=examples.SOURCE_TRUST)]
) -> Response:
    """Assign a trust tier to a source, in place of an earlier one."""
    told = orc.trust(
        body.kind, body.name, body.tier, max_memories=body.max_memories, reason=body.reason
    )
    return answered(told)


@router.post("/distrust", operation_id="distrust_source", status_code=204)
def distrust_source(
    orc: Admin, body: Annotated[SourceDistrust, Body(openapi_examples=examples.SOURCE_DISTRUST)]
) -> Response:
    """Remove the trust assigned to a source: the settings apply again."""
    orc.distrust(body.kind, body.name, reason=body.reason)
    return done()


@router.post("/retract", operation_id="retract_source", response_model=SourceRetraction)
def retract_source(
    orc: Admin, body: Annotated[SourceTaken, Body(openapi_examples=examples.SOURCE_TAKEN)]
) -> Response:
    """Retract all memories from a source, and what derives from them alone; by default a
    preview.
    """
    return answered(orc.retract_source(**dict(body)))


@router.post("/restore", operation_id="restore_source", response_model=SourceRestoration)
def restore_source(
    orc: Admin, body: Annotated[SourceTaken, Body(openapi_examples=examples.SOURCE_BACK)]
) -> Response:
    """Restore what was retracted with a source; by default a preview."""
    return answered(orc.restore_source(**dict(body)))
