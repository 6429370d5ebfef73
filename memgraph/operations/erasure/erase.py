"""Erase memories with everything that repeats their texts, and report it.

One transaction changes every row and leaves a row that says ``erasing``. Files, the free space of
the database and the search follow; after a kill, the next open does them. The row holds the texts
encrypted, because once the rows lack them nothing else knows what to search for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from memgraph.audit.redactions import digest, sealed
from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.model.enums import SourceName
from memgraph.model.erasure import (
    ErasurePreview,
    ErasureReport,
    ErasureTarget,
    ErasureTargetKind,
    NotErasedMemory,
    RedactedEntry,
    Searched,
    Why,
)
from memgraph.model.sources import NamedSource
from memgraph.operations.erasure import files
from memgraph.operations.erasure.files import FoundFiles, SourceFiles, strings_in
from memgraph.operations.provenance.retraction import is_of, supported_elsewhere
from memgraph.rules.erasure import names_of, strings_of
from memgraph.rules.evidence import Origin
from memgraph.rules.search_terms import SearchTerms
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import entities, erasure, journal, memories, metadata
from memgraph.store.engine import LONGER
from memgraph.store.erasure import Change, EntityForms, Gone, MemoryToErase, Standing
from memgraph.store.files import FileLock
from memgraph.store.key_file import erasure_key, made_erasure_key
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.text.fold import fold
from memgraph.text.names import canonical

MAX_MEMORIES: Final = 100_000
SHOWN: Final = 200
"""Memories that go, and as many of those that stay, whose texts a preview shows."""
CUT_WAIT_MS: Final = 100
"""For so long writers wait for readers in one try to cut the WAL: a recall is over by then."""
CUT_PAUSE_S: Final = 0.5
STEPS: Final = ("reading", "rows", "files", "database", "search", "done")
Progress = Callable[[str, int, int], None]
"""Called with the name of a step, its number, and the number of steps."""
_BEGINNING: Final = 80


def _silent(_step: str, _done: int, _total: int) -> None:
    pass


# -- what goes -------------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """The memories that go, those of them that were derived, who stays, and what was named."""

    ids: frozenset[str]
    derived: frozenset[str]
    kept: dict[str, Why]
    named: EntityForms
    entity_id: str


def choose(snapshot: Snapshot, target: ErasureTarget) -> Chosen:
    """Return what a target means, with the memories derived from it alone.

    Raises:
        NotFound: the target does not exist.
        Conflict: it is already erased, or the name of an entity is ambiguous.
        InvalidInput: the text is too short, or there are too many memories.
    """
    meant, named, entity_id = _meant(snapshot, target)
    kept: dict[str, Why] = {}

    def is_gone(origin: Origin) -> bool:
        return source is not None and is_of(source)(origin)

    source = _source(target)
    if source is not None:
        kept |= dict.fromkeys(
            supported_elsewhere(snapshot, sorted(meant), is_gone), "other_sources"
        )
        meant -= kept.keys()
    chosen, stays, fresh = set(meant), dict[str, Why](), set(meant)
    while fresh:
        evidence = erasure.derived_from(snapshot, chosen)
        fresh = evidence.keys() - chosen
        stays = {item: "other_grounds" for item in fresh if not evidence[item] <= chosen}
        elsewhere = supported_elsewhere(snapshot, sorted(fresh - stays.keys()), is_gone)
        stays |= dict.fromkeys(elsewhere, "other_sources")
        fresh -= stays.keys()
        chosen |= fresh
    if len(chosen) > MAX_MEMORIES:
        raise InvalidInput(f"an erasure is limited to {MAX_MEMORIES:,} memories")
    return Chosen(frozenset(chosen), frozenset(chosen - meant), kept | stays, named, entity_id)


def _source(target: ErasureTarget) -> NamedSource | None:
    """Return the source that a target names, if it names one; a session is a conversation."""
    is_session = target.kind is ErasureTargetKind.SESSION
    kind = SourceName.CONVERSATION if is_session else str(target.kind)
    return NamedSource(SourceName(kind), target.value) if kind in [*SourceName] else None


def _meant(snapshot: Snapshot, target: ErasureTarget) -> tuple[set[str], EntityForms, str]:
    kind, value = target.kind, target.value
    if kind is ErasureTargetKind.TEXT:
        if len(fold(value).strip().encode()) < SearchTerms.SHORTEST:
            raise InvalidInput("the text is too short to be searched for")
        terms = SearchTerms([value], whole=[value])
        ids = erasure.saying(snapshot, terms, "content", "summary", "source_role")
        return ids, erasure.entities_called(snapshot, terms), ""
    if kind is ErasureTargetKind.ENTITY:
        record = entities.by_id(snapshot, value)
        records = [record] if record else entities.by_keys(snapshot, [canonical(value)])
        if len(records) > 1:
            candidates = [item.entity_id for item in records]
            raise Conflict("the name is ambiguous; use an id", candidates=candidates)
        if not records:
            raise NotFound(
                f"no entity has the id or name {value[:80]!r}; to erase a text wherever it stands,"
                " name it as a text",
                name=value[:80],
            )
        named = erasure.forms_of(snapshot, records)
        terms = SearchTerms(named.names, names=named.names)
        ids = erasure.linked(snapshot, named.pks) | erasure.saying(snapshot, terms, "content")
        return ids, named, records[0].entity_id
    found = erasure.named(snapshot, kind, value)
    if not found:
        of_kind = "" if kind is ErasureTargetKind.MEMORY else f" of the {kind.value}"
        raise NotFound(f"no memory{of_kind} {value[:80]!r}", value=value[:80])
    if all(found.values()):
        by = sorted({*erasure.erasures_of(snapshot, found).values()}, reverse=True)
        raise Conflict(f"it is already erased by {', '.join(by[:1])}", erasure_ids=by[:10])
    return {memory_id for memory_id, erased in found.items() if not erased}, EntityForms(), ""


# -- the texts -------------------------------------------------------------------------------------


@dataclass
class ErasedTexts:
    """What an erasure removes from rows and files; the row ``erasing`` holds it encrypted.

    Attributes:
        asked: the texts that the erasure was asked for; ``names``: the names of what goes;
            ``own``: the texts of memories; ``labels``: what only stands beside them, as titles do.
        lines, removals: see ``SourceFiles``.
    """

    asked: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: dict[str, list[int]] = field(default_factory=dict)
    removals: list[str] = field(default_factory=list)

    @property
    def strings(self) -> dict[str, None]:
        return dict.fromkeys([*self.asked, *self.names, *self.own, *self.labels])


class Search(NamedTuple):
    """The terms to remove and those to search for, without what stays; and who says that."""

    terms: SearchTerms
    sought: SearchTerms
    shared: int
    says_it: frozenset[str]


def _texts(
    target: ErasureTarget,
    rows: Sequence[MemoryToErase],
    sources: SourceFiles,
    chosen: Chosen,
    gone: EntityForms,
) -> ErasedTexts:
    contents = [text for row in rows for text in (row.content, row.summary)]
    attributes = [json.loads(row.attributes) for row in rows]
    quotes = strings_in([fields.get("quote") for fields in attributes])
    beside = strings_in([[row.item_id or "", json.loads(row.tags)] for row in rows] + attributes)
    return ErasedTexts(
        asked=[target.value]
        if target.kind is ErasureTargetKind.TEXT
        else names_of(chosen.named.names),
        names=names_of(gone.names - gone.dates),
        own=strings_of(contents, [*sources.texts, *quotes]),
        labels=strings_of((), beside),
        lines=sources.lines,
        removals=sources.removals,
    )


def _search(
    snapshot: Snapshot,
    texts: ErasedTexts,
    memory_ids: Collection[str] = (),
    entity_pks: Collection[int] = (),
) -> Search:
    """Leave out the strings that what stays contains; see ``Standing``.

    If something that stays only begins like a string, all of it must match. What others have in
    tags and attributes protects only labels; ids protect what was asked for from being searched.

    Args:
        memory_ids, entity_pks: what does not stay.
    """
    own = {*texts.asked, *texts.names, *texts.own}
    whole = {*texts.asked, *texts.names} - {*texts.own, *texts.labels}
    shared, public, says_it = set[str](), set[str](), set[str]()
    terms = SearchTerms(texts.strings, whole=whole, names=texts.names)
    for kind, page in erasure.standing(snapshot, memory_ids, entity_pks):
        for place, match in terms.among([text for _, text in page]):
            whole.add(match.string)
            if not match.complete or (kind is Standing.FIELD and match.string in own):
                continue
            is_public = kind is Standing.PLACE and match.string in texts.asked
            (public if is_public else shared).add(match.string)
            if kind is Standing.TEXT:
                says_it.add(page[place][0])
    removed = [text for text in texts.strings if text not in shared]
    sought = [text for text in removed if text not in public]
    return Search(
        SearchTerms(removed, whole=whole, names=texts.names),
        SearchTerms(sought, whole=whole, names=texts.names),
        len(texts.strings) - len(sought),
        frozenset(says_it - {""}),
    )


# -- erasing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What an erasure takes, as read in one snapshot."""

    report: ErasureReport
    rows: list[MemoryToErase]
    entities: EntityForms
    chosen: Chosen
    texts: ErasedTexts
    search: Search
    gone: Gone


def _plan(
    opened: OpenOrchestrator,
    snapshot: Snapshot,
    target: ErasureTarget,
    reason: str,
    actor: str,
    named: str,
) -> Plan:
    """Return what an erasure takes. Raises NotFound, Conflict, InvalidInput: see ``erase``."""
    chosen = choose(snapshot, target)
    rows = erasure.memories_to_erase(snapshot, chosen.ids)
    gone = erasure.named_only_by(snapshot, chosen.ids).plus(chosen.named)
    sources = files.source_files(opened.paths, snapshot, target.kind, rows)
    texts = _texts(target, rows, sources, chosen, gone)
    search = _search(snapshot, texts, chosen.ids, gone.pks)
    if search.terms.scrub(reason) != reason:
        raise InvalidInput("the reason repeats the text to be erased; use other words")
    said = {text.strip() for row in rows for text in (row.content, row.summary)} | gone.names
    by_id = {ErasureTargetKind.TEXT: named, ErasureTargetKind.ENTITY: chosen.entity_id}
    now = opened.clock.now_ms()
    report = ErasureReport(
        erasure_id=opened.ids.new("era_"),
        orchestrator=opened.paths.name,
        kind=target.kind,
        target=by_id.get(target.kind, target.value),
        reason=reason,
        actor=actor,
        started_at=now,
        ended_at=now,
        memory_ids=tuple(row.memory_id for row in rows),
        derived=len(chosen.derived),
        entities=len(gone.pks),
        kept=_kept(search.says_it, chosen.kept),
        outside=(*sources.outside, *files.left_on_servers(opened.paths)),
        searched=Searched(
            strings=len(search.sought.strings),
            too_short=len(said - texts.strings.keys() - {""}),
            shared=search.shared,
        ),
    )
    edges = erasure.edges_of(snapshot, chosen.ids)
    return Plan(report, rows, gone, chosen, texts, search, Gone(chosen.ids, gone.ids, edges))


def _kept(says_it: Collection[str], others: dict[str, Why]) -> tuple[NotErasedMemory, ...]:
    why: dict[str, Why] = {**dict.fromkeys(says_it, "says_it"), **others}
    return tuple(NotErasedMemory(memory_id=item, why=why[item]) for item in sorted(why))


def erase(
    opened: OpenOrchestrator,
    target: ErasureTarget,
    *,
    reason: str,
    actor: str,
    dry_run: bool,
    progress: Progress = _silent,
) -> ErasureReport:
    """Erase the target, and what was derived from it alone.

    An unfinished earlier erasure is finished first; if it was the same one, its report is returned.

    Args:
        dry_run: only plan; nothing is written.

    Raises:
        NotFound: the target does not exist.
        Conflict: it is already erased, the name of an entity is ambiguous, or an earlier erasure
            cannot be finished.
        InvalidInput: the reason repeats a text to be erased, the text is too short, or there are
            too many memories.
        StorageError: the database failed; run it again.
    """
    root = opened.paths.root
    secret = (erasure_key(root) or b"") if dry_run else made_erasure_key(root)
    # A keyed digest: nobody can check a guessed name against it.
    text = fold(target.value).strip() if target.kind is ErasureTargetKind.TEXT else target.value
    named = hmac.digest(secret, f"{target.kind}\n{text}".encode(), "sha256").hex()
    with FileLock(opened.paths.erasing).held():
        earlier = None if dry_run else _finish(opened, progress)
        if earlier is not None:
            report, earlier_named = earlier
            if named == earlier_named:
                return report
            if report.unfinished:
                raise Conflict(
                    f"{report.erasure_id} is not finished: {', '.join(report.unfinished)}",
                    erasure_id=report.erasure_id,
                )
        progress(STEPS[0], 0, len(STEPS) - 1)
        opened.write_down()
        if dry_run:
            with opened.database.read() as snapshot:
                plan = _plan(opened, snapshot, target, reason, actor, named)
                return _previewed(opened, snapshot, plan)
        progress(STEPS[1], 1, len(STEPS) - 1)
        with opened.transaction(actor) as transaction:
            plan = _plan(opened, transaction, target, reason, actor, named)
            _erase_rows(transaction, plan, secret, named)
        finished = _finish(opened, progress)
        if finished is None:
            raise Conflict("the erasure is finished elsewhere; its report is in the journal")
        return finished[0]


def _previewed(opened: OpenOrchestrator, snapshot: Snapshot, plan: Plan) -> ErasureReport:
    report, terms = plan.report, plan.search.terms
    texts, ids = plan.texts, report.memory_ids
    found = files.erase_files(
        opened.paths, opened.database, terms, ids, texts.lines, texts.removals
    )
    shown = [*ids[:SHOWN], *(item.memory_id for item in report.kept[:SHOWN])]
    _, notes = erasure.entries_to_redact(snapshot, plan.gone, terms)
    own = {("memories", row.pk) for row in plan.rows}
    changed = {
        (name, *key): name
        for name, key, _ in (
            *erasure.rows_about(snapshot, plan.gone, notes),
            *erasure.repeating(snapshot, terms),
        )
    }
    preview = ErasurePreview(
        begins=memories.beginnings(snapshot, shown, _BEGINNING),
        derived_ids=tuple(sorted(plan.chosen.derived)),
        names=tuple(sorted(plan.entities.names))[:SHOWN],
        waiting=tuple(found.waiting),
    )
    rows = _counts(name for key, name in changed.items() if key not in own)
    return _with_files(report, found).model_copy(
        update={"dry_run": True, "preview": preview, "rows": rows}
    )


def _with_files(report: ErasureReport, found: FoundFiles) -> ErasureReport:
    return report.model_copy(
        update={
            "files_redacted": tuple(sorted({*report.files_redacted, *found.redacted})),
            "files_removed": tuple(sorted({*report.files_removed, *found.removed})),
            "files_refused": tuple(found.refused),
        }
    )


def _counts(tables: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for table in sorted(tables):
        counts[table] = counts.get(table, 0) + 1
    return counts


def _erase_rows(transaction: JournalledTransaction, plan: Plan, secret: bytes, named: str) -> None:
    """Remove the texts from the database, and note that files and free space are to follow."""
    with transaction.engine.thorough(transaction):
        entries, notes = erasure.entries_to_redact(transaction, plan.gone, plan.search.terms)
        about = list(erasure.rows_about(transaction, plan.gone, notes))
        rows = erasure.blank(transaction, plan.rows, plan.entities.pks)
        erasure.apply(transaction, about)
        repeating = list(erasure.repeating(transaction, plan.search.terms))
        erasure.apply(transaction, [*repeating, *entries])
    for table, count in _counts(change.table for change in (*about, *repeating)).items():
        rows[table] = rows.get(table, 0) + count
    stones = [
        NewEntry(erasure.ACTION, memory_id, {"erasure_id": plan.report.erasure_id})
        for memory_id in plan.report.memory_ids
    ]
    asked = {"kind": plan.report.kind.value, "reason": plan.report.reason}
    report = _recorded(transaction, plan.report, entries, secret, rows, asked, stones)
    _note_unfinished(transaction, report, plan.texts, secret, named)


def _recorded(
    transaction: JournalledTransaction,
    report: ErasureReport,
    entries: Sequence[Change],
    secret: bytes,
    rows: dict[str, int],
    details: dict[str, Any],
    stones: Sequence[NewEntry] = (),
) -> ErasureReport:
    """Journal a transaction of an erasure, and drop caches of earlier data; return the report."""
    listed = [
        (seq, seal, digest(text))
        for seq, seal, text in erasure.redacted(transaction, [key[0] for _, key, _ in entries])
    ]
    total = report.rows | {name: report.rows.get(name, 0) + n for name, n in rows.items()}
    details = {"erasure_id": report.erasure_id, **details, "rows": rows, **sealed(secret, listed)}
    head, _ = journal.head(transaction)
    transaction.record([*stones, NewEntry(erasure.ACTION, None, details)])
    erasure.note_head(transaction, head + len(stones) + 1)
    by_seq = {entry.seq: entry for entry in report.redactions} | {
        seq: RedactedEntry(seq=seq, hash=seal, details=now) for seq, seal, now in listed
    }
    redactions = tuple(by_seq[seq] for seq in sorted(by_seq))
    return report.model_copy(update={"rows": total, "redactions": redactions})


def finish_on_open(opened: OpenOrchestrator) -> None:
    """Finish an erasure whose process was killed, unless another process is doing it."""
    with FileLock(opened.paths.erasing).held(timeout_s=0):
        _finish(opened, _silent, again=False)


def _finish(
    opened: OpenOrchestrator, progress: Progress, *, again: bool = True
) -> tuple[ErasureReport, str] | None:
    """Finish the unfinished erasure, and return its report and what it was asked for.

    Return None if there is none.

    Args:
        again: also where something was in the way of an earlier attempt.
    """
    with opened.database.read() as snapshot:
        row = metadata.get(snapshot, erasure.UNFINISHED_KEY)
    if row is None:
        return None
    state = json.loads(row)
    if state["tried"] and not again:
        return None
    report, named = ErasureReport.model_validate(state["report"]), state["asked"]
    secret = made_erasure_key(opened.paths.root)
    known = _decrypted(secret, report.erasure_id, state["texts"])
    texts = known or ErasedTexts()
    # Others see that what they have cached is older than an erasure.
    os.utime(opened.paths.erasing)
    progress(STEPS[2], 2, len(STEPS) - 1)
    report, search = _sweep(opened, report, texts, secret, named)
    report = _with_files(report, _erase_files(opened, report, texts, search.terms))
    opened.forget_texts()
    progress(STEPS[3], 3, len(STEPS) - 1)
    cut = _fold(opened)
    opened.database.rewrite()
    cut = _fold(opened) and cut
    progress(STEPS[4], 4, len(STEPS) - 1)
    report = _searched(opened, report, search, cut=cut)
    if known is None:
        report = report.model_copy(update={"remains": ("unknown: erasure.key is another one",)})
    with opened.transaction(report.actor) as transaction:
        if report.unfinished:
            _note_unfinished(transaction, report, texts, secret, named, tried=True)
        else:
            details = report.model_dump(mode="json", exclude={"preview"})
            transaction.record([NewEntry(erasure.REPORT, None, details)])
            metadata.drop(transaction, erasure.UNFINISHED_KEY)
    os.utime(opened.paths.erasing)
    progress(STEPS[5], 5, len(STEPS) - 1)
    return report, named


def _sweep(
    opened: OpenOrchestrator, report: ErasureReport, texts: ErasedTexts, secret: bytes, named: str
) -> tuple[ErasureReport, Search]:
    """Change the rows that were written meanwhile, and leave out what is now said by others."""
    with opened.database.read() as snapshot:
        search, changes = _repeating(snapshot, texts)
    if changes:
        with opened.transaction(report.actor) as transaction:
            search, changes = _repeating(transaction, texts)
            with transaction.engine.thorough(transaction):
                erasure.apply(transaction, changes)
            entries = [change for change in changes if change.table == erasure.JOURNAL]
            rows = _counts(change.table for change in changes if change not in entries)
            report = _recorded(transaction, report, entries, secret, rows, {})
            _note_unfinished(transaction, report, texts, secret, named)
    others = {item.memory_id: item.why for item in report.kept}
    return report.model_copy(update={"kept": _kept(search.says_it, others)}), search


def _repeating(snapshot: Snapshot, texts: ErasedTexts) -> tuple[Search, list[Change]]:
    search = _search(snapshot, texts)
    entries, _ = erasure.entries_to_redact(snapshot, Gone(), search.terms)
    return search, [*erasure.repeating(snapshot, search.terms), *entries]


def _erase_files(
    opened: OpenOrchestrator, report: ErasureReport, texts: ErasedTexts, terms: SearchTerms
) -> FoundFiles:
    def note(sha256: str, now: str | None) -> None:
        with opened.database.write() as transaction:
            erasure.note_file(transaction, sha256, now)

    return files.erase_files(
        opened.paths,
        opened.database,
        terms,
        report.memory_ids,
        texts.lines,
        texts.removals,
        note,
    )


def _fold(opened: OpenOrchestrator) -> bool:
    """Remove what is kept of deleted rows; return whether readers of an older state ended in time.

    They are waited for with the lock given up between two short tries, so that others may write.
    """
    wait_s = opened.settings.memory.storage.busy_timeout_ms * LONGER / 1000
    deadline = time.monotonic() + wait_s
    while True:
        # Most of it beside other writers: they would wait for the disk.
        opened.database.fold(after=0)
        if opened.database.cut(wait_ms=CUT_WAIT_MS):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(min(CUT_PAUSE_S, wait_s))


def _searched(
    opened: OpenOrchestrator, report: ErasureReport, search: Search, *, cut: bool
) -> ErasureReport:
    """Search the database and the folder for the texts; return the report with the result."""
    done = files.search(opened.paths, opened.database, search.sought)
    with opened.database.read() as snapshot:
        entries, _ = erasure.entries_to_redact(snapshot, Gone(), search.sought)
        rows = [*erasure.repeating(snapshot, search.sought), *entries]
    refused = {*report.files_refused, *done.refused}
    remains = (*done.remains, *sorted({row.table for row in rows}))
    obstacles = (
        (not cut, "database.in_use"),
        (refused, "file.refused"),
        (remains, "residue.found"),
    )
    searched = {
        "strings": len(search.sought.strings),
        "shared": search.shared,
        "files": done.files,
        "tables": done.tables or len(erasure.searched_columns()) + 1,
        "bytes": done.bytes,
    }
    return report.model_copy(
        update={
            "ended_at": opened.clock.now_ms(),
            "searched": report.searched.model_copy(update=searched),
            "remains": remains,
            "files_refused": tuple(sorted(refused)),
            "server": opened.database.traces(),
            "unfinished": tuple(code for applies, code in obstacles if applies),
        }
    )


# -- the row of an unfinished erasure --------------------------------------------------------------


def _note_unfinished(
    transaction: JournalledTransaction,
    report: ErasureReport,
    texts: ErasedTexts,
    secret: bytes,
    named: str,
    *,
    tried: bool = False,
) -> None:
    encrypted = _veiled(secret, report.erasure_id, json.dumps(asdict(texts)).encode())
    row = {
        "report": report.model_dump(mode="json"),
        "texts": base64.b64encode(encrypted).decode(),
        "asked": named,
        "tried": tried,
    }
    metadata.put(transaction, erasure.UNFINISHED_KEY, json.dumps(row))


def _decrypted(secret: bytes, erasure_id: str, text: str) -> ErasedTexts | None:
    """Return the texts; None if they were encrypted with another secret."""
    try:
        return ErasedTexts(**json.loads(_veiled(secret, erasure_id, base64.b64decode(text))))
    except ValueError:
        return None


def _veiled(secret: bytes, erasure_id: str, data: bytes) -> bytes:
    """Encrypt or decrypt with a key stream of the secret and the erasure."""
    key = hmac.digest(secret, erasure_id.encode(), "sha256")
    stream = hashlib.shake_256(key).digest(len(data))
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(data), "big")
