"""Dates as people write them: day and month, month and year, or all three.

English, German, French, Spanish, Italian, Portuguese, Dutch and Japanese forms. Not dates:
bare weekdays, months and years, relative days, durations, clock times. The search goes from one
run of digits to the next and looks a bounded distance around each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memgraph.entities.gazetteer import gazetteer
from memgraph.entities.spans import EntitySpan
from memgraph.model.enums import EntityType

# Lower-cased, these are verbs more often than months when a number follows ("may 5 people").
_VERBS: Final = frozenset(("may", "march", "mar", "dec"))

_YEAR: Final = r"(?:1[89]|20|21)\d\d(?!\d)"
_DIGITS = re.compile(r"\d+")
_DAY_FIRST = re.compile(
    r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|º|ª|\.|e)?[ \u00a0-]{0,2}"
    r"(?:of the |of |de |di |d['’])?(?P<month>[^\W\d_]{3,10})(?!\w)"
    rf"(?P<year>\.?,?[ \u00a0-](?:de |del |do )?{_YEAR}|\.? ['’]\d\d(?!\w))?"
)
_AFTER_MONTH = re.compile(
    rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\w%]|[.,:/-]\d)(?:,?[ \u00a0]{_YEAR})?"
    rf"|{_YEAR})(?![\w%]|[.:/-]\d)"
)
_MONTH_BEFORE = re.compile(
    r"(?P<month>[^\W\d_]{3,10})\.?,?[ \u00a0-](?:(?:de|del|of|the) )?(?:['’](?=\d\d$))?$"
)
_WEEKDAY_BEFORE = re.compile(
    r"(?P<weekday>[^\W\d_]{2,10})\.?,?[ \u00a0](?:(?:den|dem|the|le|el) )?$"
)
_NUMERIC = re.compile(
    r"(?P<y1>\d{4})(?P<s>[-/.])(?P<m1>\d{1,2})(?P=s)(?P<d1>\d{1,2})(?![\d-])(?![/.]\d)"
    r"|(?P<d2>\d{1,2})(?P<t>[-/.]) ?(?P<m2>\d{1,2})(?P=t) ?(?P<y2>\d{4}|\d\d)(?![\d/-]|\.\d)"
    r"|(?P<y3>\d{4})-(?P<m3>\d\d)(?![\w-])"
)
_DAY_MONTH = re.compile(r"(?P<d>\d{1,2})(?:\.(?P<m>\d{1,2})\.(?!\d)|/(?P<n>\d{1,2})(?![\d/]))")
_JAPANESE = re.compile(
    r"(?:\d{4}年)?\d{1,2}月\d{1,2}日(?:[（(][月火水木金土日](?:曜日?)?[)）]|[月火水木金土日]曜日?)?"
    r"|\d{4}年\d{1,2}月(?!\d)"
)
_LOOK_BACK: Final = 24


def find_dates(text: str) -> Iterator[EntitySpan]:
    """Yield the dates of ``text`` in order, without overlap."""
    done = 0
    for match in _DIGITS.finditer(text):
        start, end = match.span()
        if start < done or end - start > 4 or _glued(text, start):
            continue
        bounds = _japanese(text, start, end) or _numeric(text, start, end)
        bounds = bounds or _day_first(text, start, end) or _month_first(text, start)
        if bounds and bounds[0] >= done:
            done = bounds[1]
            yield EntitySpan(text[bounds[0] : done], bounds[0], done, EntityType.DATE, 0.97)


def _glued(text: str, start: int) -> bool:
    """Return True when the digits continue a word, a version, an amount or a path."""
    if start == 0:
        return False
    before = text[start - 1]
    if before in "./:,":
        return start > 1 and not text[start - 2].isspace() and text[start - 2].isdigit()
    return before in "$€£#+\\_=&" or (before.isascii() and before.isalpha())


def _japanese(text: str, start: int, end: int) -> tuple[int, int] | None:
    if text[end : end + 1] not in ("年", "月"):
        return None
    match = _JAPANESE.match(text, start)
    return match.span() if match else None


def _numeric(text: str, start: int, end: int) -> tuple[int, int] | None:
    separator = text[end : end + 1]
    if separator not in ("-", "/", ".") or (start and text[start - 1] in "-/."):
        return None
    match = _NUMERIC.match(text, start)
    if match is None:
        return _bare_day_month(text, start)
    year, month, day = (
        next((match[name + n] for n in "123" if name + n in _GROUPS and match[name + n]), None)
        for name in "ymd"
    )
    first, second = int(day or 1), int(month or 0)
    # 05/14/2026 has the month first.
    plausible = (1 <= second <= 12 and 1 <= first <= 31) or (
        match["t"] == "/" and 1 <= first <= 12 and 1 <= second <= 31
    )
    if not plausible or not (len(year or "") == 2 or "1800" <= (year or "") <= "2199"):
        return None
    if len(year or "") == 2 and match["t"] == "-":
        return None
    return _weekday_start(text, start), match.end()


_GROUPS: Final = frozenset(_NUMERIC.groupindex)


def _bare_day_month(text: str, start: int) -> tuple[int, int] | None:
    """Match ``am 7.5.`` or ``on 7/5``: without a year only after a word that precedes dates."""
    match = _DAY_MONTH.match(text, start)
    if match is None or not 1 <= int(match["d"]) <= 31:
        return None
    month = int(match["m"] or match["n"])
    before = text[max(0, start - 8) : start].lower().split()
    if not 1 <= month <= 12 or not before:
        return None
    if before[-1] not in gazetteer().cues["date_before"]:
        return None
    return start, match.end()


def _day_first(text: str, start: int, end: int) -> tuple[int, int] | None:
    if end - start > 2 or (start and text[start - 1] in "./:,"):
        return None
    match = _DAY_FIRST.match(text, start)
    if match is None or match["month"].casefold() not in gazetteer().cues["month"]:
        return None
    if not 1 <= int(match["day"]) <= 31 or match.start("month") == end:
        return None
    return _weekday_start(text, start), match.end()


def _month_first(text: str, start: int) -> tuple[int, int] | None:
    if start == 0 or text[start - 1] not in " \u00a0-'’":
        return None
    lowest = max(0, start - _LOOK_BACK)
    before = _MONTH_BEFORE.search(text[lowest:start])
    if before is None or before["month"].casefold() not in gazetteer().cues["month"]:
        return None
    first = lowest + before.start("month")
    if first and text[first - 1].isalnum():
        return None
    match = _AFTER_MONTH.match(text, start)
    if match is None or (match["day"] and not 1 <= int(match["day"]) <= 31):
        return None
    if match["day"] and before["month"] in _VERBS:
        return None
    return _weekday_start(text, first), match.end()


def _weekday_start(text: str, start: int) -> int:
    """Return where the weekday written before a date begins, else ``start``."""
    lowest = max(0, start - _LOOK_BACK)
    before = _WEEKDAY_BEFORE.search(text[lowest:start])
    if before is None:
        return start
    word = before["weekday"]
    if word.casefold() in gazetteer().cues["weekday"] or word in gazetteer().cues["short_weekday"]:
        return lowest + before.start("weekday")
    return start
