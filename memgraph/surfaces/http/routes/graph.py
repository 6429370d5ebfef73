"""The graph: edges, neighbourhoods, contradictions and their resolution."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query, Response
from pydantic import Field

from memgraph.model.enums import EdgeType
from memgraph.model.graph import ContradictionPage, Subgraph
from memgraph.model.operation import operation_of
from memgraph.model.remote import EdgeId
from memgraph.model.values import EdgeInput, Millis, Name, Value
from memgraph.service.handle_auditing import CasesHandle
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Reader, Writer
from memgraph.surfaces.http.envelope import answered
from memgraph.surfaces.http.operations import add_route
from memgraph.surfaces.http.routes.memories import AsOf

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["graph"])

EdgeIdPath = Annotated[str, Path(max_length=512, examples=[examples.EDGE_ID])]


class Neighbourhood(Value):
    """The memories around some, and when; the bounds are the library's."""

    ids: Annotated[tuple[Name, ...], Field(max_length=1_000)]
    hops: int = 1
    max_nodes: int = 200
    edge_types: tuple[EdgeType, ...] | None = None
    as_of: Millis | None = None
    retracted: bool = False


@router.post("/edges", operation_id="relate", status_code=201, response_model=EdgeId)
def relate(
    orc: Writer, body: Annotated[EdgeInput, Body(openapi_examples=examples.EDGE)]
) -> Response:
    """Join two memories; an existing edge returns its own id."""
    edge_id = orc.relate(
        body.from_id,
        body.edge_type,
        body.to_id,
        weight=body.weight,
        reason=body.reason,
        partial=body.partial,
    )
    return answered(EdgeId(edge_id=edge_id), status=201)


@router.post("/subgraph", operation_id="subgraph", response_model=Subgraph)
def subgraph(
    orc: Reader, body: Annotated[Neighbourhood, Body(openapi_examples=examples.SUBGRAPH)]
) -> Response:
    """Return the memories near some, and the edges between them, bounded."""
    found = orc.subgraph(
        body.ids,
        hops=body.hops,
        max_nodes=body.max_nodes,
        edge_types=body.edge_types,
        as_of=body.as_of,
        retracted=body.retracted,
    )
    return answered(found)


@router.get("/contradictions", operation_id="list_contradictions", response_model=ContradictionPage)
def contradictions(
    orc: Reader,
    resolved: Annotated[bool, Query(description="Those that were resolved.")] = False,
    limit: Annotated[int, Query(ge=1, le=500, description="Of a page.")] = 50,
    cursor: Annotated[Name | None, Query(description="`next_after` of the page before.")] = None,
    as_of: AsOf = None,
    text: Annotated[
        Name | None, Query(description="One side contains each of these words; 200 characters.")
    ] = None,
    memory_id: Annotated[Name | None, Query(description="One side is this memory.")] = None,
    dismissed: Annotated[
        bool | None, Query(description="Of the resolved: those that were dismissed, or not.")
    ] = None,
    oldest_first: Annotated[bool, Query(description="The other way round.")] = False,
) -> Response:
    """Return contradictions of which the caller sees both sides, newest first."""
    found = orc.contradictions(
        resolved=resolved,
        limit=limit,
        after=cursor,
        as_of=as_of,
        text=text,
        memory_id=memory_id,
        dismissed=dismissed,
        oldest_first=oldest_first,
    )
    return answered(found)


add_route(router, operation_of(CasesHandle.resolve))
add_route(router, operation_of(CasesHandle.reopen))
