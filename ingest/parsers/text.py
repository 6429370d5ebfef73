"""Parse plain text: as a conversation if it looks like one, otherwise as a note."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ingest.candidates import ParsedDocument
from ingest.parsers.blocks import Block, FrontMatter, omitted, sections
from ingest.parsers.notes import parse_note
from ingest.parsers.transcript import is_transcript, parse_transcript
from ingest.reasons import SkippedPart
from memgraph.text.dates import DateOrder, read_date
from memgraph.text.labels import type_named

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_BULLET = re.compile(r"^(?:[-*+•–]|\d{1,3}[.)])\s+(?=\S)")
_BOX = re.compile(r"^\[([ xX])\]\s+(?=\S)")
_RULE = re.compile(r"^[-=*_~#]{3,}$")
_TAB = 4
# A list item above is long enough to have been wrapped by an editor.
_WRAPPED_CHARS = 50
_MAX_HEADING_CHARS = 100
_HEAD_LINES = 10
_DATE_FIELDS = ("date", "datum", "fecha", "sent")


def parse_text(document: ParsedDocument, order: DateOrder | None = None) -> None:
    """Add the episodes of a transcript, or the lines and paragraphs of a note.

    A date on a line of its own dates the following text; a field "Date:" at the top, all of it.
    """
    if is_transcript(document.text):
        parse_transcript(document, document.text, order)
        return
    document.format = "prose"
    source = document.text.split("\n")
    parts, dated = sections(read_lines(source)), _date_at_head(source, order)
    parse_note(document, parts, source, FrontMatter(), order, event_time=dated)


def _date_at_head(source: list[str], order: DateOrder | None) -> int | None:
    for line in source[:_HEAD_LINES]:
        name, colon, value = line.partition(":")
        if not colon or not line.strip():
            return None
        if name.strip().casefold() in _DATE_FIELDS:
            return read_date(value, alone=False, order=order)
    return None


@dataclass(slots=True)
class _Unit:
    """A paragraph or list item that is being read."""

    kind: str
    first: int
    indent: int = 0
    checked: bool | None = None
    lines: list[str] = field(default_factory=list)

    def block(self) -> Block:
        raw = "\n".join(self.lines)
        last = self.first + len(self.lines) - 1
        level = self.indent // 2 + 1
        text = " ".join(self.lines)
        if self.kind == "item":
            return Block("item", text, self.first, last, level, self.checked, raw=raw)
        return Block("paragraph", text, self.first, last, raw=raw)


def read_lines(source: list[str]) -> list[Block]:
    """Return the headings, paragraphs and list items of a plain text.

    A heading begins with "#", is underlined, or is a date. A label on a line of its own, such as
    "Action items", announces the lines below it.
    """
    blocks: list[Block] = []
    for block in _blocks(source):
        underlined = (
            block.text == SkippedPart.RULE
            and block.kind == "omitted"
            and blocks
            and blocks[-1].kind == "paragraph"
            and blocks[-1].first == blocks[-1].last == block.first - 1
            and source[block.first - 1].strip()[0] in "=-~"
        )
        if underlined:
            level = 1 if source[block.first - 1].strip()[0] == "=" else 2
            above = blocks.pop()
            blocks.append(Block("heading", above.text, above.first, block.last, level))
        else:
            blocks.append(block)
    return blocks


def _blocks(source: list[str]) -> Iterator[Block]:
    unit: _Unit | None = None
    announced = False
    for number, raw in enumerate(source, start=1):
        line = raw.strip()
        indent = len(raw.expandtabs(_TAB)) - len(raw.expandtabs(_TAB).lstrip())
        block = _own_block(line, number)
        if not line or block is not None:
            announced = False
            if unit is not None:
                yield unit.block()
            unit = None
            if block is not None:
                yield block
            continue
        bullet = _BULLET.match(line)
        bare = line[bullet.end() :] if bullet else line
        box = _BOX.match(bare)
        if unit is not None and not bullet and not box and _continues(unit, bare, indent):
            unit.lines.append(bare)
            continue
        if unit is not None:
            yield unit.block()
        unit = None
        if type_named(line.rstrip(": ")) is not None:
            yield Block("paragraph", f"{line.rstrip(': ')}:", number, number)
            announced = True
            continue
        listed = bullet is not None or box is not None or announced
        checked = None if box is None else box[1] != " "
        words = bare[box.end() :] if box else bare
        unit = _Unit("item" if listed else "paragraph", number, indent, checked, [words])
    if unit is not None:
        yield unit.block()


def _own_block(line: str, number: int) -> Block | None:
    """Return the block for a line that is a heading or says nothing."""
    if not line or len(line) > _MAX_HEADING_CHARS:
        return None
    if _RULE.match(line):
        return omitted(SkippedPart.RULE, number, number)
    if not any(map(str.isalnum, line)):
        return omitted(SkippedPart.NO_WORDS, number, number)
    if heading := _HEADING.match(line):
        return Block("heading", heading[2], number, number, len(heading[1]))
    bare = line.strip("=-*_ ")
    if not bare.partition(":")[0].isalpha() and read_date(bare) is not None:
        return Block("heading", bare, number, number, 2)
    return None


def _continues(unit: _Unit, line: str, indent: int) -> bool:
    """Return True when a line belongs to the paragraph or the item above it."""
    if unit.kind == "paragraph":
        return True
    return indent > unit.indent or (line[0].islower() and len(unit.lines[-1]) >= _WRAPPED_CHARS)
