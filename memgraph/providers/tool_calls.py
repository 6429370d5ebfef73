"""The tool calling port: a language model that asks for functions by name. Off by default.

Messages and tools have the shape of OpenAI's chat interface, which litellm translates for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack, runtime_checkable

from memgraph.providers.completion import DEFAULT_MAX_TOKENS
from memgraph.providers.options import ModelOptions, litellm_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_TOOL_CALLS: Final = 128
"""Maximum calls in one turn; more than that is an invalid answer."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One function that the model calls; ``arguments_text`` is its own text, mostly JSON."""

    id: str
    name: str
    arguments_text: str


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """The model's text and tool calls. Tokens are as reported; None: not reported."""

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
        """Ask for the next turn.

        Names and arguments of calls are the model's: the caller validates them like any input.

        Args:
            messages: the conversation so far, oldest first, in the form of OpenAI.
            tools: ``{"type": "function", "function": {"name", "description", "parameters"}}``
                each; none: the model can only talk.

        Raises:
            ProviderUnavailable: worth trying again later (timeout, connection, 429, 5xx).
            ProviderRejected: not worth trying again unchanged (key, model, request).
            ProviderAnswerInvalid: the answer is cut off, empty or unreadable.
        """
        ...


def as_message(turn: ChatTurn) -> dict[str, Any]:
    """Return a turn of the model as it is sent back to it in the next request."""
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
        InvalidConfig: an unknown name or a value out of range; ``details['key']`` names it.
    """
    model = litellm_model(name, "language model")
    from memgraph.providers.litellm_chat import LitellmToolCalling

    return LitellmToolCalling(model, max_tokens=max_tokens, **options)
