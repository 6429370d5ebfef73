"""The arguments of the tools, and their JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from memgraph.errors import InvalidInput, without_kind
from memgraph.model.enums import EdgeType
from memgraph.model.values import Name, Reason, Text
from memgraph.rules.proposals import MAX_CONFIDENCE, MAX_CONTENT_CHARS

MAX_ARGUMENTS_CHARS: Final = 20_000
MAX_QUERY_CHARS: Final = 2_000
MAX_LISTED: Final = 20

Kind = Literal["episode", "fact", "reflection", "preference"]


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be only white space")
    return text


Statement = Annotated[
    Text, AfterValidator(_said), Field(min_length=1, max_length=MAX_CONTENT_CHARS)
]
LineId = Annotated[Name, Field(description="The id at the end of its line, such as #7k2m9q.")]


class ToolArguments(BaseModel):
    """The arguments of one tool; unknown fields and wrong types are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


class SearchArguments(ToolArguments):
    query: Annotated[Text, AfterValidator(_said), Field(max_length=MAX_QUERY_CHARS)]
    kind: Kind | None = None
    tag: Name | None = None
    limit: Annotated[int, Field(ge=1, le=100)] | None = Field(None, description="Lines at most.")


class RememberArguments(ToolArguments):
    content: Annotated[
        Statement,
        Field(description="One statement that can be understood alone, with names and dates."),
    ]
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] = MAX_CONFIDENCE
    entity_names: Annotated[
        tuple[Name, ...], Field(max_length=20, description="Whom and what it is about.")
    ] = ()


class CorrectArguments(ToolArguments):
    memory_id: LineId
    new_content: Annotated[Statement, Field(description="What is right; can be understood alone.")]


class ConfirmArguments(ToolArguments):
    memory_id: LineId


class EntityArguments(ToolArguments):
    name: Annotated[Name, Field(description="Name, alias or nickname.")]


class ForgetArguments(ToolArguments):
    memory_id: LineId
    reason: Reason | None = None


class NoArguments(ToolArguments):
    pass


class RelateArguments(ToolArguments):
    from_id: Annotated[Name, Field(description="The newer, the effect, or the part.")]
    edge_type: EdgeType = Field(
        description="Updates: from_id replaces to_id. CausedBy: to_id is the evidence of from_id."
        " PartOf: to_id is the whole. Contradicts, RelatedTo: either way round."
    )
    to_id: Name
    reason: Reason | None = None


class ContradictionsArguments(ToolArguments):
    resolved: bool = Field(default=False, description="Those that were decided, not the open ones.")
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] = 10
    after: Name | None = Field(default=None, description="The next_after of the page before.")


class TraceArguments(ToolArguments):
    memory_id: LineId


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
