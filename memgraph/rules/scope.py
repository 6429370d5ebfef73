"""Visibility: who may see which memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.enums import Scope, Sensitivity
from memgraph.model.values import one_of

_ALL_SCOPES = frozenset(Scope)
_T = TypeVar("_T")


class VisibilityReason(StrEnum):
    """The reason why a memory is or is not visible; stable, for logs and receipts."""

    ALLOWED = "allowed"
    SENSITIVITY_UNKNOWN = "sensitivity_unknown"
    SENSITIVITY_ABOVE_CLEARANCE = "sensitivity_above_clearance"
    SCOPE_UNKNOWN = "scope_unknown"
    SCOPE_NOT_REQUESTED = "scope_not_requested"
    SCOPE_ID_MISSING = "scope_id_missing"
    SCOPE_ID_NOT_GRANTED = "scope_id_not_granted"
    OTHER_AGENT = "other_agent"

    @property
    def allowed(self) -> bool:
        """True if the memory is visible."""
        return self is VisibilityReason.ALLOWED


@dataclass(frozen=True, slots=True)
class Viewer:
    """A reader and its grants.

    Attributes:
        clearance: the highest visible sensitivity.
        project_ids: ``scope_id`` values of the project scopes open to the reader.
        session_ids: ``scope_id`` values of the session scopes open to the reader.
        scopes: narrows to these scopes; all three by default.
        agent_id: narrows to this agent's memories and those of no agent; None: every agent's.
        shared: True if a viewer with an ``agent_id`` also sees the memories of no agent.
        confined: True if it may only write memories that it could see; otherwise the host decides
            where it writes.
        sees_use: True if it may see how often and when memories were used by anyone, which may
            reveal the activity of readers who see more.

    Ids and scopes may be any collection except a string, which would grant its letters.

    Raises:
        InvalidInput: a string instead of a collection; an invalid id, scope or sensitivity; an
            empty id, which could match a memory without one; not ``shared`` without an agent.
    """

    clearance: Sensitivity = Sensitivity.INTERNAL
    project_ids: frozenset[str] = frozenset()
    session_ids: frozenset[str] = frozenset()
    scopes: frozenset[Scope] = field(default=_ALL_SCOPES)
    agent_id: str | None = None
    shared: bool = True
    confined: bool = False
    sees_use: bool = True

    def __post_init__(self) -> None:
        put = object.__setattr__  # because viewers are frozen
        put(self, "clearance", one_of(Sensitivity, self.clearance, "clearance"))
        put(self, "project_ids", _ids(self.project_ids, "project_ids"))
        put(self, "session_ids", _ids(self.session_ids, "session_ids"))
        if self.scopes is not _ALL_SCOPES:
            scopes = _collection(self.scopes, "scopes")
            put(self, "scopes", frozenset(one_of(Scope, scope, "scopes") for scope in scopes))
        if self.agent_id is not None:
            _ids((self.agent_id,), "agent_id")
        if not self.shared and self.agent_id is None:
            raise InvalidInput("a viewer limited to one agent's memories must name the agent")

    def scope_ids(self, scope: Scope) -> frozenset[str]:
        """Return the ids granted for a scope; empty for global, which needs none."""
        if scope is Scope.PROJECT:
            return self.project_ids
        return self.session_ids if scope is Scope.SESSION else frozenset()


def _collection(value: object, name: str) -> Iterable[object]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InvalidInput(f"a viewer's {name} must be a set like frozenset({{...}})", field=name)
    return value


def _ids(value: object, name: str) -> frozenset[str]:
    ids: set[str] = set()
    for item in _collection(value, name):
        if not isinstance(item, str) or not item:
            raise InvalidInput(f"an id in a viewer's {name} must be non-empty text", field=name)
        ids.add(item)
    return frozenset(ids)


DEFAULT_VIEWER = Viewer()


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """The scope of a memory as stored: plain strings, so that an unknown value can be denied."""

    scope: str | None
    scope_id: str | None
    sensitivity: str | None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class ScopePredicate:
    """The rule as data. A row is visible if all three conditions are met:

    - its sensitivity is one of ``sensitivities``;
    - ``grants`` contains (its scope, its scope_id), or (global, None) for a global row;
    - ``agent_id`` is None, or equals the row's agent_id, or that is NULL and ``shared`` is True.

    Both sequences are sorted; if one is empty no row is visible.
    """

    sensitivities: tuple[Sensitivity, ...]
    grants: tuple[tuple[Scope, str | None], ...]
    agent_id: str | None
    shared: bool = True


def visible(viewer: Viewer, facts: ScopeFacts) -> VisibilityReason:
    """Return why a viewer may or may not see a memory; unknown values are denied."""
    if facts.sensitivity not in set(Sensitivity):
        return VisibilityReason.SENSITIVITY_UNKNOWN
    if Sensitivity(facts.sensitivity).level > viewer.clearance.level:
        return VisibilityReason.SENSITIVITY_ABOVE_CLEARANCE
    if facts.scope not in _ALL_SCOPES:
        return VisibilityReason.SCOPE_UNKNOWN
    scope = Scope(facts.scope)
    if scope not in viewer.scopes:
        return VisibilityReason.SCOPE_NOT_REQUESTED
    # A global memory needs no id; one that is set by mistake is ignored.
    if scope is not Scope.GLOBAL and not facts.scope_id:
        return VisibilityReason.SCOPE_ID_MISSING
    if scope is not Scope.GLOBAL and facts.scope_id not in viewer.scope_ids(scope):
        return VisibilityReason.SCOPE_ID_NOT_GRANTED
    is_shared = facts.agent_id is None and viewer.shared
    if viewer.agent_id not in (None, facts.agent_id) and not is_shared:
        return VisibilityReason.OTHER_AGENT
    return VisibilityReason.ALLOWED


def writable(viewer: Viewer, facts: ScopeFacts) -> VisibilityReason:
    """Return why a viewer may or may not store a memory: a confined one must be able to see it."""
    return visible(viewer, facts) if viewer.confined else VisibilityReason.ALLOWED


def predicate(viewer: Viewer) -> ScopePredicate:
    """Return the rule of ``visible`` as data, for a WHERE clause."""
    # Sorted, so that equal viewers give equal statements.
    grants: list[tuple[Scope, str | None]] = []
    for scope in Scope:
        if scope not in viewer.scopes:
            continue
        if scope is Scope.GLOBAL:
            grants.append((scope, None))
        else:
            grants.extend((scope, scope_id) for scope_id in sorted(viewer.scope_ids(scope)))
    allowed = tuple(
        scope_id for scope_id in Sensitivity if scope_id.level <= viewer.clearance.level
    )
    return ScopePredicate(allowed, tuple(grants), viewer.agent_id, viewer.shared)


def narrow(
    granted: Viewer,
    *,
    clearance: Sensitivity | None = None,
    project_ids: Iterable[str] | None = None,
    session_ids: Iterable[str] | None = None,
    scopes: Iterable[Scope] | None = None,
    agent_id: str | None = None,
) -> Viewer:
    """Return the viewer of a request: the requested values, which must be within the grant.

    None keeps the granted value.

    Raises:
        AccessDenied: the request exceeds the grant; ``details["field"]`` names the field.
    """
    if clearance is not None and clearance.level > granted.clearance.level:
        raise _too_far("clearance", clearance)
    if agent_id is not None and granted.agent_id not in (None, agent_id):
        raise _too_far("agent_id", agent_id)
    return replace(
        granted,
        clearance=granted.clearance if clearance is None else clearance,
        project_ids=_subset("project_ids", project_ids, granted.project_ids),
        session_ids=_subset("session_ids", session_ids, granted.session_ids),
        scopes=_subset("scopes", scopes, granted.scopes),
        agent_id=granted.agent_id if agent_id is None else agent_id,
    )


def _subset(name: str, requested: Iterable[_T] | None, granted: frozenset[_T]) -> frozenset[_T]:
    if requested is None:
        return granted
    values = tuple(requested)
    # Silently reducing the request would look like an empty memory.
    for value in values:
        if value not in granted:
            raise _too_far(name, str(value))
    return frozenset(values)


def _too_far(name: str, value: str) -> AccessDenied:
    error = AccessDenied(f"the request's {name} exceeds what is granted", field=name)
    error.asked = value
    return error


@lru_cache(maxsize=256)
def viewer_fields(viewer: Viewer) -> Mapping[str, Any]:
    """Return a viewer's grants as JSON values, without ``confined`` and ``sees_use``."""
    return {
        "clearance": viewer.clearance.value,
        "project_ids": sorted(viewer.project_ids),
        "session_ids": sorted(viewer.session_ids),
        "scopes": sorted(scope.value for scope in viewer.scopes),
        "agent_id": viewer.agent_id,
        "shared": viewer.shared,
    }


def viewer_of(fields: Mapping[str, Any]) -> Viewer:
    """Return the viewer with the fields that ``viewer_fields`` returned.

    Raises:
        KeyError, InvalidInput: the fields are not valid.
    """
    return Viewer(**{name: fields[name] for name in viewer_fields(DEFAULT_VIEWER)})


def covers(reader: Viewer, other: Viewer) -> bool:
    """Return True if a reader sees everything that another viewer sees."""
    open_ = {Scope.PROJECT: other.project_ids, Scope.SESSION: other.session_ids}
    return (
        other.clearance.level <= reader.clearance.level
        # A scope without ids has no visible memories.
        and all(
            scope in reader.scopes and open_.get(scope, frozenset()) <= reader.scope_ids(scope)
            for scope in other.scopes
            if open_.get(scope, True)
        )
        and (
            reader.agent_id is None
            or (reader.agent_id == other.agent_id and (reader.shared or not other.shared))
        )
    )


def granted(fields: Mapping[str, Any], reader: Viewer) -> dict[str, Any]:
    """Return a receipt's viewer or request with only those scope ids that a reader was granted."""
    open_ = _places(reader)
    return {
        name: [one for one in value if one in open_[name]] if name in open_ else value
        for name, value in fields.items()
    }


def asks_within(request: Mapping[str, Any], reader: Viewer) -> bool:
    """Return True if every scope id in a request is granted to the reader."""
    return all(open_.issuperset(request.get(name, ())) for name, open_ in _places(reader).items())


def _places(reader: Viewer) -> dict[str, frozenset[str]]:
    """Return the ids granted to a reader, by field of a ``Viewer`` or a ``RecallRequest``."""
    sessions = dict.fromkeys(("session_ids", "session_scope_ids"), reader.session_ids)
    return {"project_ids": reader.project_ids, **sessions}
