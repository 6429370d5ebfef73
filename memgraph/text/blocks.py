"""Blocks of a text: headings, paragraphs and list items, with their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final, Literal

from memgraph.text.dates import date_readings
from memgraph.text.labels import type_named

BlockKind = Literal["heading", "paragraph", "item", "code", "row", "omitted"]

_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_BULLET = re.compile(r"^(?:[-*+•–]|\d{1,3}[.)])\s+(?=\S)")
_BOX = re.compile(r"^\[([ xX])\]\s+(?=\S)")
_RULE = re.compile(r"^[-=*_~#]{3,}$")
_DELIMITERS = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+$")
_BAR = re.compile(r"(?<!\\)\|")
TAB: Final = 4
RULE: Final = "rule"
NO_WORDS: Final = "no_words"
# A list item above is long enough to have been wrapped by an editor.
_WRAPPED_CHARS = 50
_MAX_HEADING_CHARS = 100


@dataclass(frozen=True, slots=True)
class TextLink:
    label: str
    href: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block of plain text.

    ``level`` is 1..6 for a heading, and the nesting depth from 1 for a list item.

    ``checked`` is set for a task box. A table row's text is ``column: value; column: value``.
    ``raw`` keeps the line ends of a paragraph or item that ``text`` has joined. ``omitted`` is a
    part that is left out; its text is the reason.
    """

    kind: BlockKind
    text: str
    first: int
    last: int
    level: int = 0
    checked: bool | None = None
    links: tuple[TextLink, ...] = ()
    raw: str = ""


@dataclass(frozen=True, slots=True)
class HeadedSection:
    """A heading with the blocks up to the next heading; ``path`` holds the headings above it."""

    title: str
    level: int
    first: int
    path: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    links: tuple[TextLink, ...] = ()


def omitted(reason: str, first: int, last: int) -> Block:
    """Return the block for a part that is left out."""
    return Block("omitted", reason, first, last)


def sections(blocks: Sequence[Block]) -> list[HeadedSection]:
    """Return blocks under their headings. Blocks above the first heading have level 0."""
    headed = [HeadedSection("", 0, 1)]
    pending: list[Block] = []
    above: list[tuple[int, str]] = []
    for block in blocks:
        if block.kind != "heading":
            pending.append(block)
            continue
        headed[-1] = replace(headed[-1], blocks=tuple(pending))
        pending = []
        above = [(level, title) for level, title in above if level < block.level]
        path = tuple(title for _, title in above)
        headed.append(
            HeadedSection(block.text, block.level, block.first, path=path, links=block.links)
        )
        above.append((block.level, block.text))
    headed[-1] = replace(headed[-1], blocks=tuple(pending))
    return headed if headed[0].blocks else headed[1:]


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


def row_text(names: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row of a table as ``column: value; column: value``; "" without a value."""
    # Hostile tables have thousands of columns, and rows with few cells.
    names = names[: len(cells)]
    if len(cells) == 2 and all(cells) and not any(names):
        return ": ".join(cells)
    pairs = zip_longest(names, cells, fillvalue="")
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell)


def read_lines(source: Sequence[str]) -> list[Block]:
    """Return the headings, paragraphs, list items and table rows of a plain text.

    A heading begins with "#", is underlined, or is a date. A label on a line of its own, such as
    "Action items", announces the lines below it. A table has bars, as in Markdown.
    """
    blocks: list[Block] = []
    for block in _with_tables(source):
        underlined = (
            block.text == RULE
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


def _with_tables(source: Sequence[str]) -> Iterator[Block]:
    begin = at = 0
    while at + 1 < len(source):
        head = source[at].strip()
        if not (head.startswith("|") and _DELIMITERS.match(source[at + 1].strip())):
            at += 1
            continue
        yield from _blocks(source[begin:at], begin + 1)
        names, begin = _cells(head), at
        at += 2
        while at < len(source) and (line := source[at].strip()).startswith("|"):
            at += 1
            text = row_text(names, _cells(line))
            yield Block("row", text, at, at) if text else omitted(NO_WORDS, at, at)
        if at == begin + 2 and (text := "; ".join(filter(None, names))):
            yield Block("row", text, begin + 1, begin + 1)
        begin = at
    yield from _blocks(source[begin:], begin + 1)


def _cells(line: str) -> list[str]:
    cells = _BAR.split(line.removeprefix("|").removesuffix("|"))
    return [" ".join(cell.replace("\\|", "|").split()) for cell in cells]


def _blocks(source: Sequence[str], start: int) -> Iterator[Block]:
    unit: _Unit | None = None
    announced = False
    for number, raw in enumerate(source, start):
        line = raw.strip()
        indent = len(raw.expandtabs(TAB)) - len(raw.expandtabs(TAB).lstrip())
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
        label = line.strip("*_: ")
        if type_named(label) is not None:
            yield Block("paragraph", f"{label}:", number, number)
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
        return omitted(RULE, number, number)
    if not any(map(str.isalnum, line)):
        return omitted(NO_WORDS, number, number)
    if heading := _HEADING.match(line):
        return Block("heading", heading[2], number, number, len(heading[1]))
    bare = line.strip("=-*_ ")
    # Whether the day or the month stands first matters to the date, not to the heading.
    if not bare.partition(":")[0].isalpha() and date_readings(bare):
        return Block("heading", bare, number, number, 2)
    return None


def _continues(unit: _Unit, line: str, indent: int) -> bool:
    """Return True when a line belongs to the paragraph or the item above it."""
    if unit.kind == "paragraph":
        return True
    return indent > unit.indent or (line[0].islower() and len(unit.lines[-1]) >= _WRAPPED_CHARS)
