"""Check a language model's proposals against the text it was given.

A proposal is accepted only with a literal quote from the text, so that every memory has a source.
A model cannot propose identities, nor full confidence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryType
from memgraph.rules.similarity import normalise_content, word_set
from memgraph.text.lexicon import CALENDAR, CARDINALS, STOP_WORDS, TENS
from memgraph.text.sentences import split_sentences
from memgraph.text.stem import COMPOUNDS, LETTERS

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
    """An accepted proposal. ``start`` and ``end`` are the offsets of the quote in the text."""

    content: str
    type: MemoryType
    importance: int
    confidence: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RejectedProposal:
    """A rejected proposal. ``index`` is its position in the answer; -1 means the whole answer."""

    index: int
    code: str


def judge(answer: Any, text: str) -> tuple[tuple[Proposal, ...], tuple[RejectedProposal, ...]]:
    """Split an answer into accepted proposals, and rejected ones with a reason code."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("memories"), list):
        return (), (RejectedProposal(-1, "answer_shape"),)
    accepted: list[Proposal] = []
    refused: list[RejectedProposal] = []
    contents: set[str] = set()
    for index, item in enumerate(answer["memories"]):
        if index >= MAX_PROPOSALS:
            refused.append(RejectedProposal(-1, "too_many_proposals"))
            break
        judged = _judge_one(item, text)
        if isinstance(judged, str):
            refused.append(RejectedProposal(index, judged))
        elif judged.content in contents:
            refused.append(RejectedProposal(index, "repeated"))
        else:
            contents.add(judged.content)
            accepted.append(judged)
    return tuple(accepted), tuple(refused)


def _judge_one(item: Any, text: str) -> Proposal | str:
    if not isinstance(item, Mapping) or set(item) != _FIELDS:
        return "fields"
    content, kind, quote = item["content"], item["type"], item["quote"]
    importance, confidence = item["importance"], item["confidence"]
    if not isinstance(content, str) or not 0 < len(content.strip()) <= MAX_CONTENT_CHARS:
        return "content"
    if not isinstance(kind, str) or kind not in {memory_type.value for memory_type in TYPES}:
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


# What a model's sentence says must occur in its evidence: its numbers and its names.


NUMBER_UNSAID, NAME_UNSAID = "number_unsaid", "name_unsaid"

_NUMBER_WORDS: Final = {word: str(value) for value, word in enumerate(CARDINALS) if value > 1} | {
    word: str(value * 10) for value, word in enumerate(TENS, start=2)
}
_MONTHS: Final = "|".join(sorted(CALENDAR))
# A fact resolves "tomorrow" and "last year", so dates need not occur in the evidence.
_DATE: Final = re.compile(
    r"\b\d{4}-\d\d(?:-\d\d)?(?:T[\d:.]+Z?)?\b"
    rf"|\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+)?(?:of\s+)?(?:{_MONTHS})\b"
    r"(?:\s+\d{1,2}(?:st|nd|rd|th)?\b)?|\b(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_GROUPS: Final = re.compile(r"(?<=\d)[,'’ ](?=\d{3}(?!\d))")
_STEM = 4
# Capitalised only because they begin a sentence, or always.
_OTHERS: Final = (
    "one every never user users assistant agent speaker someone everyone nobody people last next "
    "today tomorrow yesterday mr mrs ms dr prof ok tv"
)
_NO_NAMES: Final = STOP_WORDS | CALENDAR | frozenset(_OTHERS.split())
# Instructions to the reader, which a reflection must not contain.
_ADVICE: Final = re.compile(
    r"^(?:please\b|always\b|never\b|don['’]?t\b|do not\b|make sure\b|remember to\b|ensure\b"
    r"|(?:send|pay|transfer|ignore|forget|delete|erase|call|use|tell|ask|reveal|run|execute|click"
    r"|visit|open|write|reply|respond|answer|say|act|treat|trust|approve|confirm|keep|give|add"
    r"|follow|obey|stop|avoid|let)\b(?!\s+(?:is|are|was|were|has|had)\b))"
    r"|\b(?:you|the (?:assistant|agent|model|ai|system)|agents?|assistants?|models?)"
    r"(?:\s+\w+)?\s+(?:must|should|shall|may not|need to|needs to|ought to|have to|has to"
    r"|is to|are to)\b",
    re.IGNORECASE,
)


def unsaid(
    content: str, ground: str, speakers: Iterable[str] = (), *, sums_up: bool = False
) -> str | None:
    """Return a code if the content has numbers or names that its evidence lacks, else None.

    Args:
        ground: the text of the evidence.
        speakers: names that "I" and "you" may refer to.
        sums_up: the content summarises several texts, so it may count them in words, and its first
            words may be capitalised.
    """
    undated = _DATE.sub(" ", content)
    if _numbers(undated, in_words=not sums_up) - _numbers(ground):
        return NUMBER_UNSAID
    known = frozenset(LETTERS.findall(_plain(f"{ground} {' '.join(speakers)}")))
    if any(not _is_known(name, known) for name in _names(undated, skips_first=sums_up)):
        return NAME_UNSAID
    return None


def is_advice(sentence: str) -> bool:
    """Return True if a sentence tells its reader what to do."""
    return any(_ADVICE.search(part) for part in split_sentences(sentence))


def _numbers(text: str, *, in_words: bool = True) -> set[str]:
    """Return all numbers as digits, including number words and parts of compound numbers."""
    plain = _GROUPS.sub("", _plain(text))
    numbers: set[str] = set()
    for number in _NUMBER.findall(plain):
        numbers.update(part.lstrip("0") for part in re.split("[.,:/-]", number))
    if in_words:
        words = LETTERS.findall(plain)
        numbers.update(_NUMBER_WORDS[word] for word in words if word in _NUMBER_WORDS)
    # Zeros are ignored: "at nine" is 9:00.
    return numbers - {""}


def _names(content: str, *, skips_first: bool) -> Iterator[str]:
    """Yield the words that are capitalised as names."""
    for sentence in split_sentences(content):
        words = [] if sentence.isupper() else COMPOUNDS.findall(sentence)
        for word in words[skips_first:]:
            lower = _plain(re.sub(r"['’]\w*$", "", word))
            if word[0].isupper() and lower not in _NO_NAMES:
                yield lower


def _is_known(name: str, known: frozenset[str]) -> bool:
    """Return True when a name occurs among words, in any inflection ("Anna", "Annas")."""
    return all(
        part in known
        or (
            len(part) >= _STEM
            and any(
                word.startswith(part[: max(_STEM, len(part) - 2)])
                or (len(word) > 2 and word not in STOP_WORDS and part[:-2].startswith(word))
                for word in known
            )
        )
        for part in LETTERS.findall(name)
    )


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


# Check facts that a language model proposes from a conversation against its turns.


MAX_QUOTE_CHARS: Final = 600
MAX_EVIDENCE: Final = 8
KEPT_CONFIDENCE: Final = 0.7
"""The maximum confidence of a fact that only a model has extracted."""
MIN_GROUNDED: Final = 1 / 3
"""The minimum share of a fact's words that must occur in its evidence, by first letters."""

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
# Text in scripts without spaces is compared by pairs of characters.
_FIRST_UNSPACED = "\u2e80"
_ISO_DAY = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b")


@dataclass(frozen=True, slots=True)
class QuotedTurn:
    """The content and the speaker of a turn."""

    content: str
    speaker: str


@dataclass(frozen=True, slots=True)
class ProposedFact:
    """An accepted fact. ``quoted`` is the id of the turn that contains the quote."""

    content: str
    type: MemoryType
    importance: int
    confidence: float
    event_time: int | None
    evidence: tuple[str, ...]
    quote: str
    quoted: str


def judge_fact(item: Any, turns: Mapping[str, QuotedTurn]) -> ProposedFact | str:
    """Return the accepted fact, or the code of the reason for its rejection.

    Args:
        item: a model's proposal, of any type.
        turns: the turns of the page by id, in order.
    """
    if not isinstance(item, Mapping) or not _REQUIRED <= set(item) <= _KNOWN:
        return "fields"
    wrong = _wrong_value(item)
    if wrong is not None:
        return wrong
    cited = set(item["evidence"])
    if not cited <= turns.keys():
        return "evidence_unknown"
    evidence = tuple(turn_id for turn_id in turns if turn_id in cited)
    quote = _one_line(item["quote"])
    quoted_turn = next(
        (turn_id for turn_id in evidence if quote in _one_line(turns[turn_id].content)), None
    )
    if quoted_turn is None:
        return "quote_not_in_evidence"
    content = normalise_content(item["content"])
    if grounded(content, [turns[turn_id] for turn_id in evidence]) < MIN_GROUNDED:
        return "not_grounded"
    ground = "\n".join(turns[turn_id].content for turn_id in evidence)
    wrong = unsaid(content, ground, {turn_id.speaker for turn_id in turns.values()})
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
        quoted=quoted_turn,
    )


def grounded(content: str, turns: Sequence[QuotedTurn]) -> float:
    """Return the share of the words of ``content`` that occur in its evidence, 0..1.

    Words are compared by their first four letters, to ignore inflection. Shorter words count only
    if there are no others. Dates are ignored, because a fact resolves "tomorrow" to a date.
    """
    text = "\n".join(f"{turn.speaker} {turn.content}" for turn in turns)
    undated = _ISO_DAY.sub(" ", content)
    claimed, evidence_words = _stems(undated), _stems(text)
    if not claimed:
        claimed, evidence_words = word_set(undated), word_set(text)
    return len(claimed & evidence_words) / len(claimed) if claimed else 0.0


def _wrong_value(item: Mapping[str, Any]) -> str | None:
    """Return the code of the first invalid value, or None."""
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
    if type(item["confidence"]) not in (int, float) or not item["confidence"] >= 0:
        return "confidence"
    if item["confidence"] > MAX_CONFIDENCE:
        return "certainty"
    if not isinstance(evidence, list) or not 0 < len(evidence) <= MAX_EVIDENCE:
        return "evidence"
    if not all(isinstance(turn_id, str) for turn_id in evidence):
        return "evidence"
    # In bytes, because three characters of some scripts correspond to eight letters.
    if not _is_text(quote) or len(quote.strip().encode()) < MIN_QUOTE_CHARS:
        return "quote"
    if len(quote) > MAX_QUOTE_CHARS:
        return "quote_too_long"
    if "event_time" in item and _moment(item["event_time"]) is None:
        return "event_time"
    return None


def _one_line(text: str) -> str:
    """Return a text on one line: a quote and its evidence may have different line breaks."""
    return " ".join(text.split())


def _is_text(value: Any) -> bool:
    """Return True for a string that can be stored: no NUL, no lone surrogates."""
    return isinstance(value, str) and "\x00" not in value and _encodes(value)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _moment(value: Any) -> int | None:
    """Return the milliseconds of an ISO 8601 text, or None if it is invalid."""
    if not isinstance(value, str):
        return None
    try:
        return parse_time(value)
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
