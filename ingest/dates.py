"""Dates as people write them, to milliseconds. An ambiguous date is not guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Literal

from memgraph.text.words import LETTERS_AND_DIGITS, MONTH_NUMBERS, WEEKDAY_NUMBERS

DateOrder = Literal["day first", "month first"]

_MAX_CHARS = 120
# Full names, abbreviations, and how they are often typed without accents.
_MONTHS = MONTH_NUMBERS | {
    name: number
    for number, names in enumerate(
        (
            "jan jänner ene", "feb fevrier févr", "mar mrz", "apr abr", "", "jun", "jul",
            "aug aout ago", "sep sept", "oct okt", "nov", "dec dez decembre dic",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_FILLER_WORDS = (
    "on at the of um am den der le à a las el de del date dated time session conversation chat "
    "day meeting call mon tue tues wed thu thur thurs fri sat sun datum fecha uhr utc gmt z h"
)
_FILLERS = frozenset((*_FILLER_WORDS.split(), *WEEKDAY_NUMBERS))
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})(?=\b|T)")
_YEAR_FIRST = re.compile(r"(?<!\d)(\d{4})[/.年](\d{1,2})[/.月](\d{1,2})日?")
_DOTTED = re.compile(r"(?<![\d.])(\d{1,2})\. ?(\d{1,2})\. ?(\d{4}|\d{2})(?!\d)")
_SLASHED = re.compile(r"(?<!\d)(\d{1,2})[/-](\d{1,2})[/-](\d{4}|\d{2})(?!\d)")
_DAY_MONTH = re.compile(
    r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|er|º)?\.?,?\s+(?:of\s+|de\s+)?([^\W\d_]{3,10})\.?,?\s+(?:de\s+|del\s+)?(\d{4})(?!\d)"
)
_MONTH_DAY = re.compile(r"\b([^\W\d_]{3,10})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})(?!\d)")
_CLOCK = re.compile(
    r"(?<![\d:])(\d{1,2})[:.h](\d{2})(?:[:.](\d{2})(?:[.,](\d{1,6}))?)?\s*([ap]\.?m\.?(?![^\W\d_]))?",
    re.IGNORECASE,
)
_HOUR = re.compile(r"(?<![\d:])(\d{1,2})\s*([ap]\.?m\.?)(?![^\W\d_])", re.IGNORECASE)
_ZONE = re.compile(r"(?<=\d)\s*(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})(?!\d)")
# Seconds for the years 2001 to 2286, milliseconds for 2001 on.
_SECONDS = (10**9, 10**10)
_MILLIS = (10**12, 10**13)


def date_order(texts: Iterable[str]) -> DateOrder | None:
    """Return the order of dates such as 05/06/2023 in texts that belong together.

    A number over twelve shows the position of the day. None: no date shows it, or they disagree.
    """
    orders: set[DateOrder] = set()
    for text in texts:
        for match in _SLASHED.finditer(text):
            first, second = int(match[1]), int(match[2])
            if first != second and max(first, second) <= 31 and min(first, second) <= 12:
                if first > 12:
                    orders.add("day first")
                elif second > 12:
                    orders.add("month first")
    return orders.pop() if len(orders) == 1 else None


def read_date(text: str, *, alone: bool = True, order: DateOrder | None = None) -> int | None:
    """Return the milliseconds of the date in ``text`` (with its time, else midnight; default UTC).

    With ``alone`` the text must be a date with no other words than "on" or a weekday; otherwise the
    first date in it counts. None: no date, or one that is ambiguous without an ``order``.
    """
    text = text.strip()[:_MAX_CHARS]
    dated = _find_date(text, order)
    if dated is None:
        return None
    day, span = dated
    rest = text[: span[0]] + " " + text[span[1] :]
    offset, rest = _take_zone(text, rest)
    clock, rest = _take_clock(rest)
    if alone and not all(_is_filler(word) for word in LETTERS_AND_DIGITS.findall(rest)):
        return None
    moment = day + clock - offset
    if moment.year < 1000:
        return None
    return to_ms(moment)


def read_json_time(value: object) -> int | None:
    """Return the milliseconds of a JSON time: text, or seconds or milliseconds since 1970."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _from_number(float(value))
    if not isinstance(value, str):
        return None
    if re.fullmatch(r"\d{9,13}(\.\d{1,9})?", value):
        return _from_number(float(value))
    return read_date(value)


def to_ms(moment: datetime) -> int:
    """Return milliseconds since 1970."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _from_number(value: float) -> int | None:
    if _SECONDS[0] <= value < _SECONDS[1]:
        return int(value * 1000)
    if _MILLIS[0] <= value < _MILLIS[1]:
        return int(value)
    return None


def _is_filler(word: str) -> bool:
    return word.casefold() in _FILLERS or (word.isdecimal() and len(word) <= 3)


def _find_date(
    text: str, order: DateOrder | None = None
) -> tuple[datetime, tuple[int, int]] | None:
    for pattern in (_ISO, _YEAR_FIRST):
        if match := pattern.search(text):
            year, month, day = (int(part) for part in match.groups())
            return _day(year, month, day, match)
    for match in _DAY_MONTH.finditer(text):
        if month_number := _MONTHS.get(match[2].casefold()):
            return _day(int(match[3]), month_number, int(match[1]), match)
    for match in _MONTH_DAY.finditer(text):
        if month_number := _MONTHS.get(match[1].casefold()):
            return _day(int(match[3]), month_number, int(match[2]), match)
    if match := _DOTTED.search(text):
        return _day(_year(match[3]), int(match[2]), int(match[1]), match)
    if match := _SLASHED.search(text):
        first, second = int(match[1]), int(match[2])
        if first > 12 or first == second or (order == "day first" and second <= 12):
            return _day(_year(match[3]), second, first, match)
        if second > 12 or order == "month first":
            return _day(_year(match[3]), first, second, match)
    return None


def _year(digits: str) -> int:
    return int(digits) if len(digits) == 4 else 2000 + int(digits)


def _day(
    year: int, month: int, day: int, match: re.Match[str]
) -> tuple[datetime, tuple[int, int]] | None:
    try:
        return datetime(year, month, day, tzinfo=UTC), match.span()
    except ValueError:
        return None


def _take_zone(text: str, rest: str) -> tuple[timedelta, str]:
    match = _ZONE.search(rest) if ":" in text else None
    if match is None or int(match[2]) > 14 or int(match[3]) > 59:
        return timedelta(), rest
    size = timedelta(hours=int(match[2]), minutes=int(match[3]))
    zone = timezone(size if match[1] == "+" else -size).utcoffset(None)
    return zone, rest[: match.start()] + " " + rest[match.end() :]


def _take_clock(rest: str) -> tuple[timedelta, str]:
    for match in _CLOCK.finditer(rest):
        hour, half = int(match[1]), (match[5] or "").casefold()
        minute, second = int(match[2]), int(match[3] or 0)
        clock = _clock(hour, minute, second, half)
        if clock is not None:
            fraction = timedelta(microseconds=int((match[4] or "0").ljust(6, "0")))
            before = rest[: match.start()].removesuffix("T")
            return clock + fraction, before + " " + rest[match.end() :]
    hour_only = _HOUR.search(rest)
    if hour_only is not None:
        clock = _clock(int(hour_only[1]), 0, 0, hour_only[2].casefold())
        if clock is not None:
            return clock, rest[: hour_only.start()] + " " + rest[hour_only.end() :]
    return timedelta(), rest


def _clock(hour: int, minute: int, second: int, half: str) -> timedelta | None:
    if minute > 59 or second > 59 or hour > 23 or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    return timedelta(hours=hour, minutes=minute, seconds=second)
