"""Items of an agent's memory as they are given."""

from __future__ import annotations

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
