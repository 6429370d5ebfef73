"""When two facts speak of one thing, and what the classifier's word then counts for.

The classifier learned on pairs that somebody had chosen. Of facts from conversations nearly all
pairs are of other things, and many speak of one person on one topic without a common claim: there
its word counts only where both share a subject and an attribute, and it can name what differs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from memgraph.classification import relation_lexicon as lexicon
from memgraph.classification.relation_minimal import MINIMAL
from memgraph.classification.relation_tokens import stem, tokenize
from memgraph.classification.relations import RelationGuess
from memgraph.model.enums import Relation

# Shares of the content words of the statement with fewer and of the one with more of them.
OF_FEWER, OF_MORE = 0.5, 0.25
DENIED_OF_MORE = 0.5
# What is merged is lost as a fact of its own: the classifier has to be surer than for its word.
REPEATED_FROM = 0.8
REPEATED_OF_FEWER, REPEATED_OF_MORE, REPEATED_WORDS = 0.75, 0.5, 3

_LARGE = re.compile(r"\b[^\W\d_a-z]\w*")
# A day that was worked out from "last week": it tells of something that happened once.
_HAPPENED = re.compile(r"\(\D{0,20}\d{4}-\d\d")
_FIRST = re.compile(r"(?P<word>[^\W\d_a-z]\w*)")
_OPENERS_TEXT = """
    last next yesterday today tomorrow tonight later soon then still maybe perhaps besides instead
    despite although though however because since after before during while when now
"""
_OPENERS = frozenset(_OPENERS_TEXT.split())
_NEGATIONS = frozenset({"negation_flip", "correction", "open_then_done", "other_bound"})


class Shared(NamedTuple):
    """Content words, names left out, that stand in both of two statements.

    ``fewer``, ``more``: how many the two statements have.
    """

    words: int
    fewer: int
    more: int
    of_fewer: float
    of_more: float


def shared(a: str, b: str) -> Shared:
    """How much of two statements is common, names and function words left out; shares 0..1."""
    names = _names(a) | _names(b)
    left, right = _content(a) - names, _content(b) - names
    common = len(left & right)
    fewer, more = sorted((len(left), len(right)))
    return Shared(common, fewer, more, common / max(fewer, 1), common / max(more, 1))


def of_one_thing(a: str, b: str) -> bool:
    """Whether two statements share so much that a relation between them can be claimed."""
    one, other = _leading_name(a), _leading_name(b)
    if one and other and one != other:
        return False
    both = shared(a, b)
    if both.more <= 1 and not both.fewer:
        # "Bob works at Siemens" says it with names alone.
        return bool(_names(a) & _names(b))
    return both.of_fewer >= OF_FEWER and both.of_more >= OF_MORE


def stands(guess: RelationGuess, a: str, b: str) -> bool:
    """Whether a guessed contradiction or update may be written: one subject, told apart by
    another value than a day, or by a negation."""
    if guess.relation not in (Relation.CONTRADICTS, Relation.UPDATES):
        return False
    # One sentence with two values says by itself that it is about one thing.
    if MINIMAL.intersection(guess.reasons):
        return True
    return _one_subject(guess) and (_other_value(guess, a, b) or _denied(guess, a, b))


def says_the_same(guess: RelationGuess, a: str, b: str) -> bool:
    """Whether a guessed paraphrase may be merged: nothing differs that can be named, and most
    words are common, since what is merged is not kept."""
    if guess.relation is not Relation.DUPLICATE or guess.probability < REPEATED_FROM:
        return False
    if not _one_subject(guess):
        return False
    both = shared(a, b)
    enough = both.of_fewer >= REPEATED_OF_FEWER and both.of_more >= REPEATED_OF_MORE
    if not enough or both.words < REPEATED_WORDS or _other_value(guess, a, b):
        return False
    return not _negates(guess)


def _one_subject(guess: RelationGuess) -> bool:
    return "same_subject" in guess.reasons and "other_subject" not in guess.reasons


def _other_value(guess: RelationGuess, a: str, b: str) -> bool:
    """Whether another figure, name or time stands in one than in the other."""
    once = _HAPPENED.search(a) is not None and _HAPPENED.search(b) is not None
    differing = {each for each in guess.reasons if each.startswith("value_differs:")}
    return bool(differing - {"value_differs:date"} if once else differing)


def _denied(guess: RelationGuess, a: str, b: str) -> bool:
    """Whether one takes back what the other says: of the very thing, not of something near it."""
    both = shared(a, b)
    about_it = both.of_more >= DENIED_OF_MORE or both.of_fewer == 1.0
    return about_it and _negates(guess)


def _negates(guess: RelationGuess) -> bool:
    if not _NEGATIONS.isdisjoint(guess.reasons):
        return True
    # "no longer" changes what was so; a mere other tone of the same topic changes nothing.
    changed = guess.relation is not Relation.UPDATES or "change_marker" in guess.reasons
    return "polarity_differs" in guess.reasons and changed


@lru_cache(maxsize=4_096)
def _content(text: str) -> frozenset[str]:
    return frozenset(
        token.stem
        for token in tokenize(text)
        if token.low not in lexicon.STOP
        and token.low not in lexicon.LIGHT
        and token.low not in lexicon.NEGATORS
        and stem(token.low)
    )


@lru_cache(maxsize=4_096)
def _leading_name(text: str) -> str:
    """The name that a statement begins with, most likely its subject; empty: it begins otherwise.

    Adverbs and gerunds are written large there too, and begin a statement about anybody.
    """
    first = _FIRST.match(text)
    if first is None:
        return ""
    word = first["word"].lower()
    common = lexicon.STOP | lexicon.LIGHT | lexicon.NEGATORS | _OPENERS
    return "" if word in common or word.endswith(("ing", "ly")) else word


@lru_cache(maxsize=4_096)
def _names(text: str) -> frozenset[str]:
    return frozenset(stem(word.lower()) for word in _LARGE.findall(text))
