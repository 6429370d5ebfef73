"""What is told of the work while it is done: how long it took, how often it happened.

The port alone: whoever shows figures or traces has an implementation and hands it to
``MemoryService``. Told are names from this code and names of orchestrators, never content.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal, Protocol, runtime_checkable

from memgraph.model.enums import JobName, JobState
from memgraph.model.running import Ready

Work = Literal["recall", "write", "job"]
TOTAL: Final = "total"
"""The part that is all of a piece of work."""


class Meters(Protocol):
    """Takes what is told; called from many threads, and never raises."""

    def timed(self, work: Work, part: str, orchestrator: str) -> AbstractContextManager[object]:
        """The time of the block is that of one part of some work.

        Args:
            part: ``total``; of a recall a leg, or ``prepare``, which embeds the question; of a
                write ``wait``, for the one writer at a time; of a job its name.
        """
        ...

    def degraded(self, code: str) -> None:
        """A recall did without something; ``code`` as in ``Degraded``."""
        ...

    def denied(self, field: str) -> None:
        """Somebody was refused; ``field`` as in the journal's entry."""
        ...

    def job_ended(self, job: JobName, state: JobState) -> None:
        """A run of a job came to its end."""
        ...


@runtime_checkable
class Exposing(Protocol):
    """Meters whose figures can be read."""

    def exposition(self, ready: Ready) -> tuple[bytes, str]:
        """All figures, with how the orchestrators stand, as a text and its media type."""
        ...


class Silent:
    """Tells nobody."""

    _NOTHING: Final = nullcontext()

    def timed(self, _work: Work, _part: str, _orchestrator: str) -> AbstractContextManager[object]:
        return self._NOTHING

    def degraded(self, _code: str) -> None:
        return None

    def denied(self, _field: str) -> None:
        return None

    def job_ended(self, _job: JobName, _state: JobState) -> None:
        return None


SILENT: Final[Meters] = Silent()
