"""JSON answers and tool calls from any language model that litellm can reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from memgraph.errors import InvalidConfig, ProviderAnswerInvalid
from memgraph.providers import _litellm
from memgraph.providers.completion import (
    DEFAULT_MAX_TOKENS,
    DEFAULTS,
    MAX_ANSWER_CHARACTERS,
    parsed_answer,
)
from memgraph.providers.options import LITELLM_PREFIX, ModelOptions
from memgraph.providers.tool_calls import MAX_TOOL_CALLS, ChatTurn, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class _LitellmChat:
    """One language model behind litellm, asked at temperature 0.

    Args:
        model: as litellm names it, without the ``litellm/`` of the configuration.
        max_tokens: longest answer, >= 1; an answer cut off there is invalid.
        give_up_after_s: seconds after which nothing is tried again; None: no such limit.
        options: see ``ModelOptions``.

    Raises:
        InvalidConfig: a value out of range; ``details['key']`` names it.
    """

    # Whether the timeout is for a request as a whole, or for the longest silence.
    _cut_off_late = False

    def __init__(
        self,
        model: str,
        *,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        give_up_after_s: float | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        if max_tokens < 1:
            raise InvalidConfig("The longest answer must be at least 1 token.", key="max_tokens")
        self.name = LITELLM_PREFIX + model
        self._max_tokens = max_tokens
        merged: ModelOptions = {**DEFAULTS, **options}
        self._connection = _litellm.ModelConnection(
            model, give_up_after_s=give_up_after_s, cut_off_late=self._cut_off_late, **merged
        )

    def _ask(self, messages: Sequence[Mapping[str, Any]], **request: Any) -> tuple[Any, Any]:
        """Return the model's message, and the usage of the request."""
        response = _litellm.call(
            self._connection,
            "completion",
            messages=[dict(message) for message in messages],
            temperature=0,
            max_tokens=self._max_tokens,
            **request,
        )
        choices = getattr(response, "choices", None)
        if not choices:
            raise ProviderAnswerInvalid("The model returned no answer.", reason="no_text")
        if choices[0].finish_reason == "length":
            raise ProviderAnswerInvalid("The model's answer was cut off.", reason="cut_off")
        return choices[0].message, getattr(response, "usage", None)


class LitellmCompletion(_LitellmChat):
    """One language model behind litellm, asked for JSON by a schema."""

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        """See `CompletionProvider.complete_json`."""
        message, _ = self._ask(
            [{"role": "system", "content": system}, {"role": "user", "content": user}],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
            },
        )
        return parsed_answer(message.content)


class LitellmToolCalling(_LitellmChat):
    """One language model behind litellm, offered tools.

    ``timeout_s`` is for a request as a whole. Loading litellm, once in a process, is not counted.
    """

    _cut_off_late = True

    def chat(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> ChatTurn:
        """See `ToolCallingProvider.chat`."""
        offered = {"tools": [dict(tool) for tool in tools], "tool_choice": "auto"} if tools else {}
        _litellm.load(chat=True)
        # Without the flag litellm loads a package of the MCP gateway that it does not depend on.
        message, usage = self._ask(messages, _skip_mcp_handler=True, **offered)
        text = message.content
        if not isinstance(text, str | None) or len(text or "") > MAX_ANSWER_CHARACTERS:
            raise ProviderAnswerInvalid("The model returned no usable text.", reason="no_text")
        calls = _calls(message.tool_calls)
        if not text and not calls:
            raise ProviderAnswerInvalid("The model said nothing.", reason="no_text")
        return ChatTurn(text or "", calls, _tokens(usage, "prompt"), _tokens(usage, "completion"))


def _calls(raw_calls: Any) -> tuple[ToolCall, ...]:
    if raw_calls is None:
        return ()
    if not isinstance(raw_calls, list) or len(raw_calls) > MAX_TOOL_CALLS:
        raise ProviderAnswerInvalid("The model asked for too much.", reason="tool_calls")
    calls = tuple(_call(raw_call) for raw_call in raw_calls)
    if sum(len(call.arguments_text) for call in calls) > MAX_ANSWER_CHARACTERS:
        raise ProviderAnswerInvalid("The model asked for too much.", reason="tool_calls")
    return calls


def _call(raw_call: Any) -> ToolCall:
    function = getattr(raw_call, "function", None)
    parts = (
        getattr(raw_call, "id", None),
        getattr(function, "name", None),
        getattr(function, "arguments", None),
    )
    if not all(isinstance(part, str) and len(part) <= MAX_ANSWER_CHARACTERS for part in parts):
        raise ProviderAnswerInvalid("The model asked for no readable call.", reason="tool_calls")
    return ToolCall(*(str(part) for part in parts))


def _tokens(usage: Any, kind: str) -> int | None:
    """Return a count above 0, else None: some servers report zeros for what they don't count."""
    count = getattr(usage, f"{kind}_tokens", None)
    return count if type(count) is int and count > 0 else None
