"""Split a sentence into words and typed tokens, and show tokens as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from memgraph.relations import lexicon


class ComparedToken(NamedTuple):
    """A content word or a value.

    Attributes:
        text: as typed.
        key: what is compared: the stem of a word, the canonical amount of a value.
        kind: "word", "name", "prep" or the kind of value ("number", "time", "clock", "day", …).
    """

    text: str
    key: str
    kind: str

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
UNCHANGED: Final = lexicon.words("quit put cut set hit let split shut")


class TypedWord(NamedTuple):
    """A word, value or sign as typed, in lower case, with its kind and its place."""

    text: str
    low: str
    group: str
    at: int


def split_words(text: str) -> list[TypedWord]:
    """Return the words, values and signs of a text; homographs as the language reads them."""
    typed = [
        TypedWord(match.group(), match.group().lower(), match.lastgroup or "", match.start())
        for match in _TOKEN.finditer(text)
    ]
    if any(word.text in lexicon.FOREIGN for word in typed):
        typed = [
            word._replace(low=lexicon.HOMOGRAPHS.get(word.low, word.low))
            if not word.text.isupper()
            else word
            for word in typed
        ]
    return typed


TIMES: Final = frozenset({"day", "date", "month", "clock", "year", "frequency", "season",
                           "part of the day"})  # fmt: skip
"""Kinds of values that tell when."""
AGENTS: Final = frozenset({"we", "they", "you"})
"""Subjects that every speaker uses for a group of their own."""


def key_of(token: ComparedToken) -> str:
    """Return what a token is compared by; prepositions of place and time are all alike."""
    if token.kind == "prep":
        return token.key if token.key in lexicon.SPECIFIC_PREPS else "at"
    return f"{token.kind}:{token.key}" if token.is_value else token.key


def content(tokens: Sequence[ComparedToken]) -> frozenset[str]:
    """Return what tokens are compared by, without prepositions, "be" and "have"."""
    return frozenset(key_of(t) for t in tokens if t.kind != "prep" and t.key not in ("be", "have"))


def bare(tokens: Sequence[ComparedToken]) -> tuple[ComparedToken, ...]:
    """Return tokens without the prepositions at either end."""
    trimmed = list(tokens)
    while trimmed and trimmed[0].kind == "prep":
        trimmed.pop(0)
    while trimmed and trimmed[-1].kind == "prep":
        trimmed.pop()
    return tuple(trimmed)


def is_past(low: str) -> bool:
    """Return True for a verb in a form of the past."""
    return (
        low in lexicon.PAST_FORMS
        or low in UNCHANGED
        or (low.endswith("ed") and not low.endswith("eed"))
    )


def minutes(text: str) -> str:
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


def spoken(unit: str, number: str, times: str) -> str:
    """Return "every 2 weeks" and the like as a person reads it."""
    if number.isalpha():
        return f"{number} {unit}"
    often = f"{times} times " if times != "1" else ""
    return f"{often}every {number + ' ' if number != '1' else ''}{unit}"


def shown(tokens: Sequence[ComparedToken]) -> str:
    """Return tokens as a person reads them."""
    return " ".join(token.text for token in tokens)
