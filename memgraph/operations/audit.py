"""The operations of an auditor: journal, cases, history, influence, receipts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.access import Permission, StoreHealth
from memgraph.model.graph import Case, Diff, History, StalePage
from memgraph.model.influence import EvidenceReport, Impact, SourceLines
from memgraph.model.operation import (
    After,
    AsOf,
    EdgeId,
    Id,
    Limit,
    MemoryId,
    ReasonBody,
    Time,
    WireFormat,
    operation,
)
from memgraph.model.receipts import (
    BulletinHistory,
    Receipt,
    ReceiptList,
    Replay,
    ReplayRequest,
    StoredBulletin,
)
from memgraph.model.values import Name, Reason
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.store.snapshot import NewEntry


class AuditingHandle(Handle):
    """The part of ``Orchestrator`` that measures what is stored."""

    @operation(Permission.AUDIT, "POST", "/audit", tag="auditing", body="AuditWanted", slow=True)
    def audit(
        self,
        *,
        fail_on: Annotated[Sequence[str], WireFormat(tuple[Name, ...]), Field(max_length=20)] = (),
        examples: Annotated[int, Field(ge=0, le=100)] = 5,
        progress: Callable[[str, int, int], None] = lambda _part, _done, _total: None,
    ) -> StoreHealth:
        """Return rates of what this handle sees, each with examples. Nothing is changed.

        Of the active memories that are no raw turns: ``duplicate`` have the same text as another
        one of the same place, ``near_duplicate`` nearly (of 20,000 at most), ``contradiction`` are
        in an open one, ``stale`` depend on superseded or retracted evidence, ``unsourced`` have no
        known source, ``orphan`` have no edge, ``echo`` only repeat what had been handed out before
        they were stored (of 20,000 at most). Of all active memories: ``unembedded`` have no vector
        yet, or none could be made.

        Args:
            fail_on: limits, such as ``stale=0.05``, ``stale=5%``, ``echo`` (none at all) or
                ``all``; a rate above its limit makes ``ok`` False.
            examples: 0..100, of each measure.
            progress: called with the measure, how much is done, and how much there is.

        Raises:
            InvalidInput: an invalid limit, or too many examples.
        """
        from memgraph.operations.read.store_health import store_health

        with self._service.opened(self.name) as opened:
            return store_health(
                opened, self._view, fail_on=fail_on, examples=examples, progress=progress
            )


class CasesHandle(Handle):
    """The part of ``Orchestrator`` for resolving contradictions."""

    @operation(Permission.READ, "GET", "/contradictions/{edge_id}", tag="cases")
    def case(
        self,
        edge_id: EdgeId,
        *,
        as_of: AsOf = None,
        names: Annotated[bool, Field(description="Name what each side reached.")] = True,
    ) -> Case:
        """Return a contradiction with both sides, the evidence for each, and possible decisions.

        Which receipts, runs and conversations a side reached is named to a key that may audit;
        others get their number.

        Args:
            as_of: the case as it was then; None: now.
            names: False: only their number.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
        """
        from memgraph.graph.cases import read_case
        from memgraph.rules.trust import TrustRules

        with self._service.opened(self.name) as opened:
            memory = opened.settings.memory
            return read_case(
                opened.database,
                edge_id,
                now_ms=opened.clock.now_ms(),
                exponent=memory.decay.exponent,
                trust=TrustRules.of(memory.trust),
                viewer=self.viewer,
                as_of=None if as_of is None else parse_time(as_of),
                names=names and Permission.AUDIT in self.permissions,
            )

    @operation(
        Permission.WRITE,
        "POST",
        "/contradictions/{edge_id}/resolve",
        tag="graph",
        id="resolve_contradiction",
        body="Resolution",
    )
    def resolve(self, edge_id: EdgeId, *, winner: Name, reason: Reason) -> None:
        """Decide an open contradiction; the loser is superseded, its confidence falls to 0.3.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
            Conflict: it is resolved, or the winner is no side of it.
        """
        from memgraph.operations.write import changes

        self._decide(edge_id, reason, partial(changes.resolve, winner_id=self._whole_id(winner)))

    @operation(
        Permission.WRITE,
        "POST",
        "/contradictions/{edge_id}/dismiss",
        tag="cases",
        id="dismiss_contradiction",
        body=ReasonBody,
    )
    def dismiss(self, edge_id: EdgeId, *, reason: Reason) -> None:
        """Dismiss an open contradiction: both sides hold, and it is not raised again.

        ``reopen`` undoes that.

        Raises:
            NotFound: no such contradiction, or one of its sides is not visible.
            Conflict: it is not open.
        """
        from memgraph.operations.write import changes

        self._decide(edge_id, reason, changes.dismiss)

    @operation(
        Permission.WRITE,
        "POST",
        "/contradictions/{edge_id}/reopen",
        tag="graph",
        id="reopen_contradiction",
        body=ReasonBody,
    )
    def reopen(self, edge_id: EdgeId, *, reason: Reason) -> None:
        """Undo the resolution of a contradiction. Raises NotFound, Conflict."""
        from memgraph.operations.write import changes

        self._decide(edge_id, reason, changes.reopen)

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

    def _decide(self, edge_id: str, reason: str, decide: Callable[..., list[NewEntry]]) -> None:
        """Apply ``decide``, a function of ``changes`` that takes the edge, a reason, a time and an
        actor.
        """
        from memgraph.operations.write import changes

        because = self._because(reason)
        with self._write() as (_, transaction):
            edge = changes.contradiction(transaction, edge_id, self._view)
            entries = decide(transaction, edge, reason=because)
            transaction.tell(entries)


class HistoryHandle(Handle):
    """The part of ``Orchestrator`` that compares two times."""

    @operation(Permission.READ, "GET", "/diff", tag="auditing")
    def diff(
        self,
        since: Annotated[Time, Field(description="After this time.", examples=["2026-01-01"])],
        until: Annotated[
            Time | None,
            Field(description="Up to this time; now, if none is.", examples=["2026-02-01"]),
        ] = None,
        *,
        limit: Annotated[int, Field(ge=1, le=1_000, description="Of each list.")] = 100,
    ) -> Diff:
        """Return the changes between two times, newest first.

        They are memories learnt, replaced, retracted and restored, contradictions found and
        decided, and changes of confidence.

        Args:
            since: exclusive; ``until`` is inclusive.
            until: None: now.
            limit: 1..1000 of each list; ``counts`` are complete.

        Raises:
            InvalidInput: a limit out of range, or an end before the beginning.
        """
        from memgraph.graph.history import diff

        first = parse_time(since)
        with self._service.opened(self.name) as opened:
            last = opened.clock.now_ms() if until is None else parse_time(until)
            return diff(opened.database, first, last, limit=limit, viewer=self.viewer)

    @operation(Permission.READ, "GET", "/memories/{memory_id}/history", tag="auditing")
    def history(self, memory_id: MemoryId) -> History:
        """Return every status and value that a memory had, with their times. Raises NotFound."""
        from memgraph.graph.history import history

        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return history(
                opened.database,
                memory_id,
                now_ms=opened.clock.now_ms(),
                exponent=opened.settings.memory.decay.exponent,
                viewer=self.viewer,
            )


MAX_NODES = 1_000
MaxNodes = Annotated[int, Field(ge=1, le=10_000, description="Memories, and receipts, at most.")]


class InfluenceHandle(Handle):
    """The part of ``Orchestrator`` that follows a memory to its uses and its origins."""

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
                found = grounds_of_run(
                    opened.database, workflow_run_id, max_nodes=max_nodes, viewer=self.viewer
                )
            elif memory_id is not None and workflow_run_id is None:
                found = grounds_of_memory(
                    opened.database, memory_id, max_nodes=max_nodes, viewer=self.viewer
                )
            else:
                raise InvalidInput("name either a memory or a run", field="memory_id")
            return with_lines(opened, self._view, found, most=lines)

    @operation(Permission.AUDIT, "GET", "/memories/{memory_id}/lines", tag="auditing")
    def source_lines(self, memory_id: MemoryId) -> SourceLines:
        """Return what a memory was read from: its lines of the stored file, or turns.

        Lines are returned only while the file's digest is the one that was read; see ``state``.

        Raises:
            NotFound: there is no such memory that this handle may see.
        """
        from memgraph.operations.provenance.sources import source_lines

        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return source_lines(opened, self._view, memory_id)


Page = Annotated[int, Field(ge=1, le=1_000)]
Before = Annotated[Name | None, Field(description="The last id of the page before.")]


class ReceiptsHandle(Handle):
    """The part of ``Orchestrator`` that returns what was handed out."""

    @operation(Permission.AUDIT, "GET", "/receipts/{receipt_id}", tag="receipts", id="get_receipt")
    def receipt(self, receipt_id: Id) -> Receipt:
        """Return a receipt: what a caller was given, and why, by a recall, a bulletin, a context or
        a turn.

        ``asked`` is the request; of a turn it has ``bulletin``, with the memories in it, and
        ``context``, the receipt of that.

        Raises:
            NotFound: there is none, or it names a memory that this handle may not see, or is of a
                bulletin whose reader saw more than this handle does.
            InvalidInput: it is no id.
        """
        from memgraph.operations.read import receipt_lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.receipt(opened, self._view, receipt_id)

    @operation(Permission.AUDIT, "GET", "/receipts", tag="receipts", id="list_receipts")
    def receipts(
        self,
        *,
        task_id: Annotated[Name | None, Field(description="For this task.")] = None,
        workflow_run_id: Annotated[Name | None, Field(description="For this run.")] = None,
        conversation_id: Annotated[Name | None, Field(description="For this conversation.")] = None,
        purpose: Annotated[
            Name | None, Field(description="For this: `recall`, `bulletin`, …")
        ] = None,
        limit: Page = 20,
        before: Before = None,
    ) -> ReceiptList:
        """Return receipts of which this handle may see every memory, newest first.

        A receipt that names no memory is visible to a handle that sees its task, project and agent.
        The newest 10,000 receipts are searched.

        Args:
            task_id, workflow_run_id, conversation_id, purpose: only receipts for these.
            limit: 1..1000.
            before: the last id of the page before.

        Raises:
            InvalidInput: a limit out of range, or an invalid id.
        """
        asked = {
            "task_id": task_id,
            "workflow_run_id": workflow_run_id,
            "conversation_id": conversation_id,
            "purpose": purpose,
        }
        from memgraph.operations.read import receipt_lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.receipt_list(opened, self._view, asked, limit=limit, before=before)

    @operation(
        Permission.AUDIT,
        "POST",
        "/receipts/{receipt_id}/replay",
        tag="receipts",
        body=ReplayRequest,
    )
    def replay(self, receipt_id: Id, *, query: str | None = None) -> Replay:
        """Repeat the request of a receipt as of its moment, and compare the results.

        Args:
            query: the query, when the receipt keeps only its digest.

        Raises:
            NotFound: as ``receipt``.
            AccessDenied: the original caller saw more than this handle does; it is logged and
                journalled.
            InvalidInput: the query is missing or another one; a receipt of a diagnosis or of a
                search of items, or an incomplete one, cannot be replayed.
        """
        from memgraph.operations.read import receipt_lookup as reading
        from memgraph.operations.read.replay import replayed

        with self._service.opened(self.name) as opened:
            found = reading.stored(opened, self._view, receipt_id).receipt
            try:
                return replayed(opened, found, self.viewer, query)
            except AccessDenied as error:
                raise self._denied(opened, error, field="viewer", asked=receipt_id) from None

    @operation(Permission.AUDIT, "GET", "/bulletins", tag="receipts", id="list_bulletins")
    def bulletins(self, *, limit: Page = 20, before: Before = None) -> BulletinHistory:
        """Return bulletins that were handed out, newest first.

        Only those for readers who saw no more than this handle does, and that cite only what it
        sees. One record covers all deliveries of the same text to readers of the same view, until
        another replaced it. The newest 2,000 are searched.

        Args:
            limit: 1..1000.
            before: the last id of the page before.

        Raises:
            InvalidInput: a limit out of range, or an invalid id.
        """
        from memgraph.operations.read import receipt_lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.bulletin_history(opened, self._view, limit=limit, before=before)

    @operation(
        Permission.AUDIT,
        "GET",
        "/bulletins/{bulletin_id}",
        tag="receipts",
        id="get_issued_bulletin",
    )
    def bulletin_issued(self, bulletin_id: Id) -> StoredBulletin:
        """Return a bulletin as it was handed out.

        Raises:
            NotFound: there is none, or its reader saw more than this handle does, or it cites what
                this handle may not see.
            InvalidInput: it is no id.
        """
        from memgraph.operations.read import receipt_lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.bulletin_issued(opened, self._view, bulletin_id)
