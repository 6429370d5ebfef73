"""Parse dates and times in text.

``periods`` parses the times that a question names (English: days, months, years and times relative
to now), ``find_dates`` locates the written dates in a text, and ``date_readings`` reads the first.
Ambiguous dates are not guessed. All times are UTC.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, date, datetime, timedelta, timezone
from typing import Final, Literal, NamedTuple

from memgraph.clock import MS_PER_DAY, iso, parse_time
from memgraph.errors import InvalidInput
from memgraph.text.gazetteer import gazetteer
from memgraph.text.lexicon import (
    CARDINALS,
    MONTH_NAMES,
    MONTH_NUMBERS,
    WEEKDAY_NAMES,
    WEEKDAY_NUMBERS,
)
from memgraph.text.stem import WORDS

# Not from the calendar module, whose names depend on the locale of the process.
MONTHS = tuple(name.title() for name in MONTH_NAMES["en"])
DAYS_AWAY = 10.0
"""The number of days outside a period over which agreement decays by the factor e."""
_WEEKDAYS = WEEKDAY_NAMES["en"]
_EPOCH = date(1970, 1, 1).toordinal()
_ANY_YEAR = 2001
_WEEK = 7
_NAMES = [each[:3].lower() for each in MONTHS]
_PERIOD = re.compile(r"\d{4}(?:-\d\d)?")
_MONTH = "|".join(rf"{each}|{each[:3]}t?\b\.?" for each in MONTHS)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_UNIT = r"day|week|weekend|month|year"
_COUNTS = ("a", "an", *CARDINALS[1:7])
_TIME = re.compile(
    r"\b(?P<iso>(?:19|20)\d\d(?:-\d\d){0,2})\b"
    rf"|\b(?:(?P<day>{_DAY})\s+(?:of\s+)?)?(?P<month>{_MONTH})(?!\w)"
    rf"(?:\s+(?:the\s+)?(?P<day_after>{_DAY})\b(?!\s*(?:{_MONTH})))?"
    r"(?:,?\s+(?:of\s+|in\s+)?(?P<year>(?:19|20)\d\d)\b)?"
    r"|\b(?P<today>yesterday|today|tonight|tomorrow)\b"
    rf"|\b(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)})\s+(?P<ago>{_UNIT})s?\s+ago\b"
    rf"|\b(?P<which>last|this|next|past)\s+(?P<unit>{_UNIT}|{'|'.join(_WEEKDAYS)})\b"
    r"(?!\s+(?:of|before|after)\b)",
    re.IGNORECASE,
)
_SENTENCE_START = re.compile(r"(?:^|[.!?])\s*$")


@dataclass(frozen=True, slots=True)
class DaySpan:
    """A span of days, as proleptic Gregorian ordinals.

    Attributes:
        first, last: the first and the last day, both inclusive.
        yearly: True if no year was named, so that the span recurs every year.
    """

    first: int
    last: int
    yearly: bool = False

    def agreement(self, ms: int) -> float:
        """Return how well a time matches the period, 0..1; 1 within a named day, week or month.

        Within a year, or within a month of any year, it is only 0.5: most memories of such a long
        period are not the ones in question. Outside the period it decays by the factor e for every
        `DAYS_AWAY` days.

        Args:
            ms: milliseconds since 1970.
        """
        day = _EPOCH + ms // MS_PER_DAY
        spans = self._about(day) if self.yearly else ((self.first, self.last),)
        away = min(max(first - day, day - last, 0) for first, last in spans)
        return self._share * math.exp(-away / DAYS_AWAY)

    def _about(self, day: int) -> Iterator[tuple[int, int]]:
        """Yield the first and last day of the span in the year of a day and the adjacent years."""
        first, last = date.fromordinal(self.first), date.fromordinal(self.last)
        own_year = date.fromordinal(day).year
        for year in range(max(own_year - 1, 1), min(own_year + 2, MAXYEAR)):
            end = last.replace(year=year + last.year - first.year)
            yield first.replace(year=year).toordinal(), end.toordinal()

    @property
    def _share(self) -> float:
        days = self.last - self.first + 1
        if self.yearly:
            return 1.0 if days <= _WEEK else 0.5
        return 1.0 - 0.5 * min(max(math.log(days / 31) / math.log(365 / 31), 0.0), 1.0)


def moment_of(text: str, now_ms: int, *, ends: bool = False) -> int:
    """Parse a time in ISO 8601 or in words, and return it in milliseconds.

    Args:
        text: such as ``now``, ``yesterday``, ``last week``, ``3 days ago`` or ``May 2026``.
        ends: return the end of the days, but at most the present; else return their beginning.

    Raises:
        InvalidInput: the text is not a time.
    """
    if text.strip().lower() == "now":
        return now_ms
    try:
        moment = parse_time(text)
    except InvalidInput:
        days = periods(text, now_ms)
        # Of "the day before yesterday" only a part is read.
        if len(days) != 1 or _TIME.fullmatch(text.strip()) is None:
            raise
        day = days[0].last + 1 if ends else days[0].first
        return min((day - _EPOCH) * MS_PER_DAY - (1 if ends else 0), now_ms)
    # A date without a time means the whole day.
    return (
        min(moment + MS_PER_DAY - 1, now_ms) if ends and len(text) == len("2026-01-01") else moment
    )


def periods(text: str, now_ms: int) -> tuple[DaySpan, ...]:
    """Return the distinct periods that a text names, in order.

    Args:
        now_ms: the present in milliseconds, for relative times such as "last week".
    """
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    spans: dict[DaySpan, None] = {}
    for match in _TIME.finditer(text):
        try:
            if (span := _span_of(match, text[: match.start()], today)) is not None:
                spans[span] = None
        except (ValueError, OverflowError):
            # An invalid date such as 31 June, or a year out of range.
            continue
    return tuple(spans)


def _span_of(match: re.Match[str], before: str, today: date) -> DaySpan | None:
    """Return the period of a match of `_TIME`, or None if it is not a time."""
    group = {name: value.lower() for name, value in match.groupdict().items() if value}
    ordinal = today.toordinal()
    if "iso" in group:
        iso_year, *rest = (int(part) for part in group["iso"].split("-"))
        return _in_month(iso_year, *rest) if rest else _months(iso_year, 1, 12)
    if "month" in group:
        day = group.get("day") or group.get("day_after")
        year = int(group["year"]) if "year" in group else None
        # "May" at the start of a sentence and "march" may be verbs. So a month without a day or a
        # year must be capitalised and written in full.
        name = match["month"].rstrip(".")
        is_verb = name == "May" and _SENTENCE_START.search(before) is not None
        if not (day or year or (name in MONTHS and not is_verb)):
            return None
        month = _NAMES.index(group["month"][:3]) + 1
        return _in_month(year, month, int(day.rstrip("stndrh")) if day else None)
    if "today" in group:
        ordinal += {"yesterday": -1, "tomorrow": 1}.get(group["today"], 0)
        return DaySpan(ordinal, ordinal)
    if "ago" in group:
        count = group["count"]
        steps = int(count) if count.isdecimal() else max(_COUNTS.index(count) - 1, 1)
        return _days_ago(ordinal, steps, group["ago"])
    step = {"this": 0, "next": 1}.get(group["which"], -1)
    return _beside(today, group["unit"], step)


def _beside(today: date, unit: str, step: int) -> DaySpan:
    """Return the weekday or the period before (-1), around (0) or after (1) a day."""
    ordinal = today.toordinal()
    if unit in _WEEKDAYS:
        away = _WEEKDAYS.index(unit) - today.weekday()
        day = ordinal + away + 7 * ((step == 1 and away <= 0) - (step == -1 and away >= 0))
        return DaySpan(day, day)
    if unit == "day":
        return DaySpan(ordinal + step, ordinal + step)
    if unit in ("week", "weekend"):
        monday = ordinal - today.weekday() + 7 * step
        return DaySpan(monday + (5 if unit == "weekend" else 0), monday + 6)
    if unit == "month":
        months = 12 * today.year + today.month - 1 + step
        return _months(months // 12, months % 12 + 1, 1)
    return _months(today.year + step, 1, 12)


def _days_ago(ordinal: int, count: int, unit: str) -> DaySpan:
    """Return the days meant by "two weeks ago": as many as the unit has, around the day."""
    days = {"day": 1, "month": 30, "year": 365}.get(unit, _WEEK)
    if count == 1:
        return DaySpan(ordinal - days, ordinal - 1)
    middle = ordinal - days * count
    return DaySpan(middle - days // 2, middle + days // 2)


def _in_month(year: int | None, month: int, day: int | None = None) -> DaySpan:
    """Return a day of a month, or the whole month. Raises ValueError: there is no such day."""
    if day is None:
        return _months(year, month, 1)
    only = date(year or _ANY_YEAR, month, day).toordinal()
    return DaySpan(only, only, year is None)


def _months(year: int | None, month: int, count: int) -> DaySpan:
    """Return the span of ``count`` whole months that begins with a month."""
    begin = year or _ANY_YEAR
    after = month - 1 + count
    end = date(begin + after // 12, after % 12 + 1, 1)
    return DaySpan(date(begin, month, 1).toordinal(), end.toordinal() - 1, year is None)


# Lower-cased, these are verbs more often than months when a number follows ("may 5 people").
_ALSO_VERBS: Final = frozenset(("may", "march", "mar", "dec"))
# Full names, abbreviations, and common spellings without accents.
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

_YEAR: Final = r"[12]\d{3}(?!\d)"
_YEAR_ALONE: Final = r"(?:1[89]|20|21)\d\d(?!\d)"
_DIGITS = re.compile(r"\d+")
_DAY_FIRST = re.compile(
    r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|º|ª|\.|e)?[ \u00a0-]{0,2}"
    r"(?:of the |of |de |di |d['’])?(?P<month>[^\W\d_]{3,10})(?!\w)"
    rf"(?:\.?,?[ \u00a0-](?:de |del |do )?(?P<year>{_YEAR})|\.? ['’](?P<short>\d\d)(?!\w))?"
)
_AFTER_MONTH = re.compile(
    rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\w%]|[.,:/-]\d)(?:,?[ \u00a0](?P<year>{_YEAR}))?"
    rf"|{_YEAR_ALONE})(?![\w%]|[.:/-]\d)"
)
_MONTH_BEFORE = re.compile(
    r"(?P<month>[^\W\d_]{3,10})\.?,?[ \u00a0-](?:(?:de|del|of|the) )?(?:['’](?=\d\d$))?$"
)
_WEEKDAY_BEFORE = re.compile(
    r"(?P<weekday>[^\W\d_]{2,10})\.?,?[ \u00a0](?:(?:den|dem|the|le|el) )?$"
)
_YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?!-?\d|[/.]\d)"
    r"|(?P<y>\d{4})-(?P<m>\d\d)(?![\w-])"
)
_YEAR_LAST = re.compile(
    r"(?<!\d)(?P<first>\d{1,2})(?P<mark>[-/.]) ?(?P<second>\d{1,2})(?P=mark) ?(?P<year>\d{4}|\d\d)"
    r"(?![\d/-]|\.\d)"
)
_NUMERIC_DAY = re.compile(r"(?P<d>\d{1,2})(?:\.(?P<m>\d{1,2})\.(?!\d)|/(?P<n>\d{1,2})(?![\d/]))")
_JAPANESE = re.compile(
    r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})日"
    r"(?:[（(][月火水木金土日](?:曜日?)?[)）]|[月火水木金土日]曜日?)?"
    r"|\d{4}年\d{1,2}月(?!\d)"
)
_LOOK_BACK: Final = 24


class _WrittenDate(NamedTuple):
    """A date in a text, with the numbers that are known; ``either``: day and month may be swapped.

    ``year``: 0 if it has none. ``month``: 0 if it has none, or one in a language of which the
    months are not known by number.
    """

    start: int
    end: int
    year: int = 0
    month: int = 0
    day: int = 0
    either: bool = False


def find_dates(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each date in ``text``, in order, without overlap."""
    return ((date.start, date.end) for date in _find(text))


def _find(text: str) -> Iterator[_WrittenDate]:
    done = 0
    for match in _DIGITS.finditer(text):
        start, end = match.span()
        if start < done or end - start > 4 or _is_continuation(text, start):
            continue
        date = _japanese(text, start, end) or _numeric(text, start, end)
        date = date or _day_first(text, start, end) or _month_first(text, start)
        if date and date.start >= done:
            done = date.end
            yield date


def _is_continuation(text: str, start: int) -> bool:
    """Return True if the digits continue a word, a version, an amount or a path."""
    if start == 0:
        return False
    before = text[start - 1]
    if before in "./:,":
        return start > 1 and not text[start - 2].isspace() and text[start - 2].isdigit()
    return before in "$€£#+\\_=&" or (before.isascii() and before.isalpha())


def _japanese(text: str, start: int, end: int) -> _WrittenDate | None:
    match = _JAPANESE.match(text, start) if text[end : end + 1] in ("年", "月") else None
    if match is None:
        return None
    year, month, day = (int(match[name] or 0) for name in ("year", "month", "day"))
    return _WrittenDate(*match.span(), year, month, day)


def _numeric(text: str, start: int, end: int) -> _WrittenDate | None:
    if text[end : end + 1] not in ("-", "/", "."):
        return None
    match = _YEAR_FIRST.match(text, start)
    # "minutes-2026-05-12" has a date, but not "1-2026-05-12".
    if start and text[start - 1] in "-/." and not (match and text[max(0, start - 2)].isalpha()):
        return None
    if match:
        year, month = int(match["year"] or match["y"]), int(match["month"] or match["m"])
        day, either = int(match["day"] or 0), False
        is_year = match["mark"] == "-" and year >= 1000
    elif match := _YEAR_LAST.match(text, start):
        year, day, month = (int(match[name]) for name in ("year", "first", "second"))
        is_year = len(match["year"]) == 2
        # Two digits from 69 on are a year of the last century, as in POSIX's ``%y``.
        year += (1900 if year >= 69 else 2000) if is_year else 0
        either = match["mark"] != "." and day != month and max(day, month) <= 12
        if match["mark"] != "." and month > 12:
            day, month = month, day
    else:
        return _bare_day_month(text, start)
    if not (day <= 31 and 1 <= month <= 12 and (is_year or 1800 <= year <= 2199)):
        return None
    return _WrittenDate(_weekday_start(text, start), match.end(), year, month, day, either)


def _bare_day_month(text: str, start: int) -> _WrittenDate | None:
    """Match a date without a year, such as ``am 7.5.`` or ``on 7/5``, after a word for dates."""
    match = _NUMERIC_DAY.match(text, start)
    if match is None or not 1 <= int(match["d"]) <= 31:
        return None
    month = int(match["m"] or match["n"])
    before = text[max(0, start - 8) : start].lower().split()
    if not 1 <= month <= 12 or not before:
        return None
    if before[-1] not in gazetteer().cues["date_before"]:
        return None
    return _WrittenDate(start, match.end())


def _day_first(text: str, start: int, end: int) -> _WrittenDate | None:
    if end - start > 2 or (start and text[start - 1] in "./:,"):
        return None
    match = _DAY_FIRST.match(text, start)
    if match is None or not _is_month(match["month"]) or match.start("month") == end:
        return None
    if not 1 <= int(match["day"]) <= 31:
        return None
    year = match["year"] or (match["short"] and f"20{match['short']}")
    return _with_month(text, start, match.end(), year, match["month"], match["day"])


def _month_first(text: str, start: int) -> _WrittenDate | None:
    if start == 0 or text[start - 1] not in " \u00a0-'’":
        return None
    lowest = max(0, start - _LOOK_BACK)
    before = _MONTH_BEFORE.search(text[lowest:start])
    if before is None or not _is_month(before["month"]):
        return None
    first = lowest + before.start("month")
    if first and text[first - 1].isalnum():
        return None
    match = _AFTER_MONTH.match(text, start)
    if match is None or (match["day"] and not 1 <= int(match["day"]) <= 31):
        return None
    if match["day"] and before["month"] in _ALSO_VERBS:
        return None
    return _with_month(text, first, match.end(), match["year"], before["month"], match["day"])


def _is_month(word: str) -> bool:
    return word.casefold() in gazetteer().cues["month"] or word.casefold() in _MONTHS


def _with_month(
    text: str, start: int, end: int, year: str | None, month: str, day: str | None
) -> _WrittenDate:
    number = _MONTHS.get(month.casefold(), 0)
    return _WrittenDate(_weekday_start(text, start), end, int(year or 0), number, int(day or 0))


def _weekday_start(text: str, start: int) -> int:
    """Return the start of the weekday before a date, or ``start`` if there is none."""
    lowest = max(0, start - _LOOK_BACK)
    before = _WEEKDAY_BEFORE.search(text[lowest:start])
    if before is None:
        return start
    word = before["weekday"]
    if word.casefold() in gazetteer().cues["weekday"] or word in gazetteer().cues["short_weekday"]:
        return lowest + before.start("weekday")
    return start


DateOrder = Literal["day first", "month first"]

_MAX_CHARS = 120
_FILLER_WORDS = (
    "on at the of um am den der le à a las el de del date dated time session conversation chat "
    "day meeting call mon tue tues wed thu thur thurs fri sat sun datum fecha uhr utc gmt z h"
)
_FILLERS = frozenset((*_FILLER_WORDS.split(), *WEEKDAY_NUMBERS))
_CLOCK = re.compile(
    r"(?<![\d:])(\d{1,2})[:.h](\d{2})(?:[:.](\d{2})(?:[.,](\d{1,6}))?)?\s*([ap]\.?m\.?(?![^\W\d_]))?",
    re.IGNORECASE,
)
_HOUR = re.compile(r"(?<![\d:])(\d{1,2})\s*([ap]\.?m\.?)(?![^\W\d_])", re.IGNORECASE)
_ZONE = re.compile(r"(?<=\d)\s*(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})(?!\d)")
# Seconds and milliseconds for the years 2001 to 2286.
_SECONDS = (10**9, 10**10)
_MILLIS = (10**12, 10**13)


def date_order(texts: Iterable[str]) -> DateOrder | None:
    """Return the order of day and month in dates such as 05/06/2023, in texts of one origin.

    A number over twelve must be the day. Return None if no date shows the order, or if the dates
    disagree.
    """
    orders: set[DateOrder] = set()
    for match in (match for text in texts for match in _YEAR_LAST.finditer(text)):
        first, second = int(match["first"]), int(match["second"])
        if match["mark"] != "." and max(first, second) <= 31 and min(first, second) <= 12:
            if first > 12:
                orders.add("day first")
            elif second > 12:
                orders.add("month first")
    return orders.pop() if len(orders) == 1 else None


def date_readings(text: str, *, alone: bool = True) -> tuple[int, ...]:
    """Return what the first date in a text may mean, in milliseconds since 1970.

    The result is empty without a date, and has two times if day and month are ambiguous: the first
    of them is day first. The time of day defaults to midnight, the time zone to UTC.

    Args:
        alone: the text must be a date, with only words such as "on" or a weekday around it;
            otherwise the first date in the text is read.
    """
    parsed = _parsed(text.strip()[:_MAX_CHARS])
    if parsed is None:
        return ()
    date, time, rest = parsed
    days = [(date.month, date.day), (date.day, date.month)][: 1 + date.either]
    if alone and not all(
        word.casefold() in _FILLERS or (word.isdecimal() and len(word) <= 3)
        for word in WORDS.findall(rest)
    ):
        return ()
    try:
        moments = [datetime(date.year, *day, tzinfo=UTC) + time for day in days]
    except (ValueError, OverflowError):
        return ()
    return tuple(to_ms(moment) for moment in moments if moment.year >= 1000)


def is_bare_date(text: str) -> bool:
    """Return True for a date with nothing besides it but a weekday and a time of day."""
    parsed = _parsed(text) if len(text) <= _MAX_CHARS else None
    weekdays = gazetteer().cues["weekday"]
    return parsed is not None and all(
        word.casefold() in weekdays for word in WORDS.findall(parsed[2])
    )


def _parsed(text: str) -> tuple[_WrittenDate, timedelta, str] | None:
    """Return the first date in a text, its time of day in UTC, and the rest of the text."""
    date = next((each for each in _find(text) if each.year and each.month and each.day), None)
    if date is None:
        return None
    rest = text[: date.start] + " " + text[date.end :]
    offset, rest = _take_zone(text, rest)
    clock, rest = _take_clock(rest)
    return date, clock - offset, rest


def json_readings(value: object) -> tuple[int, ...]:
    """Return what a JSON time may mean; it is text, or a number of seconds or milliseconds."""
    if isinstance(value, str) and not re.fullmatch(r"\d{9,13}(\.\d{1,9})?", value):
        return date_readings(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return ()
    moment = _from_number(float(value))
    return () if moment is None else (moment,)


def settled(readings: Iterable[Sequence[int]], default: int | None = None) -> int | None:
    """Return the first time that several texts give, the most explicit text first.

    A text with two readings gives another time than the following ones, unless one of these is on
    the same day: then that reading was meant.

    Args:
        default: the last time.
    """
    either: Sequence[int] = ()
    for times in (*readings, () if default is None else (default,)):
        if either:
            days = [time // MS_PER_DAY for time in times]
            same = [time for time in either if time // MS_PER_DAY in days]
            if len(same) == 1:
                return same[0]
        elif len(times) == 1:
            return times[0]
        else:
            either = times
    return None


def to_ms(moment: datetime) -> int:
    """Return a time in milliseconds since 1970."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _from_number(value: float) -> int | None:
    if _SECONDS[0] <= value < _SECONDS[1]:
        return int(value * 1000)
    if _MILLIS[0] <= value < _MILLIS[1]:
        return int(value)
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


def period_of(value: object, at_ms: int | None) -> str:
    """Return a year or a month, such as ``2024`` or ``2024-05``, if a time begins with it."""
    if at_ms is None or not isinstance(value, str) or not _PERIOD.fullmatch(value):
        return ""
    return value if iso(at_ms).startswith(value) else ""


def in_words(period: str) -> str:
    """Return a year or a month as a reader writes it, such as ``2024`` or ``May 2024``."""
    year, _, month = period.partition("-")
    return f"{MONTHS[int(month) - 1]} {year}" if month else year
