"""Where a memory comes from, said in one line."""

from __future__ import annotations

from memgraph.model.values import Memory, StoredSource


def citation(memory: Memory, source: StoredSource) -> str:
    """Where a memory comes from, in one line for people."""
    if source.source_path is not None:
        return source.source_path + (f"#{source.locator}" if source.locator else "")
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
