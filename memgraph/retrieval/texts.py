"""The words of a question's candidates; those of a text are read once and kept for a while."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from memgraph.text.stem import fold, stem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_KEPT = 8_192
"""So many texts, and as many that were met before them, are kept by a process."""
_KEPT_CHARS = 2_000
MOST_STEMS = 50_000
# Every ASCII byte that belongs to no word becomes a blank, capitals become small; bytes of other
# characters stay, `_Plain` has seen to those.
_BLANKED = bytes(
    code if code >= 128 else ord(chr(code).lower() if chr(code).isalnum() else " ")
    for code in range(256)
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class _Text:
    """One text with its words.

    Attributes:
        words: its words, folded, each between blanks, in UTF-8.
        stems: their stems in the same form.
        length: how many words it has.
        asks: whether it ends with a question mark.
        holds: whether it holds one of some words, or a run of so many digits, as it was asked.
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
            _spaced(list(map(_STEMS.__getitem__, words))),
            len(words),
            content.rstrip()[-1:] == "?",
        )

    def look_for(self, asked: str | int) -> None:
        """Note in ``holds`` whether it holds one of some words, or so many digits on end."""
        if isinstance(asked, str):
            there = any(_spaced([word]) in self.words for word in asked.encode().split())
        else:
            there = re.search(rb"[0-9]{%d}" % asked, self.words) is not None
        self.holds[asked] = there


class _Stems(dict[bytes, bytes]):
    """The stem of every word that was met last, both in UTF-8."""

    def __missing__(self, word: bytes) -> bytes:
        if len(self) >= MOST_STEMS:
            self.clear()
        found = stem(word.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")
        self[word] = found
        return found


_STEMS = _Stems()


class _Kept:
    """The texts that were met last. Safe from several threads: what is lost is read again."""

    def __init__(self) -> None:
        self._new: dict[str, _Text] = {}
        self._old: dict[str, _Text] = {}

    def get(self, content: str) -> _Text:
        found = self._new.get(content)
        if found is not None:
            return found
        found = self._old.get(content) or _Text.read(content)
        if len(content) <= _KEPT_CHARS:
            if len(self._new) >= MOST_KEPT:
                self._old, self._new = self._new, {}
            self._new[content] = found
        return found

    def forget(self) -> None:
        self._new, self._old = {}, {}


_KEPT = _Kept()


def forget() -> None:
    """Forget the texts that the process keeps; after some were erased."""
    _KEPT.forget()
    _STEMS.clear()


class TextWords:
    """The words of some texts."""

    def __init__(self, contents: Sequence[str]) -> None:
        self._contents = contents
        self._texts = [_KEPT.get(each) for each in contents]
        self.lengths: Floats = np.array([each.length for each in self._texts], dtype=np.float64)
        # 1 for those that end with a question mark.
        self.asks: Floats = np.array([each.asks for each in self._texts], dtype=np.float64)
        self._counts: dict[tuple[str, ...], Floats] = {}

    def counts(self, stems: Sequence[str]) -> Floats:
        """Return how often each stem stands in each text: shape (texts, stems)."""
        wanted = tuple(stems)
        if wanted not in self._counts:
            self._counts[wanted] = self._counted(wanted)
        return self._counts[wanted]

    def _counted(self, stems: Sequence[str]) -> Floats:
        joined = b"".join([each.stems for each in self._texts])
        ends = np.cumsum([len(each.stems) for each in self._texts])
        counts = np.zeros((len(self._contents), len(stems)))
        for column, one in enumerate(stems):
            if len(one) <= 2 and not one.isascii():
                counts[:, column] = [each.count(one) for each in self._contents]
                continue
            places = list(_places(joined, _spaced([one.encode("utf-8", "surrogatepass")])))
            if places:
                owners = np.searchsorted(ends, places, side="right")
                counts[:, column] = np.bincount(owners, minlength=len(counts))
        return counts

    def any_of(self, folded: str) -> Floats:
        """Return 1 for the texts that hold one of the words, which are parted by blanks."""
        return self._holding(folded)

    def digits(self, least: int) -> Floats:
        """Return 1 for the texts that hold a run of so many digits."""
        return self._holding(least)

    def _holding(self, asked: str | int) -> Floats:
        for each in self._texts:
            if asked not in each.holds:
                each.look_for(asked)
        return np.array([each.holds[asked] for each in self._texts], dtype=np.float64)


def _spaced(words: Sequence[bytes]) -> bytes:
    return b" " + b" ".join(words) + b" "


def _places(text: bytes, wanted: bytes) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        # The blank behind one word is the blank before the next.
        at = text.find(wanted, at + 1)


class _Plain(dict[int, str]):
    """The folded word characters of every character that was met; blanks for the others."""

    def __missing__(self, code: int) -> str:
        folded = "".join(each if each.isalnum() else " " for each in fold(chr(code)))
        self[code] = folded
        return folded


_PLAIN = _Plain()


def _plain(found: re.Match[str]) -> str:
    return found[0].translate(_PLAIN)
