"""Drawings over time: what is drawn lies within, in order, and nothing that was is left out."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from memgraph.model.enums import STORED_STATUSES
from memgraph.model.values import StatusPeriod
from memgraph.surfaces.web.charts import HEIGHT, LEAST, WIDTH, ribbon, step_chart

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


@given(TIMES, st.data())
def test_a_curve_steps_through_all_its_values(times: list[int], data: st.DataObject) -> None:
    values = data.draw(
        st.lists(st.floats(0, 1), min_size=len(times), max_size=len(times)), label="values"
    )
    chart = step_chart(list(zip(times, values, strict=True)), times[-1])
    numbers = [float(each) for each in re.findall(r"-?[0-9.]+(?:e-?[0-9]+)?", chart.path)]
    assert all(0 <= each <= max(WIDTH, HEIGHT) for each in numbers)
    assert chart.path.startswith("M0 ")
    assert chart.path.endswith("H1000")
    assert len(re.findall("V", chart.path)) == len(times) - 1


def test_a_value_of_one_is_above_and_holds_until_it_changes() -> None:
    assert step_chart([(0, 1.0), (500, 0.25)], 1_000).path == "M0 0.0H500.0V75.0H1000"
