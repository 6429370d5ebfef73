"""Following memories to their uses and their origins, remotely."""

from __future__ import annotations

from memgraph.client.calls import Call, segment, value_of
from memgraph.client.places import Place, Time, moment
from memgraph.client.words import word
from memgraph.model.influence import Grounds, Impact, SourceLines


class FollowingWords(Place):
    """The methods that follow a memory; they require the permission audit."""

    @word
    def impact(
        self, memory_id: str, *, max_nodes: int = 1_000, as_of: Time | None = None
    ) -> Call[Impact]:
        """Return every recall, context, bulletin, run and derived memory that a memory reached.

        Args:
            max_nodes: 1..10,000 derived memories, and as many receipts; ``cut`` is True when there
                are more.
            as_of: what it had reached by then; None: by now.

        Raises:
            NotFound: there is no such memory that the key may see, or there was none then.
        """
        path = f"/memories/{segment(memory_id)}/impact"
        return self._get(path, value_of(Impact), max_nodes=max_nodes, as_of=moment(as_of))

    @word
    def grounds(
        self,
        memory_id: str | None = None,
        *,
        workflow_run_id: str | None = None,
        max_nodes: int = 1_000,
        lines: int = 0,
    ) -> Call[Grounds]:
        """Return all evidence of a memory, or of a run of a workflow.

        Args:
            memory_id, workflow_run_id: one of them.
            max_nodes: 1..10,000 memories, and as many receipts; ``cut`` is True when there are
                more.
            lines: 0..1,000 memories whose source lines are read as well.

        Raises:
            NotFound: there is no such memory that the key may see, or no receipt and no memory of
                such a run.
            InvalidInput: both or none are named, or a bound is out of range.
        """
        return self._get(
            "/grounds",
            value_of(Grounds),
            memory_id=memory_id,
            workflow_run_id=workflow_run_id,
            max_nodes=max_nodes,
            lines=lines,
        )

    @word
    def source_lines(self, memory_id: str) -> Call[SourceLines]:
        """Return what a memory was read from: its lines of the stored file, or turns.

        Raises:
            NotFound: there is no such memory that the key may see.
        """
        return self._get(f"/memories/{segment(memory_id)}/lines", value_of(SourceLines))
