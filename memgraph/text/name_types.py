"""Determine the type of a run of capitalised words: person, place, organization, project or none.

The evidence is a word list, a word of the name that marks a type, or the surrounding words. A name
without evidence gets at most the confidence ``UNSURE``: it is reported, but not linked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from memgraph.model.enums import EntityType
from memgraph.text.gazetteer import Gazetteer, gazetteer, without_accents
from memgraph.text.tokens import LETTERS

# Japanese letters are excluded: they have their own rules, and end a Latin word.
_LETTER: Final = r"[^\W\u3040-\u30ff\u3400-\u9fff]"
_WORD = re.compile(rf"{_LETTER}+(?:[-'’]{_LETTER}+)*")
_WORDS = re.compile(f"({_WORD.pattern})")
_ASCII_WORDS = re.compile(r"([0-9A-Za-z_]+(?:[-'][0-9A-Za-z_]+)*)")
# After these marks a capital letter is no evidence of a name.
_SENTENCE_END: Final = frozenset('.!?\n…•:*#>|“"')
_UMLAUTS: Final = frozenset("äöüß")
_MAX_WORD: Final = 40
# The maximum size of the cache of word forms.
_MOST_FORMS: Final = 20_000
# The number of characters before a word that are searched for the end of a sentence.
_GAP: Final = 8
_LANGUAGE_WORDS: Final = 40
_LANGUAGE_CHARACTERS: Final = 240
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

    def in_title(self, at: int) -> bool:
        """Return True if the word is in a heading, label or title, which capitalise all words."""
        if self._titled is None:
            self._titled = [*_marked_titles(self.text)]
            if len(self.likely) > _TITLE_WORDS:
                self._titled += _capital_lines(self.text)
        start = self._starts[at]
        return any(low <= start < high for low, high in self._titled)

    @property
    def german(self) -> bool:
        """True if the beginning of the text has more German words than English ones."""
        # Not a cached_property, which acquires a lock before Python 3.12.
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
    """Yield the ranges of lines in which all words except those of ``_SMALL`` are capitalised."""
    for line in _LINE.finditer(text):
        words = LETTERS.findall(line[0])
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
_TITLE_WORDS: Final = 3


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
        language=(lower in lists.cues["german"]) - (lower in lists.cues["english"]),
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

UNSURE: Final = 0.45
_CAMEL = re.compile(r"[A-Z][a-z]+[A-Z]\w*")
_COMMON_ENDING = re.compile(
    r"(?:s|ing|tion|sion|ment|ness|ity|ly|ed|[ae]nce|[ae]ncy|age|ism|ship|hood|ware|cracy|logy)$"
)
_PEOPLE_ENDING = re.compile(r"(?:ese|ian|ish|ean|er-born|-born|-based|-style)s?$")
DETERMINERS: Final = frozenset(
    ("the", "a", "an", "this", "that", "these", "our", "your", "my", "his", "her", "their", "each")
)
_PROJECT_HEADS: Final = ("project", "projekt", "projet", "proyecto", "operation")
_SPEECH: Final = frozenset(("said", "says", "told", "tells", "asked", "asks", "thinks", "wrote"))
_STREETS: Final = ("straße", "strasse", "platz", "gasse", "allee", "gatan", "straat", "gracht")
_OF: Final = frozenset(("of", "for", "de", "für", "du", "del", "di"))
_SHORTEST: Final = 4
_LOOK_BACK: Final = 3


def guess_type(
    sentence: TaggedText, low: int, high: int, lists: Gazetteer, *, title: bool
) -> Guess | None:
    """Return the type and confidence of the words ``low`` to ``high`` (exclusive).

    Return None if they are not a name.

    Args:
        title: True if a form of address precedes the words directly.
    """
    if title or _is_addressed(sentence, low, lists):
        return EntityType.PERSON, 0.95
    words = sentence.words(low, high)
    phrase = sentence.text[words[0].start : words[-1].end]
    if phrase in lists.organizations:
        numbered = sentence.lower(high)[:1].isdigit()
        return None if numbered else (EntityType.ORGANIZATION, 0.9)
    headed = sentence.in_title(low)
    several = high - low > 1
    # In a heading capitals are no evidence, so only word lists count.
    marked = _by_mark(sentence, low, high, lists) if several and not headed else None
    if marked is None and words[-1].lower.endswith(_STREETS):
        marked = (EntityType.LOCATION, 0.8) if len(words[-1].text) > _SHORTEST + 3 else None
    if marked is not None:
        return marked
    has_given_name = is_given(words[0].text, lists)
    if phrase in lists.places and words[0].lower in lists.cues["place_or_word"]:
        return (EntityType.LOCATION, 0.8) if _place_before(sentence, low, lists) else None
    if phrase in lists.places:
        if not has_given_name:
            return EntityType.LOCATION, 0.9
        return (EntityType.PERSON, UNSURE) if headed else _person_or_place(sentence, low, lists)
    if several:
        return _guess_several(
            sentence, low, high, lists, has_given_name=has_given_name, headed=headed
        )
    if has_given_name:
        return _guess_given(sentence, low, lists, headed=headed)
    return None if headed else _guess_unknown(sentence, low, lists)


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
    if words[0].text in lists.organizations:
        # A product of a company, such as "Google Drive".
        return EntityType.ORGANIZATION, UNSURE
    if lowers[-1] in cues["place_word"]:
        # "Frank Ocean" is a person, but "Madison Park" is a place after words like "in".
        person = has_given_name and high - low == 2 and not _place_before(sentence, low, lists)
        if not person or lowers[-1] in cues["street"] or before in DETERMINERS:
            return EntityType.LOCATION, 0.8
    weak = lowers[0] in cues["weak_place_head"] and _place_before(sentence, low, lists)
    if (weak or lowers[0] in cues["place_head"]) and not has_given_name:
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


def _person_or_place(sentence: TaggedText, at: int, lists: Gazetteer) -> Guess:
    if _person_around(sentence, at, lists) or not _place_around(sentence, at, lists):
        return EntityType.PERSON, 0.7
    return EntityType.LOCATION, 0.8


def _guess_several(
    sentence: TaggedText,
    low: int,
    high: int,
    lists: Gazetteer,
    *,
    has_given_name: bool,
    headed: bool,
) -> Guess | None:
    words = sentence.words(low, high)
    surname = words[-1].text in lists.surnames or words[0].text in lists.surnames
    determined = sentence.lower(low - 1) in DETERMINERS and not words[0].first
    if has_given_name and words[0].text not in lists.ambiguous and not determined:
        return EntityType.PERSON, 0.85 if surname or not headed else UNSURE
    if headed or any(word.text.isupper() and len(word.text) > 2 for word in words):
        return None
    if surname and not determined:
        return EntityType.PERSON, 0.75
    if _org_around(sentence, low, lists):
        return EntityType.ORGANIZATION, 0.6
    after = sentence.lower(high)
    if not determined and not sentence.german:
        if _person_before(sentence, low, lists) or (after in _SPEECH and not words[0].first):
            return EntityType.PERSON, 0.6
        if has_given_name and after in lists.cues["person_after"]:
            return EntityType.PERSON, 0.6
    if after in lists.cues["project_after"] and sentence.gap(high - 1) == " ":
        return EntityType.PROJECT, UNSURE
    plain = all(word.text.isalpha() for word in words)
    if determined or sentence.german or not plain or (words[0].first and not has_given_name):
        return None
    return EntityType.PERSON, UNSURE


def _guess_given(sentence: TaggedText, at: int, lists: Gazetteer, *, headed: bool) -> Guess | None:
    word = sentence.word(at)
    if word.text not in lists.ambiguous:
        return EntityType.PERSON, UNSURE if headed else 0.8
    if headed or sentence.lower(at + 1)[:1].isdigit():
        return None
    if _project_around(sentence, at, lists) and not word.first:
        return EntityType.PROJECT, UNSURE
    if word.first or word.text in lists.ordinary:
        # Treat it as a common word, unless it is followed by "said" or preceded by "ask".
        cued = _person_before(sentence, at, lists) or sentence.lower(at + 1) in _SPEECH
    else:
        cued = _person_around(sentence, at, lists)
    if cued:
        return EntityType.PERSON, 0.7
    common = word.first or word.lower in lists.cues["month"] or word.text in lists.ordinary
    return None if common else (EntityType.PERSON, UNSURE)


def _guess_unknown(sentence: TaggedText, at: int, lists: Gazetteer) -> Guess | None:
    word = sentence.word(at)
    lower = word.lower
    short = len(word.text) < _SHORTEST or word.text[:2].isupper()
    if short or _PEOPLE_ENDING.search(lower):
        return None
    if sentence.lower(at + 1) == "et" and sentence.lower(at + 2) == "al":
        return EntityType.PERSON, 0.9
    if word.text in lists.surnames and not word.first and not sentence.german:
        return EntityType.PERSON, 0.65
    if _CAMEL.fullmatch(word.text):
        return EntityType.PROJECT, UNSURE
    head, hyphen, tail = word.text.partition("-")
    if hyphen and (head in lists.ordinary or not tail[:1].isupper() or sentence.german):
        return None
    if sentence.german or "'" in word.text or "’" in word.text:
        return None
    return _by_surroundings(sentence, at, lists)


def looks_common(word: str) -> bool:
    """Return True if ``word`` ends like a common word or a nationality, or is too short."""
    if "-" in word or _CAMEL.fullmatch(word) or word.lower().endswith(_STREETS):
        return False
    lower = word.lower()
    short = len(word) < _SHORTEST or word[:2].isupper()
    return short or bool(_COMMON_ENDING.search(lower) or _PEOPLE_ENDING.search(lower))


def _by_surroundings(sentence: TaggedText, at: int, lists: Gazetteer) -> Guess | None:
    word, before, after = sentence.word(at), sentence.lower(at - 1), sentence.lower(at + 1)
    common = _COMMON_ENDING.search(word.lower) is not None
    if word.first:
        if common:
            return None
        if after in _SPEECH:
            return EntityType.PERSON, 0.5
        subject = word.possessive or after in lists.cues["predicate"] or after == "and"
        around = subject or _project_around(sentence, at, lists)
        return (EntityType.PROJECT, UNSURE) if around else None
    if after in lists.cues["in_house"] and sentence.gap(at) == " " and not common:
        return EntityType.PROJECT, 0.55
    if _project_around(sentence, at, lists):
        return EntityType.PROJECT, UNSURE
    if before in ("called", "named", "name", "is") and _kin_before(sentence, at, lists):
        return EntityType.PERSON, 0.5
    if _org_around(sentence, at, lists):
        return EntityType.ORGANIZATION, 0.6
    if after in _SPEECH or (_person_before(sentence, at, lists) and before not in ("with", "by")):
        return EntityType.PERSON, UNSURE if common else 0.55
    if _place_before(sentence, at, lists):
        recent = {sentence.lower(i) for i in range(at - 1 - _LOOK_BACK, at - 1)}
        if recent & lists.cues["place_verb"]:
            return EntityType.LOCATION, UNSURE if common else 0.6
    return EntityType.PROJECT, UNSURE


def _project_around(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True for ``the Basalt repo``, ``Basalt 2.4``, ``a bug in Basalt``."""
    word = sentence.word(at)
    after = sentence.lower(at + 1) if sentence.gap(at) == " " else ""
    if word.possessive and after not in ("importer", "api", "backlog", "pipeline"):
        return False
    version = _VERSION.match(sentence.text, word.end)
    # After the first word of a sentence, a bare number is rarely a version: "Room 12 is free".
    versioned = version and (version["dotted"] or not word.first)
    if after in lists.cues["project_after"] or versioned:
        return True
    before = sentence.lower(at - 1)
    if before == "in":
        before = sentence.lower(at - 2)
    return before in lists.cues["code_noun_before"] and sentence.gap(at - 1) == " "


_VERSION = re.compile(
    r" (?:(?P<dotted>v\d{1,3}|\d{1,3}(?=\.\d))(?:\.\d{1,4}){0,3}|\d{1,3})(?![\w%:])"
)


def is_given(word: str, lists: Gazetteer) -> bool:
    """Return True if ``word``, or the first part of a double name, is a listed given name."""
    plain = word if word.isascii() else without_accents(word)
    head, _, tail = plain.partition("-")
    return plain in lists.given or (
        tail[:1].isupper() and head in lists.given and head not in lists.ambiguous
    )


def _kin_before(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    recent = {sentence.lower(i) for i in range(max(0, at - 5), at)}
    return bool(recent & lists.cues["person_before"])


def _person_before(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True for ``ask Greta``, ``hi, Greta``, ``my brother Emeka``."""
    before = sentence.lower(at - 1)
    return before in lists.cues["person_before"] and sentence.gap(at - 1) in (" ", ": ", ", ")


def _person_around(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    if _person_before(sentence, at, lists):
        return True
    word = sentence.word(at)
    if word.possessive and sentence.lower(at + 1) in lists.cues["person_before"]:
        return True
    follows = sentence.gap(at) in (" ", ", ")
    return follows and (
        sentence.lower(at + 1) in lists.cues["person_after"] or sentence.lower(at + 1) == "who"
    )


def _place_around(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True if the context of an ambiguous name indicates a place."""
    if not _place_before(sentence, at, lists):
        return False
    before = sentence.lower(at - 1)
    if before not in ("to", "from", "via", "a", "de", "von", "para", "and", "or", "und", "et", "y"):
        return True
    recent = {sentence.lower(i) for i in range(max(0, at - 2 - _LOOK_BACK), at - 1)}
    return bool(recent & lists.cues["place_verb"]) or "off" in recent or "between" in recent


def _place_before(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    before = sentence.lower(at - 1)
    if before in ("and", "or", "und", "et", "y") and at >= 2:
        # In "between Zagreb and Split", the preposition precedes the first of the two.
        before = sentence.lower(at - 3)
    return before in lists.cues["place_before"]


def _org_around(sentence: TaggedText, at: int, lists: Gazetteer) -> bool:
    """Return True for ``works at X``, ``contract with X``, ``Paula from X``."""
    before = sentence.lower(at - 1)
    if before not in lists.cues["org_before"] or sentence.gap(at - 1) != " ":
        return False
    if before in ("customer", "client", "vendor", "supplier", "company", "competitor", "acquired"):
        return True
    recent = [sentence.lower(i) for i in range(max(0, at - 1 - _LOOK_BACK), at - 1)]
    if any(word in lists.cues["org_verb"] for word in recent):
        return True
    if at < 2:
        return False
    introducer = sentence.word(at - 2).text
    is_person = introducer in lists.given or introducer in lists.surnames
    return is_person and before in ("from", "at", "of", "von", "de", "bei", "chez")
