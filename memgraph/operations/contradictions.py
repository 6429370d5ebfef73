"""Contradictions: list them, and decide one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.model.access import Permission
from memgraph.model.graph import Case, ContradictionPage
from memgraph.model.operation import After, AsOf, EdgeId, F, Limit, ReasonBody, operation
from memgraph.model.values import Name, Reason
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.store.snapshot import NewEntry


class Contradictions(Handle[F], group="contradictions"):
    """Contradictions between memories: ``orc.contradictions``."""

    @operation(
        Permission.READ,
        "GET",
        "/contradictions",
        tag="graph",
        id="list_contradictions",
        command="contradictions",
    )
    def list(
        self,
        *,
        resolved: Annotated[bool, Field(description="Those that were resolved.")] = False,
        limit: Limit = 50,
        after: After = None,
        as_of: AsOf = None,
        text: Annotated[
            Name | None,
            Field(description="One side contains each of these words; 200 characters."),
        ] = None,
        memory_id: Annotated[Name | None, Field(description="One side is this memory.")] = None,
        dismissed: Annotated[
            bool | None, Field(description="Of the resolved: those that were dismissed, or not.")
        ] = None,
        oldest_first: Annotated[bool, Field(description="The other way round.")] = False,
    ) -> ContradictionPage:
        """Return open or resolved contradictions, newest first, with both sides.

        Only those of which both sides are visible.

        Args:
            limit: 1..500.
            after: ``next_after`` of the page before.
            text: only those with each of its words on one side.
            memory_id: only those with this memory on one side.
            dismissed: of the resolved ones, only those that were dismissed, or were not.
        """
        from memgraph.graph.cases import list_contradictions

        memory_id = None if memory_id is None else self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return list_contradictions(
                opened.database,
                now_ms=opened.clock.now_ms(),
                state="resolved" if resolved else "open",
                viewer=self.viewer,
                limit=limit,
                after=after,
                as_of=None if as_of is None else parse_time(as_of),
                text=text,
                memory_id=memory_id,
                dismissed=dismissed,
                oldest_first=oldest_first,
            )

    @operation(Permission.READ, "GET", "/contradictions/{edge_id}", tag="cases", id="case")
    def get(
        self,
        edge_id: EdgeId,
        *,
        as_of: AsOf = None,
        names: Annotated[bool, Field(description="Name what each side reached.")] = True,
    ) -> Case:
        """Return a contradiction with both sides, the evidence for each, and possible decisions.

        Which receipts, runs and conversations a side reached is named to a key that may audit;
        others get their number.

        Args:
            as_of: the case as it was then; None: now.
            names: False: only their number.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
        """
        from memgraph.graph.cases import read_case
        from memgraph.rules.trust import TrustRules

        with self._service.opened(self.name) as opened:
            memory = opened.settings.memory
            return read_case(
                opened.database,
                edge_id,
                now_ms=opened.clock.now_ms(),
                exponent=memory.decay.exponent,
                trust=TrustRules.of(memory.trust),
                viewer=self.viewer,
                as_of=None if as_of is None else parse_time(as_of),
                names=names and Permission.AUDIT in self.permissions,
            )

    @operation(
        Permission.WRITE,
        "POST",
        "/contradictions/{edge_id}/resolve",
        tag="graph",
        id="resolve_contradiction",
        body="Resolution",
    )
    def resolve(self, edge_id: EdgeId, *, winner: Name, reason: Reason) -> None:
        """Decide an open contradiction; the loser is superseded, its confidence falls to 0.3.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
            Conflict: it is resolved, or the winner is no side of it.
        """
        from memgraph.operations.write import changes

        self._decide(edge_id, reason, partial(changes.resolve, winner_id=self._whole_id(winner)))

    @operation(
        Permission.WRITE,
        "POST",
        "/contradictions/{edge_id}/dismiss",
        tag="cases",
        id="dismiss_contradiction",
        body=ReasonBody,
    )
    def dismiss(self, edge_id: EdgeId, *, reason: Reason) -> None:
        """Dismiss an open contradiction: both sides hold, and it is not raised again.

        ``reopen`` undoes that.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
            Conflict: it is not open.
        """
        from memgraph.operations.write import changes

        self._decide(edge_id, reason, changes.dismiss)

    @operation(
        Permission.WRITE,
        "POST",
        "/contradictions/{edge_id}/reopen",
        tag="graph",
        id="reopen_contradiction",
        body=ReasonBody,
    )
    def reopen(self, edge_id: EdgeId, *, reason: Reason) -> None:
        """Undo the resolution of a contradiction. Raises NotFound, Conflict."""
        from memgraph.operations.write import changes

        self._decide(edge_id, reason, changes.reopen)

    def _decide(self, edge_id: str, reason: str, decide: Callable[..., Sequence[NewEntry]]) -> None:
        """Apply ``decide``, a function of ``changes`` that takes the edge, a reason, a time and an
        actor.
        """
        from memgraph.operations.write import changes

        because = self._because(reason)
        with self._write() as (_, transaction):
            edge = changes.contradiction(transaction, edge_id, self._view)
            entries = decide(transaction, edge, reason=because)
            transaction.record(entries)
