"""The store of one project; it outlives the project's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from memgraph.clock import Clock
from memgraph.context.stores import Store, add_bounded
from memgraph.errors import InvalidInput
from memgraph.ids import IdSource
from memgraph.model.context import ContextItem

if TYPE_CHECKING:
    from memgraph.context.backend import MemoryBackend


# What failed, however a program describes it.


FailureSignature: TypeAlias = Mapping[str, Any] | BaseModel | Any
"""A mapping, a pydantic model or a dataclass with a ``code``: a text, a number or an enum."""


def failure_fields(failure: FailureSignature) -> tuple[str, dict[str, Any]]:
    """Return the code of a failure as text, and all of it as plain JSON.

    Raises:
        InvalidInput: it is none of the three, has no code, or holds what JSON cannot.
    """
    told = _fields(failure)
    code = told.get("code")
    if isinstance(code, Enum):
        code = code.value
    if isinstance(code, bool) or not isinstance(code, str | int) or code == "":
        raise InvalidInput("a failure has a code", field="failure.code")
    try:
        plain: dict[str, Any] = to_jsonable_python(told, inf_nan_mode="strings")
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise InvalidInput("a failure holds what JSON cannot", field="failure") from error
    return str(code), plain


def _fields(failure: FailureSignature) -> dict[str, Any]:
    if isinstance(failure, BaseModel):
        return failure.model_dump()
    if isinstance(failure, Mapping):
        return dict(failure)
    if is_dataclass(failure) and not isinstance(failure, type):
        return asdict(failure)
    raise InvalidInput(
        "a failure is a mapping, a pydantic model or a dataclass with a code", field="failure"
    )


class ProjectMemoryStore(Store):
    """The decisions, conventions and failures of a project, invisible to other projects.

    Over ``max_items`` a tenth is evicted with the write that exceeded it, see
    ``memgraph.rules.lifecycle``.

    Attributes:
        project_id: of the project.
        max_items: 1 or more.
    """

    def __init__(
        self,
        project_id: str,
        backend: MemoryBackend,
        max_items: int = 1000,
        *,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        if max_items < 1:
            raise InvalidInput("max_items is 1 or more", field="max_items")
        super().__init__(backend, clock=clock, ids=ids)
        self.project_id = project_id
        self.max_items = max_items

    def add_decision(self, decision: str, tags: Iterable[str] = ()) -> ContextItem:
        """Store a decision.

        Raises:
            InvalidInput: the text is empty or too long, or a tag is no name.
        """
        return self._add(
            decision,
            kind="decision",
            tags=_tags(tags),
            importance=0.9,
            payload={"decision": decision},
        )

    def add_convention(self, convention: str, scope: str) -> ContextItem:
        """Store a convention, and what it applies to (``scope``: ``python``, ``commits`` …).

        Raises:
            InvalidInput: as ``add_decision``.
        """
        return self._add(
            convention,
            kind="convention",
            tags=[scope],
            importance=0.8,
            payload={"convention": convention, "scope": scope},
        )

    def add_failure(self, failure: FailureSignature, lesson: str) -> ContextItem:
        """Store a failure and the lesson from it.

        Raises:
            InvalidInput: as ``add_decision``; or see ``failures.failure_fields``.
        """
        code, told = failure_fields(failure)
        return self._add(
            lesson,
            kind="failure",
            tags=[code],
            importance=0.85,
            payload={"failure": told, "lesson": lesson},
        )

    def query_decisions(self, tags: Iterable[str] | None = None) -> list[ContextItem]:
        """Return decisions, newest first, 100 at most; with ``tags`` those that have any of
        them.
        """
        filters: dict[str, Any] = {"kind": "decision", "source": self._source}
        wanted = _tags(tags or ())
        if wanted:
            filters["tags"] = wanted
        return self.backend.query(filters, limit=100)

    @property
    def _source(self) -> str:
        return f"project/{self.project_id}"

    def _add(self, text: str, *, kind: str, tags: list[str], **fields: Any) -> ContextItem:
        said = self._statement(text)
        item = self._item(
            kind, said, kind=kind, source=self._source, tags=["project", kind, *tags], **fields
        )
        add_bounded(self.backend, item, self.max_items)
        return item


def _tags(tags: Iterable[str]) -> list[str]:
    if isinstance(tags, str):
        raise InvalidInput("tags is a list of texts", field="tags")
    return list(tags)
