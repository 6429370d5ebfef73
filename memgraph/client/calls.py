"""One call to a server as a value: the request, and the parser of its response. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, BinaryIO, Generic, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from memgraph.errors import InvalidInput, NotFound, OrchestratorMissing, RemoteAnswerInvalid
from memgraph.model.values import Value

ValueT = TypeVar("ValueT", bound=Value)

T = TypeVar("T")
JSON = "application/json"
Read = Callable[[bytes], T]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """The request of a call, and the parser of its response.

    Attributes:
        path: the path from the root of the server, every segment escaped.
        params: query parameters; None is left out, and a collection is sent item by item.
        body: the bytes to send, or None.
        read: parses the body of a successful response.
        repeats: True when it may be sent again though its outcome is unknown.
        slow: True when the server may work on it for minutes.
        accepts: the media type of a successful response; None if it has no body.
        sink: receives the body of a successful response piece by piece; ``read`` then gets no
            bytes.
    """

    method: str
    path: str
    read: Read[T]
    params: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    repeats: bool = True
    slow: bool = False
    accepts: str | None = JSON
    sink: BinaryIO | None = None

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """Return the parameters as they are sent."""
        pairs: list[tuple[str, str]] = []
        for name, value in self.params.items():
            is_repeated = isinstance(value, Collection) and not isinstance(value, str)
            values = value if is_repeated else (value,)
            pairs.extend((name, _written(item)) for item in values if item is not None)
        return tuple(pairs)


def segment(text: str, *, field: str = "id") -> str:
    """Escape a segment of a path.

    Raises:
        NotFound: the name is impossible: empty, not text, or with a slash.
    """
    if not isinstance(text, str) or not text or "/" in text or not _storable(text):
        raise NotFound(f"no record has this {field}", field=field)
    # A segment of dots would be resolved as a step in the path.
    return quote(text, safe="").replace(".", "%2E")


def orchestrator_path(name: str) -> str:
    """Return the path of an orchestrator. Raises OrchestratorMissing if the name is impossible."""
    try:
        return f"/v1/orchestrators/{segment(name, field='orchestrator')}"
    except NotFound:
        raise OrchestratorMissing("this is not a valid name of an orchestrator") from None


def body(fields: Mapping[str, Any] | Value) -> bytes:
    """Return the JSON body of a request; of a value, only the fields that were set.

    Raises:
        InvalidInput: a field cannot be written as JSON.
    """
    if isinstance(fields, Value):
        fields = fields.model_dump(mode="json", exclude_unset=True)
    try:
        return json.dumps(fields, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("a field is not plain JSON, or has a lone surrogate") from None


def value_of(kind: type[ValueT]) -> Read[ValueT]:
    """Return a reader of one value. Fields of a later version are ignored."""

    def read(answer: bytes) -> ValueT:
        try:
            return kind.model_validate_json(answer, extra="ignore")
        except ValidationError:
            raise _unreadable(kind.__name__) from None

    return read


def part_of(kind: type[ValueT], pick: Callable[[ValueT], T]) -> Read[T]:
    """Return a reader of a part of a value."""
    read = value_of(kind)
    return lambda answer: pick(read(answer))


def typed(kind: type[T]) -> Read[T]:
    """Return a reader of a type that is not a ``Value``, such as a dataclass or a mapping."""
    # Built at first use, as values are.
    adapter = cache(lambda: TypeAdapter(kind))

    def read(answer: bytes) -> T:
        try:
            return adapter().validate_json(answer, extra="ignore")
        except ValidationError:
            raise _unreadable("answer") from None

    return read


def nothing(_answer: bytes) -> None:
    """Read a response without a body."""


def _unreadable(what: str) -> RemoteAnswerInvalid:
    return RemoteAnswerInvalid(
        f"the server's response is not the expected {what}: does it run another version?"
    )


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if not _storable(text):
        raise InvalidInput("a filter contains a NUL character or a lone surrogate")
    return text


def _storable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\x00" not in text
