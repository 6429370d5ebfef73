"""Search bytes for many strings at once, in all their encodings.

A string is stored in a database as UTF-8, in a file also as UTF-16, in a JSON text with escapes,
and in a JSON text inside of another one with escapes of escapes. The beginning of a string that was
cut off counts as a match, too. All positions of a buffer are hashed at once with numpy, and only
those where a string may begin are compared.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.rules.erasure import ENOUGH, MARK

if TYPE_CHECKING:
    import numpy as np

_ANCHORS: Final = (8, 4)
"""The number of bytes that are hashed: eight, or four of shorter strings."""
_TABLE_BITS: Final = 22
_FACTOR: Final = 0x9E3779B97F4A7C15
_PIECE: Final = 1 << 22


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _ascii(text: str) -> str:
    return json.dumps(text)[1:-1]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_ENCODINGS: Final[tuple[Callable[[str], bytes], ...]] = (
    _utf8,
    lambda text: _utf8(_json(text)),
    lambda text: _utf8(_ascii(text)),
    lambda text: _utf8(_json(_json(text))),
    lambda text: _utf8(_json(_ascii(text))),
    # Ingested files may be UTF-16.
    lambda text: text.encode("utf-16-le", "surrogatepass"),
    lambda text: text.encode("utf-16-be", "surrogatepass"),
)
# Short strings of letters and digits occur by chance in ids, digests and large numbers.
_BARE: Final = re.compile(r"[0-9A-Za-z]{1,11}")
_TOKEN: Final = re.compile(rb"[a-z]{2,5}_[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{32,}|[0-9]{10,}")
_TOKEN_BYTES: Final = 80
_ESCAPE: Final = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})')
_ESCAPE_BYTES: Final = 6


class TermMatch(NamedTuple):
    """A match: the number of the string, and the start and end of the match in bytes."""

    string: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _EncodedTerm:
    """One encoding of one string; its first ``least`` bytes are enough to recognise it."""

    string: int
    data: bytes
    least: int
    way: Callable[[str], bytes]
    text: str
    bare: bool = False

    def extent(self, buffer: bytes, start: int) -> int:
        """Return the number of bytes that match at ``start``, in whole characters."""
        if buffer.startswith(self.data, start):
            return len(self.data)
        ends = list(accumulate(len(self.way(character)) for character in self.text))
        common = self.least
        while buffer[start + common : start + common + 1] == self.data[common : common + 1]:
            common += 1
        return max(ends[bisect_right(ends, common) - 1], self.least)


class SearchTerms:
    """The strings to search for.

    Args:
        strings: at least four bytes each; shorter ones never match.
        min_chars: by a string's number, how many of its first characters identify it; the default
            is ``ENOUGH``.
        blobs: bytes to search for literally; they are numbered after the strings.
    """

    def __init__(
        self,
        strings: Sequence[str],
        min_chars: Mapping[int, int] | None = None,
        blobs: Sequence[bytes] = (),
    ) -> None:
        self.strings = list(strings)
        self._least = min_chars or {}
        self._blobs = list(blobs)

    def __len__(self) -> int:
        return len(self.strings) + len(self._blobs)

    def hits(self, buffer: bytes) -> Iterator[TermMatch]:
        """Yield the matches, unordered; several strings may match at one position."""
        for size in _ANCHORS:
            by_anchor = self._by_anchor[size]
            if not by_anchor:
                continue
            for start in self._places(buffer, size):
                for term in by_anchor.get(buffer[start : start + size], ()):
                    if buffer.startswith(term.data[: term.least], start) and not (
                        term.bare and _in_token(buffer, start, start + term.least)
                    ):
                        yield TermMatch(term.string, start, start + term.extent(buffer, start))

    def found_in(self, buffer: bytes) -> set[int]:
        """Return the numbers of the strings that occur in a buffer."""
        return {match.string for match in self.hits(buffer)}

    def spans(self, buffer: bytes) -> list[tuple[int, int]]:
        """Return the disjoint spans of all matches, in order.

        A span is extended to include any JSON escape that it would cut in two, so that the text
        remains valid when the spans are replaced.
        """
        hits = _joined((match.start, match.end) for match in self.hits(buffer))
        return _joined(
            (_escape_around(buffer, start)[0], _escape_around(buffer, end)[1])
            for start, end in hits
        )

    def scrub(self, text: str) -> str:
        """Replace all matches by a mark; return the same object if there are none."""
        data = text.encode("utf-8", "surrogatepass")
        spans = self.spans(data)
        if not spans:
            return text
        parts, last = [], 0
        for start, end in spans:
            parts += [data[last:start], MARK.encode()]
            last = end
        return b"".join([*parts, data[last:]]).decode("utf-8", "surrogatepass")

    @property
    def overlap(self) -> int:
        """The number of bytes by which consecutive pieces of a file must overlap."""
        return max((term.least for term in self._written), default=1) - 1

    @cached_property
    def _written(self) -> list[_EncodedTerm]:
        encoded = [
            _EncodedTerm(number, blob, len(blob), _utf8, "")
            for number, blob in enumerate(self._blobs, len(self.strings))
        ]
        for number, text in enumerate(self.strings):
            min_chars = self._least.get(number, min(len(text), ENOUGH))
            bare = _BARE.fullmatch(text) is not None
            distinct = set()
            for encode in _ENCODINGS:
                data = encode(text)
                if data not in distinct and len(data) >= min(_ANCHORS):
                    distinct.add(data)
                    head = max(len(encode(text[:min_chars])), min(_ANCHORS))
                    encoded.append(_EncodedTerm(number, data, head, encode, text, bare))
        return encoded

    @cached_property
    def _by_anchor(self) -> dict[int, dict[bytes, list[_EncodedTerm]]]:
        result: dict[int, dict[bytes, list[_EncodedTerm]]] = {size: {} for size in _ANCHORS}
        for term in self._written:
            size = next(size for size in _ANCHORS if term.least >= size)
            result[size].setdefault(term.data[:size], []).append(term)
        return result

    @cached_property
    def _tables(self) -> dict[int, np.ndarray]:
        """The table of the anchors' hashes, by the size of the anchors."""
        import numpy as np

        tables = {}
        for size, by_anchor in self._by_anchor.items():
            table = np.zeros(1 << _TABLE_BITS, dtype=bool)
            anchors = np.frombuffer(b"".join(by_anchor), f"<u{size}")
            table[_hashed(anchors)] = True
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


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _escape_around(buffer: bytes, place: int) -> tuple[int, int]:
    """Return the span of the escape that ``place`` would cut in two, else an empty span there."""
    start = first = buffer.rfind(b"\\", max(place - _ESCAPE_BYTES + 1, 0), place)
    while first > 0 and buffer.startswith(b"\\", first - 1):
        first -= 1
    # In a run of backslashes every second one begins an escape.
    if start >= 0 and (start - first) % 2 == 0:
        escape = _ESCAPE.match(buffer, start)
        if escape is not None and place < escape.end():
            return escape.span()
    return place, place


def _in_token(buffer: bytes, start: int, end: int) -> bool:
    first = max(start - _TOKEN_BYTES, 0)
    tokens = _TOKEN.finditer(buffer[first : end + _TOKEN_BYTES])
    return any(
        first + token.start() <= start
        and end <= first + token.end()
        and len(token[0]) > end - start
        for token in tokens
    )


def _hashed(words: np.ndarray) -> np.ndarray:
    import numpy as np

    # Multiplication by an odd number close to 2^64 / golden ratio: Knuth, TAOCP 3, section 6.4.
    return (words.astype(np.uint64) * np.uint64(_FACTOR)) >> np.uint64(64 - _TABLE_BITS)
