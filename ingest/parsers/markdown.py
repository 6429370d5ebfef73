"""Parse Markdown by its structure; decision records and transcripts have their own parsers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from ingest.candidates import ParsedDocument
from ingest.parsers.blocks import FrontMatter, read_blocks, read_front_matter
from ingest.parsers.decision_record import is_decision_record, is_template, parse_decision_record
from ingest.parsers.file_names import document_keys, link_keys
from ingest.parsers.notes import LINK_WEIGHT, parse_note
from ingest.parsers.transcript import is_transcript, parse_transcript
from ingest.reasons import SkippedPart
from memgraph.model.enums import EdgeType, MemoryType
from memgraph.model.sources import FileLink
from memgraph.text.blocks import sections


def parse_markdown(document: ParsedDocument) -> None:
    """Add every paragraph, line, list item and table row in order, and links as edges.

    The first passage represents the document when other documents link to it.
    """
    text, tags = document.text, tuple[str, ...]()
    # It may be a note of a vault: it has properties or wiki links.
    if text.startswith("---") or "[[" in text:
        document.origin = "Obsidian" if _WIKI.search(text) else None
        text, tags = _plain_text(document)
    raw_front, blocks = read_blocks(text)
    front = read_front_matter(document, raw_front).with_tags(tags)
    parts, source = sections(blocks), text.split("\n")
    is_record = is_decision_record(parts, front)
    if is_record and not is_template(document.path):
        parse_decision_record(document, parts, source, front)
    elif not (front.values or raw_front.strip()) and is_transcript(text):
        parse_transcript(document, text)
    else:
        parse_note(document, parts, source, front)
        if is_record:
            # A template decides nothing.
            document.candidates = [
                replace(each, type=MemoryType.OBSERVATION) for each in document.candidates
            ]
    _add_properties(document, front)


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


def _plain_text(document: ParsedDocument) -> tuple[str, tuple[str, ...]]:
    """Return a vault's note as plain Markdown, and its ``#tags``; report what is left out."""
    tags: dict[str, None] = {}
    comments = pictures = 0
    plain: list[str] = []
    for line, code in _lines(document.text):
        plain.append(line if code else _plain(line))
        if code:
            continue
        if len(tags) < _MAX_TAGS:
            tags |= dict.fromkeys(
                tag for part in line.split("`")[::2] for tag in _TAG.findall(part)
            )
        comments += len(_COMMENT.findall(line))
        pictures += sum(
            bool(match[1]) and _target(match[2])[0] is None for match in _WIKI.finditer(line)
        )
    document.report(SkippedPart.COMMENT, count=comments)
    document.report(SkippedPart.PICTURE, count=pictures)
    return "\n".join(plain), tuple(tags)


def _add_properties(document: ParsedDocument, front: FrontMatter) -> None:
    """Add a note's aliases as document keys, and the links in its properties."""
    linked = {link.target for link in document.links}
    keys = document.document_keys or document_keys(document.path)
    aliases = (f"name:{alias.casefold()}.md" for alias in front.aliases)
    document.document_keys = tuple(dict.fromkeys((*keys, *aliases)))
    for name, values in front.values.items() if document.candidates else ():
        for match in (match for value in values for match in _WIKI.finditer(value)):
            target, label = _target(match[2])
            targets = link_keys(quote(target), document.path) if target else ()
            if len(targets) > 1 and targets[0] not in (*document.document_keys, *linked):
                document.links.append(
                    FileLink(
                        local=f"#{document.main_key}",
                        target=targets[0],
                        edge_type=EdgeType.RELATED_TO,
                        weight=LINK_WEIGHT,
                        reason=f"{name}: {label}"[:200],
                        fallbacks=targets[1:],
                    )
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
    parts = _CALLOUT.sub(r"\1", _BLOCK_ID.sub("", line)).split("`")
    # Every second part is code.
    parts[::2] = map(_without_marks, parts[::2])
    return "`".join(parts)


def _without_marks(part: str) -> str:
    part = _MARKED.sub(r"\1", _COMMENT.sub("", part))
    return _WIKI.sub(_as_link, part)


def _as_link(match: re.Match[str]) -> str:
    target, label = _target(match[2])
    if target is None:
        return "" if match[1] else label
    return f"[{label}]({quote(target)})"


def _target(inner: str) -> tuple[str | None, str]:
    """Return the file of a link, or None if it is not a note, and the link's text."""
    place, _, label = inner.partition("|")
    # Inside a table the separator is escaped.
    name, _, heading = place.rstrip("\\").partition("#")
    name, label = name.strip(), label.strip()
    label = label or posixpath.basename(name) or heading.strip("#^ ")
    if not name or _ATTACHMENT.search(name):
        return None, label
    return name if name.casefold().endswith(".md") else f"{name}.md", label
