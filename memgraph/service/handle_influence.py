"""The influence of a memory and the evidence behind it, through a handle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.clock import parse_time
from memgraph.errors import InvalidInput
from memgraph.service.handle import Handle
from memgraph.store.items import is_id

if TYPE_CHECKING:
    from memgraph.model.influence import Grounds, Impact, SourceLines
    from memgraph.service.handle_reading import Time

MAX_NODES = 1_000


class InfluenceHandle(Handle):
    """The part of ``Orchestrator`` that follows a memory to its uses and its origins."""

    def impact(
        self, memory_id: str, *, max_nodes: int = MAX_NODES, as_of: Time | None = None
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

    def grounds(
        self,
        memory_id: str | None = None,
        *,
        workflow_run_id: str | None = None,
        max_nodes: int = MAX_NODES,
        lines: int = 0,
    ) -> Grounds:
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
        from memgraph.service.source_lines import with_lines

        memory_id = None if memory_id is None else self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            opened.receipts.flush()
            if workflow_run_id is not None and memory_id is None:
                if not is_id(workflow_run_id):
                    raise InvalidInput("the id of a run is a text", field="workflow_run_id")
                found = grounds_of_run(
                    opened.database, workflow_run_id, max_nodes=max_nodes, viewer=self.viewer
                )
            elif memory_id is not None and workflow_run_id is None:
                found = grounds_of_memory(
                    opened.database, memory_id, max_nodes=max_nodes, viewer=self.viewer
                )
            else:
                raise InvalidInput("name a memory or a run, one of them", field="memory_id")
            return with_lines(opened, self._view, found, most=lines)

    def source_lines(self, memory_id: str) -> SourceLines:
        """Return what a memory was read from: its lines of the stored file, or turns.

        Lines are returned only while the file's digest is the one that was read; see ``state``.

        Raises:
            NotFound: there is no such memory that this handle may see.
        """
        from memgraph.service.source_lines import source_lines

        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return source_lines(opened, self._view, memory_id)
