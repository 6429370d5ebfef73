"""Recall, joined with the open orchestrator: its provider, its settings, what it lacks."""

from __future__ import annotations

from memgraph.model.recall import Bundle, Degraded, RecallRequest
from memgraph.policy.scope import Viewer
from memgraph.service.embedding import model_mismatch
from memgraph.service.opened import Opened


def answer(opened: Opened, viewer: Viewer, request: RecallRequest) -> Bundle:
    """Answer a request from one orchestrator. Raises AccessDenied, StorageError."""
    # With it comes numpy, which commands that recall nothing do without.
    from memgraph.retrieval.recall import recall

    embed = None if opened.embedding is None else opened.embedding.embed
    degraded = []
    with opened.database.read() as connection:
        # Another process may have made the vectors anew, for another model.
        opened.other_model = model_mismatch(connection, opened.embedding)
    if opened.other_model is not None:
        embed = None
        degraded.append(
            Degraded(
                code="vector.model_changed",
                text="the embedding model was changed; run: memgraph embeddings rebuild",
            )
        )
    return recall(
        opened.database,
        request,
        viewer=viewer,
        settings=opened.settings.memory,
        embed=embed,
        name_keys=lambda text: {name.key for name in opened.find_names(text)},
        now_ms=opened.clock.now_ms(),
        ids=opened.ids,
        degraded=degraded,
        held=opened.held_vectors,
    )
