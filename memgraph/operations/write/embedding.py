"""The embedding worker: read due memories, embed them outside transactions, store the vectors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memgraph.clock import Clock
from memgraph.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
)
from memgraph.providers.embedding import EmbeddingProvider
from memgraph.store import embeddings, metadata
from memgraph.store.embeddings import DueEmbedding
from memgraph.store.engine import Database
from memgraph.store.snapshot import Snapshot, Transaction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 512
# Vectors per transaction, and the pause between two, so that other writers wait only for one.
WRITTEN_AT_ONCE = 32
GIVE_WAY_S = 0.001
FIRST_PAUSE_MS = 1_000
LONGEST_PAUSE_MS = 3_600_000
# The number of attempts for a text that the provider rejects or answers invalidly.
MAX_REFUSALS = 3
NOTHING_TO_EMBED = embeddings.NOTHING_TO_EMBED
MODEL_CHANGED = "embedding.model_changed"
MODEL_KEY = "embedding_model"
DIMENSIONS_KEY = "embedding_dimensions"


@dataclass(slots=True)
class EmbeddingRun:
    """The result of a run of the worker; ``error`` is the message of what stopped it early."""

    ready: int = 0
    failed: int = 0
    put_off: int = 0
    error_code: str | None = None
    error: str | None = None


def pause_ms(attempts: int) -> int:
    """Return the pause after failure ``attempts`` (from 0) in ms: 1 s, doubling up to 1 h."""
    return min(FIRST_PAUSE_MS << min(attempts, 12), LONGEST_PAUSE_MS)


def model_mismatch(snapshot: Snapshot, provider: EmbeddingProvider | None) -> str | None:
    """Return the model of the stored vectors if it is not the provider's, else None.

    Without a provider the result is None. Vectors of two models are not comparable: until
    ``embeddings rebuild``, recall uses only text.
    """
    if provider is None:
        return None
    model = metadata.get(snapshot, MODEL_KEY)
    dimensions = metadata.get(snapshot, DIMENSIONS_KEY)
    return other_model(provider, model, None if dimensions is None else int(dimensions))


def other_model(
    provider: EmbeddingProvider | None, model: str | None, dimensions: int | None
) -> str | None:
    """Return ``model``, the model of the stored vectors, if it is not the provider's, else None."""
    if provider is None:
        return None
    if model is not None and model != provider.model:
        return model
    if dimensions is not None and dimensions != provider.dimensions:
        return f"{model or 'unknown'} with {dimensions} dimensions"
    return None


def claim_model(transaction: Transaction, provider: EmbeddingProvider) -> bool:
    """Return True if this provider's vectors may be stored; the first vectors fix the model."""
    if model_mismatch(transaction, provider) is not None:
        return False
    if metadata.get(transaction, MODEL_KEY) is None:
        metadata.put(transaction, MODEL_KEY, provider.model)
    return True


class EmbeddingWorker:
    """Process the embedding outbox of one database. Safe with other threads and processes."""

    def __init__(
        self, database: Database, provider: EmbeddingProvider | None, clock: Clock
    ) -> None:
        self._database = database
        self._provider = provider
        self._clock = clock
        self._one_at_a_time = threading.Lock()

    def drain(
        self,
        *,
        limit: int | None = None,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = lambda _: None,
    ) -> EmbeddingRun:
        """Embed due memories in batches until none is left, ``limit`` is reached or one fails.

        Args:
            limit: the approximate maximum number of memories; None: no limit.
            stop: checked before each batch.
            progress: called after each batch with its number of memories done.

        Raises:
            StorageError: the database failed; memories not yet done stay in the outbox.
        """
        run = EmbeddingRun()
        provider = self._provider
        if provider is None:
            return run
        with self._one_at_a_time:
            while not stop() and (limit is None or run.ready + run.failed < limit):
                with self._database.read() as snapshot:
                    if model_mismatch(snapshot, provider) is not None:
                        run.error_code = MODEL_CHANGED
                        return run
                    batch = embeddings.due(snapshot, self._clock.now_ms(), BATCH)
                if not batch:
                    return run
                done = run.ready + run.failed
                self._embed(provider, batch, run)
                progress(run.ready + run.failed - done)
                # Whoever adds more memories meanwhile wakes a worker.
                if run.error_code is not None or len(batch) < BATCH:
                    return run
        return run

    def _embed(
        self, provider: EmbeddingProvider, batch: Sequence[DueEmbedding], run: EmbeddingRun
    ) -> None:
        try:
            vectors = provider.embed([item.content for item in batch])
        except (ProviderRejected, ProviderAnswerInvalid) as error:
            self._refused(provider, batch, error, run)
        except ProviderUnavailable as error:
            self._put_off(batch, error, run)
        else:
            self._write_back(provider, batch, vectors, run)

    def _refused(
        self,
        provider: EmbeddingProvider,
        batch: Sequence[DueEmbedding],
        error: ProviderError,
        run: EmbeddingRun,
    ) -> None:
        if len(batch) > 1:
            # A single text may fail the whole batch, so embed each text alone until one fails.
            for item in batch:
                self._embed(provider, [item], run)
                if run.error_code is not None:
                    return
            return
        if batch[0].attempts + 1 < MAX_REFUSALS:
            self._put_off(batch, error, run)
            return
        with self._database.write() as transaction:
            embeddings.mark_failed(transaction, [batch[0].memory_pk], error.code)
        run.failed += 1

    def _put_off(
        self, batch: Sequence[DueEmbedding], error: ProviderError, run: EmbeddingRun
    ) -> None:
        attempts = max(item.attempts for item in batch)
        until = self._clock.now_ms() + pause_ms(attempts)
        with self._database.write() as transaction:
            embeddings.put_off(transaction, [item.memory_pk for item in batch], until, error.code)
        run.put_off += len(batch)
        run.error_code, run.error = error.code, error.message

    def _write_back(
        self,
        provider: EmbeddingProvider,
        batch: Sequence[DueEmbedding],
        vectors: NDArray[np.float32],
        run: EmbeddingRun,
    ) -> None:
        for start in range(0, len(batch), WRITTEN_AT_ONCE):
            if start:
                time.sleep(GIVE_WAY_S)
            part = range(start, min(start + WRITTEN_AT_ONCE, len(batch)))
            # Not durable: after a power failure the memories are only embedded again.
            with self._database.write(durable=False) as transaction:
                # A rebuild for another model may have begun while this batch was embedded.
                if not claim_model(transaction, provider):
                    run.error_code = MODEL_CHANGED
                    return
                pending = embeddings.still_pending(
                    transaction, [batch[place].memory_pk for place in part]
                )
                ready = [
                    place
                    for place in part
                    if batch[place].memory_pk in pending and vectors[place].any()
                ]
                pks = [batch[place].memory_pk for place in ready]
                empty = sorted(pending - set(pks))
                embeddings.index(transaction).add(pks, vectors[ready], provider.model)
                embeddings.mark_failed(transaction, empty, NOTHING_TO_EMBED)
            run.ready += len(ready)
            run.failed += len(empty)
