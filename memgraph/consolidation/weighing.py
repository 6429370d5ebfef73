"""What kind of fact a sentence is, how much it tells, and how far it is to be believed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memgraph.consolidation.phrases import phrases
from memgraph.consolidation.words import Word, is_past, word_list
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
        if lower in ("is", "are", "am", "i'm", "we're") and following.endswith("ing"):
            return False
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
) -> Weighed | None:
    """Type and score; None where neither a rule nor the classifier finds anything.

    Args:
        guess: the classifier's.
        dated: the sentence tells a date.
        past: see ``tense``.
        own: it is in the first person.
    """
    kind, likely = guess
    cue = next((each for each in _CUED if phrases(f"cue {each.value}").search(text)), None)
    if past and _is_event(cue, words, dated=dated, own=own):
        cue = MemoryType.EVENT
    if kind is MemoryType.IDENTITY:
        kind = MemoryType.FACT
    if (cue is None and kind is None) or not _solid(words):
        return None
    if not own and kind is not None and cue in (MemoryType.FACT, MemoryType.EVENT):
        cue = None  # the form says little of what is not the speaker's own
    if cue is not None:
        trust = max(likely, 0.8) if kind is cue else 0.75 if kind else max(0.45, 0.8 - likely / 3)
    else:
        trust = likely
    chosen = cue or kind or MemoryType.OBSERVATION
    if cue is None and chosen in _NEEDS_A_CUE and likely < _SURE:
        chosen = MemoryType.OBSERVATION
    score = trust * _WEIGHT[chosen] * salience(words, text, dated=dated, own=own)
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


def salience(words: Sequence[Word], text: str, *, dated: bool, own: bool) -> float:
    """How much a sentence tells, 0..1: things, names, numbers and dates against feelings."""
    lowers = [word.lower for word in words]
    content = [each for each in lowers if each not in _PLAIN]
    felt = sum(each in _FEELING for each in content)
    solid = _solid(words)
    names = sum(
        word.text[:1].isupper()
        and at > 0
        and word.lower not in _PLAIN
        and not word.lower.startswith("i'")
        and word.lower != "i"
        for at, word in enumerate(words)
    )
    value = 0.25 + 0.07 * min(solid, 6) - 0.06 * felt
    value += 0.12 * min(names, 2) + (0.12 if phrases("number").search(text) else 0.0)
    value += 0.18 if dated else 0.0
    value += 0.1 if any(each in _KIN for each in lowers) else 0.0
    value += 0.1 if own else -0.1
    if not own and not names and not dated and lowers[0] not in ("the", "our", "my"):
        value -= 0.15
    if (
        own
        and not dated
        and not any(each.startswith(("i'", "my", "me")) or each == "i" for each in lowers)
    ):
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
