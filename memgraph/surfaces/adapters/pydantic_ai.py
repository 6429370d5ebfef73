"""A toolset, instructions and stored conversations for pydantic-ai agents, over one orchestrator.

Requires the extra ``pydantic-ai``.
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
from memgraph.operations.tools.tools import Answer, call_tool, tools_for

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
# The id of a run, the id of its conversation, and its prompt.
_BlockKey = tuple[str | None, str | None, str]
# The tools validate the fields against their own schemas, and report errors.
_OBJECT = SchemaValidator(core_schema.dict_schema(keys_schema=core_schema.str_schema()))


class MemoryToolset(AbstractToolset[Any]):
    """The toolset that ``memory_toolset`` returns.

    A ``FunctionToolset`` would fail the run when a model passes a list as a tool's arguments.
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
    ) -> Answer:
        call = partial(
            call_tool,
            self._orchestrator,
            name,
            tool_args,
            session_id=self._session_id or ctx.conversation_id,
            **self._chosen,
            **self._place,
        )
        return await to_thread.run_sync(call)


def memory_toolset(
    orchestrator: Orchestrator,
    *,
    session_id: str | None = None,
    read_only: bool = False,
    only: Collection[str] | None = None,
    all: bool = False,  # noqa: A002  as in tools_for
    maintenance: bool = False,
    scope: str | None = None,
    scope_id: str | None = None,
    toolset_id: str = "memgraph",
) -> MemoryToolset:
    """Return the tools of ``tools_for`` as a toolset.

    Use: ``Agent(model, toolsets=[memory_toolset(orc)])``. Errors of the memory are returned as
    ``{"error": {"code", "message"}}`` and never end the run, whereas pydantic-ai's retries are
    limited and then fail the run.

    Args:
        orchestrator: the orchestrator, whose viewer limits what the agent can see.
        session_id: the conversation to record in sources; None: the ``conversation_id`` of the run.
        read_only, only, all, maintenance, scope, scope_id: see ``tools_for`` and ``call_tool``.
        toolset_id: the ``id`` of the toolset, which must be unique in an agent.

    Raises:
        InvalidInput: ``only`` names an unknown tool.
    """

    return MemoryToolset(
        orchestrator,
        toolset_id=toolset_id,
        session_id=session_id,
        chosen={"read_only": read_only, "only": only, "all": all, "maintenance": maintenance},
        place={"scope": scope, "scope_id": scope_id},
    )


def memory_instructions(
    orchestrator: Orchestrator,
    *,
    session_id: str | None = None,
    budget_tokens: int | None = None,
    format: BlockFormat | str | None = None,  # noqa: A002  the name of the setting
    include_insight: bool = True,
) -> Callable[[RunContext[Any]], str]:
    """Return a function for ``Agent(model, instructions=…)`` that adds relevant memories.

    It recalls once per run, so that the instructions of later requests stay the same. If the memory
    fails, it warns (``RuntimeWarning``) and returns no instructions; the run continues.

    Args:
        session_id: the conversation, whose own turns are left out; None: the ``conversation_id``
            of the run.
        budget_tokens, format, include_insight: see ``Orchestrator.context``.
    """
    blocks: dict[_BlockKey, str] = {}

    def block(context: RunContext[Any]) -> str:
        conversation = session_id or context.conversation_id
        question = (context.run_id, conversation, _text(context.prompt or ""))
        # Run ids may be missing or not unique, so the prompt is part of the key.
        result = blocks.get(question)
        if result is None:
            result = ask(question)
            while len(blocks) >= MAX_RUNS:
                # Another thread may have removed the oldest block already.
                blocks.pop(next(iter(blocks), question), None)
            if context.run_id is not None:
                blocks[question] = result
        return result

    def ask(question: _BlockKey) -> str:
        _, conversation, prompt = question
        try:
            result = orchestrator.context(
                prompt,
                budget_tokens=budget_tokens,
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
    """Store the turns of user and agent, e.g. from ``result.new_messages()``, as episodes.

    Tool calls, their results and instructions are not stored. A message with a run id is stored
    only once, even if it is passed again.

    Args:
        session_id: the conversation; None: the ``conversation_id`` of each message.

    Returns:
        An outcome for each turn, in order.

    Raises:
        InvalidInput: a message has no conversation and ``session_id`` is None; nothing was stored.
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
    """Return the text of a prompt, without images and other parts."""
    if isinstance(content, str):
        return content
    return "\n".join(item for item in content if isinstance(item, str))
