"""Copies of all data: the export and the backup."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.http.access import gate_of, lengthy_of, undivided, untimed
from memgraph.surfaces.http.event_streams import TemporaryFileResponse

NDJSON = "application/x-ndjson"
SQLITE = "application/vnd.sqlite3"

router = APIRouter(
    prefix="/v1/orchestrators/{orchestrator}", tags=["copies"], dependencies=[Depends(untimed)]
)

Whole = Annotated[Orchestrator, Depends(undivided("a copy", field="copy"))]


@router.get(
    "/export",
    operation_id="export",
    status_code=200,
    response_class=TemporaryFileResponse,
    responses={200: {"content": {NDJSON: {}}, "description": "JSON Lines, as `memgraph export`."}},
)
def export(
    request: Request,
    orc: Whole,
    with_vectors: Annotated[bool, Query(description="Embeddings, too.")] = False,
) -> TemporaryFileResponse:
    """Return all data of the orchestrator, for a key from which nothing is hidden."""
    return _sent(
        request,
        lambda target: orc.exchange.export(target, with_vectors=with_vectors),
        name=f"{orc.name}.jsonl",
        media_type=NDJSON,
    )


@router.get(
    "/backup",
    operation_id="backup",
    status_code=200,
    response_class=TemporaryFileResponse,
    responses={200: {"content": {SQLITE: {}}, "description": "The database, as one file."}},
)
def backup(request: Request, orc: Whole) -> TemporaryFileResponse:
    """Return a checked copy of the database, for a key from which nothing is hidden."""
    return _sent(request, orc.exchange.backup, name=f"{orc.name}.db", media_type=SQLITE)


def _sent(
    request: Request, write: Callable[[Path], object], *, name: str, media_type: str
) -> TemporaryFileResponse:
    def made(target: Path) -> None:
        with lengthy_of(request).one():
            write(target)

    held = gate_of(request).service.copies.copied(made)
    return TemporaryFileResponse(held, name=name, media_type=media_type)
