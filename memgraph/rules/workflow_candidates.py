"""Candidates from a workflow step's output, and their bounds.

The text of an output comes from a model. What it says about itself (who captured it, how sure it
is, how secret) is not believed: a type that only a person may give is refused, numbers stay within
what a proposal may have, and all else of that kind is left out and told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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

DEFAULT_CONFIDENCE = 0.8
MAX_REFERENCES = 16
MAX_TAGS = 16
MAX_TAG_CHARS = 64
MAX_REJECTIONS = 200

_ID = re.compile(rf"(?<![\w-])({MEMORY_ID})(?![\w-])")
OUR_ID = re.compile(rf"{MEMORY_ID}|rcl_[0-9A-Z]{{26}}")
_UNSTORABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

NAMES: Mapping[str, MemoryType] = {
    "decision": MemoryType.DECISION,
    "decided": MemoryType.DECISION,
    "resolution": MemoryType.DECISION,
    "todo": MemoryType.TODO,
    "to do": MemoryType.TODO,
    "task": MemoryType.TODO,
    "action": MemoryType.TODO,
    "action item": MemoryType.TODO,
    "next step": MemoryType.TODO,
    "follow up": MemoryType.TODO,
    "goal": MemoryType.GOAL,
    "objective": MemoryType.GOAL,
    "fact": MemoryType.FACT,
    "preference": MemoryType.PREFERENCE,
    "event": MemoryType.EVENT,
    "observation": MemoryType.OBSERVATION,
    "finding": MemoryType.OBSERVATION,
    "identity": MemoryType.IDENTITY,
}
CAUSES = frozenset({"because", "caused by", "reason", "rationale", "why", "based on"})
WHOLES = frozenset({"part of", "parent", "belongs to"})


@dataclass(frozen=True, slots=True)
class WorkflowCandidate:
    """A memory that may be stored.

    Attributes:
        key: names it within the output, for ``caused_by`` and ``part_of``.
        importance: 0..90; ``confidence``: 0..0.9.
        locator: where it stands: ``L3-L4``, a JSON pointer, or both: ``L2-L9#/decisions/0``.
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

    ``too_large``, ``too_many``, ``too_deep``: a bound; the rest was not read. ``json``: a block
    that says it is JSON and is not. ``content``: empty, or over 1,000 characters. ``type``: none
    of the types. ``identity``: only a person tells who somebody is. ``importance``,
    ``confidence``: out of range, brought into it. ``not_believed``: a field that an output has no
    say in. ``repeated``: it stands in the output before. ``reference``: nothing is known by it.
    ``own_output``: what the memory itself had written. ``nothing_found``: no statement of a type.
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
    """Takes statements, refuses what may not be, joins them. For one output."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._known: dict[tuple[str, MemoryType], _Draft] = {}
        self._named: dict[str, _Draft] = {}
        self._later: list[tuple[_Draft, list[str], str, str]] = []
        self._rejections: list[Rejection] = []

    @property
    def full(self) -> bool:
        """Return True when no further statement is taken."""
        return len(self._drafts) >= MAX_PROPOSALS

    def reject(self, locator: str, code: str) -> None:
        """Tell of what was not taken; of very many only the first."""
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
        """Take a statement; gives its key, also where it stood there before; None: refused."""
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
        """Add the cause of a statement: ids, another statement, or a text of its own."""
        if not self._join(key, "caused_by", reference, locator):
            ground = self.add(reference, MemoryType.OBSERVATION, locator)
            if ground is not None and ground != key:
                self._link(self._draft(key).caused_by, f"#{ground}", locator)

    def part_of(self, key: str, reference: str, locator: str) -> None:
        """The whole that a statement says it is part of: ids, or another statement."""
        if not self._join(key, "part_of", reference, locator):
            self.reject(locator, "reference")

    def part_of_key(self, key: str, key_of_whole: str, locator: str) -> None:
        """One statement stands under another."""
        if key != key_of_whole:
            self._link(self._draft(key).part_of, f"#{key_of_whole}", locator)

    def named_later(self, key: str, relation: str, names: list[str], locator: str) -> None:
        """References that may be to a statement further on; resolved by ``done``."""
        self._later.append((self._draft(key), names, relation, locator))

    def done(self) -> tuple[tuple[WorkflowCandidate, ...], tuple[Rejection, ...]]:
        """Return all that was taken, in order, and all that was not."""
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


def type_named(name: str) -> MemoryType | None:
    """Return the type that a label, heading or key names, in singular or plural."""
    words = " ".join(re.sub(r"[-_/]+", " ", name).casefold().split())
    for form in (words, words.removesuffix("s")):
        if form in NAMES:
            return NAMES[form]
    return MemoryType.IDENTITY if words == "identities" else None


def relation_named(name: str) -> str | None:
    """``caused_by`` or ``part_of``, where a label or a key says one of them."""
    words = " ".join(re.sub(r"[-_/]+", " ", name).casefold().split())
    if words in CAUSES:
        return "caused_by"
    return "part_of" if words in WHOLES else None


def tidy(text: str) -> str:
    """In one line, without what no database takes and without the marks of emphasis around it."""
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
