"""Parse decision records (the Nygard and MADR templates and similar ones) into a small graph.

The decision becomes a Decision memory. Its context and consequences are attached by CausedBy, the
rest of the record by PartOf, and other records by Updates. Nothing but the fields and status lines
of its head is left out; these are attributes of the decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ingest.candidates import ParsedDocument, clean_tags, lines, summarize
from ingest.parsers.blocks import FrontMatter
from ingest.parsers.decision_parts import (
    Effect,
    RecordRelation,
    RecordSections,
    Role,
    dissect,
    front_lines,
    is_decision_record,
    is_head,
    relations,
    titled,
)
from ingest.parsers.file_names import document_keys
from ingest.parsers.notes import linked, links_in, related_links, report_left_out
from ingest.parsers.passages import Passage, passages, source_width
from ingest.reasons import SkippedPart
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType
from memgraph.model.sources import FileLink
from memgraph.text.blocks import HeadedSection
from memgraph.text.labels import read_label, type_named

__all__ = ["MAX_DECISION_CHARS", "is_decision_record", "is_template", "parse_decision_record"]

# The maximum text of the Decision memory; the rest is attached to it by PartOf.
MAX_DECISION_CHARS = 700

_TEMPLATE = re.compile(r"(?:^|[-_./ ])template(?:[-_. ]|$)", re.IGNORECASE)
_WEIGHTS: dict[Effect, float] = {"supersedes": 1.0, "amends": 0.6, "supersedes_partly": 0.5}
# How a status in force is written; any other one stands in the title.
_IN_FORCE = frozenset(("accepted", "approved", "agreed", "adopted", "implemented", "decided"))
_CONSEQUENCE = "consequence"


@dataclass(slots=True)
class _Draft:
    document: ParsedDocument
    record: RecordSections
    front: FrontMatter
    source: Sequence[str]
    width: int
    tags: tuple[str, ...]
    status: MemoryStatus = MemoryStatus.ACTIVE

    @property
    def shown_status(self) -> str:
        """The status that stands beside the title: none for a decision in force."""
        if self.status is MemoryStatus.SUPERSEDED:
            return "superseded"
        status = self.record.status or ""
        return "" if status.casefold() in _IN_FORCE else status.lower()


def is_template(path: str) -> bool:
    """Return True for a file that is named as a template, which decides nothing."""
    return _TEMPLATE.search(path.rsplit("/", 1)[-1]) is not None


def parse_decision_record(
    document: ParsedDocument,
    parts: Sequence[HeadedSection],
    source: Sequence[str],
    front: FrontMatter,
) -> None:
    """Add a record's parts, the decision first.

    The decision is superseded if a status line says that it was replaced entirely. Decisions that
    were replaced partly, rejected or not accepted yet stay active, with their status in the title
    and in ``attributes.decision_status``.
    """
    document.format = "decision_record"
    record = dissect(document, parts, front)
    document.title = record.title
    document.document_keys = document_keys(document.path, record.number)
    blocks = [block for part in parts for block in part.blocks]
    tags = clean_tags(["decision-record", *front.tags, *filter(None, [record.status])])
    draft = _Draft(document, record, front, source, source_width(blocks, source), tags)
    report_left_out(document, blocks)
    named = list(_relations(record, front, document.path))
    if record.status == "Superseded" or any(
        relation.effect == "supersedes" and not relation.outgoing for relation in named
    ):
        draft.status = MemoryStatus.SUPERSEDED
    if record.date is None and record.unread_date is not None:
        document.report_date(record.unread_date)
    _add_decision(draft)
    for role, section in record.sections:
        _add_section(draft, role, section)
    for main in document.candidates[:1]:
        document.main_key = main.key
        document.links += _links(draft, main.key, named)


def _add_decision(draft: _Draft) -> None:
    record = draft.record
    decided: list[Passage] = []
    for place, section in enumerate(record.of("decision")):
        found = [
            each
            for each in passages(section.blocks, draft.source, draft.width)
            if not _is_placeholder(each) and _decides(each)
        ]
        if place:
            found = [replace(each, above=(section.title, *each.above)) for each in found]
        decided += found
    core = _core(decided)
    if not core:
        return
    attributes: dict[str, object] = {
        name.replace("-", "_"): ", ".join(values)[:200]
        for name, values in draft.front.others()
        if name != "status"
    }
    attributes |= {"role": "decision", "title": record.title[:200]}
    if record.status:
        attributes["decision_status"] = record.status
        attributes["decision_status_lines"] = [line.text for line in record.statuses][:10]
    if record.number is not None:
        attributes["record_number"] = record.number
    if record.date is None and record.unread_date is not None:
        attributes["date_as_written"] = record.unread_date
    importance, confidence = _importance_and_confidence(draft)
    status = f" ({draft.shown_status})" if draft.shown_status else ""
    content = f"{record.title}{status}: {_joined(core)}"
    decision = draft.document.add(
        content,
        lines(core[0].first, max(passage.last for passage in core)),
        type=MemoryType.DECISION,
        summary=summarize(content),
        importance=importance,
        confidence=confidence,
        status=draft.status,
        event_time=record.date,
        tags=draft.tags,
        attributes=attributes,
    )
    draft.document.main_key = decision.key
    for passage in decided[len(core) :]:
        _add(draft, passage, "decision_detail", "detail")


def _is_placeholder(passage: Passage) -> bool:
    """Return True for text in braces, as in MADR's template."""
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
    # The rest of a partly superseded decision is in force.
    if draft.shown_status and "superseded" not in draft.shown_status:
        return 60, 0.7
    return (75, 0.9) if draft.record.status and not draft.shown_status else (70, 0.85)


def _add_section(draft: _Draft, role: Role, section: HeadedSection) -> None:
    """Add the passages of a section; what its head says elsewhere is not repeated."""
    report = draft.document.report
    blocks = [block for block in section.blocks if not is_head(block, role)]
    if not blocks and not section.blocks and section.level > 1:
        report(SkippedPart.EMPTY_SECTION, lines(section.first, section.first))
    for passage in passages(blocks, draft.source, draft.width):
        label = read_label(passage.text)
        if _is_placeholder(passage):
            report(SkippedPart.PLACEHOLDER, passage.locator)
        elif passage.checked is not None or type_named(section.title) is MemoryType.TODO:
            _add_action(draft, passage)
        elif label is not None and label[0] is MemoryType.TODO:
            _add_action(draft, replace(passage, text=label[1]))
        elif role in ("context", "preamble"):
            _add(draft, passage, "context", "context")
        elif role == "drivers":
            _add(draft, passage, "context", section.title.casefold())
        elif role == "consequences":
            title = section.title.casefold()
            _add(draft, passage, _CONSEQUENCE, _CONSEQUENCE if title == "consequences" else title)
        elif role != "decision" or not _decides(passage):
            above = (*section.path, section.title)
            _add(draft, passage, "decision_detail", " / ".join(above[1:] or above))


def _add_action(draft: _Draft, passage: Passage) -> None:
    label = "done" if passage.checked else "open action"
    status = MemoryStatus.SUPERSEDED if passage.checked else draft.status
    _add(draft, passage, "decision_detail", label, type=MemoryType.TODO, status=status)


def _add(draft: _Draft, passage: Passage, role: str, label: str, **fields: Any) -> None:
    """Add a passage of the record, prefixed with its title and linked to the decision.

    Args:
        fields: the type and the status, if they are not those of the role.
    """
    if draft.shown_status:
        label = f"{draft.shown_status}, {label}"
    text = ": ".join((*passage.above, passage.text))
    document, title = draft.document, draft.record.title
    content = f"{title} ({label}): {text}"
    is_context, is_detail = role == "context", role == "decision_detail"
    defaults = {
        "type": MemoryType.OBSERVATION if is_context else MemoryType.FACT,
        # Details of a replaced decision are superseded with it; its context stays active.
        "status": draft.status if is_detail else MemoryStatus.ACTIVE,
    }
    part = document.add(
        content,
        passage.locator,
        summary=summarize(content),
        importance=40 if is_context else 50,
        confidence=0.8,
        event_time=draft.record.date,
        tags=draft.tags[:1],
        attributes={"role": role, "record": title[:200], **linked(passage)},
        **defaults | fields,
    )
    main = document.main_key
    if main is None:
        if part is not document.candidates[0]:
            document.join(part.key, document.candidates[0].key, EdgeType.PART_OF, 0.8)
    elif role == _CONSEQUENCE:
        document.join(part.key, main, EdgeType.CAUSED_BY, 1.0, "consequence of the decision")
    elif is_context:
        document.join(main, part.key, EdgeType.CAUSED_BY, 0.8, "context of the decision")
    else:
        document.join(part.key, main, EdgeType.PART_OF, 0.8, f"{label} of the record"[:200])


def _links(draft: _Draft, main: str, named: Sequence[RecordRelation]) -> Iterator[FileLink]:
    """Yield Updates links for statements about other records, and RelatedTo for plain links."""
    path, own = draft.document.path, set(draft.document.document_keys)
    strongest: dict[tuple[str, bool], RecordRelation] = {}
    for relation in sorted(named, key=lambda each: -_WEIGHTS[each.effect]):
        if relation.targets[0] not in own:
            strongest.setdefault((relation.targets[0], relation.outgoing), relation)
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
    sections = (section for _, section in draft.record.sections)
    yield from related_links(main, path, links_in(sections), (*own, *related))


def _relations(record: RecordSections, front: FrontMatter, path: str) -> Iterator[RecordRelation]:
    for name in front.values:
        for line in front_lines(front, name) if name != "status" else ():
            text = f"{name.replace('-', ' ')} {line.text}"
            yield from relations(text, line.links, path, numbers=True)
    for line in record.statuses:
        yield from relations(line.text, line.links, path, numbers=True)
    for role, section in record.sections:
        named = titled(section)
        for block in named.blocks if role != "status" else ():
            if block.kind != "code":
                numbers = named is not section
                yield from relations(block.text, block.links, path, numbers=numbers)
