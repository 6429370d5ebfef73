"""What a language model proposes of a conversation, held against the turns it was given.

A fact is taken only with the turns it rests on, a quote that stands in one of them, words of which
a third come from them, no number and no name that is not in them, and a negation where the quoted
clause has one. That is not a proof: the words of a turn can be put together to say something else,
which is why the quote is kept beside the fact. A model can give neither identity nor certainty,
and what it says of its own confidence is capped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryType
from memgraph.policy.agent_grounds import NEGATION, is_turned, unsaid
from memgraph.policy.dedup import normalise_content, word_set
from memgraph.policy.proposals import (
    MAX_CONFIDENCE,
    MAX_CONTENT_CHARS,
    MAX_IMPORTANCE,
    MIN_QUOTE_CHARS,
    TYPES,
)

MAX_QUOTE_CHARS: Final = 600
MAX_EVIDENCE: Final = 8
KEPT_CONFIDENCE: Final = 0.7
"""Highest confidence that a fact keeps whose only witness is a model."""
MIN_GROUNDED: Final = 1 / 3
"""Share of a fact's words that must stand in its evidence, by their first letters."""

FACT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["content", "type", "importance", "confidence", "evidence", "quote"],
    "properties": {
        "content": {
            "type": "string",
            "maxLength": MAX_CONTENT_CHARS,
            "description": "One sentence that stands alone: who, what, when.",
        },
        "type": {"type": "string", "enum": [each.value for each in TYPES]},
        "importance": {"type": "integer", "minimum": 0, "maximum": MAX_IMPORTANCE},
        "confidence": {"type": "number", "minimum": 0, "maximum": MAX_CONFIDENCE},
        "evidence": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_EVIDENCE,
            "items": {"type": "string"},
            "description": "Ids of the episodes that say it.",
        },
        "quote": {
            "type": "string",
            "maxLength": MAX_QUOTE_CHARS,
            "description": "The words of one of these episodes that say it, unchanged.",
        },
        "event_time": {
            "type": "string",
            "description": "ISO 8601, if the fact tells of a certain time.",
        },
    },
}
_REQUIRED = frozenset(FACT_SCHEMA["required"])
_KNOWN = frozenset(FACT_SCHEMA["properties"])
_TYPE_NAMES = frozenset(each.value for each in TYPES)
# Scripts that write no spaces: their runs are compared by pairs of characters.
_FIRST_UNSPACED = "\u2e80"
_STEM = 4
_DATE = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b")


@dataclass(frozen=True, slots=True)
class Said:
    """A turn as far as it matters here."""

    content: str
    speaker: str


@dataclass(frozen=True, slots=True)
class ProposedFact:
    """A fact that may be staged. ``quoted`` is the id of the turn in which the quote stands."""

    content: str
    type: MemoryType
    importance: int
    confidence: float
    event_time: int | None
    evidence: tuple[str, ...]
    quote: str
    quoted: str


def judge_fact(item: Any, turns: Mapping[str, Said]) -> ProposedFact | str:
    """The fact that may be staged, or the code of why it may not.

    Args:
        item: what the model gave, anything at all.
        turns: the turns of the page by their ids, in their order.
    """
    if not isinstance(item, Mapping) or not _REQUIRED <= set(item) <= _KNOWN:
        return "fields"
    wrong = _wrong_value(item)
    if wrong is not None:
        return wrong
    cited = set(item["evidence"])
    if not cited <= turns.keys():
        return "evidence_unknown"
    evidence = tuple(each for each in turns if each in cited)
    quote = _one_line(item["quote"])
    quoted = next((each for each in evidence if quote in _one_line(turns[each].content)), None)
    if quoted is None:
        return "quote_not_in_evidence"
    content = normalise_content(item["content"])
    if grounded(content, [turns[each] for each in evidence]) < MIN_GROUNDED:
        return "not_grounded"
    ground = "\n".join(turns[each].content for each in evidence)
    wrong = unsaid(content, ground, {each.speaker for each in turns.values()})
    if wrong is None and is_turned(content, quote, turns[quoted].content):
        wrong = NEGATION
    if wrong is not None:
        return wrong
    return ProposedFact(
        content=content,
        type=MemoryType(item["type"]),
        importance=item["importance"],
        confidence=min(float(item["confidence"]), KEPT_CONFIDENCE),
        event_time=_moment(item.get("event_time")),
        evidence=evidence,
        quote=quote,
        quoted=quoted,
    )


def grounded(content: str, turns: Sequence[Said]) -> float:
    """Share of the words of ``content`` that its evidence has too, 0..1.

    Words of fewer than four letters count only where there are no others; a word is known by its
    first four letters, so that inflection matters little. Dates are left out, because a fact says
    on which day "tomorrow" is.
    """
    text = "\n".join(f"{turn.speaker} {turn.content}" for turn in turns)
    undated = _DATE.sub(" ", content)
    claimed, said = _stems(undated), _stems(text)
    if not claimed:
        claimed, said = word_set(undated), word_set(text)
    return len(claimed & said) / len(claimed) if claimed else 0.0


def _wrong_value(item: Mapping[str, Any]) -> str | None:
    """The code of the first value that is out of its bounds."""
    content, quote, evidence = item["content"], item["quote"], item["evidence"]
    if not _is_text(content) or not content.strip():
        return "content"
    if len(content) > MAX_CONTENT_CHARS:
        return "content_too_long"
    if item["type"] == MemoryType.IDENTITY:
        return "identity"
    if not isinstance(item["type"], str) or item["type"] not in _TYPE_NAMES:
        return "type"
    if type(item["importance"]) is not int or not 0 <= item["importance"] <= MAX_IMPORTANCE:
        return "importance"
    if type(item["confidence"]) not in (int, float) or item["confidence"] < 0:
        return "confidence"
    if item["confidence"] > MAX_CONFIDENCE:
        return "certainty"
    if not isinstance(evidence, list) or not 0 < len(evidence) <= MAX_EVIDENCE:
        return "evidence"
    if not all(isinstance(each, str) for each in evidence):
        return "evidence"
    # In bytes, because some scripts say in three characters what takes eight letters.
    if not _is_text(quote) or len(quote.strip().encode()) < MIN_QUOTE_CHARS:
        return "quote"
    if len(quote) > MAX_QUOTE_CHARS:
        return "quote_too_long"
    if "event_time" in item and _moment(item["event_time"]) is None:
        return "event_time"
    return None


def _one_line(text: str) -> str:
    """A quote may break its lines elsewhere; every other character stands as it was written."""
    return " ".join(text.split())


def _is_text(value: Any) -> bool:
    """Text that can be stored: without NUL and lone surrogates."""
    return isinstance(value, str) and "\x00" not in value and _encodes(value)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _moment(given: Any) -> int | None:
    """Milliseconds of ISO 8601 text; None: no such text."""
    if not isinstance(given, str):
        return None
    try:
        return parse_time(given)
    except (InvalidInput, OverflowError):
        return None


def _stems(text: str) -> frozenset[str]:
    stems: set[str] = set()
    for word in word_set(text):
        if word[0] >= _FIRST_UNSPACED:
            stems.update(word[at : at + 2] for at in range(max(len(word) - 1, 1)))
        elif len(word) >= _STEM or word.isnumeric():
            stems.add(word[:_STEM])
    return frozenset(stems)
