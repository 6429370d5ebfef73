"""Rebuild derived data: indexes of tables, texts and vectors, entity links and embeddings.

Readers and writers go on meanwhile. Long rebuilds work in self-contained batches, so the next call
finishes a rebuild that was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from memgraph.errors import InvalidInput, MemoryDisabled
from memgraph.model.enums import IndexPart
from memgraph.model.operation import Progress, untold
from memgraph.model.values import Value
from memgraph.operations.write.embedding import (
    DIMENSIONS_KEY,
    MODEL_KEY,
    EmbeddingRun,
    model_mismatch,
)
from memgraph.operations.write.entity_links import Named
from memgraph.providers.embedding import EmbeddingProvider
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import embeddings, entities, metadata, postings, text_index
from memgraph.store.entities import EntityName
from memgraph.store.snapshot import JournalledTransaction, NewEntry
from memgraph.store.statements import row_count
from memgraph.store.vector_index import VectorFault

BATCH = 1_000


class EmbeddingsStatus(Value):
    """The state of the embeddings.

    Attributes:
        states: the number of pending, ready and failed memories.
        model, dimensions: of the vectors in the index; None if there are none yet.
        provider_model, provider_dimensions: of the configured provider; None without one.
        mismatch: the model of the vectors if it is not the provider's, else None.
        oldest_pending: when the oldest pending memory was stored, in milliseconds.
        errors: the number of failed or postponed memories by error code.
    """

    states: dict[str, int]
    model: str | None
    dimensions: int
    provider_model: str | None
    provider_dimensions: int | None
    mismatch: str | None
    oldest_pending: int | None
    errors: dict[str, int]


def rebuild(
    opened: OpenOrchestrator,
    parts: Sequence[IndexPart | str] = tuple(IndexPart),
    *,
    actor: str,
    progress: Progress = untold,
) -> dict[str, int]:
    """Rebuild indexes from their source data; see ``Maintenance.rebuild``.

    Returns:
        The number of rows of each part; ``requeued``: damaged or missing vectors, which the worker
        will embed again.
    """
    if not parts or any(part not in [*IndexPart] for part in parts):
        raise InvalidInput(f"parts must be from: {', '.join(IndexPart)}", given=[*map(str, parts)])
    details: dict[str, int] = {}
    for part in (part for part in IndexPart if part in parts):
        progress(part, 0, 1)
        if part is IndexPart.ENTITIES:
            _relink(opened, actor, lambda done, total: progress(IndexPart.ENTITIES, done, total))
        with opened.transaction(actor) as transaction:
            counts = _REBUILT[part](transaction)
            _journal(transaction, part, **counts)
        if part is IndexPart.FTS:
            postings.rebuild(opened.database)
        progress(part, 1, 1)
        details |= counts
    return details


def _journal(transaction: JournalledTransaction, part: str, **details: Any) -> None:
    transaction.record([NewEntry("rebuild", None, {"part": part, **details})])


def embeddings_status(opened: OpenOrchestrator) -> EmbeddingsStatus:
    """Return the state of the embeddings; cheap."""
    provider = opened.embedding
    with opened.database.read() as snapshot:
        return EmbeddingsStatus(
            states=embeddings.state_counts(snapshot),
            model=metadata.get(snapshot, MODEL_KEY),
            dimensions=embeddings.index(snapshot).dimensions,
            provider_model=None if provider is None else provider.model,
            provider_dimensions=None if provider is None else provider.dimensions,
            mismatch=model_mismatch(snapshot, provider),
            oldest_pending=embeddings.oldest_pending(snapshot),
            errors=embeddings.error_counts(snapshot),
        )


def embeddings_rebuild(
    opened: OpenOrchestrator, *, actor: str, progress: Progress = untold
) -> EmbeddingRun:
    """Re-embed all memories; see ``Maintenance.rebuild_embeddings``."""
    provider = opened.embedding
    if provider is None:
        raise MemoryDisabled("no embedding model is configured: memory.embedding.provider = none")
    with opened.database.read() as snapshot:
        mismatch = model_mismatch(snapshot, provider)
    if mismatch is not None:
        _begin_rebuild(opened, provider, mismatch, actor)
        while _forget_some_foreign(opened, provider):
            pass
    opened.other_model = None
    states = embeddings_status(opened).states
    done, total = states["ready"] + states["failed"], sum(states.values())
    progress("embeddings", done, total)

    def tell(more: int) -> None:
        nonlocal done
        done += more
        progress("embeddings", done, total)

    run = opened.worker.drain(progress=tell)
    if mismatch is not None and run.error_code is None:
        with opened.transaction(actor) as transaction:
            _journal(transaction, "embeddings", ready=run.ready, failed=run.failed)
    return run


def _text(transaction: JournalledTransaction) -> dict[str, int]:
    text_index.rewrite_search_terms(transaction)
    transaction.engine.phrases.rebuild(transaction)
    return {"fts": row_count(transaction, "memories")}


def _vectors(transaction: JournalledTransaction) -> dict[str, int]:
    index = embeddings.index(transaction)
    damaged = [item.pk for item in index.check() if item.fault is VectorFault.DAMAGED]
    index.remove(damaged)
    requeued = len(damaged) + embeddings.enqueue_missing(transaction)
    return {"vectors": index.rebuild(), "requeued": requeued}


_REBUILT: Final[Mapping[IndexPart, Callable[[JournalledTransaction], dict[str, int]]]] = {
    IndexPart.INDEXES: lambda transaction: {"indexes": transaction.engine.reindex(transaction)},
    IndexPart.FTS: _text,
    IndexPart.VECTORS: _vectors,
    IndexPart.ENTITIES: lambda transaction: {"entities": row_count(transaction, "entities")},
}


def _relink(opened: OpenOrchestrator, actor: str, progress: Callable[[int, int], None]) -> None:
    """Link what the rules find, remove entities without links, then link known names.

    Known names come last, so that a name found only by older rules is not kept.
    """
    with opened.database.read() as snapshot:
        total = 2 * row_count(snapshot, "memories")
    linker = opened.writer.linker

    def relink(transaction: JournalledTransaction, names: Sequence[Named]) -> None:
        pks = [pk for pk, _ in names]
        touched = entities.unlink_memories(transaction, pks)
        linker.link(transaction, names, search=False)
        entities.recount(transaction, touched, pks)

    done = _in_batches(opened, actor, relink, lambda done: progress(done, total))
    with opened.transaction(actor) as transaction:
        entities.recount(transaction)
        entities.remove_unnamed(transaction)
    _in_batches(opened, actor, linker.link_known, lambda more: progress(done + more, total))


def _in_batches(
    opened: OpenOrchestrator,
    actor: str,
    change: Callable[[JournalledTransaction, Sequence[Named]], None],
    progress: Callable[[int], None],
) -> int:
    """Apply ``change`` to all memories in batches of one transaction; return their number."""
    done, after = 0, 0
    while True:
        progress(done)
        with opened.database.read() as snapshot:
            batch = text_index.contents(snapshot, after, BATCH)
        if not batch:
            return done
        # Search for names outside the transaction: it may take longer than writers wait.
        results = [(pk, names_in(opened, content, entities)) for pk, content, entities in batch]
        with opened.transaction(actor) as transaction:
            change(transaction, results)
        done, after = done + len(batch), batch[-1][0]


def names_in(opened: OpenOrchestrator, content: str, value: Any) -> tuple[EntityName, ...]:
    """Return the names that the rules find in a text, and those from its enrichment by models."""
    names = opened.find_names(content)
    return tuple(dict.fromkeys([*names, *opened.naming.kept(content, value)] if value else names))


def _begin_rebuild(
    opened: OpenOrchestrator, provider: EmbeddingProvider, mismatch: str, actor: str
) -> None:
    """Mark the index as belonging to neither model, so that no vector is searched.

    The mark also keeps workers of both models from writing until no old vector is left.
    """
    mark = f"rebuilding for {provider.model} with {provider.dimensions} dimensions"
    with opened.transaction(actor) as transaction:
        if metadata.get(transaction, MODEL_KEY) == mark:
            return
        before = {"model": mismatch, "dimensions": metadata.get(transaction, DIMENSIONS_KEY)}
        metadata.put(transaction, MODEL_KEY, mark)
        embeddings.index(transaction).rebuild(provider.dimensions)
        after = {"model": provider.model, "dimensions": provider.dimensions}
        _journal(transaction, "embeddings", **{"from": before, "to": after})


def _forget_some_foreign(opened: OpenOrchestrator, provider: EmbeddingProvider) -> bool:
    """Make a batch of the old model's vectors pending; return True if there may be more."""
    with opened.database.write() as transaction:
        model, dimensions = provider.model, provider.dimensions
        remaining = embeddings.reset_foreign(transaction, model, dimensions, BATCH)
        if not remaining:
            metadata.put(transaction, MODEL_KEY, model)
    return bool(remaining)
