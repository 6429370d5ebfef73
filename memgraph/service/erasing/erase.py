"""The way of an erasure: planned, rows, files, the database's own files, the scan, the report.

Each step may be done again: an erasure that was killed anywhere, or that somebody stood in the way
of, is finished by the next one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from memgraph.audit.journal import Entry
from memgraph.errors import Conflict
from memgraph.model.erasing import ErasureReport, ErasureTarget, Residue, Tombstone
from memgraph.service.erasing import folder
from memgraph.service.erasing.choosing import look_again, make_plan, note_snapshots
from memgraph.service.erasing.folder import FilesErased
from memgraph.service.erasing.plan import Plan, PlanFile, unfinished
from memgraph.service.erasing.previewing import preview
from memgraph.service.erasing.rows import Overtaken, erase_rows
from memgraph.service.erasing.signing import signed
from memgraph.service.life.echoes import catch_up
from memgraph.service.opened import Opened
from memgraph.storage import erasing
from memgraph.storage.backup import fsync
from memgraph.storage.database import FileLock
from memgraph.storage.erasing_sweep import digest

Progress = Callable[[str, int, int], None]
"""Called with the name of a step, which one it is, and how many there are."""

LOCK_NAME: Final = "erasing.lock"
STEPS: Final = ("reading", "rows", "files", "database", "scan", "done")
ENTRY: Final = "erasure"
TRIES: Final = 5


def erase(
    opened: Opened,
    target: ErasureTarget,
    *,
    reason: str,
    actor: str,
    dry_run: bool,
    progress: Progress = lambda _step, _done, _total: None,
) -> ErasureReport:
    """Erase what is named, and what was derived from it alone.

    What an earlier erasure left undone is done first; if it was the same one, its report is given.

    Args:
        dry_run: plan alone; nothing is written.

    Raises:
        NotFound, Conflict, InvalidInput: see ``make_plan``; Conflict, too, where others store
            what is to be erased faster than it is planned.
        StorageError: the database failed; run it again.
    """
    with FileLock(opened.paths.memory / LOCK_NAME).held():
        if not dry_run:
            for file in unfinished(opened.paths):
                plan = file.read()
                with opened.database.read() as connection:
                    look_again(connection, plan)
                file.write(plan)
                report = _finish(opened, plan, file, progress)
                if target.kind is plan.kind and target.value in (plan.target, plan.asked):
                    return report
        progress(STEPS[0], 0, len(STEPS) - 1)
        opened.write_down()
        catch_up(opened)
        with opened.database.read() as connection:
            plan = make_plan(opened, connection, target, reason=reason, actor=actor)
        if dry_run:
            return _previewed(opened, plan)
        file = PlanFile.of(opened.paths, plan.erasure_id)
        file.write(plan)
        return _finish(opened, plan, file, progress)


def _previewed(opened: Opened, plan: Plan) -> ErasureReport:
    found = folder.would_erase(opened.paths, plan)
    with opened.database.read() as connection:
        told = preview(connection, plan).model_copy(update={"waiting": found.waiting})
    report = _report(opened, plan, found.files)
    residue = report.residue.model_copy(update={"other_case": found.other_case})
    return report.model_copy(update={"dry_run": True, "preview": told, "residue": residue})


def _finish(opened: Opened, plan: Plan, file: PlanFile, progress: Progress) -> ErasureReport:
    """Carry a plan out; planned anew where more came to it before anything was done."""
    for _ in range(TRIES):
        try:
            return _carry_out(opened, plan, file, progress)
        except Overtaken:
            target = ErasureTarget(kind=plan.kind, value=plan.target)
            with opened.database.read() as connection:
                fresh = make_plan(opened, connection, target, reason=plan.reason, actor=plan.actor)
            fresh.asked = plan.asked
            last, file, plan = file, PlanFile.of(opened.paths, fresh.erasure_id), fresh
            file.write(plan)
            last.wipe()
    file.wipe()
    raise Conflict("what is to be erased changes while it is planned; try again")


def _carry_out(opened: Opened, plan: Plan, file: PlanFile, progress: Progress) -> ErasureReport:
    def step(number: int) -> None:
        progress(STEPS[number], number, len(STEPS) - 1)

    step(1)
    erase_rows(opened, plan)
    # Written down before they go: what a killed try removed is told by the one that ends it.
    note_snapshots(opened, plan)
    file.write(plan)
    opened.forget_texts()
    step(2)
    files = folder.erase_files(opened.paths, plan)
    _note_files(opened, plan)
    step(3)
    folded = _fold(opened)
    step(4)
    residue = folder.scan(opened.paths, plan)
    vacuumed = any(folder.of_database(opened.paths, each) for each in residue.places)
    if vacuumed:
        folded = _write_anew(opened)
        residue = folder.scan(opened.paths, plan)
    report = _report(opened, plan, files).model_copy(
        update={
            "ended_at": opened.clock.now_ms(),
            "wal_truncated": folded,
            "vacuumed": vacuumed,
            "residue": residue,
            "unfinished": _obstacles(files, residue, folded=folded),
        }
    )
    report = signed(report, opened.paths.root)
    if report.complete:
        _end(opened, report, file)
    step(5)
    return report


def _report(opened: Opened, plan: Plan, files: FilesErased) -> ErasureReport:
    """All that the database tells of it; see the caller for what only a scan can."""
    with opened.database.read() as connection:
        steps = erasing.told_of(connection, plan.erasure_id)
        stones = erasing.tombstones(connection, plan.erasure_id)
    rows: dict[str, int] = {}
    for each in steps:
        for table, count in each.get("rows", {}).items():
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
        journal_redacted=len({seq for each in steps for seq, *_ in each.get("redacted", ())}),
        rows=rows,
        files_redacted=tuple(files.redacted),
        files_removed=tuple(files.removed),
        outside=tuple(plan.outside),
        residue=Residue(strings=len(plan.needles), too_short=plan.too_short, shared=plan.shared),
    )


def _obstacles(files: FilesErased, residue: Residue, *, folded: bool) -> tuple[str, ...]:
    """Why it is not done, as codes that a program can act on."""
    found = []
    if not folded:
        found.append("database.in_use")
    if files.refused or residue.unread:
        found.append("file.refused")
    if residue.hits:
        found.append("residue.found")
    return tuple(found)


def _fold(opened: Opened) -> bool:
    # Most of it beside other writers: they would wait for the disk.
    opened.database.fold(after=0)
    with opened.database.exclusive() as connection:
        return erasing.fold(connection)


def _write_anew(opened: Opened) -> bool:
    with opened.database.exclusive() as connection:
        erasing.vacuum(connection)
        return erasing.fold(connection)


def _note_files(opened: Opened, plan: Plan) -> None:
    """Keep digests of files that are not what was ingested any more."""
    at = opened.clock.now_ms()
    changed = folder.contents_of(opened, plan)
    if not changed:
        return
    with opened.database.write() as connection:
        for sha256, now in changed.items():
            if now is None:
                erasing.empty_manifest(connection, sha256, at)
            else:
                erasing.note_redacted(connection, sha256, now, at)


def _end(opened: Opened, report: ErasureReport, file: PlanFile) -> None:
    """Keep the report, journal its digest, and forget the plan: in this order."""
    text = report.model_dump_json(indent=2) + "\n"
    path = opened.paths.erasures / f"{report.erasure_id}.json"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    fsync(draft)
    draft.replace(path)
    fsync(path.parent)
    details = {
        "erasure_id": report.erasure_id,
        "memories": len(report.memory_ids),
        "strings": report.residue.strings,
        "residue": report.residue.hits,
        "report_sha256": digest(text),
    }
    with opened.transaction(report.actor) as transaction:
        transaction.tell([Entry(ENTRY, None, details)])
    file.wipe()
