"""The interface for metrics: durations and counts.

A program that exports metrics derives a class from ``Meters`` and passes it to ``MemoryService``.
Labels are names from this code, never content or the name of an orchestrator.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal

from memgraph.model.jobs import ServiceReadiness

Work = Literal["recall", "write", "job"]
TOTAL: Final = "total"
"""The name of the part that measures a whole operation."""
Counted = Literal["degraded_recalls", "denials", "jobs", "model_calls", "model_tokens"]
COUNTERS: Final[Mapping[Counted, tuple[str, tuple[str, ...]]]] = {
    "degraded_recalls": ("Incomplete recalls.", ("code",)),
    "denials": ("Refusals.", ("field",)),
    "jobs": ("Job runs that ended.", ("job", "state")),
    "model_calls": (
        "Calls of a language model, by use and outcome: ok, or the code of the error.",
        ("use", "outcome"),
    ),
    "model_tokens": ("Tokens that a language model read and wrote.", ("use", "direction")),
}
"""What is counted: its description and the names of its labels."""
_NOTHING: Final = nullcontext()


class Meters:
    """Receives metrics, and discards them; called from many threads, and never raises."""

    def timed(self, _work: Work, _part: str = TOTAL) -> AbstractContextManager[object]:
        """Measure the block as one part of an operation.

        The part is ``total``; for a recall, a leg or ``prepare`` (embedding the question); for a
        write, ``wait`` (for the write lock); for a job, its name.
        """
        return _NOTHING

    def count(self, counted: Counted, *labels: str, amount: int = 1) -> None:
        """Count something; ``labels`` as in ``COUNTERS``."""

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
