"""What was handed out, remotely: receipts, bulletins as they were, and asking once more."""

from __future__ import annotations

from memgraph.client.calls import Call, segment, typed, value_of
from memgraph.client.places import Place, plain
from memgraph.client.words import word
from memgraph.model.receipts import (
    BulletinHistory,
    Receipt,
    ReceiptList,
    Replay,
    StoredBulletin,
)

_RECEIPT = typed(Receipt)
_RECEIPTS = typed(ReceiptList)


class ReceiptWords(Place):
    """The words that tell what was handed out; they take the permission audit."""

    @word
    def receipt(self, receipt_id: str) -> Call[Receipt]:
        """What somebody was given, and why. Raises NotFound."""
        return self._get(f"/receipts/{segment(receipt_id)}", _RECEIPT)

    @word
    def receipts(
        self,
        *,
        task_id: str | None = None,
        workflow_run_id: str | None = None,
        conversation_id: str | None = None,
        purpose: str | None = None,
        limit: int = 20,
        before: str | None = None,
    ) -> Call[ReceiptList]:
        """The newest receipts of which the key may see every memory.

        Args:
            task_id, workflow_run_id, conversation_id, purpose: only receipts for these.
            limit: 1..1000.
            before: the last id of the page before.
        """
        return self._get(
            "/receipts",
            _RECEIPTS,
            task_id=task_id,
            workflow_run_id=workflow_run_id,
            conversation_id=conversation_id,
            purpose=purpose,
            limit=limit,
            before=before,
        )

    @word
    def replay(self, receipt_id: str, *, query: str | None = None) -> Call[Replay]:
        """Ask once more what a receipt is of, as of its moment: whether it gives the same.

        Args:
            query: what was asked, where the receipt keeps its digest alone.

        Raises:
            NotFound: there is no such receipt that the key may see.
            AccessDenied: the asker saw more than the key does.
            InvalidInput: the query is missing or another one; of this nothing can be asked again.
        """
        path = f"/receipts/{segment(receipt_id)}/replay"
        return self._look(path, plain({"query": query}), value_of(Replay))

    @word
    def bulletins(self, *, limit: int = 20, before: str | None = None) -> Call[BulletinHistory]:
        """Bulletins that were handed out, newest first: those for askers who saw no more than the
        key does.

        Args:
            limit: 1..1000.
            before: the last id of the page before.
        """
        return self._get("/bulletins", value_of(BulletinHistory), limit=limit, before=before)

    @word
    def bulletin_issued(self, bulletin_id: str) -> Call[StoredBulletin]:
        """A bulletin as it was handed out. Raises NotFound."""
        return self._get(f"/bulletins/{segment(bulletin_id)}", value_of(StoredBulletin))
