"""Permissions and views of a principal. Pure: the time is passed in."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from memgraph.clock import MAX_MS, MS_PER_DAY, parse_time
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.access import ANY, Narrowing, Permission, Principal
from memgraph.model.enums import Scope
from memgraph.model.values import Memory
from memgraph.paths import check_orchestrator_name
from memgraph.rules.scope import Viewer, narrow

_DURATION: Final = re.compile(r"([0-9]{1,9})([dhm])")
_UNITS_MS: Final = {"d": MS_PER_DAY, "h": 3_600_000, "m": 60_000}


class Refusal(StrEnum):
    """The reason for a refusal, for the log: stable, and never shown to the caller."""

    EXPIRED = "expired"
    ORCHESTRATOR = "orchestrator"
    PERMISSION = "permission"


def refusal(
    principal: Principal, orchestrator: str, permission: Permission, *, now_ms: int
) -> Refusal | None:
    """Return why a principal lacks a permission in an orchestrator; None if it has it."""
    if principal.expires_at is not None and now_ms >= principal.expires_at:
        return Refusal.EXPIRED
    if not grants(principal.orchestrators, orchestrator):
        return Refusal.ORCHESTRATOR
    return None if permission in principal.permissions else Refusal.PERMISSION


def check_grants(principal: Principal, *, now_ms: int) -> None:
    """Check that the grants of a new key are usable and unambiguous.

    Raises:
        InvalidInput: no orchestrator or no permission, an invalid orchestrator name, ``*``
            together with names, a repeated name, or an expiry in the past; ``details["field"]``
            names the field.
    """
    for field in ("orchestrators", "project_ids", "session_ids"):
        names: tuple[str, ...] = getattr(principal, field)
        if ANY in names and len(names) > 1:
            raise InvalidInput(
                f"{field}: {ANY} must be the only entry: it means all of them", field=field
            )
        if len(set(names)) < len(names):
            raise InvalidInput(f"{field}: a name is repeated", field=field)
    if not principal.orchestrators:
        raise InvalidInput("orchestrators: a key needs at least one", field="orchestrators")
    for name in principal.orchestrators:
        if name != ANY:
            check_orchestrator_name(name)
    if not principal.permissions:
        raise InvalidInput("permissions: a key needs at least one", field="permissions")
    if principal.expires_at is not None and principal.expires_at <= now_ms:
        raise InvalidInput("expires_at: the time is in the past", field="expires_at")


def span_ms(text: str) -> int:
    """Return a duration such as ``90d``, ``12h`` or ``30m`` in milliseconds.

    Raises:
        InvalidInput: it is not a whole number of days, hours or minutes.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InvalidInput("a duration is a number followed by d, h or m, such as 90d")
    return int(match[1]) * _UNITS_MS[match[2]]


def moment_ms(text: str, *, now_ms: int) -> int:
    """Parse a duration from now, or an ISO 8601 time; return it in milliseconds.

    Raises:
        InvalidInput: it is neither, or it is after the year 9999.
    """
    if _DURATION.fullmatch(text) is None:
        try:
            return parse_time(text)
        except InvalidInput as error:
            raise InvalidInput(f"{error.message}; or a duration such as 90d, 12h, 30m") from error
    moment = now_ms + span_ms(text)
    if moment > MAX_MS:
        raise InvalidInput("a time must be between the years 0001 and 9999")
    return moment


def grants(granted: tuple[str, ...], name: str) -> bool:
    """Return True if a name is granted."""
    return ANY in granted or name in granted


def sees_everything(principal: Principal) -> bool:
    """Return True if nothing in an orchestrator is hidden from it, so that it may export all."""
    return (
        principal.clearance.level
        == max(sensitivity.level for sensitivity in type(principal.clearance))
        and ANY in principal.project_ids
        and ANY in principal.session_ids
        and principal.agent_id is None
    )


def sees_whole(principal: Principal, viewer: Viewer) -> bool:
    """Return True if nothing is hidden from a principal and the request narrows nothing."""
    narrowed = viewer.clearance is not principal.clearance or viewer.agent_id is not None
    return sees_everything(principal) and not narrowed


def viewer_of(principal: Principal, narrowing: Narrowing) -> Viewer:
    """Return what a request of a principal may see, and the only scopes in which it may write.

    Raises:
        AccessDenied: it asks for more than is granted; ``details["field"]`` names the field.
    """
    projects = _named("project_ids", narrowing.project_ids)
    sessions = _named("session_ids", narrowing.session_ids)
    granted = Viewer(
        clearance=principal.clearance,
        project_ids=_ids(principal.project_ids, projects),
        session_ids=_ids(principal.session_ids, sessions),
        agent_id=principal.agent_id,
        confined=True,
        sees_use=sees_everything(principal),
    )
    return narrow(
        granted,
        clearance=narrowing.clearance,
        project_ids=projects,
        session_ids=sessions,
        agent_id=narrowing.agent_id,
    )


def open_scopes(principal: Principal, narrowing: Narrowing) -> frozenset[Scope]:
    """Return the scopes of which a request may name any id: all are granted, and it lists none."""
    scopes = {
        Scope.PROJECT: (principal.project_ids, narrowing.project_ids),
        Scope.SESSION: (principal.session_ids, narrowing.session_ids),
    }
    return frozenset(
        scope
        for scope, (granted, requested) in scopes.items()
        if ANY in granted and requested is None
    )


def _ids(granted: tuple[str, ...], requested: tuple[str, ...] | None) -> frozenset[str]:
    # If all are granted, a request lists the ids that it needs.
    return frozenset(granted) if ANY not in granted else frozenset(requested or ())


def _named(field: str, requested: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if requested is not None and ANY in requested:
        error = AccessDenied(
            "a request must list its projects and sessions one by one", field=field
        )
        error.asked = ANY
        raise error
    return requested


# The question to an operator before a memory becomes global.


ASKED_CHARS: Final = 500


def question_about(memory: Memory) -> str:
    """Return the question about a promotion; the text of the memory is cut to `ASKED_CHARS`."""
    text = memory.content[:ASKED_CHARS] + ("…" if len(memory.content) > ASKED_CHARS else "")
    return (
        f"Promote to global {memory.type.value.lower()}: {text!r}"
        f" (from project {memory.scope_id!r})?"
    )
