"""The private memories of agents, with the requests of ``MemoryEntity``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from memgraph.model.access import Permission
from memgraph.model.entities import (
    ForgetRequest,
    ForgetResult,
    ListRequest,
    MemoryItemRecord,
    RetrieveRequest,
    StoreRequest,
    StoreResult,
)
from memgraph.model.operation import F, operation
from memgraph.model.values import Name, validated
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.operations.context.entity import MemoryEntity

AgentName = Annotated[Name, Field(description="The agent whose memory it is.")]
ROOT = "/agents/{agent_id}/memory"


class AgentMemory(Handle[F], group="agent_memory", tag="agent memory"):
    """The requests of ``MemoryEntity`` for any agent, as JSON has them: ``orc.agent_memory``.

    Requests for one agent take effect one after another. A handle that is limited to an agent, or
    to some projects or sessions, cannot reach others.
    """

    @operation(
        Permission.WRITE, f"POST {ROOT}/store", body=StoreRequest, id="store_items", command=""
    )
    def store(self, agent_id: AgentName, request: StoreRequest | Mapping[str, Any]) -> StoreResult:
        """Store items in an agent's memory, all or none; an item that exists is not stored again.

        With a ``callId`` a repeated request stores nothing, even if its items were forgotten; one
        with other items is refused.

        Raises:
            Conflict: the ``callId`` is that of an earlier request with other items.
            InvalidInput: names each invalid field.
            AccessDenied: the memory, or the place of an item, is closed to this handle.
        """
        return self._entity(agent_id).store(**dict(validated(StoreRequest, request)))

    @operation(
        Permission.READ,
        f"POST {ROOT}/retrieve",
        body=RetrieveRequest,
        id="retrieve_items",
        command="",
    )
    def retrieve(
        self, agent_id: AgentName, request: RetrieveRequest | Mapping[str, Any]
    ) -> tuple[MemoryItemRecord, ...]:
        """Return the items of an agent's memory that match a query, best first.

        Raises: see ``store``.
        """
        return self._entity(agent_id).retrieve(**dict(validated(RetrieveRequest, request)))

    @operation(
        Permission.WRITE, f"POST {ROOT}/forget", body=ForgetRequest, id="forget_items", command=""
    )
    def forget(
        self, agent_id: AgentName, request: ForgetRequest | Mapping[str, Any]
    ) -> ForgetResult:
        """Retract the items of an agent's memory that meet every criterion.

        Raises: see ``store``.
        """
        return self._entity(agent_id).forget(**dict(validated(ForgetRequest, request)))

    @operation(
        Permission.READ, f"POST {ROOT}/listItems", body=ListRequest, id="list_items", command=""
    )
    def list_items(
        self, agent_id: AgentName, request: ListRequest | Mapping[str, Any]
    ) -> tuple[MemoryItemRecord, ...]:
        """Return the items of an agent's memory, newest first. Raises: see ``store``."""
        return self._entity(agent_id).list_items(**dict(validated(ListRequest, request)))

    def _entity(self, agent_id: str) -> MemoryEntity:
        from memgraph.operations.context.entity import MemoryEntity

        return MemoryEntity.of(self, agent_id)
