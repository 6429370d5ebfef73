"""Give MCP messages access to the handle of an orchestrator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from memgraph.errors import InvalidInput, MemgraphError
from memgraph.model.access import Narrowing, Permission, Principal
from memgraph.model.enums import Scope, ToolChoice
from memgraph.service.sanitizer import sanitized_error

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.service.access.gate import Gate

Where = tuple[Scope | None, str | None]
Result = TypeVar("Result")


class HandleAccess(Protocol):
    """Runs functions on the handle of one orchestrator.

    Attributes:
        scope: the scope in which new facts are stored; None: the only visible one, else global.
        tools: the tools that are offered.
    """

    scope: Scope | None
    tools: ToolChoice

    @property
    def permissions(self) -> frozenset[Permission]:
        """The permissions of the client."""

    def ask(self, permission: Permission, work: Callable[[Orchestrator], Result]) -> Result:
        """Run ``work`` on the handle and return its result. Blocks on disk access.

        Raises:
            MemgraphError: an error of ``work`` or ``Gate.enter``, sanitised for output; refusals
                are logged.
        """


class DirectAccess:
    """Access for a caller that already has the handle, with all permissions."""

    permissions = frozenset(Permission)

    def __init__(
        self,
        handle: Orchestrator,
        root: Path,
        *,
        scope: Scope | None = None,
        tools: ToolChoice = ToolChoice.DEFAULT,
    ) -> None:
        self._handle = handle
        self._root = root
        self.scope = scope
        self.tools = tools

    def ask(self, _permission: Permission, work: Callable[[Orchestrator], Result]) -> Result:
        try:
            return work(self._handle)
        except MemgraphError as error:
            raise sanitized_error(error, self._root) from error


class KeyAccess:
    """Access of a principal to one orchestrator, for the duration of a request."""

    def __init__(
        self,
        gate: Gate,
        principal: Principal,
        orchestrator: str,
        narrowing: Narrowing,
        *,
        scope: Scope | None = None,
        tools: ToolChoice = ToolChoice.DEFAULT,
    ) -> None:
        self._gate = gate
        self.principal = principal
        self.orchestrator = orchestrator
        self._narrowing = narrowing
        self._handles: dict[Permission, Orchestrator] = {}
        self.scope = scope
        self.tools = tools

    @property
    def permissions(self) -> frozenset[Permission]:
        return self.principal.permissions

    def knock(self) -> None:
        """Check that the principal may open the orchestrator; raise what ``ask`` raises."""
        # A principal without any permission is refused the permission to read.
        permission = next(
            (item for item in Permission if item in self.permissions), Permission.READ
        )
        self.ask(permission, lambda _handle: None)

    def ask(self, permission: Permission, work: Callable[[Orchestrator], Result]) -> Result:
        try:
            return work(self._enter(permission))
        except MemgraphError as error:
            self._gate.miss(self.principal, self.orchestrator, error)
            raise sanitized_error(error, self._gate.service.root) from error

    def _enter(self, permission: Permission) -> Orchestrator:
        # A handle is opened once for each permission; ``knock`` may have opened it.
        if permission not in self._handles:
            self._handles[permission] = self._gate.enter(
                self.principal, self.orchestrator, permission, self._narrowing
            )
        return self._handles[permission]


def place(handle: Orchestrator, scope: Scope | None) -> Where:
    """Return the scope and scope id of a new fact, for ``agents.propose_fact``.

    Raises:
        InvalidInput: the handle can see no id, or more than one id, of this scope.
    """
    if scope is None or scope is Scope.GLOBAL:
        return scope, None
    visible = sorted(handle.viewer.scope_ids(scope))
    if len(visible) != 1:
        raise InvalidInput(
            f"to remember in scope {scope}, the request must name exactly one {scope}",
            field="scope",
        )
    return scope, visible[0]
