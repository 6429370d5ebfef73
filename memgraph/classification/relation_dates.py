"""Dates and clock times as typed or spoken, resolved with the time of recording."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from memgraph.classification.relation_lexicon import MONTHS
from memgraph.classification.relation_units import ORDINALS, SMALL

_CLOCK: Final = re.compile(
    r"(?<![\d.])([01]?\d|2[0-3])(?:[:h](\d\d)(?::\d\d)?)\s?(a\.?m\.?|p\.?m\.?)?(?![\d])"
    r"|(?<![\d.,])(\d\d?)\s?(?:o'clock)?\s?(a\.m\.|p\.m\.|am\b|pm\b|o'clock|uhr|時)",
    re.I,
)
_SPOKEN: Final = re.compile(
    r"\b(half|quarter|twenty|ten|five) (past|to) "
    r"(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b|\b(noon|midnight)\b",
    re.I,
)
_ISO: Final = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_DOTTED: Final = re.compile(
    r"\b(\d\d?)\.(\d\d?)\.(\d{4})\b|\b(?:am|bis|vom|zum|ab) (\d\d?)\.(\d\d?)\.(?!\d)", re.I
)
_MONTH: Final = "|".join(sorted((m for m in MONTHS if len(m) > 2), key=len, reverse=True))
_DAY_MONTH: Final = re.compile(
    rf"\b(\d\d?)(?:st|nd|rd|th|er)?\.?\s(?:of\s|de\s|to\s\d+\s)?({_MONTH})\b\.?(?:\s(?:de\s)?(\d{{4}}))?"
    rf"|\b({_MONTH})\s(\d\d?)(?:st|nd|rd|th)?\b(?:,?\s(\d{{4}}))?"
    rf"|\b({'|'.join(ORDINALS)}) of ({_MONTH})\b|(\d\d?)月(\d\d?)日",
    re.I,
)
_MONTH_YEAR: Final = re.compile(rf"\b({_MONTH})\s(\d{{4}})\b|\bend of (\d{{4}})\b", re.I)
_DAY: Final = re.compile(r"\bthe (\d\d?)(?:st|nd|rd|th)\b", re.I)
_WORD_CLOCK: Final = re.compile(
    r"\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|zwei|drei|vier|fünf|sechs|"
    r"sieben|acht|neun|zehn|elf|zwölf) (?:o'clock|uhr)\b(?: (nachmittags|abends|in the "
    r"(?:afternoon|evening)))?",
    re.I,
)


def cut(pattern: re.Pattern[str], text: str) -> tuple[list[re.Match[str]], str]:
    """The matches, and the text with blanks in their place (so that no number counts twice)."""
    found = list(pattern.finditer(text))
    for match in found:
        start, end = match.span()
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return found, text


def _clock_minutes(match: re.Match[str]) -> int | None:
    hour, minute, half, bare, suffix = match.groups()
    if hour is not None:
        value = int(hour) * 60 + int(minute)
        suffix = half
    else:
        value = int(bare) * 60
    mark = (suffix or "").lower().replace(".", "")
    if mark == "pm" and value < 720:
        value += 720
    return value if value < 1440 else None


def _spoken_minutes(match: re.Match[str]) -> int:
    if match.group(4):
        return 720 if match.group(4).lower() == "noon" else 0
    minutes = {"half": 30, "quarter": 15, "twenty": 20, "ten": 10, "five": 5}[
        match.group(1).lower()
    ]
    hour = int(SMALL[match.group(3).lower()]) * 60
    return hour + minutes if match.group(2).lower() == "past" else hour - minutes


def read_clocks(text: str) -> tuple[set[int], str]:
    clocks: set[int] = set()
    found, text = cut(_CLOCK, text)
    for match in found:
        value = _clock_minutes(match)
        if value is not None:
            clocks.add(value)
    spoken, text = cut(_SPOKEN, text)
    clocks.update(_spoken_minutes(match) for match in spoken)
    worded, text = cut(_WORD_CLOCK, text)
    clocks.update(int(SMALL[m.group(1).lower()] + (12 if m.group(2) else 0)) * 60 for m in worded)
    return clocks, text


def _day_month(match: re.Match[str]) -> tuple[int, int, int]:
    day, month, year, month2, day2, year2, ordinal, month3, month4, day4 = match.groups()
    if month:
        return int(year or 0), MONTHS[month.lower()], int(day)
    if month2:
        return int(year2 or 0), MONTHS[month2.lower()], int(day2)
    if ordinal:
        return 0, MONTHS[month3.lower()], ORDINALS[ordinal.lower()]
    return 0, int(month4), int(day4)


def read_relative(text: str, time_ms: int | None) -> set[tuple[int, int, int]]:
    if time_ms is None:
        return set()
    now = datetime.fromtimestamp(time_ms / 1000, tz=UTC)
    low = text.lower()
    dates = set()
    for forms, days in (
        (("today", "this morning", "tonight", "heute", "aujourd'hui", "今日", "hoy"), 0),
        (("yesterday", "last night", "gestern", "hier ", "昨日", "ayer"), -1),
        (("tomorrow", "morgen ", "demain", "明日", "mañana "), 1),
    ):
        if any(word in low for word in forms):
            day = now + timedelta(days=days)
            dates.add((day.year, day.month, day.day))
    return dates


def read_dates(text: str, time_ms: int | None) -> tuple[set[tuple[int, int, int]], str]:
    dates = read_relative(text, time_ms)
    found, text = cut(_ISO, text)
    dates.update((int(y), int(m), int(d)) for y, m, d in (match.groups() for match in found))
    found, text = cut(_DOTTED, text)
    for match in found:
        day, month = (match.group(1) or match.group(4)), (match.group(2) or match.group(5))
        year = match.group(3)
        if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
            dates.add((int(year or 0), int(month), int(day)))
    found, text = cut(_DAY_MONTH, text)
    dates.update(map(_day_month, found))
    found, text = cut(_DAY, text)
    dates.update((0, 0, int(match.group(1))) for match in found)
    found, text = cut(_MONTH_YEAR, text)
    for match in found:
        month, year, end = match.groups()
        dates.add((int(end), 12, 31) if end else (int(year), MONTHS[month.lower()], 0))
    return dates, text


def same_date(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    """Equal where both say something; a missing year or day is no difference."""
    return all(x == y or 0 in (x, y) for x, y in zip(a, b, strict=True))


def same_clock(a: int, b: int) -> bool:
    """Equal, a twelve-hour time read either way."""
    return a == b or abs(a - b) == 720
