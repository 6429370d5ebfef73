"""Search bytes for many strings at once, however they are written.

Texts are folded before they are searched (see ``memgraph.text.fold``), so that case, white space,
markup and escapes make no difference. The bytes of a database are not folded: they are searched for
the strings in UTF-8, as in JSON, and as in JSON inside JSON. The beginning of a string that was cut
short counts as a match, too.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, takewhile
from typing import Final, NamedTuple

from ahocorasick_rs import BytesAhoCorasick

from memgraph.rules.erasure import ENOUGH, MARK
from memgraph.text.fold import FoldedBytes, fold

# Short strings of letters and digits occur by chance in ids, digests and large numbers.
_BARE: Final = re.compile(r"[0-9A-Za-z]{1,11}")
_WORD: Final = re.compile(rb"[0-9a-z\x80-\xff]")
_REST: Final = re.compile(rb"[\x80-\xbf]")


class TermMatch(NamedTuple):
    """A match: the string, its span in bytes, and whether all of it is there."""

    string: str
    start: int
    end: int
    complete: bool


class _Pattern(NamedTuple):
    """A way to write a string; its first ``least`` bytes are enough to recognise it."""

    string: str
    data: bytes
    least: int
    word: bool


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


class _Matcher:
    """Finds all matches of some patterns."""

    def __init__(self, patterns: Iterable[_Pattern]) -> None:
        self.patterns = [item for item in patterns if item.least >= SearchTerms.SHORTEST]
        self._beginnings = BytesAhoCorasick([item.data[: item.least] for item in self.patterns])

    def matches(self, buffer: bytes) -> Iterator[tuple[_Pattern, int, int]]:
        """Yield each match with its start and end; several patterns may match at one position."""
        found = self._beginnings.find_matches_as_indexes(buffer, overlapping=True)
        for number, start, end in found:
            pattern = self.patterns[number]
            rest = zip(pattern.data, buffer[start : start + len(pattern.data)], strict=False)
            stop = start + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], rest))
            # Whole characters only.
            while stop > end and _REST.match(buffer, stop) is not None:
                stop -= 1
            if not pattern.word or not (
                (start and _WORD.match(buffer, start - 1)) or _WORD.match(buffer, stop)
            ):
                yield pattern, start, stop


class SearchTerms:
    """The strings to search for; those of fewer than ``SHORTEST`` bytes never match.

    Args:
        whole: strings whose beginning alone is no match.
        names: names, which match as whole words only, and not in small letters.
    """

    SHORTEST: Final = 4

    def __init__(
        self, strings: Iterable[str], *, whole: Collection[str] = (), names: Collection[str] = ()
    ) -> None:
        self.strings = list(strings)
        self._whole = {*whole, *names}
        self._names = frozenset(names)

    def hits(self, data: bytes) -> Iterator[TermMatch]:
        """Yield the matches in a text in UTF-8, unordered."""
        folded = FoldedBytes(data)
        for pattern, start, end in self._folded.matches(folded.data):
            first, last = folded.span(start, end)
            if self._is_meant(pattern.string, data[first:last]):
                yield TermMatch(pattern.string, first, last, end - start == len(pattern.data))

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return the spans of all matches in a text; see ``joined``."""
        return joined((match.start, match.end) for match in self.hits(data))

    def scrub(self, text: str) -> str:
        """Replace all matches by a mark; return the same object if there are none."""
        data = _encoded(text)
        spans = self.spans(data)
        parts, last = list[bytes](), 0
        for start, end in spans:
            parts += [data[last:start], MARK.encode()]
            last = end
        return b"".join([*parts, data[last:]]).decode("utf-8", "surrogatepass") if spans else text

    def among(self, texts: Sequence[str]) -> list[tuple[int, TermMatch]]:
        """Return the matches in several texts, each with the number of its text."""
        data = [_encoded(text) for text in texts]
        ends = list(accumulate(len(item) + 1 for item in data))
        # Joined by NUL, which no string contains.
        return [(bisect_right(ends, match.start), match) for match in self.hits(b"\0".join(data))]

    def found_in(self, buffer: bytes) -> set[str]:
        """Return the strings in the bytes of a database."""
        return {
            pattern.string
            for pattern, start, end in self._raw.matches(buffer.lower())
            if self._is_meant(pattern.string, buffer[start:end])
        }

    @property
    def overlap(self) -> int:
        """The number of bytes by which consecutive pieces of a database must overlap."""
        return max((pattern.least for pattern in self._raw.patterns), default=1)

    def _is_meant(self, string: str, data: bytes) -> bool:
        """Return False for a name in small letters: ``will`` is not Will."""
        if string not in self._names or b"\\u" in data:
            return True
        text = data.decode("utf-8", "ignore")
        return text != text.lower() or string == string.lower()

    @cached_property
    def _folded(self) -> _Matcher:
        return _Matcher(self._pattern(text, fold(text).strip()) for text in self.strings)

    @cached_property
    def _raw(self) -> _Matcher:
        patterns = []
        for text in self.strings:
            written = {_json(text), json.dumps(text)[1:-1]}
            written |= {text, *map(_json, written)}
            patterns += [self._pattern(text, item, lower=True) for item in sorted(written)]
        return _Matcher(patterns)

    def _pattern(self, string: str, text: str, *, lower: bool = False) -> _Pattern:
        data = _encoded(text).lower() if lower else _encoded(text)
        least = len(data) if string in self._whole else len(_encoded(text[:ENOUGH]))
        word = string in self._names or _BARE.fullmatch(text) is not None
        return _Pattern(string, data, least, word)


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return disjoint spans, in order, that cover the same positions."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result
