"""What those ask who look after the process: whether it lives, works, and how much."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter

from memgraph.model.values import Value

router = APIRouter(tags=["running"])


class Alive(Value):
    """The process answers."""

    status: Literal["alive"] = "alive"


@router.get("/healthz", operation_id="get_liveness")
async def alive() -> Alive:
    """Whether the process answers; it says nothing of what it serves."""
    return Alive()
