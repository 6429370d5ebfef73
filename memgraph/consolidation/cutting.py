"""A turn, cut into the sentences that may tell something, without what surrounds them in talk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from memgraph.consolidation.words import is_past
from memgraph.policy.sentences import split_sentences

# Nobody tells a fact at such length; what lies behind is not read.
MAX_TURN_CHARS: Final = 16_000
MAX_SENTENCE_CHARS: Final = 500

_FENCED: Final = re.compile(r"^ {0,3}(?:```|~~~)")
_QUOTED_LINE: Final = re.compile(r"^\s*(?:>|\|)")
_BULLET: Final = re.compile(r"^\s*(?:[-*+•–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_CODE: Final = re.compile(
    r"^\s*(?:[$#>]\s|(?:def|class|import|from|return|function|const|let|var|SELECT|INSERT)\b.*[({;=:]"
    r"|[{}\[\]<])|[;{]\s*$|</\w+>|\w+\([\w, ]*\)\s*[;{]"
)
_UNSEEN: Final = re.compile(
    r"[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
# Pictographs, dingbats, flags, variation selectors and the joiner between them.
_PICTOGRAPHS: Final = re.compile(
    r"[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\ufe0f\u200d\U0001f1e6-\U0001f1ff]+"
)
_SMILEYS: Final = re.compile(r"(?:(?<=\s)|^)[:;=][-']?[)(DPpO/|](?=\s|$)")
_STAGE: Final = re.compile(r"\[[^\[\]]{0,400}\]")
_URL_ALONE: Final = re.compile(r"^\s*\S+://\S+\s*$")
_OPENERS: Final = (
    "thanks|thank you(?: so much| very much)?|thx|hey(?: there)?|hi(?: there)?|hello|yo|wow|whoa|woah|oh|ooh|"
    "ah|aw|aww|haha|ha|hah|lol|yeah|yep|yup|yes|nope|no|nah|ok|okay|well|so|sure(?: thing)?|"
    "of course|absolutely|definitely|totally|exactly|right|indeed|true|cool|nice|great|awesome|"
    "good|perfect|amazing|man|dude|gosh|omg|hmm|um|uh|actually|honestly|anyway|anyways|"
    "by the way|btw|fyi|also|plus|and|but|then|besides|oh and|guess what|good morning|"
    "good evening|good afternoon|good news|great news|bad news|big news|great question|good question|to be honest|tbh|"
    "frankly|basically|i mean|you know|like i said|as i said|as you know|as always|in fact|for sure|"
    "no worries|no problem|please note(?: that)?|note(?: that)?|just so you know|"
    "for your information|for the record|remember that|please remember(?: that)?|"
    "don't forget that|keep in mind that|let me tell you|speaking of which|sorry|"
    "unfortunately|sadly|luckily|fortunately|thankfully|correct|update"
)
_OPENER: Final = re.compile(
    rf"^(?:{_OPENERS})(?P<mark>\s*(?:[,:!.…]|\.\.\.|\s[-–—])+\s*|\s+(?=(?:i|i'm|i've|i'd|i'll|my|we|our|been|had|went|got|just|picked|started)\b))",
    re.I,
)
_OPENING_WORD: Final = re.compile(_OPENERS, re.I)
_REMEMBER: Final = re.compile(
    r"^(?:(?:please )?(?:remember|note|keep in mind)(?: that)?|don['’]t forget(?: that)?|"
    r"(?:i|just) (?:want(?:ed)?|wanna) (?:to )?(?:tell|let) you (?:know )?(?:that )?)\s*:?\s+"
    r"(?=(?:i|i['’]m|i['’]ve|i['’]d|i['’]ll|my)\b)",
    re.I,
)
# The first part only says that something follows.
_ANNOUNCED: Final = re.compile(
    r"^[^.,;:–—-]{0,60}\b(?:happened|news|guess what|update|thing)\b[^.,;:–—-]{0,30}\s*(?: [-–—]+|[:—–])\s+(?=\S{1,20}\s+\S)",
    re.I,
)
_DASH: Final = re.compile(r"\s+[-–—]{1,2}\s+|\s*—\s*|;\s+")
# What follows a fact to say how it felt.
_FELT: Final = re.compile(
    r"^(?:and |but )?(?:(?:it|that|this|they|which|everything)(?:['’]s|['’]re| is| was| were| are| has been"
    r"| made| makes| really| felt| feels| looks| sounds| means)\b|so\b|such\b|super\b|really\b|very\b|"
    r"pretty\b|what an?\b|how\b|just\b|absolutely\b|totally\b|you\b|can['’]t wait|thanks|isn['’]t|"
    r"wish me|hope|check|look|let me|don['’]t|here['’]s|perfect|great|awesome|amazing|love)",
    re.I,
)
_SPLICE: Final = re.compile(
    r",\s+(?=(?:and |but |so )?(?:it|that|this|they)(?:['’]s|['’]re| is| was| were| are| felt| feels)\b"
    r"[^,;]{0,80}$|i can['’]t wait|can['’]t wait)",
    re.I,
)
# A name or a number in an afterthought: it tells something after all.
_TELLS: Final = re.compile(r"\b(?!I\b|I['’])[A-Z]|\d")
_SINCE: Final = re.compile(
    r",?\s*\b(?:ever )?since (?:we last \w+(?: to each other)?|(?:our|the) last \w+|last time(?: we \w+)?"
    r"|we (?:spoke|talked|chatted|met)(?: last)?)\b(?:\s*,\s*)?",
    re.I,
)
_TAG: Final = re.compile(
    r",?\s+(?:right|haha|lol|ha|though|too bad|huh|btw|by the way|if you know what i mean"
    r"|as you know|thanks|please)(?=[.!…]*$)",
    re.I,
)
_LAUGH: Final = re.compile(r"\b(?:ha){2,}\b|\blol\b", re.I)


class Addressed:
    """Finds the names by which the speakers address each other, at the ends of a sentence.

    A name of several words is used by its first, and a first name of six letters or more by its
    beginning.
    """

    def __init__(self, names: Iterable[str]) -> None:
        forms: dict[str, None] = {}
        for name in names:
            first = name.split()[0] if name.split() else ""
            for form in (name, first, *(first[:end] for end in (3, 4) if len(first) > 5)):
                if len(form) > 2 and form[0].isalpha():
                    forms.setdefault(re.escape(form[:60]))
        any_name = "|".join(sorted(forms, key=len, reverse=True)) or r"(?!)"
        self.alone = re.compile(rf"(?:{any_name})\b", re.I)
        self.head = re.compile(rf"(?:{any_name})\b\s*(?:[,!:…]+|\s[-–—]+|\.\.\.)\s*", re.I)
        self.tail = re.compile(rf",\s*(?:{any_name})(?=\s*[.!?…]*$)", re.I)


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence of a turn.

    Attributes:
        quote: as it was said.
        text: without greeting, address, pictographs and afterthought.
        place: its number in the turn, from 0.
    """

    quote: str
    text: str
    place: int


def cut_turn(content: str, names: Addressed) -> list[Piece]:
    """The sentences of a turn. Code, quoted lines and stage directions are left out.

    ``names``: of the speakers.
    """
    pieces = []
    for line in _lines(content[:MAX_TURN_CHARS]):
        for sentence in split_sentences(line):
            if len(sentence) <= MAX_SENTENCE_CHARS:
                text = bare(sentence, names)
                pieces.append(Piece(sentence, text, len(pieces)))
    return pieces


def _lines(content: str) -> Iterator[str]:
    """The paragraphs: lines that go on in lower case are joined to the line before."""
    open_fence = False
    kept = ""
    for line in _UNSEEN.sub(" ", _STAGE.sub(" ", content)).splitlines():
        if _FENCED.match(line):
            open_fence = not open_fence
            continue
        if (
            open_fence
            or _QUOTED_LINE.match(line)
            or _URL_ALONE.match(line)
            or _CODE.search(line[:300])
        ):
            continue
        text = " ".join(_BULLET.sub("", line).split())
        if (
            40 < len(kept) < 2 * MAX_SENTENCE_CHARS
            and text[:1].islower()
            and kept[-1] not in ".!?:"
        ):
            kept = f"{kept} {text}"
            continue
        if kept:
            yield kept
        kept = text
    if kept:
        yield kept


def bare(sentence: str, names: Addressed) -> str:
    """A sentence without what only belongs to the talk around it."""
    text = _LAUGH.sub("", _SMILEYS.sub(" ", _PICTOGRAPHS.sub(" ", sentence)))
    text = " ".join(_SINCE.sub(" ", text).split()).strip()
    for _ in range(6):
        shorter = _without_head(text, names)
        if shorter == text:
            break
        text = shorter
    text = _with_subject(_tail_cut(text, names))
    return text[:1].upper() + text[1:]


def _without_head(text: str, names: Addressed) -> str:
    text = text.lstrip(" ,.!…-–—:;*")
    for pattern in (_OPENER, _REMEMBER, _ANNOUNCED):
        match = pattern.match(text)
        if match and match.end() < len(text):
            return text[match.end() :]
    if match := names.head.match(text):
        return text[match.end() :]
    # "Hey Ana, …", "Yeah Ana, …": no mark between the opener and the name.
    first, _, rest = text.partition(" ")
    if names.alone.match(rest) and _OPENING_WORD.fullmatch(first):
        return rest
    return text


def _tail_cut(text: str, names: Addressed) -> str:
    end = text[-1:] if text[-1:] in ".!?" else ""
    parts = _DASH.split(text)
    kept = [parts[0]]
    for part in parts[1:]:
        if _FELT.match(part) or len(part.split()) < 3:
            break
        kept.append(part)
    if len(kept) < len(parts):
        text = text[: text.index(parts[len(kept)], sum(map(len, kept)))].rstrip(" -–—;") + end
    splice = _SPLICE.search(text)
    if splice and not _TELLS.search(text, splice.end() + 5):
        text = text[: splice.start()] + (end or ".")
    for _ in range(2):
        shorter = _TAG.sub("", text)
        shorter = names.tail.sub("", shorter)
        if shorter == text:
            break
        text = shorter
    return text.strip()


def _with_subject(text: str) -> str:
    """ "Went hiking", "Been working on it", "Hoping to": the speaker, not said but meant."""
    first, _, rest = text.partition(" ")
    lower = first.lower()
    if not rest or rest[:1].isupper():
        return text
    following = rest.split(" ", 1)[0].lower()
    adverb = lower in ("just", "still", "finally", "recently", "even", "also", "already")
    verb = following if adverb else lower
    if verb == "been":
        begin = "I have"
    elif verb.endswith("ing") and (adverb or _PROGRESS.match(text)) and not _HAS_VERB.search(text):
        begin = "I am"
    elif verb == "gonna":
        begin = "I am"
    elif is_past(verb) and verb not in _STATES and not _AFTER_PARTICIPLE.match(text):
        begin = "I"
    else:
        return text
    return f"{begin} {lower}{text[len(first) :]}"


_PROGRESS: Final = re.compile(
    r"(?:planning|hoping|looking|trying) to\b|(?:working|planning) on\b|looking for\b",
    re.I,
)
_HAS_VERB: Final = re.compile(
    r"\b(?:is|was|are|were|has|can|will|makes?|helps?|keeps?|gives?|\w+s (?:me|my|us|you))\b|['’]s\b",
    re.I,
)
_AFTER_PARTICIPLE: Final = re.compile(r"\S+(?: \S+)? (?:by|and)\b", re.I)
# Participles at the head say how somebody is, or what something is like.
_STATES: Final = frozenset(
    "was were inspired based surrounded excited motivated determined interested tired amazed "
    "blessed united located titled called named given known left taken used combined compared "
    "related mixed packed filled supposed said added kept didn't wasn't hadn't weren't".split()
)
