"""The words of a text, and the type of a run of capitalised words: person, place, organization,
project or none.

The evidence is a list of given names or places, a word of the name that marks a type, or a word
before it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from memgraph.model.enums import EntityType
from memgraph.text.gazetteer import Gazetteer, gazetteer, without_accents

# Japanese letters are excluded: they have their own rules, and end a Latin word.
_LETTER: Final = r"[^\W\u3040-\u30ff\u3400-\u9fff]"
_WORD = re.compile(rf"{_LETTER}+(?:[-'’]{_LETTER}+)*")
_WORDS = re.compile(f"({_WORD.pattern})")
_ASCII_WORDS = re.compile(r"([0-9A-Za-z_]+(?:[-'][0-9A-Za-z_]+)*)")
# After these marks a capital letter is no evidence of a name.
_SENTENCE_END: Final = frozenset('.!?\n…•:*#>|“"')
_MAX_WORD: Final = 40
# The maximum size of the cache of word forms.
_MOST_FORMS: Final = 20_000
# The number of characters before a word that are searched for the end of a sentence.
_GAP: Final = 8
_NOWHERE: Final = (sys.maxsize, sys.maxsize)
_new = tuple.__new__


class BareWord(NamedTuple):
    """A word without its elided article and possessive ending.

    Attributes:
        first: True at the beginning of a sentence, where a capital letter is no evidence.
        possessive: True if the word was followed by ``'s``.
    """

    text: str
    lower: str
    start: int
    end: int
    capital: bool
    first: bool
    possessive: bool


class WordForm(NamedTuple):
    """The properties of a written word, independent of its position.

    Attributes:
        skipped: the number of characters of an elided article before the word.
        likely: True if the word may be or begin a name: it is capitalised or hyphenated, or a given
            name in lower case.
    """

    text: str
    lower: str
    skipped: int
    capital: bool
    possessive: bool
    likely: bool


class TaggedText:
    """The words of a text, with properties of the text as a whole.

    Words are created on demand, since the rules read only a few words around each likely name.

    Attributes:
        likely: the positions of words that may be or begin a name, ascending.
    """

    def __init__(
        self, text: str, forms: Sequence[WordForm], starts: Sequence[int], ends: Sequence[int]
    ) -> None:
        self.text = text
        self.likely = [at for at, form in enumerate(forms) if form.likely]
        # The start and end of each word as written, including its article and ending.
        self._starts = starts
        self._ends = ends
        self._forms = forms
        self._words: dict[int, BareWord] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def word(self, at: int) -> BareWord:
        """Return the word at ``at``, 0 to ``len(self) - 1``."""
        word = self._words.get(at)
        if word is None:
            text, lower, skipped, capital, possessive, _ = self._forms[at]
            start = self._starts[at] + skipped
            end = start + len(text)
            # Like BareWord(...), in a third of the time.
            word = _new(BareWord, (text, lower, start, end, capital, self.opens(at), possessive))
            self._words[at] = word
        return word

    def words(self, low: int, high: int) -> list[BareWord]:
        """Return the words ``low`` to ``high`` (exclusive)."""
        return [self.word(at) for at in range(low, high)]

    def text_of(self, at: int) -> str:
        """Return the text of the word at ``at``, without its article and ending."""
        return self._forms[at].text

    def lower(self, at: int) -> str:
        """Return the lower-cased word at ``at``; empty outside the text."""
        return self._forms[at].lower if 0 <= at < len(self._forms) else ""

    def capital(self, at: int) -> bool:
        """Return True if the word at ``at`` is capitalised; False outside the text."""
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
        """Return True if the word at ``at`` begins a sentence, where a capital is no evidence."""
        if at == 0:
            return True
        start = self._starts[at]
        gap = self.text[max(self._ends[at - 1], start - _GAP) : start]
        # The fast path: most words follow a single blank.
        if gap == " " or _SENTENCE_END.isdisjoint(gap):
            return False
        before = self._forms[at - 1]
        return not (gap.startswith(".") and _is_abbreviation(before.text, before.lower))


def read_words(text: str, covered: Sequence[tuple[int, int]]) -> TaggedText:
    """Return the words of ``text`` outside the ``covered`` ranges, which are sorted by start."""
    # Gaps and words alternate. One call of split() is much faster than a match for each word.
    parts = (_ASCII_WORDS if text.isascii() else _WORDS).split(text)
    written, offsets = parts[1::2], list(accumulate(map(len, parts)))
    starts, ends = offsets[:-1:2], offsets[1::2]
    if covered or max(map(len, written), default=0) > _MAX_WORD:
        places = list(_uncovered(starts, ends, covered))
        written = [written[at] for at in places]
        starts, ends = [starts[at] for at in places], [ends[at] for at in places]
    return TaggedText(text, [_forms[word] for word in written], starts, ends)


def _uncovered(
    starts: Sequence[int], ends: Sequence[int], covered: Sequence[tuple[int, int]]
) -> Iterator[int]:
    """Yield the indexes of the words outside the ``covered`` ranges that are not too long."""
    ranges = iter(covered)
    low, high = next(ranges, _NOWHERE)
    for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while start >= high:
            low, high = next(ranges, _NOWHERE)
        if end <= low and end - start <= _MAX_WORD:
            yield at


class _Forms(dict[str, WordForm]):
    """A cache of word forms: a look-up takes a tenth of the time of building a form."""

    def __missing__(self, written: str) -> WordForm:
        if len(self) >= _MOST_FORMS:
            self.clear()
        form = self[written] = _form(written)
        return form


_forms: Final = _Forms()


def _form(written: str) -> WordForm:
    """Return the form of a written word of at most ``_MAX_WORD`` characters."""
    lists = gazetteer()
    start, end = 0, len(written)
    if "'" in written or "’" in written:
        start, end = _bare_range(written, start, end)
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
    )


def first_word(text: str) -> str:
    """Return the word at the start of ``text``, including its ending; empty if there is none."""
    match = _WORD.match(text)
    return match.group() if match else ""


def _bare_range(written: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of a word without its elided article and possessive ending."""
    raw = written.replace("’", "'")
    head, _, tail = raw.partition("'")
    if head.lower() in gazetteer().cues["elision"] and not (head.isupper() and tail[0].islower()):
        # This strips d'Anvers and l'Opéra, but not O'Brien.
        start += len(head) + 1
    if raw.endswith("'s") and end - start > 2:
        end -= 2
    return start, end


def is_abbreviation(word: BareWord) -> bool:
    """Return True if a full stop after ``word`` marks an abbreviation, not a sentence's end."""
    return _is_abbreviation(word.text, word.lower)


def _is_abbreviation(text: str, lower: str) -> bool:
    if len(text) == 1 and text.isupper():
        return True
    return lower in gazetteer().cues["title"] or lower in ("st", "nr", "no", "al", "bzw")


Guess = tuple[EntityType, float]

DETERMINERS: Final = frozenset(
    ("the", "a", "an", "this", "that", "these", "our", "your", "my", "his", "her", "their", "each")
)
_PROJECT_HEADS: Final = ("project", "projekt", "projet", "proyecto", "operation")
_OF: Final = frozenset(("of", "for", "de", "für", "du", "del", "di"))


def guess_type(
    sentence: TaggedText, low: int, high: int, lists: Gazetteer, *, title: bool
) -> Guess | None:
    """Return the type and confidence of the words ``low`` to ``high`` (exclusive).

    Return None if nothing indicates that they are a name.

    Args:
        title: True if a form of address precedes the words directly.
    """
    if title or _is_addressed(sentence, low, lists):
        return EntityType.PERSON, 0.95
    words = sentence.words(low, high)
    marked = _by_mark(sentence, low, high, lists) if len(words) > 1 else None
    if marked is not None:
        return marked
    has_given_name = is_given(words[0].text, lists)
    before = sentence.lower(low - 1)
    if sentence.text[words[0].start : words[-1].end] in lists.places:
        also_word = words[0].lower in lists.cues["place_or_word"]
        is_place = not (has_given_name or also_word) or _place_before(sentence, low, lists)
        if also_word:
            return (EntityType.LOCATION, 0.8) if is_place else None
        return (EntityType.LOCATION, 0.9) if is_place else (EntityType.PERSON, 0.7)
    addressed = before in lists.cues["person_before"] and sentence.gap(low - 1) in (" ", ": ", ", ")
    if has_given_name and words[0].text not in lists.ambiguous:
        return EntityType.PERSON, 0.85
    if has_given_name and (addressed or len(words) > 1):
        return EntityType.PERSON, 0.7
    if sentence.lower(high) == "et" and sentence.lower(high + 1) == "al":
        return EntityType.PERSON, 0.9
    name = words[0].text
    # "ask Idun", but not "ask I'm" or "with Puppet".
    is_named = addressed and before not in ("with", "by") and name.isalpha() and name[1:].islower()
    return (EntityType.PERSON, 0.55) if is_named else None


def _is_addressed(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True if a form of address precedes the word: ``Dr. Ada``."""
    return sentence.lower(at - 1) in lists.cues["title"] and sentence.gap(at - 1) in (" ", ". ")


def _by_mark(sentence: TaggedText, low: int, high: int, lists: Gazetteer) -> Guess | None:
    """Return the type that a word of the name itself indicates."""
    cues, words = lists.cues, sentence.words(low, high)
    lowers, before = [word.lower for word in words], sentence.lower(low - 1)
    has_given_name = is_given(words[0].text, lists)
    if lowers[0] in _PROJECT_HEADS:
        return EntityType.PROJECT, 0.9
    if lowers[-1] in cues["place_word"]:
        # "Frank Ocean" is a person, but "Madison Park" is a place after words like "in".
        is_place = before in DETERMINERS or _place_before(sentence, low, lists)
        if is_place or not has_given_name or lowers[-1] in cues["street"]:
            return EntityType.LOCATION, 0.8
    if lowers[0] in cues["place_head"] and not has_given_name:
        return EntityType.LOCATION, 0.8
    # "Art Institute of Chicago"
    ends = [at for at in range(1, len(lowers)) if (*lowers, "of")[at + 1] in _OF]
    if any(lowers[at] in cues["org_word"] for at in ends) and before not in ("a", "an"):
        return EntityType.ORGANIZATION, 0.8
    if lowers[0] in cues["org_head"]:
        return EntityType.ORGANIZATION, 0.8
    if "&" in sentence.text[words[0].start : words[-1].end]:
        return EntityType.ORGANIZATION, 0.7
    return None


def _place_before(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    before = sentence.lower(at - 1)
    if before in ("and", "or", "und", "et", "y"):
        # In "between Zagreb and Split", the preposition precedes the first of the two.
        before = sentence.lower(at - 3)
    return before in lists.cues["place_before"]


def is_given(word: str, lists: Gazetteer) -> bool:
    """Return True if ``word``, or the first part of a double name, is a listed given name."""
    plain = word if word.isascii() else without_accents(word)
    head, _, tail = plain.partition("-")
    return plain in lists.given or (
        tail[:1].isupper() and head in lists.given and head not in lists.ambiguous
    )
