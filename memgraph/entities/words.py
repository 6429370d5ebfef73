"""The words of a text as the name rules see them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from memgraph.entities.gazetteer import gazetteer

# Japanese has its own rules; a Latin word inside it is a word of its own.
_LETTER: Final = r"[^\W\u3040-\u30ff\u3400-\u9fff]"
_WORD = re.compile(rf"{_LETTER}+(?:[-'’]{_LETTER}+)*")
_WORDS = re.compile(f"({_WORD.pattern})")
_ASCII_WORDS = re.compile(r"([0-9A-Za-z_]+(?:[-'][0-9A-Za-z_]+)*)")
# Behind these a capital letter says nothing; a colon and marks of lists and emphasis among them.
_SENTENCE_END: Final = frozenset('.!?\n…•:*#>|“"')
_UMLAUTS: Final = frozenset("äöüß")
_MAX_WORD: Final = 40
# Words return: what each is need not be found again.
_MOST_FORMS: Final = 20_000
# So much of what stands before a word can open a sentence.
_GAP: Final = 8
_LANGUAGE_WORDS: Final = 40
_LANGUAGE_CHARACTERS: Final = 240
_NOWHERE: Final = (sys.maxsize, sys.maxsize)
_new = tuple.__new__


class BareWord(NamedTuple):
    """A word without elided article and possessive ending.

    Attributes:
        first: True at the beginning of a sentence, where a capital letter is no evidence.
        possessive: True when ``'s`` followed.
    """

    text: str
    lower: str
    start: int
    end: int
    capital: bool
    first: bool
    possessive: bool


class WordForm(NamedTuple):
    """The properties of a written word, independent of its place.

    Attributes:
        skipped: characters of an elided article before the word.
        likely: True when it may be or begin a name: a capitalised or hyphenated word, or a given
            name in lower case.
        language: 1 for a German cue word, -1 for an English one, 0 for any other.
    """

    text: str
    lower: str
    skipped: int
    capital: bool
    possessive: bool
    likely: bool
    language: int


class TaggedText:
    """All words of a text and what is known about it as a whole.

    A word is made on demand: the rules read the few words around a likely one.

    Attributes:
        likely: the positions of words that may be or begin a name, ascending.
    """

    def __init__(
        self, text: str, forms: Sequence[WordForm], starts: Sequence[int], ends: Sequence[int]
    ) -> None:
        self.text = text
        self.likely = [at for at, form in enumerate(forms) if form.likely]
        # Where a word begins and ends as it is written, article and ending included.
        self._starts = starts
        self._ends = ends
        self._forms = forms
        self._words: dict[int, BareWord] = {}
        self._german: bool | None = None
        self._titled: list[tuple[int, int]] | None = None

    def __len__(self) -> int:
        return len(self._forms)

    def word(self, at: int) -> BareWord:
        """Return the word at ``at``, 0 to ``len(self) - 1``."""
        word = self._words.get(at)
        if word is None:
            text, lower, skipped, capital, possessive, _, _ = self._forms[at]
            start = self._starts[at] + skipped
            end = start + len(text)
            # What Word(...) does, in a third of its time.
            word = _new(BareWord, (text, lower, start, end, capital, self.opens(at), possessive))
            self._words[at] = word
        return word

    def words(self, low: int, high: int) -> list[BareWord]:
        """Return the words ``low`` to ``high`` (exclusive)."""
        return [self.word(at) for at in range(low, high)]

    def text_of(self, at: int) -> str:
        """Return the word at ``at`` as it is written."""
        return self._forms[at].text

    def lower(self, at: int) -> str:
        """Return the lower-cased word at ``at``; empty outside the text."""
        return self._forms[at].lower if 0 <= at < len(self._forms) else ""

    def capital(self, at: int) -> bool:
        """Return True when the word at ``at`` is capitalised; False outside the text."""
        return 0 <= at < len(self._forms) and self._forms[at].capital

    def gap(self, at: int) -> str:
        """Return the text between the words ``at`` and ``at + 1`` (without a possessive ending)."""
        if not 0 <= at < len(self._forms) - 1:
            return ""
        form, following = self._forms[at], self._forms[at + 1]
        end = self._starts[at] + form.skipped + len(form.text)
        between = self.text[end : self._starts[at + 1] + following.skipped]
        return between.removeprefix("'s")

    def opens(self, at: int) -> bool:
        """Return True when the word at ``at`` begins a sentence, where a capital letter is no
        evidence.
        """
        if at == 0:
            return True
        start = self._starts[at]
        gap = self.text[max(self._ends[at - 1], start - _GAP) : start]
        # Most words follow a blank: the rest is for those that do not.
        if gap == " " or _SENTENCE_END.isdisjoint(gap):
            return False
        before = self._forms[at - 1]
        return not (gap.startswith(".") and _is_abbreviation(before.text, before.lower))

    def in_title(self, at: int) -> bool:
        """Return True when the word is in a heading, a label or a title, where all have
        capitals.
        """
        if self._titled is None:
            self._titled = [*_marked_titles(self.text)]
            if len(self.likely) > _TITLE_WORDS:
                self._titled += _capital_lines(self.text)
        start = self._starts[at]
        return any(low <= start < high for low, high in self._titled)

    @property
    def german(self) -> bool:
        """True when the beginning has more German words than English ones."""
        # Not a cached_property, which takes a lock before Python 3.12.
        if self._german is None:
            balance = sum([form.language for form in self._forms[:_LANGUAGE_WORDS]])
            if not self.text.isascii():
                balance += not _UMLAUTS.isdisjoint(self.text[:_LANGUAGE_CHARACTERS])
            self._german = balance > 0
        return self._german


def _marked_titles(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of headings, of bold and emphasised labels, and of quoted titles."""
    if not _TITLE_MARKS.isdisjoint(text):
        for match in _TITLE.finditer(text):
            yield match.span()


def _capital_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of lines in which every word but the smallest has a capital letter."""
    for line in _LINE.finditer(text):
        words = _LETTERS.findall(line[0])
        capital = sum(word[0].isupper() for word in words)
        small = (word in _SMALL for word in words if not word[0].isupper())
        if capital > _TITLE_WORDS and all(small):
            yield line.span()


_TITLE_MARKS: Final = frozenset("#*_\"“'‘")
_SMALL: Final = (
    *("of", "the", "and", "a", "an", "in", "on", "to"),
    *("for", "with", "at", "from", "by", "or"),
)
_TITLE_PART: Final = (
    r"[A-Z0-9][\w'’&-]{0,30}(?:[ :,]{1,2}(?:[A-Z0-9&][\w'’-]{0,30}|"
    rf"{'|'.join(_SMALL)})){{0,9}}[!?.:,]?"
)
_TITLE = re.compile(
    rf"^ {{0,3}}#{{1,6}} [^\n]{{1,200}}|\*\*{_TITLE_PART}\*\*|[“\"]{_TITLE_PART}[”\"]"
    rf"|(?<!\w)['‘]{_TITLE_PART}['’](?!\w)|(?<![\w*])[*_]{_TITLE_PART}[*_](?![\w*])",
    re.MULTILINE,
)
_LINE = re.compile(r"[^\n]{12,200}")
_LETTERS = re.compile(r"[^\W\d_]+")
_TITLE_WORDS: Final = 3


def read_words(text: str, covered: Sequence[tuple[int, int]]) -> TaggedText:
    """Return the words of ``text`` outside the ``covered`` ranges, which are sorted by start."""
    # What is between words and the words, by turns: one call, where a match for each word is 20.
    parts = (_ASCII_WORDS if text.isascii() else _WORDS).split(text)
    written, offsets = parts[1::2], list(accumulate(map(len, parts)))
    starts, ends = offsets[:-1:2], offsets[1::2]
    if covered or max(map(len, written), default=0) > _MAX_WORD:
        places = list(_outside(starts, ends, covered))
        written = [written[at] for at in places]
        starts, ends = [starts[at] for at in places], [ends[at] for at in places]
    return TaggedText(text, [_forms[word] for word in written], starts, ends)


def _outside(
    starts: Sequence[int], ends: Sequence[int], covered: Sequence[tuple[int, int]]
) -> Iterator[int]:
    """Yield the words outside the ``covered`` ranges that are short enough for a word."""
    ranges = iter(covered)
    low, high = next(ranges, _NOWHERE)
    for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while start >= high:
            low, high = next(ranges, _NOWHERE)
        if end <= low and end - start <= _MAX_WORD:
            yield at


class _Forms(dict[str, WordForm]):
    """A cache of the forms of words: a look-up takes a tenth of the time of making one."""

    def __missing__(self, written: str) -> WordForm:
        if len(self) >= _MOST_FORMS:
            self.clear()
        form = self[written] = _form(written)
        return form


_forms: Final = _Forms()


def _form(written: str) -> WordForm:
    """Return the form of ``written``, at most ``_MAX_WORD`` characters."""
    lists = gazetteer()
    start, end = 0, len(written)
    if "'" in written or "’" in written:
        start, end = _bare(written, start, end)
    text = written[start:end]
    lower = text.lower()
    capital = text[0].isupper() and "_" not in text
    return WordForm(
        text=text,
        lower=lower,
        skipped=start,
        capital=capital,
        possessive=end < len(written),
        likely=capital or "-" in text or lower in lists.lower_given,
        language=(lower in lists.cues["german"]) - (lower in lists.cues["english"]),
    )


def first_word(text: str) -> str:
    """Return the word with which ``text`` begins, with its ending; empty without one."""
    match = _WORD.match(text)
    return match.group() if match else ""


def _bare(written: str, start: int, end: int) -> tuple[int, int]:
    """Return the word without an elided article before it and a possessive ending after it."""
    raw = written.replace("’", "'")
    head, _, tail = raw.partition("'")
    if head.lower() in gazetteer().cues["elision"] and not (head.isupper() and tail[0].islower()):
        # d'Anvers, l'Opéra; but O'Brien keeps its O.
        start += len(head) + 1
    if raw.endswith("'s") and end - start > 2:
        end -= 2
    return start, end


def is_abbreviation(word: BareWord) -> bool:
    """Return True when a full stop after ``word`` belongs to it and ends no sentence."""
    return _is_abbreviation(word.text, word.lower)


def _is_abbreviation(text: str, lower: str) -> bool:
    if len(text) == 1 and text.isupper():
        return True
    return lower in gazetteer().cues["title"] or lower in ("st", "nr", "no", "al", "bzw")
