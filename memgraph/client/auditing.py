"""Auditing, remotely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memgraph.client.calls import Call, value_of
from memgraph.client.places import Place
from memgraph.client.words import word
from memgraph.model.health import StoreHealth


class AuditingWords(Place):
    """The methods of an auditor; they require the permission audit."""

    @word
    def audit(self, *, fail_on: Sequence[str] = (), examples: int = 5) -> Call[StoreHealth]:
        """Return rates of what the key sees: duplicates, contradictions, unsourced memories …

        Args:
            fail_on: limits, such as ``stale=0.05``, ``echo`` (none at all) or ``all``.
            examples: 0..100, of each measure.

        Raises:
            InvalidInput: an invalid limit, or too many examples.
        """
        fields = {"fail_on": list(fail_on), "examples": examples}
        return replace(self._look("/audit", fields, value_of(StoreHealth)), slow=True)
