"""From a message of the protocol to the handle that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from memgraph.errors import InvalidInput
from memgraph.model.access import Narrowing, Permission, Principal
from memgraph.model.enums import Scope

if TYPE_CHECKING:
    from memgraph.service.access.gate import Gate
    from memgraph.service.orchestrator import Orchestrator

Where = tuple[Scope | None, str | None]


class Door(Protocol):
    """Gives out handles.

    Attributes:
        scope: where what an agent remembers is kept; None: in the one place that is open.
    """

    scope: Scope | None

    @property
    def permissions(self) -> frozenset[Permission]:
        """What may be asked for."""

    def enter(self, permission: Permission) -> Orchestrator:
        """The handle for one request. Raises what ``Gate.enter`` raises."""


class OpenDoor:
    """The door of somebody who has the handle already, and may do all that it can."""

    permissions = frozenset(Permission)

    def __init__(self, handle: Orchestrator, *, scope: Scope | None = None) -> None:
        self._handle = handle
        self.scope = scope

    def enter(self, permission: Permission) -> Orchestrator:  # noqa: ARG002  all may be done
        return self._handle


class KeyDoor:
    """The door of a principal to one orchestrator, for one request."""

    def __init__(
        self,
        gate: Gate,
        principal: Principal,
        orchestrator: str,
        narrowing: Narrowing,
        *,
        scope: Scope | None = None,
    ) -> None:
        self._gate = gate
        self._principal = principal
        self._orchestrator = orchestrator
        self._narrowing = narrowing
        self.scope = scope

    @property
    def permissions(self) -> frozenset[Permission]:
        return self._principal.permissions

    def knock(self) -> None:
        """See whether the principal has any business here; raises what ``enter`` raises."""
        # With none at all, reading is what is refused.
        self.enter(next((each for each in Permission if each in self.permissions), Permission.READ))

    def enter(self, permission: Permission) -> Orchestrator:
        return self._gate.enter(self._principal, self._orchestrator, permission, self._narrowing)


def place(handle: Orchestrator, scope: Scope | None) -> Where:
    """Where a fact goes, as ``propose_fact`` takes it.

    Raises:
        InvalidInput: the handle sees none, or several, of this scope.
    """
    if scope is None or scope is Scope.GLOBAL:
        return scope, None
    seen = sorted(handle.viewer.scope_ids(scope))
    if len(seen) != 1:
        raise InvalidInput(f"to remember in a {scope} the request names just one", field="scope")
    return scope, seen[0]
