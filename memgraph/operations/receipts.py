"""Receipts and issued bulletins: list and read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.model.access import Permission
from memgraph.model.operation import F, Id, operation
from memgraph.model.receipts import BulletinHistory, Receipt, ReceiptList, StoredBulletin
from memgraph.model.values import Name
from memgraph.operations.handle import Handle

Page = Annotated[int, Field(ge=1, le=1_000)]
Before = Annotated[Name | None, Field(description="The last id of the previous page.")]


class Receipts(Handle[F], group="receipts"):
    """Receipts of which memories were returned, and why: ``orc.receipts``."""

    @operation(Permission.AUDIT, "GET /receipts", id="list_receipts", command="receipts")
    def list(
        self,
        *,
        task_id: Annotated[Name | None, Field(description="Only receipts for this task.")] = None,
        workflow_run_id: Annotated[
            Name | None, Field(description="Only receipts for this workflow run.")
        ] = None,
        conversation_id: Annotated[
            Name | None, Field(description="Only receipts for this conversation.")
        ] = None,
        purpose: Annotated[
            Name | None, Field(description="Only with this purpose: `recall`, `bulletin`, …")
        ] = None,
        limit: Page = 20,
        before: Before = None,
    ) -> ReceiptList:
        """Return the receipts whose memories this handle may all see, newest first.

        A receipt without memories is visible to a handle that sees its task, project and agent.
        The newest 10,000 receipts are searched.

        Args:
            task_id, workflow_run_id, conversation_id, purpose: only receipts with these values.
            limit: 1..1000 receipts.
            before: the last id of the previous page.

        Raises:
            InvalidInput: ``limit`` is out of range, or an id is invalid.
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

    @operation(Permission.AUDIT, "GET /receipts/{receipt_id}", id="get_receipt", command="receipt")
    def get(self, receipt_id: Id) -> Receipt:
        """Return a receipt: which memories a recall, bulletin, context or turn returned, and why.

        ``asked`` is the request. For a turn, ``asked`` also has ``bulletin`` with the ids of its
        memories, and ``context`` with the id of the receipt of its context.

        Raises:
            NotFound: the receipt does not exist, or contains a memory that this handle may not see,
                or is for a bulletin whose reader saw more than this handle does.
            InvalidInput: ``receipt_id`` is not an id.
        """
        from memgraph.operations.read import receipt_lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.receipt(opened, self._view, receipt_id)

    @operation(Permission.AUDIT, "GET /bulletins", id="list_bulletins", command="bulletins")
    def bulletins(self, *, limit: Page = 20, before: Before = None) -> BulletinHistory:
        """Return the bulletins that were delivered, newest first.

        A bulletin is included only if its reader saw no more than this handle does, and this handle
        sees every memory that it cites. One record covers all deliveries of the same text to the
        same view, until another text replaced it. The newest 2,000 are searched.

        Args:
            limit: 1..1000 bulletins.
            before: the last id of the previous page.

        Raises:
            InvalidInput: ``limit`` is out of range, or ``before`` is invalid.
        """
        from memgraph.operations.read import receipt_lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.bulletin_history(opened, self._view, limit=limit, before=before)

    @operation(
        Permission.AUDIT,
        "GET /bulletins/{bulletin_id}",
        id="get_issued_bulletin",
        command="issued-bulletin",
    )
    def bulletin(self, bulletin_id: Id) -> StoredBulletin:
        """Return a bulletin exactly as it was delivered.

        Raises:
            NotFound: the bulletin does not exist, or its reader saw more than this handle does, or
                it cites a memory that this handle may not see.
            InvalidInput: ``bulletin_id`` is not an id.
        """
        from memgraph.operations.read import receipt_lookup as reading

        with self._service.opened(self.name) as opened:
            return reading.bulletin_issued(opened, self._view, bulletin_id)
