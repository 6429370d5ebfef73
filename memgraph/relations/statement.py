"""Statements to be compared (text, time and speaker), and the findings of a comparison.

A fact taken from a conversation is a quotation, ``Ann: “I live in Oslo.” (2024-01-10)``. This
module writes and parses that form.
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
"""A longer text makes several claims; a contradiction of one does not contradict the others."""

_QUOTATION = re.compile(r"(?P<speaker>[^:“”\n]{1,80}): “(?P<said>[^“”]+)”(?: \((?P<day>[^()]*)\))?")
# "Dentist: 3 May, 15:00." is a single sentence.
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
    """A claim, with its speaker and time.

    Attributes:
        text: the words of the claim, without the speaker.
        time_ms: when it was said, in milliseconds since 1970 UTC; None if unknown.
        speaker: the person who is "I" in ``text``; None: the orchestrator's own user. Two
            statements in the first person are comparable only when their speakers are equal.
    """

    text: str
    time_ms: int | None = None
    speaker: str | None = None

    @classmethod
    def of(cls, content: str, time_ms: int | None = None, speaker: str | None = None) -> Self:
        """Return the statement in a memory's content; for a quotation, the quoted sentence."""
        # Most contents are not quotations, and this check is cheap.
        quoted = _QUOTATION.fullmatch(content) if "“" in content else None
        if quoted is None:
            return cls(content, time_ms, speaker)
        return cls(quoted["said"], time_ms, quoted["speaker"])

    @property
    def is_one_claim(self) -> bool:
        """True for a single sentence of at most ``MAX_STATEMENT_CHARS`` characters."""
        if len(self.text) > MAX_STATEMENT_CHARS:
            return False
        # Searching for one character class is ten times as fast as for three alternatives.
        return not any(
            _ANOTHER_SENTENCE.match(self.text, mark.start()) for mark in _MARK.finditer(self.text)
        )


@dataclass(frozen=True, slots=True)
class RelationFinding:
    """A relation between an earlier and a later statement.

    Attributes:
        relation: DUPLICATE (each follows from the other), UPDATES (the later one replaces the
            earlier one, or states that something changed) or CONTRADICTS (they cannot both be
            true).
        changed: True if the later statement itself says that something changed ("moved to",
            "no longer").
        reason: a description of the evidence for people, such as
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
        day: the ISO date on which it was said; None if unknown.
    """
    quoted = sentence.replace("“", '"').replace("”", '"')
    suffix = f" ({day})" if day else ""
    return f"{speaker}: “{quoted}”{suffix}"


UNCHANGED: Final = lexicon.words("quit put cut set hit let split shut")


TIMES: Final = frozenset({"day", "date", "month", "clock", "year", "frequency", "season",
                           "part of the day"})  # fmt: skip
"""Kinds of values that are dates or times."""
AGENTS: Final = frozenset({"we", "they", "you"})
"""Subjects that mean a different group for every speaker."""


def key_of(token: ComparedToken) -> str:
    """Return the comparison key of a token; prepositions of place and time share one key."""
    if token.kind == "prep":
        return token.key if token.key in lexicon.SPECIFIC_PREPS else "at"
    return f"{token.kind}:{token.key}" if token.is_value else token.key


def content(tokens: Sequence[ComparedToken]) -> frozenset[str]:
    """Return the comparison keys of tokens, without prepositions, "be" and "have"."""
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
    """Return True for a verb in the past tense."""
    return (
        low in lexicon.PAST_FORMS
        or low in UNCHANGED
        or (low.endswith("ed") and not low.endswith("eed"))
    )


def shown(tokens: Sequence[ComparedToken]) -> str:
    """Return the text of tokens, for display."""
    return "".join(f"{'' if t.joined else ' '}{t.text}" for t in tokens).strip()
