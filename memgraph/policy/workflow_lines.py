"""Statements in the lines of a workflow step's output: labels, boxes, lists under a heading, and
sentences that say themselves what they are."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from memgraph.model.enums import MemoryType
from memgraph.policy.sentences import split_sentences
from memgraph.policy.statement_forms import ground_of, stands_alone, type_of
from memgraph.policy.workflow_candidates import Collector, relation_named, type_named

_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_BULLET = re.compile(r"^(?:[-*+•]|\d{1,3}[.)])\s+(?=\S)")
_BOX = re.compile(r"^\[([ xX])\]\s+")
# A label of one to three words, with or without emphasis around it, its colon, and what it says.
_LABEL = re.compile(
    r"^(?:\*\*|__)?([A-Za-z][A-Za-z_/-]*(?: [A-Za-z]+){0,2})(?:\*\*|__)?"
    r"\s*:(?:\*\*|__)?(?:\s+(.*))?$"
)
_EMPHASISED = re.compile(r"^(?:\*\*|__)(.{1,60}?):?(?:\*\*|__):?$")
_FENCE = re.compile(r"^(`{3,}|~{3,})\s*([\w+-]*)")
TAB = 4
# What stands before the text of a box that is ticked.
TICKED = "Done: "

ReadJson = Callable[[str, str], None]
"""Takes a block that says it is JSON, and the locator of its lines."""


@dataclass(slots=True)
class _Statement:
    """What is being read: its lines may go on."""

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
        prefix: stands before every locator.
        read_json: for fenced JSON.
    """

    def __init__(self, into: Collector, read_json: ReadJson, prefix: str = "") -> None:
        self._into = into
        self._read_json = read_json
        self._prefix = prefix
        self._open: list[_Statement] = []
        self._heading: MemoryType | None = None
        # A heading of Markdown holds until the next; a label, for the list right below it.
        self._holds = False
        self._number = 0
        self._prose: list[str] = []

    def read(self, text: str) -> None:
        """Read all lines; what a fence encloses is code, unless it says that it is JSON."""
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
        said = bare[bullet.end() :] if bullet else bare
        if self._boxed(said, indent) or self._labelled(said, indent, listed=bullet is not None):
            return
        if bullet is not None and self._heading is not None:
            self._begin(said, self._heading, indent)
        elif self._open and indent > self._open[-1].indent and bullet is None:
            self._open[-1].parts.append(said)
            self._open[-1].last = self._number
        elif bullet is None:
            self._plain(bare, indent)
        else:
            self._close_down_to(indent)
            self._end_prose()
            self._prose.append(said)

    def _plain(self, bare: str, indent: int) -> None:
        emphasised = _EMPHASISED.match(bare)
        if emphasised is not None:
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
        """Take the sentences of the lines above this one that say what they are."""
        first = self._number - len(self._prose)
        ends: list[int] = []
        for line in self._prose:
            ends.append((ends[-1] + 1 if ends else 0) + len(line))
        text = " ".join(self._prose)
        self._prose = []
        at = 0
        for sentence in split_sentences(text):
            begin = text.index(sentence, at)
            at = begin + len(sentence)
            kind = type_of(sentence)
            if kind is MemoryType.FACT or not stands_alone(sentence):
                continue
            where = self._where(first + bisect_left(ends, begin), first + bisect_left(ends, at))
            key = self._into.add(sentence, kind, where)
            ground = ground_of(sentence)
            if key is not None and ground is not None:
                self._into.caused_by(key, ground, where)

    def _head(self, title: str, *, holds: bool) -> None:
        self._close_all()
        self._heading = type_named(title.strip("*_ :"))
        self._holds = holds

    def _boxed(self, said: str, indent: int) -> bool:
        box = _BOX.match(said)
        if box is None:
            return False
        text = said[box.end() :]
        if box[1] == " ":
            self._begin(text, MemoryType.TODO, indent)
        else:
            self._begin(f"{TICKED}{text}", MemoryType.EVENT, indent)
        return True

    def _labelled(self, said: str, indent: int, *, listed: bool) -> bool:
        label = _LABEL.match(said)
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
        """What stands as far left or further is at its end; what it stands under is taken too."""
        while self._open and self._open[-1].indent >= indent:
            self._close(self._open.pop())
        for each in self._open:
            self._take(each)

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
        """Once; its lines are all there when something stands under it, or it is at its end."""
        if statement.parts:
            where = self._where(statement.first, statement.last)
            statement.key = self._into.add(" ".join(statement.parts), statement.type, where)
            statement.parts = []

    def _where(self, first: int, last: int | None = None) -> str:
        span = f"L{first}" if last in (None, first) else f"L{first}-L{last}"
        return self._prefix + span
