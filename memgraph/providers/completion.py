"""The completion port: an optional language model that answers with JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, Unpack, runtime_checkable

from memgraph.errors import ProviderAnswerInvalid
from memgraph.providers.options import ModelOptions, litellm_model

if TYPE_CHECKING:
    from collections.abc import Mapping


DEFAULTS: Final[ModelOptions] = {"timeout_s": 60.0, "retries": 2}
DEFAULT_MAX_TOKENS: Final = 4_096
MAX_ANSWER_CHARACTERS: Final = 1_000_000

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.DOTALL)


@runtime_checkable
class CompletionProvider(Protocol):
    """A language model that answers with JSON. Threads may share an instance."""

    @property
    def name(self) -> str:
        """The name in the configuration: ``litellm/<model>`` or ``fake``."""
        ...

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        """Send one request and return the parsed answer.

        The schema is a request to the model, not a guarantee: the caller validates the answer's
        shape like any other input.

        Raises:
            ProviderUnavailable: temporary failure (timeout, connection, 429, 5xx); retry later.
            ProviderRejected: invalid key, model or request; do not retry unchanged.
            ProviderAnswerInvalid: the answer is truncated or not JSON.
        """
        ...


def completion_provider(
    name: str,
    *,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    **options: Unpack[ModelOptions],
) -> CompletionProvider:
    """Return the provider for a configured name, ``litellm/<model>``. Opens no connection.

    Raises:
        InvalidConfig: an unknown name or a value out of range; ``details['key']`` names it.
    """
    model = litellm_model(name, "completion provider")
    from memgraph.providers.litellm_chat import LitellmCompletion

    return LitellmCompletion(model, max_tokens=max_tokens, **options)


def parsed_answer(text: object) -> Any:
    """Parse the JSON value in a model's answer, which may be in a Markdown code fence.

    Raises:
        ProviderAnswerInvalid: no text, too long, or not strict JSON (NaN, doubled keys, too deep).
    """
    if not isinstance(text, str) or len(text) > MAX_ANSWER_CHARACTERS:
        raise ProviderAnswerInvalid("The model returned no usable text.", reason="no_text")
    body = text.strip()
    fenced = _FENCE.match(body)
    try:
        return json.loads(
            fenced.group(1) if fenced else body,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique_keys,
        )
    except (ValueError, RecursionError):
        invalid = ProviderAnswerInvalid("The model's answer is not JSON.", reason="not_json")
    # Raised outside the handler, so that the parser's error, which has the answer, is not chained.
    raise invalid


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key twice")
    return value


def fenced(text: str, mark: str) -> str:
    """Wrap a text, as a JSON string, in markers that it cannot contain.

    Args:
        mark: a random word, generated for this prompt.
    """
    escaped = json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"<data-{mark}>\n{escaped}\n</data-{mark}>"
