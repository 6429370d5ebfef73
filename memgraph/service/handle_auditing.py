"""Auditing through a handle: quality measures of what its viewer sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.health import StoreHealth


class AuditingHandle(Handle):
    """The part of ``Orchestrator`` that measures what is stored."""

    def audit(
        self,
        *,
        fail_on: Sequence[str] = (),
        examples: int = 5,
        progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None,
    ) -> StoreHealth:
        """Return rates of what this handle sees, each with examples. Nothing is changed.

        Of the active memories that are no raw turns: ``duplicate`` have the same text as another
        one of the same place, ``near_duplicate`` nearly (of 20,000 at most), ``contradiction`` are
        in an open one, ``stale`` depend on superseded or retracted evidence, ``unsourced`` have no
        known source, ``orphan`` have no edge, ``echo`` only repeat what had been handed out before
        they were stored (of 20,000 at most). Of all active memories: ``unembedded`` have no vector
        yet, or none could be made.

        Args:
            fail_on: limits, such as ``stale=0.05``, ``stale=5%``, ``echo`` (none at all) or
                ``all``; a rate above its limit makes ``ok`` False.
            examples: 0..100, of each measure.
            progress: called with the measure, how much is done, and how much there is.

        Raises:
            InvalidInput: an invalid limit, or too many examples.
        """
        from memgraph.service.store_health import store_health

        with self._service.opened(self.name) as opened:
            return store_health(
                opened, self._view, fail_on=fail_on, examples=examples, progress=progress
            )
