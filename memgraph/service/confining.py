"""What a writer may store who answers to nobody but its own view: nothing that it would not see."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from memgraph.errors import AccessDenied
from memgraph.model.enums import MemoryKind
from memgraph.model.values import MemoryInput
from memgraph.policy.scope import ScopeFacts, Viewer, writable
from memgraph.storage import sessions
from memgraph.storage.visibility import View


@dataclass(frozen=True, slots=True)
class Confines:
    """The bounds of one writer within one transaction.

    Attributes:
        viewer: whose bounds; None: it has none.
        closed: conversations of which it sees no turn, and that there are.
    """

    viewer: Viewer | None
    closed: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, connection: sa.Connection, view: View | None, conversations: Collection[str]
    ) -> Confines:
        """The bounds of a writer; ``conversations`` are those that there are and that it names."""
        if view is None or not view.viewer.confined:
            return cls(None)
        # The place of its turn would tell how many turns those have that it does not see, and what
        # is made of such a conversation would heed it.
        hidden = (one for one in conversations if sessions.visible(connection, view, one) is None)
        return cls(view.viewer, frozenset(hidden))

    def refusal(self, given: MemoryInput) -> AccessDenied | None:
        """Why it may not store this; None: it may."""
        if self.viewer is None:
            return None
        facts = ScopeFacts(given.scope, given.scope_id, given.sensitivity, given.agent_id)
        verdict = writable(self.viewer, facts)
        if not verdict.allowed:
            return AccessDenied("you would not see what you store", reason=verdict.reason.value)
        if given.kind is MemoryKind.EPISODE and given.session_id in self.closed:
            return AccessDenied("this conversation is not open to you", field="session_id")
        return None
