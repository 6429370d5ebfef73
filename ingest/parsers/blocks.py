"""Read Markdown into a flat list of blocks with plain text, line numbers and links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache

import yaml
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.front_matter import front_matter_plugin

from ingest.candidates import MAX_TAGS, ParsedDocument, clean_tags, lines
from ingest.reasons import RejectionReason, SkippedPart, refuse
from memgraph.model.values import MAX_NAME_CHARS
from memgraph.text.blocks import Block, TextLink, omitted, row_text

# The parser drops deeper nesting; each level of a list counts as two.
MAX_NESTING = 64
_CONTAINERS = ("blockquote_open", "list_item_open")
# Parsing inline marks is quadratic: above these limits a block is read as plain text.
_MAX_INLINE_CHARS = 20_000
_MAX_BRACKETS = 500
# Stands for a hard line end until soft ones have been joined.
_BREAK = "\x0b"
_TASK = re.compile(r"\[([ xX])\]\s+")
_TAG = re.compile(r"<[^<>]{0,300}>")
# Formatting tags. Any other <word> in a sentence is a placeholder and is kept.
_SHAPING = re.compile(
    r"</?(?:a|abbr|b|br|center|code|dd|del|details|div|dl|dt|em|font|h[1-6]|hr|i|img|ins|kbd|li|"
    r"mark|ol|p|pre|s|small|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul)\b[^>]*>",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Open:
    """A list item that is being read."""

    level: int
    first: int
    last: int
    texts: list[str] = field(default_factory=list)
    links: list[TextLink] = field(default_factory=list)
    checked: bool | None = None

    def add(self, text: str, links: Sequence[TextLink], last: int) -> None:
        if not self.texts and self.checked is None and (box := _TASK.match(text)):
            self.checked = box[1] != " "
            text = text[box.end() :]
        self.texts.append(text)
        self.links.extend(links)
        self.last = last


@cache
def _markdown() -> MarkdownIt:
    options = {"maxNesting": MAX_NESTING}
    parser = MarkdownIt("commonmark", options).enable("table").use(front_matter_plugin)
    parser.core.ruler.at("inline", _read_inline)
    return parser


@cache
def _marks() -> MarkdownIt:
    # The default nesting limit, 20: deeper marks cost more to parse, and no text is lost.
    return MarkdownIt("commonmark")


def _read_inline(state: StateCore) -> None:
    parser = _marks()
    for token in state.tokens:
        if token.type != "inline":
            continue
        text = token.content
        token.children = []
        if len(text) > _MAX_INLINE_CHARS or text.count("[") > _MAX_BRACKETS:
            token.children.append(Token("text", "", 0, content=text))
        else:
            parser.inline.parse(text, parser, state.env, token.children)


def read_blocks(text: str) -> tuple[str, tuple[Block, ...]]:
    """Return the front matter's text (empty when there is none) and the blocks in order.

    Raises:
        IngestRejected: markdown_too_deep.
    """
    tokens = _markdown().parse(text)
    for token in tokens:
        if token.level >= MAX_NESTING - 1 and token.type in _CONTAINERS:
            raise refuse(
                RejectionReason.MARKDOWN_TOO_DEEP,
                f"lists and quotes are nested deeper than {MAX_NESTING} levels",
                line=(token.map or (0,))[0] + 1,
            )
    front = "".join(token.content for token in tokens if token.type == "front_matter")
    return front, tuple(_without_boilerplate(_walk(SyntaxTreeNode(tokens).children)))


def _without_boilerplate(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks; those that say nothing are replaced by omitted ones."""
    for block in blocks:
        if block.kind in ("omitted", "heading"):
            yield block
        elif block.kind in ("item", "paragraph") and _is_contents(block):
            yield omitted(SkippedPart.TABLE_OF_CONTENTS, block.first, block.last)
        elif any(map(str.isalnum, block.text)):
            yield block
        else:
            yield omitted(SkippedPart.NO_WORDS, block.first, block.last)


def _is_contents(block: Block) -> bool:
    """Return True for an entry of a table of contents: nothing but links into the same file."""
    if block.text.strip("[]_").casefold() == "toc":
        return True
    labels = "".join(link.label for link in block.links)
    words, linked = ("".join(filter(str.isalnum, text)) for text in (block.text, labels))
    return bool(linked) and all(link.href[:1] == "#" for link in block.links) and words == linked


def _walk(
    nodes: Iterable[SyntaxTreeNode], item: _Open | None = None, depth: int = 1
) -> Iterator[Block]:
    """Yield the blocks of nodes within a list item, if any; ``depth`` is that of a list in it."""
    for node in nodes:
        first, last = _span(node)
        if node.type in ("bullet_list", "ordered_list"):
            yield from _close(item)
            for child in node.children:
                inner = _Open(depth, *_span(child))
                yield from _walk(child.children, inner, depth + 1)
                yield from _close(inner)
        elif node.type == "heading":
            text, links = _inline(node)
            level = int(node.tag[1])
            yield Block("heading", joined(text), first, last, level, links=tuple(links))
        elif node.type == "table":
            yield from _table(node)
        elif node.type == "hr":
            yield omitted(SkippedPart.RULE, first, last)
        elif node.type in ("fence", "code_block"):
            yield from _close(item)
            if node.content.strip():
                yield Block("code", node.content.rstrip("\n"), first, last)
        elif node.type in ("inline", "html_block"):
            yield from _pictures_and_comments(node)
            text, links = _inline(node)
            if text and item is not None:
                item.add(text, links, last)
            elif text:
                raw = text.replace(_BREAK, "\n")
                yield Block("paragraph", joined(text), first, last, links=tuple(links), raw=raw)
        else:
            yield from _walk(node.children, item, depth)


def _pictures_and_comments(node: SyntaxTreeNode) -> Iterator[Block]:
    html = node.content if node.type == "html_block" else ""
    pictures = html.count("<img")
    comments = html.count("<!--")
    for child in _marks_in(node):
        pictures += child.type == "image"
        if child.type == "html_inline":
            pictures += child.content.startswith("<img")
            comments += child.content.startswith("<!--")
    for reason, count in ((SkippedPart.PICTURE, pictures), (SkippedPart.COMMENT, comments)):
        for _ in range(count):
            yield omitted(reason, *_span(node))


def _close(item: _Open | None) -> Iterator[Block]:
    """Yield the text read so far as an item; text after a nested list or code is a new item."""
    if item is None:
        return
    text = "\n".join(joined(text) for text in item.texts).strip()
    if text:
        raw = "\n".join(item.texts).replace(_BREAK, "\n")
        yield Block(
            "item", text, item.first, item.last, item.level, item.checked, tuple(item.links), raw
        )
    item.texts, item.links = [], []


def _table(node: SyntaxTreeNode) -> Iterator[Block]:
    """Yield the rows of a table, or its head if it has no others."""
    head, *rows = (row for part in node.children for row in part.children)
    names = [joined(_inline(cell)[0]) for cell in head.children]
    if not rows and any(names):
        yield Block("row", "; ".join(filter(None, names)), *_span(head))
    for row in rows:
        read = [_inline(cell) for cell in row.children]
        links = tuple(link for _, found in read for link in found)
        if text := row_text(names, [joined(cell) for cell, _ in read]):
            yield Block("row", text, *_span(row), links=links)
        else:
            yield omitted(SkippedPart.EMPTY_ROW, *_span(row))


def _span(node: SyntaxTreeNode) -> tuple[int, int]:
    """Return the first and the last line, counted from 1."""
    first, end = node.map or (0, 1)
    return first + 1, max(end, first + 1)


def _marks_in(node: SyntaxTreeNode) -> Sequence[Token]:
    return () if node.token is None else node.token.children or ()


def _inline(node: SyntaxTreeNode) -> tuple[str, list[TextLink]]:
    """Return the text of a block with its links; that of a cell or a heading is its only child."""
    if node.type == "html_block":
        return _strip_html(node.content), []
    if node.type != "inline":
        return _inline(node.children[0]) if node.children else ("", [])
    parts: list[str] = []
    links: list[TextLink] = []
    opened: list[tuple[str, int]] = []
    for child in _marks_in(node):
        if child.type == "link_open":
            opened.append((str(child.attrGet("href") or ""), len(parts)))
        elif child.type == "link_close" and opened:
            href, start = opened.pop()
            links.append(TextLink("".join(parts[start:]).strip(), href))
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n" if child.type == "softbreak" else _BREAK)
        elif child.type == "html_inline":
            parts.append(_inline_html(child.content))
        elif child.type != "image":
            parts.append(child.content)
    written = (line.split(_BREAK) for line in "".join(parts).split("\n"))
    text = "\n".join(_BREAK.join(" ".join(part.split()) for part in line) for line in written)
    return text.strip(), links


def joined(raw: str) -> str:
    """Join the lines of a paragraph, except at hard line breaks."""
    return "\n".join(" ".join(part.split()) for part in raw.split(_BREAK)).strip()


def _inline_html(content: str) -> str:
    if content.startswith("<!--"):
        return ""
    if content[:3].lower() == "<br":
        return _BREAK
    return "" if _SHAPING.fullmatch(content) else content


def _strip_html(content: str) -> str:
    parts: list[str] = []
    start = 0
    while (begin := content.find("<!--", start)) >= 0:
        parts.append(content[start:begin])
        end = content.find("-->", begin + 4)
        start = len(content) if end < 0 else end + 3
    parts.append(content[start:])
    return " ".join(_TAG.sub(" ", "".join(parts)).split())


_MAX_CHARS = 16_000
_MAX_DEPTH = 20
_DATES = ("date", "created", "last-modified")
_MEANT = frozenset(("title", "tags", "keywords", "aliases", "alias", *_DATES))
# YAML escapes can produce characters that are rejected elsewhere: NUL, controls, surrogates.
_UNSTORABLE = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Front matter. ``values`` maps names (lower case, ``-`` for ``_`` and space) to strings."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def first(self, *names: str) -> str | None:
        """Return the first string under the first existing one of ``names``."""
        for name in names:
            if strings := self.values.get(name):
                return strings[0]
        return None

    def with_tags(self, tags: tuple[str, ...]) -> FrontMatter:
        """Return a copy with further tags, found in the text."""
        if not tags:
            return self
        return replace(self, values={**self.values, "tags": (*self.values.get("tags", ()), *tags)})

    def others(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the names and values that have no meaning for memgraph itself."""
        for name, values in self.values.items():
            if values and name not in _MEANT:
                yield name, values

    @staticmethod
    def name_of(line: str) -> str:
        """Return the name of a property as it is in ``values``, from its line."""
        name = line.partition(":")[0].casefold()
        return "-".join(name.replace("_", " ").replace("-", " ").split())

    @property
    def title(self) -> str | None:
        return self.first("title")

    @property
    def tags(self) -> tuple[str, ...]:
        strings = (*self.values.get("tags", ()), *self.values.get("keywords", ()))
        return clean_tags(part.strip().lstrip("#") for tag in strings for part in tag.split(","))

    @property
    def aliases(self) -> tuple[str, ...]:
        """Return the alternative names by which other notes link to the document."""
        strings = (*self.values.get("aliases", ()), *self.values.get("alias", ()))
        names = (part.strip()[:MAX_NAME_CHARS] for string in strings for part in string.split(","))
        return tuple(dict.fromkeys(name for name in names if name))[:MAX_TAGS]

    @property
    def date(self) -> str | None:
        """The document's date as it is written."""
        return self.first(*_DATES)


def read_front_matter(document: ParsedDocument, text: str) -> FrontMatter:
    """Read strings and lists of strings; deeper values are ignored, what is invalid is reported."""
    if not text.strip():
        return FrontMatter()
    loaded = None
    if len(text) <= _MAX_CHARS and not _too_deep(text):
        # ValueError: an escape beyond Unicode, which the YAML reader does not check.
        with suppress(yaml.YAMLError, ValueError, OverflowError):
            # BaseLoader creates only strings: an ingested file must not create other objects.
            loaded = yaml.load(text, Loader=yaml.BaseLoader)
    if not isinstance(loaded, dict):
        document.report(SkippedPart.FRONT_MATTER_INVALID, lines(1, 1))
        return FrontMatter()
    values: dict[str, tuple[str, ...]] = {}
    for name, value in loaded.items():
        if not isinstance(name, str):
            continue
        items = value if isinstance(value, list) else [value]
        strings = tuple(
            item.strip()
            for item in items
            if isinstance(item, str) and item.strip() and not _UNSTORABLE.search(item)
        )
        values[FrontMatter.name_of(name)] = strings
    return FrontMatter(values)


def _too_deep(text: str) -> bool:
    """Return True when the nesting might exhaust the stack of the YAML parser."""
    flow = sum(text.count(mark) for mark in "[{")
    indents = {len(line) - len(line.lstrip(" ")) for line in text.split("\n")}
    inline = max((line.count("- ") + line.count("? ") for line in text.split("\n")), default=0)
    return flow > 10 * _MAX_DEPTH or len(indents) > _MAX_DEPTH or inline > _MAX_DEPTH
