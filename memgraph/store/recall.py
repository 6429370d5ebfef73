"""Queries for the candidates of recall's legs, by text, vector, entity and filter.

Candidates are filtered before they are ranked: a memory that the ``View`` hides or a filter
excludes never takes a place in a leg, and never serves as a neighbour or as an end of an edge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import sqlalchemy as sa

from memgraph.clock import MAX_MS
from memgraph.model.enums import (
    STORED_STATUSES,
    EdgeType,
    EmbeddingState,
    MemoryKind,
    MemoryStatus,
    MemoryType,
    Scope,
)
from memgraph.model.recall import RecallRequest
from memgraph.model.sources import NamedSource
from memgraph.model.values import Memory, StoredSource
from memgraph.rules.conversations import WEEKLY
from memgraph.rules.scope import Viewer, predicate
from memgraph.store import embeddings, tables
from memgraph.store.postings import mark_of
from memgraph.store.rows import SOURCE_FIELDS, memory_from_row, source_from_row
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import (
    Column,
    CompiledStatement,
    among,
    holds_all,
    listed,
    member,
    ordered,
    prepared,
    value,
)
from memgraph.store.visibility import Table, View, happened_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.store.text_search import TextMatches
    from memgraph.store.vector_index import VectorIndex


# The view of the reader and the filters of the request, as expressions.


class FilterShape(NamedTuple):
    """The part of a ``RecallFilter`` that determines its SQL; the values are in ``params``.

    Attributes:
        view: the shape of the reader's view.
        given: the names of the filters that are set.
    """

    view: View
    given: frozenset[str]

    def where(self, m: Table) -> Column:
        """Return the condition on a row of ``memories``."""
        if "valid_at" in self.given:
            is_valid = self._held(m)
        else:
            # Whether a superseded or retracted memory is shown is up to the view.
            own = m.c.valid_until
            is_valid = own.is_(None) | (own > value("at"))
            is_valid |= self.view.status(m) != MemoryStatus.ACTIVE
        return sa.and_(self.view.where(m), self.view.unerased(m), is_valid, *self._filters(m))

    def _held(self, m: Table) -> Column:
        """Return the condition that a memory was valid at ``valid_at``, as known to the view."""
        e = tables.edges.alias("l")
        has_lost = (
            sa.exists()
            .where(e.c.edge_type == EdgeType.CONTRADICTS)
            .where((e.c.from_memory_id == m.c.memory_id) | (e.c.to_memory_id == m.c.memory_id))
            .where(member(self.view.of_edge(e, "resolution"), "loser_id") == m.c.memory_id)
            .correlate(m)
        )
        was_valid = (self.view.status(m) == MemoryStatus.ACTIVE) | ~has_lost
        end = sa.func.coalesce(self.view.held_until(m), sa.literal_column(str(MAX_MS)))
        lasted = end > value("valid_at")
        return sa.and_(happened_at(m) <= value("valid_at"), lasted, was_valid)

    def _filters(self, m: Table) -> Iterator[Column]:
        terms = {
            "types": among(m.c.type, "types"),
            "kinds": among(m.c.kind, "kinds"),
            "tags": holds_all(m.c.tags, "tags"),
            "session_id": m.c.session_id == value("session_id"),
            "exclude_session_id": m.c.session_id.is_distinct_from(value("exclude_session_id")),
            "event_after": happened_at(m) >= value("event_after"),
            "event_before": happened_at(m) < value("event_before"),
            "without": _comes_from_elsewhere(m),
        }
        yield from (term for name, term in terms.items() if name in self.given)
        if self.given.isdisjoint(("kinds", "tags")):
            # A weekly reflection repeats the words of a whole week; its sources match themselves.
            yield (m.c.kind != MemoryKind.REFLECTION) | (
                sa.func.instr(m.c.tags, f'"{WEEKLY}"') == 0
            )
        s = tables.sources.alias("s")
        source = list(self._source_filters(s))
        if source:
            yield m.c.source_id.in_(sa.select(s.c.source_id).where(*source))

    def _source_filters(self, s: Table) -> Iterator[Column]:
        path = value("source_path")
        terms = {
            "source_types": among(s.c.source_type, "source_types"),
            "conversation_id": s.c.conversation_id == value("conversation_id"),
            "source_path": s.c.source_path == path,
            # A range, because a LIKE pattern would need escaping.
            "source_path_end": (s.c.source_path >= path)
            & (s.c.source_path < value("source_path_end")),
        }
        return (term for name, term in terms.items() if name in self.given)


def _comes_from_elsewhere(m: Table) -> Column:
    """Return the condition that a memory comes from none of the sources ``without``."""
    w = tables.sources.alias("w")
    columns = (w.c.source_path, w.c.conversation_id, w.c.workflow_run_id, w.c.content_sha256)
    excluded_sources = sa.select(w.c.source_id).where(
        sa.or_(*(among(column, "without") for column in columns))
    )
    is_other_session = sa.func.coalesce(~among(m.c.session_id, "without"), sa.true())
    return sa.and_(is_other_session, m.c.source_id.not_in(excluded_sources))


@dataclass(frozen=True)
class RecallFilter:
    """The view of the reader and the filters of the request, as one condition."""

    view: View
    request: RecallRequest
    at: int
    without: frozenset[str] = frozenset()

    @cached_property
    def shape(self) -> FilterShape:
        """The shape for which statements are compiled; its condition is bound to ``params``."""
        request = self.request
        names = [name for name in _FILTERS if getattr(request, name) not in (None, ())]
        if request.source_path is not None:
            is_folder = request.source_path.endswith("/")
            names.append("source_path_end" if is_folder else "source_path")
        if self.without:
            names.append("without")
        return FilterShape(self.view.shape, frozenset(names))

    @cached_property
    def params(self) -> dict[str, Any]:
        """The named values for the condition, shared by a dozen statements of a recall."""
        request = self.request
        path = request.source_path or ""
        given = self.shape.given.intersection(_FILTERS)
        return self.view.params | {
            **{name: _encoded(getattr(request, name)) for name in given},
            "at": self.at,
            "source_path": path,
            # "0" is the character after "/".
            "source_path_end": path[:-1] + "0" if path.endswith("/") else None,
            "without": _encoded(tuple(sorted(self.without))),
        }

    def with_statuses(self, statuses: frozenset[MemoryStatus] | None) -> RecallFilter:
        """Return the filter for memories of other statuses; None: of all statuses."""
        view = View(self.view.viewer, self.view.as_of, statuses)
        return replace(self, view=view)

    def without_sources(self, names: Collection[NamedSource]) -> RecallFilter:
        """Return the filter, excluding the memories from some sources."""
        return replace(self, without=frozenset(source.name for source in names))


_FILTERS: Final = (
    *("types", "kinds", "tags", "session_id", "exclude_session_id", "event_after"),
    *("event_before", "valid_at", "source_types", "conversation_id"),
)


def _encoded(items: Any) -> Any:
    """Encode a tuple as JSON, once for all statements of a recall; return other values as is."""
    return json.dumps(items) if isinstance(items, tuple) else items


# Candidates are compared by this part of their text; the index covers the whole text.
MAX_COMPARED_CHARS = 4_000
OVERSAMPLING = 16
# If too few of the best candidates are visible, this many times as many are examined, up to
# ``WIDEST`` times the limit by words.
_WIDENED, WIDEST = 4, 16


class RecallCandidate(NamedTuple):
    """A candidate for ranking. Times are in milliseconds; ``status`` is as seen by the view."""

    pk: int
    memory_id: str
    status: str
    content: str
    session_id: str | None
    sequence: int | None
    source_role: str | None
    event_time: int | None
    created_at: int
    importance: int
    confidence: float
    decay_rate: float
    last_accessed_at: int | None
    source_id: str

    @property
    def said_at(self) -> int:
        """The time of the event if known, else that of storing."""
        return self.created_at if self.event_time is None else self.event_time


class CandidateReader:
    """Reads the candidates that pass a filter on a snapshot, each row once for all legs.

    Args:
        known: candidates that were read before, by key; None: the filter excludes the memory.
        within: the reader of a wider filter; what it has read narrows ``passing``.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        narrowing: RecallFilter,
        known: Mapping[int, RecallCandidate | None] = MappingProxyType({}),
        within: CandidateReader | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.narrowing = narrowing
        self._known = dict(known)
        self._within = within

    @cached_property
    def passing(self) -> list[int]:
        """The keys of all memories that pass the filter; reads the whole table, once."""
        narrowing = self.narrowing
        wider = None if self._within is None else self._within.__dict__.get("passing")
        if wider is None:
            return _allowed(narrowing.shape).column(self.snapshot, narrowing.params)
        return _allowed_among(narrowing.shape).column(self.snapshot, narrowing.params, keys=wider)

    def read(self, pks: Sequence[int]) -> list[RecallCandidate]:
        """Return the memories of ``pks`` that pass the filter, in the order of ``pks``."""
        known = self._known
        if unknown := [pk for pk in pks if pk not in known]:
            # Nothing is known of them if the deadline passes here, so that another leg reads them.
            read = _fetch_candidates(
                self.snapshot,
                _candidates(self.narrowing.shape, "pk"),
                self.narrowing,
                {"keys": unknown},
            )
            known |= dict.fromkeys(unknown) | {candidate.pk: candidate for candidate in read}
        return [candidate for pk in pks if (candidate := known[pk]) is not None]


def by_text(
    matches: TextMatches, stems: Collection[str], reader: CandidateReader, limit: int
) -> list[RecallCandidate]:
    """Return the memories that contain any of the stems, by BM25, best first."""
    marks = _text_marks(reader.narrowing.view.viewer)
    results: list[RecallCandidate] = []
    examined, count = 0, limit
    while count <= WIDEST * limit:
        best = matches.best(stems, count, marks)
        results += reader.read(best[examined:])
        if len(results) >= limit or len(best) < count:
            return results[:limit]
        examined, count = count, count * _WIDENED
    # Too few of the best pass: rank those that do.
    return reader.read(matches.best(stems, limit, marks, reader.passing))


def sees_all(matches: TextMatches, viewer: Viewer) -> bool:
    """Return True if a viewer sees every memory of the store, as far as its marks show.

    Only if every mark of a hidden memory collided with one of a visible memory, it would be wrong.
    """
    return predicate(viewer).agent_id is None and matches.marks <= _text_marks(viewer)


@lru_cache(maxsize=256)
def _text_marks(viewer: Viewer) -> frozenset[int]:
    rule = predicate(viewer)
    return frozenset(
        mark_of(scope.value, scope_id, sensitivity.value)
        for scope, scope_id in rule.grants
        for sensitivity in rule.sensitivities
    )


def by_vector(
    query: NDArray[np.float32], reader: CandidateReader, limit: int, index: VectorIndex
) -> list[RecallCandidate]:
    """Return memories by cosine similarity, best first."""
    visibilities = _visibilities(reader.narrowing)
    # Search more than ``limit``, because some of the nearest may not pass the filters.
    wide_limit = OVERSAMPLING * limit
    best = index.search(query, wide_limit, visibilities=visibilities)
    results = _first_passing(reader, best, limit)
    if len(results) < limit <= len(best):
        # Too few of the nearest pass: search among the memories that do.
        best = index.search(query, wide_limit, visibilities=visibilities, among=reader.passing)
        results = _first_passing(reader, best, limit)
    return results


def _first_passing(
    reader: CandidateReader, pks: Sequence[int], limit: int
) -> list[RecallCandidate]:
    results: list[RecallCandidate] = []
    start, size = 0, limit
    # If few pass, ever more are read at once.
    while start < len(pks) and len(results) < limit:
        results += reader.read(pks[start : start + size])
        start, size = start + size, 2 * size
    return results[:limit]


def by_entities(
    pks: Collection[int], most_mentions: int, reader: CandidateReader, limit: int
) -> list[RecallCandidate]:
    """Return the memories that name some entities, by the sum of the entities' weights, newest
    first among equals.

    The weight of an entity is 1 / log2(2 + its mentions).

    Args:
        pks: the keys of the entities.
        most_mentions: ignore entities with more mentions, because they discriminate little.
    """
    statement = _naming_one() if len(pks) == 1 else _naming_any()
    values = {"pk": next(iter(pks)), "pks": sorted(pks), "most_mentions": most_mentions}
    results: list[RecallCandidate] = []
    examined, count = 0, limit
    while True:
        best = statement.column(reader.snapshot, values, count=count)
        results += reader.read(best[examined:])
        if len(results) >= limit or len(best) < count:
            return results[:limit]
        examined, count = count, count * _WIDENED


@prepared
def _naming_one() -> sa.Select[Any]:
    e, link = tables.entities.alias("e"), tables.links.alias("l")
    rows = ordered(e, (link, link.c.entity_pk == e.c.pk))
    query = sa.select(link.c.memory_pk).select_from(rows).limit(value("count"))
    query = query.where(e.c.pk == value("pk"), e.c.mention_count <= value("most_mentions"))
    # The order of the index: nothing is sorted.
    return query.order_by(link.c.memory_pk.desc())


@prepared
def _naming_any() -> sa.Select[Any]:
    f, e = listed("pks", "f", numbers=True), tables.entities.alias("e")
    link = tables.links.alias("l")
    weight = sa.func.sum(sa.literal(1.0) / sa.func.log2(2 + e.c.mention_count))
    rows = ordered(f, (e, e.c.pk == f.c.value), (link, link.c.entity_pk == e.c.pk))
    query = sa.select(link.c.memory_pk).select_from(rows).limit(value("count"))
    query = query.where(e.c.mention_count <= value("most_mentions")).group_by(link.c.memory_pk)
    return query.order_by(weight.desc(), link.c.memory_pk.desc())


@prepared
def _by_filters(narrowed: FilterShape, limit: int) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    return (
        sa.select(*_candidate_columns(narrowed.view, m))
        .where(narrowed.where(m))
        .order_by(m.c.importance.desc(), happened_at(m).desc(), m.c.pk.desc())
        .limit(limit)
    )


def by_filters(snapshot: Snapshot, narrowing: RecallFilter, limit: int) -> list[RecallCandidate]:
    """Return the memories that pass the filters, most important first, then newest first."""
    return _fetch_candidates(snapshot, _by_filters(narrowing.shape, limit), narrowing, {})


@prepared
def _candidates(narrowed: FilterShape, key: str) -> sa.Select[Any]:
    f, m = listed("keys", "f", numbers=key == "pk"), tables.memories.alias("m")
    query = sa.select(*_candidate_columns(narrowed.view, m))
    return query.select_from(ordered(f, (m, m.c[key] == f.c.value))).where(narrowed.where(m))


def candidates_by_id(
    snapshot: Snapshot, memory_ids: Collection[str], narrowing: RecallFilter
) -> list[RecallCandidate]:
    """Return the memories of ``memory_ids`` that pass the filter, in the order of the ids."""
    values = {"keys": memory_ids}
    return _fetch_candidates(snapshot, _candidates(narrowing.shape, "memory_id"), narrowing, values)


@prepared
def _neighbours(narrowed: FilterShape) -> sa.Select[Any]:
    f, m = listed("pks", "f", numbers=True), tables.memories.alias("m")
    o, n = tables.memories.alias("o"), tables.memories.alias("n")
    distance = value("distance")
    is_near = (n.c.session_id == o.c.session_id) & n.c.sequence.between(
        o.c.sequence - distance, o.c.sequence + distance
    )
    near = sa.select(n.c.pk).select_from(ordered(f, (o, o.c.pk == f.c.value), (n, is_near)))
    return (
        sa.select(*_candidate_columns(narrowed.view, m))
        .where(m.c.pk.in_(near), ~among(m.c.pk, "pks"), narrowed.where(m))
        .order_by(m.c.pk)
    )


def neighbours(
    snapshot: Snapshot, pks: Collection[int], narrowing: RecallFilter, distance: int
) -> list[RecallCandidate]:
    """Return the turns at most ``distance`` before or after these, in the same session."""
    values = {"pks": pks, "distance": distance}
    return _fetch_candidates(snapshot, _neighbours(narrowing.shape), narrowing, values)


@prepared
def _following(narrowed: FilterShape) -> sa.Select[Any]:
    f, o, m = listed("ids", "f"), tables.memories.alias("o"), tables.memories.alias("m")
    is_next = (m.c.session_id == o.c.session_id) & (m.c.sequence == o.c.sequence + 1)
    turns = ordered(f, (o, o.c.memory_id == f.c.value), (m, is_next))
    query = sa.select(o.c.memory_id, *narrowed.view.memory_columns(m))
    return query.select_from(turns).where(narrowed.where(m)).order_by(m.c.pk)


def following(
    snapshot: Snapshot, memory_ids: Collection[str], narrowing: RecallFilter
) -> dict[str, Memory]:
    """Return the next turn of each turn in its session, if it passes the filter."""
    rows = _following(narrowing.shape).rows(snapshot, narrowing.params, ids=memory_ids)
    return {str(origin): memory_from_row(row) for origin, *row in rows}


@prepared
def _items(narrowed: FilterShape) -> sa.Select[Any]:
    f, m = listed("pks", "f", numbers=True), tables.memories.alias("m")
    s = tables.sources.alias("s")
    source = (s.c[name] for name in SOURCE_FIELDS)
    rows = ordered(f, (m, m.c.pk == f.c.value)).outerjoin(s, s.c.source_id == m.c.source_id)
    query = sa.select(m.c.pk, *source, *narrowed.view.memory_columns(m))
    return query.select_from(rows).where(narrowed.where(m))


def items(
    snapshot: Snapshot, pks: Collection[int], narrowing: RecallFilter
) -> dict[int, tuple[Memory, StoredSource]]:
    """Return the memories of ``pks`` that pass the filter, with their sources, in this order.

    A memory is missing if the snapshot leaves out its damaged row, or that of its source.

    Raises:
        DatabaseCorrupt: a row is damaged, or a source is missing.
    """
    statement = _items(narrowing.shape)
    rows = statement.rows(snapshot, narrowing.params, pks=pks)
    result = {}
    sources: dict[str, StoredSource] = {}
    for pk, *row in rows:
        source, memory = row[: len(SOURCE_FIELDS)], row[len(SOURCE_FIELDS) :]
        if source[0] is None and snapshot.skipped is not None:
            continue
        if source[0] not in sources:
            sources[source[0]] = source_from_row(source)
        result[pk] = memory_from_row(memory), sources[source[0]]
    return result


@prepared
def _allowed(narrowed: FilterShape) -> sa.Select[Any]:
    m = tables.memories.alias("m")
    return sa.select(m.c.pk).where(narrowed.where(m))


@prepared
def _allowed_among(narrowed: FilterShape) -> sa.Select[Any]:
    f, m = listed("keys", "f", numbers=True), tables.memories.alias("m")
    query = sa.select(m.c.pk).select_from(ordered(f, (m, m.c.pk == f.c.value)))
    return query.where(narrowed.where(m))


def _visibilities(narrowing: RecallFilter) -> tuple[int, ...]:
    view = narrowing.view
    # At an earlier time a memory may have had another status.
    statuses = frozenset(STORED_STATUSES)
    if view.as_of is None and view.statuses is not None:
        statuses = view.statuses
    return _marks_of(view.viewer, statuses)


@lru_cache(maxsize=256)
def _marks_of(viewer: Viewer, statuses: frozenset[MemoryStatus]) -> tuple[int, ...]:
    rule = predicate(viewer)
    marks = (
        embeddings.visibility(str(scope), scope_id, status.value, sensitivity.value)
        for scope, scope_id in rule.grants
        if scope is Scope.GLOBAL or scope_id is not None
        for status in statuses
        for sensitivity in rule.sensitivities
    )
    return tuple(sorted(marks))


def _candidate_columns(view: View, m: Table) -> list[Column]:
    """Return the columns of a ``RecallCandidate``."""
    as_it_was = {
        "status": view.status(m),
        "content": sa.func.substr(m.c.content, 1, MAX_COMPARED_CHARS),
        "confidence": view.confidence(m),
        "last_accessed_at": view.last_accessed(m),
    }
    return [as_it_was.get(name, m.c[name]) for name in RecallCandidate._fields]


def _fetch_candidates(
    snapshot: Snapshot,
    statement: CompiledStatement,
    narrowing: RecallFilter,
    values: dict[str, Any],
) -> list[RecallCandidate]:
    return statement.mapped(_of_row, snapshot, narrowing.params | values)


# ``_make`` without its check: the statements select these columns.
_of_row: Callable[[Any], RecallCandidate] = partial(tuple.__new__, RecallCandidate)


# The state of the whole database that a recall needs, read in one statement.


class GraphContents(NamedTuple):
    """The types of edges in a database, and whether there are derivations."""

    edge_types: frozenset[EdgeType]
    derivations: bool

    def __bool__(self) -> bool:
        return bool(self.edge_types) or self.derivations


class StoreState(NamedTuple):
    """The state of a database that a recall depends on.

    Attributes:
        change_seq: the number of the last journal entry, or 0.
        embedding_model: the model of the stored vectors; None if there are none.
        embedding_dimensions: the length of the stored vectors; None if there are none.
        has_pending: True if a memory waits to be embedded.
        has_replaced: True if a memory is superseded.
        ties: the kinds of relations between its memories.
    """

    change_seq: int
    embedding_model: str | None
    embedding_dimensions: int | None
    has_pending: bool
    has_replaced: bool
    ties: GraphContents


@prepared
def _state() -> sa.Select[Any]:
    m, e = tables.memories, tables.edges

    def kept(key: str) -> Column:
        table = tables.metadata
        return sa.select(table.c.value).where(table.c.key == key).scalar_subquery()

    def there_is(table: Table, *conditions: Column) -> Column:
        return sa.select(sa.literal(1)).select_from(table).where(*conditions).exists()

    v = tables.embeddings
    # Every value takes one index lookup, whatever the size of the database.
    return sa.select(
        sa.select(sa.func.coalesce(sa.func.max(tables.audit_log.c.seq), 0)).scalar_subquery(),
        kept("embedding_model"),
        kept("embedding_dimensions"),
        there_is(v, v.c.state == EmbeddingState.PENDING, v.c.state != EmbeddingState.READY),
        there_is(m, m.c.type.in_(list(MemoryType)), m.c.status == MemoryStatus.SUPERSEDED),
        there_is(tables.derivations),
        *(there_is(e, e.c.edge_type == edge_type) for edge_type in EdgeType),
    )


def read(snapshot: Snapshot) -> StoreState:
    """Return the state of the database; as the first query, it also starts the snapshot."""
    row = _state().row(snapshot)
    seq, model, dimensions, pending, replaced, derivations, *edges = row
    present = frozenset(
        edge_type for edge_type, exists in zip(EdgeType, edges, strict=True) if exists
    )
    return StoreState(
        int(seq),
        None if model is None else str(model),
        None if dimensions is None else int(dimensions),
        bool(pending),
        bool(replaced),
        GraphContents(present, bool(derivations)),
    )
