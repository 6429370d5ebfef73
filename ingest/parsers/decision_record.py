"""Decision records (the Nygard and MADR templates and their kin) as a small graph.

One Decision memory; its sections hang on it by PartOf, its consequences by CausedBy, and other
records by Updates, the newer from the older.
"""

from __future__ import annotations

import re
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
    lines,
    summarize,
)
from ingest.parsers.blocks import Block, Section
from ingest.parsers.decision_parts import Anatomy, dissect, is_decision_record, is_field
from ingest.parsers.decision_relations import (
    ACCEPTED,
    DROPPED,
    OPEN,
    Effect,
    Relation,
    body_relations,
    head_relations,
    is_wholly_superseded,
    status_word,
)
from ingest.parsers.front_matter import FrontMatter
from ingest.parsers.naming import document_keys, link_keys
from ingest.parsers.passages import Passage, cut, grouped, packed
from ingest.reasons import Part
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType

__all__ = ["MAX_DECISION_CHARS", "is_decision_record", "parse_decision_record"]

# What of a decision's text goes with its title; the rest hangs on it by PartOf.
MAX_DECISION_CHARS = 2_000

_PLACEHOLDER = re.compile(
    r"(?:tb[acd]|to ?do|n/?a|none|nothing|x+|\W+|to be (?:confirmed|defined|decided|added))\W*",
    re.IGNORECASE,
)
_WEIGHTS: dict[Effect, float] = {"supersedes": 1.0, "amends": 0.6, "supersedes_partly": 0.5}
_STRENGTH: dict[Effect, int] = {"supersedes": 0, "supersedes_partly": 1, "amends": 2}
_LINK_WEIGHT = 0.4


@dataclass(slots=True)
class _Draft:
    path: str
    anatomy: Anatomy
    tags: tuple[str, ...]
    status: MemoryStatus
    main_key: str = ""
    keys: KeySource = field(default_factory=KeySource)
    candidates: list[Candidate] = field(default_factory=list)
    edges: list[CandidateEdge] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def parse_decision_record(
    parts: Sequence[Section], front: FrontMatter, path: str, findings: tuple[Finding, ...] = ()
) -> ParsedDocument:
    """The record as candidates, the decision first.

    The decision is superseded when a status line says that it was replaced as a whole; what was
    replaced in part, amended, rejected or not yet accepted stays active and says so in
    ``attributes.decision_status`` and behind its title.
    """
    anatomy = dissect(parts, front, path)
    word = status_word(anatomy.statuses)
    replaced = any(is_wholly_superseded(line.text) for line in anatomy.statuses)
    tags = ["decision-record", *front.tags]
    if word:
        tags.append(word)
    draft = _Draft(
        path,
        anatomy,
        clean_tags(tags),
        MemoryStatus.SUPERSEDED if replaced else MemoryStatus.ACTIVE,
        findings=list(findings),
    )
    if anatomy.date is None and anatomy.date_text is not None:
        told = {"text": anatomy.date_text}
        draft.findings.append(Finding(Part.DATE_NOT_UNDERSTOOD, details=told))
    _add_decision(draft, word)
    for role, section in anatomy.sections:
        if role in ("context", "other", "preamble", "relation"):
            _add_section(draft, section, role)
        elif role == "consequences":
            _add_consequences(draft, section)
    return ParsedDocument(
        "decision_record",
        tuple(draft.candidates),
        tuple(draft.edges),
        tuple(_links(draft)),
        tuple(draft.findings),
        title=anatomy.title,
        main_key=draft.main_key,
        document_keys=document_keys(path, anatomy.number),
    )


def _add_decision(draft: _Draft, word: str | None) -> None:
    anatomy = draft.anatomy
    blocks = _decision_blocks(draft)
    packs = list(packed(blocks, MAX_DECISION_CHARS))
    open_or_dropped = word is not None and word.casefold() in OPEN | DROPPED | {"deprecated"}
    head = f"{anatomy.title} (status: {word})" if open_or_dropped else anatomy.title
    first = packs[0] if packs else None
    draft.main_key = draft.keys.new()
    attributes: dict[str, object] = {"role": "decision", "title": anatomy.title[:200]}
    if word:
        attributes["decision_status"] = word
        attributes["decision_status_lines"] = [line.text for line in anatomy.statuses][:10]
    if anatomy.number is not None:
        attributes["record_number"] = anatomy.number
    attributes |= {
        name.translate({32: "_", 45: "_"}): value for name, value in anatomy.fields.items()
    }
    importance, confidence = _worth(word, draft.status)
    draft.candidates.append(
        Candidate(
            draft.main_key,
            f"{head}\n\n{first.text}" if first else head,
            first.locator if first else lines(1, 1),
            type=MemoryType.DECISION,
            summary=summarize(f"{head}: {first.text}" if first else head),
            importance=importance,
            confidence=confidence,
            status=draft.status,
            event_time=anatomy.date,
            tags=draft.tags,
            attributes=attributes,
        )
    )
    for passage in packs[1:]:
        _add_part(draft, passage, "decision_detail", "Decision", MemoryType.FACT)


def _decision_blocks(draft: _Draft) -> list[Block]:
    """The decision's blocks with the headings inside it as lines of text."""
    blocks: list[Block] = []
    for place, section in enumerate(draft.anatomy.of("decision")):
        if _is_placeholder(section):
            draft.findings.append(
                Finding(Part.PLACEHOLDER_SECTION, _where(section), {"section": section.title})
            )
            continue
        if place and section.blocks:
            title = section.title
            blocks.append(Block("paragraph", f"{title}:", section.first, section.first))
        blocks.extend(section.blocks)
    return blocks


def _worth(word: str | None, status: MemoryStatus) -> tuple[int, float]:
    """Importance and confidence: a decision that does not stand weighs less."""
    known = (word or "").casefold()
    if status is MemoryStatus.SUPERSEDED:
        return 45, 0.85
    if known in DROPPED or known == "deprecated":
        return 50, 0.85
    if known in OPEN:
        return 60, 0.7
    return (75, 0.9) if known in ACCEPTED else (70, 0.85)


def _add_section(draft: _Draft, section: Section, role: str) -> None:
    blocks = [b for b in section.blocks if not (role == "preamble" and is_field(b))]
    # A list of links has become edges; repeating it as memories would only add noise.
    if role == "relation" and all(block.links or len(block.text) < 40 for block in blocks):
        return
    kind = MemoryType.OBSERVATION if role == "context" else MemoryType.FACT
    for passage in _passages(draft, section, blocks):
        title = section.title if role != "preamble" else "Introduction"
        _add_part(draft, passage, role, title, kind)


def _add_consequences(draft: _Draft, section: Section) -> None:
    for passage in _passages(draft, section, section.blocks):
        key = _candidate(draft, passage, "consequence", section.title, MemoryType.FACT)
        draft.edges.append(
            CandidateEdge(key, draft.main_key, EdgeType.CAUSED_BY, 1.0, "consequence of")
        )


def _passages(draft: _Draft, section: Section, blocks: Sequence[Block]) -> Iterator[Passage]:
    if not blocks:
        return
    if _is_placeholder(section):
        details = {"section": section.title}
        draft.findings.append(Finding(Part.PLACEHOLDER_SECTION, _where(section), details))
        return
    for passage in grouped(blocks, whole_lists=True):
        if any(char.isalnum() for char in passage.text):
            yield from cut(passage, MAX_PASSAGE_CHARS)


def _add_part(draft: _Draft, passage: Passage, role: str, section: str, kind: MemoryType) -> None:
    key = _candidate(draft, passage, role, section, kind)
    draft.edges.append(
        CandidateEdge(key, draft.main_key, EdgeType.PART_OF, 0.8, f"{section} of the record"[:200])
    )


def _candidate(draft: _Draft, passage: Passage, role: str, section: str, kind: MemoryType) -> str:
    key = draft.keys.new()
    # The rest of a replaced decision is replaced with it; its context stays what it was.
    status = draft.status if role == "decision_detail" else MemoryStatus.ACTIVE
    draft.candidates.append(
        Candidate(
            key,
            passage.text,
            passage.locator,
            type=kind,
            summary=summarize(f"{draft.anatomy.title} ({section}): {passage.text}"),
            importance=50 if role in ("consequence", "decision_detail") else 40,
            confidence=0.8,
            status=status,
            event_time=draft.anatomy.date,
            tags=draft.tags[:1],
            attributes={
                "role": role,
                "section": section[:200],
                "record": draft.anatomy.title[:200],
            },
        )
    )
    return key


def _is_placeholder(section: Section) -> bool:
    if len(section.blocks) != 1:
        return False
    text = section.blocks[0].text
    return len(text) < 40 and _PLACEHOLDER.fullmatch(text) is not None


def _where(section: Section) -> str:
    last = section.blocks[-1].last if section.blocks else section.first
    return lines(section.first, last)


def _links(draft: _Draft) -> Iterator[DocumentLink]:
    """Updates for what the record says of others, RelatedTo for links that say nothing."""
    own = set(document_keys(draft.path, draft.anatomy.number))
    strongest: dict[tuple[str, bool], Relation] = {}
    for relation in _relations(draft):
        if relation.targets[0] in own:
            continue
        place = (relation.targets[0], relation.outgoing)
        known = strongest.get(place)
        if known is None or _STRENGTH[relation.effect] < _STRENGTH[known.effect]:
            strongest[place] = relation
    related = {key for relation in strongest.values() for key in relation.targets}
    for relation in strongest.values():
        yield DocumentLink(
            draft.main_key,
            relation.targets[0],
            EdgeType.UPDATES,
            outgoing=relation.outgoing,
            weight=_WEIGHTS[relation.effect],
            reason=relation.reason,
            supersedes=relation.effect == "supersedes",
            fallbacks=relation.targets[1:],
        )
    for _, section in draft.anatomy.sections:
        for block in section.blocks:
            for link in block.links:
                keys = link_keys(link.href, draft.path)
                # A page of the web is no file that could be dropped here.
                if len(keys) < 2 or keys[0] in own or related & set(keys):
                    continue
                related.update(keys)
                yield DocumentLink(
                    draft.main_key,
                    keys[0],
                    EdgeType.RELATED_TO,
                    weight=_LINK_WEIGHT,
                    reason=f"links to {link.label}"[:200] if link.label else None,
                    fallbacks=keys[1:],
                )


def _relations(draft: _Draft) -> Iterator[Relation]:
    anatomy = draft.anatomy
    yield from head_relations([*anatomy.statuses, *anatomy.relations], draft.path)
    for role, section in anatomy.sections:
        if role in ("status", "relation"):
            continue
        for block in section.blocks:
            if block.kind != "code":
                yield from body_relations(block.text, block.links, draft.path)
