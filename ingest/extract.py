"""Turn the candidates of a file into inputs for the service, within what a file may claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ingest.candidates import (
    MAX_CONFIDENCE,
    MAX_IMPORTANCE,
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


def extract(document: ParsedDocument) -> ParsedDocument:
    """Limit the importance and confidence of every candidate.

    A file cannot define an Identity: it becomes a Fact, which the findings count.
    """
    lowered = sum(candidate.type is MemoryType.IDENTITY for candidate in document.candidates)
    findings = document.findings
    if lowered:
        findings = (*findings, ParseFinding(SkippedPart.IDENTITY_LOWERED, count=lowered))
    candidates = tuple(map(_bounded, document.candidates))
    return replace(document, candidates=candidates, findings=findings)


def _bounded(candidate: IngestCandidate) -> IngestCandidate:
    kind = candidate.type
    if kind is MemoryType.IDENTITY:
        kind = MemoryType.FACT
    importance = candidate.importance
    if importance is None:
        importance = DEFAULT_IMPORTANCE[kind]
    return replace(
        candidate,
        type=kind,
        importance=min(max(importance, 0), MAX_IMPORTANCE),
        confidence=min(max(candidate.confidence, 0.0), MAX_CONFIDENCE),
    )


def to_memories(
    parsed: ParsedDocument, *, sha256: str, source_path: str
) -> tuple[tuple[MemoryInput, ...], tuple[ParseFinding, ...]]:
    """Return the valid candidates as inputs, and a finding for each invalid one.

    ``source_path`` is the absolute path of the stored file.
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
