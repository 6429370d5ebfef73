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
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from memgraph.audit.redactions import digest, sealed
from memgraph.errors import Conflict, InvalidInput, NotFound
from memgraph.ids import ERASURE_PREFIX
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
from memgraph.operations.erasure.files import ErasedTexts, strings_in
from memgraph.operations.provenance.retraction import is_of, supported_elsewhere
from memgraph.rules.erasure import names_of, strings_of
from memgraph.rules.evidence import Origin
from memgraph.rules.search_terms import SearchTerms
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import entity_records, erasure, ingest_files, journal, memories, metadata
from memgraph.store.engine import LONGER, patiently
from memgraph.store.erasure import EntityForms, Gone, MemoryToErase, Standing
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
_BEGINNING: Final = 80
_SOURCES: Final = {
    ErasureTargetKind.PATH: SourceName.PATH,
    ErasureTargetKind.SESSION: SourceName.CONVERSATION,
    ErasureTargetKind.CONVERSATION: SourceName.CONVERSATION,
    ErasureTargetKind.RUN: SourceName.RUN,
    ErasureTargetKind.CONTENT: SourceName.CONTENT,
}


# -- what goes -------------------------------------------------------------------------------------


def _chosen(
    snapshot: Snapshot, target: ErasureTarget, meant: set[str]
) -> tuple[frozenset[str], frozenset[str], dict[str, Why]]:
    """Return the memories that go, those of them that were derived, and why others stay."""
    source, kept = _source(target), dict[str, Why]()

    def is_gone(origin: Origin) -> bool:
        return source is not None and is_of(source)(origin)

    if source is not None:
        elsewhere = supported_elsewhere(snapshot, sorted(meant), is_gone)
        kept |= dict.fromkeys(elsewhere, "other_sources")
        meant -= elsewhere
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
    return frozenset(chosen), frozenset(chosen - meant), kept | stays


def _source(target: ErasureTarget) -> NamedSource | None:
    """Return the source that a target names, if it names one."""
    kind = _SOURCES.get(target.kind)
    return None if kind is None else NamedSource(kind, target.value)


def _meant(snapshot: Snapshot, target: ErasureTarget) -> tuple[set[str], set[str]]:
    """Return the memories and the entities that a target names, by id; see ``erase``."""
    kind, value = target.kind, target.value
    if kind is ErasureTargetKind.TEXT:
        if len(fold(value).strip().encode()) < SearchTerms.SHORTEST:
            raise InvalidInput("the text is too short to be searched for")
        if fold(value).strip() in erasure.text_digests(snapshot):
            raise InvalidInput(
                "this is the digest of an erased text: name the text itself, or its memories by id"
            )
        terms = SearchTerms([value], whole=[value])
        return erasure.saying(snapshot, terms), erasure.entities_called(snapshot, terms)
    if kind is ErasureTargetKind.ENTITY:
        record = entity_records.by_id(snapshot, value)
        records = [record] if record else entity_records.by_keys(snapshot, [canonical(value)])
        if len(records) > 1:
            candidates = [item.entity_id for item in records]
            raise Conflict("the name is ambiguous; use an id", candidates=candidates)
        if not records:
            raise NotFound(
                f"no entity has the id or name {value[:80]!r}; to erase a text wherever it stands,"
                " name it as a text",
                name=value[:80],
            )
        ids = {records[0].entity_id}
        named = erasure.entity_forms(snapshot, ids)
        terms = SearchTerms(named.names, names=named.names)
        return erasure.linked(snapshot, named.pks) | erasure.saying(snapshot, terms), ids
    found = erasure.named(snapshot, kind, value)
    if not found:
        message = f"no memory of the {kind.value} {value[:80]!r}"
        if kind is ErasureTargetKind.MEMORY:
            message = f"no memory {value[:80]!r}; an erasure takes a whole id, which get shows"
        raise NotFound(message, value=value[:80])
    if all(found.values()):
        by = sorted({*erasure.erasures_of(snapshot, found).values()}, reverse=True)
        raise Conflict(f"it is already erased by {', '.join(by[:1])}", erasure_ids=by[:10])
    return {memory_id for memory_id, erased in found.items() if not erased}, set()


# -- the texts -------------------------------------------------------------------------------------


class Search(NamedTuple):
    """The terms to remove and those to search for, without what stays; and who says that."""

    terms: SearchTerms
    sought: SearchTerms
    shared: int
    says_it: frozenset[str]


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
    derived: frozenset[str]
    entities: EntityForms
    texts: ErasedTexts
    search: Search
    gone: Gone


def _plan(
    opened: OpenOrchestrator,
    snapshot: Snapshot,
    target: ErasureTarget,
    reason: str,
    actor: str,
    erasure_id: str = "",
) -> Plan:
    """Return what an erasure takes. Raises NotFound, Conflict, InvalidInput: see ``erase``."""
    meant, entity_ids = _meant(snapshot, target)
    chosen, derived, kept = _chosen(snapshot, target, meant)
    rows = erasure.memories_to_erase(snapshot, chosen)
    named = erasure.entity_forms(snapshot, entity_ids)
    only_theirs = erasure.named_only_by(snapshot, chosen)
    gone = erasure.entity_forms(snapshot, entity_ids | only_theirs)
    attributes = [json.loads(row.attributes) for row in rows]
    quotes = strings_in([fields.get("quote") for fields in attributes])
    beside = strings_in([[row.item_id or "", json.loads(row.tags)] for row in rows] + attributes)
    said = [text for row in rows for text in (row.content, row.summary) if text.strip()]
    is_text = target.kind is ErasureTargetKind.TEXT
    asked = [target.value] if is_text else names_of(named.names)
    texts = ErasedTexts(target=_identity(target), asked=asked, names=names_of(gone.names))
    read, outside = files.source_files(opened.paths, snapshot, target.kind, rows, texts)
    texts.own = strings_of(said, [*read, *quotes])
    texts.labels = strings_of((), beside)
    search = _search(snapshot, texts, chosen, gone.pks)
    if search.terms.scrub(reason) != reason:
        raise InvalidInput("the reason repeats the text to be erased; use other words")
    shown = target.value
    if is_text:
        # A keyed digest: nobody can check a guessed name against it.
        secret = erasure_key(opened.paths.root) or b""
        shown = hmac.digest(secret, "\n".join(texts.target).encode(), "sha256").hex()
    elif target.kind is ErasureTargetKind.ENTITY:
        [shown] = entity_ids
    moved: list[str] = []
    with suppress(FileNotFoundError):
        moved = opened.paths.left_on_servers.read_text("utf-8").splitlines()
    now = opened.clock.now_ms()
    report = ErasureReport(
        erasure_id=erasure_id,
        orchestrator=opened.paths.name,
        kind=target.kind,
        target=shown,
        reason=reason,
        actor=actor,
        started_at=now,
        ended_at=now,
        memory_ids=tuple(row.memory_id for row in rows),
        derived=len(derived),
        entities=len(gone.pks),
        kept=_kept(search.says_it, kept),
        outside=(*outside, *moved),
        searched=Searched(
            strings=len(search.sought.strings),
            too_short=len(({text.strip() for text in said} | gone.names) - texts.strings.keys()),
            shared=search.shared,
        ),
    )
    ids = erasure.gone_with(snapshot, chosen, gone.ids)
    return Plan(report, rows, derived, gone, texts, search, ids)


def _identity(target: ErasureTarget) -> list[str]:
    """Return what is equal for equal targets."""
    is_text = target.kind is ErasureTargetKind.TEXT
    return [target.kind.value, fold(target.value).strip() if is_text else target.value]


def _kept(says_it: Collection[str], others: dict[str, Why]) -> tuple[NotErasedMemory, ...]:
    why: dict[str, Why] = {**dict.fromkeys(says_it, "says_it"), **others}
    return tuple(NotErasedMemory(memory_id=item, why=why[item]) for item in sorted(why))


def erase(
    opened: OpenOrchestrator, target: ErasureTarget, *, reason: str, actor: str, dry_run: bool
) -> ErasureReport:
    """Erase the target, and what was derived from it alone; see ``Erasure.erase``.

    An unfinished earlier erasure is finished first; if it was the same one, its report is returned.
    """
    with patiently(), FileLock(opened.paths.erasing).held():
        if dry_run:
            return _preview(opened, target, reason, actor)
        made_erasure_key(opened.paths.root)
        earlier = Erasing.unfinished(opened)
        if earlier is not None:
            earlier.finish()
            if earlier.texts is not None and earlier.texts.target == _identity(target):
                return earlier.report
            if codes := earlier.report.unfinished:
                erasure_id = earlier.report.erasure_id
                message = f"{erasure_id} is not finished: {', '.join(codes)}"
                raise Conflict(message, erasure_id=erasure_id)
        opened.write_down()
        with opened.transaction(actor) as transaction:
            erasure_id = opened.ids.new(ERASURE_PREFIX)
            plan = _plan(opened, transaction, target, reason, actor, erasure_id)
            erasing = Erasing(opened, plan.report, plan.texts)
            erasing.redact(transaction, plan.search.terms, plan)
        erasing.finish()
        return erasing.report


def finish_on_open(opened: OpenOrchestrator) -> None:
    """Finish an erasure whose process was killed, unless another process is doing it."""
    with FileLock(opened.paths.erasing).held(timeout_s=0):
        erasing = Erasing.unfinished(opened)
        # Where something was in the way, it is for a person to run it again.
        if erasing is not None and not erasing.report.unfinished:
            erasing.finish()


def _preview(
    opened: OpenOrchestrator, target: ErasureTarget, reason: str, actor: str
) -> ErasureReport:
    """Return what an erasure would do, without doing it."""
    with opened.database.read() as snapshot:
        plan = _plan(opened, snapshot, target, reason, actor)
        report = plan.report
        shown = [*report.memory_ids[:SHOWN], *(item.memory_id for item in report.kept[:SHOWN])]
        preview = ErasurePreview(
            begins=memories.beginnings(snapshot, shown, _BEGINNING),
            derived_ids=tuple(sorted(plan.derived)),
            names=tuple(sorted(plan.entities.names))[:SHOWN],
        )
    found = files.erase_files(
        opened.paths, opened.database, plan.search.terms, report.memory_ids, plan.texts, None
    )
    update = {
        "dry_run": True,
        "target": plan.texts.asked[0] if report.kind is ErasureTargetKind.TEXT else report.target,
        "preview": preview,
        "files_redacted": tuple(sorted(found.redacted)),
        "files_removed": tuple(sorted(found.removed)),
        "files_refused": tuple(found.refused),
    }
    return report.model_copy(update=update)


@dataclass
class Erasing:
    """An erasure between its transaction and its report.

    Attributes:
        report: the report so far.
        texts: None: they were encrypted with another secret.
    """

    opened: OpenOrchestrator
    report: ErasureReport
    texts: ErasedTexts | None = None

    @classmethod
    def unfinished(cls, opened: OpenOrchestrator) -> Erasing | None:
        """Return the unfinished erasure as ``_store`` wrote it, if there is one."""
        with opened.database.read() as snapshot:
            row = erasure.unfinished(snapshot)
        if row is None:
            return None
        erasing = cls(opened, ErasureReport.model_validate(row["report"]))
        with suppress(ValueError):
            texts = json.loads(erasing._cipher(base64.b64decode(row["texts"])))
            erasing.texts = ErasedTexts(**texts)
        return erasing

    def redact(
        self, transaction: JournalledTransaction, terms: SearchTerms, plan: Plan | None = None
    ) -> None:
        """Remove the texts from all rows and from the journal, and record it there.

        Args:
            plan: of the erasure's first transaction; None: only what was written since.
        """
        report, rows = self.report, Counter[str]()
        with transaction.engine.thorough(transaction):
            if plan is not None:
                rows = erasure.blank(transaction, plan.rows, plan.entities.pks)
            changes = erasure.changes(transaction, terms, plan.gone if plan else Gone())
            erasure.apply(transaction, changes)
        rows.update(name for name, _ in changes if name != erasure.JOURNAL)
        seqs = [key[0] for name, key in changes if name == erasure.JOURNAL]
        redacted = [
            (seq, seal, digest(now)) for seq, seal, now in erasure.redacted(transaction, seqs)
        ]
        details: dict[str, Any] = {"erasure_id": report.erasure_id, "rows": rows}
        tombstones: list[NewEntry] = []
        if plan is not None:
            details |= {"kind": report.kind.value, "reason": report.reason}
            tombstone = {"erasure_id": report.erasure_id}
            tombstones = [NewEntry(erasure.ACTION, item, tombstone) for item in report.memory_ids]
        details |= sealed(made_erasure_key(self.opened.paths.root), redacted)
        head, _ = journal.head(transaction)
        transaction.record([*tombstones, NewEntry(erasure.ACTION, None, details)])
        # Others drop what they have cached from before.
        through = str(head + len(tombstones) + 1)
        metadata.put(transaction, erasure.ERASED_KEY, through)
        self._update(
            rows=dict(Counter(report.rows) + rows), redactions=report.redactions + len(redacted)
        )
        self._store(transaction)

    def finish(self) -> None:
        """Do what follows the first transaction, as far as possible; it may be repeated."""
        opened, texts = self.opened, self.texts or ErasedTexts()
        # Others see that what they have cached is older than an erasure.
        os.utime(opened.paths.erasing)
        with opened.database.read() as snapshot:
            search = _search(snapshot, texts)
            written_since = erasure.changes(snapshot, search.terms)
        if written_since:
            with opened.transaction(self.report.actor) as transaction:
                search = _search(transaction, texts)
                self.redact(transaction, search.terms)
        self._erase_files(texts, search.terms)
        opened.forget_texts()
        cut = _fold_and_cut(opened)
        opened.database.rewrite()
        cut = _fold_and_cut(opened) and cut
        self._prove(search, cut=cut)
        with opened.transaction(self.report.actor) as transaction:
            if self.report.unfinished:
                self._store(transaction)
            else:
                details = self.report.model_dump(mode="json", exclude={"preview"})
                transaction.record([NewEntry(erasure.REPORT, None, details)])
                metadata.drop(transaction, erasure.UNFINISHED_KEY)
        os.utime(opened.paths.erasing)

    def _erase_files(self, texts: ErasedTexts, terms: SearchTerms) -> None:
        report, database = self.report, self.opened.database

        def note(sha256: str, now: str | None) -> None:
            with database.write() as transaction:
                ingest_files.note_redaction(transaction, sha256, now)

        paths, ids = self.opened.paths, report.memory_ids
        found = files.erase_files(paths, database, terms, ids, texts, note)
        self._update(
            files_redacted=tuple(sorted({*report.files_redacted, *found.redacted})),
            files_removed=tuple(sorted({*report.files_removed, *found.removed})),
            files_refused=tuple(found.refused),
        )

    def _prove(self, search: Search, *, cut: bool) -> None:
        """Search the database and the folder for the texts, and put the result in the report.

        Args:
            cut: nobody reads an older state of the database.
        """
        database, report = self.opened.database, self.report
        done = files.search(self.opened.paths, database, search.sought)
        with database.read() as snapshot:
            rows = sorted({name for name, _ in erasure.changes(snapshot, search.sought)})
        refused = tuple(sorted({*report.files_refused, *done.refused}))
        remains = (*done.remains, *rows)
        obstacles = {
            "database.in_use": not cut,
            "file.refused": refused,
            "residue.found": remains,
        }
        others = {item.memory_id: item.why for item in report.kept}
        searched = {
            "strings": len(search.sought.strings),
            "shared": search.shared,
            "files": done.files,
            "tables": done.tables or len(erasure.searched_columns()) + 1,
        }
        self._update(
            ended_at=self.opened.clock.now_ms(),
            kept=_kept(search.says_it, others),
            searched=report.searched.model_copy(update=searched),
            remains=remains if self.texts else ("unknown: erasure.key is another one",),
            files_refused=refused,
            server=database.traces(),
            unfinished=tuple(code for code, applies in obstacles.items() if applies),
        )

    def _update(self, **fields: Any) -> None:
        self.report = self.report.model_copy(update=fields)

    def _store(self, transaction: JournalledTransaction) -> None:
        # Texts that are not known stay so.
        texts = b"" if self.texts is None else json.dumps(asdict(self.texts)).encode()
        encrypted = base64.b64encode(self._cipher(texts)).decode()
        row = {"report": self.report.model_dump(mode="json"), "texts": encrypted}
        metadata.put(transaction, erasure.UNFINISHED_KEY, json.dumps(row))

    def _cipher(self, data: bytes) -> bytes:
        """Encrypt or decrypt with a key stream of the secret and the erasure."""
        secret = made_erasure_key(self.opened.paths.root)
        key = hmac.digest(secret, self.report.erasure_id.encode(), "sha256")
        stream = hashlib.shake_256(key).digest(len(data))
        mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")
        return mixed.to_bytes(len(data), "big")


def _fold_and_cut(opened: OpenOrchestrator) -> bool:
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
