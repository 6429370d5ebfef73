"""The completion port: an optional language model that answers with JSON.

Every question to a model goes through ``ask_json``: it reads the answer tolerantly, and asks once
more if it cannot be read.
"""

from __future__ import annotations

import json
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn, Protocol, TypeVar, Unpack, runtime_checkable

from memgraph.errors import InvalidConfig, ProviderAnswerInvalid
from memgraph.providers.options import LITELLM_PREFIX, ModelOptions
from memgraph.rules.budget import token_cost

DEFAULTS: Final[ModelOptions] = {"timeout_s": 60.0, "retries": 2}
MAX_TOKENS: Final = 4_096
"""The maximum length of an answer; one that is cut off there is invalid."""
MAX_ANSWER_CHARACTERS: Final = 1_000_000

_FENCED = re.compile(r"```\w*\s*\n?(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[\[{]")
_BRACKET = re.compile(r"[\[\]{}]")
_TRAILING_COMMA = re.compile(r",(?=\s*[\]}])")
_MAX_STARTS: Final = 40
_CURLY: Final = str.maketrans({"“": '"', "”": '"', "„": '"'})


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


def completion_provider(name: str, **options: Unpack[ModelOptions]) -> CompletionProvider:
    """Return the provider for a configured name, ``litellm/<model>``. Opens no connection.

    Raises:
        InvalidConfig: an unknown name or a value out of range; ``details['key']`` names it.
    """
    model = name.removeprefix(LITELLM_PREFIX)
    if not model or model == name:
        raise InvalidConfig(
            f"Unknown completion provider {name!r}: use litellm/<model>.", key="name"
        )
    from memgraph.providers.litellm_chat import LitellmCompletion

    return LitellmCompletion(model, **options)


def parsed_answer(text: object) -> Any:
    """Return the JSON value in a model's answer.

    It may stand in a Markdown code fence or between sentences. If nothing else can be read, curly
    quotation marks count as straight ones, and a comma may stand before a closing bracket.

    Raises:
        ProviderAnswerInvalid: no text, too long, or no strict JSON in it (NaN, doubled keys, too
            deep).
    """
    if not isinstance(text, str) or len(text) > MAX_ANSWER_CHARACTERS:
        raise ProviderAnswerInvalid("The model returned no usable text.", reason="no_text")
    for body in _bodies(text.strip()):
        try:
            return _DECODER.decode(body)
        except (ValueError, RecursionError):
            continue
    raise ProviderAnswerInvalid("The model's answer is not JSON.", reason="not_json")


def _bodies(text: str) -> Iterator[str]:
    """Yield the parts of an answer that may be JSON, the most probable first."""
    yield text
    yield from (match[1].strip() for match in _FENCED.finditer(text))
    if (inner := _longest_value(text)) is not None:
        yield inner
    mended = _TRAILING_COMMA.sub("", text.translate(_CURLY))
    if mended != text:
        yield from (match[1].strip() for match in _FENCED.finditer(mended))
        if (inner := _longest_value(mended)) is not None:
            yield inner


def _longest_value(text: str) -> str | None:
    """Return the longest object or array in a text that stands in no other bracket, or None.

    What is part of a larger value that cannot be read, for instance one that was cut off, is not
    an answer.
    """
    longest: str | None = None
    match = _OPENING.search(text)
    for _ in range(_MAX_STARTS):
        if match is None:
            break
        try:
            _, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            closing = _closing(text, match.start())
            if closing is None:
                break
            end = closing
        else:
            value = text[match.start() : end]
            longest = value if longest is None or len(value) > len(longest) else longest
        match = _OPENING.search(text, end)
    return longest


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for match in _BRACKET.finditer(text, start):
        depth += 1 if match[0] in "[{" else -1
        if depth == 0:
            return match.end()
    return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key twice")
    return value


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)

Read = TypeVar("Read")


def ask_json(
    provider: CompletionProvider,
    system: str,
    user: str,
    schema: Mapping[str, Any],
    read: Callable[[Any], Read],
) -> Read:
    """Ask a model for JSON, and return what ``read`` makes of it.

    An answer that is cut off, is no JSON, or that ``read`` refuses is asked for once more.

    Args:
        read: raises ProviderAnswerInvalid for an answer that it cannot use at all.

    Raises:
        ProviderUnavailable, ProviderRejected: see ``CompletionProvider.complete_json``.
        ProviderAnswerInvalid: the second answer was unusable too.
    """
    try:
        return read(provider.complete_json(system, user, schema))
    except ProviderAnswerInvalid as error:
        reason = str(error.details.get("reason", "its shape"))
    repair = _REPAIR.format(reason=reason)
    return read(provider.complete_json(system, f"{user}\n\n{repair}", schema))


_REPAIR: Final = (
    "Your last answer could not be used ({reason}). Answer again: one complete JSON object that "
    "fits the schema, and nothing else."
)


def estimated_tokens(value: Any) -> int:
    """Return the estimated tokens of a text, or of another value as JSON."""
    is_text = isinstance(value, str)
    return token_cost(value if is_text else json.dumps(value, ensure_ascii=False))


def object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties, all of them required."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def random_mark() -> str:
    """Return a new random word, which no text in a prompt can predict."""
    return secrets.token_hex(8)


def plain_line(text: str) -> str:
    """Return a text on one line, without control characters, surrogates and invisible characters.

    Joiners stay, because scripts and emoji need them.
    """
    return " ".join("".join(map(_plain_character, text)).split())


def _plain_character(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Cc", "Cs"):
        return " "
    return "" if category == "Cf" and char not in _JOINERS else char


_JOINERS: Final = frozenset("\u200c\u200d")


def fenced_lines(lines: Iterable[str]) -> str:
    """Return lines of data between two marks that contain a random word.

    No text can end the data, or begin a line of its own: each becomes one line of plain UTF-8.
    """
    mark = random_mark()
    return "\n".join((f"<data-{mark}>", *map(plain_line, lines), f"</data-{mark}>"))
