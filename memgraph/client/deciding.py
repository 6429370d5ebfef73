"""Deciding what holds, remotely: contradictions as cases, and what stands on a ground that fell."""

from __future__ import annotations

from memgraph.client.calls import Call, segment, value_of
from memgraph.client.places import Place, Time, moment
from memgraph.client.words import word
from memgraph.model.cases import Case, StalePage


class DecidingWords(Place):
    """The words for whoever decides what holds."""

    @word
    def case(self, edge_id: str, *, as_of: Time | None = None, names: bool = True) -> Call[Case]:
        """A contradiction with both sides, what speaks for each, and how it might be decided.

        Args:
            as_of: the case as it was then; None: now.
            names: which receipts, runs and conversations each side reached; False, and always for
                a key that may not audit: counts alone.

        Raises:
            NotFound: no such contradiction, or one of its sides is not to be seen.
        """
        path = f"/contradictions/{segment(edge_id)}"
        return self._get(path, value_of(Case), as_of=moment(as_of), names=names)

    @word
    def dismiss(self, edge_id: str, *, reason: str) -> Call[None]:
        """Say that an open contradiction is none: both sides hold, and it is not raised again.

        ``reopen`` takes that back.

        Raises:
            NotFound: no such contradiction, or one of its sides is not to be seen.
            Conflict: it is not open.
        """
        return self._done(f"/contradictions/{segment(edge_id)}/dismiss", {"reason": reason})

    @word
    def stale(
        self, *, limit: int = 50, after: str | None = None, as_of: Time | None = None
    ) -> Call[StalePage]:
        """Active memories that stand on a ground that was replaced or taken back, with the way.

        By when the ground ended, the newest first. It takes the permission audit.

        Args:
            limit: 1..500.
            after: ``next_after`` of the page before.
            as_of: as it was then; None: now.

        Raises:
            InvalidInput: a limit out of range, or ``after`` of no page.
        """
        return self._get(
            "/stale", value_of(StalePage), limit=limit, cursor=after, as_of=moment(as_of)
        )
