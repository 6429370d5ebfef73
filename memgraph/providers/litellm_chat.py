"""JSON answers and tool calls from any language model that litellm supports."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Unpack

from memgraph.errors import ExtraMissing, InvalidConfig, ProviderAnswerInvalid, ProviderError
from memgraph.providers import _litellm
from memgraph.providers.completion import (
    DEFAULT_MAX_TOKENS,
    DEFAULTS,
    MAX_ANSWER_CHARACTERS,
    object_schema,
    parsed_answer,
)
from memgraph.providers.options import LITELLM_PREFIX, ModelOptions
from memgraph.providers.tool_calls import MAX_TOOL_CALLS, ChatTurn, ToolCall
from memgraph.providers.usage import report_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memgraph.providers.completion import CompletionProvider


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The result of one call of a model.

    Attributes:
        answers: False if it could not be reached or wrote nothing.
        schema: True if the answer was JSON of the requested schema.
        tools, context_tokens: by litellm's list of models; None: unknown.
        error: why the answer is of no use; None if it is.
    """

    model: str
    answers: bool
    schema: bool
    tools: bool | None
    context_tokens: int | None
    seconds: float
    error: ProviderError | None

    def as_dict(self) -> dict[str, Any]:
        """Return the result as a JSON-serialisable dict."""
        error = None if self.error is None else self.error.as_dict()
        names = ("model", "answers", "schema", "tools", "context_tokens", "seconds")
        return {**{name: getattr(self, name) for name in names}, "error": error}


class _LitellmChat:
    """A language model reached through litellm, called with temperature 0.

    ``timeout_s`` limits a whole request, not counting the time to load litellm once per process.

    Args:
        model: the name in litellm, without the ``litellm/`` of the configuration.
        max_tokens: the maximum length of an answer, >= 1; an answer cut off there is invalid.
        give_up_after_s: seconds after which there are no more retries; None: no limit.
        options: see ``ModelOptions``.

    Raises:
        InvalidConfig: a value is out of range; ``details['key']`` names it.
    """

    def __init__(
        self,
        model: str,
        *,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        give_up_after_s: float | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        if max_tokens < 1:
            raise InvalidConfig("max_tokens must be at least 1.", key="max_tokens")
        self.name = LITELLM_PREFIX + model
        self._max_tokens = max_tokens
        merged: ModelOptions = {**DEFAULTS, **options}
        self._connection = _litellm.ModelConnection(
            model, give_up_after_s=give_up_after_s, cut_off_late=True, **merged
        )

    def _ask(self, messages: Sequence[Mapping[str, Any]], **request: Any) -> tuple[Any, Any]:
        """Return the model's message, and the usage of the request."""
        _litellm.load(chat=True)
        response = _litellm.call(
            self._connection,
            "completion",
            messages=[dict(message) for message in messages],
            temperature=0,
            max_tokens=self._max_tokens,
            **request,
        )
        usage = getattr(response, "usage", None)
        report_tokens(_tokens(usage, "prompt"), _tokens(usage, "completion"))
        choices = getattr(response, "choices", None)
        if not choices:
            raise ProviderAnswerInvalid("The model returned no answer.", reason="no_text")
        if choices[0].finish_reason == "length":
            raise ProviderAnswerInvalid("The model's answer was cut off.", reason="cut_off")
        return choices[0].message, usage


class LitellmCompletion(_LitellmChat):
    """A language model reached through litellm, asked for JSON that fits a schema."""

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


def check_completion(completion: CompletionProvider) -> ModelCheck:
    """Make one call, and return what a model of the settings can do."""
    began = time.monotonic()
    error: ProviderError | None = None
    answer: Any = None
    try:
        answer = completion.complete_json(CHECK_SYSTEM, CHECK_USER, CHECK_SCHEMA)
    except ProviderError as failure:
        error = failure.with_traceback(None)
    seconds = time.monotonic() - began
    fits = isinstance(answer, dict) and set(answer) == {"word", "letters"}
    fits = fits and answer["word"] == CHECK_WORD and type(answer["letters"]) is int
    if error is None and not fits:
        error = ProviderAnswerInvalid("The answer does not fit the schema.", reason="schema")
    context, tools = (None, None)
    if not isinstance(error, ExtraMissing):
        context, tools = _litellm.model_facts(completion.name.removeprefix(LITELLM_PREFIX))
    return ModelCheck(
        model=completion.name,
        answers=error is None or error.details.get("reason") in _ANSWERED,
        schema=fits,
        tools=tools,
        context_tokens=context,
        seconds=round(seconds, 1),
        error=error,
    )


CHECK_WORD: Final = "memory"
CHECK_SYSTEM: Final = "Answer with one JSON object that fits the schema."
CHECK_USER: Final = f"The word is {CHECK_WORD}. Give the word, and the number of its letters."
CHECK_SCHEMA: Final = object_schema(word={"type": "string"}, letters={"type": "integer"})
# The reasons of answers that came from the model, though they are of no use.
_ANSWERED: Final = ("not_json", "cut_off", "schema")


class LitellmToolCalling(_LitellmChat):
    """A language model reached through litellm that may call tools."""

    def chat(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> ChatTurn:
        """See `ToolCallingProvider.chat`."""
        tool_options = (
            {"tools": [dict(tool) for tool in tools], "tool_choice": "auto"} if tools else {}
        )
        # The flag keeps litellm from importing its MCP gateway, whose packages may be missing.
        message, usage = self._ask(messages, _skip_mcp_handler=True, **tool_options)
        text = message.content
        if not isinstance(text, str | None) or len(text or "") > MAX_ANSWER_CHARACTERS:
            raise ProviderAnswerInvalid("The model returned no usable text.", reason="no_text")
        calls = _calls(message.tool_calls)
        if not text and not calls:
            raise ProviderAnswerInvalid(
                "The model returned neither text nor tool calls.", reason="no_text"
            )
        return ChatTurn(text or "", calls, _tokens(usage, "prompt"), _tokens(usage, "completion"))


def _calls(raw_calls: Any) -> tuple[ToolCall, ...]:
    if raw_calls is None:
        return ()
    if not isinstance(raw_calls, list) or len(raw_calls) > MAX_TOOL_CALLS:
        raise ProviderAnswerInvalid(
            "The model returned invalid or too many tool calls.", reason="tool_calls"
        )
    calls = tuple(_call(raw_call) for raw_call in raw_calls)
    if sum(len(call.arguments_text) for call in calls) > MAX_ANSWER_CHARACTERS:
        raise ProviderAnswerInvalid(
            "The arguments of the model's tool calls are too long.", reason="tool_calls"
        )
    return calls


def _call(raw_call: Any) -> ToolCall:
    function = getattr(raw_call, "function", None)
    parts = (
        getattr(raw_call, "id", None),
        getattr(function, "name", None),
        getattr(function, "arguments", None),
    )
    if not all(isinstance(part, str) and len(part) <= MAX_ANSWER_CHARACTERS for part in parts):
        raise ProviderAnswerInvalid("A tool call of the model is invalid.", reason="tool_calls")
    return ToolCall(*(str(part) for part in parts))


def _tokens(usage: Any, kind: str) -> int | None:
    """Return a token count above 0, else None: some servers report 0 for what they do not count."""
    count = getattr(usage, f"{kind}_tokens", None)
    return count if type(count) is int and count > 0 else None
