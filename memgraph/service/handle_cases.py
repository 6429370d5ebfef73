"""Contradictions as cases, their resolution, and memories with retracted evidence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from memgraph.clock import parse_time
from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.audit.journal import Entry
    from memgraph.model.cases import Case, StalePage
    from memgraph.service.handle_reading import Time


class CasesHandle(Handle):
    """The part of ``Orchestrator`` for resolving contradictions."""

    def case(self, edge_id: str, *, as_of: Time | None = None, names: bool = True) -> Case:
        """Return a contradiction with both sides, the evidence for each, and possible decisions.

        Args:
            as_of: the case as it was then; None: now.
            names: which receipts, runs and conversations each side reached; False: only counts, for
                callers who may not audit.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
        """
        from memgraph.graph.cases import read_case
        from memgraph.rules.trust import Trust

        with self._service.opened(self.name) as opened:
            memory = opened.settings.memory
            return read_case(
                opened.database,
                edge_id,
                now_ms=opened.clock.now_ms(),
                exponent=memory.decay.exponent,
                trust=Trust.of(memory.trust),
                viewer=self.viewer,
                as_of=None if as_of is None else parse_time(as_of),
                names=names,
            )

    def resolve(self, edge_id: str, *, winner: str, reason: str) -> None:
        """Decide an open contradiction; the loser is superseded, its confidence falls to 0.3.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
            Conflict: it is resolved, or the winner is no side of it.
        """
        from memgraph.service import changes

        self._decide(edge_id, reason, partial(changes.resolve, winner_id=self._whole_id(winner)))

    def dismiss(self, edge_id: str, *, reason: str) -> None:
        """Dismiss an open contradiction: both sides hold, and it is not raised again.

        ``reopen`` undoes that.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
            Conflict: it is not open.
        """
        from memgraph.service import changes

        self._decide(edge_id, reason, changes.dismiss)

    def reopen(self, edge_id: str, *, reason: str) -> None:
        """Undo the resolution of a contradiction. Raises NotFound, Conflict."""
        from memgraph.service import changes

        self._decide(edge_id, reason, changes.reopen)

    def stale(
        self, *, limit: int = 50, after: str | None = None, as_of: Time | None = None
    ) -> StalePage:
        """Return active memories that depend on superseded or retracted evidence, with the path.

        A memory depends on what it was derived from, is caused by or is part of, and on what that
        depends on in turn, over 6 steps at most. Sorted by when the evidence ended, newest first.

        Args:
            limit: 1..500.
            after: ``next_after`` of the page before.
            as_of: as it was then; None: now.

        Raises:
            InvalidInput: a limit out of range, or an invalid ``after``.
        """
        from memgraph.graph.stale import list_stale

        with self._service.opened(self.name) as opened:
            return list_stale(
                opened.database,
                viewer=self.viewer,
                limit=limit,
                after=after,
                as_of=None if as_of is None else parse_time(as_of),
            )

    def _decide(self, edge_id: str, reason: str, decide: Callable[..., list[Entry]]) -> None:
        """Apply ``decide``, a function of ``changes`` that takes the edge, a reason, a time and an
        actor.
        """
        from memgraph.service import changes

        because = self._because(reason)
        with self._write() as (_, transaction):
            edge = changes.contradiction(transaction, edge_id, self._view)
            entries = decide(
                transaction,
                edge,
                reason=because,
                at=transaction.at,
                actor=self.actor,
            )
            transaction.tell(entries)
