"""The memories of an orchestrator as a collection: list, count, store and forget them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Unpack

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.errors import Conflict, InvalidInput, MemgraphError, NotFound
from memgraph.model.access import Permission
from memgraph.model.enums import KindFilter, MemoryKind, MemoryStatus, MemoryType
from memgraph.model.operation import AsOf, F, Time, WireFormat, WireResult, operation
from memgraph.model.remote import (
    MAX_BATCH,
    ForgetOutcome,
    ForgetOutcomes,
    LatestReflection,
    MemoryCounts,
    MemoryPage,
    RememberResult,
)
from memgraph.model.values import (
    Memory,
    MemoryFields,
    MemoryInput,
    Name,
    Outcome,
    Reason,
    one_of,
    validated,
    with_preferences,
)
from memgraph.operations.handle import WritingHandle

TypesFilter = Annotated[
    Sequence[MemoryType],
    WireFormat(list[MemoryType], "type"),
    Field(description="Only memories of these types."),
]
KindsFilter = Annotated[
    Sequence[KindFilter | str],
    WireFormat(list[KindFilter], "kind"),
    Field(description="Only memories of these kinds."),
]
StatusesFilter = Annotated[
    Sequence[MemoryStatus],
    # Over the wire, no statuses means active ones, so send all of them for no filter.
    WireFormat(list[MemoryStatus], "status", lambda given: given or tuple(MemoryStatus)),
    Field(description="Only memories with these statuses."),
]
TagsFilter = Annotated[
    Sequence[str],
    WireFormat(list[Name], "tag"),
    Field(description="Only memories with all these tags."),
]


class Memories(WritingHandle[F], group="memories"):
    """Memories as a collection: ``orc.memories``."""

    @operation(
        Permission.READ,
        "GET /memories",
        answer=WireResult(MemoryPage, cursor=lambda memory: memory.memory_id),
        id="list_memories",
        command="list",
    )
    def list(
        self,
        *,
        types: TypesFilter = (),
        kinds: KindsFilter = (),
        statuses: StatusesFilter = (MemoryStatus.ACTIVE,),
        tags: TagsFilter = (),
        session_id: Annotated[
            Name | None, Field(description="Only memories of this session.")
        ] = None,
        before: Annotated[
            str | None,
            WireFormat(Name, "cursor"),
            Field(description="`next_cursor` of the previous page."),
        ] = None,
        limit: Annotated[
            int, Field(ge=1, le=MAX_BATCH, description="Maximum number of memories.")
        ] = 50,
        as_of: AsOf = None,
        since: Annotated[Time | None, Field(description="Stored at this time or later.")] = None,
        until: Annotated[Time | None, Field(description="Stored at this time or before.")] = None,
        source_path: Annotated[
            Name | None, Field(description="Only memories from this file, by its full path.")
        ] = None,
    ) -> Sequence[Memory]:
        """Return a page of memories, newest first; concurrent writes do not shift pages.

        An empty filter matches everything. Erased memories match only the status ``erased``.

        Args:
            tags: a memory must have all of them.
            before: the last id of the previous page.
            limit: 1..1,000 memories.
            as_of: return the memories stored by then, with their statuses at that time.

        Raises:
            InvalidInput: the limit is out of range, a type, kind or status is unknown, ``before``
                is no string, or a text cannot be stored.
            NotFound: ``before`` is not a visible memory.
        """
        from memgraph.store.graph import visible_memory
        from memgraph.store.memories import MemoryFilter, select

        if before is not None and not isinstance(before, str):
            raise InvalidInput("before must be the id of a memory", field="before")
        try:
            wanted = with_preferences({"kinds": kinds, "types": types})
        except ValueError as error:
            raise InvalidInput(str(error), field="kinds") from None
        filters = MemoryFilter(
            types=tuple(one_of(MemoryType, each, "types") for each in wanted["types"]),
            kinds=tuple(MemoryKind(one_of(KindFilter, each, "kinds")) for each in wanted["kinds"]),
            tags=tuple(tags),
            session_id=session_id,
            before=before,
            statuses=frozenset(one_of(MemoryStatus, each, "statuses") for each in statuses),
            since=None if since is None else parse_time(since),
            until=None if until is None else parse_time(until),
            source_path=source_path,
        )
        view = self._view_at(as_of)
        view = replace(view, statuses=filters.stored(view.as_of))
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            rows = select(snapshot, view, filters, limit=limit)
            if before is not None and not rows:
                # Otherwise an unknown cursor would look like the end of the list.
                visible_memory(snapshot, before, self._view)
            return rows

    @operation(
        Permission.WRITE,
        "POST /memories",
        id="remember",
        body=MemoryInput,
        answer=WireResult(
            RememberResult, RememberResult.of, lambda told: Outcome(**told.model_dump())
        ),
        status=201,
    )
    def store(self, content: str, **fields: Unpack[MemoryFields]) -> Outcome:
        """Store one memory, and return what became of it.

        A ``duplicate`` is not stored again and has the existing id. A new fact or turn is compared
        with those stored before it in the background.

        Args:
            content: the text.
            fields: as in ``Orchestrator.remember``.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``Orchestrator.remember``.
        """
        memory = validated(MemoryInput, {"content": content, **fields})
        return self._readable(self._remember(memory))

    @operation(
        Permission.WRITE, "POST /forget", body="Forgetting", answer=ForgetOutcomes, command=""
    )
    def forget(
        self,
        memory_ids: Annotated[
            Sequence[str], WireFormat(tuple[Name, ...]), Field(min_length=1, max_length=MAX_BATCH)
        ],
        *,
        reason: Reason,
    ) -> Sequence[ForgetOutcome]:
        """Retract many memories in one transaction, with an outcome for each, in order.

        A memory that is not visible is rejected; the others are retracted, or were before.

        Args:
            memory_ids: 1..1,000 ids.

        Raises:
            InvalidInput: too many or too few ids, or an invalid reason.
        """
        from memgraph.operations.write import changes

        because = self._because(reason)
        if isinstance(memory_ids, str) or not 1 <= len(memory_ids) <= MAX_BATCH:
            raise InvalidInput(f"memory_ids must have 1 to {MAX_BATCH:,} ids", field="memory_ids")
        ids = self._whole_ids(memory_ids)
        outcomes: list[ForgetOutcome] = []
        refused: list[MemgraphError] = []
        with self._write() as (_, transaction):
            for memory_id in ids:
                try:
                    retracted = changes.retract(
                        transaction, memory_id, reason=because, view=self._view
                    )
                except (NotFound, Conflict) as error:
                    refused.append(error)
                    problem = {"code": error.code, "message": error.message}
                    outcome = ForgetOutcome(memory_id=memory_id, outcome="rejected", **problem)
                else:
                    transaction.record(retracted)
                    outcome = ForgetOutcome(memory_id=memory_id, outcome="retracted")
                outcomes.append(outcome)
        self._record_rejected(refused)
        return outcomes

    @operation(
        Permission.READ,
        "GET /stats",
        tag="operating",
        id="get_stats",
        answer=WireResult(
            MemoryCounts,
            MemoryCounts.model_validate,
            lambda counts: counts.model_dump(mode="json", exclude_unset=True),
        ),
        command="",
    )
    def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of memories that this handle sees, by kind, type and status."""
        from memgraph.store import memories

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return memories.counts(snapshot, self._view)

    @operation(
        Permission.READ,
        "GET /reflection",
        tag="recall",
        id="get_reflection",
        command="reflection",
        answer=LatestReflection,
    )
    def latest_reflection(self) -> Memory | None:
        """Return the latest weekly reflection that this handle may see; None if there is none."""
        from memgraph.store import reflections

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return reflections.latest(snapshot, self._view)
