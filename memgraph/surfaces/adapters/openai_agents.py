"""The OpenAI Agents SDK: a session, tools and instructions over one orchestrator.

Needs the extra ``openai-agents``.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, TypeVar, cast

from memgraph.errors import ExtraMissing, MemgraphError
from memgraph.model.enums import Scope, Sensitivity
from memgraph.operations.orchestrator import Orchestrator
from memgraph.operations.tools.tools import call_tool, tools_for
from memgraph.operations.tools.transcript import Transcript
from memgraph.surfaces.adapters._openai_items import entry_of, item_of, text_of

try:
    from agents import Agent, FunctionTool, RunContextWrapper, TResponseInputItem
    from agents.memory import SessionSettings
    from agents.tool_context import ToolContext
except ImportError as error:
    raise ExtraMissing.of(
        "the OpenAI Agents SDK is not installed", extra="openai-agents"
    ) from error

_Result = TypeVar("_Result")

MAX_PROMPT_CHARS: Final = 2_000
# Keywords that models with strict schemas refuse; the tools check what they say all the same.
_NOT_STRICT: Final = frozenset({"default", "minLength", "maxLength"})
_log = logging.getLogger("memgraph.openai_agents")


class MemorySession:
    """A session of the SDK, kept as episodes of one orchestrator: ``Runner.run(…, session=…)``.

    Every item is returned as it was given, across restarts and processes. The turns of users and
    assistants are recalled and consolidated; tool calls, their outputs, reasoning and system
    messages are kept with their session and become no facts. Removed items are retracted, so the
    history and the journal keep them. Nothing blocks the event loop, and a change that has begun is
    waited for even if the task is cancelled.

    Args:
        orchestrator: its viewer and actor are those of the session.
        session_id: the conversation; the same name continues it.
        session_settings: of the SDK; ``limit`` is the default of ``get_items``.
        person, agent: the names of the speakers, as ``source_role`` of their turns.
        scope, scope_id, sensitivity: of the episodes.

    Raises:
        InvalidInput: naming the argument that is invalid.
        AccessDenied: the orchestrator's viewer would not see what the session stores.
    """

    def __init__(
        self,
        orchestrator: Orchestrator,
        session_id: str,
        *,
        session_settings: SessionSettings | None = None,
        person: str = "user",
        agent: str = "assistant",
        scope: Scope | str = Scope.GLOBAL,
        scope_id: str | None = None,
        sensitivity: Sensitivity | str = Sensitivity.INTERNAL,
    ) -> None:
        self._transcript = Transcript(
            orchestrator,
            session_id,
            person=person,
            agent=agent,
            scope=scope,
            scope_id=scope_id,
            sensitivity=sensitivity,
        )
        self.session_id = self._transcript.session_id
        self.session_settings = session_settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last ``limit`` items, oldest first; None: those of the settings, or all.

        Raises:
            InvalidInput: a limit below 0.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        entries = await asyncio.to_thread(self._transcript.entries, limit)
        items: list[Any] = [item_of(entry) for entry in entries]
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all of them or none.

        Raises:
            InvalidInput: an item is no plain JSON object.
        """
        entries = [entry_of(item) for item in items]
        await _to_its_end(self._transcript.append, entries)

    async def pop_item(self) -> TResponseInputItem | None:
        """Retract the last item and return it; None: there is none."""
        entry = await _to_its_end(self._transcript.pop)
        item: Any = None if entry is None else item_of(entry)
        return cast("TResponseInputItem | None", item)

    async def clear_session(self) -> None:
        """Retract all items."""
        await _to_its_end(self._transcript.clear)


def memory_tools(
    orchestrator: Orchestrator,
    *,
    session_id: str | None = None,
    read_only: bool = False,
    only: Collection[str] | None = None,
    maintenance: bool = False,
    scope: str | None = None,
    scope_id: str | None = None,
) -> list[FunctionTool]:
    """Return the tools of an orchestrator, for ``Agent(tools=…)``; arguments as for ``call_tool``.

    Schemas are strict. An error is returned as ``{"error": {"code", "message"}}``, so that the
    model can fix its call, and the event loop goes on meanwhile.

    Raises:
        InvalidInput: ``only`` names an unknown tool.
    """

    def tool(described: Mapping[str, Any]) -> FunctionTool:
        name: str = described["name"]

        async def invoke(_context: ToolContext[Any], arguments: str) -> str:
            response = await _to_its_end(
                lambda: call_tool(
                    orchestrator,
                    name,
                    arguments,
                    read_only=read_only,
                    only=only,
                    maintenance=maintenance,
                    session_id=session_id,
                    scope=scope,
                    scope_id=scope_id,
                )
            )
            return json.dumps(response, ensure_ascii=False)

        return FunctionTool(
            name=name,
            description=described["description"],
            params_json_schema=_strict(described["parameters"]),
            on_invoke_tool=invoke,
        )

    offered = tools_for(orchestrator, read_only=read_only, only=only, maintenance=maintenance)
    return [tool(item["function"]) for item in offered]


def memory_instructions(
    orchestrator: Orchestrator,
    instructions: str = "",
    *,
    session_id: str | None = None,
    limit: int | None = None,
) -> Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]:
    """Return instructions that end in memories relevant to the user's last message.

    ``Agent(instructions=memory_instructions(orc, "You are …"))``. When the memory fails, the
    instructions are used alone and a warning is logged: the agent goes on.

    Args:
        session_id: the current conversation: nothing from it is added.
        limit: 1..1,000 memories; None: ``memory.context.facts``.
    """

    async def instruct(context: RunContextWrapper[Any], _agent: Agent[Any]) -> str:
        question = _last_words(context.turn_input)
        try:
            block = await asyncio.to_thread(
                lambda: orchestrator.context(question, limit=limit, exclude_session_id=session_id)
            )
        except MemgraphError as error:
            _log.warning("no memory in the instructions: %s (%s)", error.message, error.code)
            return instructions
        return "\n\n".join(part for part in (instructions, block.text) if part)

    return instruct


def _last_words(items: Collection[Any]) -> str:
    """Return the user's last message."""
    texts = (text_of(item) for item in reversed([*items]) if item.get("role") == "user")
    return next((text for text in texts if text.strip()), "")[:MAX_PROMPT_CHARS]


async def _to_its_end(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Run in a thread, and wait for it even if cancelled, so that the result of a write is
    known.
    """
    running = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # Its own error, if any, is retrieved here: nobody else will.
        running.exception()
        raise cancelled
    return running.result()


def _strict(schema: Any) -> Any:
    """Return a schema without keywords that strict ones may not have; the SDK does the rest."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _strict(item) for name, item in value.items()}
        if key == "properties"
        else _strict(value)
        for key, value in schema.items()
        if key not in _NOT_STRICT
    }
