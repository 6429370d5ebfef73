"""The interface for metrics: durations and counts.

A program that exports metrics derives a class from ``Meters`` and passes it to ``MemoryService``.
Labels are names from this code, never content or the name of an orchestrator.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal

from memgraph.model.enums import JobName, JobState, ModelUse
from memgraph.model.jobs import ServiceReadiness

Work = Literal["recall", "write", "job"]
TOTAL: Final = "total"
"""The name of the part that measures a whole operation."""
_NOTHING: Final = nullcontext()


class Meters:
    """Receives metrics, and discards them; called from many threads, and never raises."""

    def timed(self, _work: Work, _part: str) -> AbstractContextManager[object]:
        """Measure the block as one part of an operation.

        The part is ``total``; for a recall, a leg or ``prepare`` (embedding the question); for a
        write, ``wait`` (for the write lock); for a job, its name.
        """
        return _NOTHING

    def degraded(self, code: str) -> None:
        """Count a degraded recall; ``code`` as in ``Degraded``."""

    def denied(self, field: str) -> None:
        """Count a refusal; ``field`` as in the log's line."""

    def job_ended(self, job: JobName, state: JobState) -> None:
        """Count a finished run of a job."""

    def model_called(
        self, use: ModelUse, tokens_in: int, tokens_out: int, error_code: str | None
    ) -> None:
        """Count a call of a language model; ``error_code``: why it failed, or None."""

    def request_began(self) -> None:
        """Count a request in progress."""

    def request_ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """Measure a request that ended; ``status`` is 0 if the client left before the response."""

    def exposition(self, _ready: ServiceReadiness) -> tuple[bytes, str] | None:
        """Return all values and the orchestrators' states as text, with its media type; None if
        they cannot be read.
        """
        return None


SILENT: Final = Meters()
