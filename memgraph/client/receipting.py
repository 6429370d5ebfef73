"""Receipts, remotely: what was handed out, past bulletins, and replays."""

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
    """The methods for receipts; they require the permission audit."""

    @word
    def receipt(self, receipt_id: str) -> Call[Receipt]:
        """Return what was handed out, and why. Raises NotFound."""
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
        """Return the newest receipts of which the key may see every memory.

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
        """Repeat the request of a receipt as of its moment, and compare the results.

        Args:
            query: the query, when the receipt keeps only its digest.

        Raises:
            NotFound: there is no such receipt that the key may see.
            AccessDenied: the original reader saw more than the key does.
            InvalidInput: the query is missing or another one; this kind of receipt cannot be
                replayed.
        """
        path = f"/receipts/{segment(receipt_id)}/replay"
        return self._look(path, plain({"query": query}), value_of(Replay))

    @word
    def bulletins(self, *, limit: int = 20, before: str | None = None) -> Call[BulletinHistory]:
        """Return bulletins that were handed out to readers who saw no more than the key, newest
        first.

        Args:
            limit: 1..1000.
            before: the last id of the page before.
        """
        return self._get("/bulletins", value_of(BulletinHistory), limit=limit, before=before)

    @word
    def bulletin_issued(self, bulletin_id: str) -> Call[StoredBulletin]:
        """Return a bulletin as it was handed out. Raises NotFound."""
        return self._get(f"/bulletins/{segment(bulletin_id)}", value_of(StoredBulletin))
