"""The words of a text as the name rules see them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from memgraph.entities.gazetteer import Gazetteer, gazetteer

# Japanese has its own rules; a Latin word inside it is a word of its own.
_LETTER: Final = r"[^\W\u3040-\u30ff\u3400-\u9fff]"
_WORD = re.compile(rf"{_LETTER}+(?:[-'’]{_LETTER}+)*")
_SENTENCE_END: Final = frozenset(".!?\n…•")
_UMLAUTS: Final = frozenset("äöüß")
_MAX_WORD: Final = 40
_LANGUAGE_WORDS: Final = 40
_LANGUAGE_CHARACTERS: Final = 240


class Word(NamedTuple):
    """A word without elided article and possessive ending.

    Attributes:
        first: whether it opens a sentence, where a capital letter says nothing.
        possessive: whether ``'s`` followed.
    """

    text: str
    lower: str
    start: int
    end: int
    capital: bool
    first: bool
    possessive: bool


class Sentence(NamedTuple):
    """All words of a text and what is known about it as a whole."""

    text: str
    words: list[Word]
    german: bool

    def lower(self, at: int) -> str:
        """The lower-cased word at ``at``; empty outside the text."""
        return self.words[at].lower if 0 <= at < len(self.words) else ""

    def gap(self, at: int) -> str:
        """What stands between the words ``at`` and ``at + 1`` (a possessive ending aside)."""
        if not 0 <= at < len(self.words) - 1:
            return ""
        return self.text[self.words[at].end : self.words[at + 1].start].removeprefix("'s")


def read_words(text: str, covered: Sequence[tuple[int, int]], lists: Gazetteer) -> Sentence:
    """The words of ``text`` outside the ``covered`` ranges, which are sorted by start."""
    words: list[Word] = []
    ranges = iter(covered)
    low, high = next(ranges, (len(text), len(text)))
    previous_end = 0
    for match in _WORD.finditer(text):
        start, end = match.span()
        while start >= high:
            low, high = next(ranges, (len(text) + 1, len(text) + 1))
        if end > low or end - start > _MAX_WORD:
            continue
        raw, gap, whole = match.group(), text[previous_end:start], end
        # Most words follow a blank: the rest is for those that do not.
        first = not words or (gap != " " and _opens_sentence(gap[-8:], words[-1]))
        if "'" in raw or "’" in raw:
            start, end = _bare(raw, start, end)
            raw = text[start:end]
        capital = raw[0].isupper() and "_" not in raw
        words.append(Word(raw, raw.lower(), start, end, capital, first, end < whole))
        previous_end = whole
    return Sentence(text, words, _is_german(text, words, lists))


def _is_german(text: str, words: Sequence[Word], lists: Gazetteer) -> bool:
    opening = [word.lower for word in words[:_LANGUAGE_WORDS]]
    german = sum(map(lists.cues["german"].__contains__, opening))
    english = sum(map(lists.cues["english"].__contains__, opening))
    german += not _UMLAUTS.isdisjoint(text[:_LANGUAGE_CHARACTERS])
    return german > english


def _opens_sentence(gap: str, before: Word) -> bool:
    """Whether the word after ``gap`` begins a sentence."""
    if _SENTENCE_END.isdisjoint(gap):
        return False
    return not (gap.startswith(".") and is_abbreviation(before))


def _bare(written: str, start: int, end: int) -> tuple[int, int]:
    """The word without an elided article before it and a possessive ending after it."""
    raw = written.replace("’", "'")
    head, _, tail = raw.partition("'")
    if head.lower() in gazetteer().cues["elision"] and not (head.isupper() and tail[0].islower()):
        # d'Anvers, l'Opéra; but O'Brien keeps its O.
        start += len(head) + 1
    if raw.endswith("'s") and end - start > 2:
        end -= 2
    return start, end


def is_abbreviation(word: Word) -> bool:
    """Whether a full stop after ``word`` belongs to it and ends no sentence."""
    if len(word.text) == 1 and word.capital:
        return True
    return word.lower in gazetteer().cues["title"] or word.lower in ("st", "nr", "no", "al", "bzw")
