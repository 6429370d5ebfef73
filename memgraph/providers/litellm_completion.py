"""JSON answers from any language model that litellm can reach."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from memgraph.errors import InvalidConfig, ProviderAnswerInvalid
from memgraph.providers import _litellm
from memgraph.providers.completion import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT_S,
    LITELLM_PREFIX,
    parsed_answer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class LitellmCompletion:
    """One language model behind litellm, asked at temperature 0 with a JSON Schema.

    Args:
        model: as litellm names it, without the ``litellm/`` of the configuration.
        timeout_s: seconds for one request, > 0.
        retries: further attempts after one that failed for a passing reason, >= 0.
        max_tokens: longest answer, >= 1; an answer cut off there is invalid.
        api_base: the provider's address where it is not litellm's own.
        api_key: the key, or the file that holds it, read at every call; None leaves it to litellm,
            which reads the provider's variable.
        first_wait_s: pause in seconds before the first retry, 0 to 30; doubles each time.
        give_up_after_s: seconds after which nothing is tried again; None: no such limit.

    Raises:
        InvalidConfig: a value out of range; ``details['key']`` names it.
    """

    def __init__(
        self,
        model: str,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retries: int = DEFAULT_RETRIES,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        api_base: str | None = None,
        api_key: str | Path | None = None,
        first_wait_s: float = 0.5,
        give_up_after_s: float | None = None,
    ) -> None:
        if max_tokens < 1:
            raise InvalidConfig("The longest answer must be at least 1 token.", key="max_tokens")
        self.name = LITELLM_PREFIX + model
        self._max_tokens = max_tokens
        self._connection = _litellm.ModelConnection(
            model, timeout_s, retries, api_base, api_key, first_wait_s, give_up_after_s
        )

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        """See `CompletionProvider.complete_json`."""
        response = _litellm.call(
            self._connection,
            "completion",
            messages=[
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
            },
            temperature=0,
            max_tokens=self._max_tokens,
        )
        return parsed_answer(_content(response))


def _content(response: Any) -> object:
    choices = getattr(response, "choices", None)
    if not choices:
        raise ProviderAnswerInvalid("The model returned no answer.", reason="no_text")
    if choices[0].finish_reason == "length":
        raise ProviderAnswerInvalid("The model's answer was cut off.", reason="cut_off")
    return choices[0].message.content
