"""Operations on the graph of memories: neighbourhoods, influence, evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.enums import EdgeType
from memgraph.model.graph import Subgraph
from memgraph.model.influence import EvidenceReport, Impact
from memgraph.model.operation import AsOf, F, MemoryId, Time, WireFormat, local, operation
from memgraph.model.values import Name, one_of
from memgraph.operations.handle import Handle

MAX_NODES = 1_000
MaxNodes = Annotated[int, Field(ge=1, le=10_000, description="Limit of memories, of receipts.")]


class Graph(Handle[F], group="graph", tag="auditing"):
    """The graph of memories and receipts: ``orc.graph``."""

    @operation(Permission.READ, "POST /subgraph", tag="graph", body="Neighbourhood")
    def subgraph(
        self,
        ids: Annotated[Sequence[str], WireFormat(tuple[Name, ...]), Field(max_length=1_000)],
        *,
        hops: Annotated[int, Field(ge=1, le=4)] = 1,
        max_nodes: Annotated[int, Field(ge=1, le=2_000)] = 200,
        edge_types: Annotated[
            Collection[EdgeType | str] | None, WireFormat(tuple[EdgeType, ...], write=_sorted_types)
        ] = None,
        as_of: Time | None = None,
        retracted: bool = False,
    ) -> Subgraph:
        """Return the memories around the named ones, and the edges between them, up to the limits.

        ``cut`` is True if a limit (``max_nodes``, the edges of a node) left something out.

        Args:
            ids: where to start.
            hops: the maximum distance, 1 to 4.
            max_nodes: the maximum number of memories, 1 to 2,000.
            edge_types: follow only these types.
            as_of: as of this time.
            retracted: include retracted memories.

        Raises:
            InvalidInput: a limit is out of range.
        """
        from memgraph.graph.subgraph import subgraph
        from memgraph.store.visibility import STANDING

        if isinstance(ids, str):
            raise InvalidInput("ids must be a list of memory ids", field="ids")
        ids = self._whole_ids(ids)
        view = replace(self._view_at(as_of), statuses=None if retracted else STANDING)
        followed = None if edge_types is None else _edge_types(edge_types)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return subgraph(
                snapshot, view, ids, hops=hops, max_nodes=max_nodes, edge_types=followed
            )

    @operation(Permission.AUDIT, "GET /memories/{memory_id}/impact")
    def impact(
        self, memory_id: MemoryId, *, max_nodes: MaxNodes = MAX_NODES, as_of: AsOf = None
    ) -> Impact:
        """Return every recall, context, bulletin, run and derived memory that a memory reached.

        Receipts with a memory that this handle may not see are left out.

        Args:
            max_nodes: the maximum number of derived memories, and of receipts, 1 to 10,000; ``cut``
                is True if there are more.
            as_of: the time up to which to report; None: now.

        Raises:
            NotFound: the memory does not exist, did not exist at that time, or this handle may not
                see it.
            InvalidInput: ``max_nodes`` is out of range, or the time is invalid.
        """
        from memgraph.graph.influence import impact

        view, memory_id = self._view_at(as_of), self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            opened.receipts.flush()
            with opened.database.read() as snapshot:
                return impact(snapshot, view, memory_id, max_nodes=max_nodes)

    @operation(Permission.AUDIT, "GET /grounds")
    def grounds(
        self,
        memory_id: Annotated[Name | None, Field(description="The memory.")] = None,
        *,
        workflow_run_id: Annotated[Name | None, Field(description="The workflow run.")] = None,
        max_nodes: MaxNodes = MAX_NODES,
        lines: Annotated[
            int, Field(ge=0, le=1_000, description="Number of memories to read source lines for.")
        ] = 0,
    ) -> EvidenceReport:
        """Return the evidence of a memory, or of a workflow run.

        For a memory: the memories that it depends on, and what its run or conversation had received
        before. For a run: the memories that it received, and those that they depend on.

        Args:
            memory_id, workflow_run_id: exactly one of them.
            max_nodes: the maximum number of memories, and of receipts, 1 to 10,000; ``cut`` is True
                if there are more.
            lines: the number of memories to read source lines for, 0 to 1,000.

        Raises:
            NotFound: the memory does not exist, or this handle may see neither it nor a receipt or
                memory of the run.
            InvalidInput: not exactly one of the two is given, or a limit is out of range.
        """
        from memgraph.graph.influence import grounds
        from memgraph.operations.provenance.sources import with_lines
        from memgraph.store.items import is_id

        if (memory_id is None) == (workflow_run_id is None):
            raise InvalidInput("exactly one memory or one run is required", field="memory_id")
        if workflow_run_id is not None and not is_id(workflow_run_id):
            raise InvalidInput("the id of a run must be text", field="workflow_run_id")
        memory_id = None if memory_id is None else self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            opened.receipts.flush()
            with opened.database.read() as snapshot:
                result = grounds(
                    snapshot,
                    self._view,
                    memory_id=memory_id,
                    workflow_run_id=workflow_run_id,
                    max_nodes=max_nodes,
                )
            return with_lines(opened, self._view, result, limit=lines)


def _sorted_types(edge_types: Collection[EdgeType | str]) -> list[EdgeType | str]:
    return [edge_types] if isinstance(edge_types, str) else sorted(edge_types)


def _edge_types(names: Collection[EdgeType | str]) -> list[EdgeType]:
    if isinstance(names, str):
        names = [names]
    return [one_of(EdgeType, item, "edge_types") for item in names]


class LocalGraph(Graph[F]):
    """The graph operations, and those for the console's drawing."""

    @local
    def connected(self, *, limit: int = 300, as_of: Time | None = None) -> list[str]:
        """Return the ids of the memories with the most neighbours, each followed by neighbours.

        Memories without edges are not returned.

        Args:
            limit: the maximum number of ids.
        """
        from memgraph.graph.subgraph import connected

        view = self._view_at(as_of)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return connected(snapshot, view, limit=limit)
