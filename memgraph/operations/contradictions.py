"""Operations on contradictions and marks: list, inspect, resolve, accept, dismiss and reopen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from memgraph.ids import EDGE_PREFIX
from memgraph.model.access import Permission
from memgraph.model.enums import EdgeType
from memgraph.model.graph import Case, ContradictionPage
from memgraph.model.operation import After, AsOf, EdgeId, F, Limit, ReasonBody, operation
from memgraph.model.values import EdgeInput, Name, Reason
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.store.snapshot import NewEntry


class Contradictions(Handle[F], group="contradictions", tag="graph"):
    """Contradictions between memories: ``orc.contradictions``."""

    @operation(
        Permission.READ, "GET /contradictions", id="list_contradictions", command="contradictions"
    )
    def list(
        self,
        *,
        resolved: Annotated[bool, Field(description="Return resolved ones.")] = False,
        limit: Limit = 50,
        after: After = None,
        as_of: AsOf = None,
        text: Annotated[
            Name | None,
            Field(description="Only if one side has all these words; 200 characters."),
        ] = None,
        memory_id: Annotated[Name | None, Field(description="Only of this memory.")] = None,
        oldest_first: Annotated[bool, Field(description="Oldest first.")] = False,
        changes: Annotated[
            bool | None,
            Field(description="Only marks of probable changes, or only contradictions."),
        ] = None,
    ) -> ContradictionPage:
        """Return open or resolved contradictions and marks of changes, with both sides.

        Newest first. Only those with both sides visible are returned. An open one of which a side
        is not active is ``moot``, and returned only with a ``memory_id``.

        Args:
            limit: 1..500.
            after: ``next_after`` of the page before.
            text: only contradictions with all of its words on one side.
            memory_id: only contradictions of this memory.
            changes: True: only marks of probable changes, Updates edges of a weight below 1, which
                ``accept`` and ``dismiss`` decide; False: only contradictions.
        """
        from memgraph.graph.cases import list_contradictions

        memory_id = None if memory_id is None else self._whole_id(memory_id)
        view = self._view_at(as_of)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return list_contradictions(
                snapshot,
                view,
                now_ms=opened.clock.now_ms(),
                resolved=resolved,
                limit=limit,
                after=after,
                text=text,
                memory_id=memory_id,
                oldest_first=oldest_first,
                changes=changes,
            )

    @operation(Permission.READ, "GET /contradictions/{edge_id}", tag="cases", id="case")
    def get(self, edge_id: EdgeId, *, as_of: AsOf = None) -> Case:
        """Return a contradiction or a probable change with both sides and their evidence.

        The receipts, runs and conversations that a side reached are listed for keys with the audit
        permission; others get only their numbers.

        Args:
            as_of: return the case as of this time; None: now.

        Raises:
            NotFound: no such contradiction or mark, or one of its sides is not visible.
        """
        from memgraph.graph.cases import CaseReader

        edge_id, view = self._whole_edge_id(edge_id), self._view_at(as_of)
        listed = Permission.AUDIT in self.permissions
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            at = opened.clock.now_ms() if view.as_of is None else view.as_of
            exponent = opened.settings.memory.decay.exponent
            return CaseReader(snapshot, view, at, exponent, listed).of(edge_id)

    @operation(
        Permission.WRITE,
        "POST /contradictions/{edge_id}/resolve",
        id="resolve_contradiction",
        command="resolve",
        body="Resolution",
    )
    def resolve(self, edge_id: EdgeId, *, winner: Name, reason: Reason) -> None:
        """Resolve an open contradiction: the loser is superseded, and its confidence becomes 0.3.

        Resolving it again with the same winner changes nothing.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
            Conflict: it was resolved otherwise, the winner is not one of its sides, or an active
                memory has replaced a side; see ``details["replaced_by"]``.
        """
        from memgraph.operations.write import changes

        decide = partial(changes.resolve, winner_id=self._whole_id(winner), view=self._view)
        self._decide(edge_id, reason, decide)

    @operation(
        Permission.WRITE,
        "POST /contradictions/{edge_id}/dismiss",
        tag="cases",
        id="dismiss_contradiction",
        command="dismiss",
        body=ReasonBody,
    )
    def dismiss(self, edge_id: EdgeId, *, reason: Reason) -> None:
        """Dismiss an open contradiction or mark: both sides hold, and it is not raised again.

        ``reopen`` undoes that.

        Raises:
            NotFound: no such edge, or one of its sides is not visible.
            Conflict: it is not open.
        """
        from memgraph.operations.write import changes

        self._decide(edge_id, reason, changes.dismiss)

    @operation(
        Permission.WRITE,
        "POST /contradictions/{edge_id}/accept",
        tag="cases",
        id="accept_change",
        command="accept",
        body=ReasonBody,
    )
    def accept(self, edge_id: EdgeId, *, reason: Reason) -> None:
        """Put a mark in force: the memory that it leads from replaces the other.

        A mark is an edge whose weight, a probability, is below 1. An Updates edge gets the weight
        1; a contradiction is resolved in favour of the memory that it leads from, the later one. A
        contradiction of weight 1 is decided by ``resolve``.

        Raises:
            NotFound: no such mark, or one of its sides is not visible.
            Conflict: it is decided, it is a contradiction of weight 1, or an active memory has
                replaced the earlier one.
        """
        from memgraph.operations.write import changes

        because, edge_id = self._because(reason), self._whole_edge_id(edge_id)
        with self._write() as (opened, transaction):
            edge = changes.open_mark(transaction, edge_id, self._view)
            if edge.edge_type is EdgeType.CONTRADICTS:
                transaction.record(
                    changes.resolve(
                        transaction,
                        edge,
                        winner_id=edge.from_id,
                        reason=because,
                        view=self._view,
                    )
                )
                return
            link = EdgeInput(
                from_id=edge.from_id, to_id=edge.to_id, edge_type=edge.edge_type, reason=because
            )
            opened.writer.store_all(transaction, [], [link], view=self._view)

    @operation(
        Permission.WRITE,
        "POST /contradictions/{edge_id}/reopen",
        id="reopen_contradiction",
        command="reopen",
        body=ReasonBody,
    )
    def reopen(self, edge_id: EdgeId, *, reason: Reason) -> None:
        """Undo the decision of a contradiction or of a mark: what it superseded is active again.

        An accepted mark is open again, with its weight. Raises NotFound; Conflict: it is open.
        """
        from memgraph.operations.write import changes

        self._decide(edge_id, reason, changes.reopen)

    def _whole_edge_id(self, edge_id: str) -> str:
        """Return the full id of the contradiction or mark that a text names.

        Short ids, and ids of memories that have one open contradiction or mark, are accepted.

        Raises:
            Conflict: the text names several.
        """
        from memgraph.store import edges

        if edge_id.startswith(EDGE_PREFIX):
            return edge_id
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return edges.full_id(snapshot, edge_id, self._view)

    def _decide(self, edge_id: str, reason: str, decide: Callable[..., Sequence[NewEntry]]) -> None:
        """Apply ``decide``, one of the functions in ``changes``, to a contradiction or a mark."""
        from memgraph.operations.write import changes

        because, edge_id = self._because(reason), self._whole_edge_id(edge_id)
        with self._write() as (_, transaction):
            edge = changes.contradiction_or_mark(transaction, edge_id, self._view)
            entries = decide(transaction, edge, reason=because)
            transaction.record(entries)
