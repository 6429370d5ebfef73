"""The graph of memories: its neighbourhoods, and what a memory reached or depends on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.enums import EdgeType
from memgraph.model.graph import StalePage, Subgraph
from memgraph.model.influence import EvidenceReport, Impact
from memgraph.model.operation import (
    After,
    AsOf,
    F,
    Limit,
    MemoryId,
    Time,
    WireFormat,
    local,
    operation,
)
from memgraph.model.values import Name
from memgraph.operations.handle import Handle

MAX_NODES = 1_000
MaxNodes = Annotated[int, Field(ge=1, le=10_000, description="Memories, and receipts, at most.")]


class Graph(Handle[F], group="graph"):
    """The graph of memories and receipts: ``orc.graph``."""

    @operation(Permission.READ, "POST", "/subgraph", tag="graph", body="Neighbourhood")
    def subgraph(
        self,
        ids: Annotated[Sequence[str], WireFormat(tuple[Name, ...]), Field(max_length=1_000)],
        *,
        hops: int = 1,
        max_nodes: int = 200,
        edge_types: Annotated[
            Collection[EdgeType | str] | None, WireFormat(tuple[EdgeType, ...], write=_listed)
        ] = None,
        as_of: Time | None = None,
        retracted: bool = False,
    ) -> Subgraph:
        """Return the memories within ``hops`` (1..4) of ``ids`` and the edges between them,
        bounded.

        ``cut`` is True when a bound (``max_nodes``, a node's degree) left something out;
        ``retracted`` includes retracted memories.

        Raises:
            InvalidInput: a bound out of range.
        """
        from memgraph.graph.subgraph import subgraph
        from memgraph.store.visibility import STANDING

        if isinstance(ids, str):
            raise InvalidInput("ids must be a list of memory ids", field="ids")
        ids = self._whole_ids(ids)
        with self._service.opened(self.name) as opened:
            return subgraph(
                opened.database,
                ids,
                hops=hops,
                max_nodes=max_nodes,
                edge_types=None if edge_types is None else _edge_types(edge_types),
                viewer=self.viewer,
                as_of=None if as_of is None else parse_time(as_of),
                statuses=None if retracted else STANDING,
            )

    @operation(Permission.AUDIT, "GET", "/memories/{memory_id}/impact", tag="auditing")
    def impact(
        self, memory_id: MemoryId, *, max_nodes: MaxNodes = MAX_NODES, as_of: AsOf = None
    ) -> Impact:
        """Return every recall, context, bulletin, run and derived memory that a memory reached.

        A receipt that names a memory which this handle may not see is left out.

        Args:
            max_nodes: 1..10,000 derived memories, and as many receipts; ``cut`` is True when there
                are more.
            as_of: what it had reached by then; None: by now.

        Raises:
            NotFound: there is no such memory that this handle may see, or there was none then.
            InvalidInput: ``max_nodes`` is out of range, or an invalid time.
        """
        from memgraph.graph.influence import impact

        then = None if as_of is None else parse_time(as_of)
        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            opened.receipts.flush()
            return impact(
                opened.database, memory_id, max_nodes=max_nodes, viewer=self.viewer, as_of=then
            )

    @operation(Permission.AUDIT, "GET", "/grounds", tag="auditing")
    def grounds(
        self,
        memory_id: Annotated[Name | None, Field(description="Of this memory.")] = None,
        *,
        workflow_run_id: Annotated[Name | None, Field(description="Of this run.")] = None,
        max_nodes: MaxNodes = MAX_NODES,
        lines: Annotated[
            int, Field(ge=0, le=1_000, description="Of so many memories, what they were read from.")
        ] = 0,
    ) -> EvidenceReport:
        """Return all evidence of a memory, or of a run of a workflow.

        Of a memory: what it depends on, and what had been handed to the run or the conversation
        that it comes from. Of a run: what was handed to it, and what that depends on.

        Args:
            memory_id, workflow_run_id: one of them.
            max_nodes: 1..10,000 memories, and as many receipts; ``cut`` is True when there are
                more.
            lines: 0..1,000 memories whose source lines are read as well.

        Raises:
            NotFound: there is no such memory that this handle may see, or no receipt and no memory
                of such a run.
            InvalidInput: both or none are named, or a bound is out of range.
        """
        from memgraph.graph.influence import grounds_of_memory, grounds_of_run
        from memgraph.operations.provenance.sources import with_lines
        from memgraph.store.items import is_id

        memory_id = None if memory_id is None else self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            opened.receipts.flush()
            if workflow_run_id is not None and memory_id is None:
                if not is_id(workflow_run_id):
                    raise InvalidInput("the id of a run must be text", field="workflow_run_id")
                result = grounds_of_run(
                    opened.database, workflow_run_id, max_nodes=max_nodes, viewer=self.viewer
                )
            elif memory_id is not None and workflow_run_id is None:
                result = grounds_of_memory(
                    opened.database, memory_id, max_nodes=max_nodes, viewer=self.viewer
                )
            else:
                raise InvalidInput("name either a memory or a run", field="memory_id")
            return with_lines(opened, self._view, result, limit=lines)

    @operation(Permission.AUDIT, "GET", "/stale", tag="cases")
    def stale(self, *, limit: Limit = 50, after: After = None, as_of: AsOf = None) -> StalePage:
        """Return active memories that depend on superseded or retracted evidence, with the path.

        A memory depends on what it was derived from, is caused by or is part of, and on what that
        depends on in turn, over 6 steps at most. Sorted by when the evidence ended, newest first.

        Args:
            limit: 1..500.
            after: ``next_after`` of the page before.
            as_of: as it was then; None: now.

        Raises:
            InvalidInput: a limit out of range, or an invalid ``after``.
        """
        from memgraph.graph.stale import list_stale

        with self._service.opened(self.name) as opened:
            return list_stale(
                opened.database,
                viewer=self.viewer,
                limit=limit,
                after=after,
                as_of=None if as_of is None else parse_time(as_of),
            )


def _listed(edge_types: Collection[EdgeType | str]) -> list[EdgeType | str]:
    return [edge_types] if isinstance(edge_types, str) else sorted(edge_types)


def _edge_types(names: Collection[EdgeType | str]) -> list[EdgeType]:
    if isinstance(names, str):
        names = [names]
    try:
        return [EdgeType(item) for item in names]
    except ValueError as error:
        valid_names = ", ".join(EdgeType)
        raise InvalidInput(f"an edge type is one of {valid_names}", field="edge_types") from error


class LocalGraph(Graph[F]):
    """The graph, with what the console draws."""

    @local
    def connected(self, *, limit: int = 300, as_of: Time | None = None) -> list[str]:
        """Return the ids of the memories with the most neighbours, each followed by some of these.

        Args:
            limit: of the ids. Memories without an edge are not among them.
        """
        from memgraph.graph.subgraph import connected

        then = None if as_of is None else parse_time(as_of)
        with self._service.opened(self.name) as opened:
            return connected(opened.database, limit=limit, viewer=self.viewer, as_of=then)
