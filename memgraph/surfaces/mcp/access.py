"""Give MCP messages access to the handle of an orchestrator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from memgraph.errors import InvalidInput, MemgraphError
from memgraph.model.access import Permission
from memgraph.model.enums import Scope, ToolChoice
from memgraph.service.sanitizer import sanitized_error

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

Where = tuple[Scope | None, str | None]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class HandleAccess:
    """Runs functions on the handle of one orchestrator.

    Attributes:
        enter: returns the handle for a permission; may raise MemgraphError.
        root: its path is removed from error messages.
        permissions: those of the client.
        scope: the scope in which new facts are stored; None: the only visible one, else global.
        tools: the tools that are offered.
        refused: called with each error; logs a refusal.
    """

    enter: Callable[[Permission], Orchestrator]
    root: Path
    permissions: frozenset[Permission] = frozenset(Permission)
    scope: Scope | None = None
    tools: ToolChoice = ToolChoice.DEFAULT
    refused: Callable[[MemgraphError], None] = lambda _error: None

    def ask(self, permission: Permission, work: Callable[[Orchestrator], Result]) -> Result:
        """Run ``work`` on the handle and return its result. Blocks on disk access.

        Raises:
            MemgraphError: an error of ``work`` or ``enter``, sanitised for output.
        """
        try:
            return work(self.enter(permission))
        except MemgraphError as error:
            self.refused(error)
            raise sanitized_error(error, self.root) from error


def place(handle: Orchestrator, scope: Scope | None) -> Where:
    """Return the scope and scope id of a new fact, for ``remember_fact``.

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
