"""The interface of language models that call tools. Off by default.

Messages and tools have the format of OpenAI's chat API, which litellm translates for other
providers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack, runtime_checkable

from memgraph.providers.completion import DEFAULT_MAX_TOKENS
from memgraph.providers.options import ModelOptions, litellm_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_TOOL_CALLS: Final = 128
"""The maximum number of tool calls in a turn; an answer with more is invalid."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of the model; ``arguments_text`` is what the model wrote, usually JSON."""

    id: str
    name: str
    arguments_text: str


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A turn of the model: its text, tool calls and token counts (None if not reported)."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tokens_in: int | None = None
    tokens_out: int | None = None


@runtime_checkable
class ToolCallingProvider(Protocol):
    """A language model that may call functions. Threads may share an instance."""

    @property
    def name(self) -> str:
        """The name in the configuration: ``litellm/<model>`` or ``fake``."""
        ...

    def chat(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> ChatTurn:
        """Return the model's next turn.

        Names and arguments of tool calls are not trusted: the caller must validate them.

        Args:
            messages: the conversation so far, oldest first, in OpenAI's format.
            tools: the tools, each ``{"type": "function", "function": {"name", "description",
                "parameters"}}``; empty: the model can only write text.

        Raises:
            ProviderUnavailable: temporary; a retry may succeed (timeout, connection, 429, 5xx).
            ProviderRejected: permanent; a retry will fail (key, model, request).
            ProviderAnswerInvalid: the answer is cut off, empty or unreadable.
        """
        ...


def as_message(turn: ChatTurn) -> dict[str, Any]:
    """Return a turn of the model as the message to send back in the next request."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_text},
            }
            for call in turn.tool_calls
        ]
    return message


def tool_calling_provider(
    name: str,
    *,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    **options: Unpack[ModelOptions],
) -> ToolCallingProvider:
    """Return the provider with this configured name, ``litellm/<model>``. Opens no connection.

    Raises:
        InvalidConfig: the name is unknown or a value is out of range; ``details['key']`` names it.
    """
    model = litellm_model(name, "language model")
    from memgraph.providers.litellm_chat import LitellmToolCalling

    return LitellmToolCalling(model, max_tokens=max_tokens, **options)
