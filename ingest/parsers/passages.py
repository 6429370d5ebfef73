"""Turn blocks into passages: each paragraph, line, list item and table row, with its lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ingest.candidates import lines
from memgraph.text.blocks import Block
from memgraph.text.paragraphs import cut, unwrapped, wrap_width
from memgraph.text.sentences import split_sentences

# A sentence up to this length that announces a list is the heading of the list.
MAX_LEAD_CHARS: Final = 200
_WITHOUT_LEAD: Final = ("paragraph", "omitted")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that becomes one memory.

    Attributes:
        above: the line that announces its list, and the items that contain it.
        listed: it was a list item or a table row.
        checked: set for a task box.
        links: the addresses of its links to the web.
    """

    text: str
    first: int
    last: int
    above: tuple[str, ...] = ()
    listed: bool = False
    checked: bool | None = None
    links: tuple[str, ...] = ()

    @property
    def locator(self) -> str:
        return lines(self.first, self.last)


def source_width(blocks: Iterable[Block], source: Sequence[str]) -> int:
    """Return the width at which an editor wrapped the paragraphs of a file; 0 if it did not."""
    return wrap_width(
        [line.strip() for line in source[block.first - 1 : block.last]]
        for block in blocks
        if block.kind == "paragraph"
    )


def passages(blocks: Sequence[Block], source: Sequence[str], width: int = 0) -> Iterator[Passage]:
    """Yield the passages of a section in order; boilerplate that was left out yields none.

    Args:
        source: the lines of the file.
        width: the ``source_width`` of the file.
    """
    lead: tuple[str, ...] = ()
    led = ""
    items: list[tuple[int, str]] = []
    for place, block in enumerate(blocks):
        follows = blocks[place + 1].kind if place + 1 < len(blocks) else "paragraph"
        if block.kind == "paragraph":
            items = []
            found = list(_of_paragraph(block, source, width))
            lead, led = (), follows
            if found and follows not in _WITHOUT_LEAD and found[-1].text.endswith(":"):
                *before, last = split_sentences(found[-1].text)
                if len(last) <= MAX_LEAD_CHARS:
                    lead = (last.rstrip(": "),)
                    found = found if before else found[:-1]
            yield from found
            continue
        # The line above a list says nothing about the table below it.
        lead = lead if block.kind in (led, "code") else ()
        if block.kind == "item":
            items = [(level, text) for level, text in items if level < block.level]
            above = (*lead, *(text for _, text in items))
            yield from _pieces(block.raw or block.text, block, (block.first, block.last), above)
            if len(block.text) <= MAX_LEAD_CHARS:
                items.append((block.level, block.text.rstrip(": ")))
        elif block.kind in ("row", "code"):
            yield from _pieces(block.text, block, (block.first, block.last), lead)


def _of_paragraph(block: Block, source: Sequence[str], width: int) -> Iterator[Passage]:
    texts = (block.raw or block.text).split("\n")
    written = [line.strip() for line in source[block.first - 1 : block.last]]
    if len(texts) != len(written):
        # Some of its lines were comments or pictures.
        written = texts
    for group in unwrapped(written, width):
        span = (block.first + group[0], block.first + group[-1])
        if len(texts) != block.last - block.first + 1:
            span = (block.first, block.last)
        yield from _pieces("\n".join(texts[group[0] : group[-1] + 1]), block, span, ())


def _pieces(
    raw: str, block: Block, span: tuple[int, int], above: tuple[str, ...]
) -> Iterator[Passage]:
    """Yield a text as one passage, or as several if it is long, each with its lines."""
    text = raw if block.kind == "code" else " ".join(raw.split("\n")).strip()
    starts = None
    if raw.count("\n") == span[1] - span[0]:
        starts = [0, *accumulate(len(line) + 1 for line in raw.split("\n")[:-1])]
    for start, end in cut(text):
        if not any(map(str.isalnum, text[start:end])):
            continue
        first, last = span
        if starts is not None:
            first, last = (span[0] + bisect_right(starts, at) - 1 for at in (start, end - 1))
        yield Passage(
            text[start:end],
            first,
            last,
            above,
            listed=block.kind in ("item", "row"),
            checked=block.checked,
            links=tuple(link.href for link in block.links if "://" in link.href),
        )
