"""From a message of the protocol to the handle that answers it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from memgraph.errors import InvalidInput, MemgraphError
from memgraph.model.access import Narrowing, Permission, Principal
from memgraph.model.enums import Scope
from memgraph.service.sanitizer import sanitized_error

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.service.access.gate import Gate

Where = tuple[Scope | None, str | None]
Result = TypeVar("Result")


class HandleAccess(Protocol):
    """Runs work with the handle of one orchestrator.

    Attributes:
        scope: where an agent's new memories are kept; None: in the only visible place.
    """

    scope: Scope | None

    @property
    def permissions(self) -> frozenset[Permission]:
        """The permissions of the client."""

    def ask(self, permission: Permission, work: Callable[[Orchestrator], Result]) -> Result:
        """Return the result of ``work``; waits for the disk.

        Raises:
            MemgraphError: what ``work`` or ``Gate.enter`` raises, sanitised for output; refusals
                are journalled.
        """


class DirectAccess:
    """The door for a caller who has the handle already, with all its permissions."""

    permissions = frozenset(Permission)

    def __init__(self, handle: Orchestrator, root: Path, *, scope: Scope | None = None) -> None:
        self._handle = handle
        self._root = root
        self.scope = scope

    def ask(self, _permission: Permission, work: Callable[[Orchestrator], Result]) -> Result:
        try:
            return work(self._handle)
        except MemgraphError as error:
            raise sanitized_error(error, self._root) from error


class KeyAccess:
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
        self.principal = principal
        self.orchestrator = orchestrator
        self._narrowing = narrowing
        self._handles: dict[Permission, Orchestrator] = {}
        self.scope = scope

    @property
    def permissions(self) -> frozenset[Permission]:
        return self.principal.permissions

    def knock(self) -> None:
        """Check that the principal may enter; raises what ``ask`` raises."""
        # With none at all, reading is what is refused.
        any_one = next((item for item in Permission if item in self.permissions), Permission.READ)
        self.ask(any_one, lambda _handle: None)

    def ask(self, permission: Permission, work: Callable[[Orchestrator], Result]) -> Result:
        try:
            return work(self._enter(permission))
        except MemgraphError as error:
            self._gate.miss(self.principal, self.orchestrator, error)
            raise sanitized_error(error, self._gate.service.root) from error

    def _enter(self, permission: Permission) -> Orchestrator:
        # One that knocked with this permission has entered.
        if permission not in self._handles:
            self._handles[permission] = self._gate.enter(
                self.principal, self.orchestrator, permission, self._narrowing
            )
        return self._handles[permission]


def place(handle: Orchestrator, scope: Scope | None) -> Where:
    """Return where a fact is stored, as ``agents.propose_fact`` takes it.

    Raises:
        InvalidInput: the handle sees none, or several, of this scope.
    """
    if scope is None or scope is Scope.GLOBAL:
        return scope, None
    visible = sorted(handle.viewer.scope_ids(scope))
    if len(visible) != 1:
        raise InvalidInput(
            f"to remember in a {scope} the request must name exactly one", field="scope"
        )
    return scope, visible[0]
