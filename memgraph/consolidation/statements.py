"""What a plain statement is about: a name, a thing of the speaker's, or a thing at large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from memgraph.consolidation.words import (
    ADVERBS,
    AUXILIARIES,
    BASES,
    DETERMINERS,
    FUNCTION,
    MODALS,
    PREPOSITIONS,
    UNCHANGING,
    Word,
    is_past,
    is_plural,
    third_person,
    word_list,
)
from memgraph.entities.gazetteer import gazetteer
from memgraph.entities.names import find_names

# So far behind its head a verb is no longer looked for.
_MAX_SUBJECT_WORDS: Final = 8
_THIRDS: Final = frozenset(map(third_person, BASES))
_OWNERS: Final = frozenset(("my", "our"))
_DEFINITE: Final = word_list("the every each all no any both")
_BE_WE: Final = word_list("we we're we've")
# Said without an owner they are the speaker's.
KIN: Final = word_list(
    "mum mom mummy mommy dad daddy granny grandma grandpa nana nan grandad granddad"
)
# Parts of the talk itself, and what is only before the eyes of those who talk.
_OF_THE_TALK: Final = word_list(
    "answer question response reply message output result code error text email draft summary "
    "prompt example list table image picture photo photos file link screenshot one first second "
    "third last other same rest point problem issue thing things way day time best worst fact "
    "truth idea reason view"
)
# What sayings are about: no names, however they are written.
_AT_LARGE: Final = word_list(
    "life nature love music art dance dancing yoga family friendship kindness creativity work "
    "money time food health sport sports teamwork faith hope home money-wise today tomorrow tonight"
)
_NO_NAME: Final = FUNCTION | AUXILIARIES | _AT_LARGE
_BEFORE_NOUNS: Final = DETERMINERS | PREPOSITIONS
_NO_SUBJECT: Final = FUNCTION - DETERMINERS | AUXILIARIES


class About(Enum):
    """What the subject of a sentence is, so far as its form shows."""

    NAME = "a person, a firm or a product by name"
    OWN = "something of the speaker's"
    WE = "the speaker and others"
    THING = "a certain thing, or all of a kind"
    NOUN = "something at large"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a sentence is about, and the place of its verb among the words."""

    about: About
    verb: int


def subject_of(text: str, words: Sequence[Word]) -> Subject | None:
    """None where no subject is followed by a verb, or where only the talk itself is meant."""
    first = words[0].lower
    if first in _BE_WE:
        return Subject(About.WE, 1 if first == "we" else 0)
    named = _names_somebody(text, words)
    verb = _verb_of(words, named=named)
    if verb is None:
        return None
    if named or first.removesuffix("'s") in KIN:
        return Subject(About.NAME, verb)
    if first in _OWNERS:
        return Subject(About.OWN, verb)
    if first in _DEFINITE:
        talk = {word.lower for word in words[1:verb]} & _OF_THE_TALK and verb <= 3
        return None if talk else Subject(About.THING, verb)
    if first in _NO_SUBJECT or first in ADVERBS:
        return None
    return Subject(About.NOUN, verb)


def _names_somebody(text: str, words: Sequence[Word]) -> bool:
    """Whether the sentence begins with a name."""
    head = words[0].text.removesuffix("'s")
    if not head[:1].isupper() or head.lower() in _NO_NAME:
        return False
    lists = gazetteer()
    if head in lists.given and head not in lists.ambiguous:
        return True
    return any(span.start == 0 for span in find_names(text, []))


def _verb_of(words: Sequence[Word], *, named: bool) -> int | None:
    """The place of the first finite verb behind a subject."""
    for at in range(1, min(len(words), _MAX_SUBJECT_WORDS)):
        lower, before = words[at].lower, words[at - 1].lower
        if lower in AUXILIARIES and not lower.endswith("ing"):
            return at
        if is_past(lower) and before not in DETERMINERS:
            return at
        if named and at == 1 and lower in UNCHANGING:
            return at
        third = lower in _THIRDS or (named and is_plural(lower))
        if third and before not in _BEFORE_NOUNS and not words[at].text[:1].isupper():
            return at
        # "The new printer jams": an s-form behind a noun that is no plural.
        if at > 1 and is_plural(lower) and words[at - 2].lower in _MARKERS:
            return at
        pair = named and at > 2 and words[1].lower == "and"
        if lower in BASES and (pair or is_plural(before)):
            return at
    return None


_MARKERS: Final = word_list("a an the my our your his her their new old") | MODALS
