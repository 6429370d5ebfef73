"""Cite the source of a memory in one line."""

from __future__ import annotations

from pathlib import PurePosixPath

from memgraph.model.values import Memory, StoredSource


def citation(memory: Memory, source: StoredSource) -> str:
    """Return where a memory comes from, in one line for people; of a file, the whole path."""
    if source.source_path is not None:
        return _within(source.source_path, source)
    parts = [str(source.source_type)]
    if source.conversation_id is not None:
        parts.append(f"conversation {source.conversation_id}")
    if memory.session_id is not None:
        parts.append(f"session {memory.session_id}")
    if memory.turn_id is not None:
        parts.append(f"turn {memory.turn_id}")
    if source.workflow_run_id is not None:
        parts.append(f"run {source.workflow_run_id}")
    if source.step_id is not None:
        parts.append(f"step {source.step_id}")
    return ", ".join(parts)


def short_citation(memory: Memory, source: StoredSource) -> str:
    """The same for a prompt: of a file its name and the place in it, not where it lies."""
    if source.source_path is None:
        return citation(memory, source)
    return _within(PurePosixPath(source.source_path).name or "file", source)


def _within(file: str, source: StoredSource) -> str:
    return f"{file}#{source.locator}" if source.locator else file
