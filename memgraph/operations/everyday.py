"""The everyday operations: remember, recall, correct, and build text for prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Unpack
from zoneinfo import ZoneInfo

from pydantic import Field

from memgraph.audit.findings import VerifyReport
from memgraph.clock import parse_time
from memgraph.errors import AccessDenied, Conflict, MemoryDisabled, StorageError
from memgraph.ids import RECEIPT_PREFIX
from memgraph.model.access import Permission
from memgraph.model.context import Answer, BlockFormat, BuiltBulletin, ContextBlock
from memgraph.model.enums import EdgeType, KindFilter, MemoryKind
from memgraph.model.graph import Trace
from memgraph.model.operation import (
    AsOf,
    F,
    ItemOf,
    MemoryId,
    Progress,
    ReasonBody,
    WireFormat,
    operation,
    untold,
)
from memgraph.model.recall import MAX_TOKEN_BUDGET, Bundle, Query, RecallFields, RecallRequest
from memgraph.model.receipts import Receipt
from memgraph.model.remote import MAX_BATCH, EdgeId, MemoryId as StoredId, Outcomes
from memgraph.model.values import (
    Correction,
    EdgeInput,
    EpisodeFields,
    EpisodeInput,
    Memory,
    MemoryFields,
    MemoryInput,
    Name,
    Outcome,
    Reason,
    validated,
)
from memgraph.operations.handle import WritingHandle
from memgraph.rules.similarity import normalise_content

if TYPE_CHECKING:
    from memgraph.service.open_orchestrator import OpenOrchestrator


_INHERITED_FIELDS = (
    "kind",
    "type",
    "importance",
    "sensitivity",
    "scope",
    "scope_id",
    "agent_id",
    "tags",
)


class Everyday(WritingHandle[F]):
    """The operations that an orchestrator's loop uses: the methods of ``orc`` itself."""

    @operation(
        Permission.WRITE,
        "POST /memories",
        body=MemoryInput,
        answer=StoredId,
        served=False,  # by ``store``
        command="",
    )
    def remember(self, content: str, **fields: Unpack[MemoryFields]) -> str:
        """Store a memory and return its id; return the id of an existing duplicate.

        A memory is a duplicate if an active one that this handle may see has the same text (but for
        case, white space and the full stop at its end), kind, type, scope, sensitivity, agent and
        speaker. Turns (episodes) are duplicates only if they have the
        same ``turn_id``.

        Args:
            content: the text, 1 to 32,000 characters; it never changes afterwards.
            fields: the fields of ``MemoryInput``.

        Raises:
            InvalidInput: a field is invalid; the error names each.
            NotFound: a memory named in ``derived_from`` is missing, not visible, or erased.
            AccessDenied: the file named as its source may not be read, or the handle is confined
                and could not see the memory.
        """
        memory = validated(MemoryInput, {"content": content, **fields})
        return self._remember(memory).memory_id or ""

    @operation(
        Permission.WRITE, "POST /memories/batch", body="MemoryBatch", answer=Outcomes, command=""
    )
    def remember_many(
        self,
        items: Annotated[
            Iterable[MemoryInput | Mapping[str, Any]],
            WireFormat(tuple[Annotated[dict[str, Any], ItemOf(MemoryInput)], ...]),
            Field(max_length=MAX_BATCH),
        ],
    ) -> list[Outcome]:
        """Store many memories, 1,000 per transaction; return their outcomes, in order.

        Only invalid items are rejected; the others are stored. ``derived_from`` may refer to an
        earlier item of the same transaction by ``#key``.

        Args:
            items: read while earlier items are written. With the local model, a hundred or more
                items are embedded at once; otherwise they are embedded later, from the outbox.
        """
        return self._remember_all(MemoryInput, items, embeds=True)

    @operation(
        Permission.WRITE,
        "POST /episodes",
        tag="conversations",
        body=EpisodeInput,
        answer=StoredId,
        status=201,
        command="say",
    )
    def save_episode(
        self, content: str, *, session_id: str, source_role: str, **fields: Unpack[EpisodeFields]
    ) -> str:
        """Store a turn of a conversation and return its id.

        The text index, the names found by rules and the turn's position in its session are written
        at once. No model is called: the vector is made later, from the outbox. The first turn of a
        new session completes the other open sessions; a turn of a completed session reopens it.

        Args:
            content: the text of the turn, 1 to 32,000 characters.
            session_id: the conversation.
            source_role: the speaker: ``user``, or another name, which is treated as an agent's. For
                a person with another name, use ``events.publish`` with a ``UserTurn``.
            fields: further fields of ``EpisodeInput``.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``remember``.
        """
        episode_fields = {"content": content, "session_id": session_id, "source_role": source_role}
        return (
            self._remember(validated(EpisodeInput, episode_fields | fields), live=True).memory_id
            or ""
        )

    @operation(
        Permission.WRITE,
        "POST /episodes/batch",
        tag="conversations",
        body="EpisodeBatch",
        answer=Outcomes,
        command="",
    )
    def save_episodes(
        self,
        batch: Annotated[
            Iterable[EpisodeInput | Mapping[str, Any]],
            WireFormat(tuple[Annotated[dict[str, Any], ItemOf(EpisodeInput)], ...], "items"),
            Field(max_length=MAX_BATCH),
        ],
    ) -> list[Outcome]:
        """Store many turns like ``save_episode``, in transactions like ``remember_many``.

        Returns:
            The outcomes, in order; only invalid turns are rejected.
        """
        return self._remember_all(EpisodeInput, batch, embeds=False)

    @operation(Permission.READ, "POST /recall", tag="recall", body=RecallRequest)
    def recall(self, query: str | RecallRequest = "", **fields: Unpack[RecallFields]) -> Bundle:
        """Return the memories that match a query, best first, with reasons and sources.

        Args:
            query: words or a sentence, or a whole request; empty if there are filters.
            fields: the other fields of ``RecallRequest``.

        Raises:
            InvalidInput: a field is invalid, or there is neither a query nor a filter.
            AccessDenied: the request asks for more than this handle's viewer was granted. The
                denial is logged.
        """
        from memgraph.operations.read import receipts
        from memgraph.operations.read.recall import answer

        request = query if isinstance(query, RecallRequest) else None
        if request is None:
            request = validated(RecallRequest, {"query": query, **fields})
        with self._service.opened(self.name) as opened:
            try:
                bundle, narrowing = answer(opened, self.viewer, request)
            except AccessDenied as error:
                raise self._denied(error) from None
            self._keep_receipt(opened, receipts.of_recall(request, bundle, narrowing))
            return bundle

    @operation(Permission.READ, "GET /memories/{memory_id}", id="get_memory")
    def get(self, memory_id: MemoryId, *, as_of: AsOf = None) -> Memory:
        """Return a memory with its status, now or at a past time.

        All methods that take a memory id also accept the short id that prompts show, its last six
        characters or more, except ``erasure.erase`` and ``derived_from``.

        Raises:
            NotFound: the memory does not exist, did not exist at that time, or this handle may not
                see it.
        """
        from memgraph.store.graph import visible_memory

        memory_id, view = self._whole_id(memory_id), self._view_at(as_of)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return visible_memory(snapshot, memory_id, view)

    @operation(Permission.READ, "GET /memories/{memory_id}/trace")
    def trace(self, memory_id: MemoryId, *, as_of: AsOf = None) -> Trace:
        """Return a memory's sources, changes, evidence and dependents, now or at a past time.

        Raises NotFound.
        """
        from memgraph.graph.trace import trace

        view, memory_id = self._view_at(as_of), self._whole_id(memory_id)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return trace(snapshot, view, memory_id)

    @operation(
        Permission.WRITE, "POST /memories/{memory_id}/correct", body=Correction, answer=StoredId
    )
    def correct(
        self, memory_id: MemoryId, content: str, *, reason: str, **fields: Unpack[MemoryFields]
    ) -> str:
        """Replace a memory with a new one that has another text; return the new id.

        An Updates edge connects the two. The same correction again returns the first new id. The
        new memory keeps the type, scope and tags of the old one unless ``fields`` override them. If
        this handle is confined and another actor stored the old memory, that stays active, and the
        two are in an open contradiction; see ``trace(id).open_contradictions``.

        Args:
            content: the new text.

        Raises:
            NotFound: the memory does not exist, or this handle may not see it.
            Conflict: it is retracted, the new text equals the old one, or an active memory has
                replaced it or won a contradiction with it; correct that one instead, see
                ``details["replaced_by"]``.
        """
        from memgraph.operations.write import changes
        from memgraph.store.graph import visible_memory
        from memgraph.store.memories import MemoryIdentity

        because = self._because(reason)
        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            with opened.database.read() as snapshot:
                old = visible_memory(snapshot, memory_id, self._view)
            inherited = {name: getattr(old, name) for name in _INHERITED_FIELDS}
            memory = validated(
                MemoryInput, {**inherited, **fields, "key": "new", "content": content}
            )
            # Not its hash: that ignores case and final punctuation, which a correction may change.
            identity = MemoryIdentity.of(normalise_content(content), memory)

            def is_equal(stored: Memory) -> bool:
                return MemoryIdentity.of(normalise_content(stored.content), stored) == identity

            if is_equal(old):
                raise Conflict("the new text equals the old one", memory_id=memory_id)
            link = EdgeInput(
                from_id="#new", to_id=memory_id, edge_type=EdgeType.UPDATES, reason=because
            )
            prepared = opened.writer.prepare(self._canonical(opened, memory))
            with opened.transaction(self.actor) as transaction:
                # In the transaction, so that of two corrections at the same time one is refused.
                known = changes.correction_of(transaction, memory_id, is_equal, view=self._view)
                if known is not None:
                    return known
                written = opened.writer.store_all(
                    transaction, [prepared], [link], view=self._view, replacing=memory_id
                )
            opened.background.wake()
        return written.ids_by_key["new"]

    @operation(Permission.WRITE, "POST /memories/{memory_id}/confirm")
    def confirm(self, memory_id: MemoryId) -> None:
        """Protect a memory: confidence 1, no decay. Raises NotFound, Conflict."""
        from memgraph.operations.write import changes

        memory_id = self._whole_id(memory_id)
        with self._write() as (_, transaction):
            transaction.record(changes.confirm(transaction, memory_id, view=self._view))

    @operation(Permission.WRITE, "POST /memories/{memory_id}/retract", body=ReasonBody)
    def retract(self, memory_id: MemoryId, *, reason: Reason) -> None:
        """Retract a memory; it stays in the history.

        A retracted memory stays as it is, with the first reason. Raises NotFound,
        IllegalTransition: it was erased, Conflict: an active memory has replaced it, or won a
        contradiction with it; see ``details["replaced_by"]``.
        """
        from memgraph.operations.write import changes

        because = self._because(reason)
        memory_id = self._whole_id(memory_id)
        with self._write() as (_, transaction):
            transaction.record(
                changes.retract(transaction, memory_id, reason=because, view=self._view)
            )

    @operation(
        Permission.WRITE,
        "POST /memories/{memory_id}/restore",
        body=ReasonBody,
        command="restore-memory",
    )
    def restore(self, memory_id: MemoryId, *, reason: Reason) -> None:
        """Restore a memory that is retracted, or superseded without an active successor.

        It becomes active, or superseded if its successor is active. An active memory that it had
        replaced is superseded again.

        Raises:
            NotFound: the memory does not exist, or this handle may not see it.
            IllegalTransition: it is active.
            Conflict: it was erased, or lost a contradiction, which has to be reopened instead, or
                an active memory has replaced it; see ``details["replaced_by"]``.
        """
        from memgraph.operations.write import changes

        because = self._because(reason)
        memory_id = self._whole_id(memory_id)
        with self._write() as (_, transaction):
            transaction.record(
                changes.restore(transaction, memory_id, reason=because, view=self._view)
            )

    @operation(
        Permission.WRITE, "POST /edges", tag="graph", body=EdgeInput, answer=EdgeId, status=201
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
        """Add an edge between two memories, and return its id; return the id of an existing edge.

        An Updates edge supersedes ``to_id``, unless it is ``partial`` or its weight is below 1;
        such an edge can be put in force later. If this handle is confined and another actor stored
        ``to_id``, the id of an open contradiction is returned instead.

        Raises:
            InvalidInput, NotFound, Conflict: the edge is not possible; nothing was written.
                NotFound also for a memory that this handle may not see. Conflict also if an active
                memory has replaced ``to_id``; see ``details["replaced_by"]``.
        """
        fields = {"from_id": from_id, "to_id": to_id, "edge_type": edge_type, "weight": weight}
        link = self._edge_input({**fields, "reason": reason, "partial": partial})
        with self._service.opened(self.name) as opened:
            joined = self._store(opened, [], [link]).edges[0]
        return joined.edge_id or ""

    @operation(
        Permission.READ, "POST /context/block", tag="contexts", body="BlockWanted", id="get_context"
    )
    def context(
        self,
        prompt: Query,
        *,
        budget_tokens: Annotated[int, Field(ge=0, le=MAX_TOKEN_BUDGET)] | None = None,
        format: Annotated[  # noqa: A002  the name in the settings
            BlockFormat | str | None, WireFormat(BlockFormat)
        ] = None,
        exclude_session_id: Name | None = None,
        include_insight: bool = True,
        kinds: Annotated[Sequence[KindFilter | str], WireFormat(tuple[KindFilter, ...])] = (),
        agent_id: Name | None = None,
    ) -> ContextBlock:
        """Return the block of memories to put before a message.

        ``orc.context(message).text + message`` is a prompt: the text is empty or ends in a
        newline. The block is filled with what recall ranks first, and written in order of time; its
        ``memories`` tell for every line which memory it is. Its receipt lists the same memories.

        Args:
            prompt: the message; if empty, the most important memories are returned.
            budget_tokens: the maximum tokens of the text, as estimated by
                ``memgraph.rules.budget``; None: ``memory.context.block_tokens``.
            format: the form of the block, by default that of ``memory.context.format``.
            exclude_session_id: the conversation of the message, whose turns the agent has already.
            include_insight: add the latest weekly reflection.
            kinds: the kinds of memories to include, by default all.
            agent_id: the agent that receives the prompt; private memories of other agents are left
                out. None: all that the handle may see.

        Raises:
            InvalidInput: an argument is out of range.
            AccessDenied: the handle sees only another agent's memories. The denial is logged.
        """
        from memgraph.operations.context.block import build_block

        # Without a message the filters ask.
        filters = tuple(kinds) if kinds or str(prompt).strip() else tuple(MemoryKind)
        request = validated(
            RecallRequest,
            {
                "query": prompt,
                "kinds": filters,
                "exclude_session_id": exclude_session_id,
                "agent_id": agent_id,
            },
        )
        return build_block(
            self,
            request,
            format=format,
            budget_tokens=budget_tokens,
            include_insight=include_insight,
        ).block

    @operation(Permission.READ, "POST /ask", tag="recall", body="Question", slow=True)
    def ask(
        self,
        question: Annotated[Query, Field(min_length=1)],
        *,
        budget_tokens: Annotated[int, Field(ge=0, le=MAX_TOKEN_BUDGET)] | None = None,
        exclude_session_id: Name | None = None,
        include_insight: bool = True,
        kinds: Annotated[Sequence[KindFilter | str], WireFormat(tuple[KindFilter, ...])] = (),
        agent_id: Name | None = None,
        as_of: AsOf = None,
    ) -> Answer:
        """Answer a question from memory, with one call of the model of ``memory.llm``.

        The model reads the block that ``context`` returns, without what is more sensitive than
        ``memory.llm.max_sensitivity``. A sentence that cites no line of the block is left out; an
        answer without any other is ``not in memory``. If nothing is related to the question, no
        call is made. The receipt has the block, the answer and its citations.

        Args:
            question: a question in any language, which is that of the answer.
            budget_tokens, exclude_session_id, include_insight, kinds, agent_id: as in ``context``.
            as_of: answer from what was known at this time, as if it were now; without a profile
                and a reflection.

        Raises:
            InvalidInput: an argument is out of range.
            AccessDenied: the handle sees only another agent's memories. The denial is logged.
            ProviderMissing: no model is configured in ``memory.llm``.
            ProviderUnavailable, ProviderRejected, ProviderAnswerInvalid: the model failed; the
                receipt of the block is kept.
        """
        from memgraph.operations.context.answer import answer

        request = validated(
            RecallRequest,
            {
                "query": question,
                "kinds": tuple(kinds),
                "exclude_session_id": exclude_session_id,
                "agent_id": agent_id,
                "as_of": as_of,
            },
        )
        return answer(self, request, budget_tokens=budget_tokens, include_insight=include_insight)

    @operation(
        Permission.READ,
        "GET /bulletin",
        tag="recall",
        id="get_bulletin",
    )
    def bulletin(self, *, as_of: AsOf = None) -> BuiltBulletin:
        """Return the bulletin for the next message; a broken database is not an error.

        In that case it is the last good bulletin or an empty one, and ``warning`` is set.

        Args:
            as_of: return the bulletin of this time, built from what was known then, with the
                current size limits. It has no receipt, and a broken database is an error.
        """
        from memgraph.bulletin.board import without_database

        if as_of is not None:
            return self._bulletin_of(parse_time(as_of))

        try:
            with self._service.opened(self.name) as opened:
                issued = opened.board.bulletin_or_fallback(self.viewer)
                now = opened.clock.now_ms()
                issued = self._noted(opened, issued, now)
                if opened.board.waiting:
                    # The snapshot is only a fallback, and may soon be outdated: write it later.
                    opened.background.wake_later()
                return issued
        except (StorageError, MemoryDisabled) as error:
            paths = self._service.paths(self.name)
            settings = self._service.settings(self.name).memory
            zone = ZoneInfo(settings.schedule.timezone)
            return without_database(paths.bulletins, settings.bulletin, self.viewer, error, zone)

    @operation(Permission.AUDIT, "POST /verify", tag="operating", slow=True)
    def verify(self, progress: Progress = untold) -> VerifyReport:
        """Audit the database; problems are in the report. Nothing is changed.

        Args:
            progress: called with the name of a stage, the amount done and the total.
        """
        from memgraph.operations.maintenance.maintenance import verify

        with self._service.opened(self.name) as opened:
            return verify(opened, progress)

    def _bulletin_of(self, as_of: int) -> BuiltBulletin:
        from memgraph.bulletin.generate import generate_in

        with self._service.opened(self.name) as opened:
            settings = opened.settings.memory
            zone = ZoneInfo(settings.schedule.timezone)
            with opened.database.read() as snapshot:
                return BuiltBulletin(
                    generate_in(snapshot, self.viewer, settings.bulletin, as_of, zone)
                )

    def _noted(self, opened: OpenOrchestrator, issued: BuiltBulletin, at: int) -> BuiltBulletin:
        """Store the receipt of a bulletin, and return the bulletin with the receipt's id.

        The items of the receipt are computed when it is written.
        """
        from memgraph.store.receipts import BULLETIN, NewReceipt

        asked = {"purpose": BULLETIN}
        if issued.warning is not None:
            asked["warning"] = issued.warning
        receipt = Receipt(
            receipt_id=opened.ids.new(RECEIPT_PREFIX),
            at=at,
            query="",
            asked=asked,
            items=(),
            counts=False,
            change_seq=issued.bulletin.change_seq,
        )
        self._keep_receipt(opened, NewReceipt(receipt, bulletin=issued.bulletin))
        return replace(issued, receipt_id=receipt.receipt_id)
