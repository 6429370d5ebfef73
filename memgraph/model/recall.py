"""The request of a recall, and its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypedDict

from pydantic import Field, PrivateAttr, model_validator

from memgraph.model.enums import MemoryKind, MemoryType, Scope, Sensitivity, SourceType
from memgraph.model.values import (
    Edge,
    Memory,
    Millis,
    Moment,
    Name,
    StoredSource,
    Text,
    Unit,
    Value,
)

if TYPE_CHECKING:
    import networkx as nx

MAX_QUERY_CHARS = 2_000_000
MAX_TOP_N = 1_000
MAX_TOKEN_BUDGET = 10_000_000

Accesses = Mapping[str, int | None]
"""When memories had been asked for last, milliseconds; None: never."""
AS_STORED: Final[Accesses] = MappingProxyType({})


class ReplayMoment(NamedTuple):
    """A moment at which an answer was given that is to be given once more.

    Attributes:
        at: when, milliseconds.
        known: until when what was stored by then was known to it, milliseconds: a change that was
            being written at the moment is dated before it, and was not.
        accessed: what it knew of accesses.
    """

    at: Millis
    known: Millis
    accessed: Accesses = AS_STORED


Query = Annotated[Text, Field(max_length=MAX_QUERY_CHARS)]
Names = Annotated[tuple[Name, ...], Field(max_length=1_000)]


class RecallRequest(Value):
    """A question to the memory, and what may answer it.

    A request without a query is for filters alone: it gives what they let through, the most
    important first. Filters of one field are alternatives, except ``tags``, which must all be
    there; fields are joined by "and".

    Attributes:
        query: words or a sentence, in any language.
        top_n: 1..1,000 memories; None: the setting.
        kinds, tags: what may answer; without both, reflections tagged ``weekly`` do not: what they
            repeat does.
        scopes, project_ids, session_scope_ids, agent_id, clearance: narrow what the reader may
            see, never widen it; None keeps all that was granted.
        session_id, exclude_session_id: the session in which something was said.
        source_path: a file, or with a trailing ``/`` everything below a folder.
        event_after, event_before: memories whose event (or else creation) lies in
            [after, before); milliseconds or ISO 8601.
        as_of: the memory as it was at that time: what was known then, judged then.
        valid_at: what was true at that time, as far as is known now, or at ``as_of``: its event (or
            else creation) lies before, its end after it. What was replaced since is there, what
            lost a contradiction or was taken back is not.
        min_relevance: 0..1; what has less to do with the query is left out, see
            ``memgraph.retrieval.context.relevance``; None: nothing is for that.
        include_superseded: show replaced memories beside what replaced them.
        token_budget: tokens that the texts of the bundle may cost together; None: no limit.
        for_conversation_id, for_workflow_run_id, for_step_id: for whom the answer is: kept in its
            receipt, of no weight for what answers.
    """

    query: Query = ""
    top_n: Annotated[int, Field(ge=1, le=MAX_TOP_N)] | None = None
    types: tuple[MemoryType, ...] = ()
    kinds: tuple[MemoryKind, ...] = ()
    tags: Names = ()
    scopes: tuple[Scope, ...] | None = None
    project_ids: Names | None = None
    session_scope_ids: Names | None = None
    agent_id: Name | None = None
    clearance: Sensitivity | None = None
    source_types: tuple[SourceType, ...] = ()
    source_path: Name | None = None
    conversation_id: Name | None = None
    session_id: Name | None = None
    exclude_session_id: Name | None = None
    event_after: Millis | None = None
    event_before: Millis | None = None
    as_of: Millis | None = None
    valid_at: Millis | None = None
    min_relevance: Unit | None = None
    include_superseded: bool = False
    token_budget: Annotated[int, Field(ge=0, le=MAX_TOKEN_BUDGET)] | None = None
    for_conversation_id: Name | None = None
    for_workflow_run_id: Name | None = None
    for_step_id: Name | None = None

    @model_validator(mode="after")
    def _asks_for_something(self) -> RecallRequest:
        if not self.query.strip() and not self.has_filters:
            raise ValueError("query: is empty, and no filter says what to recall instead")
        return self

    @property
    def has_filters(self) -> bool:
        """Return True when anything but the reader's own view narrows the answer."""
        return any(
            (
                self.types,
                self.kinds,
                self.tags,
                self.source_types,
                self.source_path,
                self.conversation_id,
                self.session_id,
                self.exclude_session_id,
                self.event_after is not None,
                self.event_before is not None,
            )
        )


class RecallFields(TypedDict, total=False):
    """The fields of a ``RecallRequest`` without ``query``."""

    top_n: int | None
    types: Collection[MemoryType | str]
    kinds: Collection[MemoryKind | str]
    tags: Collection[str]
    scopes: Collection[Scope | str] | None
    project_ids: Collection[str] | None
    session_scope_ids: Collection[str] | None
    agent_id: str | None
    clearance: Sensitivity | str | None
    source_types: Collection[SourceType | str]
    source_path: str | None
    conversation_id: str | None
    session_id: str | None
    exclude_session_id: str | None
    event_after: Moment | None
    event_before: Moment | None
    as_of: Moment | None
    valid_at: Moment | None
    min_relevance: float | None
    include_superseded: bool
    token_budget: int | None
    for_conversation_id: str | None
    for_workflow_run_id: str | None
    for_step_id: str | None


class Degraded(Value):
    """Something that the answer had to do without. ``code`` is stable, ``text`` is for people."""

    code: str
    text: str


class RecallItem(Value):
    """One recalled memory and why it stands where it stands.

    Attributes:
        score: the fused score times every modifier; comparable within one bundle only.
        legs: the rank, from 1, in every leg that found it.
        modifiers: every factor by name, 1.0 where it changed nothing.
        effective_confidence: 0..1, the stored confidence after decay.
        citation: where it came from, in one line.
        contradicted_by: ids of memories that contradict it, unresolved.
        mark: what a prompt says of it: "contradicted by" or "replaced by" what, and its date.
        brought_by: it did not earn its place: it is the other side of the open contradiction of
            this memory, or replaced it.
    """

    memory: Memory
    source: StoredSource
    score: float
    legs: dict[str, int]
    modifiers: dict[str, float]
    effective_confidence: float
    citation: str
    contradicted_by: tuple[str, ...] = ()
    brought_by: str | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class RecallTrace:
    """The account of an answer, for its receipt: no part of the answer, and equal to any other.

    Attributes:
        change_seq: the last journal entry that the snapshot held.
        left_out: numbers by reason, see ``Receipt.left_out``.
        match: the words searched for, as an FTS5 expression; empty: none.
    """

    change_seq: int | None = field(default=None, compare=False)
    left_out: Mapping[str, int] | None = field(default=None, compare=False)
    match: str = field(default="", compare=False)


class Bundle(Value):
    """The answer: memories in order, the edges among them and around them, their sources.

    The same database, request, clock and id source give the same bundle.

    Attributes:
        at: the time of the recall.
        edges: both ends visible to the reader, at least one of them among ``items``.
        sources: of all items, each once, by id.
        degraded: what the answer had to do without; empty when nothing was missing.
        cut: whether ``top_n``, ``token_budget`` or the bound on edges left something out.
        cut_reasons: of ``top_n``, ``token_budget``, ``max_edges``, sorted.
        token_cost: of the texts of all items together, estimated.
    """

    receipt_id: str
    query: str
    at: Millis
    items: tuple[RecallItem, ...]
    edges: tuple[Edge, ...]
    sources: tuple[StoredSource, ...]
    degraded: tuple[Degraded, ...]
    cut: bool
    cut_reasons: tuple[str, ...]
    token_cost: int
    _account: RecallTrace = PrivateAttr(default_factory=RecallTrace)

    @property
    def account(self) -> RecallTrace:
        """Return how it came about; one that came over a wire has none."""
        return self._account

    def with_account(self, account: RecallTrace) -> Bundle:
        """The bundle itself, once it was made."""
        self._account = account
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the items, in order."""
        return tuple(item.memory.memory_id for item in self.items)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The answer as a graph: items keyed by memory id, and the edges that join two of them.

        A node has the fields of its memory, its ``rank`` from 1 and its ``score``; an edge is keyed
        by edge id and has the fields of the edge. Enums are their values, times milliseconds.
        """
        import networkx as nx

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(receipt_id=self.receipt_id)
        for rank, item in enumerate(self.items, start=1):
            memory = item.memory
            graph.add_node(memory.memory_id, rank=rank, score=item.score, **memory.model_dump())
        for edge in self.edges:
            if edge.from_id in graph and edge.to_id in graph:
                graph.add_edge(edge.from_id, edge.to_id, key=edge.edge_id, **edge.model_dump())
        return graph
