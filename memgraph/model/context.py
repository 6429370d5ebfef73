"""Values for prompts: contexts and bulletins."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Final, TypedDict

from pydantic import AfterValidator, Field, model_validator

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryKind, MemoryType, Scope, Sensitivity
from memgraph.model.recall import MAX_TOKEN_BUDGET, MAX_TOP_N, Degraded, Mark, Names, Query
from memgraph.model.values import (
    Attributes,
    Count,
    Kind,
    Millis,
    Name,
    Unit,
    Value,
    spelled,
    with_preferences,
)

MAX_LEFT_OUT = 200

_SCOPES: Final = {scope.tier: scope for scope in Scope}
ContextTier = Annotated[Scope, *spelled({scope: tier for tier, scope in _SCOPES.items()})]
"""A scope, written ``task``, ``project`` or ``global``."""


def tier_of(name: Scope | str) -> Scope:
    """Return the scope of a tier. Raises InvalidInput: there is no such tier."""
    scope = name if isinstance(name, Scope) else _SCOPES.get(name)
    if scope is None:
        raise InvalidInput(f"tier must be one of: {', '.join(_SCOPES)}", field="tier")
    return scope


class BlockFormat(StrEnum):
    """The format of memories in a prompt.

    ``fenced``: numbered lines between random marks. ``list``: one line per memory under ``[Relevant
    Memory]``. ``sections``: Markdown with the headings ``## Relevant memory`` and ``## Weekly
    insight``.
    """

    FENCED = "fenced"
    LIST = "list"
    SECTIONS = "sections"


def _time(text: str) -> str:
    try:
        parse_time(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from error
    return text


Timestamp = Annotated[Name, AfterValidator(_time)]
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKEN_BUDGET)]


class ContextItem(Value):
    """An item of a task, a project or the global tier.

    Attributes:
        context_item_id: unique within its tier.
        kind: any word, for instance ``reasoning``, ``decision`` or ``preference``.
        source: its origin, for instance ``project/web``.
        timestamp: ISO 8601, stored as written.
        importance: 0..1; None: unknown.
        token_cost: tokens of its text; None: not counted.
        payload: JSON.
    """

    context_item_id: Name
    kind: Name
    source: Name
    timestamp: Timestamp
    tags: Names = ()
    importance: Unit | None = None
    token_cost: Tokens | None = None
    payload: Attributes = Field(default_factory=dict)


class TierShares(Value):
    """The relative shares of a token budget; they need not add up to 1.

    Raises:
        pydantic.ValidationError: all are 0, or one is outside 0..1.
    """

    task: Unit = 0.4
    project: Unit = 0.4
    global_tier: Unit = 0.2

    @model_validator(mode="after")
    def _something(self) -> TierShares:
        if self.task + self.project + self.global_tier <= 0:
            raise ValueError("at least one share must be above 0")
        return self

    def of(self, tier: Scope) -> float:
        """Return the share of one tier."""
        return {Scope.SESSION: self.task, Scope.PROJECT: self.project}.get(tier, self.global_tier)


class Task(Value):
    """The current task. ``metadata["project_id"]`` is used if ``project_id`` is None."""

    task_id: Name
    project_id: Name | None = None
    metadata: Attributes = Field(default_factory=dict)

    @property
    def project(self) -> str | None:
        """The id of the project, from either field."""
        project_id: Any = self.metadata.get("project_id")
        return self.project_id or (
            project_id if isinstance(project_id, str) and project_id else None
        )


class AgentProfile(Value):
    """The defaults for an agent's requests. None: as in the settings.

    Raises:
        pydantic.ValidationError: a field is invalid or unknown.
    """

    name: Name
    agent_id: Name | None = None
    clearance: Sensitivity | None = None
    budget_tokens: Tokens | None = None
    shares: TierShares | None = None
    head_tail: Annotated[int, Field(ge=0, le=1_000)] | None = None
    format: BlockFormat | None = None


class ContextRequest(Value):
    """A request for a context. None: as in the profile, or else in the settings.

    Attributes:
        query: the message or the step's prompt; empty: the most important memories.
        budget_tokens: the maximum tokens of the rendered block, including marks, as estimated by
            ``memgraph.rules.budget``.
        head_tail: this many of the task's first and of its last items precede others.
        max_items: the maximum number of memories.
        kinds, types, tags: as in ``RecallRequest``.
        exclude_session_id: the current conversation, which the reader already has.
        conversation_id, workflow_run_id, step_id: the receiver, stored in the receipt.
    """

    query: Query = ""
    budget_tokens: Tokens | None = None
    shares: TierShares | None = None
    head_tail: Annotated[int, Field(ge=0, le=1_000)] | None = None
    format: BlockFormat | None = None
    max_items: Annotated[int, Field(ge=1, le=MAX_TOP_N)] = 100
    kinds: tuple[Kind, ...] = ()
    types: tuple[MemoryType, ...] = ()
    tags: Names = ()
    exclude_session_id: Name | None = None
    conversation_id: Name | None = None
    workflow_run_id: Name | None = None
    step_id: Name | None = None

    _preferences = model_validator(mode="before")(with_preferences)


class ContextBody(ContextRequest):
    """A request for the context of a task, which is given itself or by its id."""

    task: Task | Name | None = None


class ContextFields(TypedDict, total=False):
    """The fields of a ``ContextRequest``."""

    query: str
    budget_tokens: int | None
    shares: TierShares | Mapping[str, Any] | None
    head_tail: int | None
    format: BlockFormat | str | None
    max_items: int
    kinds: Collection[MemoryKind | str]
    types: Collection[MemoryType | str]
    tags: Collection[str]
    exclude_session_id: str | None
    conversation_id: str | None
    workflow_run_id: str | None
    step_id: str | None


class PackedItem(Value):
    """An item of a context and the reasons for its selection.

    Attributes:
        text: the rendered text.
        shortened: parts of the text were replaced by `` … ``; a receipt lists this among the
            reasons.
        token_cost: the number of tokens of its rendered line.
        reasons: any of ``head``, ``tail``, ``recall:<rank>``, ``importance`` and
            ``beside:<memory id>``.
        citation: its source in one line; for a file the full path, while the rendered line has
            only the file name.
        at: the time of the event, or else of storing.
        confidence: after decay, 0..1.
    """

    item: ContextItem
    tier: ContextTier
    memory_id: str
    kind: MemoryKind
    type: MemoryType
    text: str
    shortened: bool
    token_cost: int
    reasons: tuple[str, ...]
    citation: str
    at: Millis
    confidence: float


class OmittedMemory(Value):
    """A memory that was considered but is not in the context.

    ``reason``: ``over_budget``, ``too_large`` (larger than the whole budget), ``max_items``,
    ``duplicate`` (another memory with the same text was preferred, a fact over a turn) or
    ``query`` (it only repeats the query).
    """

    memory_id: str
    tier: ContextTier
    reason: str
    token_cost: int


class TierUse(Value):
    """The tokens and items of a tier.

    ``share_tokens`` is its share before unused shares were redistributed.
    """

    share_tokens: int
    spent: int
    offered: int
    chosen: int


class ContextPackage(Value):
    """A context within its budget.

    The same database, request, clock and id source give the same package.

    Attributes:
        text: the rendered block; empty if there are no items.
        token_cost: the estimated tokens of ``text``; never above ``budget_tokens``.
        left_out: the best omitted memories, at most 200; ``left_out_count`` counts all.
        compression_ratio: the tokens of the chosen texts divided by those of all considered ones;
            1.0 if there were none.
        receipt_id: the receipt, which lists exactly the memories of ``items``.
        summary: always None: texts are not summarised.
    """

    context_package_id: str
    task_id: str | None
    at: Millis
    items: tuple[PackedItem, ...]
    text: str
    format: BlockFormat
    token_cost: int
    budget_tokens: int
    tiers: dict[ContextTier, TierUse]
    left_out: tuple[OmittedMemory, ...]
    left_out_count: int
    compression_ratio: float
    receipt_id: str
    degraded: tuple[Degraded, ...] = ()
    summary: str | None = None

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The memory ids of the items, in order."""
        return tuple(item.memory_id for item in self.items)


class BlockMemory(Value):
    """A memory in a block: the parts of its line, and what only the caller needs.

    Attributes:
        text: the text in the line.
        shortened: parts of the text were replaced by ``…``.
        at: when it was said or written; None: unknown.
        speaker: the speaker of a turn; None for other memories, which show their type.
        citation: its source in one line; for a file the full path.
        confidence: 0..1, after decay.
        score: comparable only within one block; 0 for a memory that only accompanies another.
        until: when it ceased to be valid.
        replaced_by, replaces, contradicts: the numbers of other lines.
        changed_by, changes: the numbers of lines that probably changed it, and the reverse.
        marks: the edges behind that, with the ids of the other memories, in the block or not.
    """

    memory_id: str
    kind: MemoryKind
    type: MemoryType
    text: str
    shortened: bool
    at: Millis | None
    speaker: str | None
    citation: str
    confidence: float
    score: float
    until: Millis | None = None
    replaced_by: tuple[int, ...] = ()
    replaces: tuple[int, ...] = ()
    contradicts: tuple[int, ...] = ()
    changed_by: tuple[int, ...] = ()
    changes: tuple[int, ...] = ()
    marks: tuple[Mark, ...] = ()


class BlockProfile(Value):
    """What a language model wrote about the entity that a message names; line 0 of a block.

    Attributes:
        text: its line, without the end.
        memory_ids: the memories that it cites.
        read: the memories that it was made of.
    """

    entity_id: str
    text: str
    memory_ids: tuple[str, ...]
    read: tuple[str, ...]


class ContextBlock(Value):
    """The result of ``orc.context()``: text for a prompt, and the memories in it.

    Attributes:
        text: the text; empty if nothing is related.
        memories: every memory in the text, by the number of its line, from 1.
        profile: the first line, if the message names an entity that has a summary.
        left_out: the number of further related memories that did not fit.
        token_cost: the estimated tokens of the text, at most the budget.
    """

    text: str
    format: BlockFormat
    memories: dict[int, BlockMemory]
    profile: BlockProfile | None = None
    left_out: Count
    receipt_id: str
    token_cost: int
    degraded: tuple[Degraded, ...] = ()

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids of the memories, in the order of the text."""
        return tuple(memory.memory_id for memory in self.memories.values())


class Citation(Value):
    """A memory that an answer cites.

    Attributes:
        number: the number of its line, which the answer has in brackets.
        line: the line as the model read it.
    """

    number: int
    memory_id: str
    line: str


class Answer(Value):
    """The result of ``orc.ask()``: an answer whose every sentence cites lines of a block.

    Attributes:
        text: the sentences, each followed by the numbers of its lines in brackets; ``not in
            memory`` without an answer.
        answered: False if the memories do not answer the question, or nothing is related to it.
        citations: the cited memories, by number; several for number 0, which is a profile.
        model: the model that answered.
        receipt_id: the receipt, which has the block, the answer and its citations.
    """

    text: str
    answered: bool
    citations: tuple[Citation, ...]
    model: str
    receipt_id: str
    degraded: tuple[Degraded, ...] = ()

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The ids of the cited memories."""
        return tuple(dict.fromkeys(citation.memory_id for citation in self.citations))


class BulletinLine(Value):
    """A line of a bulletin as printed: a memory, or a reference to lines of other sections."""

    text: str
    memory_ids: tuple[str, ...]


class Bulletin(Value):
    """A bulletin: its six sections and their text.

    Attributes:
        sections: chosen lines by section name, all six present.
        text: the lines under their headings, between two marks; at most ``max_chars`` characters.
        change_seq: the last journal entry that it reflects; 0 if it is empty.
        view_key: the key of its view and size limits; see ``view_key``.
        size: the number of characters of ``text``.
        left_out: by section, the number of offered entries that did not fit. A section is offered
            one entry for every 300 characters of the limit, so this does not count stored memories.
    """

    sections: dict[str, tuple[BulletinLine, ...]]
    text: str
    change_seq: Count
    view_key: str
    size: Count
    left_out: dict[str, Count]

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The cited memory ids, each once, in the order of the text."""
        cited = (
            memory_id
            for lines in self.sections.values()
            for line in lines
            for memory_id in line.memory_ids
        )
        return tuple(dict.fromkeys(cited))


@dataclass(frozen=True, slots=True)
class BuiltBulletin:
    """A bulletin with its warning and its receipt.

    Attributes:
        warning: None if it is current; ``bulletin.stale`` for the last good one, which may be older
            than the last change; ``bulletin.empty`` if there is none.
        cause: the code of the error that caused the warning.
        receipt_id: the id of its receipt; None if it could not be written.
    """

    bulletin: Bulletin
    warning: str | None = None
    cause: str | None = None
    receipt_id: str | None = field(default=None, compare=False)
