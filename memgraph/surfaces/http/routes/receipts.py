"""Receipts: what was handed out, for whom and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import TypeAdapter

from memgraph.model.receipts import Receipt, ReceiptList
from memgraph.model.remote import Limit
from memgraph.model.values import Name
from memgraph.surfaces.http.answering import answered_as
from memgraph.surfaces.http.entering import Auditor

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}/receipts", tags=["receipts"])

_RECEIPT = TypeAdapter(Receipt)
_RECEIPTS = TypeAdapter(ReceiptList)


@router.get("", operation_id="list_receipts", response_model=ReceiptList)
def listed(
    orc: Auditor,
    task_id: Annotated[Name | None, Query(description="For this task.")] = None,
    workflow_run_id: Annotated[Name | None, Query(description="For this run.")] = None,
    conversation_id: Annotated[Name | None, Query(description="For this conversation.")] = None,
    limit: Annotated[Limit, Query()] = 20,
) -> Response:
    """The newest receipts of which the asker may see every memory, the newest first."""
    found = orc.receipts(
        task_id=task_id,
        workflow_run_id=workflow_run_id,
        conversation_id=conversation_id,
        limit=limit,
    )
    return answered_as(_RECEIPTS, found)


@router.get("/{receipt_id}", operation_id="get_receipt", response_model=Receipt)
def get(orc: Auditor, receipt_id: Annotated[str, Path(max_length=512)]) -> Response:
    """What somebody was given, and why."""
    return answered_as(_RECEIPT, orc.receipt(receipt_id))
