"""Parse the output of a workflow step for decisions, plans and statements.

The output is a mapping, a list, JSON text, or Markdown or plain text: lines such as
``Decision: …``, ``TODO: …``, ``Goal: …``, ``- [ ] …``, lists under such a heading, and fenced JSON.
Every other paragraph, line and list item is an Observation. Pure and bounded.

The text of an output comes from a model. Its claims about itself (its author, confidence or
sensitivity) are not trusted: a type that only a person may set is refused, numbers are limited to
the range of a proposal, and other such fields are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from memgraph.model.columns import DEFAULT_IMPORTANCE
from memgraph.model.enums import MemoryType
from memgraph.model.turns import RejectedPart
from memgraph.rules.proposals import (
    MAX_CONFIDENCE,
    MAX_CONTENT_CHARS,
    MAX_IMPORTANCE,
    MAX_PROPOSALS,
)
from memgraph.rules.similarity import MEMORY_ID, content_hash
from memgraph.text.blocks import TAB, Block, read_lines, sections
from memgraph.text.labels import LABEL, read_label, type_named
from memgraph.text.paragraphs import cut, unwrapped

DEFAULT_CONFIDENCE: Final = 0.8
MAX_OUTPUT_CHARS: Final = 200_000
MAX_VALUES: Final = 5_000
MAX_DEPTH: Final = 8
MAX_REFERENCES: Final = 16
MAX_TAGS: Final = 16
MAX_TAG_CHARS: Final = 64
MAX_REJECTIONS: Final = 200
TICKED: Final = "Done: "
"""The prefix of the text of a ticked checkbox."""

_FENCE = re.compile(r"^(`{3,}|~{3,})\s*([\w+-]*)")
_ID = re.compile(rf"(?<![\w-])({MEMORY_ID})(?![\w-])")
_OUR_ID = re.compile(rf"{MEMORY_ID}|rcl_[0-9A-Z]{{26}}")
_UNSTORABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_TEXTS: Final = frozenset({"text", "output", "result", "message", "response", "answer", "markdown"})
_LISTS: Final = frozenset({"memories", "items", "candidates"})
_CONTENT: Final = ("content", "text", "statement", "title", "description", "summary")
_CAUSES: Final = ("because", "caused by", "reason", "rationale", "why", "based on")
_WHOLES: Final = ("part of", "parent", "belongs to")
_RELATIONS: Final = dict.fromkeys(_CAUSES, "caused_by") | dict.fromkeys(_WHOLES, "part_of")


@dataclass(slots=True)
class WorkflowCandidate:
    """A memory that may be stored.

    Attributes:
        key: its id within the output, for ``caused_by`` and ``part_of``.
        importance: 0..90; ``confidence``: 0..0.9.
        locator: its place: ``L3-L4``, a JSON pointer, or both: ``L2-L9#/decisions/0``.
        caused_by, part_of: memory ids, and ``#key`` of other candidates.
    """

    key: str
    content: str
    type: MemoryType
    importance: int
    confidence: float
    locator: str
    tags: tuple[str, ...] = ()
    caused_by: list[str] = field(default_factory=list)
    part_of: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """The candidates in the order of the output, and the rejected or changed ones.

    Codes: ``too_large``, ``too_many``, ``too_deep``: a limit is exceeded; the rest was not read.
    ``json``: a block marked as JSON is invalid. ``content``: empty, or over 1,000 characters.
    ``type``: unknown. ``identity``: only a person may state an identity. ``importance``,
    ``confidence``: invalid, and replaced by a valid value. ``repeated``: it occurs earlier in the
    output. ``reference``: to something unknown. ``own_output``: it has the id of a memory.
    ``nothing_found``: no statement of any type.
    """

    candidates: tuple[WorkflowCandidate, ...]
    rejections: tuple[RejectedPart, ...]


def parse(output: str | Mapping[str, Any] | Sequence[Any]) -> ParsedOutput:
    """Parse an output; never fails, whatever it contains."""
    into = _Candidates()
    if isinstance(output, str):
        _read_text(output, into)
    else:
        _Values(into).read(output)
    return into.parsed()


def labelled(text: str) -> tuple[MemoryType, str] | None:
    """Return the type and the text of a labelled sentence, such as "TODO: call Mira"; else None."""
    found = read_label(text)
    if found is None:
        return None
    kind, rest = found[0], _tidy(found[1])
    return None if _refused(rest, kind) else (kind, rest)


class _Candidates:
    """Collects, checks and links the statements of one output."""

    def __init__(self) -> None:
        self._candidates: dict[str, WorkflowCandidate] = {}
        self._known: dict[tuple[str, MemoryType], str] = {}
        self._named: dict[str, str] = {}
        self._references: list[tuple[str, str, str, str]] = []
        self._rejections: list[RejectedPart] = []

    @property
    def full(self) -> bool:
        """True if no further statement is accepted."""
        return len(self._candidates) >= MAX_PROPOSALS

    def reject(self, locator: str, code: str) -> None:
        """Record a rejection; only the first ``MAX_REJECTIONS`` are kept."""
        if len(self._rejections) < MAX_REJECTIONS:
            self._rejections.append(RejectedPart(locator=locator, code=code))

    def add(
        self, content: str, kind: MemoryType, locator: str, given: Mapping[Any, Any] | None = None
    ) -> str | None:
        """Add a statement; return its key, also if it is a repetition, or None if it is refused.

        Args:
            given: the JSON object that states it.
        """
        text, given = _tidy(content), given or {}
        identity = (content_hash(text), kind)
        known = self._known.get(identity)
        code = _refused(text, kind) or ("repeated" if known else "too_many" if self.full else None)
        if code is not None:
            self.reject(locator, code)
            return known
        key = f"o{len(self._candidates)}"
        self._candidates[key] = WorkflowCandidate(
            key=key,
            content=text,
            type=kind,
            importance=self._number(
                given, "importance", int, DEFAULT_IMPORTANCE[kind], MAX_IMPORTANCE, locator
            ),
            confidence=float(
                self._number(
                    given, "confidence", int | float, DEFAULT_CONFIDENCE, MAX_CONFIDENCE, locator
                )
            ),
            locator=locator,
            tags=_tags(given.get("tags")),
        )
        self._known[identity] = key
        name = given.get("key", given.get("id"))
        for label in filter(None, (name if isinstance(name, str) else "", _folded(text))):
            self._named.setdefault(label, key)
        return key

    def _number(
        self, given: Mapping[Any, Any], name: str, kind: Any, usual: Any, most: Any, locator: str
    ) -> Any:
        value = given.get(name)
        if value is None:
            return usual
        if isinstance(value, bool) or not isinstance(value, kind) or value != value:
            self.reject(locator, name)
            return usual
        if not 0 <= value <= most:
            self.reject(locator, name)
        return min(max(value, 0), most)

    def refer(self, key: str, relation: str, names: Iterable[str], locator: str) -> None:
        """Record references by ids or names, which may be to later statements."""
        self._references += [(key, relation, name, locator) for name in names]

    def link(self, key: str, relation: str, reference: str, locator: str) -> None:
        """Link a statement to a memory id or the ``#key`` of another statement."""
        links: list[str] = getattr(self._candidates[key], relation)
        if reference == f"#{key}" or reference in links:
            return
        if len(links) >= MAX_REFERENCES:
            self.reject(locator, "too_many")
        else:
            links.append(reference)

    def parsed(self) -> ParsedOutput:
        """Resolve the references: to memories, to other statements, or else to a new cause."""
        for key, relation, name, locator in self._references:
            target = self._named.get(name.lstrip("#")) or self._named.get(_folded(_tidy(name)))
            if target in (None, key) and not _ID.search(name) and relation == "caused_by":
                target = self.add(name, MemoryType.OBSERVATION, locator)
            elif target in (None, key) and not _ID.search(name):
                self.reject(locator, "reference")
            named = [] if target is None else [f"#{target}"]
            for reference in _ID.findall(name) or named:
                self.link(key, relation, reference, locator)
        if not self._candidates and not self._rejections:
            self.reject("", "nothing_found")
        return ParsedOutput(tuple(self._candidates.values()), tuple(self._rejections))


def _read_text(text: str, into: _Candidates, prefix: str = "") -> None:
    """Add the statements of a text; ``prefix`` begins every locator."""
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
    for first, lines, language in _parts(text.splitlines()):
        if language is None:
            _Lines(into, prefix, lines, first).read()
        elif language.casefold() in ("json", "jsonc", "json5"):
            where = f"{prefix}{_span(first, first + max(len(lines), 1) - 1)}"
            try:
                value = json.loads("\n".join(lines))
            except (ValueError, RecursionError):
                into.reject(where, "json")
            else:
                _Values(into, f"{where}#").read(value)


def _parts(lines: Sequence[str]) -> Iterator[tuple[int, Sequence[str], str | None]]:
    """Yield the first line, the lines and the language of each fence, and of the text around them,
    which has no language.
    """
    start, fence = 0, None
    for at, line in enumerate(lines):
        bare = line.strip()
        if fence is None and (fence := _FENCE.match(bare)):
            yield start + 1, lines[start:at], None
            start = at + 1
        elif fence is not None and bare.startswith(fence[1]) and not bare.strip(fence[1][0]):
            yield start + 1, lines[start:at], fence[2]
            start, fence = at + 1, None
    yield start + 1, lines[start:], None if fence is None else fence[2]


def _span(first: int, last: int) -> str:
    return f"L{first}" if last == first else f"L{first}-L{last}"


@dataclass(slots=True)
class _Statement:
    """A statement that is being read: more lines may follow."""

    type: MemoryType
    indent: int
    first: int
    last: int
    parts: list[str]
    parent: _Statement | None = None
    key: str | None = None
    relations: list[tuple[str, str, int]] = field(default_factory=list)


class _Lines:
    """Reads labels, checkboxes, lists under a heading, and prose.

    Args:
        first: the number of the first line.
    """

    def __init__(self, into: _Candidates, prefix: str, lines: Sequence[str], first: int) -> None:
        self._into, self._prefix, self._first = into, prefix, first
        self._source = [line.expandtabs(TAB) for line in lines]
        self._statements: list[_Statement] = []
        self._open: list[_Statement] = []
        self._prose: list[str] = []
        self._announced: MemoryType | None = None
        self._number = 0

    def read(self) -> None:
        """Add the statements of all lines, those above others first."""
        for section in sections(read_lines(self._source)):
            self._announced = None
            # A line may only look like a heading, such as a date.
            if section.title and not self._source[section.first - 1].lstrip().startswith("#"):
                self._block(Block("paragraph", section.title, section.first, section.first), None)
            for block in (each for each in section.blocks if each.kind != "omitted"):
                if block.first != self._number + 1:
                    self._open.clear()
                self._block(block, type_named(section.title.strip("*_ :")))
        for one in self._statements:
            if not self._add(one) and self._into.full:
                break

    def _block(self, block: Block, heading: MemoryType | None) -> None:
        """Read a block. A label without a text applies to the list right below it."""
        for number, line in enumerate((block.raw or block.text).split("\n"), block.first):
            self._number = number
            begins = block.kind in ("item", "row") and number == block.first
            above = self._open[-1] if self._open and self._open[-1].last == number - 1 else None
            if begins and block.checked is not None:
                kind = MemoryType.EVENT if block.checked else MemoryType.TODO
                self._begin(TICKED * block.checked + line, kind)
            elif self._labelled(line):
                continue
            elif begins and (named := self._announced or heading) is not None:
                self._begin(line, named)
            elif (
                above
                and not begins
                and (block.kind == "item" or heading or self._indent > above.indent)
            ):
                # Under a heading with a type, the lines of a paragraph are one statement.
                above.parts.append(line)
                above.last = number
            elif heading is not None:
                self._begin(line, heading)
            elif begins:
                self._close()
                self._prose.append(line)
            else:
                self._announced = None
                self._open.clear()
                self._prose.append(line)
        self._end_prose(self._number + 1)

    @property
    def _indent(self) -> int:
        line = self._source[self._number - 1]
        return len(line) - len(line.lstrip())

    def _labelled(self, line: str) -> bool:
        label = LABEL.match(line)
        if label is None:
            return False
        text, relation = (label[2] or "").strip(), _relation_named(label[1])
        if relation is not None and self._open:
            self._open[-1].relations.append((relation, text, self._number))
            self._open[-1].last = self._number
            return True
        kind = type_named(label[1])
        if kind is not None and text.strip("*_ "):
            self._begin(text, kind)
        elif kind is not None:
            self._close()
            self._announced = kind
        return kind is not None

    def _close(self) -> None:
        """Take the prose above, and close the statements at this indentation or deeper."""
        self._end_prose(self._number)
        while self._open and self._open[-1].indent >= self._indent:
            self._open.pop()

    def _begin(self, text: str, kind: MemoryType) -> None:
        self._close()
        parent = self._open[-1] if self._open else None
        one = _Statement(kind, self._indent, self._number, self._number, [text], parent)
        self._statements.append(one)
        self._open.append(one)

    def _end_prose(self, end: int) -> None:
        """Take the prose above a line as observations: its lines, unless an editor broke them."""
        first = end - len(self._prose)
        for group in unwrapped(self._prose):
            text = " ".join(self._prose[group[0] : group[-1] + 1])
            for start, stop in cut(text):
                span = (first + group[0], first + group[-1])
                part = _Statement(MemoryType.OBSERVATION, 0, *span, [text[start:stop]])
                self._statements.append(part)
        self._prose = []

    def _add(self, one: _Statement) -> bool:
        """Add a statement with its relations; return False if it is refused."""
        text = " ".join(one.parts)
        if one.type is MemoryType.OBSERVATION and not any(map(str.isalnum, text)):
            return False
        where = self._where(one.first, one.last)
        one.key = self._into.add(text, one.type, where)
        if one.key is None:
            return False
        if one.parent is not None and one.parent.key is not None:
            self._into.link(one.key, "part_of", f"#{one.parent.key}", where)
        for relation, text, line in one.relations:
            self._into.refer(one.key, relation, [text], self._where(line, line))
        return True

    def _where(self, first: int, last: int) -> str:
        return f"{self._prefix}{_span(first + self._first - 1, last + self._first - 1)}"


class _Values:
    """Reads JSON values, each with its pointer; an id in one may be evidence for a statement."""

    def __init__(self, into: _Candidates, prefix: str = "") -> None:
        self._into = into
        self._prefix = prefix
        self._left = MAX_VALUES

    def read(self, value: Any) -> None:
        """Read a value and what is in it."""
        # The values to read, each with its pointer, the type that its key names, and its depth.
        stack: list[tuple[Any, str, MemoryType | None, int]] = [(value, "", None, 0)]
        while stack:
            current, at, kind, depth = stack.pop()
            if self._into.full:
                self._into.reject(self._prefix + at, "too_many")
                return
            if depth > MAX_DEPTH:
                self._into.reject(self._prefix + at, "too_deep")
            elif isinstance(current, Mapping):
                inside = self._mapping(current, at, kind)
                stack.extend((*item, depth + 1) for item in reversed(inside))
            elif isinstance(current, list | tuple):
                items = current[: self._some(len(current), at)]
                inside = [(item, f"{at}/{number}", kind) for number, item in enumerate(items)]
                stack.extend((*item, depth + 1) for item in reversed(inside))
            elif isinstance(current, str) and kind is not None:
                self._into.add(current, kind, self._prefix + at)
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
        self, value: Mapping[Any, Any], at: str, kind: MemoryType | None
    ) -> list[tuple[Any, str, MemoryType | None]]:
        """Add the statement that a mapping states, or else return the values in it to read."""
        stated = value.get("type", value.get("kind"))
        content = next((value[n] for n in _CONTENT if isinstance(value.get(n), str)), None)
        if content is not None and (kind is not None or isinstance(stated, str)):
            # The type from the key above takes precedence over the one in the mapping.
            chosen = kind or type_named(str(stated))
            if chosen is None:
                self._into.reject(self._prefix + at, "type")
            else:
                self._statement(value, content, chosen, self._prefix + at)
            return []
        inside: list[tuple[Any, str, MemoryType | None]] = []
        for name, item in islice(value.items(), self._some(len(value), at)):
            pointer = f"{at}/{_escaped(str(name))}"
            below = type_named(str(name)) or (kind if str(name).casefold() in _LISTS else None)
            if below is not None or not isinstance(item, str):
                inside.append((item, pointer, below))
            elif str(name).casefold() in _TEXTS or _is_prose(item):
                _read_text(item, self._into, f"{self._prefix}{pointer}#")
        return inside

    def _statement(
        self, value: Mapping[Any, Any], content: str, kind: MemoryType, where: str
    ) -> None:
        own = [value.get(name) for name in ("id", "memory_id", "receipt_id")]
        if any(isinstance(item, str) and _OUR_ID.fullmatch(item) for item in own):
            self._into.reject(where, "own_output")
            return
        key = self._into.add(content, kind, where, value)
        for label, item in islice(value.items(), MAX_TAGS * 4) if key is not None else ():
            relation = _relation_named(str(label))
            if key is not None and relation is not None:
                self._into.refer(key, relation, _texts(item), f"{where}/{_escaped(str(label))}")


def _refused(text: str, kind: MemoryType) -> str | None:
    if kind is MemoryType.IDENTITY:
        return "identity"
    if not any(map(str.isalnum, text)) or len(text) > MAX_CONTENT_CHARS:
        return "content"
    return None


def _relation_named(name: str) -> str | None:
    """Return ``caused_by`` or ``part_of`` for a label or key; None if it means neither."""
    return _RELATIONS.get(" ".join(re.sub(r"[-_/]+", " ", name).casefold().split()))


def _tidy(text: str) -> str:
    """Return a text on one line, without unstorable characters and enclosing emphasis marks."""
    bare = " ".join(_UNSTORABLE.sub(" ", text).split())
    for mark in ("**", "__", "*", "_", "`"):
        if len(bare) > 2 * len(mark) and bare.startswith(mark) and bare.endswith(mark):
            inner = bare[len(mark) : -len(mark)]
            bare = bare if mark in inner else inner.strip()
    return bare


def _folded(text: str) -> str:
    return text.casefold().rstrip(" .!;")


def _is_prose(text: str) -> bool:
    """Return True for a text of several words, as opposed to a name or a code."""
    return len(text.split(maxsplit=1)) > 1


def _tags(value: Any) -> tuple[str, ...]:
    tags = [_tidy(item)[:MAX_TAG_CHARS] for item in _texts(value)]
    return tuple(dict.fromkeys(filter(None, tags)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value[:MAX_REFERENCES] if isinstance(value, list | tuple) else ()
    return [item for item in items if isinstance(item, str)]


def _escaped(name: str) -> str:
    """Return a key as part of a JSON pointer (RFC 6901), limited in length."""
    return _tidy(name)[:80].replace("~", "~0").replace("/", "~1")
