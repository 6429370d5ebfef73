"""What the consolidation of one session did, or, on a dry run, would do."""

from __future__ import annotations

from typing import Any, Literal

from memgraph.model.enums import EdgeType, MemoryType
from memgraph.model.jobs import RejectedItem, all_of
from memgraph.model.values import Value


class FactNote(Value):
    """One fact of a session.

    ``memory_id``: of the memory that holds it; None: it would be a new one, or on a later page
    strengthen that. ``evidence``: ids of
    the turns that it rests on.
    """

    outcome: Literal["stored", "strengthened"]
    memory_id: str | None
    type: MemoryType
    content: str
    evidence: tuple[str, ...]


class EdgeNote(Value):
    """An edge that was written; an end that would be a new memory is shown by its content."""

    from_id: str
    to_id: str
    edge_type: EdgeType
    reason: str | None


class SessionReport(Value):
    """What became of a session.

    Attributes:
        state: ``consolidated``: all of its turns were read. ``unchanged``: they had been before.
            ``pending``: some are left for a later run, and ``reason`` says why.
        extractor: who proposed the facts.
        echoes: sentences that the memory itself had handed out, and that were left out.
        resolved: edges of contradictions that were decided.
        compared: pairs of statements that were compared.
        calls, tokens: of a language model.
        error_code: of the error for which it is pending.
    """

    session_id: str
    state: Literal["consolidated", "unchanged", "pending"]
    dry_run: bool = False
    extractor: str
    pages: int = 0
    turns: int = 0
    echoes: int = 0
    facts: tuple[FactNote, ...] = ()
    edges: tuple[EdgeNote, ...] = ()
    resolved: tuple[str, ...] = ()
    rejected: tuple[RejectedItem, ...] = ()
    compared: int = 0
    calls: int = 0
    tokens: int = 0
    reason: str | None = None
    error_code: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return self.model_dump(mode="json")

    @property
    def counts(self) -> dict[str, int]:
        """What a job adds up over its sessions."""
        outcomes = [each.outcome for each in self.facts]
        kinds = [each.edge_type for each in self.edges]
        return {
            "pages": self.pages,
            "turns": self.turns,
            "echoes": self.echoes,
            "facts": outcomes.count("stored"),
            "strengthened": outcomes.count("strengthened"),
            "contradictions": kinds.count(EdgeType.CONTRADICTS),
            "updates": kinds.count(EdgeType.UPDATES),
            "resolved": len(self.resolved),
            "compared": self.compared,
            "calls": self.calls,
            "tokens": self.tokens,
            "rejected": all_of(self.rejected),
        }
