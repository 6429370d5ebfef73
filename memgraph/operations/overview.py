"""A store as a whole: hubs, numbers over time, and the journal."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.operation import F, Time, local
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.audit.findings import VerifyReport
    from memgraph.audit.journal import JournalHead

MAX_STEPS = 400


class Overview(Handle[F], group="overview"):
    """A store as a whole: ``orc.overview``."""

    @local
    def connected(self, *, limit: int = 300, as_of: Time | None = None) -> list[str]:
        """Return the ids of the memories with the most neighbours, each followed by some of these.

        Args:
            limit: of the ids. Memories without an edge are not among them.
        """
        from memgraph.graph.subgraph import connected

        then = None if as_of is None else parse_time(as_of)
        with self._service.opened(self.name) as opened:
            return connected(opened.database, limit=limit, viewer=self.viewer, as_of=then)

    @local
    def facets(
        self,
        *,
        as_of: Time | None = None,
        tags: tuple[str, ...] = (),
        session_id: str | None = None,
        since: int | None = None,
        until: int | None = None,
        source_path: str | None = None,
        limit: int = 20_000,
    ) -> list[tuple[str, str, str, int]]:
        """Return how many memories there are of each type, kind and shown status.

        Args:
            limit: so many are counted, the newest ones.
            tags, session_id, since, until, source_path: as of ``memories.list``; milliseconds.
        """
        from memgraph.store import memories
        from memgraph.store.visibility import View

        view = View(self.viewer, None if as_of is None else parse_time(as_of))
        chosen = memories.MemoryFilter(
            tags=tags, session_id=session_id, since=since, until=until, source_path=source_path
        )
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return memories.facets(snapshot, view, chosen, limit=limit)

    @local
    def activity(
        self, *, since: Time | None = None, until: Time | None = None, steps: int = 60
    ) -> Mapping[str, Any]:
        """Return how often each thing happened in equal steps of time, of what this handle sees.

        ``series`` has a list for each of ``stored``, ``superseded``, ``retracted``,
        ``contradicted``, ``resolved`` and, for who may audit, ``handed_out``; ``times`` are the
        beginnings of the steps and ``until`` their end, milliseconds.

        Args:
            since: None: when the first memory was stored.
            steps: 1..400.

        Raises:
            InvalidInput: a bound out of range, or an end before the beginning.
        """
        from memgraph.store import activity
        from memgraph.store.visibility import View

        if not 1 <= steps <= MAX_STEPS:
            raise InvalidInput(f"steps: 1 to {MAX_STEPS}", field="steps")
        view = View(self.viewer)
        with self._service.opened(self.name) as opened:
            opened.receipts.flush()
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            end = opened.clock.now_ms() if until is None else parse_time(until)
            begin = activity.first_at(snapshot, view) if since is None else parse_time(since)
            begin = end if begin is None else begin
            if end < begin:
                raise InvalidInput("the end lies before the beginning", field="until")
            series = activity.counts(
                snapshot,
                view,
                since=begin,
                until=end,
                steps=steps,
                hand_outs=Permission.AUDIT in self.permissions,
            )
        step = max((end - begin) // steps + 1, 1)
        return {"series": series, "times": [begin + step * at for at in range(steps)], "until": end}

    @local
    def verify_chain(self, start: JournalHead | None = None) -> tuple[VerifyReport, JournalHead]:
        """Recompute the seals of the journal and compare its end with the anchor.

        Args:
            start: an entry that was checked before; its seal has to be the same still, else all
                are checked. None: all.
        """
        from memgraph.operations.maintenance.maintenance import verify_chain

        with self._service.opened(self.name) as opened:
            return verify_chain(opened, start)

    @local
    def journal_seals(self, seqs: Collection[int]) -> dict[int, str]:
        """Return the seals of some journal entries; a seal tells nothing of what its entry says."""
        from memgraph.store.journal import hash_of

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            seals = {seq: hash_of(snapshot, seq) for seq in seqs}
        return {seq: seal for seq, seal in seals.items() if seal is not None}
