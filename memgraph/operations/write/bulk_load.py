"""Store many memories: one batch is written while the next is prepared.

SQLite and the local embedding model release the interpreter lock, so two cores share the load. The
local model needs microseconds per text, so a bulk load embeds before each transaction, never inside
one, and stores the vectors with their memories. With any other model, the outbox embeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from typing import TYPE_CHECKING, Any

from memgraph.errors import AccessDenied, InvalidInput, MemgraphError, ProviderError
from memgraph.model.values import EpisodeInput, MemoryInput, Outcome, validated
from memgraph.operations.write.writer import PreparedMemory, with_canonical_source
from memgraph.providers.local import LocalEmbedding
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store.embeddings import embedded_text
from memgraph.store.visibility import View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Memories per transaction: enough to make its fixed cost small, few enough not to block others.
TRANSACTION_SIZE = 1_000
# With fewer memories nothing is embedded here: loading the model takes longer than storing them.
BULK = 100

Item = MemoryInput | Mapping[str, Any]


class BulkLoader:
    """Store items for one handle, in transactions of ``TRANSACTION_SIZE``.

    Args:
        kind: the required class of the items.
        view: what the writer may see.
        embeds: True to embed with the local model while loading; otherwise the outbox embeds.
        rejected: called with the errors of items that were not stored, before ``load`` returns.
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
        """Store the items and return their outcomes, in order.

        Each batch is durable before the next is written.
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
                        # This is the only batch, so there is nothing to prepare meanwhile.
                        return self._store(ready)
                    # Run it in the caller's context, which carries the claim of the request.
                    writing = pool.submit(copy_context().run, self._store, ready)
            finally:
                # Raise the error of a failed write, even if something else failed meanwhile.
                if writing is not None:
                    outcomes.extend(writing.result())
        return outcomes

    def _prepare(self, batch: Sequence[Item]) -> list[PreparedMemory | Outcome]:
        errors: list[MemgraphError] = []
        checked = [self._checked(item, errors) for item in batch]
        if errors:
            # Report them together: each report takes a transaction.
            self._rejected(errors)
        vectors = iter(self._embedded([item for item in checked if isinstance(item, MemoryInput)]))
        prepare = self._opened.writer.prepare
        return [
            prepare(item, next(vectors, None)) if isinstance(item, MemoryInput) else item
            for item in checked
        ]

    def _checked(self, item: Item, errors: list[MemgraphError]) -> MemoryInput | Outcome:
        try:
            roots = self._opened.settings.memory.ingest.allowed_roots
            return with_canonical_source(self._as_input(item), self._opened.paths, roots)
        except (AccessDenied, InvalidInput) as error:
            errors.append(error)
            return Outcome(outcome="rejected", code=error.code, message=error.message)

    def _embedded(self, inputs: Sequence[MemoryInput]) -> Iterable[NDArray[np.float32]]:
        """Return a vector for each input; empty if the outbox has to embed them."""
        if self._embedding is None or len(inputs) < BULK:
            return ()
        try:
            return self._embedding.embed(
                [embedded_text(item.source_role, item.content, item.attributes) for item in inputs]
            )
        except ProviderError:
            # The outbox will get the same error, count it and report it.
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
            raise InvalidInput(f"an item must be a {name} or a mapping of its fields")
        return validated(self._kind, dict(item))


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    remaining = iter(items)
    while batch := list(islice(remaining, TRANSACTION_SIZE)):
        yield batch
