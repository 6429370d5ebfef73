"""What a language model proposes to remember, held against the text it was given.

A proposal is taken only with a quote that stands in the text, word for word: so nothing is
remembered that nobody wrote, and each memory knows its place. A model can give neither identity
nor certainty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memgraph.model.enums import MemoryType

MAX_PROPOSALS = 200
MAX_CONTENT_CHARS = 1_000
MIN_QUOTE_CHARS = 8
MAX_IMPORTANCE = 90
MAX_CONFIDENCE = 0.9
TYPES = tuple(each for each in MemoryType if each is not MemoryType.IDENTITY)

ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["memories"],
    "properties": {
        "memories": {
            "type": "array",
            "maxItems": MAX_PROPOSALS,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["content", "type", "importance", "confidence", "quote"],
                "properties": {
                    "content": {"type": "string"},
                    "type": {"type": "string", "enum": [each.value for each in TYPES]},
                    "importance": {"type": "integer", "minimum": 0, "maximum": MAX_IMPORTANCE},
                    "confidence": {"type": "number", "minimum": 0, "maximum": MAX_CONFIDENCE},
                    "quote": {"type": "string"},
                },
            },
        }
    },
}
_FIELDS = frozenset(ANSWER_SCHEMA["properties"]["memories"]["items"]["required"])


@dataclass(frozen=True, slots=True)
class Proposal:
    """A memory that may be stored. ``start`` and ``end`` are the quote's offsets in the text."""

    content: str
    type: MemoryType
    importance: int
    confidence: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RejectedProposal:
    """``index`` is its place in the answer; -1 means the answer as a whole."""

    index: int
    code: str


def judge(answer: Any, text: str) -> tuple[tuple[Proposal, ...], tuple[RejectedProposal, ...]]:
    """Split an answer into what may be stored and what may not, each with a reason code."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("memories"), list):
        return (), (RejectedProposal(-1, "answer_shape"),)
    taken: list[Proposal] = []
    refused: list[RejectedProposal] = []
    said: set[str] = set()
    for index, item in enumerate(answer["memories"]):
        if index >= MAX_PROPOSALS:
            refused.append(RejectedProposal(-1, "too_many_proposals"))
            break
        judged = _judge_one(item, text)
        if isinstance(judged, str):
            refused.append(RejectedProposal(index, judged))
        elif judged.content in said:
            refused.append(RejectedProposal(index, "repeated"))
        else:
            said.add(judged.content)
            taken.append(judged)
    return tuple(taken), tuple(refused)


def _judge_one(item: Any, text: str) -> Proposal | str:
    if not isinstance(item, Mapping) or set(item) != _FIELDS:
        return "fields"
    content, kind, quote = item["content"], item["type"], item["quote"]
    importance, confidence = item["importance"], item["confidence"]
    if not isinstance(content, str) or not 0 < len(content.strip()) <= MAX_CONTENT_CHARS:
        return "content"
    if not isinstance(kind, str) or kind not in {each.value for each in TYPES}:
        return "type"
    if not _is_number(importance, int) or not 0 <= importance <= MAX_IMPORTANCE:
        return "importance"
    if not _is_number(confidence, int | float) or not 0 <= confidence <= MAX_CONFIDENCE:
        return "confidence"
    if not isinstance(quote, str) or len(quote.strip()) < MIN_QUOTE_CHARS:
        return "quote"
    start = text.find(quote.strip())
    if start < 0:
        return "quote_not_in_text"
    return Proposal(
        content=" ".join(content.split()),
        type=MemoryType(kind),
        importance=importance,
        confidence=float(confidence),
        start=start,
        end=start + len(quote.strip()),
    )


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
