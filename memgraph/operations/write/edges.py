"""Write edges between memories, and apply the effect of an Updates edge to its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from memgraph.errors import Conflict, InvalidInput, MemgraphError, NotFound
from memgraph.ids import EDGE_PREFIX, IdSource, short_id
from memgraph.model.enums import EdgeType
from memgraph.model.values import MAX_REASON_CHARS, Edge, EdgeInput, Outcome
from memgraph.operations.write.changes import prevailing, reopen, require_unreplaced, state_of
from memgraph.rules.lifecycle import in_force, is_change_mark, plan_supersession, replaced_by
from memgraph.store import edges, journal, memories, supports
from memgraph.store.snapshot import JournalledTransaction, NewEntry
from memgraph.store.visibility import View

OTHER_SOURCE: Final = "source.other"
"""The code of an Updates edge that became an open contradiction."""
_REPLACED_BEFORE: Final = "another memory had replaced it before; the edge is partial"
_OTHER_SOURCE_REASON: Final = "only an explicit decision replaces what another source said"
STATED_ELSEWHERE: Final = 0.9
"""The weight of the mark for a document's statement about a memory of another folder.

The document states the change itself, but the number or title by which it names the other may mean
a document that is not here. The value is not measured; it equals the threshold from which a pair of
two authors is marked (``TURN_MARK_FROM``).
"""
_PUT_IN_FORCE: Final = "put in force"
_PLAIN: Final = (EdgeType.PART_OF, EdgeType.CAUSED_BY, EdgeType.RELATED_TO)


@dataclass(slots=True)
class StoredBatch:
    """The result of one transaction: outcomes in the order of the items, and journal entries.

    ``to_compare`` is the number of memories queued for comparison with the stored ones.
    """

    memories: list[Outcome] = field(default_factory=list)
    edges: list[Outcome] = field(default_factory=list)
    ids_by_key: dict[str, str] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    entries: list[NewEntry] = field(default_factory=list)
    errors: list[MemgraphError] = field(default_factory=list)
    to_compare: int = 0

    def reject(self, error: MemgraphError) -> Outcome:
        """Return the outcome of an item that cannot be stored, and keep its error."""
        self.errors.append(error)
        return Outcome(outcome="rejected", code=error.code, message=error.message)

    def resolve(self, reference: str) -> str:
        """Return the memory id for a reference: ``#key`` of an item in the batch, or an id.

        Raises:
            NotFound: no memory of the batch has this key, or it was rejected.
        """
        if not reference.startswith("#"):
            return reference
        memory_id = self.ids_by_key.get(reference[1:])
        if memory_id is None:
            raise NotFound(f"no memory {reference[:80]!r} in this batch", key=reference[1:])
        return memory_id


@dataclass(frozen=True, slots=True)
class EdgeWriter:
    """Writes edges into one database; the caller opens the transaction.

    Attributes:
        view: what the writer may see, and therefore connect; None: everything.
        by_model: True for edges that a comparison or a model found and nobody requested.
        folder: the folder of the document that states the edges; None: no document does.
    """

    ids: IdSource
    view: View | None = None
    by_model: bool = False
    folder: str | None = None

    def join_all(
        self, transaction: JournalledTransaction, links: Sequence[EdgeInput], written: StoredBatch
    ) -> list[Outcome]:
        """Store edges and return their outcomes; ``#key`` ends refer to memories of ``written``."""
        plain = self._join_plain(transaction, links, written)
        outcomes = [
            plain.get(place) or self._try_join(transaction, link, written)
            for place, link in enumerate(links)
        ]
        written.edges.extend(outcomes)
        return outcomes

    def _join_plain(
        self, transaction: JournalledTransaction, links: Sequence[EdgeInput], written: StoredBatch
    ) -> dict[int, Outcome]:
        """Store the edges that need no checks in one statement; return their outcomes by place.

        These are edges from memories of this transaction that replace and contradict nothing.
        """
        places: dict[tuple[str, str, EdgeType], int] = {}
        for place, link in enumerate(links):
            from_id = written.ids_by_key.get(link.from_id.removeprefix("#"), link.from_id)
            to_id = written.ids_by_key.get(link.to_id.removeprefix("#"), link.to_id)
            key = (from_id, to_id, link.edge_type)
            reverse = (to_id, from_id, link.edge_type)
            if from_id not in written.new or from_id == to_id or link.edge_type not in _PLAIN:
                continue
            if key not in places and not (link.edge_type in edges.SYMMETRIC and reverse in places):
                places[key] = place
        stored_targets = sorted({to_id for _, to_id, _ in places if to_id not in written.new})
        known_ids = written.new | memories.existing_ids(transaction, stored_targets, self.view)
        rows = {
            place: _row(self.ids.new(EDGE_PREFIX), from_id, to_id, links[place], transaction.at)
            for (from_id, to_id, _), place in places.items()
            if to_id in known_ids
        }
        if rows:
            edges.insert(transaction, *rows.values())
        written.entries += [_related(row) for row in rows.values()]
        return {
            place: Outcome(outcome="stored", edge_id=row["edge_id"]) for place, row in rows.items()
        }

    def join(
        self, transaction: JournalledTransaction, link: EdgeInput, written: StoredBatch
    ) -> Outcome:
        """Store one edge; an Updates edge in force supersedes its target.

        A memory has one successor: if that is retracted, the edge leads to it instead; if an active
        memory has replaced the target, a document's edge is stored as partial, with the code
        ``memory.conflict`` in its outcome. An Updates edge becomes an open contradiction, with the
        code ``source.other`` in its outcome, if

        - a model or a document states it, and the two memories do not come from one source; a
          document's is a mark, with the weight ``STATED_ELSEWHERE``;
        - the writer is confined, and another actor stored the target.

        Raises:
            InvalidInput: both ends are the same memory.
            NotFound: an end does not exist or is hidden from the writer.
            Conflict: the status of an end does not allow the edge, or an active memory has
                replaced the target; see ``replaced_by``.
        """
        from_id, to_id = written.resolve(link.from_id), written.resolve(link.to_id)
        if from_id == to_id:
            raise InvalidInput("an edge must join two different memories", memory_id=from_id)
        memories.require(transaction, [from_id, to_id], self.view)
        existing = edges.find(transaction, from_id, to_id, link.edge_type)
        # A mark or a partial Updates edge may be put in force, but not the reverse.
        if existing is not None and not _decides(link, existing):
            return Outcome(outcome="duplicate", edge_id=existing.edge_id)
        if link.edge_type is EdgeType.CONTRADICTS or is_change_mark(link):
            # A dismissal covers the two statements, so it also applies to copies stored later.
            dismissed = edges.dismissed_alike(transaction, from_id, to_id, self.view)
            if dismissed is not None:
                return Outcome(outcome="duplicate", edge_id=dismissed)
        if link.edge_type is EdgeType.UPDATES and link.weight >= 1.0:
            if self.kept_apart(transaction, from_id, to_id):
                return self._open_case(transaction, link, written)
            if in_force(link):
                return self._replace(transaction, from_id, to_id, link, written)
        return self._write(transaction, from_id, to_id, link, existing, written)

    def _replace(
        self,
        transaction: JournalledTransaction,
        new_id: str,
        old_id: str,
        link: EdgeInput,
        written: StoredBatch,
    ) -> Outcome:
        """Let a memory replace another, which has no active successor; see ``join``."""
        chain = edges.successors(transaction, old_id)
        if new_id in chain:
            edge = edges.find(transaction, chain[0], old_id, EdgeType.UPDATES)
            return Outcome(outcome="duplicate", edge_id=None if edge is None else edge.edge_id)
        code = message = None
        if self.folder is not None and memories.active_ids(transaction, chain):
            link = link.model_copy(update={"partial": True})
            code, message = Conflict.code, _REPLACED_BEFORE
        else:
            self._supersede(transaction, new_id, old_id, link.reason, written)
            old_id = chain[-1] if chain else old_id
        existing = edges.find(transaction, new_id, old_id, EdgeType.UPDATES)
        outcome = self._write(transaction, new_id, old_id, link, existing, written)
        return outcome.model_copy(update={"code": code, "message": message})

    def _write(
        self,
        transaction: JournalledTransaction,
        from_id: str,
        to_id: str,
        link: EdgeInput,
        existing: Edge | None,
        written: StoredBatch,
    ) -> Outcome:
        if existing is None:
            row = _row(self.ids.new(EDGE_PREFIX), from_id, to_id, link, transaction.at)
            edges.insert(transaction, row)
            entry = _related(row)
        elif _decides(link, existing):
            if existing.resolution is not None:
                # A dismissed mark.
                written.entries += reopen(
                    transaction, existing, reason=link.reason or _PUT_IN_FORCE
                )
            ends = existing.from_id, existing.to_id
            row = _row(existing.edge_id, *ends, link, existing.created_at)
            edges.put_in_force(transaction, existing, link.reason)
            entry = _accepted(existing, link) if is_change_mark(existing) else _related(row)
        else:
            return Outcome(outcome="duplicate", edge_id=existing.edge_id)
        written.entries.append(entry)
        return Outcome(outcome="stored", edge_id=row["edge_id"])

    def kept_apart(self, transaction: JournalledTransaction, new_id: str, old_id: str) -> bool:
        """Return True if a memory may not replace another, because nobody decided that it does.

        A document replaces only what files of its own folder state, a model what comes from one
        folder and the same actors, and a confined writer what it stored itself.
        """
        if self.by_model or self.folder is not None:
            folders = supports.folders(transaction, old_id) | supports.folders(transaction, new_id)
            if len(folders | ({self.folder} if self.folder is not None else set())) > 1:
                return True
        if self.by_model:
            old_authors, new_authors = (_authors(transaction, each) for each in (old_id, new_id))
            return not old_authors <= new_authors
        writer = None if self.view is None else self.view.viewer
        if writer is None or not writer.confined or writer.sees_use:
            return False
        return journal.author_of(transaction, old_id) != transaction.actor

    def _open_case(
        self, transaction: JournalledTransaction, link: EdgeInput, written: StoredBatch
    ) -> Outcome:
        ends = [written.resolve(end) for end in (link.from_id, link.to_id)]
        plan_supersession(*(state_of(transaction, memory_id) for memory_id in ends))
        reason = _OTHER_SOURCE_REASON
        full_reason = f"{reason}: {link.reason}" if link.reason else reason
        weight = link.weight if self.folder is None else STATED_ELSEWHERE
        changes = {"edge_type": EdgeType.CONTRADICTS, "partial": False, "weight": weight}
        contradiction = link.model_copy(
            update={**changes, "reason": full_reason[:MAX_REASON_CHARS]}
        )
        outcome = self.join(transaction, contradiction, written)
        return outcome.model_copy(update={"code": OTHER_SOURCE, "message": reason})

    def _try_join(
        self, transaction: JournalledTransaction, link: EdgeInput, written: StoredBatch
    ) -> Outcome:
        """Store one edge; if it is rejected, undo only its own writes."""
        savepoint = transaction.begin_nested()
        entry_count = len(written.entries)
        try:
            outcome = self.join(transaction, link, written)
        except (Conflict, InvalidInput, NotFound) as error:
            savepoint.rollback()
            del written.entries[entry_count:]
            return written.reject(error)
        savepoint.commit()
        return outcome

    def _supersede(
        self,
        transaction: JournalledTransaction,
        new_id: str,
        old_id: str,
        reason: str | None,
        written: StoredBatch,
    ) -> None:
        new, old = (state_of(transaction, memory_id) for memory_id in (new_id, old_id))
        # Edges may come in any order, so a superseded memory may still replace another, but not
        # what prevailed over it: in a circle no memory would stay active.
        if old_id in edges.successors(transaction, new_id):
            raise Conflict("the memory to replace is itself a replacement of the newer one")
        prevailed, decided = prevailing(transaction, new_id)
        if old_id in prevailed:
            ends = sorted({end for edge in decided for end in (edge.from_id, edge.to_id)})
            visible = memories.existing_ids(transaction, ends, self.view)
            ids = [edge.edge_id for edge in decided if {edge.from_id, edge.to_id} <= visible]
            raise Conflict(
                "the memory to replace prevailed over the newer one in a contradiction"
                + (f"; reopen {short_id(ids[0])} first" if ids else ""),
                edge_ids=ids,
            )
        change = plan_supersession(new, old)
        if change is None:
            require_unreplaced(transaction, old_id, view=self.view)
        if change is None or change.status is None:
            return
        because = replaced_by(new_id, reason)
        memories.set_status(transaction, old_id, change.status, reason=because)
        written.entries.append(NewEntry("supersede", old_id, {"by": new_id, "reason": reason}))


def _decides(link: EdgeInput, existing: Edge) -> bool:
    """Return True if a new edge puts an existing one in force, or states what it only marks."""
    if link.edge_type is EdgeType.CONTRADICTS:
        return link.weight >= 1.0 and existing.is_open_mark
    return in_force(link) and not in_force(existing)


def _authors(transaction: JournalledTransaction, memory_id: str) -> frozenset[str]:
    # A memory that is being stored has no journal entry yet: the actor is its author.
    author = journal.author_of(transaction, memory_id) or transaction.actor
    return journal.authors_of_turns(transaction, memory_id) or frozenset({author})


def _row(edge_id: str, from_id: str, to_id: str, link: EdgeInput, at: int) -> dict[str, Any]:
    return {
        "edge_id": edge_id,
        "from_memory_id": from_id,
        "to_memory_id": to_id,
        "edge_type": link.edge_type,
        "weight": link.weight,
        "reason": link.reason,
        "partial": link.partial,
        "created_at": at,
        "resolved_at": None,
        "resolution": None,
    }


def _accepted(mark: Edge, link: EdgeInput) -> NewEntry:
    ends = {"winner_id": mark.from_id, "loser_id": mark.to_id}
    return NewEntry(
        "accept", mark.from_id, {"edge_id": mark.edge_id, **ends, "reason": link.reason}
    )


def _related(row: Mapping[str, Any]) -> NewEntry:
    details = {name: row[name] for name in ("reason", "edge_id", "weight", "partial")}
    names = {"to": row["to_memory_id"], "type": row["edge_type"].value}
    return NewEntry("relate", row["from_memory_id"], names | details)
