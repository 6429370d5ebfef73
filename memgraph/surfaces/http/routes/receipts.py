"""Receipts of what was handed out; past bulletins; replays."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query, Response
from pydantic import TypeAdapter

from memgraph.model.receipts import (
    BulletinHistory,
    Receipt,
    ReceiptList,
    Replay,
    ReplayRequest,
    StoredBulletin,
)
from memgraph.model.remote import Limit
from memgraph.model.values import Name
from memgraph.surfaces.http import examples
from memgraph.surfaces.http.entering import Auditor
from memgraph.surfaces.http.envelope import answered, answered_as

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["receipts"])

_RECEIPT = TypeAdapter(Receipt)
_RECEIPTS = TypeAdapter(ReceiptList)

ReceiptId = Annotated[str, Path(max_length=512)]
Before = Annotated[Name | None, Query(description="The last id of the page before.")]


@router.get("/receipts", operation_id="list_receipts", response_model=ReceiptList)
def listed(
    orc: Auditor,
    task_id: Annotated[Name | None, Query(description="For this task.")] = None,
    workflow_run_id: Annotated[Name | None, Query(description="For this run.")] = None,
    conversation_id: Annotated[Name | None, Query(description="For this conversation.")] = None,
    purpose: Annotated[Name | None, Query(description="For this: `recall`, `bulletin`, …")] = None,
    limit: Annotated[Limit, Query()] = 20,
    before: Before = None,
) -> Response:
    """Return receipts of which the caller may see every memory, newest first."""
    found = orc.receipts(
        task_id=task_id,
        workflow_run_id=workflow_run_id,
        conversation_id=conversation_id,
        purpose=purpose,
        limit=limit,
        before=before,
    )
    return answered_as(_RECEIPTS, found)


@router.get("/receipts/{receipt_id}", operation_id="get_receipt", response_model=Receipt)
def get(orc: Auditor, receipt_id: ReceiptId) -> Response:
    """Return what was handed out, and why."""
    return answered_as(_RECEIPT, orc.receipt(receipt_id))


@router.post("/receipts/{receipt_id}/replay", operation_id="replay", response_model=Replay)
def replay(
    orc: Auditor,
    receipt_id: ReceiptId,
    body: Annotated[
        ReplayRequest, Body(default_factory=ReplayRequest, openapi_examples=examples.REPLAY)
    ],
) -> Response:
    """Repeat the request of a receipt as of its moment, and compare the results."""
    return answered(orc.replay(receipt_id, query=body.query))


@router.get("/bulletins", operation_id="list_bulletins", response_model=BulletinHistory)
def bulletins(
    orc: Auditor, limit: Annotated[Limit, Query()] = 20, before: Before = None
) -> Response:
    """Return bulletins that were handed out, newest first, for readers who saw no more."""
    return answered(orc.bulletins(limit=limit, before=before))


@router.get(
    "/bulletins/{bulletin_id}", operation_id="get_issued_bulletin", response_model=StoredBulletin
)
def bulletin_issued(orc: Auditor, bulletin_id: Annotated[str, Path(max_length=512)]) -> Response:
    """Return a bulletin as it was handed out."""
    return answered(orc.bulletin_issued(bulletin_id))
