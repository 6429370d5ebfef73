"""Normalise text for comparison, and map positions back to the original. Pure.

The same sentence may be wrapped over two lines, contain a link, bold text or HTML entities, be
escaped for JSON or a URL, be in capitals, or have decomposed accents. After folding, all these
forms are equal.
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
_MARK: Final = rb"[*`]+|\\+(?!u[0-9A-Fa-f]{4})|!?\[|\]\([^()\s]*\)|</?[A-Za-z][^<>]{0,200}>"
_ENTITY: Final = rb"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});"
# The bytes that can begin a run; a single space begins one only before some bytes. For speed.
_BEGIN: Final = rb"(?=[\t-\r\\\xc2-\xf4&%<*`!\[\]]| [ \t-\r\\\xc2\xe1-\xe3&%<>])"
# A lone space is not matched, since it would be replaced by itself.
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
    """Folded UTF-8 text.

    Attributes:
        data: the text with runs of white space as one space, without markup for emphasis, code and
            links, with escapes decoded, casefolded, in NFKD.
    """

    def __init__(self, data: bytes) -> None:
        data = data.lower()  # of ASCII letters alone, so that positions stay
        parts: list[bytes] = []
        # For each replaced part: its start and end in ``data``, and its original span.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._was: list[tuple[int, int]] = []
        last = size = 0
        for start, end, instead in _replacements(data):
            parts += [data[last:start], instead]
            size += start - last
            last = end
            self._starts.append(size)
            size += len(instead)
            self._ends.append(size)
            self._was.append((start, end))
        self.data = b"".join([*parts, data[last:]])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original bytes for a span in ``data``; ``end`` is exclusive."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, position: int) -> tuple[int, int]:
        """Return the original span of the byte, or of the replaced part, at a position."""
        part = bisect_right(self._starts, position) - 1
        if part < 0:
            return position, position + 1
        if position < self._ends[part]:
            return self._was[part]
        original = self._was[part][1] + position - self._ends[part]
        return original, original + 1


def _replacements(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the start and end of each part to replace, with its replacement."""
    for run in _RUN.finditer(data):
        replacement = _replacement(run)
        if run.lastgroup != "letters":
            yield *run.span(), replacement
        elif replacement != run[0]:
            # Replace each letter separately, so that spans stay as small as possible.
            for letter in _LETTER.finditer(data, *run.span()):
                yield *letter.span(), _replacement(letter)


def _replacement(match: re.Match[bytes]) -> bytes:
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
    folded = unicodedata.normalize("NFKD", unescaped).casefold()
    return unicodedata.normalize("NFKD", folded).encode("utf-8", "surrogatepass")


def fold(text: str) -> str:
    """Return a text in its folded form; see ``FoldedBytes``."""
    return FoldedBytes(text.encode("utf-8", "surrogatepass")).data.decode("utf-8", "surrogatepass")
