"""A short answer made whole by the question before it, where a rule is safe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memgraph.consolidation.cutting import Piece
from memgraph.consolidation.turns import Turn
from memgraph.policy.sentences import split_sentences

_MAX_ANSWER_WORDS: Final = 9
_NOT_AN_ANSWER: Final = re.compile(
    r"\b(?:i|i['’]\w+|me|too|as well|mine|we|you|your|it|that|this|not|never|no|nothing|nobody|sure|depends|why|what|"
    r"don['’]?t|maybe|both|either|neither|same|is|are|was|were|ask|guess)\b|[?:]",
    re.I,
)
_IN_QUESTION: Final = re.compile(
    r"\b(?:it|that|this|these|those|there|them|they|he|she|or|him|her)\b|,", re.I
)
_VERBS: Final = "live|work|study|teach|volunteer|train"
_DOING: Final = "working on|reading|studying|learning|building|writing|training for|cooking|playing"
_RULES: Final = tuple(
    (re.compile(question, re.I), re.compile(answer, re.I), whole)
    for question, answer, whole in (
        (
            rf"where (?:do|are) you (?P<verb>{_VERBS}|from|based)(?: now| these days| at the moment)?",
            r"(?P<a>(?:(?:in|at|near|from|on) )?[^\W\d_].*)",
            "place",
        ),
        (
            r"what(?:['’]s| is) your (?P<thing>(?!name$)(?:favou?rite )?[\w ]{3,40})",
            r"(?:(?:probably|definitely|mostly|my favou?rite is) )?(?P<a>\w.*)",
            "I: my {thing} is {a}",
        ),
        (r"what(?:['’]s| is) your name", r"(?P<a>[A-Z]\w+(?: [A-Z]\w+)?)", "I: my name is {a}"),
        (r"how old are you(?: now)?", r"(?P<a>\d{1,3})(?: years old)?", "I: I am {a} years old"),
        (
            r"how old is your (?P<thing>[\w ]{2,30})",
            r"(?:he['’]s |she['’]s )?(?P<a>\d{1,3})(?: years old)?",
            "I: my {thing} is {a} years old",
        ),
        (
            r"when(?:['’]s| is) your (?P<thing>[\w ]{3,40})",
            r"(?:it['’]s )?(?P<a>(?:(?:on|in|at|next) )?[\w].*)",
            "I: my {thing} is {a}",
        ),
        (
            rf"what are you (?P<doing>{_DOING})(?: now| these days| at the moment| right now| lately)?",
            r"(?P<a>\w.*)",
            "I: I am {doing} {a}",
        ),
    )
)
_YES_NO: Final = re.compile(
    r"(?P<aux>do|are|did|have) you (?P<rest>(?!think|know|mean|want me|need me|ever wonder|agree|see)[\w' -]{4,90})",
    re.I,
)
_YES: Final = re.compile(
    r"(?:yes|yeah|yep|yup|yes i (?:do|am|did|have)|i (?:do|am|did|have))", re.I
)
_NO: Final = re.compile(
    r"(?:no|nope|nah|no i (?:don['’]t|am not|['’]m not|didn['’]t|haven['’]t))", re.I
)


@dataclass(frozen=True, slots=True)
class Whole:
    """A statement in the first person, and the answer it was made of."""

    text: str
    quote: str


def joined_answer(question: Turn, answer: Turn, pieces: Sequence[Piece]) -> Whole | None:
    """The statement that ``answer`` makes of a question at the end of the turn before it."""
    if question.source_role == answer.source_role or not pieces:
        return None
    asked = split_sentences(question.content[-400:].strip())
    if not asked or not asked[-1].endswith("?"):
        return None
    asking = re.sub(r"^(?:[\w ]{1,20}, )|(?:, [\w ]{1,20})?\?+$", "", asked[-1].strip()).strip()
    asking = re.sub(r"^(?:so|and|but|well|oh) ", "", asking, flags=re.I)
    if _IN_QUESTION.search(asking) or len(asking.split()) > 14:
        return None
    quote = pieces[0].quote
    return _short(asking, pieces[0]) or _yes_no(asking, quote)


def _short(asking: str, piece: Piece) -> Whole | None:
    reply = piece.text.rstrip(".! ")
    if len(reply.split()) > _MAX_ANSWER_WORDS:
        return None
    for question, pattern, whole in _RULES:
        asked = question.fullmatch(asking)
        if asked is None:
            continue
        found = pattern.fullmatch(reply)
        if found is None or _NOT_AN_ANSWER.search(found["a"]):
            return None
        told = found["a"]
        if told.split(" ")[0].lower() in _LOWER or whole != "place":
            told = _lowered(told)
        if whole == "place":
            return _place(asked["verb"].lower(), told, piece.quote)
        text = whole.removeprefix("I: ").format(a=told, **_filled(asked))
        return Whole(f"{text[:1].upper()}{text[1:]}.", piece.quote)
    return None


_LOWER: Final = frozenset("in at near from on a an the".split())


def _lowered(told: str) -> str:
    """The first word in lower case where it is only a small one at the head of the answer."""
    first, blank, rest = told.partition(" ")
    return f"{first.lower()}{blank}{rest}" if first.lower() in _LOWER else told


def _filled(match: re.Match[str]) -> dict[str, str]:
    return {name: value for name, value in match.groupdict().items() if value}


def _place(verb: str, told: str, quote: str) -> Whole | None:
    first = told.split(" ")[0].lower()
    if verb == "from":
        return Whole(f"I am from {told.removeprefix('from ')}.", quote)
    if first not in _LOWER and not told[:1].isupper():
        return None
    where = told if first in ("in", "at", "near", "on") else f"in {told}"
    return Whole(f"I am based {where}." if verb == "based" else f"I {verb} {where}.", quote)


def _yes_no(asking: str, quote: str) -> Whole | None:
    asked = _YES_NO.fullmatch(asking)
    reply = re.sub(r"[,.!]", "", quote).strip()
    yes, no = _YES.fullmatch(reply), _NO.fullmatch(reply)
    if asked is None or not (yes or no):
        return None
    aux, rest = asked["aux"].lower(), asked["rest"].strip()
    rest = re.sub(r"\byour\b", "my", re.sub(r"\byou\b", "me", rest, flags=re.I), flags=re.I)
    if re.search(r"\b(?:i|my|me|we|us)\b", asked["rest"], re.I):
        return None  # of the one who asks
    if aux == "did":
        return Whole(f"I {'did' if yes else 'did not'} {rest}.", quote)
    verb = {"do": "", "are": "am ", "have": "have "}[aux]
    if no:
        verb = {"do": "do not ", "are": "am not ", "have": "have not "}[aux]
        return Whole(f"I {verb}{rest.removeprefix('ever ')}.", quote)
    return Whole(f"I {verb}{rest.replace('any ', '') if aux == 'do' else rest}.", quote)
