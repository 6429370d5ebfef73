"""Numbers, amounts, dates and clock times in a short statement, in one notation.

Durations are seconds, sizes bytes, lengths metres, weights kilograms, shares percent, so that
"90 min" equals "an hour and a half". Relative dates are resolved with the time of recording.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Never

from memgraph.classification.relation_dates import cut, read_clocks, read_dates, read_relative
from memgraph.classification.relation_lexicon import ID_NOUNS, STOP, words
from memgraph.classification.relation_tokens import stem
from memgraph.classification.relation_units import ORDINALS, SCALE, SMALL, UNITS

_VAGUE: Final = words("roughly about around almost nearly approximately ~ ca circa some")
_PARTS: Final = re.compile(
    r"#?\d[\d,.]*\d(?:e-?\d+)?|#?\d(?:e-?\d+)?|km/h|[^\W\d_]+(?:'[^\W\d_]+)?|°\s?[CF]?|[%€$£#~]|−|\S",
    re.UNICODE,
)
_VERSION: Final = re.compile(
    r"\bv?\d+(?:\.\d+){2,}\b|\bv\d+(?:\.\d+)*\b|\b\d+\.(?:x|\d+\.x)\b", re.I
)
_PRODUCT: Final = re.compile(r"\b([A-Z][a-z]\w*):? (\d+(?:\.\d+)+)\b(?! ?[%€])")
_LETTERED: Final = re.compile(r"\b([A-Za-z]+) ([A-Z])\b(?!')")
_HEX: Final = re.compile(r"\b(?=\w*\d)(?=\w*[a-f])[0-9a-f]{6,40}\b")
_YEAR: Final = re.compile(
    r"(?<!EUR )(?<!USD )(?<!CHF )(?<![€$#])\b(?:19|20)\d\d\b(?! (?:EUR|USD|CHF|kg|ms))"
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
    + "|".join(sorted({*SMALL, *SCALE, *ORDINALS} - {"a", "k", "un"}, key=len, reverse=True))
    + r")", re.I
)  # fmt: skip


# Letters that match s and i without regard to case, yet are not found so in a table.
_FOLDED: Final = str.maketrans("ſİı", "sIi")
_LARGEST: Final = 1e15
_NONE: Final[frozenset[Never]] = frozenset()


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
        text = text.replace(",", "")
    elif re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}", text):
        text = text.replace(".", "")
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    return value if value <= _LARGEST else None


def _amount_at(parts: list[str], i: int) -> tuple[float, int] | None:
    """The number that begins at ``parts[i]`` and how many parts it takes."""
    low = parts[i].lower()
    if low[0].isdigit() or (low[0] == "#" and len(low) > 1):
        value = _number(low)
        taken = 1
    elif low in SMALL:
        value, taken = SMALL[low], 1
        nxt = parts[i + 1].lower() if i + 1 < len(parts) else ""
        if nxt == "-" and i + 2 < len(parts) and parts[i + 2].lower() in SMALL and value >= 20:
            value, taken = value + SMALL[parts[i + 2].lower()], 3
        elif value >= 20 and 0 < SMALL.get(nxt, 0) < 10:
            value, taken = value + SMALL[nxt], 2
    else:
        return None
    if value is None:
        return None
    while i + taken < len(parts) and parts[i + taken].lower() in SCALE and value <= _LARGEST:
        value *= SCALE[parts[i + taken].lower()]
        taken += 1
    return value, taken


def _unit_after(parts: list[str], i: int) -> tuple[str, float] | None:
    if i >= len(parts):
        return None
    unit = parts[i].lower().replace(" ", "")
    if unit in {"-", "‑"} and i + 1 < len(parts):
        unit = parts[i + 1].lower()
    return UNITS.get(unit)


def _counted(parts: list[str], i: int) -> str:
    """Stem of the noun after a number: the last of up to three words before a stop sign."""
    words: list[str] = []
    for part in parts[i : i + 3]:
        if not part[0].isalpha() or part.lower() in _AFTER_NOUN:
            break
        words.append(stem(part.lower()))
    return words[-1] if len(words) < 3 else words[0]


_AFTER_NOUN: Final = words(
    "of in on at per a an to for and or is are was with from the by each every than before after "
    "who that which we you it he she they so but as do does did has have can"
)


def _quantities(text: str) -> tuple[list[Quantity], set[tuple[str, str]]]:
    quantities = [Quantity(*fixed, "", False) for pattern, fixed in _FIXED if pattern.search(text)]
    for pattern, _ in _FIXED:
        _, text = cut(pattern, text)
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
        if unit is None and before in UNITS and UNITS[before][0] == "money":
            unit = UNITS[before]
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
    text = text.translate(_FOLDED)
    if not _FIGURE.search(text):
        # Most statements hold no figure at all, and the patterns below cost more than the rest.
        dates = frozenset(read_relative(text, time_ms))
        return Values((), _NONE, dates, _NONE, _tags(text), _NONE)
    found, rest = cut(_HEX, text)
    hashes = {match.group() for match in found}
    days, rest = read_dates(rest, time_ms)
    clocks, rest = read_clocks(rest)
    found, rest = cut(_VERSION, rest)
    versions = {match.group().lower().lstrip("v") for match in found}
    found, rest = cut(_PRODUCT, rest)
    versions |= {m.group(2) for m in found if m.group(1).lower() not in STOP}
    found, rest = cut(_YEAR, rest)
    years = {int(match.group()) for match in found}
    quantities, tags = _quantities(rest)
    tags |= _tags(text)
    tags |= {("hash", value[:7]) for value in hashes}
    return Values(
        tuple(quantities), frozenset(clocks), frozenset(days), frozenset(versions),
        frozenset(tags), frozenset(years),
    )  # fmt: skip


def same_quantity(a: Quantity, b: Quantity) -> bool:
    """Equal within 1 %, or 10 % where one of them is vague."""
    slack = 0.1 if a.vague or b.vague else 0.01
    return abs(a.value - b.value) <= slack * max(abs(a.value), abs(b.value), 1e-9)
