"""The output of a workflow's step, read for what it decides, plans and states.

Read are a mapping, a list, JSON text, and Markdown or plain text: lines such as ``Decision: …``,
``TODO: …``, ``Goal: …``, ``- [ ] …``, lists under such a heading, JSON in a fence, and sentences
that say what they are: "We decided to ship on Monday because QA is late." is a Decision with its
ground. A sentence that does not say what it is stays where it is. Pure and bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from memgraph.model.enums import MemoryType
from memgraph.policy.echo_format import without_own_output
from memgraph.policy.workflow_candidates import (
    MAX_REFERENCES,
    MAX_TAG_CHARS,
    MAX_TAGS,
    OUR_ID,
    Candidate,
    Collector,
    Rejection,
    relation_named,
    tidy,
    type_named,
)
from memgraph.policy.workflow_lines import LineReader

MAX_OUTPUT_CHARS = 200_000
MAX_VALUES = 5_000
MAX_DEPTH = 8

_TEXTS = frozenset({"text", "output", "result", "message", "response", "answer", "markdown"})
_LISTS = frozenset({"memories", "items", "candidates"})
_CONTENT = ("content", "text", "statement", "title", "description", "summary")
# What an output might say to be more than it is.
_NO_SAY = (
    r"captured_?by|source(?:_?type)?|sensitivity|status|scope(?:_?id)?|agent_?id|decay_?rate"
    r"|valid_?until|memory_?id|orchestrator_?id|session_?id|derived_?from|supersedes|protected"
    r"|created_?at"
)
_SELF_PRAISE = re.compile(_NO_SAY, re.IGNORECASE)
# Read value by value: an id in it may be a ground that a statement names.
_JSON_FENCE = re.compile(r"(`{3,}|~{3,}) *json", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was found: candidates in the order of the output, and what was not taken of it."""

    candidates: tuple[Candidate, ...]
    rejections: tuple[Rejection, ...]


def parse(output: str | Mapping[str, Any] | Sequence[Any]) -> Parsed:
    """Read an output; never fails, whatever it holds."""
    into = Collector()
    if isinstance(output, str):
        _read_text(output, into)
    else:
        _Values(into).read(output)
    return Parsed(*into.done())


def _read_text(text: str, into: Collector, prefix: str = "") -> None:
    if len(text) > MAX_OUTPUT_CHARS:
        into.reject(prefix, "too_large")
        text = text[:MAX_OUTPUT_CHARS]
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            # A list of Markdown may begin like one of JSON.
            value = None
        if isinstance(value, dict | list):
            _Values(into, prefix).read(value)
            return
    text, own = _without_own_output(text)
    if own:
        into.reject(prefix, "own_output")
    LineReader(into, lambda body, where: _read_json(body, into, where), prefix).read(text)


def _without_own_output(text: str) -> tuple[str, int]:
    """What the memory had written itself, as a bulletin or a block, says nothing new."""
    kept: list[str] = []
    found = 0
    for is_json, lines in _parts(text):
        part = "".join(lines)
        bare, own = (part, 0) if is_json else without_own_output(part)
        found += own
        kept.append(bare)
    return "".join(kept), found


def _parts(text: str) -> Iterator[tuple[bool, list[str]]]:
    """The lines in and around JSON fences; a fence that is not closed goes to the end."""
    lines: list[str] = []
    mark = ""
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if mark:
            lines.append(line)
            if bare.startswith(mark) and not bare.strip(mark[0]):
                yield True, lines
                lines, mark = [], ""
            continue
        fence = _JSON_FENCE.match(bare)
        if fence is not None:
            yield False, lines
            lines, mark = [], fence[1]
        lines.append(line)
    yield bool(mark), lines


def _read_json(body: str, into: Collector, where: str) -> None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        into.reject(where, "json")
        return
    _Values(into, f"{where}#").read(value)


class _Values:
    """Reads JSON values into a collector, each with its pointer."""

    def __init__(self, into: Collector, prefix: str = "") -> None:
        self._into = into
        self._prefix = prefix
        self._left = MAX_VALUES

    def read(self, value: Any, pointer: str = "", kind: MemoryType | None = None) -> None:
        """A value found at a pointer; ``kind``: what the key above says its statements are."""
        stack = [(value, pointer, kind, 0)]
        while stack:
            found, at, known, depth = stack.pop()
            if self._into.full:
                self._into.reject(self._prefix + at, "too_many")
                return
            if depth > MAX_DEPTH:
                self._into.reject(self._prefix + at, "too_deep")
            elif isinstance(found, Mapping):
                stack.extend(reversed(self._mapping(found, at, known, depth + 1)))
            elif isinstance(found, list | tuple):
                shown = found[: self._some(len(found), at)]
                inside = [(each, f"{at}/{n}", known, depth + 1) for n, each in enumerate(shown)]
                stack.extend(reversed(inside))
            elif isinstance(found, str) and known is not None:
                self._into.add(found, known, self._prefix + at)

    def _some(self, count: int, at: str) -> int:
        """How many of so many values may be looked at; of all values of an output 5,000."""
        some = min(count, self._left)
        self._left -= some
        if some < count:
            self._into.reject(self._prefix + at, "too_many")
        return some

    def _mapping(
        self, value: Mapping[Any, Any], at: str, kind: MemoryType | None, depth: int
    ) -> list[tuple[Any, str, MemoryType | None, int]]:
        """Takes a statement, or gives what is inside."""
        stated = value.get("type", value.get("kind"))
        named = type_named(stated) if isinstance(stated, str) else None
        content = next((value[n] for n in _CONTENT if isinstance(value.get(n), str)), None)
        if content is not None and (kind is not None or isinstance(stated, str)):
            # The key above says it; what stands inside only where that says nothing.
            chosen = kind or named
            if chosen is None:
                self._into.reject(self._prefix + at, "type")
            else:
                self._statement(value, content, chosen, at)
            return []
        inside: list[tuple[Any, str, MemoryType | None, int]] = []
        for name, each in islice(value.items(), self._some(len(value), at)):
            pointer = f"{at}/{_escaped(str(name))}"
            below = type_named(str(name)) or (kind if str(name).casefold() in _LISTS else None)
            if below is None and isinstance(each, str):
                if str(name).casefold() in _TEXTS:
                    _read_text(each, self._into, f"{self._prefix}{pointer}#")
            else:
                inside.append((each, pointer, below, depth))
        return inside

    def _statement(self, value: Mapping[Any, Any], content: str, kind: MemoryType, at: str) -> None:
        where = self._prefix + at
        name = value.get("key", value.get("id"))
        if any(_is_ours(value.get(each)) for each in ("id", "memory_id", "receipt_id")):
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
        for field, each in islice(value.items(), MAX_TAGS * 4):
            pointer = f"{where}/{_escaped(str(field))}"
            relation = relation_named(str(field))
            if relation is not None:
                self._into.named_later(key, relation, _texts(each), pointer)
            elif _SELF_PRAISE.fullmatch(str(field)):
                self._into.reject(pointer, "not_believed")


def _tags(given: Any) -> tuple[str, ...]:
    named = [tidy(each)[:MAX_TAG_CHARS] for each in _texts(given)]
    return tuple(dict.fromkeys(each for each in named if each))


def _texts(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list | tuple):
        return []
    return [each for each in given[:MAX_REFERENCES] if isinstance(each, str)]


def _is_ours(given: Any) -> bool:
    return isinstance(given, str) and OUR_ID.fullmatch(given) is not None


def _escaped(name: str) -> str:
    """A part of a JSON pointer (RFC 6901), bounded."""
    return tidy(name)[:80].replace("~", "~0").replace("/", "~1")
