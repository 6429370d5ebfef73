"""Reading what is stored, one by one and in lists; what a viewer may not see is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import sqlalchemy as sa

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import MemoryKind, MemoryStatus, MemoryType
from memgraph.model.receipts import Receipt, ReceiptList
from memgraph.model.values import Memory
from memgraph.policy.scope import Viewer
from memgraph.service.opened import Opened
from memgraph.storage import (
    edges,
    embeddings,
    entities,
    ingest_files,
    journal,
    memories,
    receipt_queries,
    receipts,
)
from memgraph.storage.item_queries import is_id
from memgraph.storage.memories import Filter
from memgraph.storage.visibility import View

MAX_PAGE = 1_000
MAX_RECEIPTS_LOOKED_AT = 10_000

EnumT = TypeVar("EnumT", bound=StrEnum)


def get(opened: Opened, viewer: Viewer, memory_id: str) -> Memory:
    """Raises NotFound: there is none, or the viewer may not see it; both sound the same."""
    with opened.database.read() as connection:
        found = memories.select(connection, View(viewer), Filter(memory_ids=(memory_id,)), limit=1)
    if not found:
        raise NotFound(f"no memory {memory_id[:80]!r}", memory_id=memory_id[:80])
    return found[0]


def receipt(opened: Opened, view: View, receipt_id: str) -> Receipt:
    """Those that wait are written first.

    Raises:
        NotFound: as ``get`` does.
        InvalidInput: it is no id.
    """
    if not is_id(receipt_id):
        raise InvalidInput("the id of a receipt is a text", field="receipt_id")
    opened.receipts.flush()
    with opened.database.read() as connection:
        found = receipts.read(connection, receipt_id)
        if found is not None and receipts.all_visible(connection, view, _named(found)):
            return found
    raise NotFound(
        f"no receipt {receipt_id[:80]!r}; one of a task or a project is there only for a handle"
        " that sees these",
        receipt_id=receipt_id[:80],
    )


def receipt_list(
    opened: Opened, view: View, asked: Mapping[str, str | None], *, limit: int
) -> ReceiptList:
    """The newest receipts that ``receipt`` would give; see ``ReadingHandle.receipts``."""
    wanted = {name: value for name, value in asked.items() if value is not None}
    for name, value in wanted.items():
        if not is_id(value):
            raise InvalidInput(f"{name} is a text", field=name)
    if not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit lies between 1 and {MAX_PAGE}", limit=limit)
    opened.receipts.flush()
    seen: list[Receipt] = []
    with opened.database.read() as connection:
        for one in receipt_queries.newest(connection, wanted, most=MAX_RECEIPTS_LOOKED_AT):
            found = receipts.read(connection, one)
            if found is not None and _listed(connection, view, found):
                seen.append(found)
            if len(seen) > limit:
                break
        cut = len(seen) > limit
        cut = cut or receipt_queries.are_more_than(connection, MAX_RECEIPTS_LOOKED_AT)
    return ReceiptList(tuple(seen[:limit]), cut)


def _listed(connection: sa.Connection, view: View, found: Receipt) -> bool:
    named = _named(found)
    if not named:
        # Nothing in it says who may see it; but its query is of the place that it was asked for.
        return _is_of(view.viewer, found.asked)
    return receipts.all_visible(connection, view, named)


def _named(found: Receipt) -> list[str]:
    """Every memory that a receipt names."""
    bulletin = found.asked.get("bulletin", {}).get("memory_ids", ())
    return [*(item.memory_id for item in found.items), *bulletin]


def _is_of(viewer: Viewer, asked: Mapping[str, Any]) -> bool:
    """Whether a viewer sees the task, the project and the agent that a receipt was for."""
    task_id, project_id, agent_id = (asked.get(f"{one}_id") for one in ("task", "project", "agent"))
    if task_id is not None and task_id not in viewer.session_ids:
        return False
    if project_id is not None and project_id not in viewer.project_ids:
        return False
    own = viewer.agent_id is None or agent_id == viewer.agent_id
    return own or (viewer.shared and agent_id is None)


def listing(
    opened: Opened,
    viewer: Viewer,
    *,
    types: Sequence[MemoryType],
    kinds: Sequence[MemoryKind],
    statuses: Sequence[MemoryStatus],
    tags: Sequence[str],
    session_id: str | None,
    before: str | None,
    limit: int,
) -> list[Memory]:
    """Newest first; ``before`` is the last id of the page before.

    Raises:
        InvalidInput: a limit outside 1..1000, an unknown type, kind or status.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit lies between 1 and {MAX_PAGE}", limit=limit)
    chosen = Filter(
        types=members(MemoryType, types),
        kinds=members(MemoryKind, kinds),
        tags=tuple(tags),
        session_id=session_id,
        before=before,
    )
    view = View(viewer, statuses=frozenset(members(MemoryStatus, statuses)) or None)
    with opened.database.read() as connection:
        return memories.select(connection, view, chosen, limit=limit)


def members(enum: type[EnumT], values: Iterable[EnumT | str]) -> tuple[EnumT, ...]:
    """Members of an enum, given as such or by their values.

    Raises:
        InvalidInput: there is no such member.
    """
    try:
        return tuple(enum(each) for each in values)
    except ValueError:
        known = [each.value for each in enum]
        raise InvalidInput(f"{enum.__name__} is one of: {', '.join(known)}", known=known) from None


def stats(opened: Opened) -> dict[str, Any]:
    """Counts over everything stored, and the sizes on disk in bytes."""
    with opened.database.read() as connection:
        seq, _ = journal.head(connection)
        found = {
            "orchestrator": opened.database.orchestrator_id,
            "memories": memories.counts(connection),
            "edges": edges.counts(connection),
            "entities": entities.count(connection),
            "embeddings": embeddings.state_counts(connection),
            "ingest": ingest_files.counts(connection),
            "journal_entries": seq,
            "schema": _schema(connection),
        }
    files = {each.name: each.stat().st_size for each in _database_files(opened)}
    return {**found, "bytes": files, "embedding_model_changed": opened.other_model is not None}


def _schema(connection: sa.Connection) -> str:
    return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one())


def _database_files(opened: Opened) -> list[Any]:
    base = opened.database.path
    files = (base, base.with_name(base.name + "-wal"))
    return [each for each in files if each.exists()]
