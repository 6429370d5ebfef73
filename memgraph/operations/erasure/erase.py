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
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
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
    Searched,
    Why,
)
from memgraph.model.sources import NamedSource
from memgraph.operations.erasure import files
from memgraph.operations.erasure.files import SourceFiles, strings_in
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
        names=names_of(gone.names),
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
    derived: frozenset[str]
    texts: ErasedTexts
    search: Search
    gone: Gone


def _plan(
    opened: OpenOrchestrator,
    snapshot: Snapshot,
    target: ErasureTarget,
    reason: str,
    actor: str,
    asked: str,
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
    now = opened.clock.now_ms()
    report = ErasureReport(
        erasure_id=opened.ids.new("era_"),
        orchestrator=opened.paths.name,
        kind=target.kind,
        target=asked if target.kind is ErasureTargetKind.TEXT else chosen.entity_id or target.value,
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
    ids = Gone(chosen.ids, gone.ids, erasure.edges_of(snapshot, chosen.ids))
    return Plan(report, rows, gone, chosen.derived, texts, search, ids)


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
    asked = hmac.digest(secret, f"{target.kind}\n{text}".encode(), "sha256").hex()
    with FileLock(opened.paths.erasing).held():
        earlier = None if dry_run else _finished(opened, progress)
        if earlier is not None and earlier.asked == asked:
            return earlier.report
        if earlier is not None and earlier.report.unfinished:
            unfinished = earlier.report
            raise Conflict(
                f"{unfinished.erasure_id} is not finished: {', '.join(unfinished.unfinished)}",
                erasure_id=unfinished.erasure_id,
            )
        progress(STEPS[0], 0, len(STEPS) - 1)
        opened.write_down()
        if dry_run:
            with opened.database.read() as snapshot:
                plan = _plan(opened, snapshot, target, reason, actor, asked)
            return _previewed(opened, plan)
        progress(STEPS[1], 1, len(STEPS) - 1)
        with opened.transaction(actor) as transaction:
            plan = _plan(opened, transaction, target, reason, actor, asked)
            erasing = _Erasing(opened, plan.report, plan.texts, asked, secret)
            _erase_rows(transaction, plan, erasing)
        finished = _finished(opened, progress)
        if finished is None:
            raise Conflict("the erasure is finished elsewhere; its report is in the journal")
        return finished.report


def _previewed(opened: OpenOrchestrator, plan: Plan) -> ErasureReport:
    report, terms, texts = plan.report, plan.search.terms, plan.texts
    ids = report.memory_ids
    found = files.erase_files(
        opened.paths, opened.database, terms, ids, texts.lines, texts.removals
    )
    shown = [*ids[:SHOWN], *(item.memory_id for item in report.kept[:SHOWN])]
    with opened.database.read() as snapshot:
        begins = memories.beginnings(snapshot, shown, _BEGINNING)
        _, notes = erasure.entries_to_redact(snapshot, plan.gone, terms)
        about = list(erasure.rows_about(snapshot, plan.gone, notes))
        changed = {(name, key) for name, key, _ in (*about, *erasure.repeating(snapshot, terms))}
    preview = ErasurePreview(
        begins=begins,
        derived_ids=tuple(sorted(plan.derived)),
        names=tuple(sorted(plan.entities.names))[:SHOWN],
        waiting=tuple(found.waiting),
    )
    rows = Counter(name for name, _ in changed - {("memories", (row.pk,)) for row in plan.rows})
    return report.model_copy(
        update={
            "dry_run": True,
            "preview": preview,
            "rows": dict(sorted(rows.items())),
            "files_redacted": tuple(sorted(found.redacted)),
            "files_removed": tuple(sorted(found.removed)),
            "files_refused": tuple(found.refused),
        }
    )


def _erase_rows(transaction: JournalledTransaction, plan: Plan, erasing: _Erasing) -> None:
    """Remove the texts from the database, and note that files and free space are to follow."""
    terms, report = plan.search.terms, plan.report
    with transaction.engine.thorough(transaction):
        entries, notes = erasure.entries_to_redact(transaction, plan.gone, terms)
        about = list(erasure.rows_about(transaction, plan.gone, notes))
        rows = Counter(erasure.blank(transaction, plan.rows, plan.entities.pks))
        erasure.apply(transaction, about)
        repeating = list(erasure.repeating(transaction, terms))
        erasure.apply(transaction, [*repeating, *entries])
    rows.update(change.table for change in (*about, *repeating))
    stones = [
        NewEntry(erasure.ACTION, memory_id, {"erasure_id": report.erasure_id})
        for memory_id in report.memory_ids
    ]
    asked = {"kind": report.kind.value, "reason": report.reason}
    erasing.record(transaction, entries, rows, asked, stones)


def finish_on_open(opened: OpenOrchestrator) -> None:
    """Finish an erasure whose process was killed, unless another process is doing it."""
    with FileLock(opened.paths.erasing).held(timeout_s=0):
        _finished(opened, _silent, again=False)


def _finished(
    opened: OpenOrchestrator, progress: Progress, *, again: bool = True
) -> _Erasing | None:
    """Finish the unfinished erasure as far as possible, and return it; None if there is none.

    Args:
        again: also where something was in the way of an earlier attempt.
    """
    with opened.database.read() as snapshot:
        row = metadata.get(snapshot, erasure.UNFINISHED_KEY)
    if row is None or (json.loads(row)["tried"] and not again):
        return None
    erasing = _Erasing.of_row(opened, json.loads(row))
    # Others see that what they have cached is older than an erasure.
    os.utime(opened.paths.erasing)
    progress(STEPS[2], 2, len(STEPS) - 1)
    search = erasing.sweep()
    erasing.sweep_files(search.terms)
    opened.forget_texts()
    progress(STEPS[3], 3, len(STEPS) - 1)
    cut = _fold(opened)
    opened.database.rewrite()
    cut = _fold(opened) and cut
    progress(STEPS[4], 4, len(STEPS) - 1)
    erasing.search(search, cut=cut)
    with opened.transaction(erasing.report.actor) as transaction:
        erasing.end(transaction)
    os.utime(opened.paths.erasing)
    progress(STEPS[5], 5, len(STEPS) - 1)
    return erasing


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


class _Erasing:
    """An erasure between its transaction and its report.

    Attributes:
        report: the report so far.
        texts: None: they were encrypted with another secret.
        asked: a keyed digest of what was asked for.
    """

    def __init__(
        self,
        opened: OpenOrchestrator,
        report: ErasureReport,
        texts: ErasedTexts | None,
        asked: str,
        secret: bytes,
    ) -> None:
        self.report = report
        self.texts = texts
        self.asked = asked
        self._opened = opened
        self._secret = secret

    @classmethod
    def of_row(cls, opened: OpenOrchestrator, row: dict[str, Any]) -> _Erasing:
        """Return the erasure of the row that ``record`` writes."""
        report = ErasureReport.model_validate(row["report"])
        erasing = cls(opened, report, None, row["asked"], made_erasure_key(opened.paths.root))
        with suppress(ValueError):
            texts = json.loads(erasing._veiled(base64.b64decode(row["texts"])))
            erasing.texts = ErasedTexts(**texts)
        return erasing

    def update(self, **fields: Any) -> None:
        """Change fields of the report."""
        self.report = self.report.model_copy(update=fields)

    def record(
        self,
        transaction: JournalledTransaction,
        entries: Sequence[Change],
        rows: Counter[str],
        details: dict[str, Any],
        stones: Sequence[NewEntry] = (),
    ) -> None:
        """Journal a transaction that changed rows and redacted entries, and note what follows."""
        seqs = [key[0] for _, key, _ in entries]
        listed = [
            (seq, seal, digest(now)) for seq, seal, now in erasure.redacted(transaction, seqs)
        ]
        details = {"erasure_id": self.report.erasure_id, **details, "rows": rows}
        head, _ = journal.head(transaction)
        entry = NewEntry(erasure.ACTION, None, details | sealed(self._secret, listed))
        transaction.record([*stones, entry])
        # Others drop what they have cached from before.
        erasure.note_head(transaction, head + len(stones) + 1)
        self.update(
            rows=dict(Counter(self.report.rows) + rows),
            redactions=self.report.redactions + len(listed),
        )
        self._note(transaction, tried=False)

    def sweep(self) -> Search:
        """Change the rows that were written meanwhile, and leave out what others now say."""
        texts = self.texts or ErasedTexts()
        with self._opened.database.read() as snapshot:
            search = _search(snapshot, texts)
            changes = _changes(snapshot, search.terms)
        if changes:
            with self._opened.transaction(self.report.actor) as transaction:
                search = _search(transaction, texts)
                changes = _changes(transaction, search.terms)
                with transaction.engine.thorough(transaction):
                    erasure.apply(transaction, changes)
                entries = [change for change in changes if change.table == erasure.JOURNAL]
                rows = Counter(change.table for change in changes)
                del rows[erasure.JOURNAL]
                self.record(transaction, entries, rows, {})
        others = {item.memory_id: item.why for item in self.report.kept}
        self.update(kept=_kept(search.says_it, others))
        return search

    def sweep_files(self, terms: SearchTerms) -> None:
        """Remove the texts from the files."""

        def note(sha256: str, now: str | None) -> None:
            with database.write() as transaction:
                erasure.note_file(transaction, sha256, now)

        texts, database = self.texts or ErasedTexts(), self._opened.database
        ids = self.report.memory_ids
        found = files.erase_files(
            self._opened.paths, database, terms, ids, texts.lines, texts.removals, note
        )
        self.update(
            files_redacted=tuple(sorted({*self.report.files_redacted, *found.redacted})),
            files_removed=tuple(sorted({*self.report.files_removed, *found.removed})),
            files_refused=tuple(found.refused),
        )

    def search(self, search: Search, *, cut: bool) -> None:
        """Search the database and the folder for the texts, and put the result in the report.

        Args:
            cut: nobody reads an older state of the database.
        """
        database, sought = self._opened.database, search.sought
        done = files.search(self._opened.paths, database, sought)
        with database.read() as snapshot:
            rows = sorted({change.table for change in _changes(snapshot, sought)})
        refused = tuple(sorted({*self.report.files_refused, *done.refused}))
        remains = (*done.remains, *rows)
        obstacles = (
            (not cut, "database.in_use"),
            (refused, "file.refused"),
            (remains, "residue.found"),
        )
        searched = {
            "strings": len(sought.strings),
            "shared": search.shared,
            "files": done.files,
            "tables": done.tables or len(erasure.searched_columns()) + 1,
        }
        self.update(
            ended_at=self._opened.clock.now_ms(),
            searched=self.report.searched.model_copy(update=searched),
            remains=remains if self.texts else ("unknown: erasure.key is another one",),
            files_refused=refused,
            server=database.traces(),
            unfinished=tuple(code for applies, code in obstacles if applies),
        )

    def end(self, transaction: JournalledTransaction) -> None:
        """Make the report an entry of the journal; if anything is in the way, only note it."""
        if self.report.unfinished:
            self._note(transaction, tried=True)
            return
        details = self.report.model_dump(mode="json", exclude={"preview"})
        transaction.record([NewEntry(erasure.REPORT, None, details)])
        metadata.drop(transaction, erasure.UNFINISHED_KEY)

    def _note(self, transaction: JournalledTransaction, *, tried: bool) -> None:
        texts = json.dumps(asdict(self.texts or ErasedTexts())).encode()
        row = {
            "report": self.report.model_dump(mode="json"),
            "texts": base64.b64encode(self._veiled(texts)).decode(),
            "asked": self.asked,
            "tried": tried,
        }
        metadata.put(transaction, erasure.UNFINISHED_KEY, json.dumps(row))

    def _veiled(self, data: bytes) -> bytes:
        """Encrypt or decrypt with a key stream of the secret and the erasure."""
        key = hmac.digest(self._secret, self.report.erasure_id.encode(), "sha256")
        stream = hashlib.shake_256(key).digest(len(data))
        mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")
        return mixed.to_bytes(len(data), "big")


def _changes(snapshot: Snapshot, terms: SearchTerms) -> list[Change]:
    """Return the changes of all rows that repeat one of the terms."""
    entries, _ = erasure.entries_to_redact(snapshot, Gone(), terms)
    return [*erasure.repeating(snapshot, terms), *entries]
