"""Read what a language model proposes: tolerant of its form, bounded, and tied to its evidence.

What a proposal means is not decided here: ``memgraph.consolidation.statements`` checks it against
the turns that it cites.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryType
from memgraph.rules.similarity import normalise_content

MAX_PROPOSALS = 200
MAX_CONTENT_CHARS = 1_000
MAX_QUOTE_CHARS: Final = 600
MAX_IMPORTANCE = 90
MAX_CONFIDENCE = 0.9
MODEL_CONFIDENCE: Final = 0.7
"""The confidence of a fact that a model wrote and its evidence supports."""
TYPES = tuple(each for each in MemoryType if each is not MemoryType.IDENTITY)

_TYPES_BY_NAME: Final = {each.value.casefold(): each for each in TYPES}
_ISO_PREFIX: Final = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")
_NUMBER: Final = re.compile(r"\d+")
_QUOTES: Final = str.maketrans(dict.fromkeys("‘’‚‛′`´", "'") | dict.fromkeys("“”„‟«»″", '"'))
_DASHES: Final = re.compile(r"\s*[-‐‑‒–—―]+\s*")
_ELLIPSIS: Final = re.compile(r"\s*(?:…|\.{3,}|\[(?:…|\.{3,})\])\s*")
_SPACES: Final = re.compile(r"\s+")


def items_of(answer: Any, name: str) -> list[Any]:
    """Return the list of an answer with this name; a single value counts as a list of one."""
    value = answer.get(name) if isinstance(answer, Mapping) else None
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Any) -> str:
    """Return a value as one line of text; empty if it is none, or cannot be stored."""
    if not isinstance(value, str):
        return ""
    line = normalise_content(value)
    unstorable = any(unicodedata.category(char) in ("Cc", "Cs") for char in line)
    return "" if unstorable else line


def number_of(value: Any) -> int | None:
    """Return the number in a reference such as 3, "3", "k3" or "[3]"; None if it has none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _NUMBER.findall(value) if isinstance(value, str) else []
    return int(found[0]) if len(found) == 1 and len(found[0]) < 10 else None


def type_of(value: Any, otherwise: MemoryType) -> MemoryType:
    """Return the type with this name in any case; another one if there is none, or for Identity."""
    name = value.strip().casefold() if isinstance(value, str) else ""
    return _TYPES_BY_NAME.get(name, otherwise)


def importance_of(value: Any, otherwise: int) -> int:
    """Return an importance within 0..90; another one if the value is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return min(otherwise, MAX_IMPORTANCE)
    return round(min(max(value, 0), MAX_IMPORTANCE))


def time_of(value: Any) -> tuple[int | None, str]:
    """Return the beginning of an ISO 8601 time of any precision, in ms; None if it is none.

    Returns:
        The time, and the year or the month, such as ``2024`` or ``2024-05``, if no day is given;
        else an empty text.
    """
    text = str(value).strip() if isinstance(value, str | int) else ""
    try:
        return parse_time(text), ""
    except (InvalidInput, OverflowError):
        found = _ISO_PREFIX.match(text)
    if found is None:
        return None, ""
    year, month, day = found.groups()
    try:
        at = parse_time(f"{year}-{month or '01'}-{day or '01'}")
    except (InvalidInput, OverflowError):
        return None, ""
    return at, "" if day else found[0]


def is_quoted(quote: str, text: str) -> bool:
    """Return True if a text contains a quote.

    Case, white space, and the forms of quotation marks and dashes do not matter; an ellipsis may
    stand for words that are left out.
    """
    said = folded_quote(text)
    parts = [folded_quote(part).strip(" \"'.") for part in _ELLIPSIS.split(quote)]
    parts = [part for part in parts if part]
    place = 0
    for part in parts:
        found = said.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return bool(parts)


def folded_quote(text: str) -> str:
    """Return a text in one case, with one form of quotation marks, dashes and white space."""
    plain = unicodedata.normalize("NFKC", _ELLIPSIS.sub(" … ", text))
    plain = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    plain = _DASHES.sub("-", plain.translate(_QUOTES))
    return _SPACES.sub(" ", plain).strip().casefold()
