"""Work after a write: compare and embed when that is quick, or report how many wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memgraph.surfaces.cli.screen import note, progress

if TYPE_CHECKING:
    from memgraph.operations.orchestrator import Orchestrator

LOCAL_PROVIDERS = ("local", "fake")
# About two seconds of the local model; what is left waits for the next command.
MAX_EMBEDDED = 20_000
MAX_COMPARED = 2_000


def embed_if_quick(orchestrator: Orchestrator, *, quiet: bool) -> dict[str, Any]:
    """Compare new facts, and embed with a local model; for a remote one only report how many wait.

    Args:
        quiet: no remark on standard error.

    Returns:
        ``{"embedded": n, "pending": n}`` and, when it stopped early, its ``code``.
    """
    provider = orchestrator.settings.memory.embedding.provider
    orchestrator.maintenance.compare_pending(limit=MAX_COMPARED)
    told: dict[str, Any] = {"embedded": 0, "pending": 0}
    if provider == "none":
        return told
    waiting = orchestrator.maintenance.pending_embeddings()
    if waiting and provider in LOCAL_PROVIDERS:
        with progress("embedding", min(waiting, MAX_EMBEDDED)) as advance:
            drained = orchestrator.maintenance.embed_pending(limit=MAX_EMBEDDED, progress=advance)
        told["embedded"] = drained.ready
        if drained.error_code is not None:
            told["code"] = drained.error_code
        waiting = orchestrator.maintenance.pending_embeddings()
    told["pending"] = waiting
    if waiting and not quiet:
        note(_what_waits(orchestrator.name, told))
    return told


def _what_waits(name: str, told: dict[str, Any]) -> str:
    if told.get("code") == "embedding.model_changed":
        return f"the embedding model changed; run: memgraph embeddings rebuild {name}"
    why = f" ({told['code']})" if "code" in told else ""
    return f"{told['pending']} to embed{why}; run: memgraph embeddings drain {name}"
