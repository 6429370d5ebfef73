"""Notes of an Obsidian vault: its links and markup as plain Markdown, its tags and aliases."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import quote

from ingest.candidates import DocumentLink, ParsedDocument
from ingest.parsers.file_names import link_keys
from ingest.parsers.front_matter import FrontMatter
from memgraph.model.enums import EdgeType

LINK_WEIGHT = 0.4
_MAX_LINE_CHARS = 20_000
_MAX_TAGS = 100
_WIKI = re.compile(r"(!?)\[\[([^\[\]\n]{1,300})\]\]")
_ATTACHMENT = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|bmp|avif|pdf|mp[34]|m4a|ogg|wav|webm|mov|canvas|base|csv|zip)$",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_CALLOUT = re.compile(r"^(\s{0,3}(?:>\s?){1,8})\[![\w-]{1,40}\][+-]?\s*")
_BLOCK_ID = re.compile(r"(?:^|\s)\^[A-Za-z0-9-]{1,60}\s*$")
_COMMENT = re.compile(r"%%[^%\n]{0,2000}%%")
_MARKED = re.compile(r"==([^=\n]{1,500})==")
_TAG = re.compile(r"(?<!\S)#((?=[\w/-]*[^\W\d_])[\w/-]{1,64})")


def is_note(text: str) -> bool:
    """Return True when a Markdown text may be a note of a vault: it has properties or wiki
    links.
    """
    return text.startswith("---") or "[[" in text


def has_wiki_links(text: str) -> bool:
    """Return True when a text links to other notes as Obsidian does."""
    return _WIKI.search(text) is not None


def as_markdown(text: str) -> str:
    """Return the text with Markdown links for ``[[Note]]``, and without a vault's other markup.

    Each line keeps its number; code is unchanged.
    """
    return "\n".join(line if code else _plain(line) for line, code in _lines(text))


def tags_in(text: str) -> tuple[str, ...]:
    """Return the ``#tags`` of a text, outside of code."""
    found: dict[str, None] = {}
    for line, code in _lines(text):
        if not code and "#" in line and len(found) < _MAX_TAGS:
            _outside_code(line, lambda part: found.update(dict.fromkeys(_TAG.findall(part))) or "")
    return tuple(found)


def with_properties(parsed: ParsedDocument, front: FrontMatter, path: str) -> ParsedDocument:
    """Return a note with its aliases as names, joined with the notes that its properties name."""
    aliases = [f"name:{alias.casefold()}.md" for alias in front.aliases]
    links = tuple(_property_links(parsed, front, path))
    known = {link.target for link in parsed.links}
    return replace(
        parsed,
        document_keys=tuple(dict.fromkeys((*parsed.document_keys, *aliases))),
        links=(*parsed.links, *(link for link in links if link.target not in known)),
    )


def _property_links(
    parsed: ParsedDocument, front: FrontMatter, path: str
) -> Iterator[DocumentLink]:
    if parsed.main_key is None:
        return
    for name, values in front.values.items():
        for match in (match for value in values for match in _WIKI.finditer(value)):
            target, shown = _target(match[2])
            targets = link_keys(quote(target), path) if target else ()
            if len(targets) > 1 and targets[0] not in parsed.document_keys:
                yield DocumentLink(
                    parsed.main_key,
                    targets[0],
                    EdgeType.RELATED_TO,
                    weight=LINK_WEIGHT,
                    reason=f"{name}: {shown}"[:200],
                    fallbacks=targets[1:],
                )


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is code or a property."""
    fenced = False
    properties = text.startswith("---\n")
    for place, line in enumerate(text.split("\n")):
        if properties:
            yield line, True
            properties = place == 0 or line.rstrip() != "---"
            continue
        fence = _FENCE.match(line) is not None
        yield line, fenced or fence or len(line) > _MAX_LINE_CHARS
        fenced ^= fence


def _plain(line: str) -> str:
    if not any(mark in line for mark in ("[[", "==", "%%", "[!", "^")):
        return line
    line = _CALLOUT.sub(r"\1", _BLOCK_ID.sub("", line))
    return _outside_code(line, _without_marks)


def _without_marks(part: str) -> str:
    part = _MARKED.sub(r"\1", _COMMENT.sub("", part))
    return _WIKI.sub(_as_link, part)


def _outside_code(line: str, change: Callable[[str], str]) -> str:
    parts = line.split("`")
    return "`".join(part if place % 2 else change(part) for place, part in enumerate(parts))


def _as_link(match: re.Match[str]) -> str:
    target, shown = _target(match[2])
    if target is None:
        return "" if match[1] else shown
    return f"[{shown}]({quote(target)})"


def _target(inner: str) -> tuple[str | None, str]:
    """Return the file of a link, None: no note; and its text."""
    place, _, shown = inner.partition("|")
    # In a table the mark between them is escaped.
    name, _, heading = place.rstrip("\\").partition("#")
    name, shown = name.strip(), shown.strip()
    shown = shown or posixpath.basename(name) or heading.strip("#^ ")
    if not name or _ATTACHMENT.search(name):
        return None, shown
    return name if name.casefold().endswith(".md") else f"{name}.md", shown
