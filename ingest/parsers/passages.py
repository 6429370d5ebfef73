"""Split blocks into passages: statements with line numbers, list items with their lead line."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ingest.candidates import lines
from ingest.parsers.blocks import Block, TextLink
from memgraph.text.sentences import split_sentences
from memgraph.text.statement_forms import hangs

# A sentence that needs the one before it is joined to it up to this many characters.
MAX_JOINED_CHARS = 600
# A list up to this length is one statement with the line that announces it.
MAX_LIST_CHARS = 400
# A longer list item is read by its sentences.
MAX_ITEM_CHARS = 240


@dataclass(frozen=True, slots=True)
class Passage:
    """One statement.

    Attributes:
        said: the text without ``lead``, which is the line that introduces its list.
        hangs: it depends on the text before it (begins with "it", "so"), and could not be joined.
        opens: it is the first statement of its paragraph or item.
        listed: it was a list item or a table row.
        linked: it is only a link, or a link with its title, not a statement.
        checked: set for a task box.
    """

    said: str
    first: int
    last: int
    lead: str = ""
    hangs: bool = False
    opens: bool = True
    listed: bool = False
    linked: bool = False
    checked: bool | None = None

    @property
    def text(self) -> str:
        return f"{self.lead} {self.said}" if self.lead else self.said

    @property
    def locator(self) -> str:
        return lines(self.first, self.last)


def statements(blocks: Sequence[Block]) -> Iterator[Passage]:
    """Yield the statements of a section in order.

    A paragraph gives its sentences; one that depends on the sentence before is joined to it. Items
    take the line that introduces them; short ones make one statement with it. Code is left out,
    with the line that introduces it.
    """
    lead: Passage | None = None
    at = 0
    while at < len(blocks):
        block = blocks[at]
        end = at + 1
        if block.kind == "paragraph":
            passages = [] if _is_link(block.text, block.links) else list(_sentences(block))
            # A gap of one line is an image that was left out.
            if lead is not None and passages and block.first <= blocks[at - 1].last + 2:
                passages[0] = replace(passages[0], lead=lead.said, hangs=lead.hangs)
            follows = blocks[end].kind if end < len(blocks) else "paragraph"
            lead = passages.pop() if passages and _announces(passages[-1].said, follows) else None
            yield from passages
        elif block.kind in ("item", "row"):
            while end < len(blocks) and blocks[end].kind == block.kind:
                end += 1
            yield from _listed(blocks[at:end], lead)
            lead = None
        else:
            lead = None
        at = end


def _announces(sentence: str, follows: str) -> bool:
    return sentence.endswith(":") or (follows != "paragraph" and sentence[-1] not in ".!?")


def _sentences(block: Block) -> Iterator[Passage]:
    pending: Passage | None = None
    for sentence, first, last in located(block):
        needs = hangs(sentence)
        room = MAX_JOINED_CHARS - len(sentence)
        joins = needs and not sentence.endswith(":")
        if joins and pending is not None and not pending.hangs and len(pending.said) < room:
            pending = replace(pending, said=f"{pending.said} {sentence}", last=last)
            continue
        if pending is not None:
            yield pending
        pending = Passage(sentence, first, last, hangs=needs, opens=pending is None)
    if pending is not None:
        yield pending


def located(block: Block) -> Iterator[tuple[str, int, int]]:
    """Yield a block's sentences with the lines of each."""
    raw = (block.raw or block.text).split("\n")
    exact = len(raw) == block.last - block.first + 1
    starts: list[int] = []
    size = 0
    for line in raw:
        starts.append(size)
        size += len(line) + 1
    at = 0
    for part in block.text.split("\n"):
        for sentence in split_sentences(part):
            begin = block.text.find(sentence, at)
            if begin < 0 or not exact:
                yield sentence, block.first, block.last
                continue
            at = begin + len(sentence)
            yield sentence, block.first + _line(starts, begin), block.first + _line(starts, at - 1)


def _line(starts: Sequence[int], place: int) -> int:
    return bisect_right(starts, place) - 1


def _listed(blocks: Sequence[Block], lead: Passage | None) -> Iterator[Passage]:
    items = [item for item in _items(blocks) if any(map(str.isalnum, item.said))]
    if lead is None or not items:
        yield from items
        return
    boxed = any(item.checked is not None for item in items)
    joined = "; ".join(item.said.rstrip(".;,") for item in items)
    if not boxed and len(joined) + len(lead.said) < MAX_LIST_CHARS:
        linked = all(item.linked for item in items)
        span = (lead.first, items[-1].last)
        yield Passage(f"{joined}.", *span, lead.said, lead.hangs, listed=True, linked=linked)
        return
    for item in items:
        if item.checked is None:
            item = replace(item, lead=lead.said, hangs=lead.hangs)
        yield item


def _items(blocks: Sequence[Block]) -> Iterator[Passage]:
    """Yield list items joined with their nested items; task boxes are yielded separately."""
    at = 0
    while at < len(blocks):
        head = blocks[at]
        end = at + 1
        while end < len(blocks) and blocks[end].level > head.level:
            if blocks[end].checked is not None:
                break
            end += 1
        inner = blocks[at + 1 : end]
        at = end
        own = head.text.rstrip()
        text = own + (" " if own.endswith(":") else ": ")
        text += "; ".join(item.text.rstrip(".;,") for item in inner)
        if inner and own[-1:] not in ".!?" and len(text) < MAX_JOINED_CHARS:
            last = max(item.last for item in inner)
            yield _item(replace(head, text=text, last=last))
            continue
        for block in (head, *inner):
            if block.checked is not None or len(block.text) < MAX_ITEM_CHARS:
                yield _item(block)
            else:
                yield from (replace(passage, listed=True) for passage in _sentences(block))


def _item(block: Block) -> Passage:
    text = " ".join(block.text.split())
    return Passage(
        text,
        block.first,
        block.last,
        hangs=hangs(text),
        listed=True,
        linked=_is_link(text, block.links),
        checked=block.checked,
    )


def _is_link(text: str, links: Sequence[TextLink]) -> bool:
    """Return True for an entry in a list of links: a label with at most a short title."""
    if not links:
        return False
    head = re.sub(r"^\W+", "", text)
    label = re.sub(r"^\W+", "", " ".join(links[0].label.split()))
    if not label or not head.startswith(label):
        return False
    rest = head[len(label) :].strip()
    return len(re.findall(r"\w{2,}", rest)) < 2 or rest[0] in "-–—:|("
