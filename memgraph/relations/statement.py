"""A statement as it is compared: what was said, by whom, and when; and what a comparison finds.

A fact taken from a conversation is a quotation, ``Ann: “I live in Oslo.” (2024-01-10)``. This
module writes that form and reads it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from memgraph.model.enums import Relation
from memgraph.text import lexicon
from memgraph.text.tokens import ComparedToken

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


UNCHANGED: Final = lexicon.words("quit put cut set hit let split shut")


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


def shown(tokens: Sequence[ComparedToken]) -> str:
    """Return tokens as a person reads them."""
    return "".join(f"{'' if t.joined else ' '}{t.text}" for t in tokens).strip()
