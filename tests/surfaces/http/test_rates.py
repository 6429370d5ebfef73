"""The bucket of each source."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memgraph.surfaces.http.limits import BURST_S, MOST_KNOWN, TokenBuckets

TIMES = st.lists(st.floats(0, 10), min_size=1, max_size=60).map(sorted)


@given(per_second=st.integers(1, 20), times=TIMES)
def test_never_more_than_a_burst_and_the_rate(per_second: int, times: list[float]) -> None:
    rates = TokenBuckets(per_second)
    taken = [now for now in times if rates.take("one", now) == 0]
    for start in taken:
        for end in taken:
            within = sum(start <= each <= end for each in taken)
            assert start > end or within <= (end - start + BURST_S) * per_second + 1e-6


@given(per_second=st.integers(1, 20), times=TIMES)
def test_who_waits_as_told_is_let_in(per_second: int, times: list[float]) -> None:
    rates = TokenBuckets(per_second)
    for now in times:
        wait = rates.take("one", now)
        if wait > 0:
            assert rates.take("one", now + wait + 1e-6) == 0
            return


def test_a_whole_burst_is_let_in_at_once() -> None:
    rates = TokenBuckets(5)
    waits = [rates.take("one", 0.0) for _ in range(11)]
    assert waits[:10] == [0.0] * 10
    assert waits[10] > 0
    assert rates.take("other", 0.0) == 0


def test_no_more_sources_are_kept_than_needed() -> None:
    rates = TokenBuckets(1)
    for n in range(MOST_KNOWN + 10):
        rates.take(str(n), 0.0)
    assert len(rates._full_at) == MOST_KNOWN
