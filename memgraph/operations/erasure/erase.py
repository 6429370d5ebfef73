"""The steps of an erasure: plan, rows, files, the database's own files, scan, report.

Each step may be repeated: an erasure that was killed or blocked is finished by the next one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import memgraph.model.tables  # noqa: F401 - for the time that it takes
from memgraph.errors import Conflict
from memgraph.model.erasure import (
    ErasurePreview,
    ErasureReport,
    ErasureTarget,
    ErasureTargetKind,
    RedactedEntry,
    Residue,
    Tombstone,
)
from memgraph.operations.erasure import folder
from memgraph.operations.erasure.choice import (
    look_again,
    make_plan,
    name_words,
    note_snapshots,
    overtaken,
)
from memgraph.operations.erasure.folder import ErasedFiles
from memgraph.operations.erasure.plan import ErasurePlan, PlanFile, left_on_servers, unfinished
from memgraph.operations.erasure.signatures import (
    keep_proven,
    load_ed25519,
    proven_redactions,
    signed,
    write_new,
)
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import erasure, erasure_search, journal, memories
from memgraph.store import erasure_search as queries
from memgraph.store.erasure import ErasedRow, digest
from memgraph.store.files import FileLock
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
    for find in _rows_elsewhere(plan):
        _sweep(opened, plan, find)


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


def _rows_elsewhere(
    plan: ErasurePlan,
) -> tuple[Callable[[Snapshot], Iterator[ErasedRow]], ...]:
    """Return what finds the rows, beside those of the erased memories, that have to change."""
    ids = set(plan.memory_ids)
    return (
        lambda snapshot: erasure.rows_citing(snapshot, ids, plan.notes),
        lambda snapshot: erasure.rows_saying(snapshot, ids, plan.entity_ids, plan.says, plan.scrub),
    )


def _sweep(
    opened: OpenOrchestrator, plan: ErasurePlan, find: Callable[[Snapshot], Iterable[ErasedRow]]
) -> None:
    """Make the changes that are found; again where a row was changed or added meanwhile."""
    for _ in range(LOOKS):
        with opened.database.read() as snapshot:
            result = list(find(snapshot))
        done = sum(_change(opened, plan, batch) for batch in _batches(result, SWEPT))
        # What a memory had before is kept by a trigger, as a row that was not there yet.
        kept = any(row.table == erasure.MEMORIES for row in result)
        if done == len(result) and not kept:
            return


def _change(opened: OpenOrchestrator, plan: ErasurePlan, changes: Sequence[ErasedRow]) -> int:
    with opened.transaction(plan.actor) as transaction:
        with transaction.engine.thorough(transaction):
            result = erasure.apply(transaction, changes)
        rows: dict[str, int] = {}
        for item in result:
            if item.table != erasure.JOURNAL:
                rows[item.table] = rows.get(item.table, 0) + 1
        redacted = [list(item) for item in erasure.redacted(transaction, result)]
        if result:
            _record(transaction, [_step(plan, {"rows": rows, "redacted": redacted})])
    return len(result)


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


# What a dry run shows of an erasure: how the texts begin, and names like the one that is meant.


SHOWN: Final = 200
"""Memories that go, and as many of those that stay, whose texts are shown."""
_BEGINNING: Final = 80
_SIMILAR: Final = 20


def preview(snapshot: Snapshot, plan: ErasurePlan) -> ErasurePreview:
    """Return what a plan would erase, in words; only reads. Files to ingest are not included."""
    rows = {(row.table, row.key) for find in _rows_elsewhere(plan) for row in find(snapshot)}
    own = {(erasure.MEMORIES, (pk,)) for pk in plan.pks}
    changed = sorted(key[0] for table, key in rows - own if table == erasure.MEMORIES)
    changed_ids = [row.memory_id for row in queries.memories_to_erase(snapshot, changed)]
    kept_ids = [item["memory_id"] for item in plan.kept]
    shown = [*plan.memory_ids[:SHOWN], *kept_ids[:SHOWN], *changed_ids[:SHOWN]]
    begins = memories.beginnings(snapshot, shown, _BEGINNING)
    derived = set(plan.derived_pks)
    ids = zip(plan.pks, plan.memory_ids, strict=True)
    return ErasurePreview(
        begins=begins,
        derived_ids=tuple(memory_id for pk, memory_id in ids if pk in derived),
        changed_ids=tuple(changed_ids),
        rows=dict(sorted(Counter(table for table, _ in rows - own).items())),
        shared=tuple(plan.shared_strings[:SHOWN]),
        similar=_similar(snapshot, plan) if plan.kind is ErasureTargetKind.ENTITY else (),
    )


def _similar(snapshot: Snapshot, plan: ErasurePlan) -> tuple[str, ...]:
    """Return names of other entities that share a word with the named one."""
    meant = [name for item in queries.entity(snapshot, plan.target) for name in item.names]
    own = {word for name in meant for word in name_words(name)}
    existing = {name.casefold() for name in meant}
    others = queries.entity_names(snapshot)
    result = (
        other
        for other in others
        if other.casefold() not in existing and own & set(name_words(other))
    )
    return tuple(islice(result, _SIMILAR))


Progress = Callable[[str, int, int], None]
"""Called with the name of a step, its number, and the number of steps."""

LOCK_NAME: Final = "erasing.lock"
STEPS: Final = ("reading", "rows", "files", "database", "scan", "done")
ENTRY: Final = "erasure"
TRIES: Final = 5
CUT_WAIT_MS: Final = 100
"""For so long writers wait for readers in one try to cut the WAL: a recall is over by then."""
CUT_PAUSE_S: Final = 0.5


def erase(
    opened: OpenOrchestrator,
    target: ErasureTarget,
    *,
    reason: str,
    actor: str,
    dry_run: bool,
    progress: Progress = lambda _step, _done, _total: None,
) -> ErasureReport:
    """Erase the target, and what was derived from it alone.

    An unfinished earlier erasure is finished first; if it was the same one, its report is returned.

    Args:
        dry_run: only plan; nothing is written.

    Raises:
        NotFound, Conflict, InvalidInput: see ``make_plan``; Conflict, too, when others store the
            target faster than it is planned.
        StorageError: the database failed; run it again.
        ExtraMissing: the report could not be signed; nothing is erased.
    """
    if not dry_run:
        load_ed25519()
    with FileLock(opened.paths.memory / LOCK_NAME).held():
        if not dry_run:
            for file in unfinished(opened.paths):
                plan = file.read()
                with opened.database.read() as snapshot:
                    look_again(snapshot, plan)
                file.write(plan)
                report = _finish(opened, plan, file, progress)
                if target.kind is plan.kind and target.value in (plan.target, plan.asked):
                    return report
        progress(STEPS[0], 0, len(STEPS) - 1)
        opened.write_down()
        with opened.database.read() as snapshot:
            plan = make_plan(opened, snapshot, target, reason=reason, actor=actor)
        if dry_run:
            return _previewed(opened, plan)
        file = PlanFile.of(opened.paths, plan.erasure_id)
        file.write(plan)
        return _finish(opened, plan, file, progress)


def _previewed(opened: OpenOrchestrator, plan: ErasurePlan) -> ErasureReport:
    result = folder.would_erase(opened.paths, plan, opened.database)
    with opened.database.read() as snapshot:
        message = preview(snapshot, plan).model_copy(update={"waiting": result.waiting})
    report = _report(opened, plan, result.files)
    residue = report.residue.model_copy(update={"other_case": result.other_case})
    return report.model_copy(update={"dry_run": True, "preview": message, "residue": residue})


def _finish(
    opened: OpenOrchestrator, plan: ErasurePlan, file: PlanFile, progress: Progress
) -> ErasureReport:
    """Carry a plan out; plan again when more was stored before the first step."""
    for _ in range(TRIES):
        try:
            return _carry_out(opened, plan, file, progress)
        except PlanOutdated:
            target = ErasureTarget(kind=plan.kind, value=plan.target)
            with opened.database.read() as snapshot:
                fresh = make_plan(opened, snapshot, target, reason=plan.reason, actor=plan.actor)
            fresh.asked = plan.asked
            last, file, plan = file, PlanFile.of(opened.paths, fresh.erasure_id), fresh
            file.write(plan)
            last.wipe()
    file.wipe()
    raise Conflict("the memories changed while the erasure was planned; try again")


def _carry_out(
    opened: OpenOrchestrator, plan: ErasurePlan, file: PlanFile, progress: Progress
) -> ErasureReport:
    def step(number: int) -> None:
        progress(STEPS[number], number, len(STEPS) - 1)

    step(1)
    erase_rows(opened, plan)
    # Written down before they go: what a killed try removed is told by the one that ends it.
    note_snapshots(opened, plan)
    file.write(plan)
    opened.forget_texts()
    step(2)
    with opened.database.read() as snapshot:
        proven = proven_redactions(opened.paths, snapshot)
    files = folder.erase_files(opened.paths, plan, opened.database)
    keep_proven(opened.paths, proven, at=opened.clock.now_ms())
    _note_files(opened, plan)
    step(3)
    folded = _fold(opened)
    step(4)
    residue = folder.scan(opened.paths, plan, opened.database)
    server = opened.database.traces()
    vacuumed = any(folder.of_database(opened.paths, place) for place in residue.places)
    if vacuumed:
        folded = _write_anew(opened)
        residue = folder.scan(opened.paths, plan, opened.database)
    report = _report(opened, plan, files).model_copy(
        update={
            "ended_at": opened.clock.now_ms(),
            "wal_truncated": folded and server is None,
            "vacuumed": vacuumed or (folded and server is not None),
            "server": server,
            "residue": residue,
            "unfinished": _obstacles(files, residue, folded=folded),
        }
    )
    report = signed(report, opened.paths.root)
    if report.complete:
        _end(opened, report, file)
    step(5)
    return report


def _report(opened: OpenOrchestrator, plan: ErasurePlan, files: ErasedFiles) -> ErasureReport:
    """Return the report of what the database knows; the caller adds the scan."""
    with opened.database.read() as snapshot:
        steps = erasure.erasure_steps(snapshot, plan.erasure_id)
        stones = erasure.tombstones(snapshot, plan.erasure_id)
    redactions = tuple(
        RedactedEntry(seq=seq, hash=sealed, details=details)
        for step in steps
        for seq, sealed, details in step.get("redacted", ())
    )
    rows: dict[str, int] = {}
    for step in steps:
        for table, count in step.get("rows", {}).items():
            rows[table] = rows.get(table, 0) + count
    return ErasureReport(
        erasure_id=plan.erasure_id,
        orchestrator=opened.paths.name,
        kind=plan.kind,
        target=plan.target,
        reason=plan.reason,
        actor=plan.actor,
        started_at=plan.started_at,
        ended_at=opened.clock.now_ms(),
        memory_ids=tuple(plan.memory_ids),
        derived=plan.derived,
        entities=len(plan.entity_pks),
        kept=plan.kept_memories,
        tombstones=tuple(Tombstone(memory_id=m, seq=s, hash=h) for m, s, h in stones),
        journal_redacted=len({redaction.seq for redaction in redactions}),
        redactions=redactions,
        rows=rows,
        files_redacted=tuple(files.redacted),
        files_removed=tuple(files.removed),
        outside=(*plan.outside, *left_on_servers(opened.paths)),
        residue=Residue(strings=len(plan.needles), too_short=plan.too_short, shared=plan.shared),
    )


def _obstacles(files: ErasedFiles, residue: Residue, *, folded: bool) -> tuple[str, ...]:
    """Return the reasons why it is incomplete, as codes for programs."""
    results = []
    if not folded:
        results.append("database.in_use")
    if files.refused or residue.unread:
        results.append("file.refused")
    if residue.hits:
        results.append("residue.found")
    return tuple(results)


def _fold(opened: OpenOrchestrator) -> bool:
    """Remove what is kept of deleted rows; return whether readers of an older state ended in time.

    They are waited for with the lock given up between two short tries, so that others may write.
    """
    wait_s = opened.settings.memory.storage.busy_timeout_ms / 1000
    deadline = time.monotonic() + wait_s
    while True:
        # Most of it beside other writers: they would wait for the disk.
        opened.database.fold(after=0)
        if opened.database.cut(wait_ms=CUT_WAIT_MS):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(min(CUT_PAUSE_S, wait_s))


def _write_anew(opened: OpenOrchestrator) -> bool:
    opened.database.rewrite()
    return _fold(opened)


def _note_files(opened: OpenOrchestrator, plan: ErasurePlan) -> None:
    """Keep digests of files that differ from what was ingested."""
    at = opened.clock.now_ms()
    changed = folder.contents_of(opened, plan)
    if not changed:
        return
    with opened.database.write() as transaction:
        for sha256, now in changed.items():
            if now is None:
                erasure.empty_manifest(transaction, sha256, at)
            else:
                erasure.note_redacted(transaction, sha256, now, at)


def _end(opened: OpenOrchestrator, report: ErasureReport, file: PlanFile) -> None:
    """Save the report, journal its digest, and remove the plan, in this order."""
    text = report.model_dump_json(indent=2) + "\n"
    path = opened.paths.erasures / f"{report.erasure_id}.json"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_new(path, text)
    details = {
        "erasure_id": report.erasure_id,
        "memories": len(report.memory_ids),
        "strings": report.residue.strings,
        "residue": report.residue.hits,
        "report_sha256": digest(text),
    }
    with opened.transaction(report.actor) as transaction:
        transaction.record([NewEntry(ENTRY, None, details)])
    file.wipe()
