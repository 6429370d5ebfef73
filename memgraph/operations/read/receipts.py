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
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from memgraph.model.receipts import Receipt, ReceiptItem, bundle_bytes
from memgraph.rules.erasure import MARK, redacted_words
from memgraph.service.background import InFlightCalls
from memgraph.store import decay, erasure, receipts
from memgraph.store.engine import Database
from memgraph.store.receipts import NewReceipt, ShownBulletin, uses
from memgraph.store.rows import json_text

if TYPE_CHECKING:
    from memgraph.model.context import Bulletin
    from memgraph.model.recall import Bundle, RecallRequest
    from memgraph.rules.scope import Viewer
    from memgraph.store.recall import RecallFilter
    from memgraph.store.snapshot import Snapshot

FLUSH_AT = 16
# The number of receipts per transaction (about 5 ms); more if very many are pending.
STEP = 3
MOST_STEPS = 32
GIVE_WAY_S = 0.02
# A limit for the buffer, in case the database cannot be written to.
MAX_KEPT = 1_024


@dataclass(frozen=True, slots=True)
class ReceiptContext:
    """The data needed to complete a receipt when it is written.

    Attributes:
        bundle: the delivered recall, unless it was a text.
        match, narrowing: the search expression and the searched scope.
        bulletin: the delivered bulletin, if it was one.
        beside: the id of the receipt of a bulletin that was delivered together with it.
    """

    bundle: Bundle | None = None
    match: str = ""
    narrowing: RecallFilter | None = None
    bulletin: Bulletin | None = None
    beside: str | None = None


NOTHING = ReceiptContext()


def behind(viewer: Viewer, request: RecallRequest, bundle: Bundle) -> ReceiptContext:
    """Return the data needed to complete the receipt of a recall."""
    # Imported late: only recalls need it, and they have loaded it already.
    from memgraph.retrieval.request import narrowed

    match = "" if request.as_of is not None else bundle.account.match
    return ReceiptContext(bundle, match, narrowed(request, viewer, bundle.at))


@dataclass(slots=True)
class _Kept:
    """A pending receipt; ``handed_out`` is set once it is prepared."""

    receipt: Receipt
    behind: ReceiptContext
    handed_out: NewReceipt | None = None


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
        self._kept: list[_Kept] = []
        self.dropped = 0
        # The head of the journal at the last erasure known to this process.
        self.erased_through = 0

    @property
    def waiting(self) -> bool:
        """True when something is pending."""
        return bool(self._kept)

    def add(self, receipt: Receipt, context: ReceiptContext = NOTHING) -> bool:
        """Buffer a receipt; return True when the buffer should be flushed."""
        with self._lock:
            if len(self._kept) >= MAX_KEPT:
                self.dropped += 1
                return True
            self._kept.append(_Kept(receipt, context))
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
            written = [item.handed_out for item in batch if item.handed_out is not None]
            used = uses(item.receipt for item in written)
            used_at = {memory_id: use.last_at for memory_id, use in used.items()}
            # Not durable: a power failure would lose buffered receipts anyway.
            with self._database.write(durable=False) as transaction:
                erased_through = erasure.erased_through(transaction)
                # Receipts buffered before an erasure by any process may contain erased text.
                stale = erased_through != self.erased_through
                if stale:
                    written = [_without_text(item, erased_through) for item in written]
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

    def _first(self, limit: int) -> list[_Kept]:
        with self._lock:
            return self._kept[:limit]

    def _prepare(
        self, waiting: Sequence[_Kept], give_way: Callable[[], object] = lambda: None
    ) -> None:
        """Do the postponed work for some receipts, about a millisecond each, with pauses."""
        with ExitStack() as stack:
            snapshot = None
            for item in waiting:
                if item.handed_out is not None:
                    continue
                give_way()
                if item.behind.match and snapshot is None:
                    snapshot = stack.enter_context(self._database.read())
                item.handed_out = _handed_out(item.receipt, item.behind, snapshot)
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


def _handed_out(
    receipt: Receipt, context: ReceiptContext, snapshot: Snapshot | None = None
) -> NewReceipt:
    if context.bulletin is not None:
        return _of_bulletin(receipt, context.bulletin)
    if context.bundle is not None and receipt.sha256 is None:
        digest = hashlib.sha256(bundle_bytes(context.bundle)).hexdigest()
        receipt = replace(receipt, sha256=digest)
    hidden: Mapping[str, Sequence[str]] = {}
    if snapshot is not None and context.match and context.narrowing is not None:
        hidden = receipts.hidden_matches(snapshot, context.match, context.narrowing)
    return NewReceipt(receipt, hidden, beside=context.beside)


def _of_bulletin(receipt: Receipt, bulletin: Bulletin) -> NewReceipt:
    ids, text = bulletin.memory_ids, bulletin.text
    digest = hashlib.sha256(text.encode()).hexdigest()
    row = ShownBulletin(
        change_seq=bulletin.change_seq,
        view_key=bulletin.view_key,
        viewer=json_text(receipt.viewer),
        sha256=digest,
        memory_ids=ids,
        body=text,
    )
    items = tuple(ReceiptItem(memory_id, 0.0) for memory_id in ids)
    return NewReceipt(replace(receipt, items=items, sha256=digest), bulletin=row)


def _without_text(receipt: NewReceipt, erased_through: int) -> NewReceipt:
    """Return the receipt, without texts that are older than the erasure."""
    bulletin, given = receipt.bulletin, receipt.receipt
    if given.answer is not None and (given.change_seq or 0) < erased_through:
        answer = json.loads(redacted_words(json_text(given.answer)))
        receipt = replace(receipt, receipt=replace(given, answer=answer))
    if bulletin is None or bulletin.change_seq >= erased_through:
        return receipt
    return replace(receipt, bulletin=bulletin._replace(body=MARK))
