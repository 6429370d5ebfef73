"""A turn, cut into the sentences that may tell something, without what surrounds them in talk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from memgraph.consolidation.phrases import phrases
from memgraph.consolidation.words import AUXILIARIES, is_past, word_list
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
_DASH: Final = re.compile(r"\s+[-–—]{1,2}\s+|\s*—\s*|;\s+")
# A name or a number in an afterthought: it tells something after all.
_TELLS: Final = re.compile(r"\b(?!I\b|I['’])[A-Z]|\d")


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
    pieces: list[Piece] = []
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
    text = _SMILEYS.sub(" ", _PICTOGRAPHS.sub(" ", sentence)).replace("’", "'")
    text = " ".join(phrases("since").sub(_comma, text).split()).strip()
    for _ in range(6):
        shorter = _without_head(text, names)
        if shorter == text:
            break
        text = shorter
    text = _with_subject(_wished(_tail_cut(text, names)))
    return text[:1].upper() + text[1:]


def _wished(text: str) -> str:
    """ "Call me Jo", "Remind me to": said to somebody, and yet something of the speaker."""
    wish = phrases("wish").match(text)
    if wish is None or text.endswith("?") or phrases("to another").search(text):
        return text
    begin = "I prefer to be called" if wish["name"] else "I want to be reminded"
    return f"{begin} {text[wish.end() :]}"


def _comma(found: re.Match[str]) -> str:
    """What is left of a stretch that is cut out: a comma, where two parts were held apart."""
    rest = found.string[found.end() : found.end() + 1]
    return ", " if found.start() and found[0].startswith(",") and rest.isalnum() else " "


def _without_head(text: str, names: Addressed) -> str:
    text = text.lstrip(" ,.!…-–—:;*")
    for name in ("opener", "remember", "announced", "conjunction"):
        match = phrases(name).match(text)
        if match and match.end() < len(text):
            return text[match.end() :]
    if match := names.head.match(text):
        return text[match.end() :]
    # "Hey Ana, …", "Yeah Ana, …": no mark between the opener and the name.
    first, _, rest = text.partition(" ")
    if names.alone.match(rest) and phrases("opener words").fullmatch(first):
        return rest
    return text


def _tail_cut(text: str, names: Addressed) -> str:
    end = text[-1:] if text[-1:] in ".!?" else ""
    parts = _DASH.split(text)
    kept = [parts[0]]
    for part in parts[1:]:
        if phrases("felt").match(part) or len(part.split()) < 3:
            break
        kept.append(part)
    if len(kept) < len(parts):
        text = text[: text.index(parts[len(kept)], sum(map(len, kept)))].rstrip(" -–—;") + end
    splice = phrases("splice").search(text)
    if splice and not _TELLS.search(text, splice.end() + 5):
        text = text[: splice.start()] + (end or ".")
    for _ in range(2):
        shorter = phrases("tag").sub("", text)
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
    if following in _BEHIND_NAMES:
        return text  # a name that looks like a past form
    adverb = lower in ("just", "still", "finally", "recently", "even", "also", "already")
    verb = following if adverb else lower
    if verb == "been":
        if not _SPENT.match(text):
            return text
        begin = "I have"
    elif (
        verb.endswith("ing")
        and (adverb or phrases("progress").match(text))
        and not phrases("finite").search(text)
    ) or verb == "gonna":
        begin = "I am"
    elif verb == "gotta" or (
        is_past(verb) and verb not in _STATES and not _AFTER_PARTICIPLE.match(text)
    ):
        begin = "I"
    else:
        return text
    return f"{begin} {lower}{text[len(first) :]}"


def _goes_on(verb: str, text: str, *, adverb: bool) -> bool:
    """ "Still working on it": not "Working on it helps"."""
    if not verb.endswith("ing") or phrases("finite").search(text):
        return False
    return adverb or phrases("progress").match(text) is not None


_BEHIND_NAMES: Final = AUXILIARIES - {"be", "been", "have"}
# Not "been a long day".
_SPENT: Final = re.compile(r"(?:\w+ )?been (?:\w+ )?(?:\w+ing|busy|to|back)\b", re.I)
_AFTER_PARTICIPLE: Final = re.compile(r"\S+(?: \S+)? (?:by|and)\b", re.I)
# Participles at the head say how somebody is, or what something is like.
_STATES: Final = word_list(
    "was were inspired based surrounded excited motivated determined interested tired amazed "
    "blessed united located titled called named given known left taken used combined compared "
    "related mixed packed filled supposed said added kept didn't wasn't hadn't weren't"
)
