"""The write path: validate, deduplicate and store memories with their links in one transaction.

Nothing here calls a model. Later work, such as embedding, is queued in the outbox.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from memgraph.errors import AccessDenied, NotFound
from memgraph.ids import IdSource
from memgraph.model.conversation import TOLD_AS, AgentTurn, UserTurn, voice_of
from memgraph.model.entities import METADATA
from memgraph.model.enums import ComparisonStage, MemoryKind, MemoryStatus
from memgraph.model.values import EdgeInput, EpisodeInput, MemoryInput, Outcome
from memgraph.operations.write.edges import EdgeWriter, StoredBatch
from memgraph.operations.write.embedding import claim_model
from memgraph.operations.write.entity_links import EntityLinker, NameFinder
from memgraph.paths import OrchestratorPaths, canonical_source
from memgraph.providers.embedding import EmbeddingProvider
from memgraph.rules.budget import summarise, token_cost
from memgraph.rules.conversations import follow, taken_over
from memgraph.rules.decay import rate_of
from memgraph.rules.scope import ScopeFacts, writable
from memgraph.rules.similarity import content_hash
from memgraph.store import (
    comparisons,
    embeddings,
    erasure,
    memories,
    postings,
    sessions,
    text_index,
)
from memgraph.store.entities import EntityName
from memgraph.store.journal import memory_seal
from memgraph.store.memories import MemoryIdentity, TurnIdentity
from memgraph.store.rows import json_text
from memgraph.store.sessions import RegisteredSession
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot, Transaction
from memgraph.store.visibility import View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


SAME_TEXT: Final = "the same text"


@dataclass(frozen=True, slots=True)
class PreparedMemory:
    """A memory with everything that can be computed without the database."""

    given: MemoryInput
    content_hash: str
    summary: str
    token_cost: int
    source_id: str
    search_terms: str | None
    names: tuple[EntityName, ...]
    vector: NDArray[np.float32] | None = None

    @property
    def identity(self) -> MemoryIdentity | TurnIdentity | None:
        """The key of deduplication; None for a turn without an id, which is never a duplicate."""
        memory = self.given
        if memory.kind is not MemoryKind.EPISODE:
            return MemoryIdentity.of(self.content_hash, memory)
        if memory.turn_id is None or memory.session_id is None:
            return None
        return TurnIdentity(
            session_id=memory.session_id,
            turn_id=memory.turn_id,
            content_hash=self.content_hash,
            source_role=memory.source_role,
            scope=memory.scope.value,
            scope_id=memory.scope_id,
            agent_id=memory.agent_id,
            item_id=memory.item_id,
        )


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes into one orchestrator's database; the caller opens the transaction."""

    orchestrator_id: str
    ids: IdSource
    find_names: NameFinder
    inferred_decay_rate: float
    linker: EntityLinker
    reads_pairs: bool = False
    asks_model: bool = False

    @property
    def model_edges(self) -> EdgeWriter:
        """A writer of edges that a comparison or a model found, between any memories."""
        return EdgeWriter(self.ids, by_model=True)

    def prepare(
        self, memory: MemoryInput, vector: NDArray[np.float32] | None = None
    ) -> PreparedMemory:
        """Do the part of a write that needs no lock; call it before the transaction."""
        return PreparedMemory(
            given=memory,
            content_hash=content_hash(memory.content),
            summary=memory.summary if memory.summary is not None else summarise(memory.content),
            token_cost=token_cost(memory.content),
            source_id=memories.source_id(memory.source),
            search_terms=text_index.search_terms(memory.content, memory.attributes.get(METADATA)),
            names=tuple(self.find_names(memory.content)),
            vector=vector,
        )

    def store(
        self,
        transaction: JournalledTransaction,
        items: Sequence[PreparedMemory],
        links: Sequence[EdgeInput],
        *,
        view: View | None = None,
        embedding: EmbeddingProvider | None = None,
        live: bool = False,
        compare: bool = True,
        known: Collection[str] | None = None,
        keys: dict[str, str] | None = None,
        folder: str | None = None,
        replacing: str | None = None,
    ) -> StoredBatch:
        """Store memories and edges. Items that cannot be stored are rejected one by one.

        Args:
            embedding: the provider of the items' vectors; None: they have none.
            view: what the writer may see; None: everything. Hidden memories are not used as
                duplicates, evidence or ends of edges, and a confined writer may not store any.
            live: True if the turns among the items were said just now, see ``_note_turns``.
            compare: queue facts and turns for comparison with the stored ones.
            known: the ids of memories that the model of the items' page saw: they are compared
                with other facts alone; None: they are not from a page that a model has read.
            keys: the ids stored earlier under a ``#key`` of the same file; new ones are added.
            folder: the folder of the document that states the edges; None: no document does.
            replacing: a memory that the items correct, which is not their duplicate.
        """
        written = StoredBatch(ids_by_key={} if keys is None else keys)
        rows = self._store_memories(
            transaction, items, written, view=view, live=live, replacing=replacing
        )
        ready = self._add_vectors(transaction, rows, embedding)
        embeddings.enqueue(transaction, [row["pk"] for row, _ in rows if row["pk"] not in ready])
        if compare:
            self._enqueue(transaction, rows, written, known)
        if links:
            EdgeWriter(self.ids, view, folder=folder).join_all(transaction, links, written)
        return written

    def store_all(
        self,
        transaction: JournalledTransaction,
        items: Sequence[PreparedMemory],
        links: Sequence[EdgeInput] = (),
        *,
        view: View | None = None,
        live: bool = False,
        replacing: str | None = None,
    ) -> StoredBatch:
        """Store memories and edges, all or none, and record their journal entries; see ``store``.

        Raises:
            MemgraphError: the first error, if an item cannot be stored.
        """
        written = self.store(transaction, items, links, view=view, live=live, replacing=replacing)
        if written.errors:
            raise written.errors[0]
        transaction.record(written.entries)
        return written

    def _enqueue(
        self,
        transaction: Transaction,
        rows: Sequence[tuple[dict[str, Any], PreparedMemory]],
        written: StoredBatch,
        known: Collection[str] | None,
    ) -> None:
        """Queue stored facts and turns for comparison, and record it in their outcomes."""
        stage = ComparisonStage.READER if self.reads_pairs else ComparisonStage.MODEL
        waiting = {
            row["memory_id"]: row["pk"]
            for row, item in rows
            if item.given.kind is not MemoryKind.REFLECTION
            and item.given.status is MemoryStatus.ACTIVE
            and (
                self.reads_pairs
                or (self.asks_model and known is None and item.given.kind is MemoryKind.FACT)
            )
        }
        if not waiting:
            return
        seen = None if known is None else json.dumps(sorted({*known, *waiting}))
        comparisons.enqueue(transaction, list(waiting.values()), stage, seen)
        written.to_compare += len(waiting)
        for place, outcome in enumerate(written.memories):
            if outcome.outcome == "stored" and outcome.memory_id in waiting:
                written.memories[place] = outcome.model_copy(update={"comparison": "pending"})

    def _store_memories(
        self,
        transaction: JournalledTransaction,
        items: Sequence[PreparedMemory],
        written: StoredBatch,
        *,
        view: View | None,
        live: bool,
        replacing: str | None,
    ) -> list[tuple[dict[str, Any], PreparedMemory]]:
        identities = [item.identity for item in items]
        known_ids = self._known(transaction, identities, view, transaction.at)
        known_ids = {key: known for key, known in known_ids.items() if known != replacing}
        evidence_ids = _evidence(transaction, items, view)
        turns = [item.given for item in items if item.given.kind is MemoryKind.EPISODE]
        session_ids = {turn.session_id for turn in turns if turn.session_id is not None}
        known_sessions = sessions.registered(transaction, session_ids)
        sequences: dict[str, int] = {}
        stored: list[tuple[dict[str, Any], PreparedMemory]] = []
        derived: list[tuple[str, str]] = []
        pk = memories.last_pk(transaction) + 1
        names: list[tuple[int, tuple[EntityName, ...]]] = []
        hidden = _hidden_conversations(transaction, view, known_sessions)
        for item, identity in zip(items, identities, strict=True):
            memory = item.given
            duplicate = None if identity is None else known_ids.get(identity)
            error = _refusal(memory, view, hidden) or _missing(memory, evidence_ids, written)
            if error is not None:
                written.memories.append(written.reject(error))
                continue
            if duplicate is not None:
                outcome = Outcome(
                    outcome="duplicate",
                    memory_id=duplicate,
                    duplicate_of=duplicate,
                    reasons={duplicate: SAME_TEXT},
                )
            else:
                memory_id = self.ids.new(memory.kind.id_prefix)
                sequence = _sequence(memory, known_sessions, sequences)
                row = self._row(item, pk, memory_id, sequence, transaction.at)
                stored.append((row, item))
                written.new.add(memory_id)
                names.append((pk, item.names))
                derived.extend(
                    (memory_id, written.resolve(ground)) for ground in memory.derived_from
                )
                written.entries.append(_remembered(row))
                if identity is not None and memory.status is MemoryStatus.ACTIVE:
                    known_ids[identity] = memory_id
                pk += 1
                outcome = Outcome(outcome="stored", memory_id=memory_id)
            written.memories.append(outcome)
            if memory.key is not None and outcome.memory_id is not None:
                written.ids_by_key[memory.key] = outcome.memory_id
        self._insert(transaction, stored)
        memories.insert_derivations(transaction, derived)
        self.linker.link(transaction, names)
        stored_turns = [
            row["session_id"]
            for row, item in stored
            if row["session_id"] in sequences and item.given.kind is MemoryKind.EPISODE
        ]
        _note_turns(transaction, stored_turns, sequences, known_sessions, live=live, view=view)
        return stored

    def _insert(
        self,
        transaction: JournalledTransaction,
        stored: Sequence[tuple[dict[str, Any], PreparedMemory]],
    ) -> None:
        rows = [row for row, _ in stored]
        sources = {item.source_id: item.given.source for _, item in stored}
        memories.insert_sources(transaction, sources)
        memories.insert(transaction, rows)
        if rows:
            postings.add(transaction, rows[0]["pk"], rows[-1]["pk"])
        memories.insert_statuses(
            transaction,
            [
                {
                    "memory_id": row["memory_id"],
                    "status": row["status"],
                    "since": transaction.at,
                    "until": None,
                    "actor": transaction.actor,
                    "reason": None,
                }
                for row in rows
            ],
        )

    def _add_vectors(
        self,
        transaction: Transaction,
        stored: Sequence[tuple[dict[str, Any], PreparedMemory]],
        embedding: EmbeddingProvider | None,
    ) -> set[int]:
        ready = {
            row["pk"]: item.vector
            for row, item in stored
            if item.vector is not None and item.vector.any()
        }
        if embedding is None or not ready or not claim_model(transaction, embedding):
            return set()
        import numpy as np

        index = embeddings.index(transaction)
        index.add(list(ready), np.stack(list(ready.values())), embedding.model)
        return set(ready)

    def _known(
        self,
        snapshot: Snapshot,
        identities: Sequence[MemoryIdentity | TurnIdentity | None],
        view: View | None,
        at: int,
    ) -> dict[MemoryIdentity | TurnIdentity, str]:
        turns = {each[:2] for each in identities if isinstance(each, TurnIdentity)}
        others = [each for each in identities if isinstance(each, MemoryIdentity)]
        hashes = sorted({each.content_hash for each in others if each.item_id is None})
        item_hashes = sorted({each.content_hash for each in others if each.item_id is not None})
        item_ids = sorted({each.item_id for each in others if each.item_id is not None})
        same = memories.same_content(snapshot, hashes, view, at=at)
        same |= memories.same_content(snapshot, item_hashes, view, item_ids=item_ids, at=at)
        known: dict[MemoryIdentity | TurnIdentity, str] = {}
        known.update(same.items())
        known.update(memories.same_turns(snapshot, turns, view).items())
        return known

    def _row(
        self, item: PreparedMemory, pk: int, memory_id: str, sequence: int | None, at: int
    ) -> dict[str, Any]:
        memory = item.given
        attributes = _attributes(memory)
        return {
            "pk": pk,
            "memory_id": memory_id,
            "orchestrator_id": self.orchestrator_id,
            "kind": memory.kind.value,
            "type": memory.type.value,
            "content": memory.content,
            "summary": item.summary,
            "importance": memory.importance,
            "confidence": memory.confidence,
            "status": memory.status.value,
            "sensitivity": memory.sensitivity.value,
            "scope": memory.scope.value,
            "scope_id": memory.scope_id,
            "agent_id": memory.agent_id,
            "session_id": memory.session_id,
            "sequence": sequence,
            "turn_id": memory.turn_id,
            "item_id": memory.item_id,
            "source_role": memory.source_role,
            "event_time": memory.event_time,
            "created_at": at,
            "updated_at": at,
            "valid_until": memory.valid_until,
            "access_count": 0,
            "last_accessed_at": None,
            "decay_rate": self._decay_rate(memory),
            "tags": json_text(memory.tags) if memory.tags else "[]",
            "attributes": json_text(attributes) if attributes else "{}",
            "content_hash": item.content_hash,
            "token_cost": item.token_cost,
            "source_id": item.source_id,
            "search_terms": item.search_terms,
        }

    def _decay_rate(self, memory: MemoryInput) -> float:
        if memory.decay_rate is not None:
            return memory.decay_rate
        return rate_of(
            kind=memory.kind,
            memory_type=memory.type,
            importance=memory.importance,
            source=memory.source,
            inferred_rate=self.inferred_decay_rate,
        )


def _hidden_conversations(
    snapshot: Snapshot, view: View | None, conversations: Collection[str]
) -> set[str]:
    """Return the existing conversations in which a confined writer sees no turn."""
    if view is None or not view.viewer.confined:
        return set()
    return {each for each in conversations if sessions.visible(snapshot, view, each) is None}


def _refusal(memory: MemoryInput, view: View | None, hidden: set[str]) -> AccessDenied | None:
    """Return an error if a confined writer would not see the memory or its conversation.

    In a hidden conversation the position of its turn would reveal the number of hidden turns, and
    its turn would affect the facts extracted from the conversation.
    """
    if view is None or not view.viewer.confined:
        return None
    facts = ScopeFacts(memory.scope, memory.scope_id, memory.sensitivity, memory.agent_id)
    reason = writable(view.viewer, facts)
    if not reason.allowed:
        message = "you may not store a memory that you would not see"
        return AccessDenied(message, reason=reason.value)
    if memory.kind is MemoryKind.EPISODE and memory.session_id in hidden:
        return AccessDenied("you do not see this conversation", field="session_id")
    return None


def _sequence(
    memory: MemoryInput, sessions_by_id: Mapping[str, RegisteredSession], sequences: dict[str, int]
) -> int | None:
    session_id = memory.session_id
    if session_id is None or memory.kind is not MemoryKind.EPISODE:
        return memory.sequence
    before = sessions_by_id.get(session_id)
    following = sequences.get(session_id, 0 if before is None else before.next_sequence)
    place = memory.sequence if memory.sequence is not None else following
    sequences[session_id] = max(following, place + 1)
    return place


def _evidence(snapshot: Snapshot, items: Sequence[PreparedMemory], view: View | None) -> set[str]:
    """Return the ids of the stored memories that items are derived from.

    Erased ones are left out: the new text might repeat them.
    """
    named = sorted({evidence for item in items for evidence in item.given.derived_from})
    existing = memories.existing_ids(snapshot, named, view)
    return existing - set(erasure.erasures_of(snapshot, existing)) if existing else existing


def _missing(memory: MemoryInput, evidence_ids: set[str], written: StoredBatch) -> NotFound | None:
    """Return the first evidence id that is neither stored nor an earlier item of the batch."""
    for evidence_id in memory.derived_from:
        if evidence_id not in evidence_ids and not (
            evidence_id.startswith("#") and evidence_id[1:] in written.ids_by_key
        ):
            shortened = evidence_id[:80]
            return NotFound(
                f"derived from {shortened!r}, which does not exist or was erased",
                memory_id=shortened,
            )
    return None


def _remembered(row: dict[str, Any]) -> NewEntry:
    numbers = ("importance", "confidence", "decay_rate")
    details = {name: row[name] for name in ("content_hash", "kind", "type", *numbers)}
    return NewEntry("remember", row["memory_id"], details | {"seal": memory_seal(row)})


def _attributes(memory: MemoryInput) -> dict[str, Any]:
    """Return the attributes to store with a memory.

    The kind of a ``UserTurn`` or ``AgentTurn`` is stored if its role alone would imply another
    kind.
    """
    if not isinstance(memory, EpisodeInput):
        return memory.attributes
    kept_fields = {name: value for name, value in memory.attributes.items() if name != TOLD_AS}
    if isinstance(memory, UserTurn | AgentTurn):
        role = memory.source_role
        if voice_of(role) is not voice_of(role, memory.told_as):
            kept_fields[TOLD_AS] = memory.told_as
    return kept_fields


def _note_turns(
    transaction: JournalledTransaction,
    turns: Sequence[str],
    following: Mapping[str, int],
    sessions_by_id: Mapping[str, RegisteredSession],
    *,
    live: bool,
    view: View | None = None,
) -> None:
    """Register the sessions of stored turns, and announce the completed ones.

    Args:
        turns: the session of each stored turn, in order.
        following: the next position in each session of ``turns``.
        sessions_by_id: the sessions that were registered before.
        live: True for turns said just now: the first turn of a new session completes the open
            ones. False for whole sessions from a file or another store.
        view: what the writer sees; a confined writer completes only sessions with a turn it sees.
    """
    if not turns:
        return
    if live:
        ending = view if view is not None and view.viewer.confined else None
        has_new_session = any(session_id not in sessions_by_id for session_id in following)
        open_now = sessions.open_ids(transaction, ending) if has_new_session else ()
        transition = follow(turns, sessions_by_id, open_now)
        sessions.complete(transaction, transition.done - following.keys())
        ends = dict.fromkeys(following, transaction.at) | dict.fromkeys(transition.open)
        completed = [session_id for ended in transition.completes for session_id in ended]
    else:
        states = {name: session.state for name, session in sessions_by_id.items()}
        completed = taken_over(turns, states)
        ends = {name: session.completed_at for name, session in sessions_by_id.items()}
        ends |= dict.fromkeys(completed, transaction.at)
    sessions.note_turns(transaction, following, ends)
    transaction.completed_sessions += completed


def with_canonical_source(
    memory: MemoryInput, paths: OrchestratorPaths, allowed_roots: Sequence[str]
) -> MemoryInput:
    """Return the memory with its source's path made absolute and free of links.

    Raises:
        AccessDenied: the path lies outside the drop zone and ``memory.ingest.allowed_roots``, or in
            another orchestrator's folder; the caller journals it.
    """
    path = memory.source.source_path
    if path is None:
        return memory
    try:
        real = canonical_source(path, paths, allowed_roots)
    except AccessDenied as error:
        error.asked = path
        raise
    source = memory.source.model_copy(update={"source_path": str(real)})
    return memory.model_copy(update={"source": source})
