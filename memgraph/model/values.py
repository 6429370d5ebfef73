"""Inputs and results. Inputs are validated here, once, for every surface.

Times are milliseconds since 1970 (UTC) in Python and ISO 8601 in JSON; inputs accept either.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypedDict, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from memgraph.clock import iso, parse_time
from memgraph.errors import InvalidInput, without_kind
from memgraph.model.enums import (
    STORED_STATUSES,
    CapturedBy,
    EdgeType,
    KindFilter,
    MemoryKind,
    MemoryStatus,
    MemoryType,
    Scope,
    Sensitivity,
    SourceType,
)

MAX_CONTENT_CHARS = 32_000
MAX_SUMMARY_CHARS = 400
MAX_NAME_CHARS = 512
MAX_REASON_CHARS = 2_000
MAX_TAGS = 64
MAX_ATTRIBUTES_CHARS = 16_000
MAX_SEQUENCE = 2**53

# The canonical form that is stored and sealed; json.dumps would make a new encoder for every call.
compact_json = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":")
).encode


def _storable(text: str) -> str:
    """Reject NUL, at which SQLite's text ends for many readers, and lone surrogates."""
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError("holds a lone surrogate") from error
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("contains only white space")
    return text


def _storable_json(value: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError("is not plain JSON") from error
    if len(text) > MAX_ATTRIBUTES_CHARS:
        raise ValueError(f"is over {MAX_ATTRIBUTES_CHARS} characters as JSON")
    _storable(text)
    # Normalised to what a read returns: keys are strings, tuples are lists.
    plain: dict[str, Any] = json.loads(text)
    return plain


def _stored(status: MemoryStatus) -> MemoryStatus:
    if status not in STORED_STATUSES:
        raise ValueError(f"is never stored; use one of: {', '.join(STORED_STATUSES)}")
    return status


def _to_ms(value: Any) -> Any:
    if value is None:
        return None
    try:
        return parse_time(value)
    except InvalidInput as error:
        raise ValueError(str(error)) from error


_TIME: dict[str, Any] = {
    "anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}],
}

Text = Annotated[str, AfterValidator(_storable)]
Content = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS),
    AfterValidator(_storable),
    AfterValidator(_not_blank),
]
Name = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS), AfterValidator(_storable)
]
Reason = Annotated[str, StringConstraints(max_length=MAX_REASON_CHARS), AfterValidator(_storable)]
Millis = Annotated[
    int,
    BeforeValidator(_to_ms),
    PlainSerializer(iso, return_type=str, when_used="json"),
    WithJsonSchema(_TIME, mode="validation"),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]
StoredStatus = Annotated[
    MemoryStatus,
    AfterValidator(_stored),
    WithJsonSchema({"type": "string", "enum": [*STORED_STATUSES]}),
]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
Unit = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Attributes = Annotated[dict[str, Any], AfterValidator(_storable_json)]


class Value(BaseModel):
    """Base of all values: immutable; unknown fields are rejected."""

    # Built on first use: a process needs only a few of the models, and building all takes 0.1 s.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


ValueT = TypeVar("ValueT", bound=Value)
EnumT = TypeVar("EnumT", bound=StrEnum)


class Source(Value):
    """The source of a memory.

    Attributes:
        source_type: the kind of source.
        source_path: the file.
        conversation_id: the conversation of a transcript.
        workflow_run_id: the run of a workflow.
        step_id: the step of the run.
        captured_by: who wrote it down.
        locator: the place in the file, lines or a JSON pointer.
        content_sha256: the digest of the file.
    """

    source_type: SourceType = SourceType.MANUAL
    source_path: Name | None = None
    conversation_id: Name | None = None
    workflow_run_id: Name | None = None
    step_id: Name | None = None
    captured_by: CapturedBy = CapturedBy.USER
    locator: Name | None = None
    content_sha256: Sha256 | None = None


Kind = Annotated[MemoryKind, WithJsonSchema({"type": "string", "enum": [*KindFilter]})]
"""A kind, which an input may also give as ``preference``."""


def with_preferences(fields: Any) -> Any:
    """Read the kind ``preference`` among the filters ``kinds`` and ``types`` of a request.

    Raises:
        ValueError: other kinds, or other types, are asked for beside it.
    """
    if not isinstance(fields, Mapping):
        return fields
    kinds, types = (tuple(fields.get(name) or ()) for name in ("kinds", "types"))
    if KindFilter.PREFERENCE not in kinds:
        return fields
    if {*kinds} != {KindFilter.PREFERENCE} or not {*types} <= {MemoryType.PREFERENCE}:
        raise ValueError("the kind preference goes with no other kind and no other type")
    return {**fields, "kinds": (MemoryKind.FACT,), "types": (MemoryType.PREFERENCE,)}


class MemoryInput(Value):
    """A memory to be stored.

    Attributes:
        key: its name inside one batch; edges and derivations of the batch refer to it as ``#key``.
        summary: the default is generated.
        kind: ``preference`` is a fact of the type Preference.
        importance: 0 to 100.
        confidence: 0 to 1.
        scope_id: the session or the project of the scope.
        agent_id: the agent that owns it.
        session_id: the conversation in which it was said.
        turn_id: the turn in which it was said.
        item_id: the caller's own name for it: a memory with one is a duplicate only of a memory
            with the same text and ``item_id`` in the same scope.
        source_role: the speaker.
        event_time: when it happened, in ISO 8601 or milliseconds since 1970.
        valid_until: the end of its validity, in ISO 8601 or milliseconds since 1970.
        decay_rate: per day, 0: no decay; the default is by type, origin and importance.
        tags: free labels.
        attributes: further fields, as a JSON object.
        derived_from: the memories that it is derived from.
    """

    key: Name | None = None
    content: Content
    summary: (
        Annotated[str, StringConstraints(max_length=MAX_SUMMARY_CHARS), AfterValidator(_storable)]
        | None
    ) = None
    kind: Kind = MemoryKind.FACT
    type: MemoryType = MemoryType.FACT
    importance: Annotated[int, Field(ge=0, le=100, strict=True)] = 50
    confidence: Unit = 1.0
    status: StoredStatus = MemoryStatus.ACTIVE
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    scope: Scope = Scope.GLOBAL
    scope_id: Name | None = None
    agent_id: Name | None = None
    session_id: Name | None = None
    sequence: Annotated[int, Field(ge=0, le=MAX_SEQUENCE)] | None = None
    turn_id: Name | None = None
    item_id: Name | None = None
    source_role: Name | None = None
    event_time: Millis | None = None
    valid_until: Millis | None = None
    decay_rate: Annotated[float, Field(ge=0.0, le=1000.0, allow_inf_nan=False)] | None = None
    tags: Annotated[tuple[Name, ...], Field(max_length=MAX_TAGS)] = ()
    attributes: Attributes = Field(default_factory=dict)
    source: Source = Field(default_factory=Source)
    derived_from: tuple[Name, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _preference(cls, fields: Any) -> Any:
        """Read the kind ``preference`` as a fact of the type Preference."""
        if not isinstance(fields, dict) or fields.get("kind") != KindFilter.PREFERENCE:
            return fields
        if fields.get("type", MemoryType.PREFERENCE) != MemoryType.PREFERENCE:
            raise ValueError("kind: preference goes with no other type")
        return {**fields, "kind": MemoryKind.FACT, "type": MemoryType.PREFERENCE}

    @model_validator(mode="after")
    def _consistent(self) -> MemoryInput:
        if (self.scope is Scope.GLOBAL) != (self.scope_id is None):
            raise ValueError("scope_id: a session or project scope needs one, global has none")
        if "supersedes" in self.attributes:
            raise ValueError(
                "attributes: supersedes is set by resolving a contradiction and cannot be given"
            )
        return self


Moment = str | int | datetime
"""A time: ISO 8601, milliseconds since 1970, or a datetime with a zone."""


class EpisodeFields(TypedDict, total=False):
    """The optional fields of an ``EpisodeInput``, as keyword arguments of ``save_episode``."""

    key: str | None
    summary: str | None
    kind: MemoryKind | str
    type: MemoryType | str
    importance: int
    confidence: float
    status: MemoryStatus | str
    sensitivity: Sensitivity | str
    scope: Scope | str
    scope_id: str | None
    agent_id: str | None
    sequence: int | None
    turn_id: str | None
    item_id: str | None
    event_time: Moment | None
    valid_until: Moment | None
    decay_rate: float | None
    tags: Collection[str]
    attributes: Mapping[str, Any]
    source: Source | Mapping[str, Any]
    derived_from: Collection[str]


class MemoryFields(EpisodeFields, total=False):
    """The fields of a ``MemoryInput`` without ``content``."""

    session_id: str | None
    source_role: str | None


class Correction(MemoryInput):
    """A new text and the reason; other fields default to the old memory's."""

    reason: Reason

    @model_validator(mode="after")
    def _consistent(self) -> Correction:
        # Only the memory that results from the correction is validated.
        return self


class EpisodeInput(MemoryInput):
    """A turn of a conversation, with a session and a speaker.

    Without a ``sequence`` it follows the last turn of its session.
    """

    kind: Literal[MemoryKind.EPISODE] = MemoryKind.EPISODE
    type: MemoryType = MemoryType.OBSERVATION
    session_id: Name
    source_role: Name


class EdgeInput(Value):
    """An edge to be stored. An end is a memory id, or ``#key`` of a memory in the same batch.

    An Updates edge supersedes what it points at, unless it is ``partial`` (only a part of the older
    memory was amended) or a mark (its weight, a probability, is below 1).
    """

    from_id: Name
    to_id: Name
    edge_type: EdgeType
    weight: Unit = 1.0
    reason: Reason | None = None
    partial: bool = False

    @model_validator(mode="after")
    def _not_itself(self) -> EdgeInput:
        if self.from_id == self.to_id:
            raise ValueError("to_id: an edge must join two different memories")
        return self


class Memory(Value):
    """A stored memory. ``confidence`` is the stored base value, before decay."""

    memory_id: str
    orchestrator_id: str
    kind: MemoryKind
    type: MemoryType
    content: str
    summary: str
    importance: int
    confidence: float
    status: StoredStatus
    sensitivity: Sensitivity
    scope: Scope
    scope_id: str | None
    agent_id: str | None
    session_id: str | None
    sequence: int | None
    turn_id: str | None
    item_id: str | None
    source_role: str | None
    event_time: Millis | None
    created_at: Millis
    updated_at: Millis
    valid_until: Millis | None
    access_count: int | None
    last_accessed_at: Millis | None
    decay_rate: float
    tags: tuple[str, ...]
    attributes: dict[str, Any]
    content_hash: str
    token_cost: int
    source_id: str

    @property
    def said_at(self) -> int:
        """The time of the event if known, else that of storing, in milliseconds."""
        return self.created_at if self.event_time is None else self.event_time

    @property
    def stated_at(self) -> int:
        """The time of the event, but never one after storing: what it replaced ends then."""
        return min(self.said_at, self.created_at)

    @property
    def shown_status(self) -> MemoryStatus:
        """The status to show: ERASED when the text is gone; only an erasure removes it."""
        return self.status if self.content else MemoryStatus.ERASED


class Edge(Value):
    """A stored edge.

    Attributes:
        partial: an Updates edge that leaves the older memory active.
        resolved_at, resolution: of a decided contradiction or mark: when, the winner, the loser,
            the reason and the actor.
    """

    edge_id: str
    from_id: str
    to_id: str
    edge_type: EdgeType
    weight: float
    reason: str | None
    partial: bool
    created_at: Millis
    resolved_at: Millis | None
    resolution: dict[str, Any] | None

    @property
    def is_open_mark(self) -> bool:
        """True for a contradiction or a change that is only probable and that nobody decided."""
        decidable = self.edge_type in (EdgeType.CONTRADICTS, EdgeType.UPDATES)
        return decidable and self.weight < 1.0 and self.resolution is None

    @property
    def relation(self) -> str:
        """The relation of the first memory to the second, such as "probably changes".

        A contradiction that somebody decided is what the decision made of it: a replacement.
        """
        if self.edge_type is EdgeType.UPDATES:
            if self.weight < 1.0:
                return "probably changes"
            return "replaces part of" if self.partial else "replaces"
        if self.edge_type is EdgeType.CONTRADICTS:
            winner = (self.resolution or {}).get("winner_id")
            if winner is not None:
                return "replaces" if winner == self.from_id else "is replaced by"
            return "contradicts" if self.weight >= 1.0 else "probably contradicts"
        return _RELATIONS[self.edge_type]


_RELATIONS: Final = {
    EdgeType.CAUSED_BY: "is caused by",
    EdgeType.PART_OF: "is part of",
    EdgeType.RELATED_TO: "is related to",
}


class StoredSource(Source):
    source_id: str


class StatusPeriod(Value):
    """A period during which a memory had a status; ``until`` is None for the current one."""

    status: StoredStatus
    since: Millis
    until: Millis | None
    actor: str
    reason: str | None


class Outcome(Value):
    """The outcome of one item of a write, in the order of the items.

    A ``duplicate`` has the id of the existing memory. ``code`` and ``message`` are those of the
    error for which the item was rejected. An edge has the code ``source.other`` if it
    was stored as a contradiction instead of an Updates edge, and ``memory.conflict`` if it was
    stored as partial, because another memory had replaced the target.

    Attributes:
        duplicate_of: the memory with the same text; a ``duplicate`` was not stored again.
        reasons: why, in words, by the id of that memory.
        comparison: ``pending``: it is compared with the memories stored before it in the
            background, and what is found becomes an edge; ``settle()`` waits for it. None: it is
            not compared.
    """

    outcome: Literal["stored", "duplicate", "rejected"]
    memory_id: str | None = None
    edge_id: str | None = None
    code: str | None = None
    message: str | None = None
    duplicate_of: str | None = None
    reasons: dict[str, str] = Field(default_factory=dict)
    comparison: Literal["pending"] | None = None


class ActorReason(Value):
    """The actor of a change and its reason, for the journal and the status history."""

    actor: Name
    reason: Reason = ""


def _unknown_field(kind: type[Value]) -> str:
    return f"no such field; there are {', '.join(kind.model_fields)}"


def validated(kind: type[ValueT], values: ValueT | Mapping[str, Any]) -> ValueT:
    """Build a value from untrusted fields.

    Raises:
        InvalidInput: names each invalid field; it never repeats the invalid value.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems = [
            {
                "field": ".".join(str(part) for part in problem["loc"]) or "(all)",
                "problem": _unknown_field(kind)
                if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1
                else without_kind(problem["msg"]),
            }
            for problem in error.errors(
                include_url=False, include_input=False, include_context=False
            )
        ]
        summary = "; ".join(f"{item['field']}: {item['problem']}" for item in problems[:5])
        raise InvalidInput(f"not a valid {kind.__name__}: {summary}", problems=problems) from None


def one_of(enum: type[EnumT], value: Any, field: str) -> EnumT:
    """Return the member of an enum with a value. Raises InvalidInput: there is none."""
    try:
        return enum(value)
    except ValueError:
        raise InvalidInput(f"{field} must be one of: {', '.join(enum)}", field=field) from None


def spelled(words: Mapping[EnumT, str]) -> tuple[Any, ...]:
    """Return annotations that serialise enum members by other words than their values."""
    members = {word: member for member, word in words.items()}

    def parse(text: Any) -> Any:
        if isinstance(text, StrEnum) and text in words:
            return text
        if isinstance(text, str) and text in members:
            return members[text]
        raise ValueError(f"must be one of: {', '.join(members)}")

    return (
        BeforeValidator(parse),
        PlainSerializer(words.__getitem__, return_type=str),
        WithJsonSchema({"type": "string", "enum": list(members)}),
    )


@lru_cache(maxsize=64)
def _fields_set(kind: type[Value]) -> set[str]:
    # All values of a class share the set: values are frozen, and copying a value copies its set.
    return set(kind.model_fields)


def built(kind: type[ValueT], fields: dict[str, Any]) -> ValueT:
    """Build a value from complete fields, like ``model_construct`` but faster.

    Args:
        fields: valid values of all fields of the class; the dictionary is used without a copy.
    """
    value = kind.__new__(kind)
    put = object.__setattr__  # the model's own raises, because values are frozen
    put(value, "__dict__", fields)
    put(value, "__pydantic_fields_set__", _fields_set(kind))
    put(value, "__pydantic_extra__", None)
    put(value, "__pydantic_private__", None)
    return value
