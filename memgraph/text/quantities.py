"""Normalise the numbers, amounts, times and dates in a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from memgraph.text import lexicon
from memgraph.text.lexicon import WEEKDAY_NAMES
from memgraph.text.tokens import ComparedToken, TypedWord

_CARDINALS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
CARDINALS: Final = tuple(_CARDINALS.split())
"""The English words for 0 to 19, by number."""
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
TENS: Final = tuple(_TENS.split())
NUMBERS: Final = {
    word: float(value)
    for group in (
        " ".join(CARDINALS),
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "zéro _ deux trois quatre cinq _ sept huit neuf dix onze douze",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez",
    )
    for value, word in enumerate(group.split())
    if word != "_"
} | {word: 10.0 * value for value, word in enumerate(TENS, start=2)} | {
    "hundred": 100.0, "thousand": 1e3, "dozen": 12.0, "anderthalb": 1.5,
}  # fmt: skip
ORDINALS: Final = {
    word: value
    for value, word in enumerate(
        (
            "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
            "tenth", "eleventh", "twelfth",
        ),
        1,
    )
}  # fmt: skip
SCALES: Final = {"k": 1e3, "thousand": 1e3, "million": 1e6, "millions": 1e6, "m_": 1e6,
                 "billion": 1e9, "hundred": 100.0, "dozen": 12.0}  # fmt: skip
UNITS: Final = {
    name: (kind, factor)
    for kind, factor, names in (
        ("time", 1e-3, "ms millisecond milliseconds msec"),
        ("time", 1.0, "s sec secs second seconds sekunde sekunden seconde secondes segundos"),
        ("time", 60.0, "min mins minute minutes minuten minuto minutos"),
        ("time", 3600.0, "h hr hrs hour hours stunde stunden heure heures hora horas"),
        ("time", 86400.0, "d day days tag tage tagen jour jours día días"),
        ("time", 604800.0, "week weeks woche wochen semaine semaines semana semanas"),
        ("time", 2629800.0, "month months monat monate monaten mois mes meses"),
        ("time", 31557600.0, "year years yr yrs jahr jahre jahren ans année années año años"),
        ("size", 1.0, "b byte bytes"), ("size", 1e3, "kb kib kilobyte kilobytes"),
        ("size", 1e6, "mb mib megabyte megabytes"), ("size", 1e9, "gb gib gigabyte gigabytes"),
        ("size", 1e12, "tb tib terabyte terabytes"),
        ("percent", 1.0, "% percent pct prozent percentage"),
        ("eur", 1.0, "eur euro euros €"), ("eur", 0.01, "cent cents"),
        ("usd", 1.0, "usd dollar dollars $"), ("gbp", 1.0, "gbp pounds £"), ("gbp", 0.01, "pence"),
        ("chf", 1.0, "chf franc francs franken"), ("crowns", 1.0, "crown crowns sek nok dkk czk"),
        ("length", 1e-3, "mm"), ("length", 1e-2, "cm"), ("length", 1.0, "m metre metres meter "
        "meters"), ("length", 1e3, "km kilometre kilometres kilometer kilometers"),
        ("length", 1609.3, "mile miles"),
        ("mass", 1e-6, "mg"), ("mass", 1e-3, "g gram grams"),
        ("mass", 1.0, "kg kilo kilos kilogram kilograms"), ("mass", 1e3, "t tonne tonnes tons"),
        ("degrees", 1.0, "° °c degree degrees celsius"), ("power", 1.0, "w watt watts"),
        ("power", 1e3, "kw"), ("volume", 1.0, "l litre litres liter liters"),
        ("volume", 1e-3, "ml"), ("rate", 1.0, "hz"), ("rate", 1e6, "mhz"), ("rate", 1e9, "ghz"),
    )
    for name in names.split()
}  # fmt: skip
PERIODS: Final = {
    "hourly": 3600.0, "daily": 86400.0, "nightly": 86400.0, "weekly": 604800.0,
    "biweekly": 1209600.0, "fortnightly": 1209600.0, "monthly": 2629800.0, "yearly": 31557600.0,
    "annually": 31557600.0, "annual": 31557600.0, "quarterly": 7889400.0,
    "hour": 3600.0, "day": 86400.0, "night": 86400.0, "week": 604800.0, "fortnight": 1209600.0,
    "month": 2629800.0, "quarter": 7889400.0, "year": 31557600.0, "minute": 60.0, "second": 1.0,
}  # fmt: skip

_PERIODIC: Final = frozenset(
    ("every", "each", "per", "a", "an", "first", "second", "third", "fourth", "last")
)
_TIMED: Final = frozenset({"past", "to", "at"})
_COUNTED: Final = frozenset({"twice", "once", "times"})
_HOURS: Final = CARDINALS[1:13]
_EVERY: Final = re.compile(
    r"\b(?:(?:(?P<times>once|twice|\d+ times|three times|four times) )?"
    r"(?:every|each|per)|(?:(?P<often>once|twice|\d+ times|three times|four times) )?an?(?= "
    r"\w+(?:[.,;]|$| (?:in|on|at|for|by|to|from|now|and|with|since|per)\b))) "
    rf"(?P<count>second|other|third|\d+|{'|'.join(_HOURS)})? ?"
    r"(?P<unit>minute|hour|day|night|week|fortnight|month|quarter|year|weekday|"
    rf"{'|'.join(WEEKDAY_NAMES['en'])}|morning|evening|afternoon|sprint)s?\b(?! ago)"
    rf"|\b(?P<nth>first|second|third|fourth|last) (?P<day>{'|'.join(WEEKDAY_NAMES['en'])})"
    r"(?= (?:of|in) (?:the|each|every) (?:month|term|quarter|year)\b)",
    re.IGNORECASE,
)
_CLOCK: Final = re.compile(
    rf"\b(?:(half|quarter|ten|five|twenty) (past|to) (?P<past>{'|'.join(_HOURS)}|\d\d?)"
    rf"|(?<=\bat )(?P<hour>{'|'.join(_HOURS)}|1[0-2]|[1-9])"
    r"(?=[.,!;]?$|[.,]? (?:in the|on|now|every|sharp|but|instead|not|these days)\b|; ))\b",
    re.IGNORECASE,
)
_TIMES: Final = re.compile(
    rf"\b(?:(?P<word>twice|once(?=[.,!]?$))|(?P<number>\d+|{'|'.join(_HOURS)}) times)\b",
    re.IGNORECASE,
)


def _time_of_day(match: re.Match[str]) -> str:
    """Return a written time, such as "half past three" or "seven", in digits."""
    word = (match["past"] or match["hour"]).lower()
    hour = _HOURS.index(word) + 1 if word in _HOURS else int(word)
    part = (match[1] or "").lower()
    minutes = {"": 0, "half": 30, "quarter": 15, "ten": 10, "five": 5, "twenty": 20}[part]
    if (match[2] or "").lower() == "to":
        # "Quarter to one" is 12:45 on the clock.
        hour, minutes = hour - 1 or 12, 60 - minutes
    return f"{hour % 24}:{minutes:02}"


def _count(match: re.Match[str]) -> str:
    """Return a count, such as "twice" or "three times", as one word: ``times_2``."""
    word = (match["word"] or match["number"]).lower()
    numbers = {"once": 1, "twice": 2} | {hour: at for at, hour in enumerate(_HOURS, 1)}
    return f" times_{numbers.get(word, word)} "


def _period(match: re.Match[str]) -> str:
    """Return a frequency, such as "every second Tuesday", as one word: ``every_tuesday_2_1``."""
    if match["nth"]:
        return f" every_{match['day'].lower()}_{match['nth'].lower()}_1 "
    unit = match["unit"].lower()
    count = (match["count"] or "1").lower()
    numbers = {"second": 2, "other": 2, "third": 3} | {
        word: at for at, word in enumerate(_HOURS, 1)
    }
    number = numbers.get(count) or int(count)
    often = (match["times"] or match["often"] or "once").lower().split()[0]
    times = int(often) if often.isdigit() else {"twice": 2, "three": 3, "four": 4}.get(often, 1)
    return f" every_{unit}_{number}_{times} "


def write_out(text: str, words: Set[str]) -> str:
    """Return a text with written times, frequencies and counts replaced by one word each.

    Args:
        words: the words of the text, in lower case.
    """
    if words & _TIMED:
        text = _CLOCK.sub(_time_of_day, text)
    if words & _PERIODIC:
        text = _EVERY.sub(_period, text)
    return _TIMES.sub(_count, text) if words & _COUNTED else text


class TypedValue(NamedTuple):
    """A value in a sentence.

    Attributes:
        text: the value as written.
        key: the normalised value, for comparison.
        kind: the kind of value, such as ``date``, ``time`` or ``usd``.
        length: the number of words.
    """

    text: str
    key: str
    kind: str
    length: int = 1


class QuantityReader:
    """Reads the values of a sentence.

    Args:
        words: the words of the sentence, as returned by ``phrases.read_words``.
    """

    def __init__(self, words: Sequence[TypedWord]) -> None:
        self.words = words

    def read(self, at: int, low: str, before: ComparedToken | None) -> TypedValue | None:
        """Return the value that begins at a word, or None.

        Args:
            at: the index of the word.
            low: the word in lower case, without an apostrophe.
            before: the previous token; None at the start of the sentence.
        """
        word = self.words[at]
        following = self.words[at + 1].low if at + 1 < len(self.words) else ""
        text = word.text
        if frequency := _frequency(text, low):
            return frequency
        if word.group in ("iso", "dotted"):
            parts = [int(part) for part in re.split(r"[-.]", low)]
            year, month, day = parts if word.group == "iso" else parts[::-1]
            return TypedValue(text, f"{year}-{month}-{day}", "date")
        if word.group == "clock":
            return TypedValue(text, _minutes(low), "clock")
        if word.group == "version":
            return TypedValue(text, low.lstrip("v"), "version")
        if word.group == "money":
            return _money(text, low)
        if word.group in ("number", "unit"):
            return self._number(at, low, following, before)
        if low in lexicon.WEEKDAYS:
            return TypedValue(text, str(lexicon.WEEKDAYS[low]), "day")
        if low in lexicon.MONTHS and self._names_month(at, low, following):
            return _month(text, low, following)
        if low in lexicon.DAY_PARTS:
            return TypedValue(text, low.removesuffix("s"), "part of the day")
        if low in lexicon.SEASONS:
            return TypedValue(text, low, "season")
        if low in ORDINALS:
            return TypedValue(text, str(ORDINALS[low]), "ordinal")
        if low in NUMBERS and not _is_indefinite(low, following, before):
            return self._number_of(NUMBERS[low], text, at, following, 1)
        if "-" in low and low.split("-")[0] in NUMBERS:
            tens, _, ones = low.partition("-")
            amount = NUMBERS[tens]
            if ones in NUMBERS and amount >= 20:
                amount += NUMBERS[ones]
                return self._number_of(amount, text, at, following, 1)
            if ones in UNITS:
                return self._number_of(amount, text, at, ones, 0)
        return None

    def _names_month(self, at: int, low: str, following: str) -> bool:
        """Return True if a word that could be a month is not a name or a verb."""
        text = self.words[at].text
        if not at and text[0].isupper() and not following[:1].isdigit() and not text.isupper():
            return False
        return low not in ("may", "march", "mar") or self.is_month(at)

    def _number(
        self, at: int, low: str, following: str, before: ComparedToken | None
    ) -> TypedValue:
        word = self.words[at]
        matched = re.match(r"[\d.,]+", low)
        digits = matched.group() if matched else "0"
        unit = low[len(digits) :].strip()
        if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
            digits = digits.replace(",", "")
        digits = digits.rstrip(".,").replace(",", ".")
        if digits.count(".") > 1:
            return TypedValue(word.text, low, "version")
        amount = float(digits)
        if unit in ("st", "nd", "rd", "th"):
            return self._day_of_month(at, int(amount), word.text, following, before)
        if unit in SCALES and unit not in UNITS:
            amount *= SCALES[unit]
            unit = ""
        if unit and unit in UNITS:
            return self._number_of(amount, word.text, at, unit, 0)
        if unit:
            return TypedValue(word.text, low, "code")
        if following in lexicon.MONTHS and amount <= 31 and "." not in digits:
            return self._day_of_month(at, int(amount), word.text, following, before)
        if before is not None and before.kind == "prep" and re.fullmatch(r"(?:19|20)\d\d", digits):
            return TypedValue(word.text, digits, "year")
        if (
            before is not None
            and (before.kind == "name" or before.key in ("version", "releas", "python", "port"))
            and following not in UNITS
        ):
            return TypedValue(word.text, digits, "version")
        if "." in digits and following not in UNITS:
            return TypedValue(word.text, f"{amount:.12g}", "number")
        return self._number_of(amount, word.text, at, following, 1)

    def _day_of_month(
        self, at: int, day: int, text: str, following: str, before: ComparedToken | None
    ) -> TypedValue:
        place = at + 1
        if following == "of" and place + 1 < len(self.words):
            place, following = place + 1, self.words[place + 1].low
        if following not in lexicon.MONTHS:
            preposition = before.key if before is not None else ""
            kind = "date" if preposition in ("on", "until", "by", "from", "in") else "ordinal"
            return TypedValue(text, str(day) if kind == "ordinal" else f"0-{day}", kind)
        year = self.words[place + 1].low if place + 1 < len(self.words) else ""
        key = f"{lexicon.MONTHS[following]}-{day}"
        if re.fullmatch(r"\d{4}", year):
            return TypedValue(f"{text} {following} {year}", f"{year}-{key}", "date", place + 2 - at)
        return TypedValue(f"{text} {self.words[place].text}", key, "date", place + 1 - at)

    def _number_of(self, amount: float, text: str, at: int, unit: str, used: int) -> TypedValue:
        """Return a number with the scale and the unit that follow it, if any.

        Args:
            unit: the word that follows the number, or the unit inside the same word.
            used: 1 if ``unit`` is a separate word, 0 if it belongs to the same word.
        """
        length = 1
        if used and unit in SCALES:
            amount *= SCALES[unit]
            text = f"{text} {self.words[at + 1].text}"
            length = 2
            unit = self.words[at + 2].low if at + 2 < len(self.words) else ""
        if unit in UNITS:
            kind, factor = UNITS[unit]
            if used:
                text = f"{text} {self.words[at + length].text}"
                length += 1
            return TypedValue(text, f"{amount * factor:.6g}", kind, length)
        return TypedValue(text, f"{amount:.12g}", "number", length)

    def is_month(self, at: int) -> bool:
        """Return True if an ambiguous word is a month, as in "in May" and "12 May"."""
        before = self.words[at - 1].low if at else ""
        return (
            self.words[at].text[0].isupper()
            and at > 0
            and (
                before in lexicon.PREPS or before in ("next", "last", "this") or before[0].isdigit()
            )
        )


def _frequency(text: str, low: str) -> TypedValue | None:
    """Return the value of a frequency or count, such as "daily" or "twice"; None for others."""
    if low.startswith("times_"):
        return TypedValue(low[6:] + " times", low[6:], "count")
    if low.startswith("every_"):
        _, unit, number, times = low.split("_")
        if unit in lexicon.WEEKDAYS:
            key = f"{lexicon.WEEKDAYS[unit]}/{number}".removesuffix("/1")
            return TypedValue(_frequency_text(unit, number, times), key, "day")
        seconds = PERIODS.get(unit)
        key = f"{unit}" if seconds is None else f"{seconds * int(number) / int(times):.0f}"
        return TypedValue(_frequency_text(unit, number, times), key, "frequency")
    if low in PERIODS and low.endswith(("ly", "annual")):
        return TypedValue(text, f"{PERIODS[low]:.0f}", "frequency")
    return None


def _month(text: str, low: str, following: str) -> TypedValue:
    """Return a month, with the day or the year that follows it, if any."""
    number = lexicon.MONTHS[low]
    if following.isdigit() and len(following) <= 2:
        return TypedValue(f"{text} {following}", f"{number}-{following}", "date", 2)
    if following.isdigit() and len(following) == 4:
        return TypedValue(f"{text} {following}", f"{following}-{number}", "month", 2)
    return TypedValue(text, str(number), "month")


def _is_indefinite(low: str, following: str, before: ComparedToken | None) -> bool:
    """Return True if "one" is a pronoun or an article ("one of us", "one day we …")."""
    if low != "one" or following not in ("of", "day", ""):
        return False
    return not (
        following == "day" and before is not None and (before.kind == "prep" or before.key == "be")
    )


def _money(text: str, low: str) -> TypedValue:
    unit, factor = UNITS[low[0]]
    digits = low[1:].strip()
    scale = {"k": 1e3, "m": 1e6}.get(digits[-1], 1.0)
    amount = float(digits.rstrip("km ").replace(",", "")) * scale * factor
    return TypedValue(text, f"{amount:.6g}", unit)


def _minutes(text: str) -> str:
    """Return a time of day as minutes since midnight."""
    low = text.lower().replace(" ", "")
    if low in ("noon", "midnight"):
        return "720" if low == "noon" else "0"
    numbers = [int(part) for part in re.findall(r"\d+", low)]
    minutes = numbers[0] * 60 + (numbers[1] if len(numbers) > 1 else 0)
    if "p" in low and numbers[0] < 12:
        minutes += 720
    if "a" in low and numbers[0] == 12:
        minutes -= 720
    return str(minutes)


def _frequency_text(unit: str, number: str, times: str) -> str:
    """Return a frequency as people write it, such as "every 2 weeks"."""
    if number.isalpha():
        return f"{number} {unit}"
    often = f"{times} times " if times != "1" else ""
    return f"{often}every {unit}" if number == "1" else f"{often}every {number} {unit}s"
