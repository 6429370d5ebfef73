"""Relative dates of a sentence, resolved from the day on which it was said."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

_NUMBERS: Final = {
    word: number
    for number, words in enumerate(
        ("", "a an one", "two couple", "three", "four", "five", "six", "seven", "eight", "nine")
    )
    for word in words.split()
} | {"ten": 10, "eleven": 11, "twelve": 12}
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT_DAYS: Final = {
    **{day: at for at, day in enumerate(_DAYS)},
    **{"mon": 0, "tue": 1, "tues": 1, "wed": 2, "thu": 3, "thurs": 3, "fri": 4, "sat": 5, "sun": 6},
}
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_SEASONS: Final = {"spring": "spring", "summer": "summer", "autumn": "autumn", "fall": "autumn"}
_DAY: Final = "|".join(sorted(_SHORT_DAYS, key=len, reverse=True))
_MONTH: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_NUMBER: Final = rf"(?P<number>\d{{1,3}}|a couple(?: of)?|{'|'.join(_NUMBERS)})"
_UNIT: Final = r"(?P<unit>day|week|month|year)s?"
_AGO: Final = re.compile(rf"\b{_NUMBER} {_UNIT} (?P<way>ago|before now|back)\b", re.I)
_IN: Final = re.compile(rf"\bin {_NUMBER} {_UNIT}(?P<way>)(?! of\b)\b", re.I)
_VAGUE: Final = re.compile(
    r"\b(?:a few|several|some) (?P<unit>day|week|month|year)s (?:ago|back)\b", re.I
)
_SIMPLE: Final = re.compile(
    r"\b(?P<after>the day after tomorrow)|\b(?P<before>the day before yesterday)"
    r"|\b(?P<yesterday>yesterday|last night)\b|\b(?P<tomorrow>tomorrow)\b"
    r"|\b(?P<today>today|tonight|this (?:morning|afternoon|evening))\b",
    re.I,
)
_NAMED: Final = re.compile(
    rf"\b(?P<way>last|this past|past|this|next|this coming|coming) "
    rf"(?P<what>weekend|week|month|year|spring|summer|autumn|fall|winter|{_DAY}|{_MONTH})\b"
    r"(?!['’-])",
    re.I,
)
# A shortened name alone may be a word of its own: the sun, sat.
_WEEKDAY: Final = re.compile(
    rf"\b(?:(?P<on>on|by|until|till) )(?P<what>{'|'.join(_DAYS)})\b(?!['’-])", re.I
)
_DATE: Final = re.compile(
    rf"\b(?:(?P<day>\d\d?)(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})"
    rf"|(?P<month2>{_MONTH})\.? (?P<day2>\d\d?)(?:st|nd|rd|th)?)\b(?:,? (?P<year>\d{{4}})\b)?"
    rf"(?![\w:%]|[.,]\d)",
    re.I,
)
_ISO: Final = re.compile(r"\b(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b")
# What lasts, or comes again, tells no day.
_DURING: Final = re.compile(
    r"(?:\b(?:since|until|till|every|each|for|from|by|before)\s+(?:the )?)$", re.I
)


# Before a day that lies ahead, whatever the tense; a verb that arranges one; a day of every year.
_AHEAD_OF: Final = re.compile(
    r"\b(?:until|till|to|by|due|ends?|ending|starts?|starting|begins?|opens?|leaves?|move in|comes?"
    r"|come|expires?)\s+(?:on\s+)?(?:the\s+)?$",
    re.I,
)
_ARRANGED: Final = re.compile(
    r"\b(?:booked|reserved|bought tickets|scheduled|planned|postponed|moved|pushed|shifted|set"
    r"|fixed|signed up|registered|extended|hired|agreed|decided|arranged|got an appointment"
    r"|invited)\b",
    re.I,
)
_COMES_AGAIN: Final = re.compile(r"\b(?:born|birthday|birthdays|anniversary|every year)\b", re.I)
_MOST_MONTHS_BACK: Final = 7


@dataclass(frozen=True, slots=True)
class Dated:
    """A stretch of text, ``start`` to ``end``, and the day or span of days it means.

    ``told`` is how the span reads: ``2026-05-07``, ``week of 2026-05-04``, ``2026-05``.
    ``day``: midnight UTC in milliseconds, where it is one certain day. ``written``: the text holds
    the full date already.
    """

    start: int
    end: int
    told: str
    day: int | None
    lasting: bool = False
    written: bool = False


def find_dates(text: str, at_ms: int, *, past: bool | None) -> list[Dated]:
    """The dates of a sentence said at ``at_ms``, in order, without overlap.

    ``past``: whether the sentence tells of what was (True) or of what will be (False); None where
    that is not certain: then a bare weekday, or a date without a year, is left alone. "Next
    Friday" is the Friday of the week after this one, weeks begin on Monday.
    """
    try:
        said = datetime.fromtimestamp(at_ms / 1000, tz=UTC).date()
    except (OverflowError, ValueError, OSError):
        return []
    found: list[Dated] = []
    for finder in (_simple, _counted, _vague, _named, _weekdays, _dates):
        for each in finder(text, said, past):
            if all(each.end <= one.start or each.start >= one.end for one in found):
                found.append(each)
    return sorted(found, key=lambda each: each.start)


def annotate(text: str, dates: list[Dated]) -> str:
    """``text`` with each date behind the words that mean it: ``yesterday (2026-05-07)``."""
    parts, at = [], 0
    for each in dates:
        if not each.written:
            parts += [text[at : each.end], f" ({each.told})"]
            at = each.end
    return "".join([*parts, text[at:]])


def _make(match: re.Match[str], text: str, told: str, day: date | None) -> Dated:
    lasting = _DURING.search(text, max(0, match.start() - 16), match.start()) is not None
    ms = _ms(day) if day and not lasting else None
    return Dated(match.start(), match.end(), told, ms, lasting)


def _ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


def _shift(day: date, days: int) -> date | None:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


def _simple(text: str, said: date, past: bool | None) -> list[Dated]:  # noqa: ARG001 - called like the others
    offsets = {"after": 2, "before": -2, "yesterday": -1, "tomorrow": 1, "today": 0}
    found = []
    for match in _SIMPLE.finditer(text):
        day = _shift(said, offsets[match.lastgroup or "today"])
        if day:
            found.append(_make(match, text, day.isoformat(), day))
    return found


def _counted(text: str, said: date, past: bool | None) -> list[Dated]:  # noqa: ARG001 - called like the others
    found = []
    for match in (*_AGO.finditer(text), *_IN.finditer(text)):
        word = match["number"].lower().removesuffix(" of").removeprefix("a ") or "a"
        number = int(word) if word.isdecimal() else _NUMBERS[word]
        away = -number if match["way"] else number
        unit = match["unit"].lower()
        if unit == "day" or unit == "week":
            day = _shift(said, away * (7 if unit == "week" else 1))
            if day is None:
                continue
            exact = unit == "day" and not match["number"].lower().startswith("a couple")
            told = day.isoformat() if exact else f"around {day.isoformat()}"
            found.append(_make(match, text, told, day if exact else None))
        else:
            month = _months_away(said, away * (12 if unit == "year" else 1), unit)
            if month:
                found.append(_make(match, text, f"around {month}", None))
    return found


def _months_away(said: date, months: int, unit: str) -> str | None:
    year, month = divmod(said.year * 12 + said.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    return str(year) if unit == "year" else f"{year:04}-{month + 1:02}"


def _vague(text: str, said: date, past: bool | None) -> list[Dated]:  # noqa: ARG001 - called like the others
    lengths = {"day": 10, "week": 10, "month": 7, "year": 4}
    return [
        _make(match, text, f"before {said.isoformat()[: lengths[match['unit'].lower()]]}", None)
        for match in _VAGUE.finditer(text)
    ]


def _named(text: str, said: date, past: bool | None) -> list[Dated]:
    found = []
    for match in _NAMED.finditer(text):
        way, what = match["way"].lower(), match["what"].lower()
        # "The past week", "this sun": a span or a word; "this may" is a verb.
        if (way == "past" and text[: match.start()].rstrip().lower().endswith("the")) or (
            what in ("sun", "sat", "may", "mar", "wed", "fall")
            and match["what"].islower()
            and way not in ("last", "next")
        ):
            continue
        step = -1 if way in ("last", "past", "this past") else 1 if way == "next" else 0
        if way in ("coming", "this coming"):
            step = 0 if what in _SHORT_DAYS else 1
        told, day = _span(said, what, step, past)
        if told:
            found.append(_make(match, text, told, day))
    return found


def _span(said: date, what: str, step: int, past: bool | None) -> tuple[str | None, date | None]:
    monday = _shift(said, -said.weekday())
    if monday is None:
        return None, None
    if what in _SHORT_DAYS:
        day = _weekday(said, monday, _SHORT_DAYS[what], step, past)
        return (day.isoformat(), day) if day else (None, None)
    if what == "week":
        start = _shift(monday, 7 * step)
        return (f"week of {start.isoformat()}" if start else None), None
    if what == "weekend":
        # On a weekend, "last weekend" is the one before it.
        start = _shift(monday, 5 + 7 * step)
        end = _shift(monday, 6 + 7 * step)
        return (f"{start.isoformat()} to {end.isoformat()}" if start and end else None), None
    if what == "month":
        return _months_away(said, step, "month"), None
    if what == "year":
        return _months_away(said, 12 * step, "year"), None
    if what in _MONTHS:
        return _nearest_month(said, _MONTHS[what], step), None
    return _season(said, what, step), None


def _weekday(said: date, monday: date, day: int, step: int, past: bool | None) -> date | None:
    if step == -1:
        return _shift(said, -((said.weekday() - day - 1) % 7 + 1))
    if step == 1:
        return _shift(monday, 7 + day)
    if past:
        return _shift(said, -((said.weekday() - day) % 7))
    return _shift(said, (day - said.weekday()) % 7)


def _nearest_month(said: date, month: int, step: int) -> str:
    year = said.year
    if step == -1 and month >= said.month:
        year -= 1
    if step == 1 and month <= said.month:
        year += 1
    return f"{year:04}-{month:02}"


def _season(said: date, what: str, step: int) -> str | None:
    # The months of a season depend on the hemisphere, and winter spans two years.
    if what == "winter":
        return None
    name = _SEASONS[what]
    over = said.month >= {"spring": 6, "summer": 9, "autumn": 12}[name]
    year = said.year
    if step == -1:
        year -= 0 if over else 1
    elif step == 1:
        begun = said.month >= {"spring": 3, "summer": 6, "autumn": 9}[name]
        year += 1 if begun else 0
    return f"{name} {year}"


def _weekdays(text: str, said: date, past: bool | None) -> list[Dated]:
    if past is None:
        return []
    found = []
    for match in _WEEKDAY.finditer(text):
        day = _DAYS.index(match["what"].lower())
        away = -((said.weekday() - day) % 7) if past else (day - said.weekday()) % 7
        # Said on that very day, it is another one that is meant, a week away on the told side.
        when = _shift(said, away or (-7 if past else 7))
        if when:
            due = match["on"].lower() != "on"
            made = _make(match, text, when.isoformat(), None if due and past else when)
            found.append(made)
    return found


def _dates(text: str, said: date, past: bool | None) -> list[Dated]:
    found = []
    for match in (*_ISO.finditer(text), *_DATE.finditer(text)):
        groups = match.groupdict()
        month = groups["month"] or groups["month2"]
        number = int(month) if month.isdecimal() else _MONTHS[month.lower()]
        year = int(groups["year"]) if groups["year"] else _year(said, text, match, number, past)
        try:
            day = date(year or 0, number, int(groups["day"] or groups["day2"]))
        except ValueError:
            continue
        made = _make(match, text, day.isoformat(), day)
        written = bool(groups["year"])
        found.append(Dated(made.start, made.end, made.told, made.day, made.lasting, written))
    return found


def _year(said: date, text: str, match: re.Match[str], month: int, past: bool | None) -> int:
    """The year of a day that names none; 0 where that is not certain.

    A past verb may arrange what is to come ("moved to 30 November", "booked for 4 December"): then
    the day lies ahead. What happened on a day that is nearly a year back, and soon again, may be
    meant either way.
    """
    if past is None or _COMES_AGAIN.search(text):
        return 0
    groups = match.groupdict()
    try:
        this = date(said.year, month, int(groups["day"] or groups["day2"] or 0))
    except ValueError:
        return said.year
    ahead = said.year + (this < said)
    if not past or _AHEAD_OF.search(text, max(0, match.start() - 24), match.start()):
        return ahead
    arranged = _ARRANGED.search(text, 0, match.start()) is not None
    if arranged:
        return ahead
    back = said.year - (this > said)
    months_back = 12 * (said.year - back) + said.month - month
    return back if months_back <= _MOST_MONTHS_BACK else 0
