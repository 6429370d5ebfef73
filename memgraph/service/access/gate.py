"""The one way from a request on the network to an orchestrator's handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memgraph.errors import AccessDenied, InvalidInput, OrchestratorMissing, Unauthenticated
from memgraph.model.access import ANY, Narrowing, Permission, Principal
from memgraph.model.enums import Sensitivity
from memgraph.policy.access import Refusal, grants, refusal, viewer_of
from memgraph.service.access.keys import KeyStore
from memgraph.service.denials import tell_denial
from memgraph.service.memory_service import MemoryService
from memgraph.service.orchestrator import Orchestrator

KEYLESS: Final = Principal(
    key_id=None,
    name="local",
    orchestrators=(ANY,),
    permissions=frozenset(Permission),
    clearance=Sensitivity.RESTRICTED,
    project_ids=(ANY,),
    session_ids=(ANY,),
)
"""Who asks where no key is asked for."""


class Gate:
    """Knows who asks, and gives them a handle that sees what they were granted and no more.

    Args:
        keyless: requests without a key are ``KEYLESS``; for a loopback address only.
    """

    def __init__(self, service: MemoryService, keys: KeyStore, *, keyless: bool = False) -> None:
        self.service = service
        self.keys = keys
        self.keyless = keyless

    def authenticate(self, secret: str | None) -> Principal:
        """Who shows this secret. Raises Unauthenticated."""
        if secret is None and self.keyless:
            return KEYLESS
        return self.keys.find(secret)

    def enter(
        self,
        principal: Principal,
        name: str,
        permission: Permission,
        narrowing: Narrowing | None = None,
    ) -> Orchestrator:
        """The handle for one request; refusals are journalled before they are raised.

        Raises:
            OrchestratorMissing: there is none of this name, or it is not this principal's: the two
                answer alike.
            AccessDenied: it is, but not for this, or not so widely.
            Unauthenticated: the key has expired.
        """
        now = self.service.clock.now_ms()
        refused = refusal(principal, name, permission, now_ms=now)
        if refused is Refusal.EXPIRED:
            raise Unauthenticated("no valid key: send one as Authorization: Bearer <key>")
        try:
            handle = self.service.orchestrator(name, actor=principal.actor)
        except (InvalidInput, OrchestratorMissing):
            raise _missing() from None
        if refused is Refusal.ORCHESTRATOR:
            self._tell(principal, name, field="orchestrator")
            raise _missing()
        if refused is Refusal.PERMISSION:
            self._tell(principal, name, field=f"permission.{permission}")
            raise AccessDenied(f"this takes the permission {permission}", permission=permission)
        try:
            viewer = viewer_of(principal, narrowing or Narrowing())
        except AccessDenied as error:
            self._tell(principal, name, field=str(error.details["field"]))
            raise
        return self.service.orchestrator(handle.name, viewer=viewer, actor=principal.actor)

    def orchestrators(self, principal: Principal) -> Sequence[str]:
        """The names of those that there are and that the principal may ask for, sorted."""
        return [
            name for name in self.service.orchestrators() if grants(principal.orchestrators, name)
        ]

    def _tell(self, principal: Principal, name: str, *, field: str) -> None:
        with self.service.opened(name) as opened:
            tell_denial(opened, actor=principal.actor, field=field)


def _missing() -> OrchestratorMissing:
    return OrchestratorMissing("no such orchestrator, or it is not yours")
