"""The words of recall candidates; parsed texts are cached in the process."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from memgraph.text.stem import fold, stem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_KEPT = 8_192
"""The size of each of the two generations of cached texts."""
_KEPT_CHARS = 2_000
MOST_STEMS = 50_000
# Turns ASCII letters to lower case, and other ASCII bytes except digits to blanks. The bytes of
# other characters stay, because `_Plain` has folded them.
_BLANKED = bytes(
    code if code >= 128 else ord(chr(code).lower() if chr(code).isalnum() else " ")
    for code in range(256)
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class _Text:
    """A parsed text.

    Attributes:
        words: the folded words, each between blanks, in UTF-8.
        stems: the hashes of their stems, 8 bytes each.
        length: the number of words.
        asks: True if it ends with a question mark.
        holds: the results of ``look_for``, by words or by number of digits.
    """

    words: bytes
    stems: bytes
    length: int
    asks: bool
    holds: dict[str | int, bool] = field(default_factory=dict)

    @classmethod
    def read(cls, content: str) -> _Text:
        plain = content if content.isascii() else _NOT_ASCII.sub(_plain, content)
        words = plain.encode("utf-8", "surrogatepass").translate(_BLANKED).split()
        return cls(
            _spaced(words),
            array("q", map(_STEMS.__getitem__, words)).tobytes(),
            len(words),
            content.rstrip()[-1:] == "?",
        )

    def look_for(self, words_or_digits: str | int) -> None:
        """Record in ``holds`` whether it contains one of the words, or a run of so many digits."""
        if isinstance(words_or_digits, str):
            contained = any(
                _spaced([word]) in self.words for word in words_or_digits.encode().split()
            )
        else:
            contained = re.search(rb"[0-9]{%d}" % words_or_digits, self.words) is not None
        self.holds[words_or_digits] = contained


class _Stems(dict[bytes, int]):
    """A cache of the hashes of stems, by word in UTF-8.

    Comparing 64 bits is ten times as fast as searching for the stems in a text.
    """

    def __missing__(self, word: bytes) -> int:
        if len(self) >= MOST_STEMS:
            self.clear()
        key = self[word] = hash(stem(word.decode("utf-8", "surrogatepass")))
        return key


_STEMS = _Stems()


class _Kept:
    """A cache of recently parsed texts. Thread-safe: a lost entry is parsed again."""

    def __init__(self) -> None:
        self._new: dict[str, _Text] = {}
        self._old: dict[str, _Text] = {}

    def all_of(self, contents: Sequence[str]) -> list[_Text]:
        new = self._new
        return [new.get(content) or self._added(content) for content in contents]

    def _added(self, content: str) -> _Text:
        text = self._old.get(content) or _Text.read(content)
        if len(content) <= _KEPT_CHARS:
            if len(self._new) >= MOST_KEPT:
                self._old, self._new = self._new, {}
            self._new[content] = text
        return text

    def forget(self) -> None:
        self._new, self._old = {}, {}


_CACHE = _Kept()


def forget() -> None:
    """Clear the caches of the process, after texts were erased."""
    _CACHE.forget()
    _STEMS.clear()


class TextWords:
    """The words of some texts."""

    def __init__(self, contents: Sequence[str]) -> None:
        self._contents = contents
        self._texts = _CACHE.all_of(contents)
        self.lengths: Floats = np.array([text.length for text in self._texts], dtype=np.float64)
        # 1 for texts that end with a question mark.
        self.asks: Floats = np.array([text.asks for text in self._texts], dtype=np.float64)
        self._counts: dict[tuple[str, ...], Floats] = {}

    def counts(self, stems: Sequence[str]) -> Floats:
        """Return how often each stem occurs in each text: shape (texts, stems)."""
        key = tuple(stems)
        if key not in self._counts:
            self._counts[key] = self._counted(key)
        return self._counts[key]

    def _counted(self, stems: Sequence[str]) -> Floats:
        hashes = np.frombuffer(b"".join([text.stems for text in self._texts]), np.int64)
        ends = np.cumsum([text.length for text in self._texts])
        counts = np.zeros((len(self._contents), len(stems)))
        for column, word in enumerate(stems):
            if len(word) <= 2 and not word.isascii():
                counts[:, column] = [content.count(word) for content in self._contents]
                continue
            places = np.flatnonzero(hashes == hash(word))
            if len(places):
                owners = np.searchsorted(ends, places, side="right")
                counts[:, column] = np.bincount(owners, minlength=len(counts))
        return counts

    def any_of(self, folded: str) -> Floats:
        """Return 1 for texts that contain one of the words, which are separated by blanks."""
        return self._holding(folded)

    def digits(self, count: int) -> Floats:
        """Return 1 for texts that contain a run of ``count`` digits."""
        return self._holding(count)

    def _holding(self, words_or_digits: str | int) -> Floats:
        for text in self._texts:
            if words_or_digits not in text.holds:
                text.look_for(words_or_digits)
        return np.array([text.holds[words_or_digits] for text in self._texts], dtype=np.float64)


def _spaced(words: Sequence[bytes]) -> bytes:
    return b" " + b" ".join(words) + b" "


class _Plain(dict[int, str]):
    """A cache of folded characters by code point; a blank if it is not part of a word."""

    def __missing__(self, code: int) -> str:
        folded = "".join(char if char.isalnum() else " " for char in fold(chr(code)))
        self[code] = folded
        return folded


_PLAIN = _Plain()


def _plain(match: re.Match[str]) -> str:
    return match[0].translate(_PLAIN)
