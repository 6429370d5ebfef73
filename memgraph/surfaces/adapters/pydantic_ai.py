"""The memory in an agent of pydantic-ai: its tools, its instructions, its conversations.

Needs the extra ``pydantic-ai``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Final

from pydantic_core import SchemaValidator, core_schema

from memgraph.errors import ExtraMissing, MemgraphError
from memgraph.model.context import BlockFormat
from memgraph.model.values import EpisodeInput, Outcome, validated
from memgraph.operations.orchestrator import Orchestrator
from memgraph.operations.tools.tools import call_tool, tools_for

try:
    from anyio import to_thread
    from pydantic_ai import AbstractToolset, RunContext, ToolDefinition
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        TextPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.toolsets import ToolsetTool
except ImportError as error:
    raise ExtraMissing.of("pydantic-ai is not installed", extra="pydantic-ai") from error

ASSISTANT: Final = "assistant"
MAX_RUNS: Final = 256
# A run, its conversation and its prompt.
_Asked = tuple[str | None, str | None, str]
# The tools validate the fields against their own schemas, and report errors.
_OBJECT = SchemaValidator(core_schema.dict_schema(keys_schema=core_schema.str_schema()))


class MemoryToolset(AbstractToolset[Any]):
    """The toolset that ``memory_toolset`` returns.

    A ``FunctionToolset`` fails the run when a model passes a list as a tool's arguments.
    """

    def __init__(
        self,
        orchestrator: Orchestrator,
        *,
        toolset_id: str,
        session_id: str | None,
        chosen: dict[str, Any],
        place: dict[str, Any],
    ) -> None:
        self._orchestrator = orchestrator
        self._toolset_id = toolset_id
        self._session_id = session_id
        self._place = place
        self._chosen = chosen
        self._offered = [item["function"] for item in tools_for(orchestrator, **chosen)]

    @property
    def id(self) -> str:
        return self._toolset_id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {
            item["name"]: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=item["name"],
                    description=item["description"],
                    parameters_json_schema=item["parameters"],
                ),
                max_retries=ctx.max_retries,
                args_validator=_OBJECT,
            )
            for item in self._offered
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002  the interface's
    ) -> dict[str, Any]:
        ask = partial(
            call_tool,
            self._orchestrator,
            name,
            tool_args,
            session_id=self._session_id or ctx.conversation_id,
            **self._chosen,
            **self._place,
        )
        return await to_thread.run_sync(ask)


def memory_toolset(
    orchestrator: Orchestrator,
    *,
    session_id: str | None = None,
    read_only: bool = False,
    only: Collection[str] | None = None,
    maintenance: bool = False,
    scope: str | None = None,
    scope_id: str | None = None,
    toolset_id: str = "memgraph",
) -> MemoryToolset:
    """Return the tools of ``tools_for`` as a toolset: ``Agent(model,
    toolsets=[memory_toolset(orc)])``.

    Errors of the memory are returned as ``{"error": {"code", "message"}}`` and never end the run: a
    retry of pydantic-ai has a budget, and after it the run fails.

    Args:
        orchestrator: the agent reaches what its viewer may see.
        session_id: the conversation that sources name; None: the ``conversation_id`` of the run.
        read_only, only, maintenance, scope, scope_id: see ``tools_for`` and ``call_tool``.
        toolset_id: the toolset's ``id``; two in one agent need two.

    Raises:
        InvalidInput: ``only`` names an unknown tool.
    """

    return MemoryToolset(
        orchestrator,
        toolset_id=toolset_id,
        session_id=session_id,
        chosen={"read_only": read_only, "only": only, "maintenance": maintenance},
        place={"scope": scope, "scope_id": scope_id},
    )


def memory_instructions(
    orchestrator: Orchestrator,
    *,
    session_id: str | None = None,
    limit: int | None = None,
    format: BlockFormat | str | None = None,  # noqa: A002  the word that settings have for it
    include_insight: bool = True,
) -> Callable[[RunContext[Any]], str]:
    """Return a function for ``Agent(model, instructions=…)``: memories relevant to the prompt.

    Called once in a run, so that the instructions of its later requests stay the same. When the
    memory fails, they are empty with a warning (``RuntimeWarning``); the run goes on.

    Args:
        session_id: the conversation, whose own turns are left out; None: the ``conversation_id``
            of the run.
        limit, format, include_insight: see ``Orchestrator.context``.
    """
    blocks: dict[_Asked, str] = {}

    def block(context: RunContext[Any]) -> str:
        conversation = session_id or context.conversation_id
        question = (context.run_id, conversation, _text(context.prompt or ""))
        # Callers may name their runs alike, or not at all: the prompt tells them apart.
        result = blocks.get(question)
        if result is None:
            result = ask(question)
            while len(blocks) >= MAX_RUNS:
                # Another thread may have taken the oldest one.
                blocks.pop(next(iter(blocks), question), None)
            if context.run_id is not None:
                blocks[question] = result
        return result

    def ask(question: _Asked) -> str:
        _, conversation, prompt = question
        try:
            result = orchestrator.context(
                prompt,
                limit=limit,
                format=format,
                exclude_session_id=conversation,
                include_insight=include_insight,
            )
        except MemgraphError as error:
            warnings.warn(f"nothing was recalled ({error.code})", RuntimeWarning, stacklevel=2)
            return ""
        return result.text

    return block


def save_messages(
    orchestrator: Orchestrator, messages: Sequence[ModelMessage], *, session_id: str | None = None
) -> list[Outcome]:
    """Store the turns of user and agent, as of ``result.new_messages()``: an episode for each.

    Tool calls, their results and instructions are not stored. A message of a run that is passed
    again is stored once.

    Args:
        session_id: the conversation; None: the ``conversation_id`` of each message.

    Returns:
        An outcome for each turn, in order.

    Raises:
        InvalidInput: a message is of no conversation, and none was named; nothing was stored.
    """
    turns = [turn for message in messages for turn in _turns(message, session_id)]
    return orchestrator.save_episodes(turns)


def _turns(message: ModelMessage, session_id: str | None) -> Iterator[EpisodeInput]:
    for at, part in enumerate(message.parts):
        if isinstance(message, ModelRequest) and isinstance(part, UserPromptPart):
            role, text, time = "user", _text(part.content), part.timestamp
        elif isinstance(message, ModelResponse) and isinstance(part, TextPart):
            role, text, time = ASSISTANT, part.content, message.timestamp
        else:
            continue
        if not text.strip():
            continue
        fields: dict[str, Any] = {
            "content": text,
            "session_id": session_id or message.conversation_id,
            "source_role": role,
            "event_time": time,
        }
        if message.run_id is not None:
            fields["turn_id"] = f"{message.run_id}:{time.isoformat()}:{at}"
        yield validated(EpisodeInput, fields)


def _text(content: str | Sequence[UserContent]) -> str:
    """Return the text in a prompt."""
    if isinstance(content, str):
        return content
    return "\n".join(item for item in content if isinstance(item, str))
