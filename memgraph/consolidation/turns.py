"""One turn of a conversation, as those who make facts of it read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker said at once.

    Attributes:
        memory_id: of the episode that holds it.
        source_role: who spoke: a name, or ``user``, ``assistant`` and the like.
        at_ms: when it was said; where that is unknown, when it was stored.
        sequence: its place in the session, where that was told.
        told_as: ``person`` or ``agent`` where that was told and the role says something else.
        dated: False: it is unknown when it was said.
    """

    memory_id: str
    content: str
    source_role: str
    at_ms: int
    sequence: int | None = None
    told_as: str | None = None
    dated: bool = True

    @property
    def day(self) -> str | None:
        """The ISO date in UTC on which it was said; None where that is unknown."""
        if not self.dated:
            return None
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).date().isoformat()
