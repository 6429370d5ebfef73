"""What "yesterday" was."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.consolidation.dating import annotate, find_dates


def ms(year: int, month: int, day: int, hour: int = 0) -> int:
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp()) * 1000


FRIDAY = ms(2024, 3, 15, 18)


@pytest.mark.parametrize(
    ("said", "past", "written"),
    [
        ("It broke yesterday.", True, "It broke yesterday (2024-03-14)."),
        ("Last night it broke.", True, "Last night (2024-03-14) it broke."),
        ("the day before yesterday", True, "the day before yesterday (2024-03-13)"),
        ("the day after tomorrow", False, "the day after tomorrow (2024-03-17)"),
        ("three days ago", True, "three days ago (2024-03-12)"),
        ("two weeks ago", True, "two weeks ago (around 2024-03-01)"),
        ("a month ago", True, "a month ago (around 2024-02)"),
        ("2 years ago", True, "2 years ago (around 2022)"),
        ("a few years ago", True, "a few years ago (before 2024)"),
        ("in three months", False, "in three months (around 2024-06)"),
        ("last week", True, "last week (week of 2024-03-04)"),
        ("last weekend", True, "last weekend (2024-03-09 to 2024-03-10)"),
        ("next month", False, "next month (2024-04)"),
        ("last year", True, "last year (2023)"),
        ("last summer", True, "last summer (summer 2023)"),
        ("last December", True, "last December (2023-12)"),
        ("last Friday", True, "last Friday (2024-03-08)"),
        ("next Friday", False, "next Friday (2024-03-22)"),
        ("this Sunday", False, "this Sunday (2024-03-17)"),
        ("on Monday", True, "on Monday (2024-03-11)"),
        ("on Monday", False, "on Monday (2024-03-18)"),
        ("on Monday", None, "on Monday"),
        ("on 5 May", True, "on 5 May"),
        ("on 5 January", True, "on 5 January (2024-01-05)"),
        ("on May 5th", False, "on May 5th (2024-05-05)"),
        ("on May 5th", None, "on May 5th"),
        ("on 31 April", True, "on 31 April"),
        ("on 5 May 2022", True, "on 5 May 2022"),
        ("last winter", True, "last winter"),
        ("the past week", True, "the past week"),
        ("Monday's meeting", True, "Monday's meeting"),
    ],
)
def test_a_relative_date_gets_its_absolute_one(said: str, past: bool | None, written: str) -> None:
    assert annotate(said, find_dates(said, FRIDAY, past=past)) == written


def test_only_a_certain_day_is_a_day() -> None:
    days = {
        said: [each.day for each in find_dates(said, FRIDAY, past=True)]
        for said in ("yesterday", "last week", "a couple of days ago", "since yesterday")
    }
    assert days == {
        "yesterday": [ms(2024, 3, 14)],
        "last week": [None],
        "a couple of days ago": [None],
        "since yesterday": [None],
    }


@given(
    st.sampled_from(
        ["yesterday", "999 years ago", "in 12 months", "last Friday", "on 29 February"]
    ),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([True, False, None]),
)
def test_any_time_is_survived(said: str, at: int, past: bool | None) -> None:
    found = find_dates(said, at, past=past)
    assert all(said[each.start : each.end] for each in found)
