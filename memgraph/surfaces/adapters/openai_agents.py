"""A session, tools and instructions for the OpenAI Agents SDK, over one orchestrator.

Requires the extra ``openai-agents``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, TypeVar, Unpack, cast

from memgraph.errors import ExtraMissing, MemgraphError
from memgraph.model.enums import Scope, Sensitivity
from memgraph.operations.orchestrator import Orchestrator
from memgraph.operations.tools.tools import ToolOptions, as_text, call_tool, tools_for
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
# Keywords that strict schemas do not allow; the tools still enforce these constraints.
_NOT_STRICT: Final = frozenset({"default", "minLength", "maxLength"})
_log = logging.getLogger("memgraph.openai_agents")


class MemorySession:
    """A session of the SDK, stored as episodes of an orchestrator: ``Runner.run(…, session=…)``.

    Items are returned exactly as they were added, across restarts and processes. The turns of users
    and assistants are recalled and consolidated. Tool calls, their outputs, reasoning and system
    messages are stored with the session but never become facts. Removed items are retracted, so
    they stay in the history and the journal. Calls do not block the event loop, and a change that
    has begun is awaited even if the task is cancelled.

    Args:
        orchestrator: the orchestrator, whose viewer and actor the session uses.
        session_id: the id of the conversation; an existing one is continued.
        session_settings: settings of the SDK; ``limit`` is the default of ``get_items``.
        person, agent: the names of the speakers, stored as ``source_role`` of their turns.
        scope, scope_id, sensitivity: where the episodes belong, and their sensitivity.

    Raises:
        InvalidInput: an argument is invalid; the error names it.
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
        """Return the last ``limit`` items, oldest first.

        Args:
            limit: the maximum number of items; None: the limit in the settings, or no limit.

        Raises:
            InvalidInput: the limit is negative.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        entries = await asyncio.to_thread(self._transcript.entries, limit)
        items: list[Any] = [item_of(entry) for entry in entries]
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append all of the items or none of them.

        Raises:
            InvalidInput: an item is not a plain JSON object.
        """
        entries = [entry_of(item) for item in items]
        await _to_its_end(self._transcript.append, entries)

    async def pop_item(self) -> TResponseInputItem | None:
        """Retract and return the last item, or return None if there is none."""
        entry = await _to_its_end(self._transcript.pop)
        item: Any = None if entry is None else item_of(entry)
        return cast("TResponseInputItem | None", item)

    async def clear_session(self) -> None:
        """Retract all items."""
        await _to_its_end(self._transcript.clear)


def memory_tools(orchestrator: Orchestrator, **options: Unpack[ToolOptions]) -> list[FunctionTool]:
    """Return the tools of an orchestrator, for ``Agent(tools=…)``; options as for ``call_tool``.

    The schemas are strict. An error is returned as ``{"error": {"code", "message"}}``, so that the
    model can correct its call. Calls do not block the event loop.

    Raises:
        InvalidInput: ``only`` names an unknown tool.
    """

    def tool(function: Mapping[str, Any]) -> FunctionTool:
        name: str = function["name"]

        async def invoke(_context: ToolContext[Any], arguments: str) -> str:
            call = partial(call_tool, orchestrator, name, arguments, **options)
            return as_text(await _to_its_end(call))

        return FunctionTool(
            name=name,
            description=function["description"],
            params_json_schema=_strict(function["parameters"]),
            on_invoke_tool=invoke,
        )

    offered = tools_for(orchestrator, only=options.get("only"))
    return [tool(item["function"]) for item in offered]


def memory_instructions(
    orchestrator: Orchestrator,
    instructions: str = "",
    *,
    session_id: str | None = None,
    budget_tokens: int | None = None,
) -> Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]:
    """Return instructions followed by memories that are relevant to the user's last message.

    Use: ``Agent(instructions=memory_instructions(orc, "You are …"))``. If the memory fails, a
    warning is logged and the agent runs with the plain instructions.

    Args:
        session_id: the current conversation, whose own turns are left out.
        budget_tokens: the maximum tokens of the memories; None: ``memory.context.block_tokens``.
    """

    async def instruct(context: RunContextWrapper[Any], _agent: Agent[Any]) -> str:
        question = _last_user_text(context.turn_input)
        try:
            block = await asyncio.to_thread(
                lambda: orchestrator.context(
                    question, budget_tokens=budget_tokens, exclude_session_id=session_id
                )
            )
        except MemgraphError as error:
            _log.warning("instructions without memories: %s (%s)", error.message, error.code)
            return instructions
        return "\n\n".join(part for part in (instructions, block.text) if part)

    return instruct


def _last_user_text(items: Collection[Any]) -> str:
    """Return the text of the user's last message that has one, truncated."""
    texts = (text_of(item) for item in reversed([*items]) if item.get("role") == "user")
    return next((text for text in texts if text.strip()), "")[:MAX_PROMPT_CHARS]


async def _to_its_end(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Run a function in a thread, and wait for it even if cancelled.

    So a cancelled caller never leaves a write running.
    """
    running = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # Retrieve the function's error, if any, or asyncio would report it as never retrieved.
        running.exception()
        raise cancelled
    return running.result()


def _strict(schema: Any) -> Any:
    """Return a schema without the keywords that strict schemas do not allow.

    The SDK then requires every property, so one that may be omitted may be null. The SDK makes the
    other changes for strict schemas.
    """
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "required" in schema:
        properties = {
            name: item
            if name in schema["required"] or "default" in item
            else {"anyOf": [item, {"type": "null"}]}
            for name, item in schema["properties"].items()
        }
        schema = {**schema, "properties": properties}
    return {
        key: {name: _strict(item) for name, item in value.items()}
        if key == "properties"
        else _strict(value)
        for key, value in schema.items()
        if key not in _NOT_STRICT
    }
