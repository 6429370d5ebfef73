"""Split text into sentences in several languages, aware of abbreviations and versions.

Passages of whole sentences are what is compared with other texts.
"""

from __future__ import annotations

import re
from typing import Final

from memgraph.text.lexicon import MONTH_NAMES

MAX_WORDS: Final = 40
"""A passage is made of whole sentences while they have at most so many words together."""
MAX_PASSAGES: Final = 6

_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)|[。！？]+[」』”]?")
_ABBREVIATED = (
    "mr mrs ms dr prof sr sra st jr vs e.g i.e eg ie cf ca approx no nr fig figs sec ch vol pp "
    "ed eds al inc ltd co corp dept est ext min max resp incl excl z.b d.h u.a z.t bzw usw evtl "
    "ggf vgl abs art str tel m mme mlle p.ex p.ej ud uds núm pág jan feb mar apr jun jul aug sep "
    "sept oct nov dec mon tue wed thu fri sat sun a.m p.m"
)
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
# Abbreviations that end a sentence if a capital letter follows.
_MAYBE_LAST = frozenset(("etc", "inc", "ltd", "co", "corp", "usw", "a.m", "p.m"))
# Also ordinary words, unless a number follows: "no. 5", but "no. That is wrong."
_BEFORE_NUMBERS = frozenset(("no", "art", "max", "min", "ed", "ch", "abs", "fig", "sec", "sun"))
_LAST_WORD = re.compile(r"[^\s(\[\"“«]*$")
_MONTHS = re.compile(rf"\s+({'|'.join(MONTH_NAMES['de'])})\b", re.IGNORECASE)
_WINDOW = 48


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, stripped, in order. No words are dropped."""
    sentences: list[str] = []
    start = 0
    for match in _END.finditer(text):
        if match.start() < start or not _is_end(text, match):
            continue
        sentence = text[start : match.end()].strip()
        if sentence:
            sentences.append(sentence)
        start = match.end()
    rest = text[start:].strip()
    if rest:
        sentences.append(rest)
    return sentences


def passages(text: str) -> list[str]:
    """Return the passages of a text in order, at most ``MAX_PASSAGES``.

    A sentence of more than ``MAX_WORDS`` words is one passage, however long it is.
    """
    found: list[str] = []
    room = 0
    for line in text.splitlines():
        for sentence in split_sentences(line):
            size = len(sentence.split())
            if found and size <= room:
                found[-1] = f"{found[-1]} {sentence}"
                room -= size
            elif size:
                found.append(sentence)
                room = MAX_WORDS - size
    return found[:MAX_PASSAGES]


def _is_end(text: str, match: re.Match[str]) -> bool:
    mark = match.group()
    if mark[0] in "。！？":
        return True
    follows = text[match.end() : match.end() + _WINDOW]
    head = follows.lstrip()
    if head and head[0].islower():
        # "Hi! how are you" is two sentences; "e.g. this" and "foo… and bar" are not.
        return mark[0] in "!?" and "…" not in mark
    if mark[0] != "." or len(mark.rstrip("\"'”’»)]")) > 1:
        return True
    word = _last_word(text, match.start())
    if word.isdecimal():
        ordinal = match.start() == len(word) or _MONTHS.match(follows) is not None
        return not (len(word) <= 2 and ordinal)
    if word in _MAYBE_LAST:
        return True
    if word in _BEFORE_NUMBERS and head and not head[0].isdigit():
        return True
    if len(word) == 1 and word.isalpha():
        return False
    # Letters separated by dots, such as "U.S.".
    dotted = "." in word and all(len(part) == 1 for part in word.split("."))
    return word not in _ABBREVIATIONS and not dotted


def _last_word(text: str, end: int) -> str:
    match = _LAST_WORD.search(text[max(0, end - _WINDOW) : end])
    # A leading apostrophe opens a quotation; one inside a word belongs to it: "didn't."
    return match.group().lstrip("'‘’").casefold() if match else ""
