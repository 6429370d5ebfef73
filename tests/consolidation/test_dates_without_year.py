"""Which year is meant by a day that names none, in what was said on 1 November 2026."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memgraph.consolidation.dating import annotate, find_dates

SAID = int(datetime(2026, 11, 1, 9, tzinfo=UTC).timestamp()) * 1000


@pytest.mark.parametrize(
    ("text", "past", "year"),
    [
        ("I've booked a hotel for December 4.", True, "2026-12-04"),
        ("The demo was moved to November 30.", True, "2026-11-30"),
        ("The deadline was set to the 5th of December.", True, "2026-12-05"),
        ("We signed the lease and move in on January 2.", True, "2027-01-02"),
        ("The contract was signed and ends on March 31.", True, "2027-03-31"),
        ("My visa was extended until June 30.", True, "2027-06-30"),
        ("We postponed the wedding to May 8.", True, "2027-05-08"),
        ("The fair opens on 3 February.", False, "2027-02-03"),
        ("We went to Rome on 12 September.", True, "2026-09-12"),
        ("The server crashed on October 30.", True, "2026-10-30"),
    ],
)
def test_the_year_follows_from_the_words(text: str, past: bool, year: str) -> None:
    assert f"({year})" in annotate(text, find_dates(text, SAID, past=past))


@pytest.mark.parametrize(
    "text",
    [
        "I was born on March 3.",
        "We celebrated his birthday on 9 October.",
        "We went to Rome on December 12.",  # last year, or a slip: nobody knows
    ],
)
def test_no_year_is_guessed(text: str) -> None:
    assert annotate(text, find_dates(text, SAID, past=True)) == text
