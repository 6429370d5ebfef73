"""Times that a text names."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.clock import parse_time
from memgraph.text.dates import DaySpan, periods

WEDNESDAY = parse_time("2024-05-15T12:00")
TIMES = "|".join(("March 3", "in May 2023", "late 2022", "Christmas", "last week", "2 days ago"))


def spans(text: str, now_ms: int = WEDNESDAY) -> list[tuple[str, str]]:
    """Return the first and last day of every period; without the year where there is none."""
    return [
        tuple(
            date.fromordinal(day).strftime("%m-%d" if each.yearly else "%Y-%m-%d")
            for day in (each.first, each.last)
        )
        for each in periods(text, now_ms)
    ]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("in March 2024", "2024-03-01", "2024-03-31"),
        ("on 7 June 2024", "2024-06-07", "2024-06-07"),
        ("since 2024-06-07", "2024-06-07", "2024-06-07"),
        ("the 3rd of Sept. 2022", "2022-09-03", "2022-09-03"),
        ("on Aug 3", "08-03", "08-03"),
        ("in August", "08-01", "08-31"),
        ("in 2021", "2021-01-01", "2021-12-31"),
        ("Q3 2022", "2022-07-01", "2022-09-30"),
        ("at the end of summer 2023", "2023-08-02", "2023-08-31"),
        ("winter of 2022", "2022-12-01", "2023-02-28"),
        ("last spring", "2023-03-01", "2023-05-31"),
        ("this summer", "2024-06-01", "2024-08-31"),
        ("next spring", "2025-03-01", "2025-05-31"),
        ("during the winter", "12-01", "02-28"),
        ("early May", "05-01", "05-10"),
        ("in the second half of 2022", "2022-07-02", "2022-12-31"),
        ("the first half of September 2022", "2022-09-01", "2022-09-15"),
        ("in the middle of June 2022", "2022-06-11", "2022-06-20"),
        ("the second week of November", "11-08", "11-14"),
        ("the last week of May 2023", "2023-05-25", "2023-05-31"),
        ("the last weekend of May 2023", "2023-05-27", "2023-05-28"),
        ("around Christmas", "12-25", "12-25"),
        ("last Christmas", "2023-12-25", "2023-12-25"),
        ("between August 11 and August 15 2023", "2023-08-11", "2023-08-15"),
        ("from June to September 2022", "2022-06-01", "2022-09-30"),
        ("yesterday", "2024-05-14", "2024-05-14"),
        ("tomorrow", "2024-05-16", "2024-05-16"),
        ("this week", "2024-05-13", "2024-05-19"),
        ("last week", "2024-05-06", "2024-05-12"),
        ("next weekend", "2024-05-25", "2024-05-26"),
        ("last year", "2023-01-01", "2023-12-31"),
        ("last Tuesday", "2024-05-14", "2024-05-14"),
        ("next Wednesday", "2024-05-22", "2024-05-22"),
        ("this Friday", "2024-05-17", "2024-05-17"),
        ("3 weeks ago", "2024-04-21", "2024-04-27"),
        ("a week ago", "2024-05-08", "2024-05-14"),
    ],
)
def test_a_time_is_some_days(text: str, first: str, last: str) -> None:
    assert spans(f"What was {text}?") == [(first, last)]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("the week after July 4, 2023", "2023-07-05", "2023-07-11"),
        ("the week before August 3, 2023", "2023-07-27", "2023-08-02"),
        ("two weeks before August 11, 2023", "2023-07-25", "2023-07-31"),
        ("the Sunday before October 25, 2022", "2022-10-23", "2022-10-23"),
        ("the Monday after October 25, 2022", "2022-10-31", "2022-10-31"),
        ("the day after Christmas 2022", "2022-12-26", "2022-12-26"),
        ("last weekend before April 10, 2023", "2023-04-08", "2023-04-09"),
        ("the weekend after May 10, 2023", "2023-05-13", "2023-05-14"),
    ],
)
def test_beside_a_day_both_count(text: str, first: str, last: str) -> None:
    beside, day = spans(text)
    assert beside == (first, last)
    assert day[0] == day[1]


def test_several_times_in_their_order() -> None:
    assert spans("in 2021, June 7th, 2024 and again in 2021") == [
        ("2021-01-01", "2021-12-31"),
        ("2024-06-07", "2024-06-07"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "they may march on",
        "May I ask?",
        "Mark said so, and Jan too",
        "room 20245",
        "31 June 2022",
        "2023-02-31",
        "February 29",
        "spring roll, fall of the wall",
        "last but not least",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert spans(text) == []


@given(
    st.text() | st.from_regex(rf"(({TIMES}) ?(and|before|to|,)? ){{0,4}}"),
    st.integers(0, 4_000_000_000_000),
)
def test_any_text_has_some_periods(text: str, now_ms: int) -> None:
    found = periods(text, now_ms)
    assert len(set(found)) == len(found)
    assert all(each.first <= each.last for each in found)


@pytest.mark.parametrize(
    ("text", "agreement"),
    [
        ("in June 2024", 1.0),
        ("on June 7 2024", 1.0),
        ("on 7 June", 1.0),
        ("in 2024", 0.5),
        ("in June", 0.5),
        ("on 17 June 2024", 0.368),
        ("in May 2024", 0.497),
        ("in 2022", 0.0),
        ("in the winter", 0.0),
    ],
)
def test_agreement_with_a_moment(text: str, agreement: float) -> None:
    [period] = periods(text, 0)
    assert period.agreement(parse_time("2024-06-07T12:00")) == pytest.approx(agreement, abs=1e-3)


@pytest.mark.parametrize("day", ["2023-12-30", "2024-01-02", "2000-02-29"])
def test_a_winter_lies_in_two_years(day: str) -> None:
    [period] = periods("over the winter", 0)
    assert period.agreement(parse_time(f"{day}T12:00")) >= 0.45


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999), st.booleans())
def test_agreement_lies_between_0_and_1(ms: int, yearly: bool) -> None:
    first = date(2001, 12, 1).toordinal()
    assert 0.0 <= DaySpan(first, first + 89, yearly).agreement(ms) <= 1.0


def test_the_middle_of_a_day_is_that_day() -> None:
    assert spans("in the middle of 5 May 2026") == [("2026-05-05", "2026-05-05")]
