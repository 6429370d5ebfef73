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
    )
    from memgraph.model.enums import (
        EdgeType as EdgeType,
    )
    from memgraph.model.enums import (
        MemoryKind as MemoryKind,
    )
    from memgraph.model.enums import (
        MemoryStatus as MemoryStatus,
    )
    from memgraph.model.enums import (
        MemoryType as MemoryType,
    )
    from memgraph.model.enums import (
        Scope as Scope,
    )
    from memgraph.model.enums import (
        Sensitivity as Sensitivity,
    )
    from memgraph.model.enums import (
        SourceType as SourceType,
    )
    from memgraph.model.values import (
        EdgeInput as EdgeInput,
    )
    from memgraph.model.values import (
        EpisodeInput as EpisodeInput,
    )
    from memgraph.model.values import (
        Memory as Memory,
    )
    from memgraph.model.values import (
        MemoryInput as MemoryInput,
    )
    from memgraph.model.values import (
        Source as Source,
    )
    from memgraph.operations.context.builder import ContextAssembler as ContextAssembler
    from memgraph.operations.context.entity import MemoryEntity as MemoryEntity
    from memgraph.operations.orchestrator import AsyncOrchestrator as AsyncOrchestrator
    from memgraph.operations.orchestrator import Orchestrator as Orchestrator
    from memgraph.operations.tools.tools import answer_calls as answer_calls
    from memgraph.operations.tools.tools import call_tool as call_tool
    from memgraph.operations.tools.tools import tools_for as tools_for
    from memgraph.rules.scope import Viewer as Viewer
    from memgraph.service.memory_service import MemoryService as MemoryService
    from memgraph.service.turns.hooks import MemoryHooks as MemoryHooks

_HOME = {
    "MemgraphError": "memgraph.errors",
    "CapturedBy": "memgraph.model.enums",
    "EdgeType": "memgraph.model.enums",
    "MemoryKind": "memgraph.model.enums",
    "MemoryStatus": "memgraph.model.enums",
    "MemoryType": "memgraph.model.enums",
    "Scope": "memgraph.model.enums",
    "Sensitivity": "memgraph.model.enums",
    "SourceType": "memgraph.model.enums",
    "EdgeInput": "memgraph.model.values",
    "EpisodeInput": "memgraph.model.values",
    "Memory": "memgraph.model.values",
    "MemoryInput": "memgraph.model.values",
    "Source": "memgraph.model.values",
    "Viewer": "memgraph.rules.scope",
    "AsyncOrchestrator": "memgraph.operations.orchestrator",
    "ContextAssembler": "memgraph.operations.context.builder",
    "MemoryEntity": "memgraph.operations.context.entity",
    "MemoryService": "memgraph.service.memory_service",
    "Orchestrator": "memgraph.operations.orchestrator",
    "MemoryHooks": "memgraph.service.turns.hooks",
    "answer_calls": "memgraph.operations.tools.tools",
    "call_tool": "memgraph.operations.tools.tools",
    "tools_for": "memgraph.operations.tools.tools",
}

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
