"""Drawings over time: what is drawn lies within, in order, and nothing that was is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memgraph.model.enums import STORED_STATUSES
from memgraph.model.values import StatusPeriod
from memgraph.surfaces.web.charts import LEAST, WIDTH, ribbon

TIMES = st.lists(st.integers(0, 4_000_000_000_000), min_size=1, max_size=20).map(sorted)


def periods(times: list[int]) -> list[StatusPeriod]:
    kinds = list(STORED_STATUSES)
    return [
        StatusPeriod(status=kinds[n % 3], since=since, until=until, actor="x", reason=None)
        for n, (since, until) in enumerate(zip(times, [*times[1:], None], strict=True))
    ]


@given(TIMES, st.integers(0, 4_000_000_000_000))
def test_each_period_is_seen_within_the_drawing(times: list[int], now: int) -> None:
    drawn = ribbon(periods(times), now)
    assert [each.status for each in drawn.bands] == [each.status for each in periods(times)]
    assert [each.x for each in drawn.bands] == sorted(each.x for each in drawn.bands)
    for band in drawn.bands:
        assert 0 <= band.x <= WIDTH - LEAST
        assert band.width >= LEAST
        assert band.x + band.width <= WIDTH + 0.02
    assert drawn.since == times[0]
    assert drawn.until > drawn.since
