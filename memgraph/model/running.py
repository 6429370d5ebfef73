"""What a running service tells of itself to those who look after it."""

from __future__ import annotations

from typing import Literal

from memgraph.model.enums import JobName, JobState
from memgraph.model.values import Millis, Value

StandingStatus = Literal["ready", "degraded", "disabled", "unknown"]


class LastJob(Value):
    """The run that began last. ``error_code``: of one that was skipped or failed."""

    job: JobName
    state: JobState
    ended_at: Millis | None = None
    error_code: str | None = None


class Standing(Value):
    """How one orchestrator stands.

    Attributes:
        status: ``disabled``: its database cannot be used, or its memory is switched off.
            ``unknown``: it was not looked at yet.
        codes: what disables it, or what work does not get done.
        advice: what to do about it, in words.
        pending: memories that wait to be embedded.
        oldest_pending_s: how long the first of them has waited, seconds.
        looked_at: when this was found; its files have not changed since, or it waits for its turn.
    """

    orchestrator: str
    status: StandingStatus
    codes: tuple[str, ...] = ()
    advice: str | None = None
    pending: int = 0
    oldest_pending_s: float | None = None
    last_job: LastJob | None = None
    looked_at: Millis | None = None


class Ready(Value):
    """Whether the service can be used.

    Attributes:
        status: ``unusable``: the root is gone or cannot be written, and nothing works.
        disk_free_bytes: where the databases lie.
        orchestrators: told to those who may know of all of them, sorted by name.
    """

    status: Literal["ready", "unusable"]
    disk_free_bytes: int | None = None
    orchestrators: tuple[Standing, ...] | None = None
