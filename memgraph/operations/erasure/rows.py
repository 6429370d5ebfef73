"""Erasing the rows in short transactions, with the journal entries in each.

First every memory is retracted and gets a tombstone: from then on nobody sees it, and nothing can
be derived from it. Then the texts are removed, then other occurrences of them. Each step is
journalled and may be repeated: what is done already is not found again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

# Loading it at first use would take a second under the lock.
import memgraph.model.tables  # noqa: F401 - for the time that it takes
from memgraph.operations.erasure.choice import overtaken
from memgraph.operations.erasure.plan import ErasurePlan
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import erasure, erasure_search, journal
from memgraph.store.erasure import ErasedRow
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot

TOMBSTONE: Final = "erase"
HIDDEN: Final = 200
"""Memories retracted in one transaction."""
BLANKED: Final = 20
"""Memories whose texts, index words and vectors are removed in one transaction."""
SWEPT: Final = 100
"""Other texts scrubbed in one transaction."""
LOOKS: Final = 5
GIVE_WAY_S: Final = 0.02
"""Pause between two transactions, in seconds, in which others may write."""

_T = TypeVar("_T")


class PlanOutdated(Exception):
    """The set of memories to erase has changed since the plan."""


def erase_rows(opened: OpenOrchestrator, plan: ErasurePlan) -> None:
    """Remove the texts from the database.

    What an earlier attempt removed is skipped; what another process wrote back since is removed
    again.

    Raises:
        Overtaken: nothing was done.
        StorageError: some of it may be done; the next attempt continues.
    """
    _hide(opened, plan)
    _blank(opened, plan)
    ids = set(plan.memory_ids)
    _sweep(opened, plan, lambda snapshot: erasure.rows_citing(snapshot, ids, plan.notes))
    _sweep(
        opened,
        plan,
        lambda snapshot: erasure.rows_saying(snapshot, ids, plan.entity_ids, plan.says, plan.scrub),
    )


def _hide(opened: OpenOrchestrator, plan: ErasurePlan) -> None:
    """Retract the memories, with a tombstone for each and one for the erasure."""
    with opened.database.read() as snapshot:
        begun = bool(erasure.erasure_steps(snapshot, plan.erasure_id))
        buried = {memory_id for memory_id, *_ in erasure.tombstones(snapshot, plan.erasure_id)}
        looked_at = journal.head(snapshot)
        if not begun and overtaken(snapshot, plan):
            raise PlanOutdated
    both = zip(plan.pks, plan.memory_ids, strict=True)
    remaining = [(pk, memory_id) for pk, memory_id in both if memory_id not in buried]
    # An entity that no memory names is reported, too.
    for batch in _batches(remaining, HIDDEN) if remaining or begun else ([],):
        with opened.transaction(plan.actor) as transaction:
            # What was stored since then would stay, with nothing left to tell what it was made of.
            written = not begun and journal.head(transaction) != looked_at
            if written and overtaken(transaction, plan):
                raise PlanOutdated
            pks = [pk for pk, _ in batch]
            erasure.retract(transaction, pks)
            ids = [memory_id for _, memory_id in batch]
            entries = [
                NewEntry(TOMBSTONE, memory_id, {"erasure_id": plan.erasure_id}) for memory_id in ids
            ]
            if not begun:
                by_id = {"kind": plan.kind.value, "reason": plan.reason}
                entries.append(_step(plan, {**by_id, "memories": len(plan.memory_ids)}))
            _record(transaction, entries)
        begun = True


def _blank(opened: OpenOrchestrator, plan: ErasurePlan) -> None:
    with opened.database.read() as snapshot:
        state = erasure_search.unerased_among(snapshot, plan.pks)
    for batch in _batches(state, BLANKED):
        with opened.transaction(plan.actor) as transaction:
            with transaction.engine.thorough(transaction):
                # One may have been restored in between.
                erasure.retract(transaction, batch)
                rows = erasure.blank(transaction, batch)
            _record(transaction, [_step(plan, {"rows": rows})])
    for batch in _batches(plan.entity_pks, HIDDEN):
        with opened.transaction(plan.actor) as transaction:
            with transaction.engine.thorough(transaction):
                entities = erasure.remove_entities(transaction, batch)
            if entities:
                _record(transaction, [_step(plan, {"entities": entities})])


def _sweep(
    opened: OpenOrchestrator, plan: ErasurePlan, find: Callable[[Snapshot], Iterable[ErasedRow]]
) -> None:
    """Make the changes that are found; again where a row was changed meanwhile."""
    for _ in range(LOOKS):
        with opened.database.read() as snapshot:
            result = list(find(snapshot))
        done = sum(_change(opened, plan, batch) for batch in _batches(result, SWEPT))
        if done == len(result):
            return


def _change(opened: OpenOrchestrator, plan: ErasurePlan, changes: Sequence[ErasedRow]) -> int:
    with opened.transaction(plan.actor) as transaction:
        with transaction.engine.thorough(transaction):
            made = erasure.apply(transaction, changes)
        rows: dict[str, int] = {}
        for item in made:
            if item.table != erasure.JOURNAL:
                rows[item.table] = rows.get(item.table, 0) + 1
        redacted = [list(item) for item in erasure.redacted(transaction, made)]
        if made:
            _record(transaction, [_step(plan, {"rows": rows, "redacted": redacted})])
    return len(made)


def _step(plan: ErasurePlan, details: dict[str, Any]) -> NewEntry:
    """Return the journal entry of one step; ``erasure.erasure_steps`` collects all of them."""
    return NewEntry(TOMBSTONE, None, {"erasure_id": plan.erasure_id, **details})


def _record(transaction: JournalledTransaction, entries: Sequence[NewEntry]) -> None:
    """Journal a step, and drop caches of earlier data."""
    head, _ = journal.head(transaction)
    transaction.record(entries)
    erasure.note_head(transaction, head + len(entries))


def _batches(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    for start in range(0, len(items), size):
        if start:
            time.sleep(GIVE_WAY_S)
        yield items[start : start + size]
