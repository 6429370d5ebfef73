"""Figures of short statements in one notation."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.classification.relation_dates import same_clock, same_date
from memgraph.classification.relation_values import read_values, same_quantity

RECORDED = int(datetime(2026, 4, 17, 9, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("an hour and a half", "90 min"),
        ("2 h 15 min", "135 minutes"),
        ("2,400 ms", "2.4 s"),
        ("seventy days", "70 d"),
        ("1.5 m", "150 cm"),
        ("two tonnes", "2000 kg"),
        ("fifty percent", "50 %"),
        ("half of the seats", "50 %"),
        ("75 euro cents", "EUR 0.75"),
        ("3.4k boxes", "3,400 boxes"),
        ("two dozen chairs", "24 chairs"),
        ("forty-two pages", "42 pages"),
    ],
)
def test_one_amount_in_two_notations(left: str, right: str) -> None:
    (a,), (b,) = (read_values(text, RECORDED).quantities for text in (left, right))
    assert a.dimension == b.dimension
    assert same_quantity(a, b)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("at half past four", "at 16:30"),
        ("at 7 p.m.", "at 19:00"),
        ("twenty to six", "05:40"),
        ("um drei Uhr nachmittags", "15:00"),
    ],
)
def test_one_clock_time_in_two_notations(left: str, right: str) -> None:
    (a,), (b,) = (read_values(text, RECORDED).clocks for text in (left, right))
    assert same_clock(a, b)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("on 9 June", "on June 9th"),
        ("the ninth of June", "2026-06-09"),
        ("bis zum 30.11.2026", "30 November 2026"),
        ("yesterday", "on 16 April 2026"),
        ("by the end of 2027", "by 31 December 2027"),
    ],
)
def test_one_date_in_two_notations(left: str, right: str) -> None:
    (a,), (b,) = (read_values(text, RECORDED).dates for text in (left, right))
    assert same_date(a, b)


def test_a_numbered_thing_is_no_amount() -> None:
    found = read_values("ticket 4417 in room B, build 9 of 2.4.1", RECORDED)
    assert {("ticket", "4417"), ("room", "B")} <= found.tags
    assert found.versions == {"2.4.1"}
    assert found.quantities == ()


@given(st.text(max_size=200), st.none() | st.integers(0, 4_000_000_000_000))
def test_any_text_can_be_read(text: str, time_ms: int | None) -> None:
    found = read_values(text, time_ms)
    assert all(0 <= minute < 1440 for minute in found.clocks)
    assert all(0 <= month <= 12 and 0 <= day <= 99 for _, month, day in found.dates)


@pytest.mark.parametrize(
    "text", ["9" * 400, "1e999 boxes", "nine " + "million " * 80, "3 ſept 2026", "4 APRİL", "half"]
)
def test_odd_figures_are_read_or_left(text: str) -> None:
    found = read_values(text, RECORDED)
    assert all(abs(q.value) < 1e25 for q in found.quantities)
