"""What is fading, what the week was about, and what belongs before an answer, through a handle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.fading import FadingReport


class FadingHandle(Handle):
    """The part of ``Orchestrator`` that tells what fades and what stays."""

    def fading(self, *, days: float = 30.0, limit: int = 50) -> FadingReport:
        """What would be retired within ``days`` if nobody asks for it, the first to go first.

        To keep one, recall it, or ``confirm`` it for good. ``days`` is 0..36,600, ``limit``
        0..1,000; ``total`` counts all of them.

        Raises:
            InvalidInput: one of them is out of range.
        """
        from memgraph.service.life.fading import fading

        with self._service.opened(self.name) as opened:
            return fading(opened, self.viewer, days=days, limit=limit)
