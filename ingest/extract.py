"""Extraction: give each sentence a memory type by its form, or drop and count it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ingest.candidates import (
    MAX_CONFIDENCE,
    MAX_IMPORTANCE,
    CandidateEdge,
    DocumentLink,
    IngestCandidate,
    ParsedDocument,
    ParseFinding,
)
from ingest.reasons import SkippedPart
from memgraph.errors import InvalidInput
from memgraph.model.columns import DEFAULT_IMPORTANCE
from memgraph.model.enums import (
    CapturedBy,
    EdgeType,
    MemoryKind,
    MemoryType,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.model.sources import Document, FileLink
from memgraph.model.values import MAX_NAME_CHARS, EdgeInput, MemoryInput, Source, validated
from memgraph.text.statement_forms import (
    addresses_model,
    ground_of,
    is_rule,
    stands_alone,
    type_of,
    without_label,
)

# The confidence in a sentence whose form shows its type.
_SURE = 0.85
_GROUND = MemoryType.OBSERVATION
# A sentence that begins like this is about the subject of its document.
_GENERIC = re.compile(
    r"(?:we|our|by default|(?:the|this|each|every|all|any)(?: [\w-]+)?"
    r" (?:components?|librar(?:y|ies)|modules?|packages?|tools?|services?|servers?|clients?|apps?|"
    r"applications?|systems?|projects?|repositor(?:y|ies)|defaults?|directory|folder|scripts?|apis?|"
    r"cli|commands?|plugins?|class(?:es)?|functions?|methods?|tests?|configuration|config|options?|"
    r"settings?|parameters?|docs|documentation|code|codebase|implementation|interface|format|"
    r"database|schema|pipeline|workflow|process|team|decisions?|records?))\b",
    re.IGNORECASE,
)
# Titles that name a kind of page instead of a subject.
_NO_SUBJECT = re.compile(
    r"\b(?:notes?|readme|journal|logs?|misc|meetings?|to-?dos?|diary|minutes|untitled|index|plans?|"
    r"introduction|overview|document|draft|page|inbox|agenda|daily|memo|facts|people|about|list|"
    r"install(?:ation)?|set-?up|usage|guide|changelog|getting started|contributing|faq)\b"
    r"|^[\W\d]*$",
    re.IGNORECASE,
)


def extract(document: ParsedDocument) -> ParsedDocument:
    """Give every candidate a type, and limit its importance and confidence.

    A sentence that cannot be understood alone is dropped with its edges. A standing rule is kept as
    a quotation of the document. The reason of a decision ("because") becomes its evidence. A file
    cannot define an Identity: it becomes a Fact. The findings count what was dropped or changed.
    """
    typed_candidates: list[IngestCandidate] = []
    edges: list[CandidateEdge] = []
    lowered = dropped = 0
    for candidate in document.candidates:
        typed = candidate if candidate.type is not None else _typed(candidate, document.title)
        if typed is None:
            dropped += 1
            continue
        if typed.type is MemoryType.IDENTITY:
            lowered += 1
            typed = replace(typed, type=MemoryType.FACT)
        typed_candidates.append(_bounded(typed))
        ground = ground_of(typed.content) if typed.type is MemoryType.DECISION else None
        if ground is not None and document.format != "decision_record" and candidate.type is None:
            key = f"{typed.key}.ground"
            typed_candidates.append(
                _bounded(replace(candidate, key=key, content=ground, type=_GROUND))
            )
            edges.append(CandidateEdge(typed.key, key, EdgeType.CAUSED_BY, 1.0, "because"))
    document = replace(document, edges=(*document.edges, *edges))
    findings = list(document.findings)
    if dropped:
        findings.append(ParseFinding(SkippedPart.NOT_TYPED, count=dropped))
    if lowered:
        findings.append(ParseFinding(SkippedPart.IDENTITY_LOWERED, count=lowered))
    return _without_dropped(replace(document, findings=tuple(findings)), typed_candidates)


def _typed(candidate: IngestCandidate, title: str | None) -> IngestCandidate | None:
    text = candidate.content
    if addresses_model(text):
        return None
    if is_rule(text):
        quoted = f"{title}: “{text}”" if title else f"“{text}”"
        return replace(candidate, type=MemoryType.FACT, content=quoted)
    section = str(candidate.attributes.get("section", ""))
    kind = type_of(text, decides="decision" in section.casefold())
    if kind is not MemoryType.TODO and not stands_alone(text):
        return None
    if kind is not MemoryType.FACT:
        # The type carries the label.
        return replace(
            candidate,
            type=kind,
            content=without_label(text),
            confidence=max(candidate.confidence, _SURE),
        )
    about = str(candidate.attributes.get("title", ""))
    return replace(candidate, type=kind, content=_with_subject(text, about))


def _with_subject(text: str, title: str) -> str:
    """Put the document's title before a sentence that lacks a subject."""
    words = set(re.findall(r"[^\W_]+", text.casefold()))
    subject = set(re.findall(r"[^\W_]{4,}", title.casefold()))
    if not subject or subject & words or _NO_SUBJECT.search(title) or len(title) > 80:
        return text
    return f"{title}: {text}" if _GENERIC.match(text) else text


def _bounded(candidate: IngestCandidate) -> IngestCandidate:
    importance = candidate.importance
    if importance is None:
        importance = DEFAULT_IMPORTANCE[candidate.type or MemoryType.FACT]
    return replace(
        candidate,
        importance=min(max(importance, 0), MAX_IMPORTANCE),
        confidence=min(max(candidate.confidence, 0.0), MAX_CONFIDENCE),
    )


def _without_dropped(
    document: ParsedDocument, candidates: Sequence[IngestCandidate]
) -> ParsedDocument:
    """Return the document with only these candidates.

    If its main memory was dropped, the first candidate takes its place.
    """
    keys = {candidate.key for candidate in candidates}
    main = document.main_key if document.main_key in keys else None
    if main is None and candidates:
        main = candidates[0].key
    findings = document.findings
    if not candidates and not any(
        finding.code is SkippedPart.NOTHING_EXTRACTED for finding in findings
    ):
        findings = (*findings, ParseFinding(SkippedPart.NOTHING_EXTRACTED))
    return replace(
        document,
        candidates=tuple(candidates),
        edges=tuple(e for e in document.edges if e.from_key in keys and e.to_key in keys),
        links=_links_of(document, keys, main),
        findings=findings,
        main_key=main,
    )


def _links_of(
    document: ParsedDocument, keys: set[str], main: str | None
) -> tuple[DocumentLink, ...]:
    """Return the links of the remaining memories; a dropped main memory's go to the new one."""
    return tuple(
        link if link.local_key in keys else replace(link, local_key=main)
        for link in document.links
        if main is not None and (link.local_key in keys or link.local_key == document.main_key)
    )


def to_memories(
    parsed: ParsedDocument, *, sha256: str, source_path: str
) -> tuple[tuple[MemoryInput, ...], tuple[ParseFinding, ...]]:
    """Return the valid candidates as inputs, and a finding for each invalid one.

    Every candidate must have a type (see ``extract``). ``source_path`` is the absolute path of the
    stored file.
    """
    memories: list[MemoryInput] = []
    findings: list[ParseFinding] = []
    for candidate in parsed.candidates:
        try:
            memories.append(_memory(candidate, sha256=sha256, source_path=shortened(source_path)))
        except InvalidInput as error:
            problems = error.details.get("problems", [])
            findings.append(
                ParseFinding(SkippedPart.VALUE_INVALID, candidate.locator, {"problems": problems})
            )
    return tuple(memories), tuple(findings)


def to_document(
    parsed: ParsedDocument,
    memories: tuple[MemoryInput, ...],
    *,
    sha256: str,
    path: str,
    plan: str,
    manifest: Mapping[str, Any],
) -> Document:
    """Return the document for the service.

    ``path`` is where the file was dropped, relative to the drop zone, in printable form. Edges of
    candidates that are not among ``memories`` are left out.
    """
    keys = {memory.key for memory in memories}
    return Document(
        sha256=sha256,
        path=shortened(path),
        memories=memories,
        edges=tuple(
            EdgeInput(
                from_id=f"#{edge.from_key}",
                to_id=f"#{edge.to_key}",
                edge_type=edge.edge_type,
                weight=edge.weight,
                reason=edge.reason,
                partial=edge.partial,
            )
            for edge in parsed.edges
            if edge.from_key in keys and edge.to_key in keys
        ),
        links=tuple(_link(link) for link in parsed.links if len(link.target) <= MAX_NAME_CHARS),
        main=f"#{parsed.main_key}" if parsed.main_key in keys else None,
        document_keys=_short_enough(parsed.document_keys),
        relate=parsed.format != "decision_record",
        plan=plan,
        manifest=dict(manifest),
    )


def shortened(path: str) -> str:
    """Shorten a path to at most 512 characters, keeping its beginning and its end."""
    if len(path) <= MAX_NAME_CHARS:
        return path
    tail = MAX_NAME_CHARS - 101
    return f"{path[:100]}…{path[-tail:]}"


def _memory(candidate: IngestCandidate, *, sha256: str, source_path: str) -> MemoryInput:
    turn = candidate.kind is MemoryKind.EPISODE and candidate.source_role is not None
    fields: dict[str, Any] = {
        "key": candidate.key,
        "content": candidate.content,
        "summary": candidate.summary,
        "kind": candidate.kind,
        "type": candidate.type,
        "importance": candidate.importance,
        "confidence": candidate.confidence,
        "status": candidate.status,
        "sensitivity": candidate.sensitivity or Sensitivity.INTERNAL,
        "scope": candidate.scope or Scope.GLOBAL,
        "scope_id": candidate.scope_id,
        "session_id": candidate.session_id,
        "sequence": candidate.sequence,
        "turn_id": candidate.turn_id,
        "source_role": candidate.source_role,
        "event_time": candidate.event_time,
        "valid_until": candidate.valid_until,
        "tags": candidate.tags,
        "attributes": dict(candidate.attributes),
        "source": Source(
            source_type=SourceType.CHANNEL_TRANSCRIPT if turn else SourceType.INGEST_FILE,
            source_path=source_path,
            conversation_id=candidate.conversation_id,
            captured_by=CapturedBy.EXTRACTOR,
            locator=shortened(candidate.locator),
            content_sha256=sha256,
        ),
    }
    return validated(MemoryInput, fields)


def _link(link: DocumentLink) -> FileLink:
    return FileLink(
        local=f"#{link.local_key}",
        target=link.target,
        edge_type=link.edge_type,
        outgoing=link.outgoing,
        weight=link.weight,
        reason=link.reason,
        partial=link.edge_type is EdgeType.UPDATES and not link.supersedes,
        fallbacks=_short_enough(link.fallbacks),
    )


def _short_enough(keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(key for key in keys if len(key) <= MAX_NAME_CHARS)
