"""JSON answers from any language model that litellm supports."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Unpack

from memgraph.errors import ProviderAnswerInvalid, ProviderError
from memgraph.providers import _litellm
from memgraph.providers.completion import (
    DEFAULTS,
    MAX_TOKENS,
    CompletionProvider,
    object_schema,
    parsed_answer,
)
from memgraph.providers.options import LITELLM_PREFIX, ModelOptions
from memgraph.providers.usage import report_tokens


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The result of one call of a model.

    Attributes:
        answers: False if it could not be reached or wrote nothing.
        schema: True if the answer was JSON of the requested schema.
        error: why the answer is of no use; None if it is.
    """

    model: str
    answers: bool
    schema: bool
    seconds: float
    error: ProviderError | None

    def as_dict(self) -> dict[str, Any]:
        """Return the result as a JSON-serialisable dict."""
        error = None if self.error is None else self.error.as_dict()
        names = ("model", "answers", "schema", "seconds")
        return {**{name: getattr(self, name) for name in names}, "error": error}


class LitellmCompletion:
    """A language model reached through litellm that answers in JSON, at temperature 0.

    ``timeout_s`` limits a whole request, not counting the time to load litellm once per process.

    Args:
        model: the name in litellm, without the ``litellm/`` of the configuration.
        options: see ``ModelOptions``.

    Raises:
        InvalidConfig: a value is out of range; ``details['key']`` names it.
    """

    def __init__(self, model: str, **options: Unpack[ModelOptions]) -> None:
        self.name = LITELLM_PREFIX + model
        merged: ModelOptions = {**DEFAULTS, **options}
        self._connection = _litellm.ModelConnection(model, **merged)

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        """See `CompletionProvider.complete_json`."""
        _litellm.load(chat=True)
        response = _litellm.call(
            self._connection,
            "completion",
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
            temperature=0,
            max_tokens=MAX_TOKENS,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
            },
        )
        usage = getattr(response, "usage", None)
        report_tokens(_tokens(usage, "prompt"), _tokens(usage, "completion"))
        choices = getattr(response, "choices", None)
        if not choices:
            raise ProviderAnswerInvalid("The model returned no answer.", reason="no_text")
        if choices[0].finish_reason == "length":
            raise ProviderAnswerInvalid("The model's answer was cut off.", reason="cut_off")
        return parsed_answer(choices[0].message.content)


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
    return ModelCheck(
        model=completion.name,
        answers=error is None or error.details.get("reason") in _ANSWERED,
        schema=fits,
        seconds=round(seconds, 1),
        error=error,
    )


CHECK_WORD: Final = "memory"
CHECK_SYSTEM: Final = "Answer with one JSON object that fits the schema."
CHECK_USER: Final = f"The word is {CHECK_WORD}. Give the word, and the number of its letters."
CHECK_SCHEMA: Final = object_schema(word={"type": "string"}, letters={"type": "integer"})
# The reasons of answers that came from the model, though they are of no use.
_ANSWERED: Final = ("not_json", "cut_off", "schema")


def _tokens(usage: Any, kind: str) -> int | None:
    """Return a token count above 0, else None: some servers report 0 for what they do not count."""
    count = getattr(usage, f"{kind}_tokens", None)
    return count if type(count) is int and count > 0 else None
