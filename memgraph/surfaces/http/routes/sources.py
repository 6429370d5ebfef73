"""Sources: what came from each, how far it is trusted, taking it back."""

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
from memgraph.surfaces.http.answering import answered, done
from memgraph.surfaces.http.entering import Admin, Auditor

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}/sources", tags=["sources"])


class SourceNamed(Value):
    """A source by one of its names."""

    kind: SourceName
    name: SourceText


class SourceTrust(SourceNamed):
    """How far a source is trusted; without ``max_memories`` the settings say how much it holds."""

    tier: TrustTier
    max_memories: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    reason: Reason


class SourceDistrust(SourceNamed):
    """Of which source nothing is said any more, and why."""

    reason: Reason


class SourceTaken(Value):
    """Which source is taken or brought back, by exactly one name, and why; by default only told."""

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
        Query(
            description="Only sources of which somebody of this name said, or stored, something."
        ),
    ] = None,
) -> Response:
    """Sources of which the asker sees something, by kind and name."""
    return answered(orc.sources(kind=kind, limit=limit, after=cursor, sender=sender))


@router.post("/info", operation_id="source_info", response_model=SourceInfo)
def source_info(
    orc: Auditor, body: Annotated[SourceNamed, Body(openapi_examples=examples.SOURCE)]
) -> Response:
    """What came from one source, and how far it is trusted."""
    return answered(orc.source(body.kind, body.name))


@router.get("/trust", operation_id="list_trusted", response_model=TrustedList)
def list_trusted(orc: Auditor) -> Response:
    """What was said of sources, as far as the asker may know."""
    return answered(TrustedList(items=tuple(orc.trusted())))


@router.post("/trust", operation_id="trust_source", response_model=TrustedSource)
def trust_source(
    orc: Admin, body: Annotated[SourceTrust, Body(openapi_examples=examples.SOURCE_TRUST)]
) -> Response:
    """Say how far a source is trusted; what was said of it before is replaced."""
    told = orc.trust(
        body.kind, body.name, body.tier, max_memories=body.max_memories, reason=body.reason
    )
    return answered(told)


@router.post("/distrust", operation_id="distrust_source", status_code=204)
def distrust_source(
    orc: Admin, body: Annotated[SourceDistrust, Body(openapi_examples=examples.SOURCE_DISTRUST)]
) -> Response:
    """Take back what was said of a source: the settings decide again."""
    orc.distrust(body.kind, body.name, reason=body.reason)
    return done()


@router.post("/retract", operation_id="retract_source", response_model=SourceRetraction)
def retract_source(
    orc: Admin, body: Annotated[SourceTaken, Body(openapi_examples=examples.SOURCE_TAKEN)]
) -> Response:
    """Take back all that came from a source, and from that alone; by default only told."""
    return answered(orc.retract_source(**dict(body)))


@router.post("/restore", operation_id="restore_source", response_model=SourceRestoration)
def restore_source(
    orc: Admin, body: Annotated[SourceTaken, Body(openapi_examples=examples.SOURCE_BACK)]
) -> Response:
    """Bring back what was taken back with a source; by default only told."""
    return answered(orc.restore_source(**dict(body)))
