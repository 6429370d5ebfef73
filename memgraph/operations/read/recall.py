"""Recalls of an open orchestrator, with a reranker where one is configured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from memgraph.config import Settings
from memgraph.errors import ProviderAnswerInvalid, ProviderError
from memgraph.model.conversation import ENTRY_PREFIX, SILENT_ROLE
from memgraph.model.enums import MemoryKind, Sensitivity
from memgraph.model.recall import (
    Bundle,
    Degraded,
    RecallItem,
    RecallRequest,
    RecallTrace,
    ReplayMoment,
)
from memgraph.model.values import Memory
from memgraph.operations.write.embedding import other_model
from memgraph.providers.options import options_of
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import recall as recall_rows
from memgraph.store.recall import RecallFilter, StoreState
from memgraph.store.snapshot import Snapshot
from memgraph.store.tiers import by_ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.providers.reranking import RerankingProvider
    from memgraph.retrieval.request import Embed


def answers_of(bundle: Bundle, query: str, limit: int) -> Bundle:
    """Return the bundle without turns that only repeat the question and labels of tool calls.

    Args:
        limit: memories that are kept.
    """
    question = _flat(query)
    items = [item for item in bundle.items if not _is_no_answer(item.memory, question)]
    return bundle.model_copy(
        update={"items": tuple(items[:limit]), "cut": bundle.cut or len(items) > limit}
    )


def _is_no_answer(memory: Memory, question: str) -> bool:
    """Return True for a turn that repeats the question, or that is the label of a tool call."""
    if memory.kind is not MemoryKind.EPISODE:
        return False
    is_label = memory.source_role == SILENT_ROLE and (memory.item_id or "").startswith(ENTRY_PREFIX)
    return is_label or _flat(memory.content) == question


def _flat(text: str) -> str:
    """Return a text in lower case, on one line."""
    return " ".join(text.casefold().split())


def answer(
    opened: OpenOrchestrator,
    viewer: Viewer,
    request: RecallRequest,
    *,
    then: ReplayMoment | None = None,
) -> Bundle:
    """Answer a request from one orchestrator, or again as it was answered ``then``.

    Raises AccessDenied, StorageError.
    """
    with opened.timed("recall"), opened.recalls:
        bundle = _answered(opened, viewer, request, then)
    _count_degraded(opened, bundle.degraded)
    return bundle


def _answered(
    opened: OpenOrchestrator, viewer: Viewer, request: RecallRequest, then: ReplayMoment | None
) -> Bundle:
    # With it comes numpy, which commands that recall nothing do without.
    from memgraph.retrieval.recall import recall

    embed: Embed | None = None if opened.embedding is None else opened.embedding.embed
    if opened.other_model is not None:
        with opened.database.read() as snapshot:
            changed = _model_changed(opened, recall_rows.read(snapshot))
        embed = None if changed else embed
    reranks = opened.reranker is not None and bool(request.query.strip())
    if embed is not None and reranks:
        embed = _once(embed)

    def ask(request: RecallRequest) -> Bundle:
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
            held=opened.held_vectors,
            timed=partial(opened.timed, "recall"),
            turn=opened.turns,
            then=then,
        )

    if not reranks:
        return ask(request)
    return answer_reranked(opened, request, ask)


@dataclass(frozen=True, slots=True)
class RecallInSnapshot:
    """A snapshot, what a request may find in it, and the answer.

    Attributes:
        items: empty when the request has no query.
        degraded: what the answer lacked.
        account: how the answer was made, for its receipt.
    """

    snapshot: Snapshot
    narrowing: RecallFilter
    items: tuple[RecallItem, ...]
    degraded: tuple[Degraded, ...]
    account: RecallTrace


@contextmanager
def reading(
    opened: OpenOrchestrator,
    viewer: Viewer,
    request: RecallRequest,
    *,
    then: ReplayMoment | None = None,
) -> Iterator[RecallInSnapshot]:
    """Answer a request and keep the snapshot open for further reads.

    It is dated when the snapshot is open, so that nothing in it is later. A reranker is called
    before the snapshot is opened; what was retracted since is left out.

    Raises:
        AccessDenied, StorageError: as ``answer``.
    """
    from memgraph.retrieval.recall import recalled
    from memgraph.retrieval.request import narrowed, prepared

    narrowing = narrowed(request, viewer, opened.clock.now_ms(), then)

    def dated(snapshot: Snapshot) -> tuple[StoreState, RecallFilter]:
        state = recall_rows.read(snapshot)
        at = opened.clock.now_ms() if request.as_of is None else narrowing.at
        return state, replace(narrowing, at=at)

    if not request.query.strip():
        with opened.database.read() as snapshot:
            state, narrowing = dated(snapshot)
            yield RecallInSnapshot(snapshot, narrowing, (), (), RecallTrace(state.change_seq, {}))
        return
    if opened.reranker is not None:
        bundle = answer(opened, viewer, request, then=then)
        with opened.database.read() as snapshot:
            _, narrowing = dated(snapshot)
            there = {item.memory_id for item in by_ids(snapshot, narrowing, bundle.ids)}
            items = tuple(item for item in bundle.items if item.memory.memory_id in there)
            yield RecallInSnapshot(snapshot, narrowing, items, bundle.degraded, bundle.account)
        return
    timed = partial(opened.timed, "recall")
    with ExitStack() as stack:
        with timed(), opened.recalls:
            with timed("prepare"):
                prepared_request = prepared(
                    request,
                    narrowing.at if then is None else then.at,
                    embed=None if opened.embedding is None else opened.embedding.embed,
                    name_keys=opened.naming.query_keys,
                )
            with opened.turns:
                snapshot = stack.enter_context(opened.database.read())
                state, narrowing = dated(snapshot)
                items, degraded, account = recalled(
                    snapshot,
                    prepared_request,
                    narrowing,
                    state,
                    settings=opened.settings.memory,
                    now_ms=narrowing.at,
                    model_changed=partial(_model_changed, opened),
                    held=opened.held_vectors,
                    timed=timed,
                    then=then,
                )
        _count_degraded(opened, degraded)
        yield RecallInSnapshot(snapshot, narrowing, items, degraded, account)


def _count_degraded(opened: OpenOrchestrator, degraded: Sequence[Degraded]) -> None:
    for degradation in degraded:
        opened.meters.degraded(degradation.code)


def _model_changed(opened: OpenOrchestrator, state: StoreState) -> bool:
    # Another process may have rebuilt the vectors for another model.
    opened.other_model = other_model(
        opened.embedding, state.embedding_model, state.embedding_dimensions
    )
    return opened.other_model is not None


def configured_reranker(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> RerankingProvider:
    """Return the model of ``memory.reranker.provider``, which is not ``none``."""
    from memgraph.providers.reranking import reranking_provider

    chosen = settings.memory.reranker
    return reranking_provider(chosen.provider, mode=chosen.mode, **options_of(chosen, environ))


def _once(embed: Embed) -> Embed:
    """Call the model only at the first call: one question may be recalled twice."""
    answers: list[NDArray[np.float32] | ProviderError] = []

    def ask(texts: Sequence[str]) -> NDArray[np.float32]:
        if not answers:
            try:
                answers.append(embed(texts))
            except ProviderError as error:
                answers.append(error)
        [result] = answers
        if isinstance(result, ProviderError):
            raise result
        return result

    return ask


# A single memory needs no order.
FEWEST = 2


def answer_reranked(
    opened: OpenOrchestrator, request: RecallRequest, ask: Callable[[RecallRequest], Bundle]
) -> Bundle:
    """Return the answer of ``ask`` in the order that includes the reranker's scores.

    Args:
        ask: recall without a reranker; it has closed its snapshot when it returns.
    """
    # Loaded where a reranker is configured alone.
    from memgraph.providers.reranking import usable_places
    from memgraph.retrieval.reranking import reranked, sendable, widened

    chosen, retrieval = opened.settings.memory.reranker, opened.settings.memory.retrieval
    top_n = request.top_n or retrieval.top_n
    pool = ask(widened(request, top_n, chosen.candidates))
    sent, withheld = sendable(pool, chosen.candidates, Sensitivity(chosen.max_sensitivity))
    notes = [_withheld(len(withheld), chosen.max_sensitivity)] if withheld else []
    provider = opened.reranker
    if provider is None or len(sent) < FEWEST:
        return _without(ask(request), notes)
    try:
        ranking = provider.rank(
            request.query[: chosen.max_chars],
            [item.memory.content[: chosen.max_chars] for item in sent],
        )
        places = usable_places(ranking, len(sent))
    except ProviderError as error:
        opened.rerank_failed = True
        opened.log.failure("rerank", error, level="warning", provider=provider.name)
        return _without(ask(request), [_failed(error)])
    opened.rerank_failed = False
    return reranked(
        pool,
        [sent[place].memory.memory_id for place in places],
        top_n=top_n,
        token_budget=request.token_budget,
        rrf_k=retrieval.rrf_k,
        weight=chosen.weight,
        withheld=withheld,
        degraded=notes,
    )


def _without(bundle: Bundle, notes: list[Degraded]) -> Bundle:
    return bundle.model_copy(update={"degraded": (*bundle.degraded, *notes)})


def _withheld(count: int, ceiling: str) -> Degraded:
    memories = "1 memory" if count == 1 else f"{count} memories"
    return Degraded(
        code="rerank.withheld",
        text=f"{memories} above {ceiling} kept their places: the reranker may not see them",
    )


def _failed(error: ProviderError) -> Degraded:
    late = error.details.get("reason") == "timeout" or error.details.get("error") == "Timeout"
    if late:
        return Degraded(
            code="rerank.timeout",
            text="the reranker did not answer in time; the order is that of the other legs",
        )
    code = "rerank.answer_invalid" if isinstance(error, ProviderAnswerInvalid) else "rerank.failed"
    return Degraded(
        code=code,
        text=f"the reranker failed ({error.code}); the order is that of the other legs",
    )
