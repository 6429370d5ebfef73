"""The item stores of tasks, of projects and of the global tier, and their backends."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypedDict, Unpack, runtime_checkable

from pydantic_core import PydanticSerializationError, to_jsonable_python

from memgraph.clock import Clock, SystemClock, iso
from memgraph.context.assembly import ConfirmationCallback, confirmed
from memgraph.context.items import checked, text_key
from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.ids import IdSource, UlidSource
from memgraph.model.context import ContextItem
from memgraph.model.values import validated
from memgraph.rules.budget import token_cost
from memgraph.rules.filters import MAX_LIMIT, matches, ordered, parse, parse_limit, parse_order
from memgraph.rules.lifecycle import evicted, excess

OLDEST_FIRST = "-timestamp"


class Sources(TypedDict, total=False):
    """The clock and the id source of a store."""

    clock: Clock | None
    ids: IdSource | None


@runtime_checkable
class MemoryBackend(Protocol):
    """The items of one task, of one project or of the global tier. Thread-safe."""

    def add(self, item: ContextItem) -> None:
        """Store an item, replacing one with the same id; an equal item is not stored again.

        Raises:
            InvalidInput: the item cannot be stored; see
                ``memgraph.context.items.memory_input_of``.
            StorageError: the item was not stored.
        """
        ...

    def query(
        self, filters: Mapping[str, Any], limit: int = 100, order_by: str = "timestamp"
    ) -> list[ContextItem]:
        """Return the items that pass a filter, sorted.

        Args:
            filters: see ``memgraph.rules.filters``. Every item passes an empty filter.
            limit: 1 to 1,000,000 items.
            order_by: a field, descending; a leading ``-`` makes it ascending. Ties are broken by
                id, the lowest first. Items without the field come last in both directions.

        Raises:
            InvalidInput: an argument is invalid.
        """
        ...

    def get(self, item_id: str) -> ContextItem | None:
        """Return the item with that id, or None."""
        ...

    def delete(self, item_id: str) -> bool:
        """Remove an item; return False if there is none with that id."""
        ...

    def list_all(self) -> list[ContextItem]:
        """Return every item, oldest first, ties by id."""
        ...

    def clear(self) -> int:
        """Remove every item; return the number of removed items."""
        ...

    def count(self) -> int:
        """Return the number of items."""
        ...


class InMemoryBackend:
    """Keeps items in memory until the process ends, for tests and temporary data."""

    def __init__(self) -> None:
        self._items: dict[str, ContextItem] = {}
        self._lock = threading.RLock()

    def add(self, item: ContextItem) -> None:
        stored = checked(item)
        with self._lock:
            self._items[stored.context_item_id] = stored

    def query(
        self, filters: Mapping[str, Any], limit: int = 100, order_by: str = "timestamp"
    ) -> list[ContextItem]:
        terms, order, max_count = parse(filters), parse_order(order_by), parse_limit(limit)
        with self._lock:
            items = list(self._items.values())
        matching = ordered((item for item in items if matches(item, terms)), order)
        return [item.model_copy(deep=True) for item in matching[:max_count]]

    def get(self, item_id: str) -> ContextItem | None:
        with self._lock:
            item = self._items.get(item_id)
        return None if item is None else item.model_copy(deep=True)

    def delete(self, item_id: str) -> bool:
        with self._lock:
            return self._items.pop(item_id, None) is not None

    def list_all(self) -> list[ContextItem]:
        with self._lock:
            items = list(self._items.values())
        return [item.model_copy(deep=True) for item in ordered(items, parse_order(OLDEST_FIRST))]

    def clear(self) -> int:
        with self._lock:
            number = len(self._items)
            self._items.clear()
            return number

    def count(self) -> int:
        with self._lock:
            return len(self._items)


MAX_OUTPUT_CHARS: Final = 12_000
"""Maximum characters of an output as JSON, so that it fits into a payload with other fields."""


def output_payload(output: Any) -> tuple[str, dict[str, Any]]:
    """Return the text of an output, and the payload that stores it.

    The payload has the ``output`` unchanged if it is at most ``MAX_OUTPUT_CHARS`` characters as
    JSON. Otherwise ``output`` is the text, or the JSON of another value, without its middle;
    ``shortened`` is true, ``length`` is the number of characters of the whole, and ``sha256`` its
    digest as UTF-8.

    Raises:
        InvalidInput: the output is not plain JSON.
    """
    written = _json(output)
    text = output if isinstance(output, str) else written
    if len(written) <= MAX_OUTPUT_CHARS:
        return text, {"output": output}
    shortened_text = shortened(text, MAX_OUTPUT_CHARS)
    return shortened_text, {
        "output": shortened_text,
        "shortened": True,
        "length": len(text),
        "sha256": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def shortened(text: str, limit: int) -> str:
    """Shorten a text to ``limit`` characters as JSON; a text within the limit is unchanged.

    About two thirds of the result come from the beginning and one third from the end, with a mark
    between them. A control character takes six characters as JSON.
    """
    room = limit
    result = text
    while len(_json(result)) > limit:
        head = room * 2 // 3
        tail = room - head
        mark = f"\n[… {len(text) - room:,} characters left out …]\n"
        result = text[:head] + mark + text[len(text) - tail :]
        room = room * 9 // 10
    return result


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("an output must be text or plain JSON", field="output") from error


@runtime_checkable
class BoundedBackend(Protocol):
    """A backend that can add an item and evict the excess in one transaction."""

    def add_bounded(self, item: ContextItem, max_items: int) -> Sequence[str]:
        """Add an item; return the ids of the evicted items."""
        ...


class ItemStore:
    """The base class of the three stores: builds items and writes them to a backend.

    Args:
        backend: stores the items.
        clock: the source of timestamps; by default the system clock.
        ids: the source of ids; by default ULIDs.
    """

    marker: str

    def __init__(
        self, backend: MemoryBackend, *, clock: Clock | None = None, ids: IdSource | None = None
    ) -> None:
        self.backend = backend
        self._clock = clock or SystemClock()
        self._ids = ids or UlidSource(self._clock)

    @property
    def _source(self) -> str:
        return self.marker

    def _item(self, prefix: str, text: Any, tags: Iterable[str], **fields: Any) -> ContextItem:
        """Return a new item with the current time. Raises InvalidInput if the text is blank."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("the text must not be blank", field="text")
        if isinstance(tags, str):
            raise InvalidInput("tags must be a list of texts", field="tags")
        defaults = {
            "context_item_id": self._ids.new(f"{prefix}-"),
            "source": self._source,
            "timestamp": iso(self._clock.now_ms()),
            "tags": tuple(dict.fromkeys((self.marker, *tags))),
            "token_cost": token_cost(text),
        }
        return validated(ContextItem, defaults | fields)

    def _add(
        self, kind: str, text: str, tags: Iterable[str], importance: float, **payload: Any
    ) -> ContextItem:
        """Store a new item of a kind, which is its first tag and begins its id."""
        tags = tags if isinstance(tags, str) else (kind, *tags)
        return self._put(
            self._item(kind, text, tags, kind=kind, importance=importance, payload=payload)
        )

    def _put(self, item: ContextItem) -> ContextItem:
        self.backend.add(item)
        return item

    def _query(self, kind: str, tags: Iterable[str]) -> list[ContextItem]:
        """Return at most 100 items of a kind with any of the tags, newest first."""
        filters: dict[str, Any] = {"kind": kind, "source": self._source}
        wanted = tags if isinstance(tags, str) else list(tags)
        return self.backend.query(filters | ({"tags": wanted} if wanted else {}), limit=100)


class TaskMemoryStore(ItemStore):
    """Stores the reasoning and the tool outputs of a task; other tasks do not see them.

    The host calls ``clear`` when the task has ended, after promoting the items worth keeping.

    Attributes:
        task_id: the id of the task.
        backend: stores the items; by default in memory.
    """

    marker = "task"

    def __init__(
        self, task_id: str, backend: MemoryBackend | None = None, **sources: Unpack[Sources]
    ) -> None:
        super().__init__(InMemoryBackend() if backend is None else backend, **sources)
        self.task_id = task_id

    def add_reasoning(self, text: str, stage_id: str) -> ContextItem:
        """Store the reasoning of a stage.

        Raises:
            InvalidInput: the text is blank or too long, or an id is not a valid name.
        """
        item = self._item(
            f"reasoning-{stage_id}",
            text,
            (stage_id,),
            kind="reasoning",
            source=f"{self._source}/{stage_id}",
            importance=0.5,
            payload={"text": text},
        )
        return self._put(item)

    def add_tool_output(
        self, tool_id: str, output: Any, stage_id: str | None = None
    ) -> ContextItem:
        """Store the output of a tool: a text or plain JSON.

        An output that is too long for an item is shortened; see ``output_payload``.

        Args:
            stage_id: the stage that called the tool; None: the task as a whole.

        Raises:
            InvalidInput: the output is not plain JSON, or an id is not a valid name.
        """
        text, payload = output_payload(output)
        stages = () if stage_id is None else (stage_id,)
        item = self._item(
            f"tool-{tool_id}",
            text or _json(output),
            ("tool", tool_id, *stages),
            kind="tool_output",
            source="/".join((self._source, *stages)),
            importance=0.7,
            payload={"tool_id": tool_id, **payload},
        )
        return self._put(item)

    def get_stage_outputs(self, stage_id: str) -> list[ContextItem]:
        """Return the reasoning and the tool outputs of a stage, newest first."""
        return self.backend.query({"source": f"{self._source}/{stage_id}"}, limit=MAX_LIMIT)

    def clear(self) -> None:
        """Remove all items of the finished task.

        In a database the items are retracted with the reason ``task_closed``. This does not refute
        them, so memories derived from them stay active.
        """
        self.backend.clear()

    @property
    def _source(self) -> str:
        return f"task/{self.task_id}"


class GlobalMemoryStore(ItemStore):
    """Stores global preferences and patterns, which are never evicted.

    They are part of every prompt. A person must consent to adding or changing a preference and to
    clearing the store, but not to adding a pattern or to reading.

    Attributes:
        confirmation_callback: asks for consent; without it changes that need consent are refused.
    """

    marker = "global"

    def __init__(
        self,
        backend: MemoryBackend,
        confirmation_callback: ConfirmationCallback | None = None,
        **sources: Unpack[Sources],
    ) -> None:
        super().__init__(backend, **sources)
        self.confirmation_callback = confirmation_callback

    def add_preference(
        self, preference: str, category: str, require_confirmation: bool = True
    ) -> ContextItem | None:
        """Store a person's preference about ``style``, ``verbosity``, ``tools`` …

        Args:
            require_confirmation: False: the caller guarantees that the person has consented.

        Returns:
            The item; None if the person declined.

        Raises:
            InvalidInput: the text is blank or too long, or the category is not a valid name.
            ConfirmationMissing: the callback returned no answer.
        """
        item = self._item(
            "pref",
            preference,
            ("preference", category),
            kind="preference",
            importance=0.9,
            payload={"preference": preference, "category": category},
        )
        question = f"Add global preference: {preference!r} (category: {category})?"
        return None if require_confirmation and not self._consent(question) else self._put(item)

    def change_preference(
        self, context_item_id: str, preference: str, require_confirmation: bool = True
    ) -> ContextItem | None:
        """Replace the text of any preference, and keep its id and its other fields.

        Args, Returns: see ``add_preference``.

        Raises:
            InvalidInput, ConfirmationMissing: see ``add_preference``.
            NotFound: no preference has that id.
            Conflict: the preference was changed while the person was asked.
        """
        old = self.backend.get(context_item_id)
        if old is None or old.kind != "preference":
            raise NotFound(f"no preference {context_item_id[:80]!r}")
        # A promoted or remembered preference has its text under another key than an added one.
        key = text_key(old.payload) or "preference"
        fresh = self._item("pref", preference, (), kind=old.kind)
        new = {name: getattr(fresh, name) for name in ("timestamp", "token_cost")}
        payload = {**old.payload, key: preference}
        item = validated(ContextItem, {**dict(old), **new, "payload": payload})
        question = (
            f"Change global preference: {old.payload.get(key)!r} to {preference!r}"
            f" (category: {old.payload.get('category')})?"
        )
        if require_confirmation and not self._consent(question):
            return None
        if self.backend.get(context_item_id) != old:
            raise Conflict("the preference has been changed", context_item_id=context_item_id)
        return self._put(item)

    def add_pattern(self, pattern: str, domain: str) -> ContextItem:
        """Store a pattern that proved itself in a domain.

        Raises:
            InvalidInput: the text is blank or too long, or the domain is not a valid name.
        """
        return self._add("pattern", pattern, (domain,), 0.7, pattern=pattern, domain=domain)

    def query_preferences(self, category: str | None = None) -> list[ContextItem]:
        """Return at most 100 preferences, of one category or all, newest first."""
        return self._query("preference", [category] if category else ())

    def clear_all(self) -> bool:
        """Remove all global items; return False if the person declined.

        Raises:
            ConfirmationMissing: the callback returned no answer.
        """
        if not self._consent("DANGER: Clear ALL global memory? This cannot be undone."):
            return False
        self.backend.clear()
        return True

    def _consent(self, question: str) -> bool:
        return confirmed(self.confirmation_callback, question)


class ProjectMemoryStore(ItemStore):
    """Stores the decisions, conventions and failures of a project; other projects do not see them.

    A write that exceeds ``max_items`` also evicts a tenth of the items; see
    ``memgraph.rules.lifecycle``.

    Attributes:
        project_id: the id of the project.
        max_items: the maximum number of items, 1 or more.
    """

    marker = "project"

    def __init__(
        self,
        project_id: str,
        backend: MemoryBackend,
        max_items: int = 1000,
        **sources: Unpack[Sources],
    ) -> None:
        excess(0, max_items)
        super().__init__(backend, **sources)
        self.project_id = project_id
        self.max_items = max_items

    def add_decision(self, decision: str, tags: Iterable[str] = ()) -> ContextItem:
        """Store a decision.

        Raises:
            InvalidInput: the text is blank or too long, or a tag is not a valid name.
        """
        return self._add("decision", decision, tags, 0.9, decision=decision)

    def add_convention(self, convention: str, scope: str) -> ContextItem:
        """Store a convention and its ``scope``: ``python``, ``commits`` …

        Raises:
            InvalidInput: see ``add_decision``.
        """
        return self._add(
            "convention", convention, (scope,), 0.8, convention=convention, scope=scope
        )

    def add_failure(self, failure: object, lesson: str) -> ContextItem:
        """Store a failure and the lesson from it.

        Raises:
            InvalidInput: see ``add_decision`` and ``failure_fields``.
        """
        code, fields = failure_fields(failure)
        return self._add("failure", lesson, (code,), 0.85, failure=fields, lesson=lesson)

    def query_decisions(self, tags: Iterable[str] | None = None) -> list[ContextItem]:
        """Return at most 100 decisions, newest first; with ``tags`` only those with any of them."""
        return self._query("decision", tags or ())

    @property
    def _source(self) -> str:
        return f"project/{self.project_id}"

    def _put(self, item: ContextItem) -> ContextItem:
        if isinstance(self.backend, BoundedBackend):
            self.backend.add_bounded(item, self.max_items)
            return item
        self.backend.add(item)
        if self.backend.count() > self.max_items:
            items = self.backend.list_all()
            for item_id in evicted(items, self.max_items, new=item.context_item_id):
                self.backend.delete(item_id)
        return item


def failure_fields(failure: object) -> tuple[str, dict[str, Any]]:
    """Return the code of a failure as text, and all its fields as plain JSON.

    Args:
        failure: a mapping, pydantic model or dataclass whose ``code`` is a text, integer or enum.

    Raises:
        InvalidInput: it is none of these, has no code, or contains a value that JSON cannot
            represent.
    """
    try:
        fields = to_jsonable_python(failure, inf_nan_mode="strings")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise InvalidInput(
            "a failure contains a value that JSON cannot represent", field="failure"
        ) from error
    code = fields.get("code") if isinstance(fields, dict) else None
    if isinstance(code, bool) or not isinstance(code, str | int) or code == "":
        raise InvalidInput(
            "a failure must be a mapping, a pydantic model or a dataclass with a code",
            field="failure.code",
        )
    return str(code), fields
