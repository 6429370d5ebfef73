"""Store a parsed file exactly once: memories, edges and links, in short transactions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic import BaseModel

from memgraph.errors import MemgraphError
from memgraph.model.enums import EdgeType, IngestStatus, MemoryStatus
from memgraph.model.record_tables import IngestPartRow
from memgraph.model.sources import Document, DocumentOutcome, FileLink
from memgraph.model.tables import IngestFileRow
from memgraph.model.values import EdgeInput, MemoryInput, Outcome
from memgraph.operations.write.edges import EdgeWriter, StoredBatch
from memgraph.operations.write.writer import PreparedMemory
from memgraph.rules.lifecycle import StatusAction, in_force, next_status
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import ingest_files, memories, supports
from memgraph.store.rows import json_text, replace, save
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.store.visibility import View

# ``attributes.role`` of the details of a decision, which are stored apart from its main memory.
DETAIL_ROLE = "decision_detail"

BY = "by"
"""The field of a manifest with the sender, who is also the actor in the journal."""

HALF_STORED: Final = "the rest of its file could not be stored"
# The size of a transaction in memories: about 20 ms, so that other writers hardly wait.
MOST: Final = 64
# On a server: a claim of no known drop zone that stored no part for this time is lost, or its host
# is. An SQLite file has one drop zone, whose runs exclude one another: what it lacks is lost.
ABANDONED_MS: Final = 3_600_000
_CHARS_OF_A_MEMORY: Final = 1_000
_LINK_COST: Final = 4
_COUNTS: Final = (
    *("memories", "edges", "links_made", "links_waiting", "links_rejected"),
    "to_compare",
)
"""The counts of a manifest that the journal has as well."""

Step = MemoryInput | EdgeInput | FileLink


def stored_manifest(snapshot: Snapshot, sha256: str) -> dict[str, Any] | None:
    """Return the manifest of a content that is stored; None if it is new, or was rejected."""
    row = ingest_files.get(snapshot, sha256)
    return row.manifest if row is not None and row.status is IngestStatus.PROCESSED else None


def store_document(
    opened: OpenOrchestrator,
    document: Document,
    actor: str,
    view: View | None = None,
    refused: Callable[[MemgraphError], None] = lambda _error: None,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> DocumentOutcome:
    """Store a parsed file in short transactions; see ``LocalIngestion.store``.

    After an interruption, call it again with the same document to continue. A content that another
    claim is storing, perhaps on another host with the same database, is left to it. If it has
    stored nothing for ``ABANDONED_MS``, or the database is a file and it began before this call,
    the content is stored here, and what it stored is found as duplicates. The caller asks
    ``under_way`` first, which knows the claims of this drop zone.

    Args:
        view: the view of the writer, whose memories the edges may connect; None: everything.
        refused: called with the error of each rejected item.
    """
    storing = _DocumentWriter(opened, document, actor, view)
    with opened.database.read() as snapshot:
        previous = stored_manifest(snapshot, document.sha256)
        if previous is not None:
            return DocumentOutcome(outcome="duplicate", manifest=previous)
        storing.begin(snapshot)
    while (outcome := storing.advance(refused)) is None:
        progress(storing.done, len(storing.steps))
        if stop():
            return DocumentOutcome(outcome="begun")
    return outcome


def under_way(
    opened: OpenOrchestrator, sha256: str, claim: str, is_here: Callable[[str], bool]
) -> bool:
    """Return True if another claim is storing this content; see ``LocalIngestion.under_way``."""
    with opened.database.read() as snapshot:
        last = ingest_files.last_part(snapshot, sha256)
    if last is None or _claim_of(last) == claim:
        return False
    if is_here(_claim_of(last)):
        return True
    return _is_on_server(opened) and not _is_abandoned(last, opened.clock.now_ms())


def _claim_of(part: IngestPartRow) -> str:
    return part.plan.partition(":")[0]


def _is_on_server(opened: OpenOrchestrator) -> bool:
    return bool(opened.settings.memory.storage.url)


def _is_abandoned(part: IngestPartRow, now_ms: int) -> bool:
    return now_ms - part.stored_at >= ABANDONED_MS


def give_up(opened: OpenOrchestrator, sha256: str, claim: str, actor: str) -> int:
    """Retract what a claim stored of a content whose rest it will not store; return its number.

    What another claim stored of it is left alone, also if that one takes it over meanwhile.
    """

    def is_own(snapshot: Snapshot) -> bool:
        last = ingest_files.last_part(snapshot, sha256)
        return last is not None and _claim_of(last) == claim

    with opened.database.read() as snapshot:
        rows = ingest_files.parts(snapshot, sha256) if is_own(snapshot) else []
    parts = [_StepOutcomes.model_validate(row.outcomes) for row in rows]
    outcomes = [memory for part in parts for memory in part.memories]
    ids = [
        outcome.memory_id
        for outcome in outcomes
        if outcome.outcome == "stored" and outcome.memory_id
    ]
    for start in range(0, len(ids), MOST):
        with opened.transaction(actor) as transaction:
            if is_own(transaction):
                for memory_id in ids[start : start + MOST]:
                    _retract(transaction, memory_id)
    if parts:
        with opened.transaction(actor) as transaction:
            if is_own(transaction):
                ingest_files.forget_parts(transaction, sha256)
    return len(ids)


def _retract(transaction: JournalledTransaction, memory_id: str) -> None:
    before = memories.get(transaction, memory_id).status
    if before is MemoryStatus.RETRACTED:
        return
    memories.set_status(
        transaction, memory_id, next_status(before, StatusAction.RETRACT), reason=HALF_STORED
    )
    transaction.record([NewEntry("retract", memory_id, {"reason": HALF_STORED})])


class _StepOutcomes(BaseModel):
    """The outcomes of steps of a document, in the order of the steps."""

    memories: list[Outcome] = []
    edges: list[Outcome] = []
    links: list[Outcome] = []
    waiting: int = 0
    to_compare: int = 0

    def add(self, other: _StepOutcomes) -> None:
        """Append the outcomes of the following steps."""
        self.memories += other.memories
        self.edges += other.edges
        self.links += other.links
        self.waiting += other.waiting
        self.to_compare += other.to_compare


@dataclass(frozen=True, slots=True)
class _Part:
    """The steps of a transaction, and their prepared data; ``room``: its remaining capacity."""

    steps: Sequence[Step]
    room: int
    prepared: Sequence[PreparedMemory]


class _DocumentWriter:
    """Stores a document, in parts.

    The steps are its memories in order, each followed by the edges that it completes, then its
    links to other files. Links that waited for the document come last. Each part is a transaction
    with a row that records its position and the outcomes of its steps. A killed worker loses only
    one part, and each part is stored by only one worker.
    """

    def __init__(
        self, opened: OpenOrchestrator, document: Document, actor: str, view: View | None
    ) -> None:
        self._opened, self._document, self._actor, self._view = opened, document, actor, view
        # A document replaces only what documents of its own folder say.
        paths = (memory.source.source_path for memory in document.memories)
        self._folder = str(PurePosixPath(next(filter(None, paths), document.path)).parent)
        self.steps, self._edge_places = _steps(document)
        self._main = (document.main or "").removeprefix("#")
        # The plan that a lost claim of the same drop zone left; see ``ABANDONED_MS``.
        self._lost_plan: str | None = None
        self._restart()

    def _restart(self) -> None:
        self.done = self._part = self._last_waiting = 0
        self._keys: dict[str, str] = {}
        self._told = _StepOutcomes()

    def begin(self, snapshot: Snapshot) -> None:
        """Read the progress of this plan, and whether another one was left on this machine."""
        last = ingest_files.last_part(snapshot, self._document.sha256)
        if last is not None and not _is_on_server(self._opened):
            self._lost_plan = last.plan
        self.resume(snapshot)

    def resume(self, snapshot: Snapshot) -> None:
        """Read the progress of this plan; the steps of another plan are stored again."""
        self._restart()
        for row in ingest_files.parts(snapshot, self._document.sha256):
            if row.plan != self._document.plan:
                break
            self._told.add(_StepOutcomes.model_validate(row.outcomes))
            self.done, self._part = row.done, row.part
        for memory, outcome in zip(self._document.memories, self._told.memories, strict=False):
            if memory.key is not None and outcome.memory_id is not None:
                self._keys[memory.key] = outcome.memory_id

    def advance(self, refused: Callable[[MemgraphError], None]) -> DocumentOutcome | None:
        """Store the next part; after the last part return the outcome of the document."""
        part = self._next_part()
        # The manifest of a large file is large, so it is serialised before the transaction.
        manifest = json_text(self._manifest()) if self._part and not part.steps else None
        errors: list[MemgraphError] = []
        with self._opened.transaction(self._actor) as transaction:
            outcome = self._write(transaction, part, manifest, errors)
        for error in errors:
            refused(error)
        return outcome

    def _next_part(self) -> _Part:
        """Return the steps of the next transaction, prepared as far as possible without a lock."""
        room = MOST
        steps: list[Step] = []
        for step in self.steps[self.done : self.done + MOST]:
            cost = 1
            if isinstance(step, MemoryInput):
                cost += len(step.content) // _CHARS_OF_A_MEMORY
            elif isinstance(step, FileLink):
                cost = _LINK_COST
            if steps and cost > room:
                break
            steps.append(step)
            room -= cost
        inputs = [memory for memory in steps if isinstance(memory, MemoryInput)]
        return _Part(steps, room, [self._opened.writer.prepare(memory) for memory in inputs])

    def _write(
        self,
        transaction: JournalledTransaction,
        part: _Part,
        manifest: str | None,
        errors: list[MemgraphError],
    ) -> DocumentOutcome | None:
        sha256 = self._document.sha256
        previous = stored_manifest(transaction, sha256)
        if previous is not None:
            return DocumentOutcome(outcome="duplicate", manifest=previous)
        last = ingest_files.last_part(transaction, sha256)
        if last is not None and last.plan != self._document.plan:
            own = _claim_of(last) == self._document.plan.partition(":")[0]
            is_lost = last.plan == self._lost_plan or _is_abandoned(last, transaction.at)
            if not own and not is_lost:
                # Another claim began it at the same time, or took it over.
                return DocumentOutcome(outcome="under_way")
            ingest_files.forget_parts(transaction, sha256)
            last = None
        if (0 if last is None else last.part) != self._part:
            # Another worker has stored this part, or all of them were given up.
            self.resume(transaction)
            return None
        progress = self._store(transaction, part, errors)
        self.done += len(part.steps)
        ended = self.done == len(self.steps)
        waiting = self._join_waiting(transaction, progress, part.room) if ended else False
        self._told.add(progress)
        if ended and not waiting:
            if self._part == 0:
                return self._end(transaction, json_text(self._manifest()))
            if manifest is not None and not progress.links:
                return self._end(transaction, manifest)
        self._part += 1
        row = IngestPartRow(
            sha256=sha256,
            part=self._part,
            plan=self._document.plan,
            done=self.done,
            outcomes_json=json_text(progress.model_dump(mode="json", exclude_none=True)),
            stored_at=transaction.at,
        )
        save(transaction, row)
        return None

    def _store(
        self, transaction: JournalledTransaction, part: _Part, errors: list[MemgraphError]
    ) -> _StepOutcomes:
        """Store the steps of a part, and return their outcomes."""
        written = self._opened.writer.store(
            transaction,
            part.prepared,
            [step for step in part.steps if isinstance(step, EdgeInput)],
            view=self._view,
            compare=self._document.relate,
            keys=self._keys,
            folder=self._folder,
        )
        transaction.record(written.entries)
        errors += written.errors
        _add_sources(transaction, part.prepared, written)
        if any(isinstance(step, MemoryInput) and step.key == self._main for step in part.steps):
            main = self._keys.get(self._main)
            if main is not None:
                ingest_files.add_keys(transaction, main, self._document.document_keys)
        progress = _StepOutcomes(
            memories=written.memories, edges=written.edges, to_compare=written.to_compare
        )
        self._link(
            transaction, [step for step in part.steps if isinstance(step, FileLink)], progress
        )
        return progress

    def _link(
        self, transaction: JournalledTransaction, links: Sequence[FileLink], progress: _StepOutcomes
    ) -> None:
        """Add the edges to linked files; store links to missing files until these arrive."""
        edges: list[EdgeInput] = []
        for link in links:
            local = self._keys.get(link.local.removeprefix("#"))
            if local is None:
                continue
            target = _find(transaction, link, self._view)
            if target is not None:
                edges += _edge(local, target, link)
            else:
                progress.waiting += 1
                row = link.model_dump(exclude={"local", "fallbacks"}) | {"memory_id": local}
                for name in (link.target, *link.fallbacks):
                    ingest_files.add_pending_link(transaction, row | {"target": name})
        self._join(transaction, edges, progress)

    def _join_waiting(
        self, transaction: JournalledTransaction, progress: _StepOutcomes, room: int
    ) -> bool:
        """Add edges for links that waited for this file; return True if there may be more."""
        main = self._keys.get(self._main)
        if main is None:
            return False
        limit = max(1, room // _LINK_COST)
        keys = self._document.document_keys
        rows = ingest_files.pending_links(transaction, keys, after=self._last_waiting, limit=limit)
        visible = _visible(transaction, sorted({row.memory_id for row in rows}), self._view)
        # The other links wait for a writer who may see both sides.
        visible_rows = [row for row in rows if row.memory_id in visible]
        ingest_files.remove_pending_links(transaction, visible_rows)
        edges = [edge for row in visible_rows for edge in _edge(row.memory_id, main, row)]
        self._join(transaction, edges, progress)
        self._last_waiting = max((row.link_id for row in rows), default=self._last_waiting)
        return len(rows) == limit

    def _join(
        self,
        transaction: JournalledTransaction,
        edges: Sequence[EdgeInput],
        progress: _StepOutcomes,
    ) -> None:
        """Add edges between stored memories; fully replaced memories have their details
        replaced.
        """
        joined = self._opened.writer.store(
            transaction, [], edges, view=self._view, folder=self._folder
        )
        transaction.record(joined.entries)
        progress.links += joined.edges
        for edge, outcome in zip(edges, joined.edges, strict=True):
            if in_force(edge) and outcome.outcome == "stored" and outcome.code is None:
                self._replace_details(transaction, edge.from_id, edge.to_id)

    def _replace_details(
        self, transaction: JournalledTransaction, new_id: str, old_id: str
    ) -> None:
        """Supersede the details of a replaced decision that the writer may see.

        Details that another source states as well stay. The context and the consequences of the
        decision stay too, and are reported as depending on refuted evidence.
        """
        joiner = EdgeWriter(self._opened.writer.ids, self._view, folder=self._folder)
        status = next_status(MemoryStatus.ACTIVE, StatusAction.SUPERSEDE)
        parts = ingest_files.parts_left(transaction, old_id, DETAIL_ROLE)
        for part in _visible(transaction, parts, self._view):
            if joiner.kept_apart(transaction, new_id, part):
                continue
            reason = f"replaced by {new_id}, with {old_id} of which it is a part"
            memories.set_status(transaction, part, status, reason=reason)
            transaction.record([NewEntry("supersede", part, {"by": new_id, "with": old_id})])

    def _end(self, transaction: JournalledTransaction, manifest: str) -> DocumentOutcome:
        """Record that the document is completely stored, and return its outcome."""
        document = self._document
        ingest_files.forget_parts(transaction, document.sha256)
        row = IngestFileRow(
            sha256=document.sha256,
            path=document.path,
            status=IngestStatus.PROCESSED,
            manifest_json=manifest,
            recorded_at=transaction.at,
        )
        replace(transaction, row)
        recorded = json.loads(manifest)
        counts = {name: recorded[name] for name in _COUNTS}
        transaction.record([NewEntry("ingest", None, {"sha256": document.sha256, **counts})])
        return DocumentOutcome(
            outcome="stored",
            memories=tuple(self._told.memories),
            edges=tuple(self._edges()),
            manifest=recorded,
        )

    def _edges(self) -> list[Outcome]:
        """Return the outcomes of the edges in the order of the file."""
        in_order = dict(zip(self._edge_places, self._told.edges, strict=False))
        return [in_order[place] for place in sorted(in_order)]

    def _manifest(self) -> dict[str, Any]:
        told = self._told
        tallies = Counter(memory.outcome for memory in told.memories)
        # The outcome of each memory and edge, with its id, in the order of the file.
        items = {"memories": _dumped(told.memories), "edges": _dumped(self._edges())}
        return {
            **self._document.manifest,
            "memories": dict(sorted(tallies.items())),
            "edges": _stored(told.edges),
            "links_made": _stored(told.links),
            "links_waiting": told.waiting,
            "links_rejected": [link.code for link in told.links if link.outcome == "rejected"],
            "to_compare": told.to_compare,
            "items": items,
            BY: self._actor,
        }


def _steps(document: Document) -> tuple[list[Step], list[int]]:
    """Return the steps of a document, and the indices of its edges in the order of the steps."""
    places = {f"#{memory.key}": place for place, memory in enumerate(document.memories)}
    due: dict[int, list[int]] = {}
    for place, edge in enumerate(document.edges):
        last = max(places.get(edge.from_id, -1), places.get(edge.to_id, -1))
        due.setdefault(last, []).append(place)
    steps: list[Step] = []
    order: list[int] = []
    for place in range(-1, len(document.memories)):
        if place >= 0:
            steps.append(document.memories[place])
        steps += [document.edges[edge_index] for edge_index in due.get(place, ())]
        order += due.get(place, ())
    return [*steps, *document.links], order


def record_rejection(
    opened: OpenOrchestrator, sha256: str, *, path: str, manifest: Mapping[str, Any], actor: str
) -> None:
    """Record the rejection of a content, or that it is on hold for an operator, with the reason."""
    action = "ingest_held" if manifest.get("reason") == ingest_files.HELD else "ingest_rejected"
    with opened.transaction(actor) as transaction:
        if stored_manifest(transaction, sha256) is not None:
            return
        row = IngestFileRow(
            sha256=sha256,
            path=path,
            status=IngestStatus.REJECTED,
            manifest_json=json_text({**manifest, BY: actor}),
            recorded_at=transaction.at,
        )
        replace(transaction, row)
        transaction.record([NewEntry(action, None, {"sha256": sha256})])


def _add_sources(
    transaction: JournalledTransaction, prepared: Sequence[PreparedMemory], written: StoredBatch
) -> None:
    """Add this file as a further source of duplicates, in case their own source is retracted."""
    for item, outcome in zip(prepared, written.memories, strict=True):
        if outcome.outcome != "duplicate" or outcome.memory_id is None:
            continue
        source_id = item.source_id
        memories.insert_sources(transaction, {source_id: item.given.source})
        if supports.add(transaction, outcome.memory_id, source_id):
            transaction.record([NewEntry("support", outcome.memory_id, {"source_id": source_id})])


def _edge(local: str, other: str, link: Any) -> list[EdgeInput]:
    if local == other:
        return []
    return [
        EdgeInput(
            from_id=local if link.outgoing else other,
            to_id=other if link.outgoing else local,
            edge_type=EdgeType(link.edge_type),
            weight=link.weight,
            reason=link.reason,
            partial=link.partial,
        )
    ]


def _find(snapshot: Snapshot, link: FileLink, view: View | None) -> str | None:
    """Return the memory that a link refers to, if the writer may see it."""
    exact = _memories_with_key(snapshot, link.target, view)
    if exact:
        return exact[0]
    for key in link.fallbacks:
        matches = _memories_with_key(snapshot, key, view)
        if len(matches) == 1:
            return matches[0]
    return None


def _memories_with_key(snapshot: Snapshot, key: str, view: View | None) -> list[str]:
    return _visible(snapshot, ingest_files.memories_known_as(snapshot, key), view)


def _visible(snapshot: Snapshot, ids: list[str], view: View | None) -> list[str]:
    """Return the ids of those memories that the writer may see."""
    if view is None:
        return ids
    visible = memories.existing_ids(snapshot, ids, view)
    return [memory_id for memory_id in ids if memory_id in visible]


def _stored(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.outcome == "stored" for outcome in outcomes)


def _dumped(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [outcome.model_dump(mode="json", exclude_none=True) for outcome in outcomes]
