"""From an orchestrator's handle to the calls of its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from memgraph.client.calls import Call, Read, Repeat, body, segment
from memgraph.errors import NotFound, OrchestratorMissing
from memgraph.model.access import Narrowing
from memgraph.model.values import Value

T = TypeVar("T")


class Place:
    """Where the words of a handle are sent: an orchestrator, looked at so narrowly."""

    name: str
    narrowing: Narrowing

    def _set_place(self, name: str, narrowing: Narrowing) -> None:
        self.name = name
        self.narrowing = narrowing
        try:
            self._root = f"/v1/orchestrators/{segment(name, field='orchestrator')}"
        except NotFound:
            raise OrchestratorMissing("no orchestrator can be called so") from None
        self._view: dict[str, Any] = {
            "project": narrowing.project_ids,
            "session": narrowing.session_ids,
            "agent": narrowing.agent_id,
            "clearance": narrowing.clearance,
        }

    def _get(self, path: str, read: Read[T], **params: Any) -> Call[T]:
        """A look."""
        return Call("GET", self._root + path, read, self._view | params)

    def _look(self, path: str, fields: Mapping[str, Any] | Value, read: Read[T]) -> Call[T]:
        """A look whose question is too long for an address."""
        return Call("POST", self._root + path, read, self._view, body(fields))

    def _write(
        self,
        path: str,
        fields: Mapping[str, Any] | Value,
        read: Read[T],
        *,
        answered: bool = True,
        method: str = "POST",
    ) -> Call[T]:
        """A change, which is done once however often it is sent; ``answered``: with a body."""
        call = Call(method, self._root + path, read, self._view, body(fields))
        return _but(call, repeat=Repeat.KEYED, accepts=call.accepts if answered else None)


def _but(call: Call[T], **changes: Any) -> Call[T]:
    from dataclasses import replace

    return replace(call, **changes)
