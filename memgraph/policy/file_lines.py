"""Where the lines of a file lie in its bytes, as they are counted where it is read. Pure.

The lines are those of ``source_places``: what ends one there ends one here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_ENDS: Final = re.compile("\r\n|[\r\n\u2028\u2029\x85]")
_BYTE_ENDS: Final = re.compile(rb"\r\n|[\r\n]|\xe2\x80[\xa8\xa9]|\xc2\x85")
UTF8: Final = "utf-8"


def encoding_of(data: bytes) -> str:
    """How a file that was taken is written, by its first bytes."""
    if data.startswith(b"\xff\xfe"):
        return "utf-16-le"
    return "utf-16-be" if data.startswith(b"\xfe\xff") else UTF8


def line_spans(data: bytes) -> list[tuple[int, int]]:
    """Where each line begins and ends in the bytes of a file, without what ends it."""
    encoding = encoding_of(data)
    ends: Iterable[tuple[int, int]]
    if encoding == UTF8:
        ends = (each.span() for each in _BYTE_ENDS.finditer(data))
    else:
        # Two bytes are one unit, whatever stands in them; an odd one at the end is no part of any.
        ends = _unit_ends(data[: len(data) // 2 * 2].decode(encoding, "surrogatepass"))
    starts, stops = [0], []
    for first, last in ends:
        stops.append(first)
        starts.append(last)
    return list(zip(starts, [*stops, len(data)], strict=True))


def _unit_ends(text: str) -> Iterator[tuple[int, int]]:
    units = last = 0
    for each in _ENDS.finditer(text):
        units += _units(text[last : each.start()])
        yield 2 * units, 2 * (units + len(each[0]))
        units, last = units + len(each[0]), each.end()


def _units(text: str) -> int:
    return len(text) + sum(each > "\uffff" for each in text)
