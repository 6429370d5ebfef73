"""Times that a text names."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, strategies as st

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.text.dates import DaySpan, moment_of, periods

WEDNESDAY = parse_time("2024-05-15T12:00")
TIMES = "|".join(("March 3", "in May 2023", "2022", "last week", "2 days ago"))


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
        ("yesterday", "2024-05-14", "2024-05-14"),
        ("tomorrow", "2024-05-16", "2024-05-16"),
        ("this week", "2024-05-13", "2024-05-19"),
        ("last week", "2024-05-06", "2024-05-12"),
        ("next weekend", "2024-05-25", "2024-05-26"),
        ("last Tuesday", "2024-05-14", "2024-05-14"),
        ("next Wednesday", "2024-05-22", "2024-05-22"),
        ("this Friday", "2024-05-17", "2024-05-17"),
        ("3 weeks ago", "2024-04-21", "2024-04-27"),
        ("a week ago", "2024-05-08", "2024-05-14"),
        ("two weeks ago", "2024-04-28", "2024-05-04"),
    ],
)
def test_a_time_is_some_days(text: str, first: str, last: str) -> None:
    assert spans(f"What was {text}?") == [(first, last)]


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
    ],
)
def test_agreement_with_a_moment(text: str, agreement: float) -> None:
    [period] = periods(text, 0)
    assert period.agreement(parse_time("2024-06-07T12:00")) == pytest.approx(agreement, abs=1e-3)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999), st.booleans())
def test_agreement_lies_between_0_and_1(ms: int, yearly: bool) -> None:
    first = date(2001, 12, 1).toordinal()
    assert 0.0 <= DaySpan(first, first + 89, yearly).agreement(ms) <= 1.0


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("2024-05-01", "2024-05-01", "2024-05-01T23:59:59.999Z"),
        ("2024-05-01T12:00:00Z", "2024-05-01T12:00:00Z", "2024-05-01T12:00:00Z"),
        ("yesterday", "2024-05-14", "2024-05-14T23:59:59.999Z"),
        ("last week", "2024-05-06", "2024-05-12T23:59:59.999Z"),
        ("May 2023", "2023-05-01", "2023-05-31T23:59:59.999Z"),
        ("today", "2024-05-15", "2024-05-15T12:00:00Z"),
    ],
)
def test_a_moment_is_given_in_words(text: str, begins: str, ends: str) -> None:
    assert moment_of(text, WEDNESDAY) == parse_time(begins)
    assert moment_of(text, WEDNESDAY, ends=True) == parse_time(ends)


@pytest.mark.parametrize("text", ["soon", "the day before yesterday", "Q3 2025", "spring 2025"])
def test_words_of_which_not_all_name_a_time_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        moment_of(text, WEDNESDAY)
