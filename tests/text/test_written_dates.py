from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from memgraph.text.dates import date_order, date_readings, json_readings, settled, to_ms


def read_date(text: str, *, alone: bool = True) -> int | None:
    return settled([date_readings(text, alone=alone)])


MOMENT = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "1:56 pm on 8 May, 2023",
        "1:56 p.m. on 8 May 2023",
        "2023-05-08 13:56",
        "2023-05-08T13:56:00Z",
        "2023-05-08T15:56:00+02:00",
        "8 May 2023 at 13:56",
        "May 8th, 2023 1:56 PM",
        "Monday, 8 May 2023, 13:56",
        "08.05.2023 13:56",
        "8. Mai 2023 um 13:56 Uhr",
        "le 8 mai 2023 \u00e0 13h56",
        "8 de mayo de 2023, 13:56",
        "2023/05/08 13:56",
        "Session 3 (2023-05-08 13:56)",
    ],
)
def test_forms_of_one_moment(text: str) -> None:
    assert read_date(text) == to_ms(MOMENT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12:48 am on 1 February, 2023", datetime(2023, 2, 1, 0, 48, tzinfo=UTC)),
        ("12:05 pm on 1 February, 2023", datetime(2023, 2, 1, 12, 5, tzinfo=UTC)),
        ("9 am, 3 March 2024", datetime(2024, 3, 3, 9, tzinfo=UTC)),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
        ("13/8/23", datetime(2023, 8, 13, tzinfo=UTC)),
        ("8/13/2023", datetime(2023, 8, 13, tzinfo=UTC)),
        ("2024\u5e743\u67085\u65e5", datetime(2024, 3, 5, tzinfo=UTC)),
    ],
)
def test_other_moments(text: str, expected: datetime) -> None:
    assert read_date(text) == to_ms(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5/8/2023",
        "2023-13-45",
        "31 April 2023",
        "8 Foo 2023",
        "I met her on 8 May 2023",
        "v1.2",
        "9999-12-31T23:00-02:00",
    ],
)
def test_what_is_no_date_or_two_is_not_guessed(text: str) -> None:
    assert read_date(text) is None


def test_a_date_among_words_is_found_when_asked_for() -> None:
    for text in ("Accepted on 2020-01-02 by all", "minutes-2020-01-02", "ops/2020-01-02.json"):
        assert read_date(text, alone=False) == to_ms(datetime(2020, 1, 2, tzinfo=UTC))


@given(st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9999, 12, 31)))
def test_iso_text_comes_back(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
    assert read_date(moment.isoformat()) == to_ms(moment)


@given(st.text(max_size=200))
def test_any_text_is_a_date_or_none(text: str) -> None:
    found = read_date(text)
    assert found is None or isinstance(found, int)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1683554160, 1683554160000),
        (1683554160000, 1683554160000),
        (1683554160.5, 1683554160500),
        ("1683554160.000100", 1683554160000),
        ("2023-05-08T13:56:00Z", 1683554160000),
        (True, None),
        (17, None),
        (1e300, None),
        (["2023-05-08"], None),
    ],
)
def test_times_in_json(value: object, expected: int | None) -> None:
    assert json_readings(value) == (() if expected is None else (expected,))


def test_the_order_is_that_of_the_dates_which_show_it() -> None:
    assert date_order(["5/6/2024", "25/6/2024"]) == "day first"
    assert date_order(["5/6/2024", "6/25/2024"]) == "month first"
    assert date_order(["5/6/2024", "6/6/2024"]) is None
    assert date_order(["25/6/2024", "6/25/2024"]) is None
    assert date_readings("5/6/2024") == (read_date("2024-06-05"), read_date("2024-05-06"))
    assert read_date("25/6/2024") == read_date("2024-06-25")


def test_two_digits_are_a_year_of_the_last_or_of_this_century() -> None:
    assert read_date("12.05.98") == read_date("12.05.1998")
    assert read_date("5/13/26") == read_date("5/13/2026")
