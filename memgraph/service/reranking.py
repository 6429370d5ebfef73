"""Recall with a reranker: recall widely, call the model outside transactions, choose.

When the model fails, the answer is the one without it.
"""

from __future__ import annotations

from collections.abc import Callable

from memgraph.errors import ProviderAnswerInvalid, ProviderError
from memgraph.model.enums import Sensitivity
from memgraph.model.recall import Bundle, Degraded, RecallRequest
from memgraph.providers.reranking import usable_places
from memgraph.retrieval.reranking import reranked, sendable, widened
from memgraph.service.opened import Opened

# A single memory needs no order.
FEWEST = 2


def answer_reranked(
    opened: Opened, request: RecallRequest, ask: Callable[[RecallRequest], Bundle]
) -> Bundle:
    """Return the answer of ``ask`` in the order that includes the reranker's scores.

    Args:
        ask: recall without a reranker; it has closed its snapshot when it returns.
    """
    chosen, retrieval = opened.settings.memory.reranker, opened.settings.memory.retrieval
    top_n = request.top_n or retrieval.top_n
    pool = ask(widened(request, top_n, chosen.candidates))
    sent, withheld = sendable(pool, chosen.candidates, Sensitivity(chosen.max_sensitivity))
    told = [_withheld(len(withheld), chosen.max_sensitivity)] if withheld else []
    provider = opened.reranker
    if provider is None or len(sent) < FEWEST:
        return _without(ask(request), told)
    try:
        found = provider.rank(
            request.query[: chosen.max_chars],
            [item.memory.content[: chosen.max_chars] for item in sent],
        )
        places = usable_places(found, len(sent))
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
        degraded=told,
    )


def _without(bundle: Bundle, told: list[Degraded]) -> Bundle:
    return bundle.model_copy(update={"degraded": (*bundle.degraded, *told)})


def _withheld(count: int, most: str) -> Degraded:
    memories = "1 memory" if count == 1 else f"{count} memories"
    return Degraded(
        code="rerank.withheld",
        text=f"{memories} above {most} kept their places: the reranker may not see them",
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
