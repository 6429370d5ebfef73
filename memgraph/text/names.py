"""Find names in texts, and normalise them for comparison."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Final, NamedTuple

from ahocorasick_rs import AhoCorasick

from memgraph.model.enums import NAMED_TYPES, EntityType
from memgraph.text.gazetteer import Gazetteer, gazetteer
from memgraph.text.lexicon import STOP_WORDS
from memgraph.text.name_types import (
    DETERMINERS,
    BareWord,
    TaggedText,
    first_word,
    guess_type,
    is_abbreviation,
    is_given,
    read_words,
)


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """An entity found in a text.

    Attributes:
        text: the slice ``[start:end]`` of the searched text.
        start, end: offsets in Unicode code points; ``end`` is exclusive.
        confidence: the confidence of the rule that matched, 0..1; comparable between rules.
        provider: the provider that found the entity: ``regex``, ``spacy`` or ``llm``.
    """

    text: str
    start: int
    end: int
    type: EntityType
    confidence: float
    provider: str = "regex"


def merge(spans: Iterable[EntitySpan]) -> list[EntitySpan]:
    """Return the spans without overlaps, in order of their start.

    Of overlapping spans, the one of the better provider is kept, then the more confident, the
    longer, the earlier. Spans recognised by their form (such as addresses and dates) always win.
    """
    candidates = list(spans)
    if len(candidates) < 2:
        return candidates
    ranked = sorted(
        candidates, key=lambda s: (-_rank(s), -s.confidence, s.start - s.end, s.start, s.type.value)
    )
    chosen: list[EntitySpan] = []
    covered: set[int] = set()
    for span in ranked:
        # The rules bound the length of spans, so marking positions keeps this linear.
        positions = range(span.start, span.end)
        if covered.isdisjoint(positions):
            covered.update(positions)
            chosen.append(span)
    return sorted(chosen, key=lambda s: s.start)


def _rank(span: EntitySpan) -> int:
    if span.type not in NAMED_TYPES:
        return len(_RANKS)
    # spaCy labels many ordinary things as products or works of art, so its OTHER ranks lowest.
    return (
        0 if span.provider == "spacy" and span.type is EntityType.OTHER else _RANKS[span.provider]
    )


_RANKS: Final = {"regex": 0, "spacy": 1, "llm": 2}


_JOINT = re.compile(r"[ \u00a0]|\. | & ")
_LONGEST: Final = 6
_LONGEST_PHRASE: Final = 4


def find_names(text: str, covered: Sequence[tuple[int, int]]) -> Iterator[EntitySpan]:
    """Yield names in ``text`` outside the ``covered`` ranges, which are sorted by start."""
    lists = gazetteer()
    sentence = read_words(text, covered)
    done = 0
    for at in sentence.likely:
        # "GOV.UK" and "io.BytesIO" are one word each.
        if at < done or sentence.gap(at - 1) == ".":
            continue
        if not sentence.capital(at):
            yield from _lower_cased(sentence, at, lists)
            continue
        length = _known_phrase(sentence, at, lists)
        if length:
            yield _span(sentence, at, at + length, EntityType.LOCATION, 0.9)
        else:
            length = _run_length(sentence, at, lists)
            yield from _name(sentence, at, at + length, lists)
        done = at + length


def _known_phrase(sentence: TaggedText, at: int, lists: Gazetteer) -> int:
    """Return the length in words of the place of several words at ``at``; 0 if there is none."""
    head = sentence.word(at)
    if head.text not in _phrase_heads():
        return 0
    for length in range(min(_LONGEST_PHRASE, len(sentence) - at), 1, -1):
        last = sentence.word(at + length - 1)
        if sentence.text[head.start : last.end] in lists.places:
            longer = sentence.gap(at + length - 1) == " " and sentence.capital(at + length)
            # "New York Office Supplies GmbH" is typed as a whole run, not as a listed phrase.
            if not longer or _is_ordinary(sentence.word(at + length), lists) or last.possessive:
                return length
    return 0


@cache
def _phrase_heads() -> frozenset[str]:
    """Return the first words of the listed places, tokenised like a text."""
    heads = {first_word(phrase) for phrase in gazetteer().places if " " in phrase}
    return frozenset(heads | {head.removesuffix("'s") for head in heads})


def _run_length(sentence: TaggedText, at: int, lists: Gazetteer) -> int:
    """Return the length of the run of capitalised words and particles that begins at ``at``."""
    cues = lists.cues
    length = 1
    while length < _LONGEST and at + length < len(sentence):
        last = sentence.word(at + length - 1)
        following = sentence.word(at + length)
        # "St Anne's Hall", but "Anne's Bible".
        owns = last.possessive and following.lower not in cues["place_word"]
        if owns or not _joined(sentence, at + length - 1):
            break
        if following.capital and not following.first:
            length += 1
            continue
        if (
            following.lower not in cues["person_particle"]
            and following.lower not in cues["phrase_particle"]
        ):
            break
        head = last.lower in cues["org_head"] or last.lower in cues["place_head"]
        person = not head and any(
            is_given(word.text, lists) for word in sentence.words(at, at + length)
        )
        allowed = cues["person_particle"] if person else cues["phrase_particle"]
        if not person and not head:
            break
        ahead = at + length
        while ahead - at - length < 2 and sentence.lower(ahead) in allowed:
            ahead += 1
        skipped = ahead - at - length
        plain = all(sentence.gap(i) == " " for i in range(at + length - 1, ahead))
        if not skipped or not sentence.capital(ahead) or not plain:
            break
        length += skipped + 1
    return length


def _joined(sentence: TaggedText, at: int) -> bool:
    gap = sentence.gap(at)
    if gap == " ":
        return True
    if gap == ". ":
        return is_abbreviation(sentence.word(at)) and sentence.lower(at) != "al"
    return bool(_JOINT.fullmatch(gap))


def _name(sentence: TaggedText, begin: int, end: int, lists: Gazetteer) -> Iterator[EntitySpan]:
    """Yield the name in a run of words, after removing other words from its ends."""
    title = False
    while begin < end:
        word = sentence.word(begin)
        if word.lower in lists.cues["title"] and end - begin > 1:
            title = True
        elif not _drops_first(sentence, begin, end, lists):
            break
        begin += 1
    while end > begin and _is_ordinary(sentence.word(end - 1), lists):
        end -= 1
    if begin < end:
        guess = guess_type(sentence, begin, end, lists, title=title)
        if guess is not None:
            yield _span(sentence, begin, end, *guess)


def _drops_first(sentence: TaggedText, begin: int, end: int, lists: Gazetteer) -> bool:
    """Return True if the first word of a run does not belong to the name."""
    word, several = sentence.word(begin), end - begin > 1
    if several and word.first and not is_given(word.text, lists):
        # "Ask Greta", "The Hollin Bank"
        spoken = word.lower in STOP_WORDS or word.lower in lists.cues["person_before"]
        return spoken or is_given(sentence.text_of(begin + 1), lists)
    if several and word.lower in DETERMINERS:
        return True
    return _is_ordinary(word, lists) and not (several and word.text in lists.given)


def _is_ordinary(word: BareWord, lists: Gazetteer) -> bool:
    """Return True for a capitalised word that names nothing: a stop word, a month, a weekday."""
    if word.lower in STOP_WORDS or word.lower in lists.cues["weekday"]:
        return True
    return word.lower in lists.cues["month"] and word.text not in lists.given


def _lower_cased(sentence: TaggedText, at: int, lists: Gazetteer) -> Iterator[EntitySpan]:
    """Yield lower-case names, as in ``ask priya``, ``TODO(jonas)`` or ``the billing-gateway``."""
    word, before = sentence.word(at), sentence.lower(at - 1)
    first, hyphen, last = word.lower.rpartition("-")
    if hyphen:
        if last in lists.cues["component"] and "-" not in first and not first[0].isdigit():
            yield _span(sentence, at, at + 1, EntityType.PROJECT, 0.6)
        return
    opening = sentence.text[max(0, word.start - 1) : word.start]
    marked = before in ("todo", "fixme", "xxx") and opening == "("
    addressed = before == "with" or before in lists.cues["person_before"]
    if marked or word.possessive or (addressed and sentence.gap(at - 1) in (" ", ": ")):
        yield _span(sentence, at, at + 1, EntityType.PERSON, 0.7)


def _span(
    sentence: TaggedText, begin: int, end: int, kind: EntityType, confidence: float
) -> EntitySpan:
    start, stop = sentence.word(begin).start, sentence.word(end - 1).end
    return EntitySpan(sentence.text[start:stop], start, stop, kind, confidence)


_POSSESSIVES: Final = ("'s", "s'")
# The first code point of the East Asian scripts, which do not separate words by spaces.
_UNPARTED: Final = "\u2e80"
_EDGE: Final = ' .,;:!?"“”„«»()[]{}'


def canonical(name: str) -> str:
    """Return a name in NFKC, case-folded, without outer punctuation or a possessive ``'s``.

    White space is collapsed. The result may be empty. ``@`` and ``#`` are kept, since a handle and
    a word are different names. Idempotent.
    """
    text = name
    while True:
        folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
        folded = " ".join(folded.split()).strip(_EDGE)
        if folded.endswith(_POSSESSIVES[0]):
            folded = folded[:-2]
        elif folded.endswith(_POSSESSIVES[1]):
            folded = folded[:-1]
        # Repeat until nothing changes: stripping may expose more to fold, and vice versa ("’S.").
        if folded == text:
            return folded
        text = folded


def is_unspaced(letter: str) -> bool:
    """Return True for a letter of a script without spaces between words."""
    return letter >= _UNPARTED


def as_a_word(name: str) -> str:
    """Return a pattern that matches a name as a whole word, if its script separates words."""
    before = "" if is_unspaced(name[0]) else r"(?<!\w)"
    after = "" if is_unspaced(name[-1]) else r"(?!\w)"
    return f"{before}{re.escape(name)}{after}"


_SHORTEST: Final = 3
_PIECES: Final = re.compile(r"\S+")
_MOST_WORDS: Final = 4
_PIECES_READ: Final = 128
"""A longer question is searched only so far for names that it writes like other words."""
# New names rebuild only the small automaton, which is merged into the large one occasionally.
_SMALL_SIZE: Final = 256
# Next to one of these characters, a word is part of an address, a path or a longer word.
_GLUE: Final = frozenset("@#/\\_-")
_ENDS: Final = frozenset(".!?…:\n•*>")
_BLANKS: Final = str.maketrans("\n\r\t’", "   '")


class KnownMatch(NamedTuple):
    """A known name in a text. Offsets refer to the text in NFKC; ``key`` is the canonical name."""

    start: int
    end: int
    key: str


class KnownNames:
    """Finds known names as whole words. Not thread-safe while names are added.

    A one-word name must be capitalised, unless it was added in lower case or is an unambiguous
    given name. A common word ("Will", "May") does not match at the start of a sentence.
    """

    def __init__(self) -> None:
        self._lower: dict[str, bool] = {}
        self._large, self._small = _Automaton(), _Automaton()

    def __len__(self) -> int:
        return len(self._lower)

    def clear(self) -> None:
        """Remove all names."""
        self._lower.clear()
        self._large, self._small = _Automaton(), _Automaton()

    def add(self, names: Iterable[tuple[str, str]]) -> None:
        """Add names, each as a pair of its canonical key and its written form."""
        lists = gazetteer()
        fresh = []
        for key, written in names:
            if len(key) < _SHORTEST and not is_unspaced(key[:1]):
                continue
            lower = " " in key or written == key or key in lists.lower_given
            if key not in self._lower:
                fresh.append(key)
            self._lower[key] = lower or self._lower.get(key, False)
        if not fresh:
            return
        self._small = _Automaton([*self._small.keys, *fresh])
        if len(self._small.keys) > _SMALL_SIZE + len(self._large.keys) // 4:
            self._large, self._small = (
                _Automaton([*self._large.keys, *self._small.keys]),
                _Automaton(),
            )

    def find(self, text: str) -> list[KnownMatch]:
        """Return the names in ``text`` in order, the longest at each position, without overlap."""
        if not self._lower:
            return []
        written = text if text.isascii() else unicodedata.normalize("NFKC", text)
        folded, places = _fold_with_places(written)
        matches = [*self._large.find(folded), *self._small.find(folded)]
        matches.sort(key=lambda match: (match.start, -match.end))
        chosen: list[KnownMatch] = []
        end = 0
        for match in matches:
            if match.start < end:
                continue
            start, stop = places[match.start], places[match.end]
            if _is_whole(written, start, stop) and self._counts(written, start, stop, match.key):
                chosen.append(KnownMatch(start, stop, match.key))
                end = match.end
        return chosen

    def _counts(self, text: str, start: int, end: int, key: str) -> bool:
        """Return True if a match is capitalised like a name and not a part of a longer one."""
        first = text[start]
        if first.lower() == first.upper():
            return True
        if not first.isupper():
            return self._lower[key]
        return " " in key or _is_name_alone(text, start, end)


def possible_names(text: str) -> set[str]:
    """Return the keys of the names of up to ``_MOST_WORDS`` words that may stand in a text.

    A name of one word must be written as ``KnownNames`` finds it.
    """
    given, keys, words = gazetteer().lower_given, set[str](), []
    for piece in islice(_PIECES.finditer(text), _PIECES_READ):
        word = piece[0].strip(_EDGE)
        start = piece.end() - len(piece[0].lstrip(_EDGE))
        if (word[:1].isupper() and _is_name_alone(text, start, start + len(word))) or (
            word[:1] and word[0].lower() == word[0].upper()
        ):
            keys.add(canonical(word))
        words.append(unicodedata.normalize("NFKC", piece[0]).casefold().replace("’", "'"))
    for length in range(1, _MOST_WORDS + 1):
        runs = zip(*(words[at:] for at in range(length)), strict=False)
        found = {" ".join(run).strip(_EDGE) for run in runs}
        found = {canonical(key) if key.endswith(_POSSESSIVES) else key for key in found}
        keys |= found if length > 1 else found & given
    return {key for key in keys if len(key) >= _SHORTEST or is_unspaced(key[:1])}


class _Automaton:
    def __init__(self, keys: list[str] | None = None) -> None:
        self.keys = keys or []
        self._search = AhoCorasick(self.keys) if self.keys else None

    def find(self, folded: str) -> list[KnownMatch]:
        if self._search is None:
            return []
        matches = self._search.find_matches_as_indexes(folded, overlapping=True)
        return [KnownMatch(start, end, self.keys[at]) for at, start, end in matches]


def _fold_with_places(text: str) -> tuple[str, range | list[int]]:
    """Return the case-folded text, and for each of its positions the position in ``text``."""
    folded = text.translate(_BLANKS).casefold()
    if len(folded) == len(text):
        return folded, range(len(text) + 1)
    places: list[int] = []
    for at, letter in enumerate(text):
        places.extend([at] * len(letter.casefold()))
    return folded, [*places, len(text)]


def _is_whole(text: str, start: int, end: int) -> bool:
    if not is_unspaced(text[start]) and start:
        before = text[start - 1]
        if before.isalnum() or before in _GLUE:
            return False
    if not is_unspaced(text[end - 1]) and end < len(text):
        after, next_one = text[end], text[end + 1 : end + 2]
        if after.isalnum() or ((after in _GLUE or after == ".") and next_one.isalnum()):
            return False
    return True


def _is_part_of_another(text: str, start: int, end: int) -> bool:
    """Return True if a neighbouring capitalised word makes the match part of a longer name."""
    after = _first_word(text[end + 1 : end + 41]) if text[end : end + 1] == " " else ""
    if after[:1].isupper() and after.lower() not in STOP_WORDS and len(after) > 1:
        return True
    if start < 2 or text[start - 1] != " ":
        return False
    before = text[max(0, start - 41) : start - 1].rpartition(" ")[2]
    opens = _opens(text, start - 1 - len(before))
    capital = before[:1].isupper() and before.isalpha() and len(before) > 1
    return capital and not opens and before.lower() not in STOP_WORDS


def _is_name_alone(text: str, start: int, end: int) -> bool:
    """Return True if a capitalised word is no part of a longer name and does not open a sentence.

    At the start of a sentence only a word that is always a name counts.
    """
    if _is_part_of_another(text, start, end):
        return False
    return text[start:end] not in gazetteer().ambiguous or not _opens(text, start)


def _first_word(text: str) -> str:
    return "".join(islice(iter(text.split(" ", 1)[0]), 40)).strip(",.;:!?'\")")


def _opens(text: str, start: int) -> bool:
    """Return True if a sentence begins at ``start``."""
    before = text[max(0, start - 8) : start].rstrip(" \"'“‘(")
    return not before or before[-1] in _ENDS or "\n" in text[max(0, start - 3) : start]
