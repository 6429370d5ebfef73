"""The words of a question's candidates, all texts in one string of bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memgraph.policy.stemming import fold, head, stem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Between two texts: a character that stands in no word.
_END = "\x02"
# Every ASCII byte that belongs to no word becomes a blank, capitals become small; bytes of other
# characters stay, `_Plain` has seen to those.
_BLANKED = bytes(
    code
    if code >= 128 or chr(code) == _END
    else ord(chr(code).lower() if chr(code).isalnum() else " ")
    for code in range(256)
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


class Texts:
    """The words of all candidates in one string of bytes, every one between blanks.

    To take every word of a few hundred texts into the hand would take ten times as long: only
    those are looked at that may be among the wanted.
    """

    def __init__(self, contents: Sequence[str]) -> None:
        self._contents = contents
        joined = "".join([f" {_without(each)} {_END}" for each in contents])
        self._text = joined.encode("utf-8", "surrogatepass").translate(_BLANKED)
        self._codes = np.frombuffer(self._text, dtype=np.uint8)
        blank = self._codes <= ord(" ")
        self._ends = np.flatnonzero(self._codes == ord(_END))
        self._starts = np.flatnonzero(blank[:-1] & ~blank[1:])
        self._blank = blank
        self.lengths: Floats = np.diff(np.searchsorted(self._starts, self._ends), prepend=0).astype(
            np.float64
        )

    def counts(self, stems: Sequence[str]) -> Floats:
        """How often each stem stands in each candidate."""
        counts = np.zeros((len(self._contents), len(stems)))
        found = list(self._occurrences(stems))
        if found:
            at, columns = np.array(found, dtype=np.intp).T
            np.add.at(counts, (self._owners(at), columns), 1.0)
        for column, gram in enumerate(stems):
            if len(gram) <= 2 and not gram.isascii():
                counts[:, column] = [each.count(gram) for each in self._contents]
        return counts

    def any_of(self, folded: Sequence[str]) -> Floats:
        """1 for the candidates that hold one of these words."""
        flags = np.zeros(len(self._contents))
        found = [at for each in folded for at in self._places(f" {each} ".encode())]
        flags[self._owners(np.array(found, dtype=np.intp))] = 1.0
        return flags

    def digits(self, least: int) -> Floats:
        """1 for the candidates that hold a run of so many digits."""
        is_digit = (self._codes >= ord("0")) & (self._codes <= ord("9"))
        run = is_digit
        for _ in range(least - 1):
            run = run[:-1] & is_digit[len(is_digit) - len(run) + 1 :]
        flags = np.zeros(len(self._contents))
        flags[self._owners(np.flatnonzero(run))] = 1.0
        return flags

    def _owners(self, offsets: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.searchsorted(self._ends, offsets)

    def _places(self, wanted: bytes) -> Iterator[int]:
        at = self._text.find(wanted)
        while at >= 0:
            yield at
            at = self._text.find(wanted, at + 1)

    def _occurrences(self, stems: Sequence[str]) -> Iterator[tuple[int, int]]:
        """(offset, place in ``stems``) of every word that has one of the stems."""
        places = {each: at for at, each in enumerate(stems)}
        heads: list[str] = []
        for one in sorted({head(each) for each in stems}):
            if not heads or not one.startswith(heads[-1]):
                heads.append(one)
        for one in heads:
            for start in self._places(f" {one}".encode("utf-8", "surrogatepass")):
                end = self._text.find(b" ", start + 1)
                word = self._text[start + 1 : end].decode("utf-8", "surrogatepass")
                place = places.get(stem(word))
                if place is not None:
                    yield start, place


class _Plain(dict[int, str]):
    """The folded word characters of every character that was met; blanks for the others."""

    def __missing__(self, code: int) -> str:
        folded = "".join(each if each.isalnum() else " " for each in fold(chr(code)))
        self[code] = folded
        return folded


_PLAIN = _Plain()


def _without(text: str) -> str:
    """The text with its characters beyond ASCII folded, and no ``_END``."""
    plain = text if text.isascii() else _NOT_ASCII.sub(_plain, text)
    return plain.replace(_END, " ")


def _plain(found: re.Match[str]) -> str:
    return found[0].translate(_PLAIN)
