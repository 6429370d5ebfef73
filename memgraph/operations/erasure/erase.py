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
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final

from memgraph.audit.redactions import digest, sealed
from memgraph.errors import Conflict, InvalidInput, NotFound
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
from memgraph.operations.erasure import files
from memgraph.operations.erasure.files import FoundFiles, SourceFiles, strings_in
from memgraph.rules.erasure import names_of, strings_of, unsought
from memgraph.rules.search_terms import SearchTerms
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import erasure, journal, memories, metadata
from memgraph.store.engine import LONGER
from memgraph.store.erasure import ErasedRow, Gone
from memgraph.store.files import FileLock
from memgraph.store.key_file import erasure_key, made_erasure_key
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.text.fold import fold

MAX_MEMORIES: Final = 100_000
SHOWN: Final = 200
"""Memories that go, and as many of those that stay, whose texts a preview shows."""
LOOKS: Final = 5
CUT_WAIT_MS: Final = 100
"""For so long writers wait for readers in one try to cut the WAL: a recall is over by then."""
CUT_PAUSE_S: Final = 0.5
STEPS: Final = ("reading", "rows", "files", "database", "search", "done")
Progress = Callable[[str, int, int], None]
"""Called with the name of a step, its number, and the number of steps."""
_BEGINNING: Final = 80
_BY_SOURCE: Final = frozenset(ErasureTargetKind) - {
    ErasureTargetKind.MEMORY,
    ErasureTargetKind.ENTITY,
    ErasureTargetKind.TEXT,
}


_NUMBERS: Final = frozenset({"names", "whole", "asked", "labels", "public", "shared"})


def _silent(_step: str, _done: int, _total: int) -> None:
    pass


# -- what goes -----------------------------------------------------------------------------------


@dataclass
class ErasedTexts:
    """The texts of an erasure, which only the encrypted part of its row holds.

    Attributes:
        strings: the strings to remove and to search for; ``names``: the numbers of names among
            them, ``whole``: of those whose beginning alone is no match, ``asked``: of those that
            the erasure was asked for, ``labels``: of those that only stand beside the texts, as
            titles do, ``public``: of those that ids contain, which stay, ``shared``: of those that
            are not searched for, since memories that stay contain them.
        named: a keyed digest of what was asked for.
        gone: the ids of the memories, entities and edges.
    """

    strings: list[str]
    names: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)
    labels: set[int] = field(default_factory=set)
    public: set[int] = field(default_factory=set)
    shared: set[int] = field(default_factory=set)
    named: str = ""
    gone: list[list[str]] = field(default_factory=list)
    sources: SourceFiles = field(default_factory=SourceFiles)

    @cached_property
    def terms(self) -> SearchTerms:
        """The strings to remove."""
        return self._without(self.shared)

    @property
    def sought(self) -> SearchTerms:
        """The strings to search for."""
        return self._without(self.shared | self.public)

    def _without(self, numbers: set[int]) -> SearchTerms:
        strings = ["" if n in numbers else text for n, text in enumerate(self.strings)]
        return SearchTerms(strings, whole=self.whole, names=self.names)

    @property
    def searched(self) -> int:
        return len(self.strings) - len(self.shared | self.public)

    @property
    def ids(self) -> Gone:
        return Gone(*map(frozenset, self.gone or [[], [], []]))

    def share(self, snapshot: Snapshot, pks: Sequence[int], entity_pks: Sequence[int]) -> set[str]:
        """Leave out the strings that what stays contains; return the memories that do.

        If something that stays only begins like a string, all of it must match. What others have in
        tags and attributes, as the title of a document, protects only labels.
        """
        saying, whole = set[str](), set[int]()
        for page in erasure.remaining_texts(snapshot, pks, entity_pks):
            for place, match in self.terms.among([text for _, text in page]):
                if match.complete:
                    self.shared.add(match.string)
                    saying.add(page[place][0])
                whole.add(match.string)
        fields = erasure.remaining_fields(snapshot, pks)
        beside = chain(self.sources.headings, *(strings_in(json.loads(item)) for item in fields))
        for _, match in self.terms.among(list(beside)):
            if match.complete and match.string in self.labels:
                self.shared.add(match.string)
            whole.add(match.string)
        for _, match in self.terms.among(erasure.identifiers(snapshot)):
            if match.complete:
                (self.public if match.string in self.asked else self.shared).add(match.string)
            whole.add(match.string)
        self.whole |= whole
        self.__dict__.pop("terms", None)
        return saying - {""}


@dataclass
class Plan:
    """What an erasure changes: ``rows`` are those beside the rows of its memories."""

    report: ErasureReport
    texts: ErasedTexts
    pks: list[int]
    entity_pks: list[int]
    derived_ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    rows: list[ErasedRow] = field(default_factory=list)


@dataclass(frozen=True)
class Chosen:
    """The keys of the memories that go, of those of them that were derived, and who stays."""

    pks: tuple[int, ...]
    derived: frozenset[int]
    entity: erasure.EntityForms
    kept: tuple[NotErasedMemory, ...]


def make_plan(
    opened: OpenOrchestrator,
    snapshot: Snapshot,
    target: ErasureTarget,
    *,
    reason: str,
    actor: str,
    secret: bytes,
) -> Plan:
    """Return what an erasure of a target changes, without changing anything.

    Raises:
        NotFound: the target does not exist.
        Conflict: it is already erased, or the name of an entity is ambiguous.
        InvalidInput: the reason contains text to be erased, or there are too many memories.
    """
    chosen = choose(snapshot, target)
    if len(chosen.pks) > MAX_MEMORIES:
        raise InvalidInput(f"an erasure is limited to {MAX_MEMORIES:,} memories")
    alone = erasure.named_only_by(snapshot, chosen.pks)
    entity_pks = sorted({*alone.pks, *chosen.entity.pks})
    rows = erasure.memories_to_erase(snapshot, chosen.pks)
    sources = files.source_files(opened.paths, snapshot, target.kind, rows)
    texts, too_short = _texts(target, rows, sources, chosen.entity, alone)
    memory_ids = [row.memory_id for row in rows]
    edges = erasure.edges_of(snapshot, chosen.pks)
    texts.gone = [memory_ids, erasure.entity_ids(snapshot, entity_pks), edges]
    texts.named = _named(secret, target)
    says_it = texts.share(snapshot, chosen.pks, entity_pks)
    if texts.terms.scrub(reason) != reason:
        raise InvalidInput("the reason repeats the text to be erased; use other words")
    now = opened.clock.now_ms()
    by_id = {
        ErasureTargetKind.ENTITY: chosen.entity.entity_id,
        ErasureTargetKind.TEXT: texts.named,
    }
    report = ErasureReport(
        erasure_id=opened.ids.new("era_"),
        orchestrator=opened.paths.name,
        kind=target.kind,
        target=by_id.get(target.kind, target.value),
        reason=reason,
        actor=actor,
        started_at=now,
        ended_at=now,
        memory_ids=tuple(memory_ids),
        derived=len(chosen.derived),
        entities=len(entity_pks),
        kept=_kept(says_it, chosen.kept),
        outside=(*sources.outside, *files.left_on_servers(opened.paths)),
        searched=Searched(
            strings=texts.searched,
            too_short=too_short,
            shared=len(texts.shared | texts.public),
        ),
    )
    return Plan(
        report,
        texts,
        list(chosen.pks),
        entity_pks,
        tuple(row.memory_id for row in rows if row.pk in chosen.derived),
        tuple(sorted({*alone.names, *chosen.entity.names})),
        erasure.changes(snapshot, texts.ids, texts.terms),
    )


def _kept(
    says_it: Collection[str], others: Collection[NotErasedMemory]
) -> tuple[NotErasedMemory, ...]:
    kept = {item: NotErasedMemory(memory_id=item, why="says_it") for item in says_it}
    kept |= {item.memory_id: item for item in others}
    return tuple(kept[memory_id] for memory_id in sorted(kept))


def _texts(
    target: ErasureTarget,
    rows: Sequence[erasure.MemoryToErase],
    sources: SourceFiles,
    entity: erasure.EntityForms,
    alone: erasure.EntityForms,
) -> tuple[ErasedTexts, int]:
    """Return the strings of an erasure, and how many texts and names identify nothing."""
    own_texts = [text for row in rows for text in (row.content, row.summary)]
    fields = [json.loads(row.attributes) for row in rows]
    quotes = strings_in([item.get("quote") for item in fields])
    tags = strings_in([[row.item_id or "", json.loads(row.tags)] for row in rows])
    own = strings_of(own_texts, [*sources.texts, *quotes])
    spoken = strings_of(own_texts, [*sources.texts, *sources.labels, *tags, *strings_in(fields)])
    dates = {*entity.dates, *alone.dates}
    names = {*entity.names, *alone.names}
    called = names_of(names - dates)
    asked = [target.value] if target.kind is ErasureTargetKind.TEXT else names_of(entity.names)
    strings = list(dict.fromkeys([*asked, *called, *spoken]))
    numbers = {text: number for number, text in enumerate(strings)}
    texts = ErasedTexts(
        strings,
        names={numbers[name] for name in called},
        whole={numbers[text] for text in [*asked, *called] if text not in spoken},
        asked={numbers[text] for text in asked},
        labels={numbers[text] for text in set(spoken) - {*asked, *called, *own}},
        sources=sources,
    )
    return texts, len(names - {*called}) + unsought(own_texts, spoken)


def choose(snapshot: Snapshot, target: ErasureTarget) -> Chosen:
    """Return what a target means, with the memories derived from it alone.

    Raises:
        NotFound, Conflict, InvalidInput: see ``make_plan``.
    """
    meant, entity = _meant(snapshot, target)
    kept: dict[str, Why] = {}
    if target.kind in _BY_SOURCE:
        elsewhere = erasure.said_elsewhere(snapshot, sorted(meant), sorted(meant))
        meant -= elsewhere
        rows = erasure.memories_to_erase(snapshot, sorted(elsewhere))
        kept |= {row.memory_id: "other_sources" for row in rows}
    chosen = set(meant)
    while True:
        stays, fresh = _derived(snapshot, chosen)
        if not fresh:
            not_erased = [
                NotErasedMemory(memory_id=memory_id, why=why)
                for memory_id, why in (kept | stays).items()
            ]
            return Chosen(
                tuple(sorted(chosen)), frozenset(chosen - meant), entity, tuple(not_erased)
            )
        chosen |= fresh


def _meant(snapshot: Snapshot, target: ErasureTarget) -> tuple[set[int], erasure.EntityForms]:
    kind, value = target.kind, target.value
    if kind is ErasureTargetKind.TEXT:
        if len(fold(value).strip().encode()) < SearchTerms.SHORTEST:
            raise InvalidInput("the text is too short to be searched for")
        terms = SearchTerms([value], whole=[0])
        pks = erasure.saying(snapshot, terms, "content", "summary", "source_role")
        return pks, erasure.entities_called(snapshot, terms)
    if kind is ErasureTargetKind.ENTITY:
        results = erasure.entity(snapshot, value)
        if len(results) > 1:
            ids = [item.entity_id for item in results]
            raise Conflict("the name is ambiguous; use an id", candidates=ids)
        if not results:
            raise NotFound(
                f"no entity has the id or name {value[:80]!r}; to erase a text wherever it stands,"
                " name it as a text",
                name=value[:80],
            )
        [entity] = results
        names = SearchTerms(entity.names, names=range(len(entity.names)))
        return erasure.linked(snapshot, entity.pks) | erasure.saying(
            snapshot, names, "content"
        ), entity
    pks = set(erasure.memories_named(snapshot, kind, value))
    earlier = None if pks else erasure.erased_before(snapshot, kind, value)
    if earlier is not None:
        message = f" by {earlier[0]}" if earlier else ""
        raise Conflict(f"it is already erased{message}", erasure_ids=list(earlier[:10]))
    if not pks:
        of_kind = "" if kind is ErasureTargetKind.MEMORY else f" of the {kind.value}"
        raise NotFound(f"no memory{of_kind} {value[:80]!r}", value=value[:80])
    return pks, erasure.EntityForms("", (), ())


def _derived(snapshot: Snapshot, chosen: set[int]) -> tuple[dict[str, Why], set[int]]:
    """Split the memories derived from the chosen ones into those kept, with reasons, and others."""
    results = [
        item for item in erasure.derived_from(snapshot, sorted(chosen)) if item[0] not in chosen
    ]
    elsewhere = erasure.said_elsewhere(snapshot, [pk for pk, *_ in results], sorted(chosen))
    kept, fresh = dict[str, Why](), set[int]()
    for pk, memory_id, evidence in results:
        if not evidence <= chosen:
            kept[memory_id] = "other_grounds"
        elif pk in elsewhere:
            kept[memory_id] = "other_sources"
        else:
            fresh.add(pk)
    return kept, fresh


# -- erasing -------------------------------------------------------------------------------------


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
        NotFound, Conflict, InvalidInput: see ``make_plan``; Conflict, too, when an earlier erasure
            cannot be finished.
        StorageError: the database failed; run it again.
    """
    root = opened.paths.root
    secret = (erasure_key(root) or b"") if dry_run else made_erasure_key(root)
    with FileLock(opened.paths.erasing).held():
        earlier = None if dry_run else _finish(opened, progress)
        if earlier is not None:
            report, named = earlier
            if named == _named(secret, target):
                return report
            if report.unfinished:
                raise Conflict(
                    f"{report.erasure_id} is not finished: {', '.join(report.unfinished)}",
                    erasure_id=report.erasure_id,
                )
        progress(STEPS[0], 0, len(STEPS) - 1)
        opened.write_down()
        with opened.database.read() as snapshot:
            plan = make_plan(opened, snapshot, target, reason=reason, actor=actor, secret=secret)
        if dry_run:
            return _previewed(opened, plan)
        progress(STEPS[1], 1, len(STEPS) - 1)
        with opened.transaction(actor) as transaction:
            # What was stored since then would stay, with nothing left to tell what it was made of.
            if choose(transaction, target).pks != tuple(plan.pks):
                plan = make_plan(
                    opened, transaction, target, reason=reason, actor=actor, secret=secret
                )
            _erase_rows(transaction, plan, secret)
        finished = _finish(opened, progress)
        if finished is None:
            raise Conflict("the erasure is finished elsewhere; its report is in the journal")
        return finished[0]


def _named(secret: bytes, target: ErasureTarget) -> str:
    """Return a keyed digest of a target: nobody can check a guessed name against it."""
    text = fold(target.value).strip() if target.kind is ErasureTargetKind.TEXT else target.value
    return hmac.digest(secret, f"{target.kind}\n{text}".encode(), "sha256").hex()


def _previewed(opened: OpenOrchestrator, plan: Plan) -> ErasureReport:
    texts, report = plan.texts, plan.report
    found = files.erase_files(
        opened.paths, opened.database, texts.terms, report.memory_ids, texts.sources, dry_run=True
    )
    kept = [item.memory_id for item in report.kept]
    with opened.database.read() as snapshot:
        shown = [*report.memory_ids[:SHOWN], *kept[:SHOWN]]
        begins = memories.beginnings(snapshot, shown, _BEGINNING)
    preview = ErasurePreview(
        begins=begins,
        derived_ids=plan.derived_ids,
        names=plan.names[:SHOWN],
        waiting=tuple(found.waiting),
    )
    own = {(pk,) for pk in plan.pks}
    others = [row for row in plan.rows if row.table != erasure.MEMORIES or row.key not in own]
    return _with_files(report, found).model_copy(
        update={"dry_run": True, "preview": preview, "rows": _counts(others)}
    )


def _with_files(report: ErasureReport, found: FoundFiles) -> ErasureReport:
    return report.model_copy(
        update={
            "files_redacted": tuple(sorted({*report.files_redacted, *found.redacted})),
            "files_removed": tuple(sorted({*report.files_removed, *found.removed})),
            "files_refused": tuple(found.refused),
        }
    )


def _counts(rows: Collection[ErasedRow]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        if row.table != erasure.JOURNAL:
            counts[row.table] = counts.get(row.table, 0) + 1
    return dict(sorted(counts.items()))


def _erase_rows(transaction: JournalledTransaction, plan: Plan, secret: bytes) -> None:
    """Remove the texts from the database, and note that files and free space are to follow."""
    with transaction.engine.thorough(transaction):
        erasure.retract(transaction, plan.pks)
        rows = erasure.blank(transaction, plan.pks)
        erasure.remove_entities(transaction, plan.entity_pks)
        applied = erasure.apply(transaction, plan.rows)
    stones = [
        NewEntry(erasure.ACTION, memory_id, {"erasure_id": plan.report.erasure_id})
        for memory_id in plan.report.memory_ids
    ]
    by_id = {"kind": plan.report.kind.value, "reason": plan.report.reason}
    report = _recorded(transaction, plan.report, applied, secret, rows, by_id, stones)
    _note_unfinished(transaction, report, plan.texts, secret)


def _recorded(
    transaction: JournalledTransaction,
    report: ErasureReport,
    applied: Sequence[ErasedRow],
    secret: bytes,
    rows: dict[str, int],
    details: dict[str, Any],
    entries: Sequence[NewEntry] = (),
) -> ErasureReport:
    """Journal a transaction of an erasure, and drop caches of earlier data; return the report."""
    listed = [
        (seq, seal, digest(text)) for seq, seal, text in erasure.redacted(transaction, applied)
    ]
    for table, count in _counts(applied).items():
        rows = rows | {table: rows.get(table, 0) + count}
    total = report.rows | {name: report.rows.get(name, 0) + n for name, n in rows.items()}
    details = {"erasure_id": report.erasure_id, **details, "rows": rows, **sealed(secret, listed)}
    head, _ = journal.head(transaction)
    transaction.record([*entries, NewEntry(erasure.ACTION, None, details)])
    erasure.note_head(transaction, head + len(entries) + 1)
    entries_now = {entry.seq: entry for entry in report.redactions} | {
        seq: RedactedEntry(seq=seq, hash=seal, details=now) for seq, seal, now in listed
    }
    redactions = tuple(entries_now[seq] for seq in sorted(entries_now))
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
    report = ErasureReport.model_validate(state["report"])
    secret = made_erasure_key(opened.paths.root)
    known = _decrypted(secret, report.erasure_id, state["texts"])
    texts = known or ErasedTexts([])
    with opened.database.read() as snapshot:
        says_it = texts.share(snapshot, (), ())
    report = report.model_copy(update={"kept": _kept(says_it, report.kept)})
    # Others see that what they have cached is older than an erasure.
    os.utime(opened.paths.erasing)
    progress(STEPS[2], 2, len(STEPS) - 1)
    report = _sweep(opened, report, texts, secret)
    found = files.erase_files(
        opened.paths, opened.database, texts.terms, report.memory_ids, texts.sources
    )
    opened.forget_texts()
    report = _with_files(report, found)
    _note_files(opened, report, texts)
    progress(STEPS[3], 3, len(STEPS) - 1)
    cut = _fold(opened)
    opened.database.rewrite()
    cut = _fold(opened) and cut
    progress(STEPS[4], 4, len(STEPS) - 1)
    report = _searched(opened, report, texts, cut=cut)
    if known is None:
        report = report.model_copy(update={"remains": ("unknown: erasure.key is another one",)})
    with opened.transaction(report.actor) as transaction:
        if report.unfinished:
            _note_unfinished(transaction, report, texts, secret, tried=True)
        else:
            transaction.record(
                [
                    NewEntry(
                        erasure.REPORT, None, report.model_dump(mode="json", exclude={"preview"})
                    )
                ]
            )
            metadata.drop(transaction, erasure.UNFINISHED_KEY)
    os.utime(opened.paths.erasing)
    progress(STEPS[5], 5, len(STEPS) - 1)
    return report, state["asked"]


def _sweep(
    opened: OpenOrchestrator, report: ErasureReport, texts: ErasedTexts, secret: bytes
) -> ErasureReport:
    """Change the rows that were changed or added meanwhile."""
    for _ in range(LOOKS):
        with opened.database.read() as snapshot:
            rows = erasure.changes(snapshot, texts.ids, texts.terms)
        if not rows:
            break
        with opened.transaction(report.actor) as transaction:
            with transaction.engine.thorough(transaction):
                applied = erasure.apply(transaction, rows)
            report = _recorded(transaction, report, applied, secret, {}, {})
            _note_unfinished(transaction, report, texts, secret)
    return report


def _note_files(opened: OpenOrchestrator, report: ErasureReport, texts: ErasedTexts) -> None:
    """Keep the digests of files that differ from what was ingested."""
    at = opened.clock.now_ms()
    with opened.database.read() as snapshot:
        contents, removed = texts.sources.contents, report.files_removed
        changed = files.changed_contents(opened.paths, snapshot, contents, removed)
    if not changed:
        return
    with opened.database.write() as transaction:
        for sha256, now in changed.items():
            if now is None:
                erasure.empty_manifest(transaction, sha256, at)
            else:
                erasure.note_redacted(transaction, sha256, now, at)


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
    opened: OpenOrchestrator, report: ErasureReport, texts: ErasedTexts, *, cut: bool
) -> ErasureReport:
    """Search the database and the folder for the texts; return the report with the result."""
    sought = texts.sought
    done, places, tables = files.search(opened.paths, opened.database, sought)
    with opened.database.read() as snapshot:
        rows = erasure.changes(snapshot, texts.ids, sought)
    refused = (*report.files_refused, *done.refused)
    remains = (*places, *sorted({row.table for row in rows}))
    obstacles = (
        (not cut, "database.in_use"),
        (refused, "file.refused"),
        (remains, "residue.found"),
    )
    searched = report.searched.model_copy(
        update={
            "strings": texts.searched,
            "shared": len(texts.shared | texts.public),
            "files": done.files,
            "tables": tables or erasure.SEARCHED_TABLES,
            "bytes": done.bytes,
        }
    )
    return report.model_copy(
        update={
            "ended_at": opened.clock.now_ms(),
            "searched": searched,
            "remains": remains,
            "files_refused": tuple(sorted({*refused})),
            "server": opened.database.traces(),
            "unfinished": tuple(code for applies, code in obstacles if applies),
        }
    )


# -- the row of an unfinished erasure ------------------------------------------------------------


def _note_unfinished(
    transaction: JournalledTransaction,
    report: ErasureReport,
    texts: ErasedTexts,
    secret: bytes,
    *,
    tried: bool = False,
) -> None:
    row = {
        "report": report.model_dump(mode="json"),
        "texts": _encrypted(secret, report.erasure_id, texts),
        "asked": texts.named,
        "tried": tried,
    }
    metadata.put(transaction, erasure.UNFINISHED_KEY, json.dumps(row))


def _encrypted(secret: bytes, erasure_id: str, texts: ErasedTexts) -> str:
    fields = {
        name: sorted(item) if isinstance(item, set) else item
        for name, item in asdict(texts).items()
    }
    return base64.b64encode(_veiled(secret, erasure_id, json.dumps(fields).encode())).decode()


def _decrypted(secret: bytes, erasure_id: str, text: str) -> ErasedTexts | None:
    """Return the texts; None if they were encrypted with another secret."""
    try:
        fields: dict[str, Any] = json.loads(_veiled(secret, erasure_id, base64.b64decode(text)))
    except ValueError:
        return None
    fields |= {name: set(fields[name]) for name in _NUMBERS}
    fields["sources"] = SourceFiles(**fields["sources"])
    return ErasedTexts(**fields)


def _veiled(secret: bytes, erasure_id: str, data: bytes) -> bytes:
    """Encrypt or decrypt with a key stream of the secret and the erasure."""
    key = hmac.digest(secret, erasure_id.encode(), "sha256")
    stream = hashlib.shake_256(key).digest(len(data))
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(data), "big")
