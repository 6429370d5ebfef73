"""The words of a text as the name rules see them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

from memgraph.entities.gazetteer import Gazetteer, gazetteer

# Japanese has its own rules; a Latin word inside it is a word of its own.
_LETTER: Final = r"[^\W\u3040-\u30ff\u3400-\u9fff]"
_WORD = re.compile(rf"{_LETTER}+(?:[-'’]{_LETTER}+)*")
_ASCII_WORD = re.compile(r"[0-9A-Za-z_]+(?:[-'][0-9A-Za-z_]+)*")
_SENTENCE_END: Final = frozenset(".!?\n…•")
_UMLAUTS: Final = frozenset("äöüß")
_MAX_WORD: Final = 40
_LANGUAGE_WORDS: Final = 40
_LANGUAGE_CHARACTERS: Final = 240
_NOWHERE: Final = (sys.maxsize, sys.maxsize)
_new = tuple.__new__


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


class Sentence:
    """All words of a text and what is known about it as a whole.

    Attributes:
        likely: in ascending order the places of the words that may be or begin a name: the
            capitalised, the hyphenated, the given names in lower case.
    """

    def __init__(
        self, text: str, words: list[Word], likely: Sequence[int], lists: Gazetteer
    ) -> None:
        self.text = text
        self.words = words
        self.likely = likely
        self._lists = lists

    def lower(self, at: int) -> str:
        """The lower-cased word at ``at``; empty outside the text."""
        return self.words[at].lower if 0 <= at < len(self.words) else ""

    def gap(self, at: int) -> str:
        """What stands between the words ``at`` and ``at + 1`` (a possessive ending aside)."""
        if not 0 <= at < len(self.words) - 1:
            return ""
        return self.text[self.words[at].end : self.words[at + 1].start].removeprefix("'s")

    @cached_property
    def german(self) -> bool:
        """Whether more German words than English ones stand at the beginning."""
        cues = self._lists.cues
        opening = [word.lower for word in self.words[:_LANGUAGE_WORDS]]
        german = sum(map(cues["german"].__contains__, opening))
        english = sum(map(cues["english"].__contains__, opening))
        german += not _UMLAUTS.isdisjoint(self.text[:_LANGUAGE_CHARACTERS])
        return german > english


def read_words(text: str, covered: Sequence[tuple[int, int]], lists: Gazetteer) -> Sentence:
    """The words of ``text`` outside the ``covered`` ranges, which are sorted by start."""
    words: list[Word] = []
    likely: list[int] = []
    ranges = iter(covered)
    low, high = next(ranges, _NOWHERE)
    lower_given = lists.lower_given
    previous_end = 0
    for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text):
        start, end = match.span()
        while start >= high:
            low, high = next(ranges, _NOWHERE)
        if end > low or end - start > _MAX_WORD:
            continue
        raw, whole = text[start:end], end
        # Most words follow a blank: the rest is for those that do not.
        first = not words or (
            (start != previous_end + 1 or text[previous_end] != " ")
            and _opens_sentence(text[previous_end:start][-8:], words[-1])
        )
        if "'" in raw or "’" in raw:
            start, end = _bare(raw, start, end)
            raw = text[start:end]
        lower = raw.lower()
        capital = raw[0].isupper() and "_" not in raw
        if capital or "-" in raw or lower in lower_given:
            likely.append(len(words))
        # What Word(...) does, in a third of its time.
        words.append(_new(Word, (raw, lower, start, end, capital, first, end < whole)))
        previous_end = whole
    return Sentence(text, words, likely, lists)


def first_word(text: str) -> str:
    """The word with which ``text`` begins, any ending included; empty where none does."""
    match = _WORD.match(text)
    return match.group() if match else ""


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
