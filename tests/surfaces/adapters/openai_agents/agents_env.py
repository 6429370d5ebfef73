"""What the tests of this adapter share: the SDK or a reason to skip, and runs without a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adapter_environments import needs

EXTRA = "openai-agents"
needs(EXTRA, "agents")

# Tests take the names of the SDK from here: they are there, or the line above has ended it.
from agents import Agent, FunctionTool, RunConfig, Runner, function_tool, handoff  # noqa: E402  not before it is known to be installed
from agents.memory import Session, SessionSettings, SQLiteSession  # noqa: E402
from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: E402

from memgraph import MemoryService, Orchestrator  # noqa: E402

__all__ = [
    "EXTRA",
    "QUIET",
    "FunctionTool",
    "Runner",
    "SQLiteSession",
    "Session",
    "SessionSettings",
    "assistant_message",
    "function_call",
    "function_tool",
    "handoff",
    "helper",
    "remembering",
    "run",
]

NAME = "orc"
QUIET = RunConfig(tracing_disabled=True)


@contextmanager
def remembering(root: Path, **options: Any) -> Iterator[Orchestrator]:
    """An orchestrator under a root; in the background nothing happens."""
    with MemoryService(root, environ={}, background=False, **options) as service:
        yield service.orchestrator(NAME, create=True)


def helper(*steps: Any, **fields: Any) -> tuple[Agent[Any], ScriptedModel]:
    """An agent whose model answers as scripted, and that model."""
    model = ScriptedModel([*steps])
    return Agent(name="helper", model=model, **fields), model


async def run(agent: Agent[Any], asked: Any, session: Any = None) -> Any:
    return await Runner.run(agent, asked, session=session, run_config=QUIET)
