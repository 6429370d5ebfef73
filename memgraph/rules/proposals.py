"""Check a language model's proposals against the text it was given.

A proposal is taken only with a quote that stands in the text, word for word: so nothing is
remembered that nobody wrote, and each memory knows its place. A model can give neither identity
nor certainty.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryType
from memgraph.rules.similarity import normalise_content, word_set
from memgraph.text.lexicon import CALENDAR, NEGATIONS
from memgraph.text.quantities import CARDINALS, TENS
from memgraph.text.sentences import split_sentences
from memgraph.text.tokens import COMPOUNDS, LETTERS

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


# What a sentence by a model holds that its ground does not: numbers, names, a turned negation.


NUMBER_UNSAID, NAME_UNSAID, NEGATION = "number_unsaid", "name_unsaid", "negation"

_WORDS: Final = {word: str(value) for value, word in enumerate(CARDINALS)} | {
    word: str(value * 10) for value, word in enumerate(TENS, start=2)
}
# Said of anything: "one of them", "the hall is zero waste".
_VAGUE: Final = frozenset(("zero", "one"))
_MONTHS: Final = "|".join(sorted(CALENDAR))
# A fact says on which day "tomorrow" is, so dates need not stand in the ground.
_ISO_DATE: Final = re.compile(r"\b\d{4}-\d\d(?:-\d\d)?(?:T[\d:.]+Z?)?\b")
_DATE: Final = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s+)?(?:of\s+)?(?:{_MONTHS})\b"
    r"(?:\s+\d{1,2}(?:st|nd|rd|th)?\b)?(?:,?\s+(?:19|20)\d\d\b)?",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_OF_A_YEAR: Final = re.compile(r"\b(?:year|years|ago|since)\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_GROUPS: Final = re.compile(r"(?<=\d)[,'’ ](?=\d{3}(?!\d))")
_STEM = 4
_OPENINGS: Final = (
    "a an the this that these those he she it they we i you his her its their our my your one some "
    "all both each every no not never there in on at by for from to with about after before during "
    "since until when while as if and or but user users assistant agent speaker someone everyone "
    "nobody people last next today tomorrow yesterday"
)
_OPENING: Final = frozenset(_OPENINGS.split())
_TITLES: Final = "i mr mrs ms dr prof ok tv"
_TITLE: Final = frozenset(_TITLES.split())
_NEGATIONS: Final = (
    "neither hardly barely dont doesnt "
    "didnt isnt wasnt wont cant nicht kein keine keinen keinem keiner nie niemals ohne pas jamais "
    "sans aucun aucune nunca jamás sin ningún ninguna"
)
_NEGATION: Final = re.compile(
    rf"\b(?:{'|'.join((*NEGATIONS, *_NEGATIONS.split()))})\b|n['’]t\b", re.IGNORECASE
)
# Verbs and the like that deny by themselves: "stopped eating meat" is "does not eat meat".
_DENIALS: Final = re.compile(
    r"\b(?:stop|quit|gave up|give up|fail|refus|avoid|hate|dislike|lack|unable|unhapp|unwilling"
    r"|uncomfortabl|declin|cancel|former|used to|instead|rather|allerg|miss|free|only|except|deny"
    r"|denie|reject|against|intoleran|skip|leave|left|end)",
    re.IGNORECASE,
)
_IDIOMS: Final = re.compile(
    r"\b(?:can(?:'|’)?t wait|cannot wait|no (?:problem|doubt|worries|wonder|matter)|not only"
    r"|why not|never ?mind|nothing but|no\.? \d+|if not|whether or not)\b",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"[,;:–—]\s+|\s+(?:and|but|while|whereas|because|und|aber|mais|pero)\s+"
)
# An order to whoever reads it; a reflection tells what was, and asks nothing of anybody.
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
    """Return the code of what the content holds and its ground does not; None: nothing.

    Args:
        ground: the texts that it rests on.
        speakers: names that may stand for "I" and "you".
        sums_up: it tells of several texts, so that it may count them in words, and open with a
            word of its own.
    """
    if _numbers(_undated(content, ground), in_words=not sums_up) - _numbers(ground):
        return NUMBER_UNSAID
    letters = frozenset(LETTERS.findall(_plain(f"{ground} {' '.join(speakers)}")))
    if any(not _is_known(name, letters) for name in _names(_DATE.sub(" ", content), sums_up)):
        return NAME_UNSAID
    return None


def is_turned(content: str, quote: str, ground: str) -> bool:
    """Return True when one of the content and what was said denies what the other affirms.

    What was said is the clause around the quote that has most words of the content: a quote may be
    cut so that the "not" before it is missing.
    """
    clauses = _clauses_of(quote, ground)
    words = _begins(content)
    shared = [len(words & _begins(clause)) for clause in clauses]
    nearest = [
        clause for clause, count in zip(clauses, shared, strict=True) if count == max(shared)
    ]
    return not any(_agree(content, clause) for clause in nearest)


def is_advice(sentence: str) -> bool:
    """Return True when a sentence tells its reader what to do."""
    return any(_ADVICE.search(part) for part in split_sentences(sentence))


def _agree(content: str, clause: str) -> bool:
    if _denies(content):
        return _denies(clause) or _DENIALS.search(clause) is not None
    return not _denies(clause) or _DENIALS.search(content) is not None


def _denies(text: str) -> bool:
    return _NEGATION.search(_IDIOMS.sub(" ", text)) is not None


def _clauses_of(quote: str, ground: str) -> Sequence[str]:
    """Return the clauses that a quote touches; of one over several sentences itself."""
    text = " ".join(ground.split())
    begin = text.find(quote)
    if begin < 0:
        return [quote]
    clauses = []
    place = 0
    for sentence in split_sentences(text):
        start = text.find(sentence, place)
        place = start + len(sentence)
        at = start
        for clause in _CLAUSE.split(sentence):
            at = text.find(clause, at)
            if at < begin + len(quote) and at + len(clause) > begin:
                clauses.append(clause)
            at += len(clause)
    return clauses or [quote]


def _begins(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in word_set(text))


def _undated(content: str, ground: str) -> str:
    bare = _DATE.sub(" ", _ISO_DATE.sub(" . ", content))
    return _YEAR.sub(" ", bare) if _OF_A_YEAR.search(ground) else bare


def _numbers(text: str, *, in_words: bool = True) -> set[str]:
    """Return every number by its digits, one in words too, and the parts of compound ones."""
    plain = _GROUPS.sub("", unicodedata.normalize("NFKC", text))
    numbers: set[str] = set()
    for number in _NUMBER.findall(plain):
        numbers.update(part.lstrip("0") or "0" for part in re.split("[.,:/-]", number))
    for word in COMPOUNDS.findall(plain.casefold() if in_words else ""):
        for part in word.split("-"):
            if part in _WORDS and part not in _VAGUE:
                numbers.add(_WORDS[part])
    # Minutes of a full hour, cents of a round sum: "at nine" is 9:00.
    return numbers - {"0"}


def _names(content: str, openings_apart: bool) -> list[str]:
    """Words that are written as names."""
    names = []
    for sentence in split_sentences(content):
        if sentence.isupper():
            continue
        for place, match in enumerate(COMPOUNDS.finditer(sentence)):
            word = re.sub(r"['’]\w*$", "", match.group())
            lower = _plain(word)
            if not word[:1].isupper() or lower in _TITLE or lower in CALENDAR:
                continue
            if place or (lower not in _OPENING and not openings_apart):
                names.append(lower)
    return names


def _is_known(name: str, letters: frozenset[str]) -> bool:
    """Return True when a name stands among words, in whichever inflection."""
    return all(
        part in letters
        or (len(part) > _STEM and any(word.startswith(_begin(part)) for word in letters))
        or (len(part) >= _STEM and any(part.startswith(word) for word in letters if len(word) >= 3))
        for part in re.split("[-'’]", name)
        if part
    )


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _begin(word: str) -> str:
    return word[: max(_STEM, len(word) - 2)]


# What a language model proposes of a conversation, held against the turns it was given.


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
_AGENT_PROPOSALS_DATE = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b")


@dataclass(frozen=True, slots=True)
class QuotedTurn:
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


def judge_fact(item: Any, turns: Mapping[str, QuotedTurn]) -> ProposedFact | str:
    """Return the fact that may be staged, or the code of why it may not.

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
    if wrong is None and is_turned(content, quote, turns[quoted_turn].content):
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
        quoted=quoted_turn,
    )


def grounded(content: str, turns: Sequence[QuotedTurn]) -> float:
    """Share of the words of ``content`` that its evidence has too, 0..1.

    Words of fewer than four letters count only where there are no others; a word is known by its
    first four letters, so that inflection matters little. Dates are left out, because a fact says
    on which day "tomorrow" is.
    """
    text = "\n".join(f"{turn.speaker} {turn.content}" for turn in turns)
    undated = _AGENT_PROPOSALS_DATE.sub(" ", content)
    claimed, evidence_words = _stems(undated), _stems(text)
    if not claimed:
        claimed, evidence_words = word_set(undated), word_set(text)
    return len(claimed & evidence_words) / len(claimed) if claimed else 0.0


def _wrong_value(item: Mapping[str, Any]) -> str | None:
    """Return the code of the first value that is out of its bounds."""
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
    # In bytes, because some scripts say in three characters what takes eight letters.
    if not _is_text(quote) or len(quote.strip().encode()) < MIN_QUOTE_CHARS:
        return "quote"
    if len(quote) > MAX_QUOTE_CHARS:
        return "quote_too_long"
    if "event_time" in item and _moment(item["event_time"]) is None:
        return "event_time"
    return None


def _one_line(text: str) -> str:
    """Return a quote on one line: its lines may break elsewhere than in the evidence."""
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


def _moment(value: Any) -> int | None:
    """Milliseconds of ISO 8601 text; None: no such text."""
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
