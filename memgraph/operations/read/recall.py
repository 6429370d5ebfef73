"""Recall from an open orchestrator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from memgraph.config.schema import MemorySettings
from memgraph.errors import DatabaseCorrupt
from memgraph.ids import RECEIPT_PREFIX
from memgraph.model.context import ContextBlock, ContextPackage
from memgraph.model.recall import Bundle, Degraded, RecallRequest, RecallTrace
from memgraph.operations.write.embedding import other_model
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import recall as recall_rows
from memgraph.store.recall import RecallFilter, StoreState
from memgraph.store.snapshot import despite_damage

if TYPE_CHECKING:
    from memgraph.retrieval.recall import Selection


AnswerT = TypeVar("AnswerT", Bundle, ContextBlock, ContextPackage)


def answer(
    opened: OpenOrchestrator, viewer: Viewer, request: RecallRequest
) -> tuple[Bundle, RecallFilter]:
    """Answer a recall request from one orchestrator; also return its filter, for the receipt.

    Raises:
        AccessDenied: the viewer may not see what the request asks for.
        StorageError: the database cannot be read.
    """
    (bundle, narrowing), damaged = despite_damage(lambda: _answered(opened, viewer, request))
    return with_damage(opened, bundle, damaged), narrowing


def with_damage(opened: OpenOrchestrator, answered: AnswerT, damaged: int) -> AnswerT:
    """Log, count and note that so many damaged rows were left out of an answer, if any were."""
    if not damaged:
        return answered
    opened.meters.count("degraded_recalls", DatabaseCorrupt.code)
    opened.log.warning("storage.damaged_rows", rows=damaged)
    rows = "1 damaged row was" if damaged == 1 else f"{damaged} damaged rows were"
    note = Degraded(code=DatabaseCorrupt.code, text=f"{rows} left out; run: memgraph verify")
    return answered.model_copy(update={"degraded": (*answered.degraded, note)})


def _answered(
    opened: OpenOrchestrator, viewer: Viewer, request: RecallRequest
) -> tuple[Bundle, RecallFilter]:
    # Imported late: it loads numpy, which most commands do not need.
    from memgraph.retrieval.recall import bundled

    with reading(opened, viewer, request, by_filters=True, as_now=False) as chosen:
        bundle = bundled(chosen, request.query, opened.ids.new(RECEIPT_PREFIX))
        return bundle, chosen.narrowing


@contextmanager
def reading(
    opened: OpenOrchestrator,
    viewer: Viewer,
    request: RecallRequest,
    *,
    candidates: int = 0,
    related: float | None = None,
    by_filters: bool = False,
    as_now: bool = True,
    exact: bool = False,
) -> Iterator[Selection]:
    """Answer a request and keep the snapshot open for further reads.

    The query is embedded while no snapshot is open. The answer is dated after the snapshot was
    opened, so nothing in the snapshot is later.

    Args:
        candidates: the least number of candidates by text and by vectors.
        related, exact: see ``retrieval.recall.Recall``.
        by_filters: answer a request without a query by its filters, not with nothing.
        as_now: answer a request about the past as if it were now.

    Raises:
        AccessDenied, StorageError: as in ``answer``.
    """
    from memgraph.retrieval.recall import Recall, Selection
    from memgraph.retrieval.request import narrowed, prepared

    narrowing = narrowed(request, viewer, opened.clock.now_ms())
    embed = None if opened.embedding is None else opened.embedding.embed
    if opened.other_model is not None:
        with opened.database.read() as snapshot:
            embed = None if _model_changed(opened, recall_rows.read(snapshot)) else embed
    timed = partial(opened.meters.timed, "recall")
    searches = by_filters or bool(request.query.strip())
    with ExitStack() as stack:
        with timed(), opened.recalls:
            with timed("prepare"):
                question = prepared(
                    request, narrowing.at, embed=embed, name_keys=opened.naming.query_keys
                )
            # A turn is kept as long as its snapshot.
            stack.enter_context(opened.turns)
            snapshot = stack.enter_context(opened.database.read())
            state = recall_rows.read(snapshot)
            now_ms = opened.clock.now_ms()
            at = now_ms if request.as_of is None else narrowing.at
            narrowing = replace(narrowing, at=at)
            trace = RecallTrace(state.change_seq, {})
            chosen = Selection(snapshot, narrowing, state.ties, at, account=trace)
            if searches:
                chosen = Recall(
                    snapshot=snapshot,
                    prepared=question,
                    narrowing=narrowing,
                    state=state,
                    settings=_reaching(opened.settings.memory, candidates),
                    now_ms=at if as_now else now_ms,
                    model_changed=_model_changed(opened, state),
                    held=opened.held_vectors,
                    exact=exact,
                    timed=timed,
                    related=related,
                ).select()
        for degradation in chosen.degraded:
            opened.meters.count("degraded_recalls", degradation.code)
        yield chosen


def _reaching(settings: MemorySettings, candidates: int) -> MemorySettings:
    """Return the settings with at least so many candidates by text and by vectors."""
    if not candidates:
        return settings
    retrieval = settings.retrieval
    wide = {
        name: max(getattr(retrieval, name), candidates) for name in ("top_k_text", "top_k_vector")
    }
    return settings.model_copy(update={"retrieval": retrieval.model_copy(update=wide)})


def _model_changed(opened: OpenOrchestrator, state: StoreState) -> bool:
    # Another process may have rebuilt the vectors for another model.
    opened.other_model = other_model(
        opened.embedding, state.embedding_model, state.embedding_dimensions
    )
    return opened.other_model is not None
