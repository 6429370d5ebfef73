"""Consolidation through a handle: extract facts from conversations, or preview them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memgraph.errors import NotFound
from memgraph.service.handle import Handle
from memgraph.store import memories, sessions

if TYPE_CHECKING:
    from memgraph.consolidation.ports import Budget, Extractor
    from memgraph.model.consolidation import SessionReport
    from memgraph.service.opened import Opened


class ConsolidatingHandle(Handle):
    """The part of ``Orchestrator`` that extracts facts from conversations."""

    def consolidate(
        self,
        session_id: str | None = None,
        *,
        dry_run: bool = False,
        extractor: Extractor | None = None,
        budget: Budget | None = None,
        progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Sequence[SessionReport]:
        """Extract facts from turns that were not read yet; a second call finds nothing to do.

        Args:
            session_id: this session, even if it continues; None: all that are over or long idle.
            dry_run: compute what would be written, and write nothing.
            extractor: None: the language model of ``memory.llm``, or rules.
            budget: calls and tokens of a model; None: that of ``memory.consolidation``.
            progress: called with the step, how much of it is done, and how much there is.
            stop: checked before each page; what was written until then stays.

        Returns:
            A report for each session. Facts and edges that this handle may not see are processed
            but not reported.

        Raises:
            NotFound: no such session, or none of its turns is visible.
            StorageError: what was written until then stays.
        """
        from memgraph.service.life.consolidating import consolidate_pending, consolidate_session

        reports: list[SessionReport] = []
        with self._service.opened(self.name) as opened:
            if session_id is None:
                consolidate_pending(
                    opened,
                    actor=self.actor,
                    extractor=extractor,
                    dry_run=dry_run,
                    budget=budget,
                    progress=progress,
                    stop=stop,
                    on_session=reports.append,
                )
            else:
                self._require_session(opened, session_id)
                reports.append(
                    consolidate_session(
                        opened,
                        session_id,
                        actor=self.actor,
                        extractor=extractor,
                        dry_run=dry_run,
                        budget=budget,
                        progress=progress,
                        stop=stop,
                    )
                )
            told = [self._as_seen(opened, each) for each in reports]
            if not dry_run:
                self._embed_soon(opened)
        return told

    def _require_session(self, opened: Opened, session_id: str) -> None:
        with opened.database.read() as snapshot:
            if sessions.visible(snapshot, self._view, session_id) is None:
                raise NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])

    def _as_seen(self, opened: Opened, report: SessionReport) -> SessionReport:
        """Return the report without what depends on invisible turns."""
        turns = {one for fact in report.facts for one in fact.evidence}
        with opened.database.read() as snapshot:
            seen = memories.existing_ids(snapshot, sorted(turns), self._view)
        facts = [fact for fact in report.facts if seen.issuperset(fact.evidence)]
        if len(facts) == len(report.facts):
            return report
        hidden = {fact.memory_id or fact.content for fact in report.facts if fact not in facts}
        edges = [edge for edge in report.edges if not {edge.from_id, edge.to_id} & hidden]
        return report.model_copy(update={"facts": tuple(facts), "edges": tuple(edges)})
