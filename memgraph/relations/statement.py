"""A statement as it is compared: what was said, by whom, and when; and what a comparison finds.

A fact taken from a conversation is a quotation, ``Ann: “I live in Oslo.” (2024-01-10)``. This
module writes that form and reads it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from memgraph.model.enums import Relation
from memgraph.relations import lexicon

MAX_STATEMENT_CHARS = 240
"""A longer text holds several claims; what contradicts one of them does not contradict it."""

_QUOTATION = re.compile(r"(?P<speaker>[^:“”\n]{1,80}): “(?P<said>[^“”]+)”(?: \((?P<day>[^()]*)\))?")
# "Dentist: 3 May, 15:00." is one.
_WHEN = (
    r"(?!(?:\d\d? )?(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep"
    r"|Oct|Nov|Dec)[a-z]*\b)"
)
_MARK = re.compile(r"[.!?:。！？\n]")
_ANOTHER_SENTENCE = re.compile(
    r"(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<!\bNo)(?<!\d)(?:[.!?]\s+\S"
    rf"|:\s+{_WHEN}\S)"
    r"|(?<=\d)[.!?:]\s+(?!(?:J[aäu]|Feb|M[aä]|A[pu]|Sep|Ok|Nov|De))[A-Z]|[。！？].|\n"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One claim.

    Attributes:
        text: what was said, without the speaker.
        time_ms: when it was said, in milliseconds since 1970 UTC; None where that is unknown.
        speaker: whom "I" and "we" in ``text`` mean; None: the orchestrator's own user. Two
            statements in the first person are comparable only when their speakers are equal.
    """

    text: str
    time_ms: int | None = None
    speaker: str | None = None

    @classmethod
    def of(cls, content: str, time_ms: int | None = None, speaker: str | None = None) -> Self:
        """Return the statement that a memory's content makes; of a quotation, what was quoted."""
        # Most are none.
        quoted = _QUOTATION.fullmatch(content) if "“" in content else None
        if quoted is None:
            return cls(content, time_ms, speaker)
        return cls(quoted["said"], time_ms, quoted["speaker"])

    @property
    def is_one_claim(self) -> bool:
        """True for a single sentence of at most ``MAX_STATEMENT_CHARS`` characters."""
        if len(self.text) > MAX_STATEMENT_CHARS:
            return False
        # Looking for one class of characters is ten times as fast as for three alternatives.
        return not any(
            _ANOTHER_SENTENCE.match(self.text, mark.start()) for mark in _MARK.finditer(self.text)
        )


@dataclass(frozen=True, slots=True)
class RelationFinding:
    """A relation between an earlier and a later statement.

    Attributes:
        relation: DUPLICATE (each follows from the other), UPDATES (the later one replaces the
            earlier one, or states that something changed) or CONTRADICTS (both claim to hold, and
            cannot).
        changed: the later statement itself says that the world changed ("moved to", "no longer").
        reason: the evidence in words for a person, such as
            "same subject and attribute, other value: 30 days / 90 days"; never empty.
    """

    relation: Relation
    reason: str
    changed: bool = False


def quote(speaker: str, sentence: str, day: str | None = None) -> str:
    """Return the content of a fact that quotes a speaker.

    Args:
        speaker: a name or role, without colons or quotation marks.
        sentence: the sentence as it was said; its typographic quotation marks become plain ones.
        day: the ISO date on which it was said; None where that is unknown.
    """
    quoted = sentence.replace("“", '"').replace("”", '"')
    suffix = f" ({day})" if day else ""
    return f"{speaker}: “{quoted}”{suffix}"


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
