"""Expiring memories, the week's reflection, and the memories relevant to a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.model.enums import MemoryKind
from memgraph.service.handle_reading import ReadingHandle

if TYPE_CHECKING:
    from memgraph.model.expiring import ExpiringReport
    from memgraph.model.reflection import Relevant
    from memgraph.model.values import Memory


class ExpiringHandle(ReadingHandle):
    """The part of ``Orchestrator`` for expiry, reflections and relevant memories."""

    def expiring(self, *, days: float = 30.0, limit: int = 50) -> ExpiringReport:
        """Return the facts that expire within ``days`` unless they are used, soonest first.

        Only inferred facts are ever listed. To keep one, recall it, or ``confirm`` it for good.
        ``days`` is 0..36,600, ``limit`` 0..1,000; ``total`` counts all of them.

        Raises:
            InvalidInput: one of them is out of range.
        """
        from memgraph.service.life.expiring import expiring

        with self._service.opened(self.name) as opened:
            return expiring(opened, self.viewer, days=days, limit=limit)

    def latest_reflection(self) -> Memory | None:
        """Return the latest weekly reflection that this handle may see; None: there is none.

        It is cached until any process writes.
        """
        with self._service.opened(self.name) as opened:
            found = opened.reflections.latest(self.viewer)
            now = opened.clock.now_ms()
            if found is not None and opened.reflections.is_news(found, now):
                # It comes to stand in prompts, and what an answer repeats of it is no news.
                self._write_receipts(opened, enough=opened.receipts.add_text(found.content, now))
            return found

    def relevant(
        self, prompt: str, *, limit: int = 5, exclude_session_id: str | None = None
    ) -> Relevant:
        """Return what belongs before the answer to a message: relevant facts and the last
        reflection.

        Args:
            prompt: the message; an empty one gives the most important facts.
            limit: 1..1,000 facts.
            exclude_session_id: the conversation of the message, whose turns the agent has already.

        Raises:
            InvalidInput: an argument is out of range.
        """
        from memgraph.model.reflection import Relevant

        bundle = self.recall(
            prompt,
            kinds=(MemoryKind.FACT,),
            top_n=limit,
            exclude_session_id=exclude_session_id,
        )
        return Relevant(bundle=bundle, reflection=self.latest_reflection())
