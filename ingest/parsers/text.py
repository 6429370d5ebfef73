"""Plain text: a conversation when it reads like one, otherwise prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ingest.candidates import (
    MAX_PASSAGE_CHARS,
    Candidate,
    Finding,
    KeySource,
    ParsedDocument,
    lines,
    split_long,
)
from ingest.dates import read_date
from ingest.parsers.naming import document_keys, title_of
from ingest.parsers.transcript import is_transcript, parse_transcript
from memgraph.model.defaults import DEFAULT_IMPORTANCE
from memgraph.model.enums import MemoryStatus, MemoryType
from memgraph.service.sentences import split_sentences

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


def parse_text(text: str, path: str, findings: tuple[Finding, ...] = ()) -> ParsedDocument:
    """Episodes for a transcript; else the sentences, untyped. A date on a line of its own dates
    what follows."""
    if is_transcript(text):
        return parse_transcript(text, path, findings)
    keys = KeySource()
    made: list[Candidate] = []
    for unit in _units(text):
        where = lines(unit.first, unit.last)
        content = " ".join(unit.parts)
        if unit.checked is not None:
            made.append(task(keys, content, where, done=unit.checked, event_time=unit.event_time))
            continue
        made.extend(sentence_candidates(keys, content, where, event_time=unit.event_time))
    return ParsedDocument(
        "prose",
        tuple(made),
        findings=findings,
        title=title_of(path),
        main_key=made[0].key if made else None,
        document_keys=document_keys(path),
    )


def sentence_candidates(
    keys: KeySource,
    paragraph: str,
    locator: str,
    *,
    event_time: int | None = None,
    tags: tuple[str, ...] = (),
    section: tuple[str, ...] = (),
) -> Iterator[Candidate]:
    """Untyped candidates for the sentences of a paragraph; those without a letter are left out."""
    attributes = {"section": " / ".join(section)} if section else {}
    for sentence in split_sentences(paragraph):
        for piece in split_long(sentence, MAX_PASSAGE_CHARS):
            if any(char.isalpha() for char in piece):
                yield Candidate(
                    keys.new(),
                    piece,
                    locator,
                    event_time=event_time,
                    tags=tags,
                    attributes=attributes,
                )


def task(
    keys: KeySource,
    content: str,
    locator: str,
    *,
    done: bool,
    event_time: int | None = None,
    tags: tuple[str, ...] = (),
    section: tuple[str, ...] = (),
) -> Candidate:
    """A task box as a Todo. One that is done stands for nothing open any more: superseded."""
    attributes: dict[str, object] = {"done": done}
    if section:
        attributes["section"] = " / ".join(section)
    return Candidate(
        keys.new(),
        next(split_long(content, MAX_PASSAGE_CHARS)),
        locator,
        type=MemoryType.TODO,
        importance=DEFAULT_IMPORTANCE[MemoryType.TODO],
        confidence=0.9,
        status=MemoryStatus.SUPERSEDED if done else MemoryStatus.ACTIVE,
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
        unit = _Unit(number, number, moment, checked, [bare[box.end() :] if box else bare])
    if unit:
        yield unit


def _continues(previous: str, line: str) -> bool:
    """Whether a line goes on with the sentence of the line above it."""
    if line[0].islower():
        return True
    return len(previous) >= _WRAPPED_CHARS
