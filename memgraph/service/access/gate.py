"""The gate: authenticates a request and opens an orchestrator's handle for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memgraph.errors import AccessDenied, InvalidInput, MemgraphError, NotFound, OrchestratorMissing
from memgraph.model.access import ANY, Narrowing, Permission, Principal
from memgraph.model.enums import Sensitivity
from memgraph.operations.orchestrator import Orchestrator
from memgraph.rules.access import Refusal, grants, open_scopes, refusal, sees_whole, viewer_of
from memgraph.service.access.keys import KeyStore, nobody
from memgraph.service.denials import record_denial
from memgraph.service.memory_service import MemoryService

KEYLESS: Final = Principal(
    key_id=None,
    name="local",
    orchestrators=(ANY,),
    permissions=frozenset(Permission),
    clearance=Sensitivity.RESTRICTED,
    project_ids=(ANY,),
    session_ids=(ANY,),
)
"""The principal of a request to a server that requires no key."""


class Gate:
    """Authenticates requests and opens handles that see what the principal was granted.

    Args:
        keyless: accept requests without a key as ``KEYLESS``; for a loopback address only.
    """

    def __init__(self, service: MemoryService, keys: KeyStore, *, keyless: bool = False) -> None:
        self.service = service
        self.keys = keys
        self.keyless = keyless

    def authenticate(self, secret: str | None) -> Principal:
        """Return the principal of a secret. Raises Unauthenticated, InvalidConfig (see
        ``KeyStore.find``).
        """
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
        """Return the handle for one request; refusals are logged before they are raised.

        Raises:
            OrchestratorMissing: there is no orchestrator of this name, or the principal may not use
                it: both get the same answer.
            AccessDenied: the principal lacks the permission, or asks for more than its grants.
            Unauthenticated: the key has expired.
        """
        refused = refusal(principal, name, permission, now_ms=self.service.clock.now_ms())
        if refused is Refusal.EXPIRED:
            raise nobody()
        try:
            handle = self.service.orchestrator(name, actor=principal.actor)
        except (InvalidInput, OrchestratorMissing, OSError):
            raise _missing() from None
        if refused is not None:
            raise self._refused(principal, handle.name, refused, permission)
        try:
            viewer = viewer_of(principal, narrowing or Narrowing())
        except AccessDenied as error:
            self._record(principal, handle.name, error)
            raise
        return Orchestrator(
            self.service,
            handle.name,
            viewer=viewer,
            actor=principal.actor,
            permissions=principal.permissions,
            whole=sees_whole(principal, viewer),
            opens=open_scopes(principal, narrowing or Narrowing()),
        )

    def miss(self, principal: Principal, orchestrator: str, *errors: MemgraphError) -> None:
        """Log the errors of a handle that are refusals, before the response is sent.

        Call it for every error that ends a request through a handle of ``enter``, and for the
        errors of a batch that the surface turned into outcomes. Errors that are not refusals, or
        already logged, are ignored. It waits for the disk, so call it in a thread.

        Args:
            orchestrator: the name that was passed to ``enter``.
        """
        for error in errors:
            if isinstance(error, AccessDenied | NotFound) and not error.logged:
                self._record(principal, orchestrator, error)

    def create(self, principal: Principal, name: str) -> None:
        """Create an orchestrator for an admin who was granted its name.

        Raises:
            OrchestratorMissing: the name was not granted, whether the orchestrator exists or not.
            AccessDenied: the principal may not create orchestrators.
            OrchestratorExists, InvalidInput: as ``MemoryService.create``.
            Unauthenticated: as ``enter``.
        """
        now_ms = self.service.clock.now_ms()
        refused = refusal(principal, name, Permission.ADMIN, now_ms=now_ms)
        if refused is Refusal.EXPIRED:
            raise nobody()
        if refused is None:
            self.service.create(name)
            return
        exists = name in self.service.orchestrators()
        raise self._refused(principal, name, refused, Permission.ADMIN, exists=exists)

    def orchestrators(self, principal: Principal) -> Sequence[str]:
        """Return the names of the existing orchestrators that the principal may use, sorted."""
        return [
            name for name in self.service.orchestrators() if grants(principal.orchestrators, name)
        ]

    def _refused(
        self,
        principal: Principal,
        name: str,
        reason: Refusal,
        permission: Permission,
        *,
        exists: bool = True,
    ) -> MemgraphError:
        """Return the error of a refusal, logged if the orchestrator exists."""
        error: MemgraphError
        if reason is Refusal.ORCHESTRATOR:
            error, field = _missing(), "orchestrator"
        else:
            error = AccessDenied(f"this takes the permission {permission}", permission=permission)
            field = f"permission.{permission}"
        if exists:
            self._record(principal, name, error, field=field)
        return error

    def _record(
        self, principal: Principal, name: str, error: MemgraphError, field: str | None = None
    ) -> None:
        record_denial(self.service, name, error, actor=principal.actor, field=field)


def _missing() -> OrchestratorMissing:
    return OrchestratorMissing("no such orchestrator, or it is not yours")
