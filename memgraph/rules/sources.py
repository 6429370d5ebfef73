"""Locators: a range of lines of a file, a value in JSON, or the whole file. Pure.

The format of ``ingest``: ``L3-L5`` counts lines from 1 and includes both, ``/memories/2`` is a JSON
pointer (RFC 6901), ``#`` is the whole file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from memgraph.model.values import Memory, StoredSource

_LINES = re.compile(r"L([0-9]{1,9})-L([0-9]{1,9})")
# Line ends as in an editor; other separators were converted to line ends when the file was read.
_LINE_ENDS = re.compile("\r\n|[\r\n\u2028\u2029\x85]")


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file.

    Attributes:
        first, last: lines from 1, both included; None if it is not a range of lines.
        pointer: the JSON pointer of a value; None without lines: the whole file.
    """

    first: int | None = None
    last: int | None = None
    pointer: str | None = None

    def hides(self, other: FilePart) -> bool:
        """Return True if this part may overlap the other one; values in JSON are compared."""
        mine, theirs = self.pointer, other.pointer
        if mine is None or theirs is None:
            # Lines cannot be compared with values in JSON, so any of them may overlap.
            return True
        return (mine + "/").startswith(theirs + "/") or (theirs + "/").startswith(mine + "/")


def part_of(locator: str | None) -> FilePart | None:
    """Return the part of a file that a locator refers to; None for an unknown format."""
    if locator is None:
        return None
    match = _LINES.fullmatch(locator)
    if match is not None and 1 <= int(match[1]) <= int(match[2]):
        return FilePart(int(match[1]), int(match[2]))
    if locator == "#":
        return FilePart()
    return FilePart(pointer=locator) if locator.startswith("/") else None


class FileText:
    """The text of a file; its lines and its JSON are parsed on first use."""

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def of(cls, data: bytes) -> FileText:
        """Decode bytes in the same way as ingestion."""
        encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
        return cls(data.decode(encoding, errors="replace"))

    @cached_property
    def lines(self) -> list[str]:
        return _LINE_ENDS.split(self._text)

    def value_at(self, pointer: str) -> str | None:
        """Return the value at a JSON pointer as indented JSON; None if there is none."""
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
    """Yield the lines of a part with their numbers, except those of hidden parts.

    A value in JSON is formatted as new lines, which have no number because they are not lines of
    the file. It is left out entirely if any part of it is hidden.
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


# The byte positions of the lines of a file, counted as in ingestion. Pure.


_BYTE_ENDS: Final = re.compile(rb"\r\n|[\r\n]|\xe2\x80[\xa8\xa9]|\xc2\x85")
UTF8: Final = "utf-8"


def encoding_of(data: bytes) -> str:
    """Return the encoding of an ingested file, by its first bytes."""
    if data.startswith(b"\xff\xfe"):
        return "utf-16-le"
    return "utf-16-be" if data.startswith(b"\xfe\xff") else UTF8


def line_spans(data: bytes) -> list[tuple[int, int]]:
    """Return the start and end of each line of a text in UTF-8, without its line end."""
    starts, stops = [0], []
    for match in _BYTE_ENDS.finditer(data):
        stops.append(match.start())
        starts.append(match.end())
    return list(zip(starts, [*stops, len(data)], strict=True))


def citation(memory: Memory, source: StoredSource) -> str:
    """Return the origin of a memory on one line, for people; for a file, its full path."""
    if source.source_path is not None:
        return f"{source.source_path}{f'#{source.locator}' if source.locator else ''}"
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
