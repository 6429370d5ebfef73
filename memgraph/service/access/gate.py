"""The one way from a request on the network to an orchestrator's handle."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from memgraph.errors import (
    AccessDenied,
    InvalidInput,
    MemgraphError,
    NotFound,
    OrchestratorMissing,
)
from memgraph.model.access import ANY, Narrowing, Permission, Principal
from memgraph.model.enums import Sensitivity
from memgraph.policy.access import Refusal, grants, refusal, viewer_of
from memgraph.service.access.keys import KeyStore, nobody
from memgraph.service.access.refusals import Refusals
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

FLOOR_S: Final = 0.25
"""An orchestrator that is missing or another's is answered at the next multiple of this."""


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
        """Who shows this secret. Raises Unauthenticated, InvalidConfig (see ``KeyStore.find``)."""
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
                answer alike, see ``pause_s``.
            AccessDenied: it is, but not for this, or not so widely.
            RateLimited: it was refused too often within a minute; nothing was looked at.
            Unauthenticated: the key has expired.
        """
        now = self.service.clock.now_ms()
        self.refusals.check(principal.actor, now)
        refused = refusal(principal, name, permission, now_ms=now)
        if refused is Refusal.EXPIRED:
            raise nobody()
        try:
            handle = self.service.orchestrator(name, actor=principal.actor)
        except (InvalidInput, OrchestratorMissing, OSError):
            self.refusals.add(principal.actor, now)
            raise _missing() from None
        if refused is Refusal.ORCHESTRATOR:
            self._tell(principal, handle.name, _missing(), field="orchestrator")
            raise _missing()
        if refused is Refusal.PERMISSION:
            denied = AccessDenied(f"this takes the permission {permission}", permission=permission)
            self._tell(principal, handle.name, denied, field=f"permission.{permission}")
            raise denied
        try:
            viewer = viewer_of(principal, narrowing or Narrowing())
        except AccessDenied as error:
            self._tell(principal, handle.name, error, field=str(error.details["field"]))
            raise
        return self.service.orchestrator(handle.name, viewer=viewer, actor=principal.actor)

    def miss(self, principal: Principal, orchestrator: str, error: MemgraphError) -> None:
        """Journal what a handle refused or did not find, before the answer goes out.

        For every error that a request through a handle of ``enter`` ends with, and for each item of
        a batch that was refused. One that is no refusal, or that is in the journal already, is left
        alone. Never raises for a journal that cannot be written: the answer is no all the same. It
        waits for the disk: call it in a thread.

        Args:
            orchestrator: the name that was entered.
        """
        if error.journalled or not isinstance(error, AccessDenied | NotFound):
            return
        field = "id" if isinstance(error, NotFound) else str(error.details.get("field", "write"))
        self._tell(principal, orchestrator, error, field=field)

    def pause_s(self, error: MemgraphError, took_s: float) -> float:
        """How long a surface waits, without holding a thread, before it answers with an error.

        A missing orchestrator is quick to tell, another's takes a journal entry in a database that
        is opened for it, perhaps: both are answered at the same time, a multiple of ``FLOOR_S``.

        Args:
            took_s: seconds since the request was there.

        Returns:
            Seconds, 0 to ``FLOOR_S``; 0 for any other error.
        """
        if not isinstance(error, OrchestratorMissing):
            return 0.0
        return FLOOR_S - took_s % FLOOR_S

    def orchestrators(self, principal: Principal) -> Sequence[str]:
        """The names of those that there are and that the principal may ask for, sorted."""
        return [
            name for name in self.service.orchestrators() if grants(principal.orchestrators, name)
        ]

    @cached_property
    def refusals(self) -> Refusals:
        """How often each key was refused."""
        return Refusals(self.service.settings().memory.server.refusals_per_minute)

    def _tell(self, principal: Principal, name: str, error: MemgraphError, *, field: str) -> None:
        """Count a refusal and journal it, as far as its orchestrator can be written."""
        error.journalled = True
        self.refusals.add(principal.actor, self.service.clock.now_ms())
        asked = error.details.get("memory_id")
        try:
            with self.service.opened(name) as opened:
                tell_denial(
                    opened,
                    actor=principal.actor,
                    field=field,
                    asked=asked if isinstance(asked, str) else None,
                    code=error.code,
                    at_once=True,
                )
        except (MemgraphError, OSError):
            # Closed to everybody: there is no journal. What opens it next tells the operator why.
            return


def _missing() -> OrchestratorMissing:
    return OrchestratorMissing("no such orchestrator, or it is not yours")
