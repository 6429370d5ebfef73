"""The request and the result of a recall."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypedDict

from pydantic import Field, PrivateAttr, model_validator

from memgraph.model.enums import MarkKind, MemoryKind, MemoryType, Scope, Sensitivity, SourceType
from memgraph.model.values import (
    Edge,
    Kind,
    Memory,
    Millis,
    Moment,
    Name,
    StoredSource,
    Text,
    Unit,
    Value,
    with_preferences,
)

if TYPE_CHECKING:
    import networkx as nx

MAX_QUERY_CHARS = 2_000_000
MAX_TOP_N = 1_000
MAX_TOKEN_BUDGET = 10_000_000

Query = Annotated[Text, Field(max_length=MAX_QUERY_CHARS)]
Names = Annotated[tuple[Name, ...], Field(max_length=1_000)]


class RecallRequest(Value):
    """A recall: a query and filters.

    A request without a query returns the memories that pass the filters, the most important first.
    The values of one filter are alternatives, except for ``tags``, which must all match. A memory
    must pass every filter.

    Attributes:
        query: words or a sentence, in any language.
        top_n: the maximum number of memories, 1 to 1,000; None: as configured in the settings.
        kinds, tags: kinds and tags of the memories to return. Without both, reflections tagged
            ``weekly`` are left out in favour of their sources.
        scopes, project_ids, session_scope_ids, agent_id, clearance: narrow the view of the
            reader, never widen it; None keeps everything granted.
        session_id, exclude_session_id: include only, or exclude, the turns of a session.
        source_path: a file, or with a trailing ``/`` everything below a folder.
        event_after, event_before: memories whose event (or else creation) lies in
            [after, before); milliseconds or ISO 8601.
        as_of: read the state as of this time: what was known then.
        valid_at: memories valid at this time, by what is known now (or was known at the time to
            read): the event (or else creation) is before it, the end of validity after it.
            Memories replaced since are included; those that lost a contradiction or were retracted
            are not.
        min_relevance: the minimum relevance, 0..1; see ``relevance_of`` in
            ``memgraph.retrieval.relevance``. None: no minimum.
        include_superseded: also return replaced memories, next to those that replaced them.
        token_budget: the maximum tokens of all texts together; None: no limit.
        for_conversation_id, for_workflow_run_id, for_step_id: the recipient of the answer, stored
            in its receipt; it does not influence the answer.
    """

    query: Query = ""
    top_n: Annotated[int, Field(ge=1, le=MAX_TOP_N)] | None = None
    types: tuple[MemoryType, ...] = ()
    kinds: tuple[Kind, ...] = ()
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

    _preferences = model_validator(mode="before")(with_preferences)

    @model_validator(mode="after")
    def _asks_for_something(self) -> RecallRequest:
        if not self.query.strip() and not self.has_filters:
            raise ValueError("query: is empty; a query or a filter is required")
        return self

    @property
    def has_filters(self) -> bool:
        """True if the request has a filter other than those that narrow the reader's view."""
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
    """A missing part of an answer. ``code`` is stable, ``text`` is for people."""

    code: str
    text: str


class Mark(Value):
    """What an edge says about a memory and another one.

    Attributes:
        memory_id: the other memory.
        weight: 0..1, the probability that the edge is right; 1: somebody stated it.
        edge_id: the edge, by which it can be accepted, dismissed or resolved.
    """

    kind: MarkKind
    memory_id: str
    weight: float
    edge_id: str
    reason: str | None = None

    @property
    def relation(self) -> str:
        """The relation of the memory to the other one in words, such as "probably changed by"."""
        undecided = self.kind in (MarkKind.CHANGES, MarkKind.CHANGED_BY) or self.weight < 1.0
        return f"{'probably ' * undecided}{self.kind.value.replace('_', ' ')}"


class RecallItem(Value):
    """A recalled memory with its score and rank in each leg.

    Attributes:
        score: the fused score times all modifiers; comparable only within one bundle.
        legs: the rank, from 1, in every leg that returned it.
        modifiers: every factor by name; 1.0: no change.
        effective_confidence: 0..1, the stored confidence after decay.
        citation: its source in one line.
        contradicted_by: ids of memories that contradict it, unresolved.
        marks: what contradicts, probably changes or replaced it, and the reverse; at most 10.
        mark: the note for prompts: "contradicts", "probably changed by", "probably changes" or
            "replaced by" an id, and the date.
        brought_by: the memory whose open contradiction, change or replacement added it.
    """

    memory: Memory
    source: StoredSource
    score: float
    legs: dict[str, int]
    modifiers: dict[str, float]
    effective_confidence: float
    citation: str
    contradicted_by: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    brought_by: str | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class RecallTrace:
    """Details of an answer for its receipt; they are not part of the answer or of its equality.

    Attributes:
        change_seq: the last journal entry in the snapshot.
        left_out: numbers by reason; see ``Receipt.left_out``.
        match: the search terms as an FTS5 expression; empty: none; None: nothing is hidden from the
            reader, so that its hidden matches need not be searched.
    """

    change_seq: int | None = field(default=None, compare=False)
    left_out: Mapping[str, int] | None = field(default=None, compare=False)
    match: str | None = field(default="", compare=False)


class Bundle(Value):
    """The result of a recall: memories in order, their edges, and their sources.

    The same database, request, clock and id source give the same bundle.

    Attributes:
        at: the time of the recall.
        edges: edges of ``items``; the memory at the other end may be any that the reader may see.
        sources: the sources of all items, each once, by id.
        degraded: missing parts of the answer; empty: none.
        cut: whether ``top_n``, ``token_budget`` or the limit of edges left something out.
        cut_reasons: any of ``top_n``, ``token_budget`` and ``max_edges``, sorted.
        token_cost: the estimated number of tokens of all texts together.
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
        """The details for the receipt; empty if the bundle was received from a server."""
        return self._account

    def with_account(self, account: RecallTrace) -> Bundle:
        """Set the details for the receipt, and return the bundle."""
        self._account = account
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the items, in order."""
        return tuple(item.memory.memory_id for item in self.items)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return a networkx graph of the items, keyed by memory id, and the edges between them.

        A node has the fields of its memory, its ``rank`` from 1 and its ``score``. An edge is keyed
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
