"""Parse the output of a workflow step for decisions, plans and statements.

The output is a mapping, a list, JSON text, or Markdown or plain text: lines such as
``Decision: …``, ``TODO: …``, ``Goal: …``, ``- [ ] …``, lists under such a heading, and fenced JSON.
Every other paragraph, line and list item is an Observation. Pure and bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from memgraph.model.enums import MemoryType
from memgraph.rules.workflow_candidates import (
    MAX_REFERENCES,
    MAX_TAG_CHARS,
    MAX_TAGS,
    OUR_ID,
    CandidateCollector,
    Rejection,
    WorkflowCandidate,
    relation_named,
    tidy,
)
from memgraph.text.labels import LABEL, type_named
from memgraph.text.paragraphs import cut, unwrapped

# Statements in the lines of a workflow step's output: labels, checkboxes, lists under a heading,
# and prose.


_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_BULLET = re.compile(r"^(?:[-*+•]|\d{1,3}[.)])\s+(?=\S)")
_BOX = re.compile(r"^\[([ xX])\]\s+")
_EMPHASISED = re.compile(r"^(?:\*\*|__)(.{1,60}?):?(?:\*\*|__):?$")
_FENCE = re.compile(r"^(`{3,}|~{3,})\s*([\w+-]*)")
TAB = 4
# The prefix of the text of a ticked checkbox.
TICKED = "Done: "

ReadJson = Callable[[str, str], None]
"""Takes a block that is marked as JSON, and the locator of its lines."""


@dataclass(slots=True)
class _Statement:
    """A statement that is being read: more lines may follow."""

    type: MemoryType
    indent: int
    first: int
    last: int
    parts: list[str]
    parent: _Statement | None
    key: str | None = None
    relations: list[tuple[str, str, str]] = field(default_factory=list)


class LineReader:
    """Reads lines into a collector.

    Args:
        prefix: the prefix of every locator.
        read_json: called for fenced JSON.
    """

    def __init__(self, into: CandidateCollector, read_json: ReadJson, prefix: str = "") -> None:
        self._into = into
        self._read_json = read_json
        self._prefix = prefix
        self._open: list[_Statement] = []
        self._heading: MemoryType | None = None
        # A Markdown heading applies until the next one; a label, to the list right below it.
        self._holds = False
        self._number = 0
        self._prose: list[str] = []

    def read(self, text: str) -> None:
        """Read all lines; fenced blocks are skipped as code unless they are marked as JSON."""
        lines = text.splitlines()
        while self._number < len(lines) and not self._into.full:
            line = lines[self._number].expandtabs(TAB)
            self._number += 1
            fence = _FENCE.match(line.strip())
            if fence is not None:
                self._close_all()
                self._fenced(lines, fence[1], fence[2])
            else:
                self._line(line)
        if self._number < len(lines):
            self._into.reject(self._where(self._number + 1), "too_many")
        self._number += 1
        self._close_all()

    def _fenced(self, lines: list[str], mark: str, language: str) -> None:
        first = self._number + 1
        body: list[str] = []
        while self._number < len(lines):
            line = lines[self._number]
            self._number += 1
            if line.strip().startswith(mark) and not line.strip().strip(mark[0]):
                break
            body.append(line)
        if language.casefold() in ("json", "jsonc", "json5"):
            self._read_json("\n".join(body), self._where(first, first + max(len(body), 1) - 1))

    def _line(self, line: str) -> None:
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        heading = _HEADING.match(bare)
        if not bare:
            self._close_all()
            return
        if heading is not None:
            self._head(heading[1], holds=True)
            return
        bullet = _BULLET.match(bare)
        text = bare[bullet.end() :] if bullet else bare
        if self._boxed(text, indent) or self._labelled(text, indent, listed=bullet is not None):
            return
        if bullet is not None and self._heading is not None:
            self._begin(text, self._heading, indent)
        elif self._open and indent > self._open[-1].indent and bullet is None:
            self._open[-1].parts.append(text)
            self._open[-1].last = self._number
        elif bullet is None:
            self._plain(bare, indent)
        else:
            self._close_down_to(indent)
            self._end_prose()
            self._prose.append(text)

    def _plain(self, bare: str, indent: int) -> None:
        emphasised = _EMPHASISED.match(bare)
        if emphasised is not None and type_named(emphasised[1].strip("*_ :")) is not None:
            self._head(emphasised[1], holds=False)
        elif self._heading is not None and self._holds:
            # A paragraph under a heading: its lines are one statement.
            if self._open and self._open[-1].last == self._number - 1:
                self._open[-1].parts.append(bare)
                self._open[-1].last = self._number
            else:
                self._begin(bare, self._heading, indent)
        else:
            if not self._prose:
                self._close_all()
            self._heading = None
            self._prose.append(bare)

    def _end_prose(self) -> None:
        """Add the lines and paragraphs of the preceding prose as observations."""
        first = self._number - len(self._prose)
        for group in unwrapped(self._prose):
            text = " ".join(self._prose[group[0] : group[-1] + 1])
            where = self._where(first + group[0], first + group[-1])
            for start, end in cut(text):
                if any(map(str.isalnum, text[start:end])):
                    self._into.add(text[start:end], MemoryType.OBSERVATION, where)
        self._prose = []

    def _head(self, title: str, *, holds: bool) -> None:
        self._close_all()
        self._heading = type_named(title.strip("*_ :"))
        self._holds = holds

    def _boxed(self, line: str, indent: int) -> bool:
        box = _BOX.match(line)
        if box is None:
            return False
        text = line[box.end() :]
        if box[1] == " ":
            self._begin(text, MemoryType.TODO, indent)
        else:
            self._begin(f"{TICKED}{text}", MemoryType.EVENT, indent)
        return True

    def _labelled(self, line: str, indent: int, *, listed: bool) -> bool:
        label = LABEL.match(line)
        if label is None:
            return False
        text = (label[2] or "").strip()
        relation = relation_named(label[1])
        if relation is not None and self._open:
            self._open[-1].relations.append((relation, text, self._where(self._number)))
            self._open[-1].last = self._number
            return True
        kind = type_named(label[1])
        if kind is None:
            return False
        if text.strip("*_ "):
            self._begin(text, kind, indent)
        elif not listed:
            self._head(label[1], holds=False)
        return True

    def _begin(self, text: str, kind: MemoryType, indent: int) -> None:
        self._end_prose()
        self._close_down_to(indent)
        parent = self._open[-1] if self._open else None
        self._open.append(_Statement(kind, indent, self._number, self._number, [text], parent))

    def _close_down_to(self, indent: int) -> None:
        """Close the open statements at this indentation or deeper, and add their parents."""
        while self._open and self._open[-1].indent >= indent:
            self._close(self._open.pop())
        for heading in self._open:
            self._take(heading)

    def _close_all(self) -> None:
        self._end_prose()
        while self._open:
            self._close(self._open.pop())

    def _close(self, statement: _Statement) -> None:
        if statement.parent is not None:
            self._take(statement.parent)
        self._take(statement)
        key, parent = statement.key, statement.parent
        if key is None:
            return
        where = self._where(statement.first, statement.last)
        if parent is not None and parent.key is not None:
            self._into.part_of_key(key, parent.key, where)
        for relation, text, at in statement.relations:
            self._into.named_later(key, relation, [text], at)

    def _take(self, statement: _Statement) -> None:
        """Add a statement once: it is complete when it ends or when another begins below it."""
        if statement.parts:
            where = self._where(statement.first, statement.last)
            statement.key = self._into.add(" ".join(statement.parts), statement.type, where)
            statement.parts = []

    def _where(self, first: int, last: int | None = None) -> str:
        span = f"L{first}" if last in (None, first) else f"L{first}-L{last}"
        return self._prefix + span


MAX_OUTPUT_CHARS = 200_000
MAX_VALUES = 5_000
MAX_DEPTH = 8

_TEXTS = frozenset({"text", "output", "result", "message", "response", "answer", "markdown"})
_LISTS = frozenset({"memories", "items", "candidates"})
_CONTENT = ("content", "text", "statement", "title", "description", "summary")
# Fields that an output must not set, such as its own trust or scope.
_RESERVED_FIELDS = (
    r"captured_?by|source(?:_?type)?|sensitivity|status|scope(?:_?id)?|agent_?id|decay_?rate"
    r"|valid_?until|memory_?id|orchestrator_?id|session_?id|derived_?from|supersedes|protected"
    r"|created_?at"
)
_RESERVED_FIELD = re.compile(_RESERVED_FIELDS, re.IGNORECASE)
# Fenced JSON is read value by value, because an id in it may be evidence for a statement.


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """The candidates in the order of the output, and the rejections."""

    candidates: tuple[WorkflowCandidate, ...]
    rejections: tuple[Rejection, ...]


def parse(output: str | Mapping[str, Any] | Sequence[Any]) -> ParsedOutput:
    """Parse an output; never fails, whatever it contains."""
    into = CandidateCollector()
    if isinstance(output, str):
        _read_text(output, into)
    else:
        _Values(into).read(output)
    return ParsedOutput(*into.done())


def _read_text(text: str, into: CandidateCollector, prefix: str = "") -> None:
    if len(text) > MAX_OUTPUT_CHARS:
        into.reject(prefix, "too_large")
        text = text[:MAX_OUTPUT_CHARS]
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            # A Markdown list may begin like a JSON list.
            value = None
        if isinstance(value, dict | list):
            _Values(into, prefix).read(value)
            return
    LineReader(into, lambda body, where: _read_json(body, into, where), prefix).read(text)


def _read_json(body: str, into: CandidateCollector, where: str) -> None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        into.reject(where, "json")
        return
    _Values(into, f"{where}#").read(value)


class _Values:
    """Reads JSON values into a collector, each with its pointer."""

    def __init__(self, into: CandidateCollector, prefix: str = "") -> None:
        self._into = into
        self._prefix = prefix
        self._left = MAX_VALUES

    def read(self, value: Any, pointer: str = "", kind: MemoryType | None = None) -> None:
        """Read the value at a pointer; ``kind`` is the type of its statements, from its key."""
        stack = [(value, pointer, kind, 0)]
        while stack:
            current, at, names, depth = stack.pop()
            if self._into.full:
                self._into.reject(self._prefix + at, "too_many")
                return
            if depth > MAX_DEPTH:
                self._into.reject(self._prefix + at, "too_deep")
            elif isinstance(current, Mapping):
                stack.extend(reversed(self._mapping(current, at, names, depth + 1)))
            elif isinstance(current, list | tuple):
                items = current[: self._some(len(current), at)]
                inside = [(item, f"{at}/{n}", names, depth + 1) for n, item in enumerate(items)]
                stack.extend(reversed(inside))
            elif isinstance(current, str) and names is not None:
                self._into.add(current, names, self._prefix + at)
            elif isinstance(current, str) and _is_prose(current):
                _read_text(current, self._into, f"{self._prefix}{at}#")

    def _some(self, count: int, at: str) -> int:
        """Return how many of ``count`` values may be read; the limit for an output is 5,000."""
        some = min(count, self._left)
        self._left -= some
        if some < count:
            self._into.reject(self._prefix + at, "too_many")
        return some

    def _mapping(
        self, value: Mapping[Any, Any], at: str, kind: MemoryType | None, depth: int
    ) -> list[tuple[Any, str, MemoryType | None, int]]:
        """Add the statement that a mapping states, or else return the values in it to read."""
        stated = value.get("type", value.get("kind"))
        memory_type = type_named(stated) if isinstance(stated, str) else None
        content = next((value[n] for n in _CONTENT if isinstance(value.get(n), str)), None)
        if content is not None and (kind is not None or isinstance(stated, str)):
            # The type from the key above takes precedence over the one in the mapping.
            chosen = kind or memory_type
            if chosen is None:
                self._into.reject(self._prefix + at, "type")
            else:
                self._statement(value, content, chosen, at)
            return []
        inside: list[tuple[Any, str, MemoryType | None, int]] = []
        for name, item in islice(value.items(), self._some(len(value), at)):
            pointer = f"{at}/{_escaped(str(name))}"
            below = type_named(str(name)) or (kind if str(name).casefold() in _LISTS else None)
            if below is None and isinstance(item, str):
                if str(name).casefold() in _TEXTS or _is_prose(item):
                    _read_text(item, self._into, f"{self._prefix}{pointer}#")
            else:
                inside.append((item, pointer, below, depth))
        return inside

    def _statement(self, value: Mapping[Any, Any], content: str, kind: MemoryType, at: str) -> None:
        where = self._prefix + at
        name = value.get("key", value.get("id"))
        if any(_is_ours(value.get(item)) for item in ("id", "memory_id", "receipt_id")):
            self._into.reject(where, "own_output")
            return
        key = self._into.add(
            content,
            kind,
            where,
            importance=value.get("importance"),
            confidence=value.get("confidence"),
            tags=_tags(value.get("tags")),
            name=name if isinstance(name, str) else None,
        )
        if key is None:
            return
        for label, item in islice(value.items(), MAX_TAGS * 4):
            pointer = f"{where}/{_escaped(str(label))}"
            relation = relation_named(str(label))
            if relation is not None:
                self._into.named_later(key, relation, _texts(item), pointer)
            elif _RESERVED_FIELD.fullmatch(str(label)):
                self._into.reject(pointer, "not_believed")


def _is_prose(text: str) -> bool:
    """Return True for a text of several words, as opposed to a name or a code."""
    return len(text.split(maxsplit=1)) > 1


def _tags(value: Any) -> tuple[str, ...]:
    tags = [tidy(item)[:MAX_TAG_CHARS] for item in _texts(value)]
    return tuple(dict.fromkeys(item for item in tags if item))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list | tuple):
        return []
    return [item for item in value[:MAX_REFERENCES] if isinstance(item, str)]


def _is_ours(value: Any) -> bool:
    return isinstance(value, str) and OUR_ID.fullmatch(value) is not None


def _escaped(name: str) -> str:
    """Return a key as part of a JSON pointer (RFC 6901), limited in length."""
    return tidy(name)[:80].replace("~", "~0").replace("/", "~1")
