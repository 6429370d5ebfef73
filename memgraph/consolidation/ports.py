"""The interface of an extractor: its input and its proposals.

An extractor reads one page of turns and proposes facts and changes. It writes nothing: its
proposals are checked against the store and the rules before any of them is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from memgraph.model.enums import EntityType, MemoryType, Sensitivity

if TYPE_CHECKING:
    from memgraph.model.jobs import RejectedItem


@dataclass(frozen=True, slots=True)
class PageTurn:
    """A turn: one contribution of one speaker.

    Attributes:
        memory_id: the id of its episode.
        source_role: who spoke: a name, or ``user``, ``assistant`` and the like.
        at_ms: when it was said, or stored if that is unknown; milliseconds.
        told_as: ``person`` or ``agent`` if the caller declared that and the role differs.
        dated: False if it is unknown when it was said.
    """

    memory_id: str
    content: str
    source_role: str
    at_ms: int
    told_as: str | None = None
    dated: bool = True


class NamedEntity(NamedTuple):
    """An entity that a fact names; ``same_as``: another name of it, or empty."""

    name: str
    type: EntityType
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """A fact that may be remembered.

    Attributes:
        content: text that is understandable alone: a labelled sentence without its label, or a
            model's sentence in the third person.
        type: never Identity.
        importance: 0..90.
        confidence: 0.1..0.9; at most 0.5 if an agent said it.
        event_time: when it happened, in milliseconds; None: when it was said, if that is known.
        evidence: the memory ids of the turns that it is based on, the earliest first.
        quote: words as they were said.
        quoted: the memory id of the turn with the quote; empty: the first that has it.
        changes: the id of the known memory that it replaces; None: it is new.
        attributes: ``speaker`` (the role), and a model's name and ``quote``.
    """

    content: str
    type: MemoryType
    importance: int
    confidence: float
    event_time: int | None
    evidence: tuple[str, ...]
    quote: str
    quoted: str = ""
    changes: str | None = None
    entities: tuple[NamedEntity, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndedMemory:
    """A known memory that no longer holds, and the turns that say so."""

    memory_id: str
    evidence: tuple[str, ...]
    quote: str


@dataclass(frozen=True, slots=True)
class RepeatedMemory:
    """A known memory that turns of the page say again."""

    memory_id: str
    content: str
    type: MemoryType
    evidence: tuple[str, ...]


MAX_KNOWN: Final = 60
"""The number of known memories that are shown with a page."""


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """A stored, active fact that a page may touch.

    Attributes:
        speaker: who said it; empty if unknown.
        said_at: when it was said, milliseconds.
        happened: the day, month or year when it happened or will happen, such as ``2024-05``;
            empty if it is unknown or the day when it was said.
    """

    memory_id: str
    content: str
    type: MemoryType
    importance: int
    speaker: str
    said_at: int
    happened: str


@dataclass(frozen=True, slots=True)
class TurnPage:
    """Some turns of one session, all of one scope and agent, in their order.

    Attributes:
        turns: the turns from which facts may be extracted; a candidate's evidence is among them.
        before: turns before the page, as context only.
        sensitivity: the highest among ``turns`` and ``before``.
        known: returns the stored facts that the page may touch, of its scope and agent and up to
            its sensitivity, at most ``MAX_KNOWN``.
        max_facts: the maximum number of candidates, the best ones.
    """

    session_id: str
    turns: tuple[PageTurn, ...]
    before: tuple[PageTurn, ...]
    sensitivity: Sensitivity
    known: Callable[[], Sequence[KnownMemory]]
    max_facts: int


@dataclass(frozen=True, slots=True)
class PageProposal:
    """The proposals of an extractor for a page.

    Attributes:
        model: the name of the model that read it; None: no model did.
        shown: the ids of the known memories that the model read with it.
    """

    facts: tuple[FactCandidate, ...] = ()
    ended: tuple[EndedMemory, ...] = ()
    repeated: tuple[RepeatedMemory, ...] = ()
    rejected: tuple[RejectedItem, ...] = ()
    model: str | None = None
    shown: frozenset[str] = frozenset()


class PageUnread(Exception):
    """Raised by an extractor that has not read a page: it stays for a later run."""


class Extractor(Protocol):
    """Reads a page and proposes facts. Called outside any transaction.

    Attributes:
        name: the name in reports and in the journal: ``labels``, or the model's name.
    """

    @property
    def name(self) -> str: ...

    def propose(self, page: TurnPage) -> PageProposal:
        """Propose facts and changes.

        Raises:
            PageUnread: nothing was proposed yet; the page stays for a later run.
            ProviderError: the model failed, or its answer cannot be read; the page stays, too.
        """
        ...
