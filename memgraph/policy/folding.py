"""Texts with every run of white space as one space, and where a part of them stood before. Pure.

A sentence that a file wraps over two lines is stored with a space in that place. Escapes of JSON
for line ends and tabs count as white space, and so does the mark of a quoted line after one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

_SPACE: Final = (
    rb"(?:[ \t-\r]|\\+[nrt]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]"
    rb"|\xe2\x81\x9f|\xe3\x80\x80)"
)
# All but a lone space: that is what it becomes.
_RUN: Final = re.compile(
    rb"%b+(?:>+%b*)+|%b{2,}|(?! )%b|[*`]+" % (_SPACE, _SPACE, _SPACE, _SPACE),
)


class Folded:
    """Bytes of UTF-8 with every run of white space as one space.

    Attributes:
        data: the bytes after it.
    """

    def __init__(self, data: bytes) -> None:
        parts: list[bytes] = []
        self._after: list[int] = []
        self._before: list[int] = []
        last = size = 0
        for each in _RUN.finditer(data):
            # Marks of emphasis and of code are no part of what is stored.
            instead = b"" if each[0][:1] in b"*`" else b" "
            parts += [data[last : each.start()], instead]
            size += each.start() - last + len(instead)
            last = each.end()
            self._after.append(size)
            self._before.append(last)
        self.data = b"".join([*parts, data[last:]])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the bytes before it stood what stands here now; ``end`` lies behind it."""
        return self._place(start), self._place(end - 1) + 1

    def _place(self, place: int) -> int:
        known = bisect_right(self._after, place) - 1
        if known < 0:
            return place
        return self._before[known] + place - self._after[known]


def fold(text: str) -> str:
    """The text with every run of white space as one space."""
    return Folded(text.encode("utf-8", "surrogatepass")).data.decode("utf-8", "surrogatepass")


def unfolded_length(text: str, characters: int) -> int:
    """How many first characters of a text, as it is, so many of its folded ones come from."""
    data = text.encode("utf-8", "surrogatepass")
    folded = Folded(data)
    known = len(
        folded.data.decode("utf-8", "surrogatepass")[:characters].encode("utf-8", "surrogatepass")
    )
    if known >= len(folded.data):
        return len(text) + characters - len(fold(text))
    _, end = folded.span(0, max(known, 1))
    return len(data[:end].decode("utf-8", "ignore"))
