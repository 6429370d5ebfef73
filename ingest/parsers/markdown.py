"""Markdown by its structure; decision records and conversations go to their own parsers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ingest.candidates import (
    DocumentLink,
    IngestCandidate,
    KeySource,
    Origin,
    ParsedDocument,
    ParseFinding,
)
from ingest.dates import DateOrder, date_order
from ingest.parsers.blocks import HeadedSection, TextLink, read_blocks, sections
from ingest.parsers.decision_record import is_decision_record, parse_decision_record
from ingest.parsers.file_names import document_keys, link_keys, record_number, title_of
from ingest.parsers.front_matter import FrontMatter, read_front_matter
from ingest.parsers.passages import statements
from ingest.parsers.text import sentence, task
from ingest.parsers.transcript import is_transcript, parse_transcript
from ingest.parsers.vault_notes import (
    LINK_WEIGHT,
    as_markdown,
    has_wiki_links,
    is_note,
    tags_in,
    with_properties,
)
from memgraph.model.enums import EdgeType


@dataclass(slots=True)
class _Draft:
    """A document being assembled."""

    path: str
    front: FrontMatter
    keys: KeySource = field(default_factory=KeySource)
    candidates: list[IngestCandidate] = field(default_factory=list)
    links: list[TextLink] = field(default_factory=list)


def parse_markdown(
    text: str, path: str, findings: tuple[ParseFinding, ...] = (), order: DateOrder | None = None
) -> ParsedDocument:
    """Return task boxes as Todos, the rest as untyped statements; links to other documents as
    edges.

    The first statement represents the document when others link to it.
    """
    note = is_note(text)
    origin: Origin | None = "Obsidian" if note and has_wiki_links(text) else None
    tags = tags_in(text) if note else ()
    text = as_markdown(text) if note else text
    raw_front, blocks = read_blocks(text)
    front = read_front_matter(raw_front).with_tags(tags)
    parsed = _parse(text, sections(blocks), front, path, (*findings, *front.findings), order)
    return replace(with_properties(parsed, front, path), origin=origin)


def _parse(
    text: str,
    parts: Sequence[HeadedSection],
    front: FrontMatter,
    path: str,
    findings: tuple[ParseFinding, ...],
    order: DateOrder | None,
) -> ParsedDocument:
    if is_decision_record(parts, path):
        return parse_decision_record(parts, front, path, findings, date_order([text]) or order)
    if not (front.values or front.findings) and is_transcript(text):
        return parse_transcript(text, path, findings)
    return _parse_document(parts, front, path, findings)


def _parse_document(
    parts: Sequence[HeadedSection],
    front: FrontMatter,
    path: str,
    findings: tuple[ParseFinding, ...],
) -> ParsedDocument:
    draft = _Draft(path, front)
    title = front.title or next((part.title for part in parts if part.level == 1), None)
    for part in parts:
        _add_section(draft, part, title)
    main = draft.candidates[0].key if draft.candidates else None
    return ParsedDocument(
        "markdown",
        tuple(draft.candidates),
        links=tuple(_links(draft, main)) if main else (),
        findings=findings,
        title=title or title_of(path),
        main_key=main,
        document_keys=document_keys(path, record_number(path)),
    )


def _add_section(draft: _Draft, part: HeadedSection, title: str | None) -> None:
    above = (*part.path, part.title) if part.title else part.path
    # The document's own title says nothing about a part of it.
    section = above[1:] if len(above) > 1 else above
    draft.links.extend(part.links)
    for block in part.blocks:
        draft.links.extend(block.links)
    for passage in statements(part.blocks):
        if passage.linked or not any(map(str.isalpha, passage.said)):
            continue
        make = sentence if passage.checked is None else task
        draft.candidates.extend(
            make(
                draft.keys,
                passage,
                event_time=draft.front.event_time,
                tags=draft.front.tags,
                section=section,
                title=title,
            )
        )


def _links(draft: _Draft, main: str) -> Iterator[DocumentLink]:
    taken = set(document_keys(draft.path)[:1])
    for link in draft.links:
        targets = link_keys(link.href, draft.path)
        # A page of the web is no file that could be dropped here.
        if len(targets) < 2 or targets[0] in taken:
            continue
        taken.add(targets[0])
        yield DocumentLink(
            main,
            targets[0],
            EdgeType.RELATED_TO,
            weight=LINK_WEIGHT,
            reason=f"links to {link.label}"[:200] if link.label else None,
            fallbacks=targets[1:],
        )
