"""Texts as they read, however they are written, and where a part of them stood before. Pure.

A sentence that a file wraps over two lines is stored with a space in that place; another file says
it with a link, in bold, with entities of HTML, escaped for JSON or an address, or with letters and
their accents apart. Folded, all of them are the same.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from html import unescape
from typing import Final
from urllib.parse import unquote_to_bytes

_SPACE: Final = (
    rb"(?:[ \t-\r]|\\+[nrt]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]"
    rb"|\xe2\x81\x9f|\xe3\x80\x80|&nbsp;|&#(?:9|10|13|32|160);|%20|%0[9AaDd]|<br[ ]?/?>)"
)
_MARK: Final = rb"[*`]+|!?\[|\]\([^()\s]*\)|</?[A-Za-z][^<>]{0,200}>"
_ENTITY: Final = rb"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});"
# No other byte begins one of them; of a space the next one decides. For speed alone.
_BEGIN: Final = rb"(?=[\t-\r\\\xc2-\xf4&%<*`!\[\]]| [ \t-\r\\\xc2\xe1-\xe3&%<>])"
# All but a lone space: that is what it becomes.
_RUN: Final = re.compile(
    _BEGIN
    + rb"(?:(?P<space>%b+(?:>+%b*)+|%b{2,}|(?! )%b)" % ((_SPACE,) * 4)
    + rb"|(?P<mark>%b)|(?P<entity>%b)" % (_MARK, _ENTITY)
    + rb"|(?P<octets>(?:%[0-9A-Fa-f]{2})+)|(?P<units>(?:\\+u[0-9A-Fa-f]{4})+)"
    + rb"|(?P<letters>(?:(?!%b)[\xc2-\xf4][\x80-\xbf]+)+))" % _SPACE
)
_LETTER: Final = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")
_ESCAPE: Final = re.compile(rb"\\+u")


class FoldedBytes:
    """Bytes of UTF-8 as they read.

    Attributes:
        data: with every run of white space as one space, without marks of emphasis, code and
            links, nothing escaped, and accents behind their letters (NFD).
    """

    def __init__(self, data: bytes) -> None:
        parts: list[bytes] = []
        # Of what became another: where it begins and ends here, and where it did.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._was: list[tuple[int, int]] = []
        last = size = 0
        for start, end, instead in _changes(data):
            parts += [data[last:start], instead]
            size += start - last
            last = end
            self._starts.append(size)
            size += len(instead)
            self._ends.append(size)
            self._was.append((start, end))
        self.data = b"".join([*parts, data[last:]])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original bytes of a span here; ``end`` is exclusive."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, position: int) -> tuple[int, int]:
        """Return the start and end in the original bytes of the part with one byte."""
        part = bisect_right(self._starts, position) - 1
        if part < 0:
            return position, position + 1
        if position < self._ends[part]:
            return self._was[part]
        original = self._was[part][1] + position - self._ends[part]
        return original, original + 1


def _changes(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """From where to where something is written otherwise than it reads, and how it reads."""
    for run in _RUN.finditer(data):
        replacement = _instead(run)
        if run.lastgroup != "letters":
            yield *run.span(), replacement
        elif replacement != run[0]:
            # Each by itself: what stands beside one is no part of it.
            for letter in _LETTER.finditer(data, *run.span()):
                yield *letter.span(), _instead(letter)


def _instead(match: re.Match[bytes]) -> bytes:
    kind, data = match.lastgroup, match[0]
    if kind == "space":
        return b" "
    if kind == "mark":
        return b""
    if kind == "octets":
        data = unquote_to_bytes(data)
    elif kind == "units":
        units = bytes.fromhex(_ESCAPE.sub(b"", data).decode())
        data = units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return match[0]
    unescaped = unescape(text) if kind == "entity" else text
    return unicodedata.normalize("NFD", unescaped).encode("utf-8", "surrogatepass")


def fold(text: str) -> str:
    """Return the text as it reads; see ``FoldedBytes``."""
    return FoldedBytes(text.encode("utf-8", "surrogatepass")).data.decode("utf-8", "surrogatepass")


def unfolded_length(text: str, characters: int) -> int:
    """Return how many first characters of a text yield so many folded ones."""
    data = text.encode("utf-8", "surrogatepass")
    folded = FoldedBytes(data)
    size = len(
        folded.data.decode("utf-8", "surrogatepass")[:characters].encode("utf-8", "surrogatepass")
    )
    if size >= len(folded.data):
        return len(text) + characters - len(fold(text))
    _, end = folded.span(0, max(size, 1))
    return len(data[:end].decode("utf-8", "ignore"))
