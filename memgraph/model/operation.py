"""Declare operations, from which HTTP routes, the client and the command line are derived.

An operation is a method of ``Orchestrator`` decorated with ``operation``. Its signature is the
contract: annotations carry pydantic's constraints, and a ``WireFormat`` where the sent value
differs from the argument. The bounds of numbers hold for callers in Python, too. Its docstring
describes it on every surface.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, wraps
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Final,
    Generic,
    NoReturn,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    overload,
)

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypeVar as TypeVarWithDefault  # Python 3.13's

from memgraph.clock import iso, parse_time
from memgraph.errors import InvalidInput, MemgraphError
from memgraph.model.access import Permission
from memgraph.model.values import MAX_NAME_CHARS, Millis, Moment, Name, Reason, Value

P = ParamSpec("P")
T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Is called with the name of a step of long work, the amount done and the total."""


def untold(_step: str, _done: int, _total: int) -> None:
    """Report no progress."""


class Blocking:
    """Marks classes whose methods return their result."""


class Awaited:
    """Marks classes whose methods are coroutines."""


F = TypeVarWithDefault("F", default=Blocking, covariant=True)
"""How the methods of a class are called: ``Blocking`` or ``Awaited``. Only type checkers use it."""


class Methods(Generic[F]):
    """The base of classes whose methods either block or are awaited; see ``Method``."""


class Method(Generic[P, T]):
    """The type of a method decorated with ``operation`` or ``local``, for type checkers.

    In ``Contradictions[Blocking]`` it returns its result; in ``Contradictions[Awaited]`` it is a
    coroutine. At run time it is the plain function, which the classes that send or await it
    replace.
    """

    if TYPE_CHECKING:

        @overload
        def __get__(self, caller: None, owner: type) -> Self: ...
        @overload
        def __get__(
            self, caller: Methods[Awaited], owner: type
        ) -> Callable[P, Coroutine[Any, Any, T]]: ...
        @overload
        def __get__(self, caller: object, owner: type) -> Callable[P, T]: ...
        def __get__(self, caller: Any, owner: type) -> Any: ...

        def __call__(self, caller: Any, /, *args: P.args, **kwargs: P.kwargs) -> T: ...


def local(function: Callable[Concatenate[Any, P], T]) -> Method[P, T]:
    """Declare a method of the library that is not an operation; ``aio`` has an awaitable
    version.
    """
    setattr(function, _LOCAL, True)
    return cast(Method[P, T], function)


def operation_of(function: Any) -> Operation | None:
    """Return the declaration of a method; None: it is not an operation."""
    declared = getattr(function, _ATTRIBUTE, None)
    return declared if isinstance(declared, Operation) else None


def is_local(function: Any) -> bool:
    """Return True for a method decorated with ``local``."""
    return getattr(function, _LOCAL, False) is True


_IN_PATH: Final = re.compile(r"{(\w+)}")
_ATTRIBUTE: Final = "__operation__"
_LOCAL: Final = "__local__"
DEFAULT_TAG: Final = "memories"


@dataclass(frozen=True, slots=True)
class WireFormat:
    """The format in which a parameter is sent, as metadata of its annotation.

    Attributes:
        type: the type of the sent value, with pydantic's constraints; None: the annotation's own.
        name: the name of the field or query parameter; None: the parameter's own.
        write: converts an argument to the sent value; None: it is sent as JSON.
    """

    type: Any = None
    name: str | None = None
    write: Callable[[Any], Any] | None = None


Time = Annotated[Moment, WireFormat(Millis, write=lambda time: iso(parse_time(time)))]
"""A time: ISO 8601, milliseconds since 1970, or a datetime with a zone."""
MemoryId = Annotated[
    str, Field(max_length=MAX_NAME_CHARS, examples=["mem_01JZ8Q5N7W3V0C2X9R4T6Y8B1D"])
]
EdgeId = Annotated[
    str,
    Field(
        max_length=MAX_NAME_CHARS,
        examples=["edge_01JZ8Q5N7W3V0C2X9R4T6Y8B3F"],
        description="The id of a contradiction or a mark, its last six characters, or the id of a"
        " memory that has only this open one.",
    ),
]
Id = Annotated[str, Field(max_length=MAX_NAME_CHARS)]
AsOf = Annotated[Time | None, Field(description="Read the state as of this time.")]
Limit = Annotated[int, Field(ge=1, le=500, description="Maximum number of items on a page.")]
After = Annotated[
    str | None,
    WireFormat(Name, "cursor"),
    Field(description="`next_after` of the previous page."),
]


class ItemOf:
    """An object that is documented as a value, but passed on unchanged for the library to validate.

    In a batch only the invalid items are rejected; the others are processed.
    """

    def __init__(self, kind: type[Value]) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        self._kind.model_rebuild()
        return handler(self._kind.__pydantic_core_schema__)


class ReasonBody(Value):
    """The reason for a change, which is stored in the journal."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class WireResult:
    """The format in which a result is sent, if not as it is.

    Attributes:
        type: the type of the sent value.
        wrap: converts a result to the sent value; None: the result becomes the first field, a list
            as a tuple.
        unwrap: converts a sent value to the result; None: the result is the first field, a tuple
            as a list.
        cursor: returns the cursor of the last item of a page, for ``next_cursor`` of a full page.
    """

    type: Any
    wrap: Callable[[Any], Any] | None = None
    unwrap: Callable[[Any], Any] | None = None
    cursor: Callable[[Any], str] | None = None

    def of(self, result: Any, *, limit: int | None = None) -> Any:
        """Return the value to send for a result; ``limit`` is the page size."""
        if self.wrap is not None:
            return self.wrap(result)
        fields = {
            next(iter(self.type.model_fields)): tuple(result)
            if isinstance(result, list)
            else result
        }
        if self.cursor is not None:
            fields["next_cursor"] = self.cursor(result[-1]) if len(result) == limit else None
        # The service returns valid values, so they are not validated again.
        return self.type.model_construct(**fields)

    def result(self, value: Any) -> Any:
        """Return the result from a sent value."""
        if self.unwrap is not None:
            return self.unwrap(value)
        result = getattr(value, next(iter(self.type.model_fields)))
        return list(result) if isinstance(result, tuple) else result


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation.

    Attributes:
        name: its name in the library.
        sent: its name in the path, the query or the body.
        type: its type, with pydantic's constraints and description.
        default: ``inspect.Parameter.empty`` if it is required.
    """

    name: str
    sent: str
    type: Any
    default: Any
    write: Callable[[Any], Any] | None = None

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


def _undecorated(*_: Any) -> NoReturn:
    raise TypeError("an operation without a method")


@dataclass(frozen=True)
class Operation:
    """An operation of an orchestrator, and the decorator that declares a method as one.

    Attributes:
        permission: the permission that a key needs.
        route: the HTTP method and the path below the orchestrator's, e.g. ``GET
            /contradictions/{edge_id}``; GET for reads; POST for changes and for reads with a body.
        tag: the group in the reference; by default that of ``group``.
        id: the id in the OpenAPI document; by default the method's name.
        body: the model of the body, or the name for a model made from the parameters; None: a name
            derived from ``id``. If it is a model, the method may take its fields as ``**fields``,
            or the whole body in one parameter.
        answer: the format of the response; a type: an object whose first field is the result;
            None: the result itself.
        status: the HTTP status of a successful response with a body.
        whole: its description in an error message, e.g. ``an erasure``, if it requires a key that
            may see everything; else None.
        slow: the server may need minutes for it.
        once: the client does not send it again if the response was lost.
        served: False: its path is served by another operation or by a hand-written route.
        command: the name of the derived command; None: ``id``, or the name of an everyday method;
            empty: there is no command, because another one does the same.
        group: the attribute of the orchestrator that has the method; None: the orchestrator itself.
        function: the decorated method; its first parameter is the orchestrator.
    """

    permission: Permission
    route: str
    _: KW_ONLY
    tag: str = DEFAULT_TAG
    id: str = ""
    body: type[Value] | str | None = None
    answer: type[Value] | WireResult | None = None
    status: int = 200
    whole: str | None = None
    slow: bool = False
    once: bool = False
    served: bool = True
    command: str | None = None
    group: str | None = None
    function: Callable[..., Any] = _undecorated

    def __call__(self, function: Callable[Concatenate[Any, P], T]) -> Method[P, T]:
        """Declare a method as this operation."""
        declared = replace(self, function=function, id=self.id or function.__name__)
        if any(map(_is_number, (getattr(function, "__kwdefaults__", None) or {}).values())):
            declared = replace(declared, function=_within_bounds(declared))
        setattr(declared.function, _ATTRIBUTE, declared)
        return cast(Method[P, T], declared.function)

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path below the orchestrator's."""
        return self.route.partition(" ")[2]

    @cached_property
    def in_path(self) -> frozenset[str]:
        """The names of the parameters in the path."""
        return frozenset(_IN_PATH.findall(self.path))

    @cached_property
    def wire(self) -> WireResult | None:
        """The format of the response; None: the result itself."""
        return WireResult(self.answer) if isinstance(self.answer, type) else self.answer

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.function.__name__

    @property
    def attribute(self) -> str:
        """The attribute path of the method on an orchestrator, e.g. ``contradictions.list``."""
        return self.name if self.group is None else f"{self.group}.{self.name}"

    @property
    def command_name(self) -> str:
        """The name of the derived command, e.g. ``retract-source``."""
        if self.command is not None:
            return self.command
        return (self.id if self.group else self.name).replace("_", "-")

    def method_of(self, orchestrator: Any) -> Callable[..., Any]:
        """Return the method of an orchestrator, either the library's or a client's."""
        method: Callable[..., Any] = attrgetter(self.attribute)(orchestrator)
        return method

    @cached_property
    def summary(self) -> str:
        """The docstring without its sections."""
        text = inspect.getdoc(self.function) or ""
        return re.split(r"\n+(?:Args|Returns|Raises):|\s+Raises [A-Z]", text, maxsplit=1)[0].strip()

    @cached_property
    def described(self) -> Mapping[str, str]:
        """The descriptions of the parameters in the docstring, by name."""
        return documented(self.function, "Args")

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature of the method, with resolved annotations."""
        return inspect.signature(self.function, eval_str=True)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters that are sent, by their names in the library.

        Callbacks, e.g. for progress, are not sent. ``**fields`` are the fields of the body's model.
        """
        return {
            parameter.name: _parameter(parameter)
            for parameter in self._arguments
            if not _is_callback(parameter.annotation) and parameter.name != self.rest
        }

    @contextmanager
    def naming(self, *, sent: bool) -> Iterator[None]:
        """Let errors of the block name a parameter as it is sent, or else as the library does."""
        try:
            yield
        except MemgraphError as error:
            for name, parameter in self.parameters.items():
                was, now = (name, parameter.sent) if sent else (parameter.sent, name)
                if error.details.get("field") == was:
                    error.details["field"] = now
                    break
            raise

    @property
    def _arguments(self) -> Sequence[inspect.Parameter]:
        return list(self.signature.parameters.values())[1:]

    @cached_property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """The inclusive bounds of the numbers with a default that have both, by name."""
        bounds = {}
        for parameter in self._arguments:
            constraints = [
                item
                for field in _metadata(parameter.annotation)
                for item in getattr(field, "metadata", ())
            ]
            low = [item.ge for item in constraints if hasattr(item, "ge")]
            high = [item.le for item in constraints if hasattr(item, "le")]
            if _is_number(parameter.default) and low and high:
                bounds[parameter.name] = (low[0], high[0])
        return bounds

    @cached_property
    def rest(self) -> str | None:
        """The name of ``**fields``, the fields of the body's model, or None."""
        for parameter in self._arguments:
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                return parameter.name if isinstance(self.body, type) else _refuse(parameter.name)
        return None

    @cached_property
    def whole_body(self) -> str | None:
        """The name of the parameter that takes the whole body, or None."""
        return next(
            (name for name, each in self.parameters.items() if self.body in get_args(each.type)),
            None,
        )

    @cached_property
    def result(self) -> Any:
        """The type of the result; None: it returns nothing."""
        return self.signature.return_annotation

    @property
    def sent(self) -> Any:
        """The type of the sent result; None: nothing is sent."""
        return self.result if self.wire is None else self.wire.type


operation = Operation


def documented(described: Any, section: str) -> Mapping[str, str]:
    """Return the descriptions in a section of a docstring, such as ``Args``, by name."""
    text = inspect.getdoc(described) or ""
    found = re.search(rf"^{section}:\n((?: +.*\n?|\n)+)", text, re.MULTILINE)
    parts = re.split(r"^ {4}(\w+(?:, \w+)*): ", found[1], flags=re.MULTILINE) if found else []
    return {
        name: " ".join(description.split())
        for names, description in zip(parts[1::2], parts[2::2], strict=True)
        for name in names.split(", ")
    }


def _parameter(parameter: inspect.Parameter) -> Parameter:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        _refuse(parameter.name)
    wire, kind = WireFormat(), parameter.annotation
    for item in _metadata(kind):
        if isinstance(item, WireFormat):
            wire = item
    if wire.type is not None:
        kind = _with_type(kind, wire.type)
    return Parameter(
        parameter.name, wire.name or parameter.name, kind, parameter.default, wire.write
    )


def _is_callback(hint: Any) -> bool:
    """Return True for the type of a function, or of a function or None."""
    return any(get_origin(kind) is Callable for kind in (hint, *get_args(hint)))


def _refuse(name: str) -> NoReturn:
    raise TypeError(f"an operation must name all its parameters: {name} takes any number")


def _metadata(hint: Any) -> Iterator[Any]:
    """Yield the metadata of an annotation, and of the members of its union."""
    if get_origin(hint) is Annotated:
        hint, *metadata = get_args(hint)
        yield from metadata
    for argument in get_args(hint):
        if get_origin(argument) is Annotated:
            yield from get_args(argument)[1:]


def _with_type(hint: Any, kind: Any) -> Any:
    """Return an annotation with its type replaced, and its metadata without ``WireFormat``."""
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if type(None) in get_args(bare):
        kind |= None
    rest = tuple(item for item in metadata if not isinstance(item, WireFormat))
    return Annotated[(kind, *rest)] if rest else kind


def _within_bounds(declared: Operation) -> Callable[..., Any]:
    """Return the function of an operation, which refuses a number out of its declared bounds."""
    function = declared.function

    @wraps(function)
    def checked(caller: Any, *args: Any, **kwargs: Any) -> Any:
        for name in filter(declared.bounds.__contains__, kwargs):
            (low, high), given = declared.bounds[name], kwargs[name]
            whole = isinstance(declared.signature.parameters[name].default, int)
            if not isinstance(given, int if whole else int | float) or not low <= given <= high:
                kind = "a whole number" if whole else "a number"
                message = f"{name} must be {kind} between {low:,} and {high:,}"
                raise InvalidInput(message, field=name)
        return function(caller, *args, **kwargs)

    return checked


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def grouped(kind: type, group: str, tag: str) -> None:
    """Set the attribute of an orchestrator, ``group``, that has the operations of a class.

    Args:
        tag: of the operations that name no other one.
    """
    for member in vars(kind).values():
        if (declared := operation_of(member)) is not None:
            own_tag = tag if declared.tag == DEFAULT_TAG else declared.tag
            setattr(member, _ATTRIBUTE, replace(declared, group=group, tag=own_tag))


class GroupAttribute:
    """An attribute of an orchestrator with a group of methods, for the same caller."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.__doc__ = kind.__doc__

    def __get__(self, caller: Any, owner: type) -> Any:
        return self.kind if caller is None else caller._as(self.kind)


def with_groups(kind: type[T]) -> type[T]:
    """Add an attribute to a class for each group in its annotations."""
    for name, hint in inspect.get_annotations(kind, eval_str=True).items():
        group = get_origin(hint)
        if isinstance(group, type) and issubclass(group, Methods):
            setattr(kind, name, GroupAttribute(group))
    return kind


def methods_of(kind: type) -> dict[str, Any]:
    """Return the public attributes of a class by name, inherited ones first."""
    attributes: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        attributes.update(
            {name: attribute for name, attribute in vars(base).items() if not name.startswith("_")}
        )
    return attributes


def operations_of(kind: type) -> dict[str, Operation]:
    """Return the operations of a class and of its groups, by their attribute paths."""
    operations: dict[str, Operation] = {}
    for member in methods_of(kind).values():
        if (declared := operation_of(member)) is not None:
            operations[declared.attribute] = declared
        elif isinstance(member, GroupAttribute):
            operations |= operations_of(member.kind)
    return operations
