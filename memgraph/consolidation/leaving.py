"""What of a talk is left out: questions, small talk, praise, orders, what hangs on other words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memgraph.consolidation.phrases import phrases
from memgraph.consolidation.words import (
    ADVERBS,
    AUXILIARIES,
    BASES,
    FUNCTION,
    IMPERATIVES,
    PREPOSITIONS,
    Word,
    is_past,
    is_plural,
    third_person,
    word_list,
)

_MIN_WORDS: Final = 3
_MAX_WORDS: Final = 60
# What "I'm …" tells in one word; moods are left out.
_LASTING: Final = word_list(
    "vegan vegetarian pescatarian diabetic asthmatic anaemic anemic coeliac celiac epileptic "
    "dyslexic autistic deaf blind colour-blind color-blind colourblind colorblind left-handed "
    "right-handed lactose-intolerant gluten-free teetotal pregnant married engaged divorced "
    "widowed single separated retired unemployed self-employed freelance"
)
_MARKS: Final = re.compile(r"[^\w\s.,;:!?'’\"“”()&%€$£/@#+–—…-]")
_LETTER: Final = re.compile(r"[^\W\d_]")
# The place of a pronoun whose noun is in another sentence.
_HANGING_HEADS: Final = word_list(
    "it it's its that that's this these those they they're they've they'll they'd he he's he'll "
    "he'd she she's she'll she'd there's here's here him her them which who whose such same one "
    "another both either neither theirs it'll it'd that'll what's what how why where whoever "
    "his their everything something nothing anything especially like unlike"
)
_TIME_NOUNS: Final = word_list(
    "week weekend month year morning afternoon evening summer winter spring autumn fall monday "
    "tuesday wednesday thursday friday saturday sunday time past"
)
_PLACES: Final = frozenset(("there", "here"))
_HANGING: Final = word_list(
    "their his hers it that this these those them they he she him her it's that's they're he's "
    "she's one ones another so theirs it'll they've they'll"
)
# "That" and "so" hang on nothing when a clause follows.
_OF_ONE: Final = word_list("he she him her his hers he's she's")
_OF_SEVERAL: Final = word_list("they them their theirs they're they've they'll")
_PERSONS: Final = word_list(
    "wife husband partner girlfriend boyfriend mom mum mother dad father parents sister brother "
    "son daughter kids children friends friend family people boss colleague colleagues team lot "
    "lots few way bit time"
)
_MET: Final = frozenset(("finished", "read", "reading", "watching", "meeting"))
_ANIMATE: Final = word_list(
    "woman man girl boy lady guy child baby someone somebody neighbour neighbor dog cat puppy "
    "kitten pet roommate aunt uncle cousin grandma grandpa grandmother grandfather"
)
_PICTURES: Final = word_list("pic pics photo photos picture pictures image video screenshot shot")
_SITES: Final = word_list(
    "park beach restaurant city town country school museum store gym office hotel café cafe "
    "shelter studio home church center centre market mountains lake forest"
)
_CLAUSE_WORDS: Final = frozenset(("that", "so"))
_NOUN_MARKERS: Final = word_list(
    "a an the my our your his her their some any each every two three four five another new"
)
_TO_OTHER: Final = word_list("you your you're you've you'll you'd youre u ur yours")
_QUOTED: Final = re.compile(r"^[\"“«„'‘][^\"”»]*[\"”»'’][.!]*$")


def is_left_out(text: str, words: Sequence[Word], *, agent: bool) -> bool:
    """Whether a bare sentence tells nothing that could be kept.

    Args:
        agent: whether a program said it: what it offers or teaches is left out too.
    """
    least = _MIN_WORDS - 1 if _lasting_state(words) else _MIN_WORDS
    if not least <= len(words) <= _MAX_WORDS or text.rstrip("\"'”’»)…. ").endswith(("?", "？")):
        return True
    if len(_LETTER.findall(text)) < len(text) / 2 or len(_MARKS.findall(text)) > len(text) / 10:
        return True
    return (
        _is_order(text, words)
        or _QUOTED.match(text) is not None
        or phrases("talk").match(text) is not None
        or phrases("spoken to").search(text) is not None
        or phrases("between us").search(text) is not None
        or words[0].lower in _TO_OTHER
        or (agent and phrases("agent offer").search(text) is not None)
        or hangs(words)
    )


def _lasting_state(words: Sequence[Word]) -> bool:
    """ "I'm vegan", "I'm Dutch": what somebody is, not how somebody feels."""
    if len(words) != 2 or words[0].lower not in ("i'm", "im"):
        return False
    return words[1].lower in _LASTING or words[1].text.istitle()


def _is_order(text: str, words: Sequence[Word]) -> bool:
    if any(phrases(name).search(text) for name in ("tool order", "role mark", "asked of you")):
        return True
    first = words[0].lower
    if first not in IMPERATIVES or phrases("cue Decision").match(text):
        return False
    if first in ("don't", "dont", "never", "please", "do", "let"):
        return True
    # "Work is hard", "Dance classes start on Monday": a noun, if a verb follows closely.
    following = [word.lower for word in words[1:3]]
    return not any(word in AUXILIARIES or word.endswith("'s") for word in following)


def hangs(words: Sequence[Word]) -> bool:
    """Whether a pronoun stands for something that the sentence does not name."""
    first = words[0].lower
    if first in _HANGING_HEADS:
        timed = first in ("this", "that", "these", "one") and len(words) > 1
        if not (timed and (words[1].lower in _TIME_NOUNS or words[1].lower == "of")):
            return True
    seen = _Seen()
    for at, word in enumerate(words[1:], start=1):
        lower = word.lower
        following = words[at + 1].lower if at + 1 < len(words) else ""
        if lower in _PLACES and not seen.place and following not in ("is", "are", "was", "were"):
            return True
        if lower in _HANGING and not seen.named(lower) and not _hangs_on_nothing(words, at):
            return True
        seen.add(words, at)
    return False


class _Seen:
    """What has been named so far: enough for an "it", a "she", a "they", a "there"."""

    def __init__(self) -> None:
        self.thing = self.person = self.several = self.place = False

    def named(self, pronoun: str) -> bool:
        if pronoun in _OF_SEVERAL:
            return self.several
        return self.person if pronoun in _OF_ONE else self.thing

    def add(self, words: Sequence[Word], at: int) -> None:
        lower, before = words[at].lower, words[at - 1].lower
        capital = words[at].text[:1].isupper() and lower != "i" and not lower.startswith("i'")
        plural = len(lower) > 4 and is_plural(lower)
        noun = before in _NOUN_MARKERS or plural
        self.thing = self.thing or capital or (noun and lower not in _PERSONS)
        self.person = self.person or capital or lower in _PERSONS or lower in _ANIMATE
        self.person = self.person or (noun and lower.endswith(("er", "or", "ist", "ian", "lord")))
        self.several = self.several or capital or plural or (noun and lower in _PERSONS)
        self.several = self.several or lower in ("people", "someone", "everyone", "anyone")
        self.place = self.place or capital or (before in ("in", "at", "to") and noun)
        self.place = self.place or lower in _SITES


def _hangs_on_nothing(words: Sequence[Word], at: int) -> bool:
    """ "That" before a clause, "this week", "it" of "find it hard": nothing is stood for."""
    lower, before = words[at].lower, words[at - 1].lower
    following = words[at + 1].lower if at + 1 < len(words) else ""
    if lower in ("this", "that", "these", "those") and following in _PICTURES:
        return False
    if lower in _CLAUSE_WORDS and following and following not in ("is", "was"):
        return not _points(before, following)
    if lower in ("this", "that", "one", "these") and (
        following in _TIME_NOUNS or following in ("of", "coming", "past")
    ):
        return True
    if lower in ("this", "these") and (before in _MET or is_past(before)):
        return following not in AUXILIARIES and following.isalpha()
    if lower == "another" or (lower == "so" and not following):
        return lower == "another"
    return (lower == "it" and before in ("make", "makes", "made", "find", "found")) or (
        lower in ("it's", "it") and following in ("important", "hard", "time", "easy", "been")
    )


def _points(before: str, following: str) -> bool:
    """Whether a "that" between these words points at a thing: "in that world"."""
    if following in _CLAUSE_STARTS or following in AUXILIARIES or is_past(following):
        return False
    return before in PREPOSITIONS or before in BASES or before.endswith("ing")


_CLAUSE_STARTS: Final = FUNCTION - {"first", "last", "one", "two"}


def has_verb(words: Sequence[Word]) -> bool:
    """Whether some word can be a finite verb."""
    for at, word in enumerate(words):
        lower = word.lower
        if lower in AUXILIARIES or is_past(lower) or lower.endswith("n't"):
            return True
        # "My passport expires": an s-form right behind a noun.
        if at > 1 and words[at - 2].lower in _NOUN_MARKERS and is_plural(lower):
            return True
        if at and (lower in _THIRDS or (lower in BASES and _may_be_subject(words[at - 1].lower))):
            return True
        if lower == "let's" and at == 0:
            return True
        if lower.endswith("'s") and at + 1 < len(words) and words[at + 1].lower in _NOUN_MARKERS:
            return True
    return False


def _may_be_subject(word: str) -> bool:
    return word in _SUBJECTS or word in ADVERBS or is_plural(word)


_SUBJECTS: Final = word_list("i we they you people kids children who that")
_THIRDS: Final = frozenset(map(third_person, BASES)) | {"runs", "costs", "takes", "means", "uses"}
