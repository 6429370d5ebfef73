"""Untyped sentences become typed candidates, or are dropped and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ingest.candidates import (
    MAX_CONFIDENCE,
    MAX_IMPORTANCE,
    Candidate,
    Finding,
    ParsedDocument,
)
from ingest.reasons import Part
from memgraph.model.defaults import DEFAULT_IMPORTANCE
from memgraph.model.enums import MemoryType

Classify = Callable[[Sequence[str]], Sequence[tuple[MemoryType | None, float]]]
"""Texts to a type (None: not worth remembering) and the confidence in it, 0..1, in order."""


def extract(document: ParsedDocument, classify: Classify) -> ParsedDocument:
    """Give every candidate a type and bounds, through one call of ``classify`` for all of them.

    A sentence that is not worth remembering is dropped with its edges. A text cannot make itself
    an Identity: that becomes a Fact. Both are told in the findings.

    Raises:
        ValueError: ``classify`` answers for another number of texts than it was asked.
    """
    untyped = [each for each in document.candidates if each.type is None]
    answers = classify([each.content for each in untyped]) if untyped else ()
    if len(answers) != len(untyped):
        raise ValueError(f"asked for {len(untyped)} types, was given {len(answers)}")
    said = {each.key: answer for each, answer in zip(untyped, answers, strict=True)}
    kept: list[Candidate] = []
    lowered = dropped = 0
    for candidate in document.candidates:
        kind, certainty = said.get(candidate.key, (candidate.type, candidate.confidence))
        if kind is None:
            dropped += 1
            continue
        if kind is MemoryType.IDENTITY:
            lowered += 1
            kind = MemoryType.FACT
        kept.append(_bounded(candidate, kind, certainty))
    findings = list(document.findings)
    if dropped:
        findings.append(Finding(Part.NOT_TYPED, count=dropped))
    if lowered:
        findings.append(Finding(Part.IDENTITY_LOWERED, count=lowered))
    return _without_dropped(replace(document, findings=tuple(findings)), kept)


def _bounded(candidate: Candidate, kind: MemoryType, certainty: float) -> Candidate:
    importance = candidate.importance
    if importance is None:
        importance = DEFAULT_IMPORTANCE[kind]
    return replace(
        candidate,
        type=kind,
        importance=min(max(importance, 0), MAX_IMPORTANCE),
        confidence=min(max(certainty, 0.0), MAX_CONFIDENCE),
    )


def _without_dropped(document: ParsedDocument, kept: Sequence[Candidate]) -> ParsedDocument:
    """The document with ``kept`` alone, its main memory being the first kept if its own went."""
    keys = {each.key for each in kept}
    main = document.main_key if document.main_key in keys else None
    if main is None and kept:
        main = kept[0].key
    findings = document.findings
    if not kept and not any(each.code is Part.NOTHING_EXTRACTED for each in findings):
        findings = (*findings, Finding(Part.NOTHING_EXTRACTED))
    return replace(
        document,
        candidates=tuple(kept),
        edges=tuple(e for e in document.edges if e.from_key in keys and e.to_key in keys),
        links=tuple(link for link in document.links if link.local_key in keys),
        findings=findings,
        main_key=main,
    )
