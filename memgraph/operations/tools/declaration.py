"""Declare a function as a tool, from which its JSON schema and its documentation are derived.

The positional parameters after the handle are the tool's arguments, with pydantic's constraints and
descriptions; keyword-only ones are passed by the host. The docstring is what a model is told, up to
``Returns:``, which describes the answer for the reference.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from memgraph.errors import InvalidInput, without_kind
from memgraph.model.access import Permission
from memgraph.model.values import Name, Text
from memgraph.rules.proposals import MAX_CONTENT_CHARS

MAX_ARGUMENTS_CHARS: Final = 20_000
MAX_QUERY_CHARS: Final = 2_000

Answer: TypeAlias = dict[str, Any] | str
"""What a tool answers: lines of memories as a text for a prompt, anything else as JSON values."""
FunctionT = TypeVar("FunctionT", bound=Callable[..., Answer])


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


@dataclass(frozen=True)
class Tool:
    """A tool that a model can call.

    Attributes:
        function: called with the orchestrator and the arguments.
        permission: the permission that a key needs over MCP.
        destructive: True if it may retract or supersede a memory; nothing is ever deleted.
        default: True if it is offered without being requested.
        maintenance: True if it works on everything stored; never offered over MCP.
    """

    title: str
    function: Callable[..., Answer]
    permission: Permission = Permission.READ
    destructive: bool = False
    default: bool = False
    maintenance: bool = False

    @property
    def description(self) -> str:
        """The text that tells a model when to call it."""
        return self._documentation[0]

    @property
    def answer(self) -> str:
        """The description of its answer, in Markdown."""
        return self._documentation[1]

    @property
    def changes(self) -> bool:
        """True if the tool may change stored data."""
        return self.permission in (Permission.WRITE, Permission.ADMIN)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, as short as it can be."""
        schema = self._arguments.model_json_schema()
        definitions = schema.pop("$defs", {})
        schema.pop("description", None)
        return {"type": "object", "properties": {}, **_plain(schema, definitions)}

    def run(
        self, handle: Any, arguments: str | Mapping[str, Any] | None, host: Mapping[str, Any]
    ) -> Answer:
        """Run a call.

        Args:
            arguments: a model's text, or parsed JSON.
            host: what the host passes, of which the function takes its keyword-only parameters.

        Raises:
            InvalidInput: an argument is invalid; the message names each wrong field.
            MemgraphError: the call failed.
        """
        call = _parsed(self._arguments, arguments)
        return self.function(
            handle, **dict(call), **{name: host.get(name) for name in self._parameters(host=True)}
        )

    @cached_property
    def _documentation(self) -> tuple[str, str]:
        text = " ".join((inspect.getdoc(self.function) or "").replace("``", "`").split())
        description, _, answer = text.partition(" Returns: ")
        return description, answer

    @cached_property
    def _arguments(self) -> type[ToolArguments]:
        hints = get_type_hints(self.function, localns={"Orchestrator": Any}, include_extras=True)
        fields: dict[str, Any] = {
            name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in self._parameters(host=False).items()
        }
        return create_model(self.function.__name__, __base__=ToolArguments, **fields)

    def _parameters(self, *, host: bool) -> dict[str, inspect.Parameter]:
        _, *parameters = inspect.signature(self.function).parameters.items()
        return {name: item for name, item in parameters if (item.kind is item.KEYWORD_ONLY) is host}


TOOLS: Final[dict[str, Tool]] = {}
"""All tools by name; complete once ``memgraph.operations.tools.functions`` is loaded."""


def tool(title: str, **fields: Any) -> Callable[[FunctionT], FunctionT]:
    """Declare a function as the tool of its name; the fields are those of ``Tool``."""

    def declared(function: FunctionT) -> FunctionT:
        TOOLS[function.__name__] = Tool(title, function, **fields)
        return function

    return declared


def _parsed(kind: type[ToolArguments], arguments: str | Mapping[str, Any] | None) -> ToolArguments:
    text = _as_json(arguments)
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


def _as_json(arguments: str | Mapping[str, Any] | None) -> str:
    if arguments is None or isinstance(arguments, str):
        # Some models send an empty text for a tool without arguments.
        return (arguments or "").strip() or "{}"
    try:
        return json.dumps(dict(arguments), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("arguments are not plain JSON") from error


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema without pydantic's titles and references, and without null where a field may
    be omitted.
    """
    if isinstance(schema, list):
        return [_plain(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        definition = definitions[schema["$ref"].rpartition("/")[2]]
        schema = {key: definition[key] for key in ("enum", "type")}
    if schema.get("default", ...) is None and len(schema.get("anyOf", ())) == 2:
        [other] = [item for item in schema["anyOf"] if item != {"type": "null"}]
        kept = {key: schema[key] for key in ("description",) if key in schema}
        return _plain({**other, **kept}, definitions)
    return {
        name: {key: _plain(item, definitions) for key, item in value.items()}
        if name == "properties"
        else _plain(value, definitions)
        for name, value in schema.items()
        if name != "title"
    }
