"""Whether a sentence says anything that a text does not.

Every content word of it must stand in one sentence of the text, in its role: a name, a value or a
negation that is not there, or that stands elsewhere, is something new. Shared words alone are not
looked at as a share: one new word in ten may be the very value that changed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from memgraph.policy.sentences import split_sentences

Stem = Callable[[str], str]
"""A word of any case to its stem, without case and diacritical marks."""

# With fewer content words a sentence is covered by too many texts.
MIN_CONTENT = 2
MAX_TERMS = 24
MAX_CLAUSES = 8

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_CLAUSE = re.compile(
    r"\s*;\s+|\s*,\s+(?:(?:and|but|while|whereas|because|so)\s+)?"
    r"|\s+(?:and|but|while|whereas|because)\s+|\s+[–—-]\s+|:\s+",
    re.IGNORECASE,
)
_ELISIONS = frozenset(("d", "ll", "m", "re", "s", "t", "ve"))
_PLACES = (
    "about after against at before behind below between by during for from in into near of off on "
    "onto over since than through till to toward towards under until upon via with within"
)
_PREPOSITIONS = frozenset(_PLACES.split())
_DETERMINERS = "a an the this that these those my your his her its our their"
_FUNCTION = (
    "i you he she it we they me him us them mine yours hers ours theirs myself yourself himself "
    "herself itself ourselves themselves one who whom whose which what as and or so there here "
    "am is are was were be been being has have had having do does did doing get got "
    "also already actually basically currently indeed just really quite still very too well yes "
    "sure recall remember mention mentioned user users please"
)
_EMPTY = _PREPOSITIONS | frozenset(_DETERMINERS.split()) | frozenset(_FUNCTION.split())
# They turn what a sentence says: each must stand on both sides or on neither.
_TURNING_WORDS = (
    "not no never none nobody nothing nowhere neither nor cannot without hardly barely almost "
    "will would shall might could should must can want plan planning intend hope consider think "
    "maybe perhaps possibly probably likely if unless until till used stop quit former formerly "
    "previously longer anymore only except instead rather try refuse decline cancel deny doubt"
)
_NEGATIVE = "not"
# Capitalised in English, and free to stand anywhere.
_CALENDAR_WORDS = (
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday"
)
CALENDAR = frozenset(_CALENDAR_WORDS.split())


@dataclass(frozen=True, slots=True)
class Wording:
    """What a sentence is made of.

    Attributes:
        order: stems of its content words, in order.
        terms: the same words as written, each once, for a look-up.
        numbers: as written: ``3.5``, ``2026-01-05``.
        turning: stems of negations, modal words and the like.
        placed: a preposition and the content word after it.
        names: stems of capitalised words that do not begin the sentence.
        opening: the stem of its first word, if that is a capitalised content word.
    """

    order: tuple[str, ...]
    terms: tuple[str, ...]
    numbers: frozenset[str]
    turning: frozenset[str]
    placed: frozenset[tuple[str, str]]
    names: frozenset[str]
    opening: str | None


class Words:
    """Takes sentences apart with a stemmer."""

    def __init__(self, stem: Stem) -> None:
        self._stem = stem
        self._turning = frozenset(stem(word) for word in _TURNING_WORDS.split())
        # The same sentences are compared with one another again and again.
        self._kept = lru_cache(maxsize=512)(self._taken_apart)

    def wording(self, text: str) -> Wording:
        """One sentence or clause."""
        return self._kept(text)

    def _taken_apart(self, text: str) -> Wording:
        plain = unicodedata.normalize("NFKC", text)
        order: list[str] = []
        terms: dict[str, None] = {}
        turning: set[str] = set()
        placed: set[tuple[str, str]] = set()
        names: set[str] = set()
        before, opening = "", None
        for place, word in enumerate(_parts(plain)):
            folded = word.casefold()
            stem = self._stem(folded)
            if stem in self._turning:
                turning.add(stem)
            elif folded in _EMPTY:
                if folded in _PREPOSITIONS:
                    before = folded
                continue
            else:
                order.append(stem)
                terms.setdefault(folded)
                if before:
                    placed.add((before, stem))
                if word[0].isupper() and not plain.isupper() and folded not in CALENDAR:
                    if place:
                        names.add(stem)
                    else:
                        opening = stem
            before = ""
        return Wording(
            tuple(order),
            tuple(terms),
            frozenset(_NUMBER.findall(plain)),
            frozenset(turning),
            frozenset(placed),
            frozenset(names),
            opening,
        )

    def clauses(self, text: str) -> list[str]:
        """The parts of a sentence, each with content words enough to be judged by itself."""
        parts = [part for part in _CLAUSE.split(text, maxsplit=MAX_CLAUSES - 1) if part.strip()]
        found: list[str] = []
        short = ""
        for part in parts:
            whole = f"{short} {part}".strip()
            enough = len(set(self.wording(whole).order)) >= MIN_CONTENT
            short = "" if enough else whole
            if enough:
                found.append(whole)
        if short and found:
            found[-1] = f"{found[-1]} {short}"
        return found

    def says_nothing_new(self, said: str, text: str) -> bool:
        """Whether a clause is covered by one sentence, or a clause of one, of a text."""
        wording = self.wording(said)
        # Most sentences lack one of its words: they need not be taken apart.
        begins = [_begin(stem) for stem in set(wording.order) if stem.isascii()]
        return any(
            covered(wording, self.wording(part))
            for sentence, lowered in _sentences(text)
            if not lowered.isascii() or all(begin in lowered for begin in begins)
            for part in self._parts_of(sentence)
        )

    def _parts_of(self, sentence: str) -> Iterator[str]:
        yield sentence
        parts = self.clauses(sentence)
        if len(parts) > 1:
            yield from parts


@lru_cache(maxsize=128)
def _sentences(text: str) -> tuple[tuple[str, str], ...]:
    """The sentences of a text, once each, as they are and in lower case."""
    said = dict.fromkeys(each for line in text.splitlines() for each in split_sentences(line))
    return tuple((each, each.casefold()) for each in said)


def _begin(stem: str) -> str:
    """How every word with a stem begins: cutting it changes its last two letters at most."""
    return stem[: max(len(stem) - 2, 1)]


def covered(said: Wording, text: Wording) -> bool:
    """Whether ``said`` holds nothing that ``text`` does not; both are single statements."""
    content = set(said.order)
    if len(content) < MIN_CONTENT or not content <= set(text.order):
        return False
    if not said.numbers <= text.numbers or said.turning != text.turning:
        return False
    return _same_places(said, text) and _same_order(said, text) and _same_subject(content, text)


def _same_places(said: Wording, text: Wording) -> bool:
    """A word that follows a preposition follows it there too: from Paris is not to Paris."""
    theirs: dict[str, set[str]] = {}
    for preposition, word in text.placed:
        theirs.setdefault(word, set()).add(preposition)
    return all(
        word not in theirs or preposition in theirs[word] for preposition, word in said.placed
    )


def _same_order(said: Wording, text: Wording) -> bool:
    """Names keep their order: who does something to whom."""
    names = (said.names | text.names) & set(said.order)
    return _of(names, said.order) == _of(names, text.order)


def _of(names: frozenset[str] | set[str], order: tuple[str, ...]) -> list[str]:
    return [word for word in dict.fromkeys(order) if word in names]


def _same_subject(content: set[str], text: Wording) -> bool:
    """What the text speaks of first is named too, or it is a name that a pronoun stands for."""
    for word in text.order:
        if word in content:
            return True
        if word not in text.names and word != text.opening:
            return False
    return False


def _parts(text: str) -> Iterator[str]:
    """Words; of a contraction its first part, and a negation as a word of its own."""
    for match in _WORD.finditer(text):
        head, *rest = re.split("['’]", match.group())
        if rest and rest[-1].casefold() == "t" and head[-1:] in "nN":
            # "can't" is cut after its n by the apostrophe.
            yield head[:-1] if len(head) > 1 else head
            yield _NEGATIVE
            continue
        yield head
        yield from (each for each in rest if each.casefold() not in _ELISIONS)
