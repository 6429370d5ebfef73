"""The declaration of an operation, from which HTTP, the client and the command line are derived.

An operation is a method of ``Orchestrator`` under ``operation``. Its signature is the contract:
annotations carry pydantic's constraints, and a ``WireFormat`` where what is sent differs from what
the library takes. Its docstring describes it on every surface.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
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
    get_type_hints,
    overload,
)

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypeVar as TypeVarWithDefault  # Python 3.13's

from memgraph.clock import iso, parse_time
from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.values import MAX_NAME_CHARS, Millis, Moment, Name, Reason, Value

P = ParamSpec("P")
T = TypeVar("T")


class Blocking:
    """Marks methods that return their result."""


class Awaited:
    """Marks methods that are coroutines."""


F = TypeVarWithDefault("F", default=Blocking, covariant=True)
"""How the methods of a class are called: ``Blocking`` or ``Awaited``. Only type checkers use it."""


class Methods(Generic[F]):
    """A class of methods that is declared once, and blocks or is awaited: see ``Method``."""


class Method(Generic[P, T]):
    """The type of a method under ``operation`` or ``local``, for type checkers.

    Of ``Contradictions[Blocking]`` it returns its result, of ``Contradictions[Awaited]`` it is a
    coroutine. When the program runs it is the plain function; the classes that send or await it
    replace it.
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
    """Declare a method of the library that is no operation; ``aio`` has it, too, and awaits it."""
    setattr(function, _LOCAL, True)
    return cast(Method[P, T], function)


def is_operation(function: Any) -> bool:
    """Return True for a method under ``operation``."""
    return isinstance(getattr(function, _ATTRIBUTE, None), Operation)


def is_local(function: Any) -> bool:
    """Return True for a method under ``local``."""
    return getattr(function, _LOCAL, False) is True


_IN_PATH: Final = re.compile(r"{(\w+)}")
_ATTRIBUTE: Final = "__operation__"
_LOCAL: Final = "__local__"


@dataclass(frozen=True, slots=True)
class WireFormat:
    """The form in which a parameter is sent, among the metadata of its annotation.

    Attributes:
        type: of the value, with pydantic's constraints; None: the annotation's own.
        name: of the field or query parameter; None: the parameter's own.
        write: makes the value to send from an argument; None: it is sent as JSON.
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
    str, Field(max_length=MAX_NAME_CHARS, examples=["edg_01JZ8Q5N7W3V0C2X9R4T6Y8B3F"])
]
Id = Annotated[str, Field(max_length=MAX_NAME_CHARS)]
AsOf = Annotated[Time | None, Field(description="As it was at that time.")]
Limit = Annotated[int, Field(ge=1, le=500, description="Of a page.")]
After = Annotated[
    str | None,
    WireFormat(Name, "cursor"),
    Field(description="`next_after` of the page before."),
]


class ItemOf:
    """An object that is documented as a value, and passed unchanged for the library to validate.

    In a batch an invalid item is rejected by itself, and the others are processed.
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
    """The reason of a change; the journal keeps it."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class WireResult:
    """The form in which a result is sent, where that is not the result itself.

    Attributes:
        type: the value that is sent.
        wrap: makes it of a result; None: the result is the first field, a list as a tuple.
        unwrap: makes a result of it; None: its first field, a tuple as a list.
        cursor: of the last item of a page, for ``next_cursor`` when the page is full.
    """

    type: Any
    wrap: Callable[[Any], Any] | None = None
    unwrap: Callable[[Any], Any] | None = None
    cursor: Callable[[Any], str] | None = None

    def __post_init__(self) -> None:
        if self.wrap is None and self.unwrap is None:
            first, *others = self.type.model_fields.items()
            field_names = {first[0]} | ({"next_cursor"} if self.cursor else set())
            for name, info in others:
                if info.is_required() and name not in field_names:
                    raise InvalidInput(
                        f"{self.type.__name__} has a field that nothing fills: {name}; give wrap"
                        + (" or cursor" if name == "next_cursor" else "")
                    )

    def of(self, result: Any, *, limit: int | None = None) -> Any:
        """Return the value to send for a result; ``limit`` is that of a page."""
        if self.wrap is not None:
            return self.wrap(result)
        fields = {
            next(iter(self.type.model_fields)): tuple(result)
            if isinstance(result, list)
            else result
        }
        if self.cursor is not None:
            fields["next_cursor"] = self.cursor(result[-1]) if len(result) == limit else None
        # What the service returns is valid.
        return self.type.model_construct(**fields)

    def result(self, value: Any) -> Any:
        """Return the result for a value that was sent."""
        if self.unwrap is not None:
            return self.unwrap(value)
        result = getattr(value, next(iter(self.type.model_fields)))
        return list(result) if isinstance(result, tuple) else result


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as it is sent.

    Attributes:
        name: in the library.
        sent: in a path, a query or a body.
        type: with pydantic's constraints and description.
        default: ``inspect.Parameter.empty`` where it is required.
    """

    name: str
    sent: str
    type: Any
    default: Any
    write: Callable[[Any], Any] | None = None

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Operation:
    """An operation of an orchestrator.

    Attributes:
        function: the method; its first parameter is the orchestrator.
        permission: that a key needs.
        method: GET for what is read, POST for changes and for reads with a body.
        path: below the orchestrator, such as ``/contradictions/{edge_id}``.
        tag: the group in the reference.
        id: in the OpenAPI document; by default the method's name.
        body: the model of the body, or the name of one that is made of the parameters; None: it is
            named after ``id``. A method whose body is a model may take its fields as ``**fields``,
            or the whole of it in one parameter.
        answer: what is sent for the result; None: the result.
        status: of a successful answer with a body.
        tagged: the answer has an ETag.
        whole: what it is, if it needs a key that may see everything, such as ``an erasure``.
        slow: the server may work on it for minutes.
        served: False: its address is served by another operation, or by a route written by hand.
        command: the name of the derived command; None: ``id``, or the name of an everyday method.
        tool: True when agents are offered it as a tool, with these parameters and the result as
            JSON. An answer with texts of memories has to fit a prompt: see ``operations/tools``.
        group: the attribute of the orchestrator that has the method; None: the orchestrator itself.
    """

    function: Callable[..., Any]
    permission: Permission
    method: str
    path: str
    tag: str
    id: str
    body: type[Value] | str | None = None
    answer: WireResult | None = None
    status: int = 200
    tagged: bool = False
    whole: str | None = None
    slow: bool = False
    served: bool = True
    command: str | None = None
    tool: bool = False
    group: str | None = None
    in_path: frozenset[str] = field(default=frozenset())

    @property
    def name(self) -> str:
        """Return the method's name."""
        return self.function.__name__

    @property
    def attribute(self) -> str:
        """The path to the method from an orchestrator, such as ``contradictions.list``."""
        return self.name if self.group is None else f"{self.group}.{self.name}"

    @property
    def command_name(self) -> str:
        """The name of the derived command, such as ``retract-source``."""
        return self.command or (self.id if self.group else self.name).replace("_", "-")

    def method_of(self, orchestrator: Any) -> Callable[..., Any]:
        """Return the method of an orchestrator, of the library or of a client."""
        method: Callable[..., Any] = attrgetter(self.attribute)(orchestrator)
        return method

    @property
    def changes(self) -> bool:
        """Return whether it may change the store."""
        return self.permission in (Permission.WRITE, Permission.ADMIN)

    @cached_property
    def summary(self) -> str:
        """Return the docstring up to its sections."""
        text = inspect.getdoc(self.function) or ""
        return re.split(r"\n+(?:Args|Returns|Raises):|\s+Raises [A-Z]", text, maxsplit=1)[0].strip()

    @cached_property
    def described(self) -> Mapping[str, str]:
        """Return the descriptions of parameters in the docstring, by name."""
        text = inspect.getdoc(self.function) or ""
        section = re.search(r"^Args:\n((?: +.*\n?|\n)+)", text, re.MULTILINE)
        parts = (
            re.split(r"^ {4}(\w+(?:, \w+)*): ", section[1], flags=re.MULTILINE) if section else []
        )
        return {
            name: " ".join(description.split())
            for names, description in zip(parts[1::2], parts[2::2], strict=True)
            for name in names.split(", ")
        }

    @cached_property
    def signature(self) -> inspect.Signature:
        """Return the method's signature, with resolved annotations."""
        return inspect.signature(self.function, eval_str=True)

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """Return the parameters that are sent, by their names in the library.

        A function, such as one that is told of progress, stays with its caller. ``**fields`` are
        those of the body's model.
        """
        hints = get_type_hints(self.function, include_extras=True)
        return {
            name: _parameter(parameter, hints[name])
            for name, parameter in list(inspect.signature(self.function).parameters.items())[1:]
            if get_origin(hints[name]) is not Callable and name != self.rest
        }

    @cached_property
    def rest(self) -> str | None:
        """Return the name of ``**fields``, the fields of the body's model; None: there are none."""
        last = list(inspect.signature(self.function).parameters.values())[-1]
        if last.kind is not inspect.Parameter.VAR_KEYWORD:
            return None
        return last.name if isinstance(self.body, type) else _refuse(last.name)

    @cached_property
    def whole_body(self) -> str | None:
        """Return the name of the parameter for the whole body; None: there is none."""
        hints = get_type_hints(self.function)
        return next((name for name in self.parameters if self.body in get_args(hints[name])), None)

    @cached_property
    def result(self) -> Any:
        """Return the type of the result; None: there is none."""
        hint = get_type_hints(self.function).get("return")
        return None if hint in (None, type(None)) else hint

    @property
    def sent(self) -> Any:
        """Return the type that is sent for the result; None: nothing."""
        return self.result if self.answer is None else self.answer.type


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        _refuse(parameter.name)
    wire = WireFormat()
    for item in _metadata(hint):
        if isinstance(item, WireFormat):
            wire = item
    kind = hint if wire.type is None else _with_type(hint, wire.type)
    return Parameter(
        parameter.name, wire.name or parameter.name, kind, parameter.default, wire.write
    )


def _refuse(name: str) -> NoReturn:
    raise TypeError(f"an operation names each of its parameters: {name} stands for several")


def _metadata(hint: Any) -> Iterator[Any]:
    """Yield the metadata of an annotation, and of the members of a union."""
    if get_origin(hint) is Annotated:
        hint, *metadata = get_args(hint)
        yield from metadata
    for argument in get_args(hint):
        if get_origin(argument) is Annotated:
            yield from get_args(argument)[1:]


def _with_type(hint: Any, kind: Any) -> Any:
    """Return an annotation with another type and its own metadata, without ``WireFormat``."""
    metadata = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if type(None) in get_args(bare):
        kind |= None
    rest = tuple(item for item in metadata if not isinstance(item, WireFormat))
    return Annotated[(kind, *rest)] if rest else kind


def operation(
    permission: Permission,
    method: str,
    path: str,
    *,
    tag: str,
    id: str | None = None,  # noqa: A002 - OpenAPI's word
    body: type[Value] | str | None = None,
    answer: type[Value] | WireResult | None = None,
    status: int = 200,
    tagged: bool = False,
    whole: str | None = None,
    slow: bool = False,
    served: bool = True,
    command: str | None = None,
    tool: bool = False,
) -> Callable[[Callable[Concatenate[Any, P], T]], Method[P, T]]:
    """Declare a method as an operation; see ``Operation`` for the arguments."""

    def declare(function: Callable[Concatenate[Any, P], T]) -> Method[P, T]:
        declared = Operation(
            function,
            permission,
            method,
            path,
            tag,
            id or function.__name__,
            body=body,
            answer=WireResult(answer) if isinstance(answer, type) else answer,
            status=status,
            tagged=tagged,
            whole=whole,
            slow=slow,
            served=served,
            command=command,
            tool=tool,
            in_path=frozenset(_IN_PATH.findall(path)),
        )
        setattr(function, _ATTRIBUTE, declared)
        return cast(Method[P, T], function)

    return declare


def operation_of(function: Any) -> Operation:
    """Return the declaration of a method. Raises InvalidInput: it is not an operation."""
    declared = getattr(function, _ATTRIBUTE, None)
    if not isinstance(declared, Operation):
        raise InvalidInput(f"{getattr(function, '__name__', function)!r} is not an operation")
    return declared


def grouped(kind: type, group: str) -> None:
    """Record that an orchestrator has the operations of a class in one of its attributes."""
    for member in vars(kind).values():
        declared = getattr(member, _ATTRIBUTE, None)
        if isinstance(declared, Operation):
            setattr(member, _ATTRIBUTE, replace(declared, group=group))


class GroupAttribute:
    """An attribute of an orchestrator: the methods of a group, for the same caller."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.__doc__ = kind.__doc__

    def __get__(self, caller: Any, owner: type) -> Any:
        return self.kind if caller is None else caller._as(self.kind)


def with_groups(kind: type[T]) -> type[T]:
    """Make the groups that a class annotates its attributes."""
    for name, hint in inspect.get_annotations(kind, eval_str=True).items():
        group = get_origin(hint)
        if isinstance(group, type) and issubclass(group, Methods):
            setattr(kind, name, GroupAttribute(group))
    return kind


def methods_of(kind: type) -> dict[str, Any]:
    """Return the public attributes of a class by name, those of its bases first."""
    every: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        every.update({name: each for name, each in vars(base).items() if not name.startswith("_")})
    return every


def operations_of(kind: type) -> dict[str, Operation]:
    """Return the operations of a class and of its groups, by their paths."""
    operations: dict[str, Operation] = {}
    for member in methods_of(kind).values():
        declared = getattr(member, _ATTRIBUTE, None)
        if isinstance(declared, Operation):
            operations[declared.attribute] = declared
        elif isinstance(member, GroupAttribute):
            operations |= operations_of(member.kind)
    return operations
