"""Parse plain text: as a conversation if it looks like one, otherwise as prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from ingest.candidates import (
    MAX_PASSAGE_CHARS,
    IngestCandidate,
    KeySource,
    ParsedDocument,
    ParseFinding,
    split_long,
)
from ingest.parsers.blocks import Block
from ingest.parsers.file_names import document_keys, title_of
from ingest.parsers.passages import Passage, statements
from ingest.parsers.transcript import is_transcript, parse_transcript
from memgraph.model.columns import DEFAULT_IMPORTANCE
from memgraph.model.enums import MemoryStatus, MemoryType
from memgraph.text.dates import read_date
from memgraph.text.statement_forms import addresses_model, is_placeholder, without_label

_BULLET = re.compile(r"^(?:[-*+•–]|\d{1,3}[.)])\s+(?=\S)")
_BOX = re.compile(r"^\[([ xX])\]\s+(?=\S)")
_RULE = re.compile(r"^[-=*_~#]{3,}$")
# A line this long was probably wrapped by an editor, not ended by its writer.
_WRAPPED_CHARS = 50


@dataclass(slots=True)
class _Unit:
    """A paragraph, list item or stand-alone line of prose."""

    first: int
    last: int
    event_time: int | None
    checked: bool | None = None
    parts: list[str] = field(default_factory=list)
    listed: bool = False

    def block(self) -> Block:
        """Return the unit as a block of Markdown."""
        return Block(
            "item" if self.listed else "paragraph",
            " ".join(self.parts),
            self.first,
            self.last,
            level=1,
            checked=self.checked,
            raw="\n".join(self.parts),
        )


def parse_text(text: str, path: str, findings: tuple[ParseFinding, ...] = ()) -> ParsedDocument:
    """Return the episodes of a transcript, or the untyped statements of prose.

    A date on a line of its own dates the following text.
    """
    if is_transcript(text):
        return parse_transcript(text, path, findings)
    keys = KeySource()
    candidates: list[IngestCandidate] = []
    for moment, units in groupby(_units(text), key=lambda unit: unit.event_time):
        for passage in statements([unit.block() for unit in units]):
            make = sentence if passage.checked is None else task
            candidates.extend(make(keys, passage, event_time=moment))
    return ParsedDocument(
        "prose",
        tuple(candidates),
        findings=findings,
        title=title_of(path),
        main_key=candidates[0].key if candidates else None,
        document_keys=document_keys(path),
    )


def sentence(
    keys: KeySource,
    passage: Passage,
    *,
    event_time: int | None = None,
    tags: tuple[str, ...] = (),
    section: tuple[str, ...] = (),
    title: str | None = None,
) -> Iterator[IngestCandidate]:
    """Yield untyped candidates for a statement; pieces without a letter are left out."""
    attributes = _attributes(section, title)
    for piece in split_long(passage.text, MAX_PASSAGE_CHARS):
        if any(char.isalpha() for char in piece):
            yield IngestCandidate(
                keys.new(),
                piece,
                passage.locator,
                event_time=event_time,
                tags=tags,
                attributes=attributes,
            )


def _attributes(section: tuple[str, ...], title: str | None) -> dict[str, str]:
    attributes = {"section": " / ".join(section), "title": (title or "")[:200]}
    return {name: value for name, value in attributes.items() if value}


def task(
    keys: KeySource,
    passage: Passage,
    *,
    event_time: int | None = None,
    tags: tuple[str, ...] = (),
    section: tuple[str, ...] = (),
    title: str | None = None,
) -> Iterator[IngestCandidate]:
    """Yield a task box as a Todo; a ticked one is superseded.

    A single word, a placeholder or an instruction to a model is not a task.
    """
    said = without_label(passage.said)
    if len(said.split()) < 2 or is_placeholder(said):
        return
    if addresses_model(said):
        return
    attributes = {"done": bool(passage.checked), **_attributes(section, title)}
    yield IngestCandidate(
        keys.new(),
        next(split_long(said, MAX_PASSAGE_CHARS)),
        passage.locator,
        type=MemoryType.TODO,
        importance=DEFAULT_IMPORTANCE[MemoryType.TODO],
        confidence=0.9,
        status=MemoryStatus.SUPERSEDED if passage.checked else MemoryStatus.ACTIVE,
        event_time=event_time,
        tags=tags,
        attributes=attributes,
    )


def _units(text: str) -> Iterator[_Unit]:
    unit: _Unit | None = None
    moment: int | None = None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        dated = read_date(line.strip("#=-*_ ")) if 0 < len(line) < 100 else None
        if not line or _RULE.match(line) or dated is not None:
            moment = moment if dated is None else dated
            if unit:
                yield unit
            unit = None
            continue
        bullet = _BULLET.match(line)
        bare = line[bullet.end() :] if bullet else line
        box = _BOX.match(bare)
        if unit and not bullet and not box and _continues(unit.parts[-1], bare):
            unit.parts.append(bare)
            unit.last = number
            continue
        if unit:
            yield unit
        checked = None if box is None else box[1] != " "
        words = bare[box.end() :] if box else bare
        unit = _Unit(number, number, moment, checked, [words], bullet is not None)
    if unit:
        yield unit


def _continues(previous: str, line: str) -> bool:
    """Return True when a line continues the sentence of the line above it."""
    if line[0].islower():
        return True
    return len(previous) >= _WRAPPED_CHARS
