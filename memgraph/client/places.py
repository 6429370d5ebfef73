"""From an orchestrator's handle to the calls of its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from pydantic_core import PydanticSerializationError, to_jsonable_python

from memgraph.client.calls import Call, Read, Repeat, body, nothing, orchestrator_path
from memgraph.client.words import Speaker
from memgraph.clock import iso, parse_time
from memgraph.errors import InvalidInput
from memgraph.model.access import Narrowing
from memgraph.model.values import Value

T = TypeVar("T")

Time = str | int | datetime


class Place(Speaker):
    """The target of a handle's methods: an orchestrator and a narrowing."""

    name: str
    narrowing: Narrowing

    def _set_place(self, name: str, narrowing: Narrowing) -> None:
        self.name = name
        self.narrowing = narrowing
        self._root = orchestrator_path(name)
        self._view: dict[str, Any] = {
            "project": _named(narrowing.project_ids),
            "session": _named(narrowing.session_ids),
            "agent": narrowing.agent_id,
            "clearance": narrowing.clearance,
        }

    def _get(self, path: str, read: Read[T], **params: Any) -> Call[T]:
        """Return a read."""
        return Call("GET", self._root + path, read, self._view | params)

    def _look(self, path: str, fields: Mapping[str, Any] | Value, read: Read[T]) -> Call[T]:
        """Return a read whose parameters are too long for an address."""
        return Call("POST", self._root + path, read, self._view, body(fields))

    def _write(self, path: str, fields: Mapping[str, Any] | Value, read: Read[T]) -> Call[T]:
        """Return a change, which is done once however often it is sent."""
        return replace(self._look(path, fields, read), repeat=Repeat.KEYED)

    def _done(self, path: str, fields: Mapping[str, Any]) -> Call[None]:
        """Return a change with an empty answer."""
        return replace(self._write(path, fields, nothing), accepts=None)


def _named(names: Sequence[str] | None) -> Sequence[str] | None:
    """Return names as a query has them. An empty list is an empty name: omitted, it would mean
    all.
    """
    return ("",) if names is not None and not names else names


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as plain JSON: enums, times and values as they are sent; None is left out.

    Raises:
        InvalidInput: one of them cannot be sent.
    """
    given = {name: each for name, each in fields.items() if each is not None}
    try:
        found: dict[str, Any] = to_jsonable_python(given)
    except (PydanticSerializationError, ValueError, RecursionError):
        raise InvalidInput("a field holds what is not plain JSON") from None
    return found


def moment(time: Time | None) -> str | None:
    """Return a time as it is sent. Raises InvalidInput."""
    return None if time is None else iso(parse_time(time))
