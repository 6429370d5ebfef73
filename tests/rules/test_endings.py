"""Housekeeping takes nothing back; everything else that ends a memory does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memgraph.model.enums import STORED_STATUSES, MemoryStatus
from memgraph.rules.lifecycle import (
    CLEARED,
    DECAYED,
    EVICTED,
    QUIET,
    TASK_CLOSED,
    EndOfLife,
    refuted,
)
from memgraph.store import decay

reasons = st.none() | st.sampled_from(sorted(QUIET)) | st.sampled_from(["deleted", "", "Evicted"])


@given(st.sampled_from(STORED_STATUSES), reasons, st.booleans())
def test_only_what_ended_quietly_is_not_refuted(
    status: MemoryStatus, reason: str | None, lost: bool
) -> None:
    told = refuted(EndOfLife(status, reason, lost))
    if status is MemoryStatus.ACTIVE:
        assert not told
    elif status is MemoryStatus.SUPERSEDED or lost:
        assert told
    else:
        assert told == (reason not in (EVICTED, TASK_CLOSED, CLEARED, DECAYED))


def test_decay_gives_the_reason_that_the_rule_knows() -> None:
    assert decay.REASON == DECAYED
