"""Checks that a file may be named as a source: the orchestrator's own, or of a shared folder."""

from __future__ import annotations

from memgraph.errors import AccessDenied
from memgraph.model.values import MemoryInput
from memgraph.paths import canonical_source
from memgraph.service.open_orchestrator import OpenOrchestrator


def with_canonical_source(opened: OpenOrchestrator, memory: MemoryInput) -> MemoryInput:
    """Return the memory, its source's path absolute and without links.

    Raises:
        AccessDenied: the path lies outside of the drop zone and of ``memory.ingest.allowed_roots``,
            or in another orchestrator's folder; the caller journals it.
    """
    path = memory.source.source_path
    if path is None:
        return memory
    try:
        real = canonical_source(path, opened.paths, opened.settings.memory.ingest.allowed_roots)
    except AccessDenied as error:
        error.asked = path
        raise
    source = memory.source.model_copy(update={"source_path": str(real)})
    return memory.model_copy(update={"source": source})
