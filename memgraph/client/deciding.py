"""Decisions, remotely: contradictions as cases, and memories with retracted evidence."""

from __future__ import annotations

from memgraph.client.calls import Call, segment, value_of
from memgraph.client.places import Place, Time, moment
from memgraph.client.words import word
from memgraph.model.cases import Case, StalePage


class DecidingWords(Place):
    """The methods for resolving contradictions."""

    @word
    def case(self, edge_id: str, *, as_of: Time | None = None, names: bool = True) -> Call[Case]:
        """Return a contradiction with both sides, the evidence for each, and possible decisions.

        Args:
            as_of: the case as it was then; None: now.
            names: which receipts, runs and conversations each side reached; False, and always for
                a key that may not audit: only counts.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
        """
        path = f"/contradictions/{segment(edge_id)}"
        return self._get(path, value_of(Case), as_of=moment(as_of), names=names)

    @word
    def dismiss(self, edge_id: str, *, reason: str) -> Call[None]:
        """Dismiss an open contradiction: both sides hold, and it is not raised again.

        ``reopen`` undoes that.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
            Conflict: it is not open.
        """
        return self._done(f"/contradictions/{segment(edge_id)}/dismiss", {"reason": reason})

    @word
    def stale(
        self, *, limit: int = 50, after: str | None = None, as_of: Time | None = None
    ) -> Call[StalePage]:
        """Return active memories that depend on superseded or retracted evidence, with the path.

        Sorted by when the evidence ended, newest first. Requires the permission audit.

        Args:
            limit: 1..500.
            after: ``next_after`` of the page before.
            as_of: as it was then; None: now.

        Raises:
            InvalidInput: a limit out of range, or an invalid ``after``.
        """
        return self._get(
            "/stale", value_of(StalePage), limit=limit, cursor=after, as_of=moment(as_of)
        )
