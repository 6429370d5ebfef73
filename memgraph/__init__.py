"""Long-term memory that agent orchestrators trust: typed memories and edges, with provenance.

``MemoryService`` is the entry point. Each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memgraph.errors import MemgraphError as MemgraphError
    from memgraph.model.enums import (
        CapturedBy as CapturedBy,
        EdgeType as EdgeType,
        MemoryKind as MemoryKind,
        MemoryStatus as MemoryStatus,
        MemoryType as MemoryType,
        Scope as Scope,
        Sensitivity as Sensitivity,
        SourceType as SourceType,
    )
    from memgraph.model.values import (
        EdgeInput as EdgeInput,
        EpisodeInput as EpisodeInput,
        Memory as Memory,
        MemoryInput as MemoryInput,
        Source as Source,
    )
    from memgraph.operations.context.builder import ContextAssembler as ContextAssembler
    from memgraph.operations.context.entity import MemoryEntity as MemoryEntity
    from memgraph.operations.orchestrator import (
        AsyncOrchestrator as AsyncOrchestrator,
        Orchestrator as Orchestrator,
    )
    from memgraph.operations.tools.tools import (
        answer_calls as answer_calls,
        call_tool as call_tool,
        tools_for as tools_for,
    )
    from memgraph.rules.scope import Viewer as Viewer
    from memgraph.service.memory_service import MemoryService as MemoryService
    from memgraph.service.turns.hooks import MemoryHooks as MemoryHooks

_NAMES = {
    "errors": "MemgraphError",
    "model.enums": "CapturedBy EdgeType MemoryKind MemoryStatus MemoryType Scope Sensitivity"
    " SourceType",
    "model.values": "EdgeInput EpisodeInput Memory MemoryInput Source",
    "operations.context.builder": "ContextAssembler",
    "operations.context.entity": "MemoryEntity",
    "operations.orchestrator": "AsyncOrchestrator Orchestrator",
    "operations.tools.tools": "answer_calls call_tool tools_for",
    "rules.scope": "Viewer",
    "service.memory_service": "MemoryService",
    "service.turns.hooks": "MemoryHooks",
}
_HOME = {name: f"memgraph.{module}" for module, names in _NAMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
