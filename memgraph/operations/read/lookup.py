"""Count what is stored."""

from __future__ import annotations

from typing import Any

from memgraph.clock import parse_time
from memgraph.model.enums import ModelUse
from memgraph.providers.usage import ModelUsage
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import (
    edges,
    embeddings,
    ingest_files,
    journal,
    memories,
    metadata,
    sessions,
)
from memgraph.store.snapshot import Snapshot
from memgraph.store.statements import row_count


def stats(opened: OpenOrchestrator) -> dict[str, Any]:
    """Return counts of everything stored, and the sizes on disk in bytes."""
    with opened.database.read() as snapshot:
        seq, _ = journal.head(snapshot)
        counts = {
            "orchestrator": opened.database.orchestrator_id,
            "memories": memories.counts(snapshot),
            "edges": edges.counts(snapshot),
            "entities": row_count(snapshot, "entities"),
            "embeddings": embeddings.state_counts(snapshot),
            "ingest": ingest_files.counts(snapshot),
            "model": _model_counts(opened, snapshot),
            "journal_entries": seq,
            "schema": metadata.revision(snapshot),
        }
    sizes = opened.database.sizes()
    return {**counts, "bytes": sizes, "embedding_model_changed": opened.other_model is not None}


def _model_counts(opened: OpenOrchestrator, snapshot: Snapshot) -> dict[str, Any]:
    """Return what language models used in this month, by use, and per consolidated session."""
    from memgraph.operations.life.models import model_usage, month_of

    month = month_of(opened.clock.now_ms())
    usages = model_usage(snapshot, month)
    total = ModelUsage()
    for usage in usages.values():
        total.add(usage)
    read = sessions.consolidated_since(snapshot, parse_time(f"{month}-01"))
    spent = usages.get(ModelUse.CONSOLIDATION, ModelUsage()).tokens
    return {
        "month": month,
        **total.as_counts(),
        "monthly_tokens": opened.settings.memory.llm.monthly_tokens,
        "sessions": read,
        "tokens_per_session": round(spent / read) if read else 0,
        "by_use": {str(use): usages[use].as_counts() for use in sorted(usages)},
    }
