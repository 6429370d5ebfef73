"""Retracting a source: its memories, and what was derived from them alone.

Memories with another source or other evidence stay. What had been replaced only by retracted
memories is active again: a source that is no longer believed is no evidence against it. All
evidence decides what stays; only what the actor sees is named and changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from memgraph.model.enums import MemoryStatus, SourceName
from memgraph.model.sources import (
    MAX_TOLD,
    DisputedPair,
    ReinstatedMemory,
    RetainedMemory,
    RetractedMemory,
    SourceRetraction,
    WeakenedMemory,
)
from memgraph.operations.provenance.sources import no_source
from memgraph.operations.write import changes
from memgraph.rules.evidence import Origin, stands_without, weakened
from memgraph.rules.trust import NamedSource
from memgraph.store import edges, memories, sources, trust
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.store.sources import JoinedContradiction
from memgraph.store.visibility import View

BATCH: Final = 500
"""Memories per statement; the transaction is one."""
TAKEN_BACK: Final = "its source was taken back"
"""The prefix of the reason for each status that a retraction ended."""


class SourceLoss(NamedTuple):
    """The loss of a memory when one of its sources is retracted; ``source_ids``: the source's
    rows.
    """

    source_ids: tuple[str, ...]
    before: float
    after: float


@dataclass(slots=True)
class RetractionPlan:
    """The memories that go and those that stay, by id, in the order in which they were found."""

    gone: dict[str, Literal["given", "derived"]] = field(default_factory=dict)
    kept: dict[str, Literal["supported", "grounds"]] = field(default_factory=dict)
    said_own: set[str] = field(default_factory=set)
    weakened: dict[str, SourceLoss] = field(default_factory=dict)
    reinstated: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reopened: list[JoinedContradiction] = field(default_factory=list)


def plan(snapshot: Snapshot, named: NamedSource, view: View) -> RetractionPlan:
    """Return what retracting a source would change, as far as the view goes.

    Raises:
        NotFound: no visible memory, active or retracted, comes from it.
    """
    said = sources.said_by(snapshot, named, view)
    if not said and not sources.is_seen(snapshot, named, view):
        raise no_source(named)
    found = RetractionPlan()
    stands = _Stands(snapshot, named)
    given = sources.given_by(snapshot, named, view)
    # Where the own source was taken back before, this one may be all that was left.
    found.said_own = known = set(given)
    given += [one for one in said if one not in known and stands.rests_on_it(one)]
    said_elsewhere = stands.among(given)
    for one in given:
        if one in said_elsewhere:
            found.kept[one] = "supported"
        else:
            found.gone[one] = "given"
    _cascade(snapshot, found, stands, view)
    left = {one: tuple(rows) for one, rows in said.items() if one not in found.gone}
    found.weakened = _weakened(snapshot, left)
    found.reinstated = _reinstated(snapshot, found.gone, view)
    found.reopened = sources.decided_for(snapshot, found.reinstated)
    return found


def retract(
    transaction: JournalledTransaction, named: NamedSource, found: RetractionPlan, *, reason: str
) -> None:
    """Apply a plan, with an entry in the journal for each memory and one for all."""
    ids = list(found.gone)
    told = {"reason": reason, "source": named.kind.value, "name": named.name}
    change_all(
        transaction,
        ids,
        MemoryStatus.RETRACTED,
        reason=f"{TAKEN_BACK}: {reason}",
        entry=lambda one: NewEntry("retract", one, told | {"by": found.gone[one]}),
    )
    for one, loss in found.weakened.items():
        _weaken(transaction, one, loss, told)
    for one, why in found.kept.items():
        if why == "supported" and one in found.said_own:
            _disown(transaction, one, told)
    _reinstate(transaction, found.reinstated, f"what had replaced it was taken back: {reason}")
    counts = {"given": number(found.gone, "given"), "derived": number(found.gone, "derived")}
    whole = {"kind": named.kind.value, "name": named.name, "reason": reason, **counts}
    transaction.tell(
        [
            NewEntry(
                "retract_source",
                None,
                whole
                | {
                    "kept": len(found.kept),
                    "weakened": len(found.weakened),
                    "reinstated": len(found.reinstated),
                },
            )
        ]
    )


def report(
    snapshot: Snapshot, named: NamedSource, found: RetractionPlan, *, dry_run: bool
) -> SourceRetraction:
    """Return a plan as a report."""
    lists: Sequence[Collection[str]] = (found.gone, found.kept, found.weakened, found.reinstated)
    gone, kept, less, again = (list(each)[:MAX_TOLD] for each in lists)
    reopened = found.reopened[:MAX_TOLD]
    summaries = sources.summaries(snapshot, [*gone, *kept, *less, *again])
    return SourceRetraction(
        kind=named.kind,
        name=named.name,
        dry_run=dry_run,
        given=number(found.gone, "given"),
        derived=number(found.gone, "derived"),
        kept=len(found.kept),
        weakened=len(found.weakened),
        reinstated=len(found.reinstated),
        reopened=len(found.reopened),
        retracted_items=tuple(
            RetractedMemory(memory_id=one, summary=summaries[one], because=found.gone[one])
            for one in gone
        ),
        kept_items=tuple(
            RetainedMemory(memory_id=one, summary=summaries[one], because=found.kept[one])
            for one in kept
        ),
        weakened_items=tuple(
            WeakenedMemory(
                memory_id=one,
                summary=summaries[one],
                confidence_before=found.weakened[one].before,
                confidence_after=found.weakened[one].after,
            )
            for one in less
        ),
        reinstated_items=tuple(
            ReinstatedMemory(memory_id=one, summary=summaries[one], by=found.reinstated[one])
            for one in again
        ),
        reopened_items=tuple(DisputedPair(**each._asdict()) for each in reopened),
        cut=any(len(each) > MAX_TOLD for each in (*lists, found.reopened)),
    )


class _Stands:
    """Decides which memories have other evidence than one source."""

    def __init__(self, snapshot: Snapshot, named: NamedSource) -> None:
        self._snapshot = snapshot
        self._gone = is_of(named)

    def rests_on_it(self, memory_id: str) -> bool:
        """Return True when the source supports a memory whose own source was retracted before."""
        own, _ = trust.origins(self._snapshot, memory_id)
        return any(self._gone(each) for each in own)

    def among(self, memory_ids: Sequence[str]) -> set[str]:
        """Return the memories that another source states as well."""
        found: set[str] = set()
        for start in range(0, len(memory_ids), BATCH):
            batch = memory_ids[start : start + BATCH]
            for one in sources.supported(self._snapshot, batch):
                if stands_without(*trust.origins(self._snapshot, one), self._gone):
                    found.add(one)
        return found


def _weakened(snapshot: Snapshot, said: Mapping[str, tuple[str, ...]]) -> dict[str, SourceLoss]:
    """Return what memories lose that a source stated, too; the journal has what they gained by
    it.
    """
    found: dict[str, SourceLoss] = {}
    ids = list(said)
    for start in range(0, len(ids), BATCH):
        for each in memories.get_many(snapshot, ids[start : start + BATCH]):
            rows, before = said[each.memory_id], each.confidence
            gains = trust.gained(snapshot, each.memory_id, rows)
            after = weakened(before, gains)
            found[each.memory_id] = SourceLoss(rows, before, round(after, 6))
    return {one: found[one] for one in ids}


def _weaken(
    transaction: JournalledTransaction, memory_id: str, loss: SourceLoss, told: Mapping[str, str]
) -> None:
    at = transaction.at
    trust.end(transaction, memory_id, loss.source_ids)
    if loss.after != loss.before:
        memories.update(transaction, memory_id, confidence=loss.after, updated_at=at)
    changed = {"confidence": {"before": loss.before, "after": loss.after}}
    whole = {**told, "source_ids": list(loss.source_ids), **changed}
    transaction.tell([NewEntry("weaken", memory_id, whole)])


def end_for(
    transaction: JournalledTransaction,
    named: NamedSource,
    memory_ids: Collection[str],
    *,
    reason: str,
    view: View,
) -> None:
    """Remove a source from some visible memories that stay, or are restored by another."""
    told = {"reason": reason, "source": named.kind.value, "name": named.name}
    said = sources.said_by(transaction, named, view)
    left = {one: tuple(rows) for one, rows in said.items() if one in memory_ids}
    for one, loss in _weakened(transaction, left).items():
        _weaken(transaction, one, loss, told)
    for one in sources.given_by(transaction, named, view):
        if one in memory_ids:
            _disown(transaction, one, told)


def change_all(
    transaction: JournalledTransaction,
    memory_ids: Sequence[str],
    status: MemoryStatus,
    *,
    reason: str,
    entry: Callable[[str], NewEntry],
) -> None:
    """Give many memories a status, in batches, with an entry in the journal for each."""
    for start in range(0, len(memory_ids), BATCH):
        batch = memory_ids[start : start + BATCH]
        memories.set_statuses(transaction, batch, status, reason=reason)
        transaction.tell([entry(one) for one in batch])


def _reinstate(
    transaction: JournalledTransaction, reinstated: Mapping[str, Collection[str]], told: str
) -> None:
    lost = edges.losers(transaction, list(reinstated))
    for one in lost:
        transaction.tell(changes.reinstate(transaction, one, reinstated[one], told=told))
    change_all(
        transaction,
        [one for one in reinstated if one not in lost],
        MemoryStatus.ACTIVE,
        reason=told,
        entry=lambda one: NewEntry("restore", one, {"reason": told}),
    )


def _disown(transaction: JournalledTransaction, memory_id: str, told: Mapping[str, str]) -> None:
    """Keep a memory for its other sources, without its own one."""
    [memory] = memories.get_many(transaction, [memory_id])
    if trust.end_own(transaction, memory_id):
        same = {"before": memory.confidence, "after": memory.confidence}
        whole = {**told, "source_ids": [memory.source_id], "confidence": same}
        transaction.tell([NewEntry("weaken", memory_id, whole)])


def is_of(named: NamedSource) -> Callable[[Origin], bool]:
    """Return a function that is True for an origin that is that source, or lies in that folder."""
    folder = named.name.rstrip("/") + "/"

    def gone(origin: Origin) -> bool:
        if named.kind is SourceName.PATH:
            path = origin.source_path or ""
            return path == named.name or path.startswith(folder)
        return (named.kind.value, named.name) in origin.keys

    return gone


def _cascade(snapshot: Snapshot, found: RetractionPlan, stands: _Stands, view: View) -> None:
    """Add to a plan what depends only on retracted memories, at any distance."""
    lately = list(found.gone)
    while lately:
        grounds: dict[str, list[str]] = {}
        for start in range(0, len(lately), BATCH):
            grounds |= sources.derived_from(snapshot, lately[start : start + BATCH], view)
        lately = []
        new = [one for one in grounds if one not in found.gone]
        said_elsewhere = stands.among([one for one in new if found.kept.get(one) != "supported"])
        for one in new:
            if one in said_elsewhere or found.kept.get(one) == "supported":
                found.kept[one] = "supported"
            elif any(ground not in found.gone for ground in grounds[one]):
                found.kept[one] = "grounds"
            else:
                found.kept.pop(one, None)
                found.gone[one] = "derived"
                lately.append(one)


def _reinstated(
    snapshot: Snapshot, gone: Collection[str], view: View
) -> dict[str, tuple[str, ...]]:
    """Return what is superseded by nothing that is left, and by which retracted ones it was."""
    by: dict[str, dict[str, None]] = {}
    ids = list(gone)
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        for old, new in sources.replaced_by(snapshot, batch, view):
            if old not in gone:
                by.setdefault(old, {})[new] = None
    standing = edges.still_replaced(snapshot, list(by), gone=ids)
    return {old: tuple(new) for old, new in by.items() if old not in standing}


def number(found: Mapping[str, str], because: str) -> int:
    return sum(each == because for each in found.values())
