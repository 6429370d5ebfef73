"""Any other JSON: the plain values of each object as one observation, with its JSON pointer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest.candidates import (
    MAX_PASSAGE_CHARS,
    Candidate,
    CandidateEdge,
    Finding,
    KeySource,
    ParsedDocument,
    split_long,
)
from ingest.dates import read_json_time
from ingest.parsers.naming import document_keys, title_of
from memgraph.model.enums import EdgeType, MemoryType

_IMPORTANCE = 30
_CONFIDENCE = 0.8
_PART_WEIGHT = 0.5
_WHEN = ("timestamp", "time", "date", "datetime", "created_at", "updated_at")


@dataclass(slots=True)
class _Reading:
    path: str
    keys: KeySource = field(default_factory=KeySource)
    candidates: list[Candidate] = field(default_factory=list)
    edges: list[CandidateEdge] = field(default_factory=list)


def parse_records(value: Any, path: str, findings: tuple[Finding, ...] = ()) -> ParsedDocument:
    """An observation for each object (its plain values) and each list of plain values.

    An inner one is PartOf the next outer one. What is empty or null says nothing.
    """
    reading = _Reading(path)
    _read(reading, value, "", (), None)
    made = reading.candidates
    return ParsedDocument(
        "observations",
        tuple(made),
        tuple(reading.edges),
        findings=findings,
        title=title_of(path),
        main_key=made[0].key if made else None,
        document_keys=document_keys(path),
    )


def _read(
    reading: _Reading, value: Any, pointer: str, names: tuple[str, ...], whole: str | None
) -> None:
    """Recursion is bounded by the depth that strict reading allows."""
    plain = [f"{name}: {text}" if name else text for name, text in _plain(value)]
    if plain:
        whole = _observe(reading, plain, pointer, names, whole, _when(value))
    for name, inner in _children(value):
        if isinstance(inner, dict | list):
            path = f"{pointer}/{_escape(name)}"
            _read(reading, inner, path, (*names, name), whole)


def _observe(
    reading: _Reading,
    plain: list[str],
    pointer: str,
    names: tuple[str, ...],
    whole: str | None,
    event_time: int | None,
) -> str:
    """Stores the values under the names that lead to them; returns the first piece's key."""
    label = " > ".join(name[:100] for name in names[-6:]) or title_of(reading.path)
    head = f"{label[:400]}: "
    first: str | None = None
    for piece in split_long("; ".join(plain), MAX_PASSAGE_CHARS - len(head)):
        key = reading.keys.new()
        reading.candidates.append(
            Candidate(
                key,
                head + piece,
                pointer or "#",
                type=MemoryType.OBSERVATION,
                importance=_IMPORTANCE,
                confidence=_CONFIDENCE,
                event_time=event_time,
                tags=("json",),
            )
        )
        parent = first or whole
        if parent is not None:
            reading.edges.append(CandidateEdge(key, parent, EdgeType.PART_OF, _PART_WEIGHT))
        first = first or key
    return first or whole or ""


def _plain(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if (text := _text(inner)) is not None:
                yield " ".join(name.split())[:200], text
    elif isinstance(value, list):
        for inner in value:
            if (text := _text(inner)) is not None:
                yield "", text
    elif (text := _text(value)) is not None:
        yield "", text


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return None


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from ((str(place), inner) for place, inner in enumerate(value))


def _when(value: Any) -> int | None:
    if not isinstance(value, Mapping):
        return None
    for name in _WHEN:
        if (moment := read_json_time(value.get(name))) is not None:
            return moment
    return None


def _escape(name: str) -> str:
    """A name as RFC 6901 writes it in a pointer, cut to what a locator can hold."""
    return name.replace("~", "~0").replace("/", "~1")[:200]
