"""What of a talk is left out: questions, small talk, praise, orders, what hangs on other words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memgraph.consolidation.words import (
    AUXILIARIES,
    BASES,
    IMPERATIVES,
    Word,
    is_past,
    is_plural,
    third_person,
)

_MIN_WORDS: Final = 3
_MAX_WORDS: Final = 60
_MARKS: Final = re.compile(r"[^\w\s.,;:!?'’\"“”()&%€$£/@#+–—…-]")
_LETTER: Final = re.compile(r"[^\W\d_]")
# The place of a pronoun whose noun is in another sentence.
_HANGING_HEADS: Final = frozenset(
    "it it's its that that's this these those they they're they've they'll they'd he he's he'll "
    "he'd she she's she'll she'd there's here's here him her them which who whose such same one "
    "another both either neither theirs it'll it'd that'll what's what how why where whoever "
    "his their everything something nothing anything".split()
)
_TIME_NOUNS: Final = frozenset(
    "week weekend month year morning afternoon evening summer winter spring autumn fall monday "
    "tuesday wednesday thursday friday saturday sunday time past".split()
)
_PLACES: Final = frozenset(("there", "here"))
_HANGING: Final = frozenset(
    "their his hers it that this these those them they he she him her it's that's they're he's she's one "
    "ones another so theirs it'll they've they'll".split()
)
# "That" and "so" hang on nothing when a clause follows.
_OF_PERSONS: Final = frozenset(
    "they them he she him her his hers their they're he's she's they've they'll theirs".split()
)
_PERSONS: Final = frozenset(
    "wife husband partner girlfriend boyfriend mom mum mother dad father parents sister brother "
    "son daughter kids children friends friend family people boss colleague colleagues team "
    "lot lots few way bit time".split()
)
_MET: Final = frozenset(("finished", "read", "reading", "watching", "meeting"))
_SITES: Final = frozenset(
    "park beach restaurant city town country school museum store gym office hotel café cafe "
    "shelter studio home church center centre market mountains lake forest".split()
)
_CLAUSE_WORDS: Final = frozenset(("that", "so"))
_NOUN_MARKERS: Final = frozenset(
    "a an the my our your his her their some any each every two three four five another new".split()
)
_TO_OTHER: Final = frozenset("you your you're you've you'll you'd youre u ur yours".split())
_TALK: Final = re.compile(
    r"^(?:thanks?|thank you|thx|ty|hi|hello|hey|bye|goodbye|good (?:morning|evening|afternoon|night|luck|call|job|point|to)|"
    r"congrat\w*|welcome|sorry to|take care|have (?:a|fun)|see (?:you|ya)|talk (?:to you )?(?:soon|later)|"
    r"sounds?\b|way to go|no (?:worries|problem|way)|of course|can['’]?t (?:wait|believe|imagine|complain|agree|thank)|"
    r"could(?:n['’]t|n['’]t) (?:agree|ask|have)|nice|wow|awesome|great|cool|cheers|happy (?:birthday|to|for|new)|"
    r"glad|so (?:happy|glad|proud|sorry|excited|true|cool|nice|great|good|awesome)|proud|love (?:it|that|this|how|your)|"
    r"long time|what an?\b|how \w+|always here|anytime|you['’]?re? welcome|same|me (?:too|neither)|"
    r"not (?:much|really|yet|at all|bad)|wish\b|hope\b|hoping you|looking forward to hear|appreciate|much appreciated|"
    r"best (?:of luck|wishes|regards)|kind regards|regards|sincerely|cheers|yours|dear|"
    r"absolutely|definitely|exactly|totally|for sure|sure|ok(?:ay)?|yes|no|yeah|fair enough|makes sense|got it|"
    r"understood|will do|on it|done|noted|roger|agreed|works for me|my pleasure|my bad|my apologies)\b",
    re.I,
)
_SPOKEN_TO: Final = re.compile(
    r"\b(?:i (?:totally |completely |really |definitely |do |also |so |just )*(?:agree|know|see|understand|get it|can (?:imagine|see|tell|relate|understand)|bet|hear you|guess so|"
    r"hope (?:you|it|that|so|this|things|we|your)|wish you|think so|believe in you|feel you|trust you|love you|miss you|appreciate|admire you|"
    r"look forward to (?:hear|see|it|that)|could(?:n['’]t| not) agree|can['’]?t (?:wait|imagine|believe|thank|agree)|"
    r"had no idea|hear that|told you|promise|swear|mean it|guess you|bet you|"
    r"will (?:let you know|keep you|try my best|do that|check|be (?:there|here)|definitely (?:check|let))|will)(?=[\s.!,]|$)(?! (?:how to|all|every|the|about|what|why|in|to|that|from|of|[A-Z0-9]))"
    r"|i['’]ll (?:definitely |surely |be sure to |keep |try to |always )*(?:let you|you posted|keep (?:you|that|it|this|on|at|going|up)|do that|try my best|do my best|check (?:it|that|them)|be (?:there|here|right|sure)|give it|"
    r"take (?:a look|it|your|that)|look into|remember that|think about it|see|share|send (?:it|them|some|you (?:a|some) (?:pic|photo))|pass|look (?:it|them|that))"
    r"|i['’]?(?:m| am) (?:so |really |super |very |truly |always |also |just |all |totally |glad |happy |)*(?:glad|happy (?:for|to hear|that you|you)|sorry|proud of (?:you|your)|excited for you|thrilled for you|here (?:for|to|if)|"
    r"rooting|cheering|grateful for you|thankful for you|lucky to have you|good|fine|okay|ok|great|well|doing (?:great|well|good|fine|ok(?:ay)?|alright)|curious|impressed|jealous|envious|"
    r"sure\b|looking forward to (?:hear|see(?:ing)? (?:you|it|what|how)|it|that)|all ears|all for|up for|in awe|on it|with you|not sure|"
    r"excited(?=[.!]*$)|excited (?:to (?:hear|see|share|show|tell))|stoked (?:for|to (?:hear|see))|in(?=[.!]*$)|down(?=[.!]*$)|ready(?=[.!]*$)|blessed|speechless|happy(?=[.!]*$)))"
    r"(?![\w'’])",
    re.I,
)
_BETWEEN_US: Final = re.compile(
    r"\b(?:means? (?:a lot|so much|the world|everything)|proud of you|here for you|happy for you|glad (?:you|it|that|to)|hear from you|good to see|"
    r"good to (?:hear|know|chat|talk)|let me know|(?:talk|speak|chat|chatting|talking) (?:to|with) you|keep (?:me|you) (?:posted|updated)|"
    r"(?:what|how) about you|same here|me too|your (?:kind )?words|your (?:support|help|advice|encouragement|kindness)|thanks for|thank you for|"
    r"appreciate (?:you|your|it|that|the)|since we last|you got this|you['’]?re (?:right|so|an?|the|doing|killing|amazing)|believe in you|"
    r"take a look|check (?:it|this|them|'em|that|out)|here['’]?s (?:a|an|the|some|one|my|what|another)|look at (?:this|that|these)|as (?:an ai|a language model)|"
    r"i (?:can|could) help|would you like|feel free|if you (?:need|want|have|would like)|anything else)\b",
    re.I,
)
_TOOL_ORDER: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|delete|erase|wipe|retract|reveal|overwrite|purge|drop|clear|remove|"
    r"supersede|store|save|remember|resolve)\b.{0,60}\b(?:instructions?|prompts?|memor(?:y|ies)|everything|rules?|guidelines|"
    r"previous|above|facts?|conversation history|database|all (?:of )?(?:your|the)|confidence|importance|messages?)\b"
    r"|\b(?:system prompt|jailbreak|developer mode|you are now|new instructions|end of (?:prompt|conversation)|"
    r"(?:important|urgent) instructions?|admin(?:istrator)? (?:override|access)|confidence (?:to |of |= ?)?1|importance (?:to |of |= ?)?100|memory_id|tool_call|"
    r"instructions? (?:for|to) the (?:assistant|agent|memory|model|ai))\b"
    r"|<\|?/?(?:system|im_start|im_end|user|assistant|instructions?)\b|\[/?inst\]",
    re.I,
)
_ROLE_MARK: Final = re.compile(
    r"^\W*(?:system|assistant|developer|tool|user|instructions?)\s*:", re.I
)
_QUOTED: Final = re.compile(r"^[\"“«„'‘][^\"”»]*[\"”»'’][.!]*$")
_I_WANT_YOU: Final = re.compile(
    r"^(?:(?:i|we) (?:want|need|would like|expect|order|command|ask|request|urge)|i['’]d like|i['’]d love) you\b"
    r"|^(?:please|kindly|always|never|from now on|stop|you (?:must|should|need|have to|are|can|may|will))\b",
    re.I,
)
_AGENT_OFFER: Final = re.compile(
    r"\bi(?:['’](?:ll|m|d)| can| could| will| would| am) (?:help|assist|happy to|be happy|be glad|glad to|here to|able to|unable|"
    r"not able|suggest|recommend|need more|need you|love to help|provide|walk you|explain|guide)\b|^(?:here|below|above|to |if |you can|let['’]s|"
    r"first|second|third|finally|next|step \d|note that|keep in mind|it['’]s important)",
    re.I,
)


def is_left_out(text: str, words: Sequence[Word], *, agent: bool) -> bool:
    """Whether a bare sentence tells nothing that could be kept.

    Args:
        agent: whether a program said it: what it offers or teaches is left out too.
    """
    if not _MIN_WORDS <= len(words) <= _MAX_WORDS or text.rstrip("\"'”’»)…. ").endswith(
        ("?", "？")
    ):
        return True
    if len(_LETTER.findall(text)) < len(text) / 2 or len(_MARKS.findall(text)) > len(text) / 10:
        return True
    return (
        _is_order(text, words)
        or _QUOTED.match(text) is not None
        or _TALK.match(text) is not None
        or _SPOKEN_TO.search(text) is not None
        or _BETWEEN_US.search(text) is not None
        or words[0].lower in _TO_OTHER
        or (agent and _AGENT_OFFER.search(text) is not None)
        or hangs(words)
    )


def _is_order(text: str, words: Sequence[Word]) -> bool:
    if _TOOL_ORDER.search(text) or _ROLE_MARK.match(text) or _I_WANT_YOU.match(text):
        return True
    first = words[0].lower
    if first not in IMPERATIVES:
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
    thing = person = place = False
    for at, word in enumerate(words[1:], start=1):
        lower = word.lower
        following = words[at + 1].lower if at + 1 < len(words) else ""
        if lower in _PLACES and not place and following not in ("is", "are", "was", "were"):
            return True
        if lower in _HANGING and not (person if lower in _OF_PERSONS else thing):
            if not _hangs_on_nothing(words, at):
                return True
        capital = word.text[:1].isupper() and lower != "i" and not lower.startswith("i'")
        before = words[at - 1].lower
        kin = lower in _PERSONS
        noun = before in _NOUN_MARKERS or (len(lower) > 4 and is_plural(lower))
        thing = thing or capital or (noun and not kin)
        person = person or capital or noun
        place = place or capital or (before in ("in", "at", "to") and noun) or lower in _SITES
    return False


def _hangs_on_nothing(words: Sequence[Word], at: int) -> bool:
    """ "That" before a clause, "this week", "it" of "find it hard": nothing is stood for."""
    lower, before = words[at].lower, words[at - 1].lower
    following = words[at + 1].lower if at + 1 < len(words) else ""
    if lower in _CLAUSE_WORDS and following and following not in ("is", "was"):
        return True
    if lower in ("this", "that", "one", "these") and (
        following in _TIME_NOUNS or following in ("of", "coming", "past")
    ):
        return True
    if lower in ("this", "these") and (before in _MET or is_past(before)):
        return following not in AUXILIARIES and following.isalpha()
    if lower == "another" or (lower == "so" and not following):
        return lower == "another"
    return (
        lower == "it"
        and before in ("make", "makes", "made", "find", "found")
        or (lower in ("it's", "it") and following in ("important", "hard", "time", "easy", "been"))
    )


def has_verb(words: Sequence[Word]) -> bool:
    """Whether some word can be a finite verb."""
    for at, word in enumerate(words):
        lower = word.lower
        if lower in AUXILIARIES or is_past(lower) or lower.endswith("n't"):
            return True
        if at and (lower in _THIRDS or (lower in BASES and at < 8)):
            return True
        if lower.endswith("'s") and at + 1 < len(words) and words[at + 1].lower in _NOUN_MARKERS:
            return True
    return False


_THIRDS: Final = frozenset(map(third_person, BASES)) | {"runs", "costs", "takes", "means", "uses"}
