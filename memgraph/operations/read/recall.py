"""Recall from an open orchestrator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from memgraph.config.schema import MemorySettings
from memgraph.model.context import ContextBlock, ContextPackage
from memgraph.model.conversation import ENTRY_PREFIX, SILENT_ROLE
from memgraph.model.recall import (
    Bundle,
    Degraded,
    RecallItem,
    RecallRequest,
    RecallTrace,
)
from memgraph.model.values import Memory
from memgraph.operations.write.embedding import other_model
from memgraph.rules.marks import MarkGraph
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import recall as recall_rows
from memgraph.store.recall import GraphContents, RecallFilter, StoreState
from memgraph.store.snapshot import Snapshot, despite_damage

if TYPE_CHECKING:
    from memgraph.retrieval.request import Embed


AnswerT = TypeVar("AnswerT", Bundle, ContextBlock, ContextPackage)


def is_label(memory: Memory) -> bool:
    """Return True for the turn that only names a tool call."""
    return memory.source_role == SILENT_ROLE and (memory.item_id or "").startswith(ENTRY_PREFIX)


def answer(opened: OpenOrchestrator, viewer: Viewer, request: RecallRequest) -> Bundle:
    """Answer a recall request from one orchestrator.

    Raises:
        AccessDenied: the viewer may not see what the request asks for.
        StorageError: the database cannot be read.
    """
    with opened.timed("recall"), opened.recalls:
        bundle, damaged = despite_damage(lambda: _answered(opened, viewer, request))
    bundle = with_damage(opened, bundle, damaged)
    _count_degraded(opened, bundle.degraded)
    return bundle


def with_damage(opened: OpenOrchestrator, answered: AnswerT, damaged: int) -> AnswerT:
    """Log and note that so many damaged rows were left out of an answer, if any were."""
    if not damaged:
        return answered
    opened.log.warning("storage.damaged_rows", rows=damaged)
    rows = "1 damaged row was" if damaged == 1 else f"{damaged} damaged rows were"
    note = Degraded(code="storage.corrupt", text=f"{rows} left out; run: memgraph verify")
    return answered.model_copy(update={"degraded": (*answered.degraded, note)})


def _answered(opened: OpenOrchestrator, viewer: Viewer, request: RecallRequest) -> Bundle:
    # Imported late: it loads numpy, which most commands do not need.
    from memgraph.retrieval.recall import recall

    embed: Embed | None = None if opened.embedding is None else opened.embedding.embed
    if opened.other_model is not None:
        with opened.database.read() as snapshot:
            changed = _model_changed(opened, recall_rows.read(snapshot))
        embed = None if changed else embed
    return recall(
        opened.database,
        request,
        viewer=viewer,
        settings=opened.settings.memory,
        embed=embed,
        name_keys=opened.naming.query_keys,
        now_ms=opened.clock.now_ms(),
        clock=opened.clock.now_ms,
        ids=opened.ids,
        model_changed=partial(_model_changed, opened),
        held_vectors=opened.held_vectors,
        timed=partial(opened.timed, "recall"),
        turn=opened.turns,
    )


@dataclass(frozen=True, slots=True)
class RecallInSnapshot:
    """The answer to a request, with the snapshot it was read from.

    Attributes:
        narrowing: the filter for the memories that the request may return.
        ties: the kinds of links in the store.
        items: the recalled memories; empty if the request has no query.
        degraded: the parts of recall that were not available.
        account: how the answer was computed, for its receipt.
        marks: the edges that were read of the items.
    """

    snapshot: Snapshot
    narrowing: RecallFilter
    ties: GraphContents
    items: Sequence[RecallItem]
    degraded: tuple[Degraded, ...]
    account: RecallTrace
    marks: MarkGraph = field(default_factory=MarkGraph)


@contextmanager
def reading(
    opened: OpenOrchestrator,
    viewer: Viewer,
    request: RecallRequest,
    *,
    candidates: int = 0,
    related: float | None = None,
    by_filters: bool = False,
) -> Iterator[RecallInSnapshot]:
    """Answer a request and keep the snapshot open for further reads.

    The answer is dated after the snapshot was opened, so nothing in the snapshot is later.

    Args:
        candidates: the least number of candidates by text and by vectors.
        related: see ``retrieval.recall.recalled``.
        by_filters: answer a request without a query by its filters, not with nothing.

    Raises:
        AccessDenied, StorageError: as in ``answer``.
    """
    from memgraph.retrieval.recall import recalled
    from memgraph.retrieval.request import narrowed, prepared

    narrowing = narrowed(request, viewer, opened.clock.now_ms())

    def dated(snapshot: Snapshot) -> tuple[StoreState, RecallFilter]:
        state = recall_rows.read(snapshot)
        at = opened.clock.now_ms() if request.as_of is None else narrowing.at
        return state, replace(narrowing, at=at)

    if not request.query.strip() and not by_filters:
        with opened.database.read() as snapshot:
            state, narrowing = dated(snapshot)
            trace = RecallTrace(state.change_seq, {})
            yield RecallInSnapshot(snapshot, narrowing, state.ties, (), (), trace)
        return
    timed = partial(opened.timed, "recall")
    with ExitStack() as stack:
        with timed(), opened.recalls:
            with timed("prepare"):
                prepared_request = prepared(
                    request,
                    narrowing.at,
                    embed=None if opened.embedding is None else opened.embedding.embed,
                    name_keys=opened.naming.query_keys,
                )
            with opened.turns:
                snapshot = stack.enter_context(opened.database.read())
                state, narrowing = dated(snapshot)
                chosen = recalled(
                    snapshot,
                    prepared_request,
                    narrowing,
                    state,
                    settings=_reaching(opened.settings.memory, candidates),
                    now_ms=narrowing.at,
                    model_changed=partial(_model_changed, opened),
                    held=opened.held_vectors,
                    timed=timed,
                    related=related,
                )
        _count_degraded(opened, chosen.degraded)
        yield RecallInSnapshot(
            snapshot,
            narrowing,
            state.ties,
            chosen.items,
            chosen.degraded,
            chosen.account,
            chosen.marks,
        )


def _reaching(settings: MemorySettings, candidates: int) -> MemorySettings:
    """Return the settings with at least so many candidates by text and by vectors."""
    if not candidates:
        return settings
    retrieval = settings.retrieval
    wide = {
        name: max(getattr(retrieval, name), candidates) for name in ("top_k_text", "top_k_vector")
    }
    return settings.model_copy(update={"retrieval": retrieval.model_copy(update=wide)})


def _count_degraded(opened: OpenOrchestrator, degraded: Sequence[Degraded]) -> None:
    for degradation in degraded:
        opened.meters.degraded(degradation.code)


def _model_changed(opened: OpenOrchestrator, state: StoreState) -> bool:
    # Another process may have rebuilt the vectors for another model.
    opened.other_model = other_model(
        opened.embedding, state.embedding_model, state.embedding_dimensions
    )
    return opened.other_model is not None
