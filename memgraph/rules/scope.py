"""Visibility: who may see which memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.enums import Scope, Sensitivity

_ALL_SCOPES = frozenset(Scope)
_T = TypeVar("_T")
_EnumT = TypeVar("_EnumT", bound=StrEnum)


class VisibilityReason(StrEnum):
    """Why a memory is or is not shown; stable, for logs and receipts."""

    ALLOWED = "allowed"
    SENSITIVITY_UNKNOWN = "sensitivity_unknown"
    SENSITIVITY_ABOVE_CLEARANCE = "sensitivity_above_clearance"
    SCOPE_UNKNOWN = "scope_unknown"
    SCOPE_NOT_REQUESTED = "scope_not_requested"
    SCOPE_ID_MISSING = "scope_id_missing"
    SCOPE_ID_NOT_GRANTED = "scope_id_not_granted"
    OTHER_AGENT = "other_agent"


@dataclass(frozen=True, slots=True)
class Viewer:
    """A reader and its grants.

    Attributes:
        clearance: the highest sensitivity shown.
        project_ids: ``scope_id`` values of the project scopes open to the reader.
        session_ids: ``scope_id`` values of the session scopes open to the reader.
        scopes: narrows to these scopes; all three by default.
        agent_id: narrows to this agent's memories and those of no agent; None: every agent's.
        shared: whether a viewer with an ``agent_id`` sees those of no agent too.
        confined: whether it may write only what it would see itself; else the host answers for
            where it writes.
        sees_use: whether it is told how often and when memories were used, by whomever; without it
            it could learn that a reader who sees more was at work.

    Any collection of ids or scopes will do but a text, which would grant its letters.

    Raises:
        InvalidInput: a text where a collection is meant, or what is no id, scope or sensitivity; an
            empty id, which could match a memory that lacks one; not ``shared``, and no agent.
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
        put = object.__setattr__  # the class's own refuses: viewers are frozen
        put(self, "clearance", _known(Sensitivity, self.clearance, "clearance"))
        put(self, "project_ids", _ids(self.project_ids, "project_ids"))
        put(self, "session_ids", _ids(self.session_ids, "session_ids"))
        if self.scopes is not _ALL_SCOPES:
            scopes = _collection(self.scopes, "scopes")
            put(self, "scopes", frozenset(_known(Scope, scope, "scopes") for scope in scopes))
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
        raise InvalidInput(f"a viewer's {name} is a set, such as frozenset({{...}})", field=name)
    return value


def _ids(value: object, name: str) -> frozenset[str]:
    ids: set[str] = set()
    for item in _collection(value, name):
        if not isinstance(item, str) or not item:
            raise InvalidInput(f"an id in a viewer's {name} must be non-empty text", field=name)
        ids.add(item)
    return frozenset(ids)


def _known(kind: type[_EnumT], value: object, name: str) -> _EnumT:
    if isinstance(value, str) and value in set(kind):
        return kind(value)
    raise InvalidInput(f"a viewer's {name}: one of {', '.join(kind)}", field=name)


DEFAULT_VIEWER = Viewer()


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """The scope of a memory as stored: plain strings, so that an unknown value can be denied."""

    scope: str | None
    scope_id: str | None
    sensitivity: str | None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    allowed: bool
    reason: VisibilityReason


@dataclass(frozen=True, slots=True)
class ScopePredicate:
    """The rule as data. A row is visible when all three hold:

    - its sensitivity is one of ``sensitivities``;
    - ``grants`` holds (its scope, its scope_id), or (global, None) for a global row;
    - ``agent_id`` is None, or the row's agent_id is equal to it, or NULL where ``shared``.

    Both sequences are sorted; an empty one shows nothing.
    """

    sensitivities: tuple[Sensitivity, ...]
    grants: tuple[tuple[Scope, str | None], ...]
    agent_id: str | None
    shared: bool = True


def visible(viewer: Viewer, facts: ScopeFacts) -> Verdict:
    """Decides one memory; what cannot be decided is denied."""
    reason = (
        _sensitivity_denial(viewer, facts.sensitivity)
        or _scope_denial(viewer, facts.scope, facts.scope_id)
        or _agent_denial(viewer, facts.agent_id)
        or VisibilityReason.ALLOWED
    )
    return Verdict(reason is VisibilityReason.ALLOWED, reason)


def writable(viewer: Viewer, facts: ScopeFacts) -> Verdict:
    """Decides whether a memory may be stored: of a confined viewer, one that it would see."""
    return visible(viewer, facts) if viewer.confined else Verdict(True, VisibilityReason.ALLOWED)


def predicate(viewer: Viewer) -> ScopePredicate:
    """Return the same rule for a WHERE clause."""
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
    """Return the viewer of one request: what is asked for, never more than what was granted.

    None keeps what was granted.

    Raises:
        AccessDenied: the request reaches further than the grant; ``details["field"]`` says where.
    """
    if clearance is not None and clearance.level > granted.clearance.level:
        raise _too_far("clearance")
    if agent_id is not None and granted.agent_id not in (None, agent_id):
        raise _too_far("agent_id")
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
    values = frozenset(requested)
    # Cutting the request down in silence would look like an empty memory.
    if not values <= granted:
        raise _too_far(name)
    return values


def _too_far(name: str) -> AccessDenied:
    return AccessDenied(f"the request's {name} reaches further than what is granted", field=name)


def _sensitivity_denial(viewer: Viewer, sensitivity: str | None) -> VisibilityReason | None:
    try:
        level = Sensitivity(sensitivity).level if sensitivity is not None else None
    except ValueError:
        level = None
    if level is None:
        return VisibilityReason.SENSITIVITY_UNKNOWN
    return VisibilityReason.SENSITIVITY_ABOVE_CLEARANCE if level > viewer.clearance.level else None


def _scope_denial(
    viewer: Viewer, scope: str | None, scope_id: str | None
) -> VisibilityReason | None:
    try:
        known_scope = Scope(scope) if scope is not None else None
    except ValueError:
        known_scope = None
    if known_scope is None:
        return VisibilityReason.SCOPE_UNKNOWN
    if known_scope not in viewer.scopes:
        return VisibilityReason.SCOPE_NOT_REQUESTED
    # Global needs no id, and one that stands there by mistake hides nothing.
    if known_scope is Scope.GLOBAL:
        return None
    if not scope_id:
        return VisibilityReason.SCOPE_ID_MISSING
    return (
        None if scope_id in viewer.scope_ids(known_scope) else VisibilityReason.SCOPE_ID_NOT_GRANTED
    )


def _agent_denial(viewer: Viewer, agent_id: str | None) -> VisibilityReason | None:
    if viewer.agent_id is None or agent_id == viewer.agent_id:
        return None
    return None if agent_id is None and viewer.shared else VisibilityReason.OTHER_AGENT


@lru_cache(maxsize=256)
def viewer_fields(viewer: Viewer) -> Mapping[str, Any]:
    """Return what a viewer sees, as JSON values; not whether it is confined or is told of use."""
    return {
        "clearance": viewer.clearance.value,
        "project_ids": sorted(viewer.project_ids),
        "session_ids": sorted(viewer.session_ids),
        "scopes": sorted(scope.value for scope in viewer.scopes),
        "agent_id": viewer.agent_id,
        "shared": viewer.shared,
    }


def viewer_of(fields: Mapping[str, Any]) -> Viewer:
    """Return the viewer that has these fields.

    Raises:
        KeyError, InvalidInput: they are not what ``viewer_fields`` gives.
    """
    return Viewer(
        clearance=Sensitivity(fields["clearance"]),
        project_ids=frozenset(fields["project_ids"]),
        session_ids=frozenset(fields["session_ids"]),
        scopes=frozenset(Scope(scope) for scope in fields["scopes"]),
        agent_id=fields["agent_id"],
        shared=fields["shared"],
    )


def covers(reader: Viewer, other: Viewer) -> bool:
    """Return True when a reader sees all that another viewer sees."""
    open_ = {Scope.PROJECT: other.project_ids, Scope.SESSION: other.session_ids}
    return (
        other.clearance.level <= reader.clearance.level
        # A scope without ids shows nothing.
        and all(
            scope in reader.scopes and open_.get(scope, frozenset()) <= reader.scope_ids(scope)
            for scope in other.scopes
            if open_.get(scope, True)
        )
        and _covers_agents(reader, other)
    )


def granted(fields: Mapping[str, Any], reader: Viewer) -> dict[str, Any]:
    """Return what a receipt may tell a reader of its viewer: ids that the reader was granted
    itself.
    """
    return {
        **fields,
        "project_ids": [
            scope_id for scope_id in fields.get("project_ids", ()) if scope_id in reader.project_ids
        ],
        "session_ids": [
            scope_id for scope_id in fields.get("session_ids", ()) if scope_id in reader.session_ids
        ],
    }


def asked_of(request: Mapping[str, Any], reader: Viewer) -> dict[str, Any]:
    """Return the part of a receipt's request that a reader may see: its granted places."""
    visible = dict(request)
    for name, open_ in _places(reader).items():
        if name in request:
            visible[name] = [scope_id for scope_id in request[name] if scope_id in open_]
    return visible


def asks_within(request: Mapping[str, Any], reader: Viewer) -> bool:
    """Return True when a reader was granted every place that a request names."""
    return all(open_.issuperset(request.get(name, ())) for name, open_ in _places(reader).items())


def _places(reader: Viewer) -> dict[str, frozenset[str]]:
    """Return what a reader was granted of what ``RecallRequest`` names."""
    return {"project_ids": reader.project_ids, "session_scope_ids": reader.session_ids}


def _covers_agents(reader: Viewer, other: Viewer) -> bool:
    if reader.agent_id is None:
        return True
    return reader.agent_id == other.agent_id and (reader.shared or not other.shared)
