"""Times that a text names: dates, parts of months and years, seasons, holidays, days from now.

Everything is counted in whole days of UTC. English only; what is no time of these forms is no
time here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import MAXYEAR, UTC, date, datetime

from memgraph.clock import MS_PER_DAY
from memgraph.text.words import CARDINALS, WEEKDAYS
from memgraph.text.words import MONTHS as MONTH_NAMES

# Not the calendar module's: those speak the language that the process is set to.
MONTHS = tuple(name.title() for name in MONTH_NAMES["en"])
DAYS_AWAY = 10.0
"""At so many days from a period a moment still agrees with it by 1/e."""
_WEEKDAYS = WEEKDAYS["en"]
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_HOLIDAYS = {
    "christmas": (12, 25),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "new year's": (1, 1),
}
_NUMBERS = {
    word: number
    for number, words in enumerate(
        ("a an one first", "two second", "three third", "four fourth", "five", "six"), start=1
    )
    for word in words.split()
}
_EPOCH = date(1970, 1, 1).toordinal()
_ANY_YEAR = 2001
_WEEK = 7
_NAMES = [each[:3].lower() for each in MONTHS]
_YEAR = r"(?:19|20)\d\d"
_MONTH = "|".join(rf"{each}|{each[:3]}t?\b\.?" for each in MONTHS)
_OF_YEAR = r"(?:,?\s+(?:of\s+|in\s+)?(?P<{}>(?:19|20)\d\d)\b)?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_UNIT = r"day|week|weekend|month|year"
_COUNT = rf"\d{{1,3}}|an?|{'|'.join(CARDINALS[1:7])}"
_NAMED = re.compile(
    rf"\b(?P<iso>{_YEAR}-\d\d(?:-\d\d)?)\b"
    rf"|\b(?:(?:the\s+)?(?P<day>{_DAY})\s+(?:of\s+)?)?(?P<month>{_MONTH})(?!\w)"
    rf"(?:\s+(?:the\s+)?(?P<day_after>{_DAY})\b(?!\s*(?:{_MONTH})))?"
    rf"{_OF_YEAR.format('month_year')}"
    rf"|\b(?P<season>spring|summer|autumn|fall(?!\s+of\s+\D)|winter)\b{_OF_YEAR.format('season_year')}"
    rf"|\b(?P<holiday>{'|'.join(_HOLIDAYS)})(?!\w){_OF_YEAR.format('holiday_year')}"
    rf"|\bq(?P<quarter>[1-4])\s+(?:of\s+)?(?P<quarter_year>{_YEAR})\b"
    rf"|\b(?P<year>{_YEAR})\b"
    rf"|\b(?P<today>yesterday|today|tonight|tomorrow)\b"
    rf"|\b(?P<count>{_COUNT})\s+(?P<ago>{_UNIT})s?\s+ago\b"
    rf"|\b(?P<which>last|this|next|past)\s+(?P<unit>{_UNIT}|{'|'.join(_WEEKDAYS)})\b"
    r"(?!\s+(?:of|before|after)\b)",
    re.IGNORECASE,
)
# What may stand right before a named time and makes another of it.
_PART = re.compile(
    r"\b(?:(?P<edge>early|mid|late|beginning|start|middle|end)(?:\s+(?:of|in))?"
    r"|(?P<half>first|second|last)\s+half\s+(?:of|in)"
    r"|(?P<week>first|second|third|fourth|last)\s+(?P<unit>week|weekend)\s+(?:of|in))"
    r"[\s-]+(?:the\s+)?$",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    rf"\b(?:(?P<count>{_COUNT})\s+)?(?P<unit>{_UNIT}|{'|'.join(_WEEKDAYS)})s?\s+"
    r"(?:right\s+|just\s+)?(?P<side>before|after|following|prior\s+to|preceding)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_WHICH = re.compile(r"\b(?P<which>last|this|next|past)\s+$", re.IGNORECASE)
_OF_A_SEASON = re.compile(
    r"\b(?:the|in|during|over|that|since|early|late|mid)[\s-]+$", re.IGNORECASE
)
_BEGINS = re.compile(r"(?:^|[.!?])\s*$")
_RANGE = re.compile(r"^\s*(?:and|to|until|till|-|–)\s*(?:the\s+)?$", re.IGNORECASE)
_EITHER_SIDE = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DaySpan:
    """Some days, each as a proleptic ordinal.

    Attributes:
        first, last: both included.
        yearly: no year was named: it comes round every year.
    """

    first: int
    last: int
    yearly: bool = False

    def agreement(self, ms: int) -> float:
        """Return how well a moment fits, 0..1: 1 within a day, a week or a month that is named.

        Half for a year or for a month of any year: most of what is said then is not meant. Beside
        the period it falls by the factor e for every `DAYS_AWAY` days.
        """
        day = _EPOCH + ms // MS_PER_DAY
        spans = self._about(day) if self.yearly else ((self.first, self.last),)
        away = min(max(first - day, day - last, 0) for first, last in spans)
        return self._share * math.exp(-away / DAYS_AWAY)

    def _about(self, day: int) -> Iterator[tuple[int, int]]:
        """Yield the first and last day in the year of a day and in those beside it."""
        first, last = date.fromordinal(self.first), date.fromordinal(self.last)
        here = date.fromordinal(day).year
        for year in range(max(here - 1, 1), min(here + 2, MAXYEAR)):
            end = last.replace(year=year + last.year - first.year)
            yield first.replace(year=year).toordinal(), end.toordinal()

    @property
    def _share(self) -> float:
        days = self.last - self.first + 1
        if self.yearly:
            return 1.0 if days <= _WEEK else 0.5
        return 1.0 - 0.5 * min(max(math.log(days / 31) / math.log(365 / 31), 0.0), 1.0)


def periods(text: str, now_ms: int) -> tuple[DaySpan, ...]:
    """Return the distinct times that a text names, in order.

    Args:
        now_ms: when it was asked, for "last week" and the like.
    """
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    spans: list[DaySpan] = []
    end, open_range = 0, False
    for match in _NAMED.finditer(text):
        before = text[max(end, match.start() - 60) : match.start()]
        try:
            period = _named(match, before, today)
            if period is None:
                continue
            if open_range and _RANGE.match(before):
                spans[-1] = _joined(spans[-1], period)
                open_range = False
            else:
                spans += _moved(period, before)
                open_range = _EITHER_SIDE.search(before) is not None
        except (ValueError, OverflowError):
            # A 31st of June, or a year before the first.
            continue
        end = match.end()
    return tuple(dict.fromkeys(spans))


def _named(match: re.Match[str], before: str, today: date) -> DaySpan | None:
    """Return the time that a match of `_NAMED` is by itself; None: it is none."""
    group = match.groupdict()
    if group["iso"]:
        year, month, *day = (int(part) for part in group["iso"].split("-"))
        return _in_month(year, month, day[0] if day else None)
    if group["month"]:
        return _month(group, before)
    if group["season"]:
        return _season(group, before, today)
    if group["holiday"]:
        month, number = _HOLIDAYS[group["holiday"].lower()]
        which = _WHICH.search(before)
        if which and not group["holiday_year"]:
            passed = (today.month, today.day) > (month, number)
            return _in_month(today.year - (not passed), month, number)
        return _in_month(_year(group["holiday_year"]), month, number)
    if group["quarter"]:
        return _months(int(group["quarter_year"]), 3 * int(group["quarter"]) - 2, 3)
    if group["year"]:
        return _months(int(group["year"]), 1, 12)
    return _from_today(group, today)


def _month(group: Mapping[str, str | None], before: str) -> DaySpan | None:
    name, day = group["month"] or "", group["day"] or group["day_after"]
    year = _year(group["month_year"])
    # "May" begins a sentence as a verb, "march" is one; so a month alone is written large and out.
    is_full_name = name[0].isupper() and name.rstrip(".").title() in MONTHS
    is_verb = name == "May" and _BEGINS.search(before) is not None
    if not (day or year or (is_full_name and not is_verb)):
        return None
    month = _NAMES.index(name[:3].lower()) + 1
    return _in_month(year, month, int(re.sub(r"\D", "", day)) if day else None)


def _season(group: Mapping[str, str | None], before: str, today: date) -> DaySpan | None:
    month, year = _SEASONS[(group["season"] or "").lower()], _year(group["season_year"])
    if year is None and (which := _WHICH.search(before)):
        now, span = today.toordinal(), _months(today.year, month, 3)
        # The last one has ended, the next one has not begun.
        step = {"this": 0, "next": int(span.first <= now)}.get(which["which"].lower())
        return _months(today.year + (int(span.last < now) - 1 if step is None else step), month, 3)
    if year is None and not _OF_A_SEASON.search(before):
        return None
    return _months(year, month, 3)


def _from_today(group: Mapping[str, str | None], today: date) -> DaySpan:
    ordinal = today.toordinal()
    if word := group["today"]:
        ordinal += {"yesterday": -1, "tomorrow": 1}.get(word.lower(), 0)
        return DaySpan(ordinal, ordinal)
    if group["ago"]:
        return _steps(DaySpan(ordinal, ordinal), _count(group["count"]), group["ago"].lower(), -1)
    unit, which = (group["unit"] or "").lower(), (group["which"] or "").lower()
    step = {"this": 0, "next": 1}.get(which, -1)
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


def _moved(period: DaySpan, before: str) -> list[DaySpan]:
    """Return the times that are meant where "early", "the week before" and the like stand before.

    What was in the week before a day was often told on that day, so that both count.
    """
    days = period.last - period.first + 1
    if part := _PART.search(before):
        if part["week"]:
            return [_week(period, _count(part["week"]), part["unit"].lower() == "weekend")]
        if part["half"]:
            half = days // 2
            if part["half"].lower() == "first":
                return [replace(period, last=period.first + half - 1)]
            return [replace(period, first=period.first + half)]
        third = max(days // 3, 1)
        edge = part["edge"].lower()
        if edge in ("early", "beginning", "start"):
            return [replace(period, last=period.first + third - 1)]
        if edge in ("late", "end"):
            return [replace(period, first=period.last - third + 1)]
        return [replace(period, first=period.first + third, last=period.last - third)]
    if offset := _BESIDE.search(before):
        side = 1 if offset["side"].lower() in ("after", "following") else -1
        return [_steps(period, _count(offset["count"]), offset["unit"].lower(), side), period]
    return [period]


def _steps(period: DaySpan, count: int, unit: str, side: int) -> DaySpan:
    """Return the time that lies so many units before (-1) or after (1) a period."""
    edge = period.last if side > 0 else period.first
    if unit in _WEEKDAYS:
        weekday = (edge - 1) % _WEEK
        away = side * (_WEEKDAYS.index(unit) - weekday) % _WEEK or _WEEK
        return replace(period, first=edge + side * away, last=edge + side * away)
    if unit == "weekend":
        saturday = edge - (edge - 1) % _WEEK + 5 - (_WEEK if side < 0 else 0)
        saturday += side * _WEEK * (count - 1)
        return replace(period, first=saturday, last=saturday + 1)
    days = {"day": 1, "week": _WEEK, "month": 30, "year": 365}[unit]
    if count == 1:
        first, last = sorted((edge + side, edge + side * days))
        return replace(period, first=first, last=last)
    middle, wide = edge + side * days * count, days // 2
    return replace(period, first=middle - wide, last=middle + wide)


def _week(period: DaySpan, number: int, weekend: bool) -> DaySpan:
    """Return a week of a period, counted from its first day; of 0 the last one."""
    first = period.first + _WEEK * (number - 1) if number else period.last - _WEEK + 1
    if weekend:
        first += (5 - (first - 1)) % _WEEK
        return replace(period, first=first, last=first + 1)
    return replace(period, first=first, last=first + _WEEK - 1)


def _joined(start: DaySpan, end: DaySpan) -> DaySpan:
    """Return from the one to the other; a year that the one lacks is that of the other."""
    if start.yearly and not end.yearly:
        first = date.fromordinal(start.first)
        year = date.fromordinal(end.first).year
        start = DaySpan(first.replace(year=year).toordinal(), start.last)
    if start.yearly != end.yearly or end.last < start.first:
        return start
    return replace(start, last=end.last)


def _in_month(year: int | None, month: int, day: int | None) -> DaySpan:
    """Raise ValueError where there is no such day."""
    if day is None:
        return _months(year, month, 1)
    only = date(year or _ANY_YEAR, month, day).toordinal()
    return DaySpan(only, only, year is None)


def _months(year: int | None, month: int, count: int) -> DaySpan:
    """Return so many whole months from a month on."""
    begin = year or _ANY_YEAR
    after = month - 1 + count
    end = date(begin + after // 12, after % 12 + 1, 1)
    return DaySpan(date(begin, month, 1).toordinal(), end.toordinal() - 1, year is None)


def _year(digits: str | None) -> int | None:
    return int(digits) if digits else None


def _count(word: str | None) -> int:
    """Return 0 for "last", 1 where nothing is said."""
    if word is None:
        return 1
    low = word.lower()
    return int(low) if low.isdecimal() else _NUMBERS.get(low, 0)
