"""Blocks put together as passages: a list with the line that announces it, code with its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ingest.candidates import lines, split_long
from ingest.parsers.blocks import Block, Link

# Items shorter than this, on average, say nothing without the line that announces them.
_SHORT_ITEM_WORDS = 7
# A list up to this length stays with its announcement where lists are read as one statement.
_WHOLE_LIST_CHARS = 1_200


@dataclass(frozen=True, slots=True)
class Passage:
    """Blocks that are one memory. ``prose`` is False where code, a table or a list must stay
    whole; ``led`` where these begin without a line that announces them."""

    text: str
    first: int
    last: int
    prose: bool = True
    led: bool = True
    checked: bool | None = None
    links: tuple[Link, ...] = ()

    @property
    def locator(self) -> str:
        return lines(self.first, self.last)


def render(blocks: Iterable[Block]) -> str:
    """Plain text of blocks: items with a dash and their nesting, the rest with an empty line."""
    parts: list[str] = []
    previous: Block | None = None
    for block in blocks:
        text = block.text
        if block.kind == "item":
            box = {None: "", True: "[x] ", False: "[ ] "}[block.checked]
            text = "  " * min(block.level - 1, 8) + "- " + box + text
        if previous is not None:
            together = previous.kind == block.kind and block.kind in ("item", "row")
            announced = previous.text.endswith(":") and block.kind != "paragraph"
            parts.append("\n" if together or announced else "\n\n")
        parts.append(text)
        previous = block
    return "".join(parts)


def grouped(blocks: Sequence[Block], *, whole_lists: bool = False) -> Iterator[Passage]:
    """Passages of a section, in order: each paragraph and list item for itself.

    With ``whole_lists`` a list goes with the line that announces it, and items of a word or two
    go together.
    """
    index = 0
    while index < len(blocks):
        end = _end_of_group(blocks, index)
        if whole_lists:
            end = max(end, _end_of_list(blocks, index))
        yield _passage(blocks[index:end])
        index = end


def packed(blocks: Sequence[Block], limit: int) -> Iterator[Passage]:
    """Passages that fill up to ``limit`` characters, cut only between groups where possible."""
    pending: list[Block] = []
    size = 0
    index = 0
    while index < len(blocks):
        end = _end_of_group(blocks, index)
        group = blocks[index:end]
        length = sum(len(block.text) + 4 for block in group)
        if pending and size + length > limit:
            yield from cut(_passage(pending), limit)
            pending, size = [], 0
        pending.extend(group)
        size += length
        index = end
    if pending:
        yield from cut(_passage(pending), limit)


def cut(passage: Passage, limit: int) -> Iterator[Passage]:
    """A passage in pieces of at most ``limit`` characters; all keep its lines and links."""
    for text in split_long(passage.text, limit):
        yield replace(passage, text=text)


def _end_of_group(blocks: Sequence[Block], start: int) -> int:
    """Where the group that begins at ``start`` ends (excluded)."""
    first = blocks[start]
    end = start + 1
    if first.kind == "row":
        while end < len(blocks) and blocks[end].kind == "row":
            end += 1
        return end
    if first.kind == "item":
        # What is nested belongs to its item; a task box stands for itself.
        while end < len(blocks) and _belongs(first, blocks[end]):
            end += 1
        return end
    if first.kind != "paragraph" or not first.text.endswith(":") or end == len(blocks):
        if end < len(blocks) and blocks[end].kind == "code":
            return end + 1
        return end
    if blocks[end].kind in ("code", "row"):
        kind = blocks[end].kind
        while end < len(blocks) and blocks[end].kind == kind:
            end += 1
        return end
    stop = end
    while stop < len(blocks) and blocks[stop].kind == "item" and blocks[stop].checked is None:
        stop += 1
    words = sum(len(block.text.split()) for block in blocks[end:stop])
    short = stop > end and words < _SHORT_ITEM_WORDS * (stop - end)
    return stop if short else end


def _end_of_list(blocks: Sequence[Block], start: int) -> int:
    """Where the list that belongs to the block at ``start`` ends; ``start`` if there is none."""
    first = blocks[start]
    stop = start if first.kind == "item" else start + 1
    while stop < len(blocks) and blocks[stop].kind == "item" and blocks[stop].checked is None:
        stop += 1
    items = blocks[start if first.kind == "item" else start + 1 : stop]
    words = sum(len(block.text.split()) for block in items)
    size = sum(len(block.text) for block in items)
    if not items or first.kind not in ("item", "paragraph"):
        return start
    if first.kind == "paragraph" and first.text.endswith(":"):
        return stop if size <= _WHOLE_LIST_CHARS else start
    return stop if words < 3 * len(items) and size <= _WHOLE_LIST_CHARS else start


def _belongs(item: Block, block: Block) -> bool:
    if block.kind == "code":
        return True
    return block.kind == "item" and block.level > item.level and block.checked is None


def _passage(blocks: Sequence[Block]) -> Passage:
    alone = len(blocks) == 1
    return Passage(
        blocks[0].text if alone else render(blocks),
        blocks[0].first,
        max(block.last for block in blocks),
        prose=alone and blocks[0].kind in ("paragraph", "item"),
        led=blocks[0].kind in ("paragraph", "item"),
        checked=blocks[0].checked,
        links=tuple(link for block in blocks for link in block.links),
    )
