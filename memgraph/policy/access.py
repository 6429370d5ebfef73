"""What a principal may do, and what it may see. Pure: the time is passed in."""

from __future__ import annotations

from enum import StrEnum

from memgraph.errors import AccessDenied
from memgraph.model.access import ANY, Narrowing, Permission, Principal
from memgraph.policy.scope import Viewer, narrow


class Refusal(StrEnum):
    """Why a principal may not; stable, for the journal. Who asks is never told."""

    EXPIRED = "expired"
    ORCHESTRATOR = "orchestrator"
    PERMISSION = "permission"


def refusal(
    principal: Principal, orchestrator: str, permission: Permission, *, now_ms: int
) -> Refusal | None:
    """Why this principal may not do this kind of thing in this orchestrator; None: it may."""
    if principal.expires_at is not None and now_ms >= principal.expires_at:
        return Refusal.EXPIRED
    if not grants(principal.orchestrators, orchestrator):
        return Refusal.ORCHESTRATOR
    return None if permission in principal.permissions else Refusal.PERMISSION


def grants(granted: tuple[str, ...], name: str) -> bool:
    """Whether a name is among what was granted."""
    return ANY in granted or name in granted


def sees_everything(principal: Principal) -> bool:
    """Whether nothing in an orchestrator is hidden from it, so that it may have a copy."""
    return (
        principal.clearance.level == max(each.level for each in type(principal.clearance))
        and ANY in principal.project_ids
        and ANY in principal.session_ids
        and principal.agent_id is None
    )


def viewer_of(principal: Principal, narrowing: Narrowing) -> Viewer:
    """What one request of a principal may see.

    Raises:
        AccessDenied: it asks for more than was granted; ``details["field"]`` says where.
    """
    granted = Viewer(
        clearance=principal.clearance,
        project_ids=_ids(principal.project_ids, narrowing.project_ids),
        session_ids=_ids(principal.session_ids, narrowing.session_ids),
        agent_id=principal.agent_id,
    )
    return narrow(
        granted,
        clearance=narrowing.clearance,
        project_ids=_named(narrowing.project_ids),
        session_ids=_named(narrowing.session_ids),
        agent_id=narrowing.agent_id,
    )


def _ids(granted: tuple[str, ...], asked: tuple[str, ...] | None) -> frozenset[str]:
    if ANY not in granted:
        return frozenset(granted)
    return frozenset(_named(asked) or ())


def _named(asked: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if asked is not None and ANY in asked:
        raise AccessDenied("a request names its projects and sessions one by one", field="scope_id")
    return asked
