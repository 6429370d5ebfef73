"""Events of sessions, for the callbacks of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from memgraph.model.values import Name, Value


class SessionCompleted(Value):
    """A conversation has ended; its turns may be consolidated."""

    topic: ClassVar = "memory.session_completed"

    session_id: Name


class SessionConsolidated(Value):
    """All turns of a session were consolidated. ``facts``: the number of added memories."""

    topic: ClassVar = "memory.session_consolidated"

    session_id: Name
    facts: int = 0


SessionEvent = SessionCompleted | SessionConsolidated
SessionCallback = Callable[[SessionEvent], object]
