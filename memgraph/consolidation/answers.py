"""A short answer made whole by the question before it, where a rule is safe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memgraph.consolidation.cutting import Addressed, Piece, bare
from memgraph.consolidation.phrases import phrases
from memgraph.consolidation.turns import Turn
from memgraph.consolidation.words import word_list
from memgraph.entities.gazetteer import gazetteer
from memgraph.policy.sentences import split_sentences

_MAX_ANSWER_WORDS: Final = 9
_ANYTHING: Final = r"(?P<a>\w.*)"
# A kind of question, what its answer looks like, and the statement that both make.
_RULES: Final = tuple(
    (question, re.compile(answer, re.I), whole)
    for question, answer, whole in (
        ("ask place", r"(?P<a>(?:(?:in|at|near|from|on) )?[^\W\d_].*)", ""),
        ("ask name", r"(?P<a>[A-Z]\w+(?: [A-Z]\w+)?)", "my name is {a}"),
        ("ask thing", rf"(?:(?:probably|definitely|mostly) )?{_ANYTHING}", "my {thing} is {a}"),
        ("ask age", r"(?P<a>\d{1,3})(?: years old)?", "I am {a} years old"),
        (
            "ask age of",
            r"(?:he's |she's )?(?P<a>\d{1,3})(?: years old)?",
            "my {thing} is {a} years old",
        ),
        ("ask when", rf"(?:it's )?{_ANYTHING}", "my {thing} is {a}"),
        ("ask doing", _ANYTHING, "I am {doing} {a}"),
    )
)
_LOWER: Final = word_list("in at near from on a an the")


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
    asking = bare(asked[-1], Addressed((answer.source_role,))).rstrip("? ")
    if phrases("of another").search(asking) or len(asking.split()) > 14:
        return None
    return _short(asking, pieces[0]) or _yes_no(asking, pieces[0].quote)


def _short(asking: str, piece: Piece) -> Whole | None:
    reply = piece.text.rstrip(".! ")
    if len(reply.split()) > _MAX_ANSWER_WORDS or phrases("talk").match(reply):
        return None
    for name, pattern, whole in _RULES:
        asked = phrases(name).fullmatch(asking)
        if asked is None:
            continue
        found = pattern.fullmatch(reply)
        if found is None or phrases("no answer").search(found["a"]):
            return None
        told = _lowered(found["a"])
        if not whole:
            return _place(asked["verb"].lower(), told, piece.quote)
        text = whole.format(a=told, **asked.groupdict())
        return Whole(f"{text[:1].upper()}{text[1:]}.", piece.quote)
    return None


def _lowered(told: str) -> str:
    """A small word at the head of the answer in lower case."""
    first, blank, rest = told.partition(" ")
    return f"{first.lower()}{blank}{rest}" if first.lower() in _LOWER else told


def _place(verb: str, told: str, quote: str) -> Whole | None:
    first = told.split(" ")[0]
    stated = first in ("in", "at", "near", "on")
    if verb in ("live", "from", "based"):
        if not stated and told.removeprefix("from ").split(",")[0] not in gazetteer().places:
            return None
        where = told if stated else f"in {told}"
        text = {"from": f"I am from {told.removeprefix('from ')}", "based": f"I am based {where}"}
        return Whole(f"{text.get(verb, f'I live {where}')}.", quote)
    if not stated and not first[:1].isupper():
        return None
    return Whole(f"I {verb} {told if stated else f'at {told}'}.", quote)


def _yes_no(asking: str, quote: str) -> Whole | None:
    asked = phrases("ask yes or no").fullmatch(asking)
    reply = re.sub(r"[,.!]", "", quote).replace("’", "'").strip()
    yes, no = phrases("yes").fullmatch(reply), phrases("no").fullmatch(reply)
    if asked is None or not (yes or no):
        return None
    aux, rest = asked["aux"].lower(), asked["rest"].strip()
    if re.search(r"\b(?:i|my|me|we|us|our)\b", rest, re.I):
        return None  # of the one who asks
    rest = re.sub(r"\byour\b", "my", re.sub(r"\byou\b", "me", rest, flags=re.I), flags=re.I)
    denied = "" if yes else " not"
    if aux == "do":
        rest = rest.replace("any ", "") if yes else rest
        return Whole(f"I {rest}." if yes else f"I do not {rest}.", quote)
    verb = {"are": "am", "have": "have", "did": "did"}[aux]
    return Whole(f"I {verb}{denied} {rest.removeprefix('ever ')}.", quote)
