"""What a person is asked before something changes what everybody is told."""

from __future__ import annotations

from typing import Final

from memgraph.model.values import Memory

ASKED_CHARS: Final = 500


def question_about(memory: Memory) -> str:
    """Whether a project's memory is to be everybody's; its text is cut after `ASKED_CHARS`."""
    text = memory.content[:ASKED_CHARS] + ("…" if len(memory.content) > ASKED_CHARS else "")
    return (
        f"Promote to global {memory.type.value.lower()}: {text!r}"
        f" (from project {memory.scope_id!r})?"
    )
