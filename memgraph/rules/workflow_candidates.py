"""Candidates from a workflow step's output, and their bounds.

The text of an output comes from a model. Its claims about itself (its author, confidence or
sensitivity) are not trusted: a type that only a person may set is refused, numbers are limited to
the range of a proposal, and other such fields are left out and reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from memgraph.model.columns import DEFAULT_IMPORTANCE
from memgraph.model.enums import MemoryType
from memgraph.rules.proposals import (
    MAX_CONFIDENCE,
    MAX_CONTENT_CHARS,
    MAX_IMPORTANCE,
    MAX_PROPOSALS,
)
from memgraph.rules.similarity import MEMORY_ID, content_hash
from memgraph.text.labels import read_label

DEFAULT_CONFIDENCE = 0.8
MAX_REFERENCES = 16
MAX_TAGS = 16
MAX_TAG_CHARS = 64
MAX_REJECTIONS = 200

_ID = re.compile(rf"(?<![\w-])({MEMORY_ID})(?![\w-])")
OUR_ID = re.compile(rf"{MEMORY_ID}|rcl_[0-9A-Z]{{26}}")
_UNSTORABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

CAUSES = frozenset({"because", "caused by", "reason", "rationale", "why", "based on"})
WHOLES = frozenset({"part of", "parent", "belongs to"})


@dataclass(frozen=True, slots=True)
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
    caused_by: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected or changed candidate; ``code`` is stable.

    ``too_large``, ``too_many``, ``too_deep``: a limit is exceeded; the rest was not read. ``json``:
    a block marked as JSON is invalid. ``content``: empty, or over 1,000 characters. ``type``:
    unknown. ``identity``: only a person may state an identity. ``importance``, ``confidence``:
    invalid, and replaced by a valid value. ``not_believed``: a field that an output may not set.
    ``repeated``: it occurs earlier in the output. ``reference``: to something unknown.
    ``own_output``: it has the id of a memory. ``nothing_found``: no statement of any type.
    """

    locator: str
    code: str


@dataclass(slots=True)
class _Draft:
    key: str
    content: str
    type: MemoryType
    importance: int
    confidence: float
    locator: str
    tags: tuple[str, ...]
    caused_by: list[str] = field(default_factory=list)
    part_of: list[str] = field(default_factory=list)


class CandidateCollector:
    """Collects, checks and links the statements of one output."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._known: dict[tuple[str, MemoryType], _Draft] = {}
        self._named: dict[str, _Draft] = {}
        self._later: list[tuple[_Draft, list[str], str, str]] = []
        self._rejections: list[Rejection] = []

    @property
    def full(self) -> bool:
        """True if no further statement is accepted."""
        return len(self._drafts) >= MAX_PROPOSALS

    def reject(self, locator: str, code: str) -> None:
        """Record a rejection; only the first ``MAX_REJECTIONS`` are kept."""
        if len(self._rejections) < MAX_REJECTIONS:
            self._rejections.append(Rejection(locator, code))

    def add(
        self,
        content: str,
        kind: MemoryType,
        locator: str,
        *,
        importance: Any = None,
        confidence: Any = None,
        tags: tuple[str, ...] = (),
        name: str | None = None,
    ) -> str | None:
        """Add a statement; return its key, also if it is a repetition, or None if it is refused."""
        text = tidy(content)
        refused = _refused(text, kind)
        if refused is not None:
            self.reject(locator, refused)
            return None
        identity = (content_hash(text), kind)
        existing = self._known.get(identity)
        if existing is not None:
            self.reject(locator, "repeated")
            return existing.key
        if self.full:
            self.reject(locator, "too_many")
            return None
        draft = _Draft(
            key=f"o{len(self._drafts)}",
            content=text,
            type=kind,
            importance=self._importance(importance, kind, locator),
            confidence=self._confidence(confidence, locator),
            locator=locator,
            tags=tags[:MAX_TAGS],
        )
        self._drafts.append(draft)
        self._known[identity] = draft
        for label in filter(None, (name, _folded(text))):
            self._named.setdefault(label, draft)
        return draft.key

    def caused_by(self, key: str, reference: str, locator: str) -> None:
        """Add the cause of a statement: memory ids, another statement, or else a new one."""
        if not self._join(key, "caused_by", reference, locator):
            ground = self.add(reference, MemoryType.OBSERVATION, locator)
            if ground is not None and ground != key:
                self._link(self._draft(key).caused_by, f"#{ground}", locator)

    def part_of(self, key: str, reference: str, locator: str) -> None:
        """Add the whole of which a statement is part: memory ids, or another statement."""
        if not self._join(key, "part_of", reference, locator):
            self.reject(locator, "reference")

    def part_of_key(self, key: str, key_of_whole: str, locator: str) -> None:
        """Record that a statement is part of the one above it."""
        if key != key_of_whole:
            self._link(self._draft(key).part_of, f"#{key_of_whole}", locator)

    def named_later(self, key: str, relation: str, names: list[str], locator: str) -> None:
        """Record references, which may be to later statements; ``done`` resolves them."""
        self._later.append((self._draft(key), names, relation, locator))

    def done(self) -> tuple[tuple[WorkflowCandidate, ...], tuple[Rejection, ...]]:
        """Resolve the references, and return the candidates, in order, and the rejections."""
        for draft, names, relation, locator in self._later:
            for name in names:
                if relation == "caused_by":
                    self.caused_by(draft.key, name, locator)
                else:
                    self.part_of(draft.key, name, locator)
        self._later.clear()
        if not self._drafts and not self._rejections:
            self.reject("", "nothing_found")
        candidates = tuple(
            WorkflowCandidate(
                key=item.key,
                content=item.content,
                type=item.type,
                importance=item.importance,
                confidence=item.confidence,
                locator=item.locator,
                tags=item.tags,
                caused_by=tuple(item.caused_by),
                part_of=tuple(item.part_of),
            )
            for item in self._drafts
        )
        return candidates, tuple(self._rejections)

    def _draft(self, key: str) -> _Draft:
        return self._drafts[int(key[1:])]

    def _join(self, key: str, relation: str, reference: str, locator: str) -> bool:
        links: list[str] = getattr(self._draft(key), relation)
        ids = [match[0] for match in _ID.finditer(reference)]
        for match in ids:
            self._link(links, match, locator)
        if ids:
            return True
        target = self._named.get(reference.lstrip("#")) or self._named.get(_folded(tidy(reference)))
        if target is None or target.key == key:
            return False
        self._link(links, f"#{target.key}", locator)
        return True

    def _link(self, links: list[str], reference: str, locator: str) -> None:
        if reference in links:
            return
        if len(links) >= MAX_REFERENCES:
            self.reject(locator, "too_many")
            return
        links.append(reference)

    def _importance(self, value: Any, kind: MemoryType, locator: str) -> int:
        usual = DEFAULT_IMPORTANCE[kind]
        if value is None:
            return usual
        if isinstance(value, bool) or not isinstance(value, int):
            self.reject(locator, "importance")
            return usual
        if not 0 <= value <= MAX_IMPORTANCE:
            self.reject(locator, "importance")
        return min(max(value, 0), MAX_IMPORTANCE)

    def _confidence(self, value: Any, locator: str) -> float:
        if value is None:
            return DEFAULT_CONFIDENCE
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            self.reject(locator, "confidence")
            return DEFAULT_CONFIDENCE
        if not 0 <= value <= MAX_CONFIDENCE:
            self.reject(locator, "confidence")
        return float(min(max(value, 0), MAX_CONFIDENCE))


def labelled(text: str) -> tuple[MemoryType, str] | None:
    """Return the type and the text of a labelled sentence, such as "TODO: call Mira"; else None."""
    found = read_label(text)
    if found is None:
        return None
    kind, rest = found[0], tidy(found[1])
    return None if _refused(rest, kind) else (kind, rest)


def relation_named(name: str) -> str | None:
    """Return ``caused_by`` or ``part_of`` for a label or key; None if it means neither."""
    words = " ".join(re.sub(r"[-_/]+", " ", name).casefold().split())
    if words in CAUSES:
        return "caused_by"
    return "part_of" if words in WHOLES else None


def tidy(text: str) -> str:
    """Return a text on one line, without unstorable characters and enclosing emphasis marks."""
    bare = " ".join(_UNSTORABLE.sub(" ", text).split())
    for mark in ("**", "__", "*", "_", "`"):
        if len(bare) > 2 * len(mark) and bare.startswith(mark) and bare.endswith(mark):
            inner = bare[len(mark) : -len(mark)]
            bare = bare if mark in inner else inner.strip()
    return bare


def _refused(text: str, kind: MemoryType) -> str | None:
    if kind is MemoryType.IDENTITY:
        return "identity"
    if not any(map(str.isalnum, text)) or len(text) > MAX_CONTENT_CHARS:
        return "content"
    return None


def _folded(text: str) -> str:
    return text.casefold().rstrip(" .!;")
