"""Asking the memory: recall."""

from __future__ import annotations

from fastapi import APIRouter, Response

from memgraph.model.recall import Bundle, RecallRequest
from memgraph.surfaces.http.answering import answered
from memgraph.surfaces.http.entering import Reader

router = APIRouter(prefix="/v1/orchestrators/{orchestrator}", tags=["recall"])


@router.post("/recall", operation_id="recall", response_model=Bundle)
def recall(orc: Reader, body: RecallRequest) -> Response:
    """The memories that answer a question, best first, with their reasons and sources."""
    return answered(orc.recall(body))
