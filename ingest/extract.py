"""Turn the candidates of a file into inputs for the service, within what a file may claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from typing import Any

from ingest.candidates import MAX_CONFIDENCE, MAX_IMPORTANCE, IngestCandidate, ParsedDocument
from ingest.reasons import RejectionReason, SkippedPart, refuse
from memgraph.errors import InvalidInput
from memgraph.model.columns import DEFAULT_IMPORTANCE
from memgraph.model.enums import CapturedBy, MemoryKind, MemoryType, Scope, Sensitivity, SourceType
from memgraph.model.sources import Document
from memgraph.model.values import MAX_NAME_CHARS, MemoryInput, Source, validated


def to_memories(
    parsed: ParsedDocument, *, sha256: str, source_path: str
) -> tuple[MemoryInput, ...]:
    """Return the valid candidates as inputs, and report the invalid ones in the document.

    Importance and confidence are limited. A file cannot define an Identity: it becomes a Fact.
    ``source_path`` is the absolute path of the stored file.

    Raises:
        IngestRejected: no_valid_items.
    """
    memories: list[MemoryInput] = []
    lowered = sum(candidate.type is MemoryType.IDENTITY for candidate in parsed.candidates)
    parsed.report(SkippedPart.IDENTITY_LOWERED, count=lowered)
    for candidate in parsed.candidates:
        try:
            memories.append(_memory(candidate, sha256, shortened(source_path)))
        except InvalidInput as error:
            problems = {"problems": error.details.get("problems", [])}
            parsed.report(SkippedPart.VALUE_INVALID, candidate.locator, problems)
    if parsed.candidates and not memories:
        raise refuse(
            RejectionReason.NO_VALID_ITEMS,
            "the file contains no valid memory",
            findings=[finding.as_dict() for finding in parsed.findings[:100]],
        )
    return tuple(memories)


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
    keys = {f"#{memory.key}" for memory in memories}
    return Document(
        sha256=sha256,
        path=shortened(path),
        memories=memories,
        edges=tuple(edge for edge in parsed.edges if {edge.from_id, edge.to_id} <= keys),
        links=tuple(parsed.links),
        main=f"#{parsed.main_key}" if f"#{parsed.main_key}" in keys else None,
        document_keys=tuple(key for key in parsed.document_keys if len(key) <= MAX_NAME_CHARS),
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


def _memory(candidate: IngestCandidate, sha256: str, source_path: str) -> MemoryInput:
    turn = candidate.kind is MemoryKind.EPISODE and candidate.source_role is not None
    kind = MemoryType.FACT if candidate.type is MemoryType.IDENTITY else candidate.type
    importance = candidate.importance
    fields: dict[str, Any] = {
        each.name: getattr(candidate, each.name) for each in dataclass_fields(candidate)
    }
    fields |= {
        "type": kind,
        "importance": min(
            DEFAULT_IMPORTANCE[kind] if importance is None else importance, MAX_IMPORTANCE
        ),
        "confidence": min(candidate.confidence, MAX_CONFIDENCE),
        "sensitivity": candidate.sensitivity or Sensitivity.INTERNAL,
        "scope": candidate.scope or Scope.GLOBAL,
        "attributes": dict(candidate.attributes),
        "source": Source(
            source_type=SourceType.CHANNEL_TRANSCRIPT if turn else SourceType.INGEST_FILE,
            source_path=source_path,
            conversation_id=fields.pop("conversation_id"),
            captured_by=CapturedBy.EXTRACTOR,
            locator=shortened(fields.pop("locator")),
            content_sha256=sha256,
        ),
    }
    return validated(MemoryInput, fields)
