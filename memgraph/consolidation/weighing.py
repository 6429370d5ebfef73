"""What kind of fact a sentence is, how much it tells, and how far it is to be believed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memgraph.consolidation.phrases import phrases
from memgraph.consolidation.statements import About, Subject, subject_of
from memgraph.consolidation.words import (
    ADVERBS,
    AUXILIARIES,
    DETERMINERS,
    PREPOSITIONS,
    Word,
    is_past,
    word_list,
)
from memgraph.model.enums import MemoryType

MAX_CONFIDENCE: Final = 0.7
MAX_AGENT_CONFIDENCE: Final = 0.5

# In the order in which they are asked for.
_CUED: Final = (
    MemoryType.DECISION,
    MemoryType.TODO,
    MemoryType.GOAL,
    MemoryType.PREFERENCE,
    MemoryType.FACT,
)
_FEELING: Final = word_list(
    "happy glad great amazing awesome wonderful fantastic incredible beautiful lovely nice good "
    "excited proud grateful thankful blessed inspiring inspired fun cool perfect gorgeous "
    "special rewarding fulfilling joy happiness peace calming soothing relaxing feeling feel "
    "feels felt love loved appreciate appreciated important huge best special lucky positive "
    "positivity vibes journey strength courage support supportive motivated motivation "
    "determined passion heart dreams hope believe going keep keeps keeping pushing push forward "
    "give giving stay staying difference impact inspire inspires motivate motivates encourage "
    "encouragement goals reach success succeed challenges blast thrilled moved touching "
    "meaningful powerful memories memorable moments stress stressful tough hard rough "
    "overwhelming difficult amazed absolutely truly totally"
)
_PLAIN: Final = word_list(
    "a an the my our your his her their its i i'm i've i'd i'll me we we're we've us you it is "
    "am are was were be been being have has had do does did to of in on at for with and or but "
    "so that this it's from by as about into just really also very too some all not no will "
    "would can could should like there here then than when what how who which one get got make "
    "made go going thing things lot lots bit kind out up down over back more most much many "
    "really even still always never ever time way people everyone something someone them they "
    "he she him day life monday tuesday wednesday thursday friday saturday sunday january "
    "february march april june july august september october november december next last week "
    "weekend month year ago yesterday today tomorrow tonight"
)
_KIN: Final = word_list(
    "wife husband partner girlfriend boyfriend mom mum mother dad father parents sister brother "
    "son daughter kids children baby dog cat puppy kitten pet pets grandma grandpa grandmother "
    "grandfather aunt uncle cousin boss friend friends family fiancé fiancée roommate job work "
    "house home apartment car school degree college university company business store studio "
    "office project team birthday wedding surgery hospital doctor allergy allergic trip"
)
_INTENSE: Final = word_list(
    "so such really very truly too always key crucial essential worth "
    "must crazy magical unforgettable refreshing fancy bold glam classic helpful sure"
)
_POSSIBLE: Final = word_list("can could would should might may must")
_DEFINITE: Final = re.compile(r"\b(?:the|our|my)\b", re.I)
# Of things these tell no mood: "the meeting moved".
_MOOD: Final = _FEELING - word_list("moved keep keeps give giving reach support forward push")
# What tells nothing by itself.
_IDLE: Final = _PLAIN | AUXILIARIES | ADVERBS | PREPOSITIONS | DETERMINERS
_OTHER_OWNED: Final = re.compile(r"\b(?:you|your|you['’]re)\b", re.I)
_WEIGHT: Final = {
    MemoryType.DECISION: 1.0,
    MemoryType.GOAL: 0.95,
    MemoryType.TODO: 0.95,
    MemoryType.FACT: 1.0,
    MemoryType.EVENT: 1.0,
    MemoryType.PREFERENCE: 0.95,
    MemoryType.IDENTITY: 1.0,
    MemoryType.OBSERVATION: 0.8,
}


# What weighs most is not given on a weak guess.
_NEEDS_A_CUE: Final = frozenset((MemoryType.DECISION, MemoryType.TODO, MemoryType.GOAL))
_SURE: Final = 0.5
# Not to be read from a plain statement without a date.
_NOT_WHAT_IS: Final = frozenset((MemoryType.EVENT, MemoryType.TODO, MemoryType.GOAL))
_SURELY_NOTHING: Final = 0.8
# Trust in a statement whose subject is plain.
_STATED: Final = 0.75
# Past forms whose object lies ahead: "decided to leave on Monday".
_AHEAD: Final = word_list(
    "decided agreed planned promised hoped chose arranged scheduled offered intended wanted booked"
)
# In the present tense they tell of what is to come.
_SCHEDULED: Final = word_list("expires starts begins leaves arrives departs ends due")


@dataclass(frozen=True, slots=True)
class Weighed:
    """A sentence's type, and its score, 0..1: how likely it is worth keeping."""

    type: MemoryType
    score: float


def tense(words: Sequence[Word]) -> bool | None:
    """True: tells of the past; False: of what is to come; None: neither for certain."""
    for at, word in enumerate(words):
        lower = word.lower
        following = words[at + 1].lower if at + 1 < len(words) else ""
        if lower in ("will", "won't", "i'll", "we'll", "he'll", "she'll", "they'll", "gonna"):
            return False
        if lower in ("going", "plan", "planning", "hoping", "want", "need", "have") and (
            following == "to"
        ):
            return False
        if lower in ("is", "are", "am", "i'm", "we're"):
            if following.endswith("ing"):
                return False
            if is_past(following):
                return None  # "are closed": how it is
        if lower in _AHEAD:
            return None
        if is_past(lower) and not (lower == "used" and following == "to"):
            return True
        if lower in _SCHEDULED:
            return False
        if lower in ("i've", "we've", "have", "has") and is_past(following):
            return True
    return None


def weigh(
    text: str,
    words: Sequence[Word],
    guess: tuple[MemoryType | None, float],
    *,
    dated: bool,
    past: bool | None,
    own: bool,
    agent: bool = False,
) -> Weighed | None:
    """Type and score; None where neither a rule nor the classifier finds anything.

    Args:
        guess: the classifier's.
        dated: the sentence tells a date.
        past: see ``tense``.
        own: it is in the first person.
        agent: a program said it: of what is not its own it explains more than it reports.
    """
    kind, likely = guess
    if kind is MemoryType.IDENTITY:
        kind = MemoryType.FACT
    cue = next((each for each in _CUED if phrases(f"cue {each.value}").search(text)), None)
    if past and _is_event(cue, words, dated=dated, own=own):
        cue = MemoryType.EVENT
    subject = subject_of(text, words)
    if not own:
        least = 0.0 if agent else _STATED
        return _of_others(text, words, (cue, kind, likely), subject, least, dated=dated, past=past)
    weak = kind is None or likely < _SURE
    calm = subject is not None and not past and _is_calm(text, words, subject)
    calm = calm and subject is not None and subject.about is not About.NOUN
    if cue is None and calm and (weak or (kind in _NOT_WHAT_IS and not dated and past is None)):
        cue = MemoryType.FACT  # a plain statement of what is so
    if (cue is None and kind is None) or not _solid(words):
        return None
    if cue is not None:
        trust = max(likely, 0.8) if kind is cue else 0.75 if kind else max(0.45, 0.8 - likely / 3)
    else:
        trust = likely
    chosen = cue or kind or MemoryType.OBSERVATION
    if cue is None and chosen in _NEEDS_A_CUE and weak:
        chosen = MemoryType.OBSERVATION
    score = trust * _WEIGHT[chosen] * salience(words, text, dated=dated, calm=calm)
    return Weighed(chosen, round(score, 6))


def _of_others(
    text: str,
    words: Sequence[Word],
    types: tuple[MemoryType | None, MemoryType | None, float],
    subject: Subject | None,
    least: float,
    *,
    dated: bool,
    past: bool | None,
) -> Weighed | None:
    """What is not in the first person: a statement of something named, or of a certain thing.

    It needs a subject, and two things told of a name, three of all else. ``types``: by form, by the
    classifier, and how likely the latter is. ``least``: trust in the form alone.
    """
    cue, kind, likely = types
    if subject is None or (kind is None and likely > _SURELY_NOTHING):
        return None
    lowers = [word.lower for word in words]
    marks = min(_names(words), 2) + dated + bool(phrases("number").search(text))
    telling = marks + sum(each not in _IDLE and each not in _MOOD for each in lowers)
    telling -= sum(each in _MOOD or each in _INTENSE for each in lowers)
    telling += any(each in _KIN for each in lowers)
    telling -= 0 if _is_calm(text, words, subject) else 2
    named = subject.about is About.NAME
    at_large = subject.about is About.NOUN and not _DEFINITE.search(text[words[1].start :])
    once = past and cue is not MemoryType.DECISION
    if ((once or at_large) and not (marks or named)) or telling < (2 if named else 3):
        return None
    chosen = kind or cue or MemoryType.FACT
    # What is so, said of a thing, is a fact unless the classifier knows better.
    if likely < _SURE and chosen is not cue and not past:
        chosen = cue or MemoryType.FACT
    score = max(likely if kind else 0.0, least) * _WEIGHT[chosen] * min(1.0, 0.25 + telling / 10)
    return Weighed(chosen, round(score, 6))


def _is_event(cue: MemoryType | None, words: Sequence[Word], *, dated: bool, own: bool) -> bool:
    """Whether a sentence in the past tense tells what happened once."""
    if dated:
        return cue not in (MemoryType.DECISION, MemoryType.TODO) if own else cue is None
    return own and cue in (None, MemoryType.FACT) and _acts(words)


def _acts(words: Sequence[Word]) -> bool:
    """Whether the first verb after "I" is a past one of doing, not of feeling or being."""
    still = (
        "was",
        "were",
        "had",
        "felt",
        "thought",
        "knew",
        "loved",
        "wanted",
        "liked",
        "used",
        "wasn't",
    )
    for at, word in enumerate(words[:-1]):
        if word.lower in ("i", "we"):
            following = [each.lower for each in words[at + 1 : at + 4]]
            first = next((each for each in following if is_past(each)), None)
            return first is not None and first not in still
    return False


def _solid(words: Sequence[Word]) -> int:
    """The number of words that name or tell something."""
    return sum(word.lower not in _PLAIN and word.lower not in _FEELING for word in words)


def _is_calm(text: str, words: Sequence[Word], subject: Subject) -> bool:
    """Whether it says how things are: no exclamation, no saying, nothing that only could be."""
    gerund = subject.about is About.NOUN and words[0].lower.endswith("ing")
    return "!" not in text and words[subject.verb].lower not in _POSSIBLE and not gerund


def _names(words: Sequence[Word]) -> int:
    """The number of capitalised words behind the first."""
    return sum(
        word.text[:1].isupper()
        and word.lower not in _PLAIN
        and not word.lower.startswith("i'")
        and word.lower != "i"
        for word in words[1:]
    )


def salience(words: Sequence[Word], text: str, *, dated: bool, calm: bool) -> float:
    """How much a sentence in the first person tells, 0..1.

    Things, names, numbers and dates count for it, feelings against it, and so does "we" that says
    nothing of the speaker alone, unless it is ``calm``: a plain statement of what is so.
    """
    lowers = [word.lower for word in words]
    felt = sum(each not in _PLAIN and each in _FEELING for each in lowers)
    names = _names(words)
    value = 0.35 + 0.07 * min(_solid(words), 6) - 0.06 * felt
    value += 0.12 * min(names, 2) + (0.12 if phrases("number").search(text) else 0.0)
    value += 0.18 if dated else 0.0
    value += 0.1 if any(each in _KIN for each in lowers) else 0.0
    alone = any(each.startswith(("i'", "my", "me")) or each == "i" for each in lowers)
    if not alone and not dated and not calm:
        value -= 0.12
    if _OTHER_OWNED.search(text):
        value -= 0.12
    if len(words) > 35:
        value -= 0.1
    return min(1.0, max(0.0, value))


def confidence_of(kind: MemoryType, text: str, *, own: bool, agent: bool, joined: bool) -> float:
    """0.1..0.7: a person of himself, or a decision 0.7; of others 0.6; an agent 0.45 at most.

    A hedge takes 0.2 off, an answer joined to its question 0.05.
    """
    value = MAX_CONFIDENCE if own or kind is MemoryType.DECISION else 0.6
    if agent:
        value = min(value, 0.45)
    if phrases("hedge").search(text):
        value -= 0.2
    if joined:
        value -= 0.05
    return round(max(0.1, value), 2)
