"""Parse decision records (the Nygard and MADR templates and similar ones) into a small graph.

The decision becomes a Decision memory. Reasons and consequences are attached by CausedBy, options
by PartOf, and other records by Updates. A record without the text of a decision has no Decision
memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ingest.candidates import (
    CandidateEdge,
    DocumentLink,
    IngestCandidate,
    KeySource,
    ParsedDocument,
    ParseFinding,
    clean_tags,
    lines,
    summarize,
)
from ingest.parsers.blocks import FrontMatter, HeadedSection
from ingest.parsers.decision_parts import (
    ACCEPTED,
    DROPPED,
    OPEN,
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
    is_wholly_superseded,
    option_name,
    status_word,
)
from ingest.parsers.file_names import document_keys, link_keys
from ingest.parsers.passages import MAX_JOINED_CHARS, Passage, statements
from ingest.reasons import SkippedPart
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType
from memgraph.text.dates import DateOrder
from memgraph.text.statement_forms import (
    hangs,
    is_complete,
    is_instruction,
    is_placeholder,
    points_elsewhere,
    type_of,
)

__all__ = ["MAX_DECISION_CHARS", "is_decision_record", "parse_decision_record"]

# The maximum text of the Decision memory; the rest is attached to it by PartOf.
MAX_DECISION_CHARS = 700
# The number of statements kept from each kind of section; the first are the most important.
_MOST: dict[Role, int] = {"context": 4, "drivers": 2, "consequences": 7, "other": 4}
_MAX_DETAILS = 6
_MAX_OPTIONS = 8

_GOOD = re.compile(r"positive|advantage|benefit|pros\b|good", re.IGNORECASE)
_BAD = re.compile(r"negative|disadvantage|drawback|downside|cons\b|bad", re.IGNORECASE)
_RISK = re.compile(r"risk", re.IGNORECASE)
_SEE = re.compile(
    r"\s*\((?:(?:see|cf\.?)\s[^()]{0,80}|[^()]{0,60}\b(?:above|below))\)", re.IGNORECASE
)
_CHOSEN = re.compile(r"\bchosen option: [\"“']?([^\"”\n]{1,120}?)[\"”']?(?:,|\.(?:\s|$)|$)", re.I)
_LINK_ONLY = re.compile(r"\W*(?:\w+(?: \w+){0,4}:\s*)?<?(?:https?://|www\.)\S+\W*")
_ABOUT_RECORD = re.compile(
    r"^how to\b|\bthis (?:adr|decision record|record|document|rfc|proposal)\b"
    r"|^we (?:now )?(?:need|have|want) to (?:decide|choose|determine|agree)\b"
    r"|\b(?:needs?|has) to be (?:decided|made)\b|\bpoint of debate\b|\bhere\.$",
    re.IGNORECASE,
)
_META = re.compile(r"\bthis (?:adr|decision record|document)\b|\bhere\.$", re.IGNORECASE)
_WITHOUT_BEGINNING = re.compile(r"(?:where:|they|these|it|its|e\.g)\b", re.IGNORECASE)
_TEMPLATE = re.compile(r"(?:^|[-_./ ])template(?:[-_. ]|$)", re.IGNORECASE)
_WEIGHTS: dict[Effect, float] = {"supersedes": 1.0, "amends": 0.6, "supersedes_partly": 0.5}
_STRENGTH: dict[Effect, int] = {"supersedes": 0, "supersedes_partly": 1, "amends": 2}
_LINK_WEIGHT = 0.4


@dataclass(slots=True)
class _Draft:
    path: str
    anatomy: RecordSections
    word: str | None
    tags: tuple[str, ...]
    status: MemoryStatus
    main_key: str | None = None
    keys: KeySource = field(default_factory=KeySource)
    candidates: list[IngestCandidate] = field(default_factory=list)
    edges: list[CandidateEdge] = field(default_factory=list)
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


def parse_decision_record(
    parts: Sequence[HeadedSection],
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
    draft = _Draft(path, anatomy, status_text, tags, status, findings=list(findings))
    if anatomy.date is None and anatomy.dates:
        unread = {"text": next(iter(anatomy.dates.values()))[:80]}
        draft.findings.append(ParseFinding(SkippedPart.DATE_NOT_UNDERSTOOD, details=unread))
    if not _TEMPLATE.search(path.rsplit("/", 1)[-1]):
        _add_decision(draft)
        for role, section in anatomy.sections:
            _add_section(draft, role, section)
        _add_options(draft)
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
    passages: list[Passage] = []
    for place, section in enumerate(anatomy.of("decision")):
        usable = _usable(draft, section, statements(section.blocks), min_words=1)
        if place and usable and not usable[0].lead and not is_decision_heading(section.title):
            usable[0] = replace(usable[0], lead=f"{section.title}:")
        passages.extend(usable)
    decided = [passage for passage in passages if not _META.search(passage.said)]
    while decided and _WITHOUT_BEGINNING.match(decided[0].text):
        del decided[0]
    passages = decided or passages
    if not passages:
        return
    first, last = _core(passages)
    text = _joined(passages[first:last])
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
    content = f"{_title(draft)}: {text}"
    draft.candidates.append(
        IngestCandidate(
            draft.main_key,
            content,
            lines(passages[first].first, max(passage.last for passage in passages[first:last])),
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
    if draft.is_dropped:
        return
    rest = [detail for detail in (*passages[:first], *passages[last:]) if _stands(detail)]
    for passage in rest[:_MAX_DETAILS]:
        label = "proposed detail" if draft.is_open else "detail"
        _add(draft, passage.text, passage.locator, "decision_detail", label)


def _core(passages: Sequence[Passage]) -> tuple[int, int]:
    """Return the range of the decision's statements: all, or those from the deciding one on."""
    if len(_joined(passages)) <= MAX_DECISION_CHARS:
        return 0, len(passages)
    decided = (
        at
        for at, passage in enumerate(passages)
        if _decides(passage.said) or _decides(passage.lead)
    )
    first = next(decided, 0)
    while first and passages[first].hangs and not passages[first].listed:
        first -= 1
    last = first + 1
    while last < len(passages) and len(_joined(passages[first : last + 1])) <= MAX_DECISION_CHARS:
        last += 1
    return first, last


def _decides(text: str) -> bool:
    if not text or re.search(r"\bagainst (?:this|that|it)\b", text):
        return False
    return type_of(text, decides=True) is MemoryType.DECISION


def _joined(passages: Sequence[Passage]) -> str:
    """Join statements to running text; the introduction of a list is not repeated."""
    parts: list[str] = []
    lead = ""
    for passage in passages:
        own = _SEE.sub("", passage.said)
        if passage.lead and passage.lead == lead:
            parts[-1] = parts[-1].rstrip(" .;") + "; "
            parts.append(own)
        else:
            parts.append(_SEE.sub("", passage.text))
        closed = parts[-1].rstrip()[-1:] in ".!?:;…"
        parts[-1] += " " if closed else ". "
        lead = passage.lead
    return "".join(parts).strip()


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
    blocks = [block for block in section.blocks if role != "preamble" or not is_field(block)]
    if role in ("context", "preamble"):
        passages = [
            passage
            for passage in _usable(draft, section, statements(blocks))
            if _is_context(passage)
        ]
        for passage in passages[: _MOST["context"]]:
            _add(draft, passage.text, passage.locator, "context", "context")
    elif role == "drivers":
        passages = list(_usable(draft, section, statements(blocks)))
        for text, where in _packed(passages, _MOST["drivers"]):
            _add(draft, text, where, "context", section.title.casefold())
    elif role == "consequences" and not draft.is_dropped:
        passages = [
            passage
            for passage in _usable(draft, section, statements(blocks))
            if _is_consequence(passage)
        ]
        for passage in passages[: _MOST["consequences"]]:
            _add(draft, passage.text, passage.locator, "consequence", _kind(draft, section))
    elif role == "actions":
        _add_actions(draft, statements(blocks))
    elif role == "other" and not draft.is_dropped:
        passages = [
            passage for passage in _usable(draft, section, statements(blocks)) if _stands(passage)
        ]
        for passage in passages[: _MOST["other"]]:
            _add(draft, passage.text, passage.locator, "decision_detail", section.title)


def _add_actions(draft: _Draft, passages: Iterable[Passage]) -> None:
    """Add the open task boxes of a list of actions as Todos."""
    for passage in passages:
        if (
            passage.checked is False
            and len(passage.said.split()) > 2
            and not is_placeholder(passage.said)
        ):
            _add(
                draft,
                passage.said,
                passage.locator,
                "decision_detail",
                "open action",
                MemoryType.TODO,
            )


def _add_options(draft: _Draft) -> None:
    """Add the arguments for and against each option, or else the list of options."""
    listed: list[Passage] = []
    about: dict[str, list[tuple[str, Passage]]] = {}
    for section in draft.anatomy.of("options"):
        name = option_name(section)
        # In a plain list of options, nested items are left out.
        blocks = [block for block in section.blocks if name or block.level <= 1]
        passages = _usable(draft, section, statements(blocks))
        if name is None:
            listed.extend(passage for passage in passages if passage.listed)
            continue
        heading = section.title if _GOOD.search(section.title) or _BAD.search(section.title) else ""
        about.setdefault(name, []).extend((heading, passage) for passage in passages)
    chosen = _chosen(draft)
    for name, arguments in list(about.items())[:_MAX_OPTIONS]:
        kind = "option considered"
        if chosen:
            kind = "chosen option" if _same(name, chosen) else "option not chosen"
        for text, where in _packed(
            [passage for _, passage in arguments], 1, [mark for mark, _ in arguments]
        ):
            _add(draft, text, where, "decision_detail", f"{kind}: {name}")
    if listed and not about:
        for text, where in _packed(listed, 1):
            _add(draft, text, where, "decision_detail", "options considered")


def _chosen(draft: _Draft) -> str | None:
    """Return the chosen option that the decision names (MADR)."""
    if draft.main_key is None:
        return None
    match = _CHOSEN.search(draft.candidates[0].content)
    return match[1] if match else None


def _same(name: str, chosen: str) -> bool:
    left, right = (re.sub(r"\W+", " ", text).casefold().strip() for text in (name, chosen))
    return left == right or left.endswith(f" {right}") or right.endswith(f" {left}")


def _packed(
    passages: Sequence[Passage], limit: int, marks: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Combine statements into few texts of bounded length; yield each with its lines."""
    pending: list[Passage] = []
    text = mark = ""
    count = 0
    for at, passage in enumerate(passages):
        repeated = pending and passage.lead and passage.lead == pending[-1].lead
        own = (passage.said if repeated else passage.text).rstrip(" .;,")
        if marks and marks[at] and marks[at] != mark:
            mark, own = marks[at], f"{marks[at]}: {own}"
        joint = ". " if pending and not passage.listed else "; "
        if pending and len(text) + len(own) > MAX_JOINED_CHARS:
            yield f"{text}.", lines(pending[0].first, pending[-1].last)
            pending, text, count = [], "", count + 1
            if count == limit:
                return
        text = f"{text}{joint}{own}" if pending else own
        pending.append(passage)
    if pending:
        yield f"{text}.", lines(pending[0].first, pending[-1].last)


def _usable(
    draft: _Draft, section: HeadedSection, passages: Iterable[Passage], *, min_words: int = 3
) -> list[Passage]:
    """Return the passages that are not template text, bare links or task boxes."""
    usable: list[Passage] = []
    options = list(draft.anatomy.of("options"))
    for passage in passages:
        if is_placeholder(passage.said):
            details = {"section": section.title}
            draft.findings.append(
                ParseFinding(SkippedPart.PLACEHOLDER_SECTION, passage.locator, details)
            )
        elif (
            passage.checked is None
            and _says_something(passage, min_words)
            and not (passage.linked and section not in options)
        ):
            usable.append(passage)
    return usable


def _says_something(passage: Passage, min_words: int) -> bool:
    words = re.findall(r"[^\W\d_]{2,}", passage.said)
    if not words or _LINK_ONLY.fullmatch(passage.said) or passage.said.endswith((":", "?")):
        return False
    return passage.listed or len(words) >= min_words


def _is_context(passage: Passage) -> bool:
    return _stands(passage) and not _ABOUT_RECORD.search(passage.text)


def _stands(passage: Passage) -> bool:
    """Return True if a statement is understandable with only the record's title."""
    return (
        not passage.hangs
        and not hangs(passage.said)
        and is_complete(passage.text)
        and not points_elsewhere(passage.text)
        and (bool(passage.lead) or not is_instruction(passage.said))
    )


def _is_consequence(passage: Passage) -> bool:
    """Like ``_stands``, but "this" may refer to the decision, and items need no verb."""
    if points_elsewhere(passage.text) or len(passage.text.split()) < 3:
        return False
    if passage.opens and re.match(r"(?:\w+ ){0,2}(?:this|it)\b", passage.text, re.IGNORECASE):
        return is_complete(passage.text)
    complete = passage.listed or is_complete(passage.text)
    return complete and not passage.hangs and not hangs(passage.said)


def _kind(draft: _Draft, section: HeadedSection) -> str:
    kinds = (("drawback", _BAD), ("advantage", _GOOD), ("risk", _RISK))
    matches = (kind for kind, names in kinds if names.search(section.title))
    kind = next(matches, "consequence")
    return f"expected {kind}" if draft.is_open else kind


def _add(
    draft: _Draft,
    text: str,
    where: str,
    role: str,
    label: str,
    kind: MemoryType | None = None,
) -> None:
    """Add a statement of the record, prefixed with its title and linked to the decision."""
    if draft.status is MemoryStatus.SUPERSEDED:
        label = f"superseded, {label}"
    content = f"{draft.anatomy.title} ({label}): {_SEE.sub('', text)}"
    key = draft.keys.new()
    draft.candidates.append(
        IngestCandidate(
            key,
            content,
            where,
            type=kind or (MemoryType.OBSERVATION if role == "context" else MemoryType.FACT),
            summary=summarize(content),
            importance=40 if role == "context" else 50,
            confidence=0.8,
            # Details of a replaced decision are superseded with it; its context stays active.
            status=draft.status if role == "decision_detail" else MemoryStatus.ACTIVE,
            event_time=draft.anatomy.date,
            tags=draft.tags[:1],
            attributes={"role": role, "record": draft.anatomy.title[:200]},
        )
    )
    main = draft.main_key
    if main is None:
        return
    if role == "consequence":
        edge = CandidateEdge(key, main, EdgeType.CAUSED_BY, 1.0, "consequence of the decision")
    elif role == "context":
        edge = CandidateEdge(main, key, EdgeType.CAUSED_BY, 0.8, "context of the decision")
    else:
        edge = CandidateEdge(key, main, EdgeType.PART_OF, 0.8, f"{label} of the record"[:200])
    draft.edges.append(edge)


def _links(draft: _Draft, main: str) -> Iterator[DocumentLink]:
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
        yield DocumentLink(
            main,
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
                # A web page is not a file that could be ingested.
                if len(keys) < 2 or keys[0] in own or related & set(keys):
                    continue
                related.update(keys)
                yield DocumentLink(
                    main,
                    keys[0],
                    EdgeType.RELATED_TO,
                    weight=_LINK_WEIGHT,
                    reason=f"links to {link.label}"[:200] if link.label else None,
                    fallbacks=keys[1:],
                )


def _relations(draft: _Draft) -> Iterator[RecordRelation]:
    anatomy = draft.anatomy
    yield from head_relations([*anatomy.statuses, *anatomy.relations], draft.path)
    for role, section in anatomy.sections:
        if role in ("status", "relation"):
            continue
        for block in section.blocks:
            if block.kind != "code":
                yield from body_relations(block.text, block.links, draft.path)
