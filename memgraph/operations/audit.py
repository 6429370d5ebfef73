"""The measures of an auditor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from memgraph.model.access import Permission, StoreHealth
from memgraph.model.operation import F, WireFormat, operation
from memgraph.model.values import Name
from memgraph.operations.handle import Handle


class Audit(Handle[F], group="audit"):
    """Measures of what is stored: ``orc.audit``."""

    @operation(
        Permission.AUDIT,
        "POST",
        "/audit",
        tag="auditing",
        body="AuditWanted",
        slow=True,
        id="audit",
    )
    def measure(
        self,
        *,
        fail_on: Annotated[Sequence[str], WireFormat(tuple[Name, ...]), Field(max_length=20)] = (),
        examples: Annotated[int, Field(ge=0, le=100)] = 5,
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
        from memgraph.operations.read.store_health import store_health

        with self._service.opened(self.name) as opened:
            return store_health(
                opened, self._view, fail_on=fail_on, examples=examples, progress=progress
            )
