"""Receipts of what was handed out, and bulletins that were."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.clock import parse_time
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.access import Permission
from memgraph.model.influence import AnswerExplanation
from memgraph.model.operation import F, Id, Time, operation
from memgraph.model.receipts import (
    BulletinHistory,
    Receipt,
    ReceiptList,
    Replay,
    ReplayRequest,
    StoredBulletin,
)
from memgraph.model.values import Name
from memgraph.operations.handle import Handle

MAX_ANSWER_CHARS = 20_000
Page = Annotated[int, Field(ge=1, le=1_000)]
Before = Annotated[Name | None, Field(description="The last id of the page before.")]

MAX_ANSWER_CHARS = 20_000


class Receipts(Handle[F], group="receipts"):
    """What was handed out, and why: ``orc.receipts``."""

    @operation(
        Permission.AUDIT, "GET", "/receipts", tag="receipts", id="list_receipts", command="receipts"
    )
    def list(
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
        conditions = {
            "task_id": task_id,
            "workflow_run_id": workflow_run_id,
            "conversation_id": conversation_id,
            "purpose": purpose,
        }
        from memgraph.operations.read import receipt_lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.receipt_list(opened, self._view, conditions, limit=limit, before=before)

    @operation(
        Permission.AUDIT,
        "GET",
        "/receipts/{receipt_id}",
        tag="receipts",
        id="get_receipt",
        command="receipt",
    )
    def get(self, receipt_id: Id) -> Receipt:
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
            NotFound: as ``get``.
            AccessDenied: the original caller saw more than this handle does; it is logged and
                journalled.
            InvalidInput: the query is missing or another one; a receipt of a diagnosis or of a
                search of items, or an incomplete one, cannot be replayed.
        """
        from memgraph.operations.read import receipt_lookup as reading
        from memgraph.operations.read.replay import replayed

        with self._service.opened(self.name) as opened:
            receipt = reading.stored(opened, self._view, receipt_id).receipt
            try:
                return replayed(opened, receipt, self.viewer, query)
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
        command="bulletin-issued",
    )
    def bulletin(self, bulletin_id: Id) -> StoredBulletin:
        """Return a bulletin as it was handed out.

        Raises:
            NotFound: there is none, or its reader saw more than this handle does, or it cites what
                this handle may not see.
            InvalidInput: it is no id.
        """
        from memgraph.operations.read import receipt_lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.bulletin_issued(opened, self._view, bulletin_id)

    @operation(
        Permission.AUDIT,
        "POST",
        "/explain",
        tag="auditing",
        body="AnswerGiven",
        id="explain_answer",
    )
    def explain(
        self,
        answer: Annotated[str, Field(min_length=1, max_length=MAX_ANSWER_CHARS)],
        *,
        conversation_id: Annotated[Name | None, Field(description="Given to this one.")] = None,
        workflow_run_id: Annotated[Name | None, Field(description="Given to this run.")] = None,
        until: Annotated[Time | None, Field(description="Given by this time.")] = None,
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
    ) -> AnswerExplanation:
        """Return the receipts whose memories best hold the sentences of an agent's answer.

        Compared by words, without a model, with the newest 300 receipts that this handle may see.

        Args:
            answer: what the agent said; 20,000 characters.
            until: what was handed out later is left out.
            limit: 1..50 receipts.

        Raises:
            InvalidInput: a bound out of range, or an invalid time.
        """
        from memgraph.operations.read.receipt_lookup import explain_answer

        if not answer.strip() or len(answer) > MAX_ANSWER_CHARS:
            raise InvalidInput(f"answer: 1 to {MAX_ANSWER_CHARS:,} characters", field="answer")
        conditions = {"conversation_id": conversation_id, "workflow_run_id": workflow_run_id}
        with self._service.opened(self.name) as opened:
            return explain_answer(
                opened,
                self._view,
                answer,
                fields=conditions,
                until=None if until is None else parse_time(until),
                limit=limit,
            )
