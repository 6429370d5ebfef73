"""Split a text into words and values (numbers, times, versions, amounts)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

LETTERS: Final = re.compile(r"[^\W\d_]+")
"""Runs of letters."""
WORDS: Final = re.compile(r"[^\W_]+")
"""Runs of letters and digits, as the text index splits a text."""
CONTRACTIONS: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
"""Words; a contraction is one word: "don't"."""
COMPOUNDS: Final = re.compile(r"[^\W_]+(?:['’.+/:-][^\W_]+)*+")
"""Words; a compound, a path or a version is one word: "well-known", "3.11", "10:30"."""


class ComparedToken(NamedTuple):
    """A content word or a value.

    Attributes:
        text: as typed.
        key: the value that is compared: the stem of a word, the canonical form of a value.
        kind: "word", "name", "prep" or the kind of value ("number", "time", "clock", "day", …).
        joined: True where no space stands before it, as before the "2" of "B2".
    """

    text: str
    key: str
    kind: str
    joined: bool = False

    @property
    def is_value(self) -> bool:
        return self.kind not in ("word", "name", "prep")


_TOKEN: Final = re.compile(
    r"(?P<url>https?://[^\s,;\"'”)]+)"
    r"|(?P<mail>[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8})"
    r"|(?P<ip>\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?:/\d{1,2})?)"
    r"|(?P<iso>\d{4}-\d\d-\d\d)"
    r"|(?P<dotted>\d\d?\.\d\d?\.\d{4})"
    r"|(?P<clock>\d{1,2}[:.]\d\d\s?(?:[ap]\.?m\b\.?)|\d{1,2}:\d\d(?:\s?uhr\b)?|\d{1,2}\s?(?:am|pm|"
    r"a\.m\.|p\.m\.|uhr|o'clock)(?![\w])|\d{1,2}\s?h\d\d\b|(?<=à )\d{1,2}\s?h\b|\bnoon\b|"
    r"\bmidnight\b)"
    r"|(?P<version>\bv?\d+(?:\.\d+){2,4}[\w-]*|\bv\d+(?:\.\d+)*)"
    r"|(?P<money>[$€£]\s?\d[\d,]*(?:\.\d+)?\s?[km]?\b)"
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)(?P<unit>\s?(?:%|°c|°)"
    r"|[a-zµ]{1,4}\b)?"
    r"|(?P<code>[^\W\d]\w*(?:[._/-]\w+)*-\d\w*(?:[._/-]\w+)*|[^\W\d]\w*(?:[._/]\w+)+|"
    r"\w*_\w+(?:[._/-]\w+)*)"
    r"|(?P<word>[^\W\d_]+(?:-[^\W\d_]+)*(?:'s?)?|[c]\+\+|c#|['’](?:s|re|m|ve|ll)\b)"
    r"|(?P<sign>[,;:()?!–—])",
    re.IGNORECASE,
)


class TypedWord(NamedTuple):
    """A word, value or sign as typed, in lower case, with its kind and its place."""

    text: str
    low: str
    group: str
    at: int


def split_words(text: str) -> list[TypedWord]:
    """Return the words, values and signs of a text."""
    return [
        TypedWord(match.group(), match.group().lower(), match.lastgroup or "", match.start())
        for match in _TOKEN.finditer(text)
    ]
