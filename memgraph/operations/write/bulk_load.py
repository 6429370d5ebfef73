"""Storing many memories: while a thousand is written, the next is prepared.

SQLite and the local model work beside Python, so two cores share the load. The local model needs
microseconds for a text: a bulk load embeds before each transaction, never inside one, and stores
the vectors with their memories. Any other model is left to the outbox.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from typing import TYPE_CHECKING, Any

from memgraph.errors import AccessDenied, InvalidInput, MemgraphError, ProviderError
from memgraph.model.values import EpisodeInput, MemoryInput, Outcome, validated
from memgraph.operations.write.checks import with_canonical_source
from memgraph.operations.write.edges import ComparisonTime
from memgraph.operations.write.writer import PreparedMemory
from memgraph.providers.local import LocalEmbedding
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store.embeddings import embedded_text
from memgraph.store.visibility import View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Memories of one transaction: large enough that its fixed cost is small, short enough for others.
TRANSACTION_SIZE = 1_000
# Fewer are no bulk load: loading the model takes longer than storing them.
BULK = 100

Item = MemoryInput | Mapping[str, Any]


class BulkLoader:
    """Stores items for one handle, each thousand in a transaction.

    Args:
        kind: the required kind of item.
        embeds: True when a bulk load embeds by itself with the local model.
        rejected: called with the reasons why items were not stored, before their outcomes are
            yielded.
    """

    def __init__(
        self,
        opened: OpenOrchestrator,
        kind: type[MemoryInput],
        *,
        actor: str,
        view: View,
        embeds: bool,
        rejected: Callable[[Sequence[MemgraphError]], None],
    ) -> None:
        self._opened = opened
        self._kind = kind
        self._actor = actor
        self._view = view
        self._rejected = rejected
        provider = opened.embedding
        self._embedding = provider if embeds and isinstance(provider, LocalEmbedding) else None

    def load(self, items: Iterable[Item]) -> list[Outcome]:
        """Return one outcome for each item, in order; a batch is durable before the next is
        written.
        """
        outcomes: list[Outcome] = []
        with ThreadPoolExecutor(1, thread_name_prefix="memgraph-load") as pool:
            writing: Future[list[Outcome]] | None = None
            try:
                for batch in _batches(items):
                    ready = self._prepare(batch)
                    if writing is not None:
                        done, writing = writing, None
                        outcomes.extend(done.result())
                    elif len(batch) < TRANSACTION_SIZE:
                        # The only one: nothing to do beside it.
                        return self._store(ready)
                    # The claim of the request goes with it.
                    writing = pool.submit(copy_context().run, self._store, ready)
            finally:
                # A failed write is raised, whatever else went wrong meanwhile.
                if writing is not None:
                    outcomes.extend(writing.result())
        return outcomes

    def _prepare(self, batch: Sequence[Item]) -> list[PreparedMemory | Outcome]:
        errors: list[MemgraphError] = []
        checked = [self._checked(item, errors) for item in batch]
        if errors:
            # At once: each time takes a transaction.
            self._rejected(errors)
        vectors = iter(self._embedded([item for item in checked if isinstance(item, MemoryInput)]))
        prepare = self._opened.writer.prepare
        return [
            prepare(item, next(vectors, None)) if isinstance(item, MemoryInput) else item
            for item in checked
        ]

    def _checked(self, item: Item, errors: list[MemgraphError]) -> MemoryInput | Outcome:
        """Return the item, or its outcome when it is rejected; the error goes to ``errors``."""
        try:
            return with_canonical_source(self._opened, self._as_input(item))
        except (AccessDenied, InvalidInput) as error:
            errors.append(error)
            return Outcome(outcome="rejected", code=error.code, message=error.message)

    def _embedded(self, inputs: Sequence[MemoryInput]) -> Iterable[NDArray[np.float32]]:
        """Return a vector for each; empty when the outbox has to do it."""
        if self._embedding is None or len(inputs) < BULK:
            return ()
        try:
            return self._embedding.embed(
                [embedded_text(item.source_role, item.content) for item in inputs]
            )
        except ProviderError:
            # The outbox meets the same error, counts and reports it.
            return ()

    def _store(self, ready: Sequence[PreparedMemory | Outcome]) -> list[Outcome]:
        items = [item for item in ready if isinstance(item, PreparedMemory)]
        if items:
            with self._opened.transaction(self._actor) as transaction:
                written = self._opened.writer.store(
                    transaction,
                    items,
                    [],
                    view=self._view,
                    embedding=self._embedding,
                    live=self._kind is EpisodeInput,
                    compare=ComparisonTime.STORED,
                )
                transaction.record(written.entries)
            if written.errors:
                self._rejected(written.errors)
            stored = iter(written.memories)
        return [next(stored) if isinstance(item, PreparedMemory) else item for item in ready]

    def _as_input(self, item: Item) -> MemoryInput:
        if isinstance(item, self._kind):
            return item
        if not isinstance(item, Mapping):
            name = self._kind.__name__
            raise InvalidInput(f"an item is given as {name} or as a mapping of its fields")
        return validated(self._kind, dict(item))


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    remaining = iter(items)
    while batch := list(islice(remaining, TRANSACTION_SIZE)):
        yield batch
