"""Items of an agent's memory as they are given, and threads that make requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pydantic_core import to_jsonable_python

from memgraph import MemoryEntity, Sensitivity, Viewer

NAME = "orc-1"
EVERYTHING = Viewer(
    clearance=Sensitivity.RESTRICTED,
    project_ids=frozenset({"p", "q"}),
    session_ids=frozenset({"s", "t"}),
)
PATIENCE_S = 30.0

IN_SESSION = {"scope": "SessionScope", "sessionId": "s"}
IN_PROJECT = {"scope": "ProjectScope", "projectId": "p"}
WHERE: list[dict[str, Any]] = [{}, IN_SESSION, IN_PROJECT]


def item(content: str = "Alex likes short answers.", **fields: Any) -> dict[str, Any]:
    known = {"tier": "SemanticMemory", "scope": "GlobalScope", "source": "UserSource"}
    return {**known, "content": content, **fields}


def call(entity: MemoryEntity, method: str, payload: Any = None) -> Any:
    """The answer to a request as JSON."""
    requests = entity._service.orchestrator(entity.name).agent_memory
    request = {} if payload is None else payload
    return to_jsonable_python(getattr(requests, method)(entity.agent_id, request), by_alias=True)


def running(*works: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    return threads


def ended(threads: list[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(PATIENCE_S)
    return not any(thread.is_alive() for thread in threads)
