"""Limits for rates, as they are written."""

from __future__ import annotations

import pytest

from memgraph.errors import InvalidInput
from memgraph.model.access import HealthMetric
from memgraph.rules.schedule import fails, limits_of, rate_of


def test_rates_are_shares_or_percent_and_a_name_alone_lets_nothing_pass() -> None:
    assert limits_of(["stale=0.05", "orphan=12.5%", "duplicate"]) == {
        HealthMetric.STALE: 0.05,
        HealthMetric.ORPHAN: 0.125,
        HealthMetric.DUPLICATE: 0.0,
    }


def test_all_stands_for_those_that_are_not_named() -> None:
    limits = limits_of(["stale=20%", "all=1%"])
    assert limits[HealthMetric.STALE] == 0.2
    assert {limits[each] for each in HealthMetric if each is not HealthMetric.STALE} == {0.01}


@pytest.mark.parametrize("text", ["", "size", "stale=", "stale=2", "stale=-1", "stale=nan", "=1"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        limits_of([text])


def test_two_limits_for_one_measure_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two limits"):
        limits_of(["stale", "stale=5%"])


def test_a_rate_at_its_limit_passes() -> None:
    limits = limits_of(["stale=50%"])
    assert not fails(HealthMetric.STALE, rate_of(1, 2), limits)
    assert fails(HealthMetric.STALE, rate_of(2, 3), limits)
    assert not fails(HealthMetric.DUPLICATE, 1.0, limits)
    assert rate_of(0, 0) == 0.0
