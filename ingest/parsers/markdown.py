"""Markdown by its structure; decision records and conversations go to their own parsers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ingest.candidates import (
    MAX_PASSAGE_CHARS,
    Candidate,
    CandidateEdge,
    DocumentLink,
    Finding,
    KeySource,
    ParsedDocument,
    clean_tags,
)
from ingest.parsers.blocks import Block, Link, Section, read_blocks, sections
from ingest.parsers.decision_record import is_decision_record, parse_decision_record
from ingest.parsers.front_matter import FrontMatter, read_front_matter
from ingest.parsers.naming import document_keys, link_keys, record_number, title_of
from ingest.parsers.passages import Passage, cut, grouped
from ingest.parsers.text import sentence_candidates, task
from ingest.parsers.transcript import is_transcript, parse_transcript
from memgraph.model.enums import EdgeType, MemoryType

_LINK_WEIGHT = 0.4
_PART_WEIGHT = 0.6


@dataclass(slots=True)
class _Draft:
    """The document while it is put together."""

    path: str
    front: FrontMatter
    keys: KeySource = field(default_factory=KeySource)
    candidates: list[Candidate] = field(default_factory=list)
    edges: list[CandidateEdge] = field(default_factory=list)
    links: list[DocumentLink] = field(default_factory=list)
    linked: set[str] = field(default_factory=set)


def parse_markdown(text: str, path: str, findings: tuple[Finding, ...] = ()) -> ParsedDocument:
    """Task boxes as Todos, code and tables whole with the line before them, the rest as untyped
    sentences; all of them PartOf one memory that stands for the document."""
    raw_front, blocks = read_blocks(text)
    front = read_front_matter(raw_front)
    findings += front.findings
    parts = sections(blocks)
    if is_decision_record(parts, path):
        return parse_decision_record(parts, front, path, findings)
    if not raw_front and is_transcript(text):
        return parse_transcript(text, path, findings)
    return _parse_document(parts, front, path, findings)


def _parse_document(
    parts: Sequence[Section], front: FrontMatter, path: str, findings: tuple[Finding, ...]
) -> ParsedDocument:
    draft = _Draft(path, front)
    title = front.title or next((part.title for part in parts if part.level == 1), None)
    title = title or title_of(path)
    main = _document_memory(draft, title, parts)
    for part in parts:
        _add_section(draft, part, main.key)
    if draft.candidates:
        draft.candidates.insert(0, main)
    return ParsedDocument(
        "markdown",
        tuple(draft.candidates),
        tuple(draft.edges),
        tuple(draft.links),
        findings,
        title=title,
        main_key=main.key if draft.candidates else None,
        document_keys=document_keys(path, record_number(path)),
    )


def _document_memory(draft: _Draft, title: str, parts: Sequence[Section]) -> Candidate:
    headings = [part.title for part in parts if part.title and part.title != title]
    about = f"Document: {title}"
    if headings:
        about += "\nSections: " + "; ".join(headings)
    return Candidate(
        draft.keys.new(),
        about[:MAX_PASSAGE_CHARS],
        "L1-L1",
        type=MemoryType.OBSERVATION,
        importance=30,
        confidence=0.9,
        event_time=draft.front.event_time,
        tags=clean_tags(("document", *draft.front.tags)),
        attributes={"title": title[:200]},
    )


def _add_section(draft: _Draft, part: Section, main_key: str) -> None:
    above = (*part.path, part.title) if part.title else part.path
    # The document's own title says nothing about a part of it.
    section = above[1:] if above and len(above) > 1 else above
    _add_links(draft, main_key, part.links)
    for passage in _separate(part.blocks):
        made = list(_candidates_of(draft, passage, section))
        draft.candidates.extend(made)
        draft.edges.extend(
            CandidateEdge(each.key, main_key, EdgeType.PART_OF, _PART_WEIGHT) for each in made
        )
        # Which sentence survives typing is not known yet: the document is what links.
        _add_links(draft, main_key, passage.links)


def _separate(blocks: Sequence[Block]) -> Iterator[Passage]:
    """Groups of blocks, each cut to the size of a memory."""
    for passage in grouped(blocks):
        if passage.prose:
            yield passage
        else:
            yield from cut(passage, MAX_PASSAGE_CHARS)


def _candidates_of(
    draft: _Draft, passage: Passage, section: tuple[str, ...]
) -> Iterator[Candidate]:
    tags = draft.front.tags
    when = draft.front.event_time
    where = passage.locator
    if passage.checked is not None:
        yield task(
            draft.keys,
            passage.text,
            where,
            done=passage.checked,
            event_time=when,
            tags=tags,
            section=section,
        )
    elif passage.prose:
        yield from sentence_candidates(
            draft.keys, passage.text, where, event_time=when, tags=tags, section=section
        )
    elif any(char.isalnum() for char in passage.text):
        yield Candidate(
            draft.keys.new(),
            passage.text if passage.led or not section else f"{section[-1]}:\n{passage.text}",
            where,
            type=MemoryType.FACT,
            confidence=0.8,
            event_time=when,
            tags=tags,
            attributes={"section": " / ".join(section)} if section else {},
        )


def _add_links(draft: _Draft, main_key: str, found: Sequence[Link]) -> None:
    own = document_keys(draft.path)
    for link in found:
        targets = link_keys(link.href, draft.path)
        # A page of the web is no file that could be dropped here.
        if len(targets) < 2 or targets[0] in draft.linked or targets[0] in own:
            continue
        draft.linked.add(targets[0])
        draft.links.append(
            DocumentLink(
                main_key,
                targets[0],
                EdgeType.RELATED_TO,
                weight=_LINK_WEIGHT,
                reason=f"links to {link.label}"[:200] if link.label else None,
                fallbacks=targets[1:],
            )
        )
