"""The arguments of the tools, and their JSON schemas."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from memgraph.errors import InvalidInput, without_kind
from memgraph.model.values import Name, Text
from memgraph.rules.proposals import MAX_CONTENT_CHARS

MAX_ARGUMENTS_CHARS: Final = 20_000
MAX_QUERY_CHARS: Final = 2_000


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be only white space")
    return text


Statement = Annotated[
    Text, AfterValidator(_said), Field(min_length=1, max_length=MAX_CONTENT_CHARS)
]
Query = Annotated[Text, AfterValidator(_said), Field(max_length=MAX_QUERY_CHARS)]
LineId = Annotated[Name, Field(description="The id at the end of its line, such as #7k2m9q.")]


class ToolArguments(BaseModel):
    """The arguments of one tool; unknown fields and wrong types are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


@cache
def arguments_of(function: Callable[..., Any]) -> type[ToolArguments]:
    """Return the model of a tool's arguments: the positional parameters after the handle."""
    hints = get_type_hints(function, localns={"Orchestrator": Any}, include_extras=True)
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in list(inspect.signature(function).parameters.items())[1:]
        if parameter.kind is not parameter.KEYWORD_ONLY
    }
    return create_model(function.__name__, __base__=ToolArguments, **fields)


def host_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the keyword-only parameters of a tool, which only the host can pass."""
    parameters = inspect.signature(function).parameters.items()
    return tuple(name for name, item in parameters if item.kind is item.KEYWORD_ONLY)


def parsed(kind: type[ArgumentsT], arguments: str | Mapping[str, Any] | None) -> ArgumentsT:
    """Validate the arguments of a call, given as a model's text or as parsed JSON.

    Raises:
        InvalidInput: an argument is invalid; the message names each wrong field.
    """
    text = _as_text(arguments)
    if len(text) > MAX_ARGUMENTS_CHARS:
        raise InvalidInput(f"arguments have more than {MAX_ARGUMENTS_CHARS:,} characters")
    try:
        # Validate as JSON even if it was parsed before: only then does strict mode accept arrays
        # for tuples.
        return kind.model_validate_json(text)
    except ValidationError as error:
        message = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {without_kind(item['msg'])}"
            for item in error.errors(include_url=False, include_input=False, include_context=False)
        )
        raise InvalidInput(message) from None


def _as_text(arguments: str | Mapping[str, Any] | None) -> str:
    if arguments is None or isinstance(arguments, str):
        # Some models send an empty text for a tool without arguments.
        return (arguments or "").strip() or "{}"
    try:
        return json.dumps(dict(arguments), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("arguments are not plain JSON") from error


def schema_of(kind: type[ToolArguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, as short as it can be."""
    schema = _plain(kind.model_json_schema())
    schema.pop("description", None)
    return {"type": "object", "properties": {}, **schema}


def _plain(schema: Any) -> Any:
    """Return a schema without pydantic's titles, and without null where a field may be omitted."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("default", ...) is None and len(schema.get("anyOf", ())) == 2:
        [other] = [item for item in schema["anyOf"] if item != {"type": "null"}]
        schema = {**other, **{key: schema[key] for key in ("description",) if key in schema}}
    return {
        name: {key: _plain(item) for key, item in value.items()}
        if name == "properties"
        else _plain(value)
        for name, value in schema.items()
        if name != "title"
    }
