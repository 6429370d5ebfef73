"""The interface of an extractor: its input and its proposals.

An extractor reads one page of turns and proposes facts. It writes nothing: its proposals are
checked against the store and the rules before any of them is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from memgraph.model.enums import MemoryType, Sensitivity

if TYPE_CHECKING:
    from memgraph.consolidation.agent_tools import PageTurn
    from memgraph.model.jobs import RejectedItem
    from memgraph.providers.completion import ModelBudget


MIN_CITED_CHARS = 2
"""A shorter citation would occur in almost any text."""


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """A fact that may be remembered.

    Attributes:
        content: text that is understandable alone: a labelled sentence without its label, or a
            model's sentence in the third person.
        type: never Identity.
        importance: 0..90.
        confidence: 0.1..0.9; at most 0.5 if an agent said it.
        event_time: when it was said, or the day that a model extracted from it, in milliseconds;
            None if unknown.
        evidence: the memory ids of the turns that it is based on, the earliest first.
        quote: the sentence as it was said.
        attributes: ``speaker`` (the role), and a model's name and ``quote``.
    """

    content: str
    type: MemoryType
    importance: int
    confidence: float
    event_time: int | None
    evidence: tuple[str, ...]
    quote: str
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A stored, active fact as an extractor sees it.

    ``protected``: confirmed by a person; no proposal can decide a contradiction against it.
    ``time_ms``: when it happened, or else when it was stored.
    """

    memory_id: str
    content: str
    type: MemoryType
    confidence: float
    time_ms: int
    protected: bool


class KnownFacts(Protocol):
    """Look-ups in the store, each a short read of its own.

    They return only active facts of the page's scope and agent, up to its sensitivity.
    """

    def conflicting(self, text: str) -> Sequence[KnownFact]:
        """Return facts that may be about the subject of a statement."""
        ...


@dataclass(frozen=True, slots=True)
class TurnPage:
    """Some turns of one session, all of one scope and agent, in their order.

    Attributes:
        turns: the turns from which facts may be extracted; a candidate's evidence is among them.
        before: turns before the page, as context only.
        sensitivity: the highest among ``turns`` and ``before``.
        known: look-ups in the store.
        budget: the budget for model calls; an extractor checks it before each call, and deducts.
        max_facts: the maximum number of candidates, the best ones.
        stop: returns True when the run should end; an extractor checks it before each call.
    """

    session_id: str
    turns: tuple[PageTurn, ...]
    before: tuple[PageTurn, ...]
    sensitivity: Sensitivity
    known: KnownFacts
    budget: ModelBudget
    max_facts: int
    now_ms: int
    stop: Callable[[], bool] = field(default=lambda: False)


@dataclass(frozen=True, slots=True)
class ResolutionProposal:
    """A proposal that one of two contradicting memories holds.

    ``winner`` and ``loser`` are ids of stored facts, or ``#0``, ``#1``, … for an index into
    ``PageProposal.facts``. The proposal is applied only if both texts contain the words cited from
    them.
    """

    winner: str
    loser: str
    reason: str
    winner_says: str = ""
    loser_says: str = ""

    def is_grounded_in(self, winner: str, loser: str) -> bool:
        """Return True if each text contains the words cited from it, and these differ."""
        cited = [_plain(words) for words in (self.winner_says, self.loser_says)]
        if min(map(len, cited)) < MIN_CITED_CHARS or cited[0] == cited[1]:
            return False
        return cited[0] in _plain(winner) and cited[1] in _plain(loser)


@dataclass(frozen=True, slots=True)
class PageProposal:
    """The proposals of an extractor for a page.

    Attributes:
        complete: False if the run was stopped or the budget was spent before the page was read.
            Nothing of such a page is stored; it stays for a later run.
        calls, tokens: the model calls and tokens that were deducted from the budget.
    """

    facts: tuple[FactCandidate, ...] = ()
    resolutions: tuple[ResolutionProposal, ...] = ()
    rejected: tuple[RejectedItem, ...] = ()
    calls: int = 0
    tokens: int = 0
    complete: bool = True


class Extractor(Protocol):
    """Reads a page and proposes facts. Called outside any transaction.

    Attributes:
        name: the name in reports and in the journal: ``labels``, or the model's name.
    """

    @property
    def name(self) -> str: ...

    def propose(self, page: TurnPage) -> PageProposal:
        """Propose facts and resolutions.

        Raises:
            ProviderUnavailable, ProviderRejected: the page stays for a later run.
            ProviderAnswerInvalid: the model's answer is unusable.
        """
        ...
