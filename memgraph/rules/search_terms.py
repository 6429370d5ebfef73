"""Search bytes for many strings at once, however they are written.

Texts are folded before they are searched (see ``memgraph.text.fold``), so that case, white space,
markup and escapes make no difference. The bytes of a database are not folded: they are searched for
the strings in UTF-8, as in JSON, and as in JSON inside JSON. The beginning of a string that was cut
short counts as a match, too. All positions are hashed at once with numpy.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.rules.erasure import ENOUGH, MARK
from memgraph.text.fold import FoldedBytes, fold

if TYPE_CHECKING:
    import numpy as np

_ANCHORS: Final = (8, 4)
"""The number of bytes that are hashed: eight, or four of shorter strings."""
_TABLE_BITS: Final = 22
_FACTOR: Final = 0x9E3779B97F4A7C15
_PIECE: Final = 1 << 22
_SMALL: Final = 400
# Short strings of letters and digits occur by chance in ids, digests and large numbers.
_BARE: Final = re.compile(r"[0-9A-Za-z]{1,11}")
_WORD: Final = re.compile(rb"[0-9a-z\x80-\xff]")
_REST: Final = re.compile(rb"[\x80-\xbf]")


class TermMatch(NamedTuple):
    """A match: the number of the string, its span in bytes, and whether all of it is there."""

    string: int
    start: int
    end: int
    complete: bool


class _Pattern(NamedTuple):
    """A way to write a string; its first ``least`` bytes are enough to recognise it."""

    string: int
    data: bytes
    least: int
    word: bool

    def end(self, buffer: bytes, start: int) -> int | None:
        """Return the end of a match at ``start``; None if there is none."""
        if not buffer.startswith(self.data[: self.least], start):
            return None
        rest = buffer[start : start + len(self.data)]
        common = (
            place for place, (a, b) in enumerate(zip(self.data, rest, strict=False)) if a != b
        )
        end = start + next(common, len(rest))
        # Whole characters only.
        while end > start + self.least and _REST.match(buffer, end) is not None:
            end -= 1
        if self.word and (
            (start and _WORD.match(buffer, start - 1)) or _WORD.match(buffer, end) is not None
        ):
            return None
        return end


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


class _Matcher:
    """Finds all matches of some patterns."""

    def __init__(self, patterns: Iterable[_Pattern]) -> None:
        self.patterns = [pattern for pattern in patterns if pattern.least >= min(_ANCHORS)]
        self._by_anchor: dict[int, dict[bytes, list[_Pattern]]] = {size: {} for size in _ANCHORS}
        for pattern in self.patterns:
            size = next(size for size in _ANCHORS if pattern.least >= size)
            self._by_anchor[size].setdefault(pattern.data[:size], []).append(pattern)

    def matches(self, buffer: bytes) -> Iterator[tuple[_Pattern, int, int]]:
        """Yield each match with its start and end; several patterns may match at one position."""
        for size, by_anchor in self._by_anchor.items():
            if not by_anchor:
                continue
            small = len(buffer) < _SMALL
            for start in range(len(buffer)) if small else self._places(buffer, size):
                for pattern in by_anchor.get(buffer[start : start + size], ()):
                    end = pattern.end(buffer, start)
                    if end is not None:
                        yield pattern, start, end

    @cached_property
    def _tables(self) -> dict[int, np.ndarray]:
        """The table of the anchors' hashes, by the size of the anchors."""
        import numpy as np

        tables = {}
        for size, by_anchor in self._by_anchor.items():
            table = np.zeros(1 << _TABLE_BITS, dtype=bool)
            table[_hashed(np.frombuffer(b"".join(by_anchor), f"<u{size}"))] = True
            tables[size] = table
        return tables

    def _places(self, buffer: bytes, size: int) -> Iterator[int]:
        """Yield the positions at which an anchor of this size may begin."""
        import numpy as np

        table = self._tables[size]
        for first in range(0, len(buffer), _PIECE):
            for shift in range(size):
                start = first + shift
                number = (min(_PIECE, len(buffer) - first) - shift + size - 1) // size
                number = min(number, (len(buffer) - start) // size)
                if number > 0:
                    words = np.frombuffer(buffer, f"<u{size}", count=number, offset=start)
                    for place in np.flatnonzero(table[_hashed(words)]).tolist():
                        yield start + place * size


def _hashed(words: np.ndarray) -> np.ndarray:
    import numpy as np

    # Multiplication by an odd number close to 2^64 / golden ratio: Knuth, TAOCP 3, section 6.4.
    return (words.astype(np.uint64) * np.uint64(_FACTOR)) >> np.uint64(64 - _TABLE_BITS)


class SearchTerms:
    """The strings to search for; those of fewer than ``SHORTEST`` bytes never match.

    Args:
        whole: the numbers of strings whose beginning alone is no match.
        names: the numbers of names, which match as words only, and not in small letters.
    """

    SHORTEST: Final = min(_ANCHORS)

    def __init__(
        self,
        strings: Sequence[str],
        *,
        whole: Collection[int] = (),
        names: Collection[int] = (),
    ) -> None:
        self.strings = list(strings)
        self._whole = frozenset(whole) | frozenset(names)
        self._names = frozenset(names)

    def hits(self, data: bytes) -> Iterator[TermMatch]:
        """Yield the matches in a text in UTF-8, unordered."""
        folded = FoldedBytes(data)
        for pattern, start, end in self._folded.matches(folded.data):
            first, last = folded.span(start, end)
            if self._is_meant(pattern.string, data[first:last]):
                yield TermMatch(pattern.string, first, last, end - start == len(pattern.data))

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return the disjoint spans of all matches in a text, in order."""
        spans: list[tuple[int, int]] = []
        for _, start, end, _ in sorted(self.hits(data), key=lambda match: match.start):
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], end))
            else:
                spans.append((start, end))
        return spans

    def scrub(self, text: str) -> str:
        """Replace all matches by a mark; return the same object if there are none."""
        data = _encoded(text)
        spans = self.spans(data)
        if not spans:
            return text
        parts, last = list[bytes](), 0
        for start, end in spans:
            parts += [data[last:start], MARK.encode()]
            last = end
        return b"".join([*parts, data[last:]]).decode("utf-8", "surrogatepass")

    def among(self, texts: Sequence[str]) -> list[tuple[int, TermMatch]]:
        """Return the matches in several texts, each with the number of its text."""
        data = [_encoded(text) for text in texts]
        ends = list(accumulate(len(item) + 1 for item in data))
        # Joined by NUL, which no string contains.
        return [(bisect_right(ends, match.start), match) for match in self.hits(b"\0".join(data))]

    def found_in(self, buffer: bytes) -> set[int]:
        """Return the numbers of the strings in the bytes of a database."""
        return {
            pattern.string
            for pattern, start, end in self._raw.matches(buffer.lower())
            if self._is_meant(pattern.string, buffer[start:end])
        }

    @property
    def overlap(self) -> int:
        """The number of bytes by which consecutive pieces of a database must overlap."""
        return max((pattern.least for pattern in self._raw.patterns), default=1)

    def _is_meant(self, string: int, data: bytes) -> bool:
        """Return False for a name in small letters: ``will`` is not Will."""
        if string not in self._names or b"\\u" in data:
            return True
        text = data.decode("utf-8", "ignore")
        return text != text.lower() or self.strings[string] == self.strings[string].lower()

    @cached_property
    def _folded(self) -> _Matcher:
        return _Matcher(
            self._pattern(number, fold(text).strip()) for number, text in enumerate(self.strings)
        )

    @cached_property
    def _raw(self) -> _Matcher:
        patterns = []
        for number, text in enumerate(self.strings):
            written = {_json(text), json.dumps(text)[1:-1]}
            written |= {text, *map(_json, written)}
            patterns += [self._pattern(number, item, lower=True) for item in sorted(written)]
        return _Matcher(patterns)

    def _pattern(self, number: int, text: str, *, lower: bool = False) -> _Pattern:
        data = _encoded(text).lower() if lower else _encoded(text)
        least = len(data) if number in self._whole else len(_encoded(text[:ENOUGH]))
        word = number in self._names or _BARE.fullmatch(text) is not None
        return _Pattern(number, data, least, word)
