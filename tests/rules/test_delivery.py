"""How long events are kept and when they come again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memgraph.rules.conversations import (
    MOST_ATTEMPTS,
    MOST_TAKEN,
    MOST_WAITING,
    gives_up,
    pause_ms,
    removable_through,
)

NUMBERS = st.integers(0, 3_000_000)


def test_pauses_grow() -> None:
    pauses = [pause_ms(attempts) for attempts in range(1, MOST_ATTEMPTS)]
    assert pauses == [1_000, 5_000, 25_000, 125_000, 625_000]
    assert [gives_up(attempts) for attempts in (1, MOST_ATTEMPTS - 1, MOST_ATTEMPTS)] == [
        False,
        False,
        True,
    ]


@given(last=NUMBERS, taken=NUMBERS, aged=NUMBERS, expired=NUMBERS)
def test_what_waits_stays_and_the_rest_is_bounded(
    last: int, taken: int, aged: int, expired: int
) -> None:
    taken, aged = min(taken, last), min(aged, last)
    expired = min(expired, aged)
    through = removable_through(last=last, consolidated=taken, aged=aged, expired=expired)
    assert 0 <= through <= last
    assert last - through <= MOST_WAITING
    if taken == last:
        assert last - through <= MOST_TAKEN
    # What somebody has not had goes only for its age, or because there are far too many.
    assert through <= max(taken, expired, last - MOST_WAITING)
