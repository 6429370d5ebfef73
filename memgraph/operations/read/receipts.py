"""Buffer receipts and write them in batches, off the read path.

Expensive work is postponed until they are written: digests, and the search for matches that the
reader may not see.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from memgraph.model.context import ContextBlock, ContextPackage
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.receipts import Receipt, ReceiptItem, degraded_field
from memgraph.rules.erasure import MARK, redacted_words
from memgraph.service.background import InFlightCalls
from memgraph.store import decay, erasure, receipts
from memgraph.store.engine import Database
from memgraph.store.recall import RecallFilter
from memgraph.store.receipts import NewReceipt, uses
from memgraph.store.rows import json_text

if TYPE_CHECKING:
    from memgraph.retrieval.recall import Selection

FLUSH_AT = 16
# The number of receipts per transaction (about 5 ms); more if very many are pending.
STEP = 3
MOST_STEPS = 32
GIVE_WAY_S = 0.02
# A limit for the buffer, in case the database cannot be written to.
MAX_KEPT = 1_024


def of_recall(request: RecallRequest, bundle: Bundle, narrowing: RecallFilter) -> NewReceipt:
    """Return the receipt of a recall, with the data to complete it."""
    match = "" if request.as_of is not None else bundle.account.match
    return NewReceipt(Receipt.of(request, bundle), bundle, match, narrowing)


def of_text(
    context: ContextBlock | ContextPackage,
    chosen: Selection,
    reasons: Mapping[str, tuple[str, ...]],
    *,
    query: str,
    asked: Mapping[str, Any],
    left_out: Mapping[str, int],
) -> NewReceipt:
    """Return the receipt of a text made of memories, with the data to complete it.

    Args:
        chosen: what was recalled; a memory of the text that was not has the score 0.
        reasons: by the ids of the text's memories, in its order.
        left_out: the numbers that differ from those of the recall.
    """
    recalled = {item.memory.memory_id: ReceiptItem.of(item) for item in chosen.items}
    delivered = {
        "format": context.format.value,
        "sha256": hashlib.sha256(context.text.encode()).hexdigest(),
    }
    account = chosen.account
    receipt = Receipt(
        receipt_id=context.receipt_id,
        at=chosen.narrowing.at,
        query=query,
        asked={**asked, **delivered, **degraded_field(context.degraded)},
        items=tuple(
            replace(recalled.get(memory_id) or ReceiptItem(memory_id, 0.0), reasons=because)
            for memory_id, because in reasons.items()
        ),
        change_seq=account.change_seq,
        left_out={**(account.left_out or {}), **left_out},
    )
    return NewReceipt(receipt, match=account.match, narrowing=chosen.narrowing)


class ReceiptBook:
    """The pending receipts of one open database. Thread-safe.

    Args:
        recalls: the running recalls, for which ``flush_in_steps`` waits.
        restore_used: called, outside any transaction, with the memories that expired although
            they had been used, and the times of use.
    """

    def __init__(
        self,
        database: Database,
        recalls: InFlightCalls,
        restore_used: Callable[[Mapping[str, int]], object] = lambda _recalled: None,
        *,
        with_queries: bool = False,
    ) -> None:
        self._database = database
        self._recalls = recalls
        self._restore_used = restore_used
        self._with_queries = with_queries
        self._retired: dict[str, int] = {}
        self._lock = threading.Lock()
        self._kept: list[NewReceipt] = []
        self.dropped = 0
        # The head of the journal at the last erasure known to this process.
        self.erased_through = 0

    @property
    def waiting(self) -> bool:
        """True when something is pending."""
        return bool(self._kept)

    def add(self, receipt: NewReceipt) -> bool:
        """Buffer a receipt; return True when the buffer should be flushed."""
        with self._lock:
            if len(self._kept) >= MAX_KEPT:
                self.dropped += 1
                return True
            self._kept.append(receipt)
            return len(self._kept) >= FLUSH_AT

    def flush(self) -> int:
        """Write the buffer; return the number of receipts.

        Raises:
            StorageError: nothing was written; the buffer is kept for the next attempt.
        """
        return self._write(MAX_KEPT)

    def flush_in_steps(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Write the current buffer in small steps, so that recalls wait less.

        Raises:
            StorageError: the rest is kept for the next attempt.
        """
        with self._lock:
            waiting = len(self._kept)
        limit = max(STEP, -(-waiting // MOST_STEPS))
        for step in range(-(-waiting // limit)):
            if step and not stop():
                time.sleep(GIVE_WAY_S)
            until = time.monotonic() + (0.0 if stop() else GIVE_WAY_S)
            self._prepare(self._first(limit), partial(self._let_recalls_end, until))
            self._write(limit)

    def _write(self, limit: int) -> int:
        with self._lock:
            batch, self._kept = self._kept[:limit], self._kept[limit:]
        if not batch and not self._retired:
            return 0
        try:
            self._prepare(batch)
            used = uses(item.receipt for item in batch)
            used_at = {memory_id: use.last_at for memory_id, use in used.items()}
            # Not durable: a power failure would lose buffered receipts anyway.
            with self._database.write(durable=False) as transaction:
                erased_through = erasure.erased_through(transaction)
                # Receipts buffered before an erasure by any process may contain erased text.
                stale = erased_through != self.erased_through
                written = [_without_text(each, erased_through) if stale else each for each in batch]
                with_queries = self._with_queries and not stale
                receipts.write(transaction, written, with_queries=with_queries)
                retired = decay.retired_since(transaction, used_at)
        except BaseException:
            with self._lock:
                self._kept[:0] = batch
            raise
        if not self.waiting:
            self.erased_through = erased_through
        self._report_retired({memory_id: used_at[memory_id] for memory_id in retired})
        return len(batch)

    def _let_recalls_end(self, until: float) -> None:
        self._recalls.wait(max(until - time.monotonic(), 0.0))

    def _first(self, limit: int) -> list[NewReceipt]:
        with self._lock:
            return self._kept[:limit]

    def _prepare(
        self, waiting: Sequence[NewReceipt], give_way: Callable[[], object] = lambda: None
    ) -> None:
        """Do the postponed work for some receipts, about a millisecond each, with pauses."""
        with ExitStack() as stack:
            snapshot = None
            for item in waiting:
                if item.hidden is not None:
                    continue
                give_way()
                if item.match and snapshot is None:
                    snapshot = stack.enter_context(self._database.read())
                item.complete(snapshot)
        give_way()

    def _report_retired(self, used_at: Mapping[str, int]) -> None:
        with self._lock:
            self._retired.update(used_at)
            pending, self._retired = self._retired, {}
        if not pending:
            return
        try:
            self._restore_used(pending)
        except BaseException:
            with self._lock:
                self._retired = pending | self._retired
            raise


def _without_text(receipt: NewReceipt, erased_through: int) -> NewReceipt:
    """Return the receipt, without texts that are older than the erasure."""
    bulletin, given = receipt.bulletin, receipt.receipt
    if given.answer is not None and (given.change_seq or 0) < erased_through:
        answer = json.loads(redacted_words(json_text(given.answer)))
        receipt = replace(receipt, receipt=replace(given, answer=answer))
    if bulletin is None or bulletin.change_seq >= erased_through:
        return receipt
    return replace(receipt, bulletin=bulletin.model_copy(update={"text": MARK}))
