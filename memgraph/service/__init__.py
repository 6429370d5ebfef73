"""The facade over everything: ``MemoryService`` and the handle of one orchestrator."""

from __future__ import annotations

from memgraph.service.memory_service import MemoryService
from memgraph.service.orchestrator import Orchestrator

__all__ = ["MemoryService", "Orchestrator"]
