"""Writing through a handle: remember, relate, correct, confirm, retract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from pydantic import Field

from memgraph.errors import Conflict, InvalidInput, MemgraphError, NotFound
from memgraph.model.access import Permission
from memgraph.model.enums import EdgeType
from memgraph.model.operation import ItemOf, MemoryId, ReasonBody, WireFormat, WireResult, operation
from memgraph.model.remote import (
    MAX_BATCH,
    EdgeId,
    ForgetOutcome,
    ForgetOutcomes,
    Outcomes,
    RememberResult,
)
from memgraph.model.remote import MemoryId as StoredId
from memgraph.model.values import (
    Correction,
    EdgeInput,
    EpisodeFields,
    EpisodeInput,
    MemoryFields,
    MemoryInput,
    Name,
    Outcome,
    Reason,
    validated,
)
from memgraph.operations.handle import Handle
from memgraph.rules.dedup import content_hash

if TYPE_CHECKING:
    from memgraph.operations.write.edges import StoredBatch
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.snapshot import JournalledTransaction
    from memgraph.store.visibility import View


# Retracting many memories at once: each by itself, all in one transaction.


def within_batch(memory_ids: Sequence[str]) -> Sequence[str]:
    """Return the ids unchanged. Raises InvalidInput: none, more than a thousand, or a single
    text.
    """
    if isinstance(memory_ids, str) or not 1 <= len(memory_ids) <= MAX_BATCH:
        raise InvalidInput(f"memory_ids: 1 to {MAX_BATCH:,} ids", field="memory_ids")
    return memory_ids


def forgotten(
    transaction: JournalledTransaction,
    memory_ids: Sequence[str],
    reason: str,
    view: View,
    refused: Callable[[MemgraphError], None],
) -> list[ForgetOutcome]:
    """Retract each memory; one that cannot be retracted is rejected by itself.

    Args:
        refused: called with the error of each that cannot be.
    """
    outcomes = []
    for memory_id in memory_ids:
        error = _refusal(transaction, memory_id, reason, view)
        if error is None:
            outcomes.append(ForgetOutcome(memory_id=memory_id, outcome="retracted"))
            continue
        refused(error)
        told = {"code": error.code, "message": error.message}
        outcomes.append(ForgetOutcome(memory_id=memory_id, outcome="rejected", **told))
    return outcomes


def _refusal(
    transaction: JournalledTransaction, memory_id: str, reason: str, view: View
) -> MemgraphError | None:
    from memgraph.operations.write import changes

    try:
        entries = changes.retract(transaction, memory_id, reason=reason, view=view)
    except (NotFound, Conflict) as error:
        return error
    transaction.tell(entries)
    return None


_KEPT_BY_A_CORRECTION = (
    "kind",
    "type",
    "importance",
    "sensitivity",
    "scope",
    "scope_id",
    "agent_id",
    "tags",
)


class WritingHandle(Handle):
    """The part of ``Orchestrator`` that writes memories."""

    @operation(
        Permission.WRITE,
        "POST",
        "/memories",
        tag="memories",
        body=MemoryInput,
        answer=StoredId,
        served=False,  # by ``store``
    )
    def remember(self, content: str, **fields: Unpack[MemoryFields]) -> str:
        """Store one memory and return its id; for an existing one return that one's.

        A memory exists already when an active one that this handle may see has the same text, kind,
        type, scope, sensitivity and agent. Turns (episodes) are never the same, unless their
        ``turn_id`` is.

        Args:
            content: the text, 1 to 32,000 characters; it never changes afterwards.
            fields: the fields of ``MemoryInput``.

        Raises:
            InvalidInput: naming each field that is wrong.
            NotFound: a memory named in ``derived_from`` is missing, not visible, or erased.
            AccessDenied: the file named as its source may not be read, or the handle is confined
                and would not see what it stores.
        """
        return self.store(content, **fields).memory_id or ""

    @operation(
        Permission.WRITE,
        "POST",
        "/memories",
        tag="memories",
        id="remember",
        body=MemoryInput,
        answer=WireResult(
            RememberResult, RememberResult.of, lambda told: Outcome(**told.model_dump())
        ),
        status=201,
    )
    def store(self, content: str, **fields: Unpack[MemoryFields]) -> Outcome:
        """Store one memory, and return what it repeats, updates or contradicts.

        A fact is compared with the facts about the same subject. A repetition by the same author is
        a ``duplicate`` and returns the existing id; ``updates`` and ``contradicts`` name the
        others, ``reasons`` why.

        Args:
            content, fields: as in ``remember``.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``remember``.
        """
        given = validated(MemoryInput, {"content": content, **fields})
        return self._readable(self._remember(given, compare=True))

    @operation(
        Permission.WRITE,
        "POST",
        "/memories/batch",
        tag="memories",
        body="MemoryBatch",
        answer=Outcomes,
    )
    def remember_many(
        self,
        items: Annotated[
            Iterable[MemoryInput | Mapping[str, Any]],
            WireFormat(tuple[Annotated[dict[str, Any], ItemOf(MemoryInput)], ...]),
            Field(max_length=MAX_BATCH),
        ],
    ) -> list[Outcome]:
        """Store many memories: in order, 1,000 in a transaction, one outcome for each.

        An item that is not valid is rejected by itself. ``derived_from`` may name an earlier item
        of the same thousand by ``#key``.

        Args:
            items: read while what came before is written; with the local model a hundred or more
                are embedded at once, else the outbox does it.
        """
        return self._remember_all(MemoryInput, items, embeds=True)

    @operation(
        Permission.WRITE,
        "POST",
        "/episodes",
        tag="conversations",
        body=EpisodeInput,
        answer=StoredId,
        status=201,
    )
    def save_episode(
        self, content: str, *, session_id: str, source_role: str, **fields: Unpack[EpisodeFields]
    ) -> str:
        """Store one turn of a conversation and return its id: the path of every message.

        The text index, the names that rules find and the turn's position in its session are written
        at once. No model is called: the vector follows from the outbox. The first turn of a new
        session completes the other open ones; a turn of a completed session opens it again.

        Args:
            content: what was said, 1 to 32,000 characters.
            source_role: who said it: ``user``, or a name, which may be an agent's and strengthens
                nothing. ``publish`` takes a ``UserTurn`` of a person by another name.
            fields: further fields of ``EpisodeInput``.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``remember``.
        """
        given = {"content": content, "session_id": session_id, "source_role": source_role}
        return self._remember(validated(EpisodeInput, given | fields), live=True).memory_id or ""

    @operation(
        Permission.WRITE,
        "POST",
        "/episodes/batch",
        tag="conversations",
        body="EpisodeBatch",
        answer=Outcomes,
    )
    def save_episodes(
        self,
        batch: Annotated[
            Iterable[EpisodeInput | Mapping[str, Any]],
            WireFormat(tuple[Annotated[dict[str, Any], ItemOf(EpisodeInput)], ...], "items"),
            Field(max_length=MAX_BATCH),
        ],
    ) -> list[Outcome]:
        """Store turns as ``save_episode`` does, as many at a time as ``remember_many`` does.

        Returns:
            An outcome for each, in order; one that is not valid is rejected by itself.
        """
        return self._remember_all(EpisodeInput, batch, embeds=False)

    @operation(
        Permission.WRITE,
        "POST",
        "/edges",
        tag="graph",
        body=EdgeInput,
        answer=EdgeId,
        status=201,
    )
    def relate(
        self,
        from_id: str,
        edge_type: EdgeType | str,
        to_id: str,
        *,
        weight: float = 1.0,
        reason: str | None = None,
        partial: bool = False,
    ) -> str:
        """Join two memories and return the edge's id; for an existing edge return that one's.

        Updates supersedes ``to_id`` unless ``partial``; a partial one may be made whole later. From
        a less trusted source it returns the id of an open contradiction instead.

        Raises:
            InvalidInput, NotFound, Conflict: what is wrong with it; nothing was written. A memory
                that this handle may not see is not found.
        """
        fields = {"from_id": from_id, "to_id": to_id, "edge_type": edge_type, "weight": weight}
        link = self._edge_input({**fields, "reason": reason, "partial": partial})
        with self._service.opened(self.name) as opened:
            joined = self._store(opened, [], [link]).edges[0]
        return joined.edge_id or ""

    @operation(
        Permission.WRITE,
        "POST",
        "/memories/{memory_id}/correct",
        tag="memories",
        body=Correction,
        answer=StoredId,
    )
    def correct(
        self, memory_id: MemoryId, content: str, *, reason: str, **fields: Unpack[MemoryFields]
    ) -> str:
        """Replace a memory's text by a new memory with an Updates edge; return the new id.

        The new one keeps the old one's type, scope and tags unless ``fields`` override them. When
        the old one comes from a more trusted source, it stays active, and the two are an open
        contradiction: see ``trace(id).open_contradictions``.

        Raises:
            NotFound: no such memory.
            Conflict: it is retracted, or the new text equals the old one.
        """
        from memgraph.operations.read import lookup as reading
        from memgraph.operations.write.writer import identity_of

        because = self._because(reason)
        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            old = reading.get(opened, self.viewer, memory_id)
            kept = {name: getattr(old, name) for name in _KEPT_BY_A_CORRECTION}
            given = validated(MemoryInput, {**kept, **fields, "key": "new", "content": content})
            if identity_of(content_hash(content), given) == identity_of(old.content_hash, old):
                raise Conflict("the new text equals the old one", memory_id=memory_id)
            link = EdgeInput(
                from_id="#new", to_id=memory_id, edge_type=EdgeType.UPDATES, reason=because
            )
            written = self._store(opened, [given], [link])
            self._embed_soon(opened)
        return written.ids_by_key["new"]

    @operation(Permission.WRITE, "POST", "/memories/{memory_id}/confirm", tag="memories")
    def confirm(self, memory_id: MemoryId) -> None:
        """Protect a memory: confidence 1, no decay. Raises NotFound, Conflict."""
        from memgraph.operations.write import changes

        memory_id = self._whole_id(memory_id)
        with self._write() as (_, transaction):
            transaction.tell(changes.confirm(transaction, memory_id, view=self._view))

    @operation(
        Permission.WRITE, "POST", "/memories/{memory_id}/retract", tag="memories", body=ReasonBody
    )
    def retract(self, memory_id: MemoryId, *, reason: Reason) -> None:
        """Retract a memory; it stays in the history. Raises NotFound, IllegalTransition."""
        from memgraph.operations.write import changes

        because = self._because(reason)
        memory_id = self._whole_id(memory_id)
        with self._write() as (_, transaction):
            transaction.tell(
                changes.retract(transaction, memory_id, reason=because, view=self._view)
            )

    @operation(
        Permission.WRITE,
        "POST",
        "/forget",
        tag="memories",
        body="Forgetting",
        answer=ForgetOutcomes,
    )
    def forget(
        self,
        memory_ids: Annotated[
            Sequence[str], WireFormat(tuple[Name, ...]), Field(min_length=1, max_length=MAX_BATCH)
        ],
        *,
        reason: Reason,
    ) -> list[ForgetOutcome]:
        """Retract many memories in one transaction, with an outcome for each, in order.

        One that is not visible, or is retracted already, is rejected by itself.

        Args:
            memory_ids: 1 to 1,000.

        Raises:
            InvalidInput: too many or too few, or an invalid reason.
        """
        because = self._because(reason)
        ids = self._whole_ids(within_batch(memory_ids))
        refused: list[MemgraphError] = []
        with self._write() as (_, transaction):
            outcomes = forgotten(transaction, ids, because, self._view, refused.append)
        self._tell_rejected(refused)
        return outcomes

    @operation(
        Permission.WRITE, "POST", "/memories/{memory_id}/restore", tag="memories", body=ReasonBody
    )
    def restore(self, memory_id: MemoryId, *, reason: Reason) -> None:
        """Restore a memory that was retracted, or superseded by nothing that is still active.

        It becomes active, or superseded when its successor is active; an active memory that it had
        replaced is superseded again.

        Raises:
            NotFound, IllegalTransition: there is none, or it is active, or is replaced.
            Conflict: it was erased, or lost a contradiction, which is to be reopened.
        """
        from memgraph.operations.write import changes

        because = self._because(reason)
        memory_id = self._whole_id(memory_id)
        with self._write() as (_, transaction):
            transaction.tell(
                changes.restore(transaction, memory_id, reason=because, view=self._view)
            )

    def _edge_input(self, fields: dict[str, Any]) -> EdgeInput:
        """Return an edge between two memories named by full or short ids."""
        given = validated(EdgeInput, fields)
        from_id, to_id = self._whole_ids([given.from_id, given.to_id])
        return validated(EdgeInput, {**fields, "from_id": from_id, "to_id": to_id})

    def _remember(
        self, given: MemoryInput, *, live: bool = False, compare: bool = False
    ) -> Outcome:
        with self._service.opened(self.name) as opened:
            [stored] = self._store(opened, [given], [], live=live, compare=compare).memories
            self._embed_soon(opened)
        return stored

    def _readable(self, outcome: Outcome) -> Outcome:
        """Return an outcome without references to other memories, for callers who may not read."""
        if Permission.READ in self.permissions:
            return outcome
        hidden = ("updates", "updated_by", "contradicts", "reasons")
        return outcome.model_copy(update=dict.fromkeys(hidden))

    def _remember_all(
        self,
        kind: type[MemoryInput],
        items: Iterable[MemoryInput | Mapping[str, Any]],
        *,
        embeds: bool,
    ) -> list[Outcome]:
        from memgraph.operations.write.bulk_load import BulkLoader

        with self._service.opened(self.name) as opened:
            loader = BulkLoader(
                opened,
                kind,
                actor=self.actor,
                view=self._view,
                embeds=embeds,
                rejected=self._tell_rejected,
            )
            try:
                return loader.load(items)
            finally:
                # What was stored before an error is to be embedded too.
                self._embed_soon(opened)

    def _store(
        self,
        opened: OpenOrchestrator,
        given: Sequence[MemoryInput],
        links: Sequence[EdgeInput],
        *,
        live: bool = False,
        compare: bool = False,
    ) -> StoredBatch:
        """Store all or nothing: the first item that cannot be stored undoes the transaction."""
        from memgraph.operations.write.edges import ComparisonTime

        prepared = [opened.writer.prepare(self._canonical(opened, each)) for each in given]
        with opened.transaction(self.actor) as transaction:
            written = opened.writer.store(
                transaction,
                prepared,
                links,
                view=self._view,
                live=live,
                compare=ComparisonTime.NOW if compare else ComparisonTime.LATER,
            )
            if written.errors:
                raise written.errors[0]
            transaction.tell(written.entries)
        return written
