"""The interface for metrics: durations and counts.

A program that exports metrics implements it and passes it to ``MemoryService``. Labels
are names from this code and names of orchestrators, never content.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal, Protocol, runtime_checkable

from memgraph.model.enums import JobName, JobState, ModelUse
from memgraph.model.jobs import ServiceReadiness

Work = Literal["recall", "write", "job"]
TOTAL: Final = "total"
"""The name of the part that measures a whole operation."""


class Meters(Protocol):
    """Receives metrics; called from many threads, and never raises."""

    def timed(self, work: Work, part: str, orchestrator: str) -> AbstractContextManager[object]:
        """Measure the block as one part of an operation.

        Args:
            part: ``total``; for a recall, a leg or ``prepare`` (embedding the question); for a
                write, ``wait`` (for the write lock); for a job, its name.
        """
        ...

    def degraded(self, code: str) -> None:
        """Count a degraded recall; ``code`` as in ``Degraded``."""
        ...

    def denied(self, field: str) -> None:
        """Count a refusal; ``field`` as in the log's line."""
        ...

    def job_ended(self, job: JobName, state: JobState) -> None:
        """Count a finished run of a job."""
        ...

    def model_called(
        self, use: ModelUse, tokens_in: int, tokens_out: int, error_code: str | None
    ) -> None:
        """Count a call of a language model; ``error_code``: why it failed, or None."""
        ...


@runtime_checkable
class ReadableMeters(Protocol):
    """Meters whose values can be read, which measure the requests of a server, too."""

    def request_began(self) -> None:
        """Count a request in progress."""
        ...

    def request_ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """Measure a request that ended; ``status`` is 0 if the client left before the response."""
        ...

    def exposition(self, ready: ServiceReadiness) -> tuple[bytes, str]:
        """Return all values and the orchestrators' states as text, with its media type."""
        ...


class NullMeters:
    """Discards everything."""

    _NOTHING: Final = nullcontext()

    def timed(self, _work: Work, _part: str, _orchestrator: str) -> AbstractContextManager[object]:
        return self._NOTHING

    def degraded(self, _code: str) -> None:
        return None

    def denied(self, _field: str) -> None:
        return None

    def job_ended(self, _job: JobName, _state: JobState) -> None:
        return None

    def model_called(self, _use: ModelUse, _in: int, _out: int, _error_code: str | None) -> None:
        return None


SILENT: Final[Meters] = NullMeters()
