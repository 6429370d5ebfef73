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
from collections.abc import Iterator, Mapping, Sequence
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
_RELATIONS: Final = {
    "because": "caused_by",
    "caused by": "caused_by",
    "reason": "caused_by",
    "rationale": "caused_by",
    "why": "caused_by",
    "part of": "part_of",
}


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
    parser = _Parser()
    if isinstance(output, str):
        parser.read_text(output, "")
    else:
        parser.read_value(output, "")
    return parser.parsed()


def labelled(text: str) -> tuple[MemoryType, str] | None:
    """Return the type and the text of a labelled sentence, such as "TODO: call Mira"; else None."""
    found = read_label(text)
    if found is None:
        return None
    kind, rest = found[0], _tidy(found[1])
    return None if _refused(rest, kind) else (kind, rest)


class _Parser:
    """Reads one output; collects its statements, and links them at the end."""

    def __init__(self) -> None:
        self._candidates: dict[tuple[str, MemoryType], WorkflowCandidate] = {}
        # By the key that a JSON object gives, or the digest of the text.
        self._named: dict[str, WorkflowCandidate] = {}
        self._references: list[tuple[WorkflowCandidate, str, str, str]] = []
        self._rejections: list[RejectedPart] = []
        self._left = MAX_VALUES

    def parsed(self) -> ParsedOutput:
        """Resolve the references: to memories, to other statements, or else to a new cause."""
        for candidate, relation, name, locator in self._references:
            ids = _ID.findall(name)
            target = self._named.get(name.lstrip("#")) or self._named.get(content_hash(_tidy(name)))
            if not ids and target in (None, candidate) and relation == "caused_by":
                target = self._add(name, MemoryType.OBSERVATION, locator)
            elif not ids and target is None:
                self._reject(locator, "reference")
            links: list[str] = getattr(candidate, relation)
            links += ids or ([f"#{target.key}"] if target not in (None, candidate) else [])
        for candidate in self._candidates.values():
            candidate.caused_by = list(dict.fromkeys(candidate.caused_by))[:MAX_REFERENCES]
            candidate.part_of = list(dict.fromkeys(candidate.part_of))[:MAX_REFERENCES]
        if not self._candidates and not self._rejections:
            self._reject("", "nothing_found")
        return ParsedOutput(tuple(self._candidates.values()), tuple(self._rejections))

    def read_text(self, text: str, prefix: str) -> None:
        """Add the statements of a text; ``prefix`` begins every locator."""
        if len(text) > MAX_OUTPUT_CHARS:
            self._reject(prefix, "too_large")
            text = text[:MAX_OUTPUT_CHARS]
        # A Markdown list may begin like a JSON list.
        if text.lstrip()[:1] in ("{", "[") and isinstance(value := _json(text), dict | list):
            self.read_value(value, prefix)
            return
        for first, lines, language in _parts(text.splitlines()):
            if language is None:
                self._read_lines(lines, prefix, first)
            elif language.casefold() in ("json", "jsonc", "json5"):
                where = f"{prefix}{_span(first, first + max(len(lines), 1) - 1)}"
                value = _json("\n".join(lines))
                if value is _INVALID:
                    self._reject(where, "json")
                else:
                    self.read_value(value, f"{where}#")

    def _read_lines(self, lines: Sequence[str], prefix: str, first: int) -> None:
        """Add the statements of lines that are no JSON; ``first`` is the number of the first."""

        def where(start: int, end: int) -> str:
            return f"{prefix}{_span(start + first - 1, end + first - 1)}"

        added: dict[int, WorkflowCandidate] = {}
        for one in _Lines(lines).read():
            if one.type is None:
                for group in unwrapped(one.parts):
                    text, at = " ".join(one.parts[group[0] : group[-1] + 1]), one.first
                    for start, end in cut(text) if any(map(str.isalnum, text)) else ():
                        place = where(at + group[0], at + group[-1])
                        self._add(text[start:end], MemoryType.OBSERVATION, place)
            elif made := self._add(" ".join(one.parts), one.type, where(one.first, one.last)):
                added[id(one)] = made
                whole = added.get(id(one.parent))
                if whole not in (None, made):
                    made.part_of.append(f"#{whole.key}")
                for relation, text, line in one.relations:
                    self._references.append((made, relation, text, where(line, line)))

    def read_value(
        self, value: Any, at: str, kind: MemoryType | None = None, depth: int = 0
    ) -> None:
        """Add the statements in a JSON value.

        Args:
            at: its place; the JSON pointers of the values in it are appended.
            kind: the type that its key names.
        """
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            self._reject(at, "too_many" if self._left < 0 else "too_deep")
        elif isinstance(value, Mapping):
            self._read_mapping(value, at, kind, depth)
        elif isinstance(value, list | tuple):
            for number, item in enumerate(islice(value, max(self._left, 0) + 1)):
                self.read_value(item, f"{at}/{number}", kind, depth + 1)
        elif isinstance(value, str) and kind is not None:
            self._add(value, kind, at)
        elif isinstance(value, str) and _is_prose(value):
            self.read_text(value, f"{at}#")

    def _read_mapping(
        self, value: Mapping[Any, Any], at: str, kind: MemoryType | None, depth: int
    ) -> None:
        """Add the statement that a mapping states, or else those of the values in it."""
        stated = value.get("type", value.get("kind"))
        content = next((value[n] for n in _CONTENT if isinstance(value.get(n), str)), None)
        if content is not None and (kind is not None or isinstance(stated, str)):
            # The type from the key above takes precedence over the one in the mapping.
            chosen = kind or type_named(str(stated))
            own = [value.get(name) for name in ("id", "memory_id", "receipt_id")]
            if chosen is None:
                self._reject(at, "type")
            elif any(isinstance(item, str) and _OUR_ID.fullmatch(item) for item in own):
                self._reject(at, "own_output")
            elif (made := self._add(content, chosen, at, value)) is not None:
                for name, item in islice(value.items(), MAX_VALUES):
                    relation, where = _relation_named(str(name)), f"{at}/{_escaped(name)}"
                    if relation is not None:
                        named = ((made, relation, text, where) for text in _texts(item))
                        self._references.extend(named)
            return
        for name, item in islice(value.items(), max(self._left, 0) + 1):
            folded, where = str(name).casefold(), f"{at}/{_escaped(name)}"
            below = type_named(folded) or (kind if folded in _LISTS else None)
            if isinstance(item, str) and below is None and folded in _TEXTS:
                self.read_text(item, f"{where}#")
            else:
                self.read_value(item, where, below, depth + 1)

    def _add(
        self, content: str, kind: MemoryType, locator: str, given: Mapping[Any, Any] | None = None
    ) -> WorkflowCandidate | None:
        """Add a statement and return it, also if it is a repetition; None if it is refused.

        Args:
            given: the JSON object that states it.
        """
        text, given = _tidy(content), given or {}
        identity = (content_hash(text), kind)
        known = self._candidates.get(identity)
        is_full = len(self._candidates) >= MAX_PROPOSALS
        code = _refused(text, kind) or ("repeated" if known else "too_many" if is_full else None)
        if code is not None:
            self._reject(locator, code)
            return known
        importance = self._number(given, "importance", DEFAULT_IMPORTANCE[kind], locator)
        candidate = self._candidates[identity] = WorkflowCandidate(
            key=f"o{len(self._candidates)}",
            content=text,
            type=kind,
            importance=int(importance),
            confidence=self._number(given, "confidence", DEFAULT_CONFIDENCE, locator),
            locator=locator,
            tags=tuple(dict.fromkeys(filter(None, map(_tag, _texts(given.get("tags")))))),
        )
        name = given.get("key", given.get("id"))
        for label in (name, identity[0]):
            if isinstance(label, str) and label:
                self._named.setdefault(label, candidate)
        return candidate

    def _number(self, given: Mapping[Any, Any], name: str, default: float, locator: str) -> float:
        value = given.get(name)
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        most = MAX_IMPORTANCE if name == "importance" else MAX_CONFIDENCE
        fitting = min(max(value, 0), most) if is_number and value == value else default
        if fitting != value:
            self._reject(locator, name)
        return fitting

    def _reject(self, locator: str, code: str) -> None:
        """Record a rejection; that there are too many, once in a row."""
        repeats = code == "too_many" and self._rejections and self._rejections[-1].code == code
        if not repeats and len(self._rejections) < MAX_REJECTIONS:
            self._rejections.append(RejectedPart(locator=locator, code=code))


_INVALID: Final = object()


def _json(text: str) -> Any:
    """Return the value of a JSON text, or ``_INVALID``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _INVALID


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


@dataclass(slots=True, eq=False)
class _Statement:
    """A statement that is being read: more lines may follow. ``type``: None: it is prose."""

    type: MemoryType | None
    indent: int
    first: int
    last: int
    parts: list[str]
    parent: _Statement | None = None
    relations: list[tuple[str, str, int]] = field(default_factory=list)


class _Lines:
    """Reads labels, checkboxes, lists under a heading, and prose."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._source = [line.expandtabs(TAB) for line in lines]
        self._statements: list[_Statement] = []
        # The last statement and those that it is indented below.
        self._open: list[_Statement] = []
        self._announced: MemoryType | None = None

    def read(self) -> list[_Statement]:
        """Return the statements of all lines, those above others first."""
        for section in sections(read_lines(self._source)):
            self._announced = None
            # A line may only look like a heading, such as a date.
            if section.title and not self._source[section.first - 1].lstrip().startswith("#"):
                block = Block("paragraph", section.title, section.first, section.first)
                self._read(block, section.first, section.title, None)
            heading = type_named(section.title.strip("*_ :"))
            for block in (each for each in section.blocks if each.kind != "omitted"):
                for number, line in enumerate((block.raw or block.text).split("\n"), block.first):
                    self._read(block, number, line, heading)
        return self._statements

    def _read(self, block: Block, number: int, line: str, heading: MemoryType | None) -> None:
        """Read a line. A label without a text applies to the list below it."""
        if self._open and self._open[-1].last != number - 1:
            self._open.clear()
        above = self._open[-1] if self._open else None
        begins = block.kind in ("item", "row") and number == block.first
        label = LABEL.match(line)
        name, text = (label[1], (label[2] or "").strip()) if label else ("", "")
        named, relation = type_named(name), _relation_named(name)
        kind = (self._announced or heading) if begins else heading
        if begins and block.checked is not None:
            done = MemoryType.EVENT if block.checked else MemoryType.TODO
            self._begin(done, TICKED * block.checked + line, number)
        elif relation is not None and above is not None and (typed := self._typed):
            typed.relations.append((relation, text, number))
            typed.last = above.last = number
        elif named is not None and text.strip("*_ "):
            self._begin(named, text, number)
        elif named is not None:
            self._announced = named
        elif above is not None and not begins and self._continues(above, block, number, heading):
            above.parts.append(line)
            above.last = number
        else:
            self._begin(kind, line, number)
            if kind is None and not begins:
                self._announced = None

    @property
    def _typed(self) -> _Statement | None:
        return next((one for one in reversed(self._open) if one.type is not None), None)

    def _continues(
        self, above: _Statement, block: Block, number: int, heading: MemoryType | None
    ) -> bool:
        """Return True if a line belongs to the statement above."""
        if above.type is None or block.kind == "item":
            return above.first >= block.first
        # Under a heading with a type, the lines of a paragraph are one statement.
        return heading is not None or self._indent(number) > above.indent

    def _begin(self, kind: MemoryType | None, text: str, number: int) -> None:
        indent = self._indent(number)
        while self._open and (self._open[-1].indent >= indent or self._open[-1].type is None):
            self._open.pop()
        parent = self._open[-1] if self._open else None
        one = _Statement(kind, indent, number, number, [text], parent)
        self._statements.append(one)
        self._open.append(one)

    def _indent(self, number: int) -> int:
        line = self._source[number - 1]
        return len(line) - len(line.lstrip())


def _refused(text: str, kind: MemoryType) -> str | None:
    if kind is MemoryType.IDENTITY:
        return "identity"
    if not any(map(str.isalnum, text)) or len(text) > MAX_CONTENT_CHARS:
        return "content"
    return None


def _relation_named(name: str) -> str | None:
    """Return ``caused_by`` or ``part_of`` for a label or key; None if it means neither."""
    return _RELATIONS.get(name.replace("_", " ").casefold())


def _tidy(text: str) -> str:
    """Return a text on one line, without unstorable characters and enclosing emphasis marks."""
    bare = " ".join(_UNSTORABLE.sub(" ", text).split())
    for mark in ("**", "__", "*", "_", "`"):
        if len(bare) > 2 * len(mark) and bare.startswith(mark) and bare.endswith(mark):
            inner = bare[len(mark) : -len(mark)]
            bare = bare if mark in inner else inner.strip()
    return bare


def _tag(text: str) -> str:
    return _tidy(text)[:MAX_TAG_CHARS]


def _is_prose(text: str) -> bool:
    """Return True for a text of several words, as opposed to a name or a code."""
    return len(text.split(maxsplit=1)) > 1


def _texts(value: Any) -> list[str]:
    """Return the texts of a field with one text or a list of them."""
    items = [value] if isinstance(value, str) else value
    items = items[:MAX_REFERENCES] if isinstance(items, list | tuple) else ()
    return [item for item in items if isinstance(item, str) and item.strip()]


def _escaped(name: object) -> str:
    """Return a key as part of a JSON pointer (RFC 6901), limited in length."""
    return _tidy(str(name))[:80].replace("~", "~0").replace("/", "~1")
