"""Records of what was handed out: receipts, past bulletins, and replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.errors import AccessDenied
from memgraph.service import reading_receipts as reading
from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.receipts import (
        BulletinHistory,
        Receipt,
        ReceiptList,
        Replay,
        StoredBulletin,
    )


class ReceiptsHandle(Handle):
    """The part of ``Orchestrator`` that returns what was handed out."""

    def receipt(self, receipt_id: str) -> Receipt:
        """Return a receipt: what a caller was given, and why, by a recall, a bulletin, a context or
        a turn.

        ``asked`` is the request; of a turn it has ``bulletin``, with the memories in it, and
        ``context``, the receipt of that.

        Raises:
            NotFound: there is none, or it names a memory that this handle may not see, or is of a
                bulletin whose reader saw more than this handle does.
            InvalidInput: it is no id.
        """
        with self._service.opened(self.name) as opened:
            return reading.receipt(opened, self._view, receipt_id)

    def receipts(
        self,
        *,
        task_id: str | None = None,
        workflow_run_id: str | None = None,
        conversation_id: str | None = None,
        purpose: str | None = None,
        limit: int = 20,
        before: str | None = None,
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
        with self._service.opened(self.name) as opened:
            return reading.receipt_list(opened, self._view, asked, limit=limit, before=before)

    def replay(self, receipt_id: str, *, query: str | None = None) -> Replay:
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
        from memgraph.service.replaying import replayed

        with self._service.opened(self.name) as opened:
            found = reading.stored(opened, self._view, receipt_id).receipt
            try:
                return replayed(opened, found, self.viewer, query)
            except AccessDenied as error:
                raise self._denied(opened, error, field="viewer", asked=receipt_id) from None

    def bulletins(self, *, limit: int = 20, before: str | None = None) -> BulletinHistory:
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
        with self._service.opened(self.name) as opened:
            return reading.bulletin_history(opened, self._view, limit=limit, before=before)

    def bulletin_issued(self, bulletin_id: str) -> StoredBulletin:
        """Return a bulletin as it was handed out.

        Raises:
            NotFound: there is none, or its reader saw more than this handle does, or it cites what
                this handle may not see.
            InvalidInput: it is no id.
        """
        with self._service.opened(self.name) as opened:
            return reading.bulletin_issued(opened, self._view, bulletin_id)
