"""A session, tools and instructions for the OpenAI Agents SDK, over one orchestrator.

Requires the extra ``openai-agents``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, Final, TypeVar, Unpack

from memgraph.errors import ExtraMissing, MemgraphError
from memgraph.operations.orchestrator import Orchestrator
from memgraph.operations.tools.tools import ToolOptions, as_text, call_tool, tools_for

try:
    from agents import Agent, FunctionTool, RunContextWrapper, TResponseInputItem
    from agents.memory import Session
    from agents.tool_context import ToolContext
except ImportError as error:
    raise ExtraMissing.of(
        "the OpenAI Agents SDK is not installed", extra="openai-agents"
    ) from error

_Result = TypeVar("_Result")

MAX_PROMPT_CHARS: Final = 2_000
_TEXTS: Final = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "refusal": "refusal",
}
"""The fields with the texts of a message's parts, by their types."""
# Keywords that strict schemas do not allow; the tools still enforce these constraints.
_NOT_STRICT: Final = frozenset({"default", "minLength", "maxLength"})
_log = logging.getLogger("memgraph.openai_agents")


class MemorySession:
    """A session of the SDK whose turns are remembered: ``Runner.run(…, session=…)``.

    The SDK's session keeps the items. What users and assistants say is also stored as turns of the
    conversation, which are recalled and consolidated; tool calls, their outputs and reasoning are
    not. Items that are removed from the session stay remembered. If the memory fails, a warning is
    logged and the run goes on. Calls do not block the event loop.

    Args:
        session: a session of the SDK, such as ``SQLiteSession``; its id is the conversation's.
        orchestrator: the orchestrator, whose viewer and actor store the turns.
        person, agent: the names of the speakers, stored as ``source_role`` of their turns.
        project_id: the project to which the turns belong; None: they are global.
    """

    def __init__(
        self,
        session: Session,
        orchestrator: Orchestrator,
        *,
        person: str = "user",
        agent: str = "assistant",
        project_id: str | None = None,
    ) -> None:
        self._session = session
        self._turns = orchestrator.turns
        self._names = {"user": person, "assistant": agent}
        self._project_id = project_id
        self.session_id = session.session_id
        self.session_settings = session.session_settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last ``limit`` items of the session, oldest first; None: as its settings."""
        items: list[Any] = await self._session.get_items(limit)
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items to the session, and remember what was said in them.

        Raises:
            AccessDenied: the project is closed to the orchestrator's handle.
        """
        await self._session.add_items(items)
        said: list[dict[str, Any]] = []
        for item in items:
            role, text = _said(item)
            if text.strip():
                name = self._names[role]
                said.append({"content": text, "source_role": name, "from_agent": role != "user"})
        if not said:
            return
        transcript = {"conversation_id": self.session_id, "turns": said}
        if self._project_id is not None:
            transcript["project_id"] = self._project_id
        written = await _to_its_end(self._turns.on_transcript, transcript)
        for warning in written.warnings:
            _log.warning("a turn may not be remembered: %s (%s)", warning.text, warning.code)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item from the session and return it; None if there is none."""
        return await self._session.pop_item()

    async def clear_session(self) -> None:
        """Remove all items from the session."""
        await self._session.clear_session()


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
    texts = (text for role, text in map(_said, reversed([*items])) if role == "user")
    return next((text for text in texts if text.strip()), "")[:MAX_PROMPT_CHARS]


def _said(item: Any) -> tuple[str, str]:
    """Return the role and the text of a message of a user or an assistant; else two empty texts."""
    role, content = item.get("role"), item.get("content")
    if item.get("type", "message") != "message" or role not in ("user", "assistant"):
        return "", ""
    if isinstance(content, str):
        return role, content
    parts = content if isinstance(content, list) else []
    texts = [
        part.get(_TEXTS.get(str(part.get("type")), "")) for part in parts if isinstance(part, dict)
    ]
    return role, "\n".join(text for text in texts if isinstance(text, str))


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
