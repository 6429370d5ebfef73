"""Locators: a range of lines of a file, a place in JSON, or the whole. Pure.

As ``ingest`` writes them: ``L3-L5`` counts lines from 1 and includes both, ``/memories/2`` is a
JSON pointer (RFC 6901), ``#`` is the whole file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Final

from memgraph.model.values import Memory, StoredSource

_LINES = re.compile(r"L([0-9]{1,9})-L([0-9]{1,9})")
# What ends a line for an editor; other separators were made line ends when the file was read.
_LINE_ENDS = re.compile("\r\n|[\r\n\u2028\u2029\x85]")


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file.

    Attributes:
        first, last: lines from 1, both included; None: it is no range of lines.
        pointer: of a value in JSON; None and no lines: the whole file.
    """

    first: int | None = None
    last: int | None = None
    pointer: str | None = None

    def hides(self, other: FilePart) -> bool:
        """Return True when anything of this part lies in the other one, where both are places in
        JSON.
        """
        mine, theirs = self.pointer, other.pointer
        if mine is None or theirs is None:
            # Lines of JSON are not compared with places in it: any of them may be meant.
            return True
        return (mine + "/").startswith(theirs + "/") or (theirs + "/").startswith(mine + "/")


def part_of(locator: str | None) -> FilePart | None:
    """Return the part that a locator names; None: it names none that is known."""
    if locator is None:
        return None
    match = _LINES.fullmatch(locator)
    if match is not None and 1 <= int(match[1]) <= int(match[2]):
        return FilePart(int(match[1]), int(match[2]))
    if locator == "#":
        return FilePart()
    return FilePart(pointer=locator) if locator.startswith("/") else None


class FileText:
    """The text of a file; lines and values of JSON are found when they are first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def of(cls, data: bytes) -> FileText:
        """As ingestion reads bytes."""
        encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
        return cls(data.decode(encoding, errors="replace"))

    @cached_property
    def lines(self) -> list[str]:
        return _LINE_ENDS.split(self._text)

    def value_at(self, pointer: str) -> str | None:
        """Return the value at a JSON pointer, written over lines; None: there is none."""
        try:
            value = self._json
            for step in pointer.removeprefix("/").split("/"):
                name = step.replace("~1", "/").replace("~0", "~")
                value = value[int(name)] if isinstance(value, list) else value[name]
            return json.dumps(value, ensure_ascii=False, indent=2)
        except (ValueError, LookupError, TypeError, RecursionError):
            return None

    @cached_property
    def _json(self) -> Any:
        return json.loads(self._text)


def texts_of(
    text: FileText, part: FilePart, hidden: Iterable[FilePart] = ()
) -> Iterator[tuple[int | None, str]]:
    """Yield the lines of a part with their numbers, but for those of hidden parts.

    A value in JSON is written as lines of its own, which have no number: they are not those of the
    file. None of them is given where any of it is hidden.
    """
    hidden = list(hidden)
    if part.pointer is not None:
        is_visible = not any(part_hidden.hides(part) for part_hidden in hidden)
        value = text.value_at(part.pointer) if is_visible else None
        lines = [] if value is None else value.split("\n")
        yield from ((None, line) for line in lines)
        return
    if any(part_hidden.first is None for part_hidden in hidden):
        return
    lines = text.lines
    first, last = part.first or 1, min(part.last or len(lines), len(lines))
    for number in range(first, last + 1):
        if not any(
            (part_hidden.first or 0) <= number <= (part_hidden.last or 0) for part_hidden in hidden
        ):
            yield number, lines[number - 1]


# Where the lines of a file lie in its bytes, as they are counted where it is read. Pure.


_ENDS: Final = re.compile("\r\n|[\r\n\u2028\u2029\x85]")
_BYTE_ENDS: Final = re.compile(rb"\r\n|[\r\n]|\xe2\x80[\xa8\xa9]|\xc2\x85")
UTF8: Final = "utf-8"


def encoding_of(data: bytes) -> str:
    """Return how a file that was taken is written, by its first bytes."""
    if data.startswith(b"\xff\xfe"):
        return "utf-16-le"
    return "utf-16-be" if data.startswith(b"\xfe\xff") else UTF8


def line_spans(data: bytes) -> list[tuple[int, int]]:
    """Return where each line begins and ends in the bytes of a file, without what ends it."""
    encoding = encoding_of(data)
    ends: Iterable[tuple[int, int]]
    if encoding == UTF8:
        ends = (match.span() for match in _BYTE_ENDS.finditer(data))
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
    for match in _ENDS.finditer(text):
        units += _units(text[last : match.start()])
        yield 2 * units, 2 * (units + len(match[0]))
        units, last = units + len(match[0]), match.end()


def _units(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text)


def citation(memory: Memory, source: StoredSource) -> str:
    """Return where a memory comes from, in one line for people; of a file, the whole path."""
    if source.source_path is not None:
        return _within(source.source_path, source)
    parts = [str(source.source_type)]
    if source.conversation_id is not None:
        parts.append(f"conversation {source.conversation_id}")
    if memory.session_id is not None:
        parts.append(f"session {memory.session_id}")
    if memory.turn_id is not None:
        parts.append(f"turn {memory.turn_id}")
    if source.workflow_run_id is not None:
        parts.append(f"run {source.workflow_run_id}")
    if source.step_id is not None:
        parts.append(f"step {source.step_id}")
    return ", ".join(parts)


def short_citation(memory: Memory, source: StoredSource) -> str:
    """Return the same for a prompt: of a file its name and the place in it, not where it lies."""
    if source.source_path is None:
        return citation(memory, source)
    return _within(PurePosixPath(source.source_path).name or "file", source)


def _within(file: str, source: StoredSource) -> str:
    return f"{file}#{source.locator}" if source.locator else file
