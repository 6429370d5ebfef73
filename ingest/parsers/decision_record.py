"""Parse decision records (the Nygard and MADR templates and similar ones) into a small graph.

The decision becomes a Decision memory. Its context and consequences are attached by CausedBy, the
rest of the record by PartOf, and other records by Updates. Nothing but the fields and status lines
of its head is left out; these are attributes of the decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ingest.candidates import (
    IngestCandidate,
    KeySource,
    ParsedDocument,
    ParseFinding,
    clean_tags,
    lines,
    summarize,
)
from ingest.parsers.blocks import Block, FrontMatter, HeadedSection
from ingest.parsers.decision_parts import (
    ACCEPTED,
    DROPPED,
    OPEN,
    RELATION_FIELDS,
    Effect,
    RecordRelation,
    RecordSections,
    Role,
    body_relations,
    dissect,
    head_relations,
    is_decision_heading,
    is_decision_record,
    is_field,
    is_status_block,
    is_wholly_superseded,
    status_word,
)
from ingest.parsers.file_names import document_keys
from ingest.parsers.notes import left_out, linked, links_in, part_of, related_links
from ingest.parsers.passages import Passage, passages, source_width
from ingest.reasons import SkippedPart
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType
from memgraph.model.sources import FileLink
from memgraph.model.values import EdgeInput
from memgraph.text.dates import DateOrder
from memgraph.text.labels import read_label

__all__ = ["MAX_DECISION_CHARS", "is_decision_record", "is_template", "parse_decision_record"]

# The maximum text of the Decision memory; the rest is attached to it by PartOf.
MAX_DECISION_CHARS = 700

_TEMPLATE = re.compile(r"(?:^|[-_./ ])template(?:[-_. ]|$)", re.IGNORECASE)
_WEIGHTS: dict[Effect, float] = {"supersedes": 1.0, "amends": 0.6, "supersedes_partly": 0.5}
_STRENGTH: dict[Effect, int] = {"supersedes": 0, "supersedes_partly": 1, "amends": 2}
_CONSEQUENCE = "consequence"


@dataclass(slots=True)
class _Draft:
    path: str
    anatomy: RecordSections
    source: Sequence[str]
    width: int
    word: str | None
    tags: tuple[str, ...]
    status: MemoryStatus
    main_key: str | None = None
    keys: KeySource = field(default_factory=KeySource)
    candidates: list[IngestCandidate] = field(default_factory=list)
    edges: list[EdgeInput] = field(default_factory=list)
    findings: list[ParseFinding] = field(default_factory=list)

    @property
    def known_status(self) -> str:
        return (self.word or "").casefold()

    @property
    def is_open(self) -> bool:
        return self.known_status in OPEN

    @property
    def is_dropped(self) -> bool:
        return self.known_status in DROPPED


def is_template(path: str) -> bool:
    """Return True for a file that is named as a template, which decides nothing."""
    return _TEMPLATE.search(path.rsplit("/", 1)[-1]) is not None


def parse_decision_record(
    parts: Sequence[HeadedSection],
    source: Sequence[str],
    front: FrontMatter,
    path: str,
    findings: tuple[ParseFinding, ...] = (),
    order: DateOrder | None = None,
) -> ParsedDocument:
    """Parse a record into candidates, the decision first.

    The decision is superseded if a status line says that it was replaced entirely. Decisions that
    were replaced partly, rejected or not accepted yet stay active, with their status in the title
    and in ``attributes.decision_status``.
    """
    anatomy = dissect(parts, front, path, order)
    status_text = status_word(anatomy.statuses)
    replaced = any(is_wholly_superseded(line.text) for line in anatomy.statuses)
    tags = clean_tags(["decision-record", *front.tags, *([status_text] if status_text else [])])
    status = MemoryStatus.SUPERSEDED if replaced else MemoryStatus.ACTIVE
    blocks = [block for part in parts for block in part.blocks]
    width = source_width(blocks, source)
    found = [*findings, *left_out(blocks)]
    draft = _Draft(path, anatomy, source, width, status_text, tags, status, findings=found)
    if anatomy.date is None and anatomy.dates:
        unread = {"text": next(iter(anatomy.dates.values()))[:80]}
        draft.findings.append(ParseFinding(SkippedPart.DATE_NOT_UNDERSTOOD, details=unread))
    _add_decision(draft)
    for role, section in anatomy.sections:
        _add_section(draft, role, section)
    main = draft.main_key or (draft.candidates[0].key if draft.candidates else None)
    return ParsedDocument(
        "decision_record",
        tuple(draft.candidates),
        tuple(draft.edges),
        tuple(_links(draft, main)) if main else (),
        tuple(draft.findings),
        title=anatomy.title,
        main_key=main,
        document_keys=document_keys(path, anatomy.number),
    )


def _add_decision(draft: _Draft) -> None:
    anatomy = draft.anatomy
    decided: list[Passage] = []
    for place, section in enumerate(anatomy.of("decision")):
        found = [each for each in _passages(draft, section.blocks) if _decides(each)]
        if place and not is_decision_heading(section.title):
            found = [replace(each, above=(section.title, *each.above)) for each in found]
        decided += found
    core = _core(decided)
    if not core:
        return
    draft.main_key = draft.keys.new()
    attributes: dict[str, object] = {"role": "decision", "title": anatomy.title[:200]}
    if draft.word:
        attributes["decision_status"] = draft.word
        attributes["decision_status_lines"] = [line.text for line in anatomy.statuses][:10]
    if anatomy.number is not None:
        attributes["record_number"] = anatomy.number
    if anatomy.dates and anatomy.date is None:
        attributes["date_as_written"] = next(iter(anatomy.dates.values()))[:80]
    attributes |= {
        name.translate({32: "_", 45: "_"}): value for name, value in anatomy.fields.items()
    }
    importance, confidence = _importance_and_confidence(draft)
    content = f"{_title(draft)}: {_joined(core)}"
    draft.candidates.append(
        IngestCandidate(
            draft.main_key,
            content,
            lines(core[0].first, max(passage.last for passage in core)),
            type=MemoryType.DECISION,
            summary=summarize(content),
            importance=importance,
            confidence=confidence,
            status=draft.status,
            event_time=anatomy.date,
            tags=draft.tags,
            attributes=attributes,
        )
    )
    for passage in decided[len(core) :]:
        _add(draft, passage, "decision_detail", "proposed detail" if draft.is_open else "detail")


def _passages(draft: _Draft, blocks: Sequence[Block]) -> Iterator[Passage]:
    """Yield passages; text in braces is a placeholder of the template (MADR)."""
    for passage in passages(blocks, draft.source, draft.width):
        if not _is_placeholder(passage):
            yield passage


def _is_placeholder(passage: Passage) -> bool:
    return passage.text.startswith("{") and passage.text.endswith("}")


def _decides(passage: Passage) -> bool:
    """Return True unless a box or a label says that a passage of the decision is something else."""
    label = read_label(passage.text)
    return passage.checked is None and (label is None or label[0] is MemoryType.DECISION)


def _core(decided: Sequence[Passage]) -> Sequence[Passage]:
    """Return the beginning of the decision, as far as one memory holds it."""
    last = min(1, len(decided))
    while (
        last < len(decided)
        and "\n" not in decided[last].text
        and len(_joined(decided[: last + 1])) <= MAX_DECISION_CHARS
    ):
        last += 1
    return decided[:last]


def _joined(passages_: Sequence[Passage]) -> str:
    """Join passages to running text; the line that announces a list is not repeated."""
    text = ""
    before: Passage | None = None
    for passage in passages_:
        same = before is not None and before.above == passage.above
        own = f"{passage.above[-1]}: " if passage.above and not same else ""
        own += passage.text
        if before is None:
            text = own
        elif passage.listed and before.listed and same:
            text = f"{text.rstrip(' .;')}; {own}"
        else:
            text = f"{text} {own}" if text[-1] in ".!?:;…" else f"{text}. {own}"
        before = passage
    return text


def _importance_and_confidence(draft: _Draft) -> tuple[int, float]:
    """Return importance and confidence; they are lower for decisions that are not in force."""
    if draft.status is MemoryStatus.SUPERSEDED:
        return 45, 0.85
    if draft.is_dropped or draft.known_status == "deprecated":
        return 50, 0.85
    if draft.is_open:
        return 60, 0.7
    return (75, 0.9) if draft.known_status in ACCEPTED else (70, 0.85)


def _title(draft: _Draft) -> str:
    status = draft.known_status
    if draft.status is MemoryStatus.SUPERSEDED:
        return f"{draft.anatomy.title} (superseded)"
    if draft.is_open:
        return f"{draft.anatomy.title} ({status.replace('rfc', 'RFC')}, not yet decided)"
    if status and status not in ACCEPTED:
        return f"{draft.anatomy.title} ({status})"
    return draft.anatomy.title


def _add_section(draft: _Draft, role: Role, section: HeadedSection) -> None:
    """Add the passages of a section; what its head says elsewhere is not repeated."""
    if role == "preamble":
        blocks = [block for block in section.blocks if not is_field(block)]
    elif role == "status":
        blocks = [block for block in section.blocks if not is_status_block(block)]
    elif role == "date":
        blocks = list(section.blocks[1:])
    elif role == "relation" and section.title.casefold() in RELATION_FIELDS:
        blocks = [block for block in section.blocks if block.kind == "code"]
    else:
        blocks = list(section.blocks)
    if not blocks and not section.blocks and section.level > 1:
        where = lines(section.first, section.first)
        draft.findings.append(ParseFinding(SkippedPart.EMPTY_SECTION, where))
    for passage in passages(blocks, draft.source, draft.width):
        label = read_label(passage.text)
        if _is_placeholder(passage):
            draft.findings.append(ParseFinding(SkippedPart.PLACEHOLDER, passage.locator))
        elif passage.checked is not None or role == "actions":
            _add_action(draft, passage)
        elif label is not None and label[0] is MemoryType.TODO:
            _add_action(draft, replace(passage, text=label[1]))
        elif role in ("context", "preamble"):
            _add(draft, passage, "context", "context")
        elif role == "drivers":
            _add(draft, passage, "context", section.title.casefold())
        elif role == "consequences":
            _add(draft, passage, _CONSEQUENCE, _kind(draft, section))
        elif role != "decision" or not _decides(passage):
            above = (*section.path, section.title)
            _add(draft, passage, "decision_detail", " / ".join(above[1:] or above))


def _add_action(draft: _Draft, passage: Passage) -> None:
    label = "done" if passage.checked else "open action"
    _add(draft, passage, "decision_detail", label, MemoryType.TODO)
    if passage.checked:
        done = replace(draft.candidates[-1], status=MemoryStatus.SUPERSEDED)
        draft.candidates[-1] = done


def _kind(draft: _Draft, section: HeadedSection) -> str:
    title = section.title.casefold()
    kind = _CONSEQUENCE if title == "consequences" else title
    return f"expected {kind}" if draft.is_open else kind


def _add(
    draft: _Draft,
    passage: Passage,
    role: str,
    label: str,
    kind: MemoryType | None = None,
) -> None:
    """Add a passage of the record, prefixed with its title and linked to the decision."""
    if draft.status is MemoryStatus.SUPERSEDED:
        label = f"superseded, {label}"
    elif draft.is_dropped:
        label = f"{draft.known_status}, {label}"
    text = ": ".join((*passage.above, passage.text))
    content = f"{draft.anatomy.title} ({label}): {text}"
    key = draft.keys.new()
    draft.candidates.append(
        IngestCandidate(
            key,
            content,
            passage.locator,
            type=kind or (MemoryType.OBSERVATION if role == "context" else MemoryType.FACT),
            summary=summarize(content),
            importance=40 if role == "context" else 50,
            confidence=0.8,
            # Details of a replaced decision are superseded with it; its context stays active.
            status=draft.status if role == "decision_detail" else MemoryStatus.ACTIVE,
            event_time=draft.anatomy.date,
            tags=draft.tags[:1],
            attributes={"role": role, "record": draft.anatomy.title[:200], **linked(passage)},
        )
    )
    main = draft.main_key
    if main is None:
        if key != draft.candidates[0].key:
            whole = draft.candidates[0].key
            draft.edges.append(part_of(key, whole, 0.8))
        return
    if role == _CONSEQUENCE:
        ends, weight, reason = (key, main), 1.0, "consequence of the decision"
    elif role == "context":
        ends, weight, reason = (main, key), 0.8, "context of the decision"
    else:
        ends, weight, reason = (key, main), 0.8, f"{label} of the record"[:200]
    draft.edges.append(
        EdgeInput(
            from_id=f"#{ends[0]}",
            to_id=f"#{ends[1]}",
            edge_type=EdgeType.CAUSED_BY if role in (_CONSEQUENCE, "context") else EdgeType.PART_OF,
            weight=weight,
            reason=reason,
        )
    )


def _links(draft: _Draft, main: str) -> Iterator[FileLink]:
    """Yield Updates links for statements about other records, and RelatedTo for plain links."""
    own = set(document_keys(draft.path, draft.anatomy.number))
    strongest: dict[tuple[str, bool], RecordRelation] = {}
    for relation in _relations(draft):
        if relation.targets[0] in own:
            continue
        place = (relation.targets[0], relation.outgoing)
        previous = strongest.get(place)
        if previous is None or _STRENGTH[relation.effect] < _STRENGTH[previous.effect]:
            strongest[place] = relation
    related = {key for relation in strongest.values() for key in relation.targets}
    for relation in strongest.values():
        yield FileLink(
            local=f"#{main}",
            target=relation.targets[0],
            edge_type=EdgeType.UPDATES,
            outgoing=relation.outgoing,
            weight=_WEIGHTS[relation.effect],
            reason=relation.reason,
            partial=relation.effect != "supersedes",
            fallbacks=relation.targets[1:],
        )
    sections = (section for _, section in draft.anatomy.sections)
    yield from related_links(main, draft.path, links_in(sections), (*own, *related))


def _relations(draft: _Draft) -> Iterator[RecordRelation]:
    anatomy = draft.anatomy
    yield from head_relations([*anatomy.statuses, *anatomy.relations], draft.path)
    for role, section in anatomy.sections:
        if role in ("status", "relation"):
            continue
        for block in section.blocks:
            if block.kind != "code":
                yield from body_relations(block.text, block.links, draft.path)
