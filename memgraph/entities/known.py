"""Searching a text for known names, for any number of names."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from ahocorasick_rs import AhoCorasick

from memgraph.entities.gazetteer import gazetteer
from memgraph.entities.names import is_unspaced

_SHORTEST: Final = 3
# A new name makes only the small automaton anew; the large one takes its names in now and then.
_FEW: Final = 256
# Beside one of these a word belongs to an address, a path or a longer word.
_GLUE: Final = frozenset("@#/\\_-")
_ENDS: Final = frozenset(".!?…:\n•*>")
_BLANKS: Final = str.maketrans("\n\r\t’", "   '")


class KnownMatch(NamedTuple):
    """A known name in a text. Offsets are those of the text in NFKC; ``key`` is canonical."""

    start: int
    end: int
    key: str


class KnownNames:
    """Finds names as whole words. Not thread-safe while names are added.

    A name of one word counts only with a capital letter, unless it is written without one or is a
    given name that is no common word. A common word ("Will", "May") does not count at the beginning
    of a sentence.
    """

    def __init__(self) -> None:
        self._lower: dict[str, bool] = {}
        self._large, self._small = _Automaton(), _Automaton()

    def __len__(self) -> int:
        return len(self._lower)

    def clear(self) -> None:
        """Forget all names."""
        self._lower.clear()
        self._large, self._small = _Automaton(), _Automaton()

    def add(self, names: Iterable[tuple[str, str]]) -> None:
        """Add names, each as (key, as written)."""
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
        if len(self._small.keys) > _FEW + len(self._large.keys) // 4:
            self._large, self._small = (
                _Automaton([*self._large.keys, *self._small.keys]),
                _Automaton(),
            )

    def find(self, text: str) -> list[KnownMatch]:
        """Return the names in ``text``, the longest at each place, in order, without overlap."""
        if not self._lower:
            return []
        written = text if text.isascii() else unicodedata.normalize("NFKC", text)
        folded, places = _fold(written)
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
        """Return True when the name is written as a name there."""
        first = text[start]
        if first.lower() == first.upper():
            return True
        if not first.isupper():
            return self._lower[key]
        if " " in key:
            return True
        if _is_part_of_another(text, start, end):
            return False
        return text[start:end] not in gazetteer().ambiguous or not _opens(text, start)


class _Automaton:
    def __init__(self, keys: list[str] | None = None) -> None:
        self.keys = keys or []
        self._search = AhoCorasick(self.keys) if self.keys else None

    def find(self, folded: str) -> list[KnownMatch]:
        if self._search is None:
            return []
        matches = self._search.find_matches_as_indexes(folded, overlapping=True)
        return [KnownMatch(start, end, self.keys[at]) for at, start, end in matches]


def _fold(text: str) -> tuple[str, range | list[int]]:
    """Return the text in the form of keys, and for each of its positions the one in ``text``."""
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
    """Return True when a neighbouring capitalised word makes it part of a longer name."""
    ordinary = gazetteer().ordinary
    after = _word(text[end + 1 : end + 41]) if text[end : end + 1] == " " else ""
    if after[:1].isupper() and after not in ordinary and len(after) > 1:
        return True
    if start < 2 or text[start - 1] != " ":
        return False
    before = text[max(0, start - 41) : start - 1].rpartition(" ")[2]
    opens = _opens(text, start - 1 - len(before))
    capital = before[:1].isupper() and before.isalpha() and len(before) > 1
    return capital and not opens and before not in ordinary


def _word(text: str) -> str:
    return "".join(islice(iter(text.split(" ", 1)[0]), 40)).strip(",.;:!?'\")")


def _opens(text: str, start: int) -> bool:
    """Return True when a sentence begins at ``start``."""
    before = text[max(0, start - 8) : start].rstrip(" \"'“‘(")
    return not before or before[-1] in _ENDS or "\n" in text[max(0, start - 3) : start]
