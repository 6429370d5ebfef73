"""Numbers, amounts, dates and clock times in a short statement, in one notation.

Durations are seconds, sizes bytes, lengths metres, weights kilograms, shares percent, so that
"90 min" equals "an hour and a half". Relative dates are resolved with the time of recording.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from memgraph.classification.relation_lexicon import ID_NOUNS, MONTHS, STOP
from memgraph.classification.relation_tokens import stem

_UNITS: Final = {
    name: (dimension, factor)
    for dimension, factor, names in (
        ("time", 0.001, "ms millisecond milliseconds msec"),
        ("time", 1.0, "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos 秒"),
        ("time", 60.0, "min mins minute minutes minuten minuto minutos 分"),
        ("time", 3600.0, "h hr hrs hour hours stunde stunden heure heures hora horas 時間"),
        ("time", 86400.0, "d day days tag tage tagen jour jours día días 日間"),
        ("time", 604800.0, "week weeks woche wochen semaine semaines semana semanas 週間"),
        ("time", 2592000.0, "month months monat monate monaten mois mes meses か月 ヶ月"),
        ("time", 31536000.0, "year years jahr jahre jahren an ans année año años yrs 年間"),
        ("size", 1.0, "byte bytes"), ("size", 1e3, "kb kib kilobyte kilobytes"),
        ("size", 1e6, "mb mib megabyte megabytes meg megs"),
        ("size", 1e9, "gb gib gigabyte gigabytes gig gigs"), ("size", 1e12, "tb tib terabyte terabytes"),
        ("share", 1.0, "% percent pct prozent percentage 割 パーセント"),
        ("money", 1.0, "eur euro euros € usd dollar dollars $ chf franc francs gbp pound pounds £ "
                       "franken pesos yen jpy 円 ユーロ sek kronor"),
        ("money", 0.01, "cent cents pence"),
        ("length", 0.001, "mm millimetre millimetres"), ("length", 0.01, "cm centimetre centimetres"),
        ("length", 1.0, "m metre metres meter meters"), ("length", 1e3, "km kilometre kilometres"),
        ("mass", 0.001, "g gram grams"), ("mass", 1.0, "kg kilo kilos kilogram kilograms"),
        ("mass", 1e3, "t tonne tonnes ton tons"),
        ("temperature", 1.0, "°c °f ° degree degrees grad degrés grados celsius 度"),
        ("speed", 1.0, "km/h kmh mph"), ("power", 1.0, "w watt watts"), ("power", 1e3, "kw kilowatt"),
        ("energy", 1.0, "kwh"), ("volume", 1.0, "l litre litres liter liters"),
        ("volume", 0.001, "ml millilitre"), ("frequency", 1.0, "hz"), ("frequency", 1e3, "khz"),
        ("frequency", 1e6, "mhz"), ("frequency", 1e9, "ghz"),
    )
    for name in names.split()
}  # fmt: skip

_SMALL: Final = {
    word: float(value)
    for value, words in enumerate(
        ["zero null", "one eins einen", "two zwei deux dos twice zweimal", "three drei trois tres thrice", "four vier quatre cuatro", "five fünf cinq cinco", "six sechs seis", "seven sieben sept siete", "eight acht huit ocho", "nine neun neuf nueve", "ten zehn dix diez", "eleven elf onze once_", "twelve zwölf douze doce", "thirteen dreizehn treize trece", "fourteen vierzehn quatorze catorce", "fifteen fünfzehn quinze quince", "sixteen", "seventeen", "eighteen", "nineteen", "twenty zwanzig vingt veinte"]
    )
    for word in words.split()
} | {
    "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "seventy": 70.0, "eighty": 80.0,
    "ninety": 90.0, "dreißig": 30.0, "trente": 30.0, "treinta": 30.0,
}  # fmt: skip
_SCALE: Final = {"dozen": 12.0, "hundred": 100.0, "thousand": 1e3, "million": 1e6, "millions": 1e6,
                 "billion": 1e9, "k": 1e3, "mio": 1e6, "tausend": 1e3, "hundert": 100.0}  # fmt: skip
ORDINALS: Final = {
    word: value
    for value, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ],
        1,
    )
}
_VAGUE: Final = frozenset(
    ["roughly", "about", "around", "almost", "nearly", "approximately", "~", "ca", "circa", "some"]
)
_PARTS: Final = re.compile(
    r"#?\d[\d,.]*\d(?:e-?\d+)?|#?\d(?:e-?\d+)?|km/h|[^\W\d_]+(?:'[^\W\d_]+)?|°\s?[CF]?|[%€$£#~]|−|\S",
    re.UNICODE,
)
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
_VERSION: Final = re.compile(
    r"\bv?\d+(?:\.\d+){2,}\b|\bv\d+(?:\.\d+)*\b|\b\d+\.(?:x|\d+\.x)\b", re.I
)
_PRODUCT: Final = re.compile(r"\b([A-Z][a-z]\w*):? (\d+(?:\.\d+)+)\b(?! ?[%€])")
_LETTERED: Final = re.compile(r"\b([A-Za-z]+) ([A-Z])\b(?!')")
_HEX: Final = re.compile(r"\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{6,40}\b")
_YEAR: Final = re.compile(
    r"(?<!EUR )(?<!USD )(?<!CHF )(?<![€$#])\b(?:19|20)\d\d\b(?! (?:EUR|USD|CHF|kg|ms))"
)
_DAY: Final = re.compile(r"\bthe (\d\d?)(?:st|nd|rd|th)\b", re.I)
_WORD_CLOCK: Final = re.compile(
    r"\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|zwei|drei|vier|fünf|sechs|"
    r"sieben|acht|neun|zehn|elf|zwölf) (?:o'clock|uhr)\b(?: (nachmittags|abends|in the "
    r"(?:afternoon|evening)))?",
    re.I,
)
_FIXED: Final = (
    (re.compile(r"\b(?:an?|one) hour and a half\b", re.I), ("time", 5400.0)),
    (re.compile(r"\bhalf an hour\b", re.I), ("time", 1800.0)),
    (re.compile(r"\b(?:an?|one) quarter (?:more|less|of)\b", re.I), ("share", 25.0)),
    (re.compile(r"\bhalf (?:of|the|all)\b", re.I), ("share", 50.0)),
    (re.compile(r"\b(?:a|one) third of\b", re.I), ("share", 33.3)),
    (re.compile(r"\b(?:a|one) fifth\b", re.I), ("share", 20.0)),
)  # fmt: skip


_FIGURE: Final = re.compile(
    r"\d|\b(?:half|quarter|third of|fifth|noon|midnight|"
    + "|".join(sorted({*_SMALL, *_SCALE, *ORDINALS} - {"a", "k", "un"}, key=len, reverse=True))
    + r")", re.I
)  # fmt: skip


class Quantity(NamedTuple):
    """An amount: its dimension (``count`` where there is no unit), value, and what it counts."""

    dimension: str
    value: float
    noun: str
    vague: bool


class Values(NamedTuple):
    """What a statement says in figures. ``clocks`` are minutes of the day; ``dates`` are
    (year or 0, month, day or 0); ``tags`` are (noun, number) of numbered things."""

    quantities: tuple[Quantity, ...]
    clocks: frozenset[int]
    dates: frozenset[tuple[int, int, int]]
    versions: frozenset[str]
    tags: frozenset[tuple[str, str]]
    years: frozenset[int]


def _number(text: str) -> float | None:
    text = text.lstrip("#")
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        return float(text.replace(",", ""))
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}", text):
        return float(text.replace(".", "").replace(",", "."))
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _cut(pattern: re.Pattern[str], text: str) -> tuple[list[re.Match[str]], str]:
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
    hour = int(_SMALL[match.group(3).lower()]) * 60
    return hour + minutes if match.group(2).lower() == "past" else hour - minutes


def _clocks(text: str) -> tuple[set[int], str]:
    clocks: set[int] = set()
    found, text = _cut(_CLOCK, text)
    for match in found:
        value = _clock_minutes(match)
        if value is not None:
            clocks.add(value)
    spoken, text = _cut(_SPOKEN, text)
    clocks.update(_spoken_minutes(match) for match in spoken)
    worded, text = _cut(_WORD_CLOCK, text)
    clocks.update(int(_SMALL[m.group(1).lower()] + (12 if m.group(2) else 0)) * 60 for m in worded)
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


def _relative(text: str, time_ms: int | None) -> set[tuple[int, int, int]]:
    if time_ms is None:
        return set()
    now = datetime.fromtimestamp(time_ms / 1000, tz=UTC)
    low = text.lower()
    dates = set()
    for words, days in (
        (("today", "this morning", "tonight", "heute", "aujourd'hui", "今日", "hoy"), 0),
        (("yesterday", "last night", "gestern", "hier ", "昨日", "ayer"), -1),
        (("tomorrow", "morgen ", "demain", "明日", "mañana "), 1),
    ):
        if any(word in low for word in words):
            day = now + timedelta(days=days)
            dates.add((day.year, day.month, day.day))
    return dates


def _dates(text: str, time_ms: int | None) -> tuple[set[tuple[int, int, int]], str]:
    dates = _relative(text, time_ms)
    found, text = _cut(_ISO, text)
    dates.update((int(y), int(m), int(d)) for y, m, d in (match.groups() for match in found))
    found, text = _cut(_DOTTED, text)
    for match in found:
        day, month = (match.group(1) or match.group(4)), (match.group(2) or match.group(5))
        year = match.group(3)
        if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
            dates.add((int(year or 0), int(month), int(day)))
    found, text = _cut(_DAY_MONTH, text)
    dates.update(map(_day_month, found))
    found, text = _cut(_DAY, text)
    dates.update((0, 0, int(match.group(1))) for match in found)
    found, text = _cut(_MONTH_YEAR, text)
    for match in found:
        month, year, end = match.groups()
        dates.add((int(end), 12, 31) if end else (int(year), MONTHS[month.lower()], 0))
    return dates, text


def _amount_at(parts: list[str], i: int) -> tuple[float, int] | None:
    """The number that begins at ``parts[i]`` and how many parts it takes."""
    low = parts[i].lower()
    if low[0].isdigit() or (low[0] == "#" and len(low) > 1):
        value = _number(low)
        taken = 1
    elif low in _SMALL:
        value, taken = _SMALL[low], 1
        nxt = parts[i + 1].lower() if i + 1 < len(parts) else ""
        if nxt == "-" and i + 2 < len(parts) and parts[i + 2].lower() in _SMALL and value >= 20:
            value, taken = value + _SMALL[parts[i + 2].lower()], 3
        elif value >= 20 and 0 < _SMALL.get(nxt, 0) < 10:
            value, taken = value + _SMALL[nxt], 2
    else:
        return None
    if value is None:
        return None
    while i + taken < len(parts) and parts[i + taken].lower() in _SCALE:
        value *= _SCALE[parts[i + taken].lower()]
        taken += 1
    return value, taken


def _unit_after(parts: list[str], i: int) -> tuple[str, float] | None:
    if i >= len(parts):
        return None
    unit = parts[i].lower().replace(" ", "")
    if unit in {"-", "‑"} and i + 1 < len(parts):
        unit = parts[i + 1].lower()
    return _UNITS.get(unit)


def _counted(parts: list[str], i: int) -> str:
    """Stem of the noun after a number: the last of up to three words before a stop sign."""
    words: list[str] = []
    for part in parts[i : i + 3]:
        if not part[0].isalpha() or part.lower() in _AFTER_NOUN:
            break
        words.append(stem(part.lower()))
    return words[-1] if len(words) < 3 else words[0]


_AFTER_NOUN: Final = frozenset(
    [
        "of",
        "in",
        "on",
        "at",
        "per",
        "a",
        "an",
        "to",
        "for",
        "and",
        "or",
        "is",
        "are",
        "was",
        "with",
        "from",
        "the",
        "by",
        "each",
        "every",
        "than",
        "before",
        "after",
        "who",
        "that",
        "which",
        "we",
        "you",
        "it",
        "he",
        "she",
        "they",
        "so",
        "but",
        "as",
        "do",
        "does",
        "did",
        "has",
        "have",
        "can",
    ]
)


def _quantities(text: str) -> tuple[list[Quantity], set[tuple[str, str]]]:
    quantities = [Quantity(*fixed, "", False) for pattern, fixed in _FIXED if pattern.search(text)]
    for pattern, _ in _FIXED:
        _, text = _cut(pattern, text)
    tags: set[tuple[str, str]] = set()
    parts = _PARTS.findall(text)
    i, previous_end = 0, -1
    while i < len(parts):
        amount = _amount_at(parts, i)
        if amount is None:
            i += 1
            continue
        value, taken = amount
        before = parts[i - 1].lower() if i else ""
        unit = _unit_after(parts, i + taken)
        if unit is None and before in _UNITS and _UNITS[before][0] == "money":
            unit = _UNITS[before]
        if (
            unit is not None
            and unit[0] == "money"
            and _unit_after(parts, i + taken + 1) == ("money", 0.01)
        ):
            unit = ("money", 0.01)
        if parts[i][0] == "#" or (unit is None and parts[i][0].isdigit() and before in ID_NOUNS):
            tags.add((stem(before) if before in ID_NOUNS else "#", parts[i].lstrip("#")))
        elif unit is not None:
            sign = -1.0 if before in {"-", "−", "minus"} and unit[0] == "temperature" else 1.0
            amount_in_base = sign * value * unit[1]
            if unit[0] == "time" and previous_end == i and quantities:
                amount_in_base += quantities.pop().value
            quantities.append(Quantity(unit[0], amount_in_base, "", before in _VAGUE))
            previous_end = i + taken + 1 if unit[0] == "time" else -1
        elif value != 1.0 or parts[i][0].isdigit():
            noun = _counted(parts, i + taken) if i + taken < len(parts) and (
                parts[i + taken][0].isalpha() and parts[i + taken].lower() not in _AFTER_NOUN
            ) else ""  # fmt: skip
            quantities.append(Quantity("count", value, noun, before in _VAGUE))
        i += taken
    return quantities, tags


def _tags(text: str) -> frozenset[tuple[str, str]]:
    """Things told apart by a letter: room B, sample A."""
    return frozenset(
        (stem(m.group(1).lower()), m.group(2))
        for m in _LETTERED.finditer(text)
        if m.group(1).lower() in ID_NOUNS or m.group(1).lower() in {"plan", "rev", "team"}
    )


def read_values(text: str, time_ms: int | None) -> Values:
    """All figures of a text; ``time_ms`` (milliseconds UTC) resolves "today" and the like."""
    if not _FIGURE.search(text):
        # Most statements hold no figure at all, and the patterns below cost more than the rest.
        return Values((), frozenset(), frozenset(_relative(text, time_ms)), frozenset(), _tags(text),
                      frozenset())  # fmt: skip
    found, rest = _cut(_HEX, text)
    hashes = {match.group() for match in found}
    dates, rest = _dates(rest, time_ms)
    clocks, rest = _clocks(rest)
    found, rest = _cut(_VERSION, rest)
    versions = {match.group().lower().lstrip("v") for match in found}
    found, rest = _cut(_PRODUCT, rest)
    versions |= {m.group(2) for m in found if m.group(1).lower() not in STOP}
    found, rest = _cut(_YEAR, rest)
    years = {int(match.group()) for match in found}
    quantities, tags = _quantities(rest)
    tags |= _tags(text)
    tags |= {("hash", value[:7]) for value in hashes}
    return Values(
        tuple(quantities), frozenset(clocks), frozenset(dates), frozenset(versions),
        frozenset(tags), frozenset(years),
    )  # fmt: skip


def same_quantity(a: Quantity, b: Quantity) -> bool:
    """Equal within 1 %, or 10 % where one of them is vague."""
    slack = 0.1 if a.vague or b.vague else 0.01
    return abs(a.value - b.value) <= slack * max(abs(a.value), abs(b.value), 1e-9)


def same_date(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    """Equal where both say something; a missing year or day is no difference."""
    return all(x == y or 0 in (x, y) for x, y in zip(a, b, strict=True))


def same_clock(a: int, b: int) -> bool:
    """Equal, a twelve-hour time read either way."""
    return a == b or abs(a - b) == 720
