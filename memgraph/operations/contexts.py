"""Contexts and sessions of an orchestrator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from pydantic import Field

from memgraph.errors import AccessDenied, InvalidInput, NotFound
from memgraph.model.access import Permission
from memgraph.model.context import (
    BlockFormat,
    ContextBlock,
    ContextFields,
    ContextPackage,
    ContextRequest,
    Task,
    Tier,
)
from memgraph.model.enums import MemoryKind
from memgraph.model.events import SessionCompleted
from memgraph.model.operation import WireFormat, operation
from memgraph.model.recall import MAX_TOP_N, Query, RecallRequest
from memgraph.model.remote import MAX_BATCH, SessionEnded, TierItem, TierPage
from memgraph.model.remote import Limit as PageLimit
from memgraph.model.values import Name, validated
from memgraph.operations.reading import ReadingHandle
from memgraph.operations.writing import WritingHandle
from memgraph.rules.conversations import SessionState
from memgraph.rules.scope import narrow

if TYPE_CHECKING:
    from memgraph.context.assembly import ConfirmationCallback
    from memgraph.context.stores import GlobalMemoryStore, ProjectMemoryStore, TaskMemoryStore
    from memgraph.model.conversation import AgentTurn, SessionInfo, SessionPlace, UserTurn
    from memgraph.model.events import EventFailure, Handler
    from memgraph.service.events import DeliveryRound, Subscriber
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.snapshot import Snapshot


class ContextHandle(WritingHandle):
    """The part of ``Orchestrator`` that opens tiers."""

    def task(self, task_id: str) -> TaskMemoryStore:
        """Return the store of a task.

        Raises:
            AccessDenied: the task is not among the viewer's ``session_ids``; it is logged and
                journalled.
        """
        from memgraph.context.stores import TaskMemoryStore

        return TaskMemoryStore(task_id, **self._store_fields(Tier.TASK, task_id))

    def project(self, project_id: str) -> ProjectMemoryStore:
        """Return the store of a project, with at most ``memory.context.max_project_items`` items.

        Raises:
            AccessDenied: the project is not among the viewer's ``project_ids``; it is logged and
                journalled.
        """
        from memgraph.context.stores import ProjectMemoryStore

        return ProjectMemoryStore(
            project_id,
            max_items=self._service.settings(self.name).memory.context.max_project_items,
            **self._store_fields(Tier.PROJECT, project_id),
        )

    def everywhere(
        self, confirmation_callback: ConfirmationCallback | None = None
    ) -> GlobalMemoryStore:
        """Return the store of the global tier.

        Args:
            confirmation_callback: asks a person a question and returns True or False; without one,
                changes that require a person's consent are refused.

        Raises:
            AccessDenied: the viewer does not see global memories; it is logged and journalled.
        """
        from memgraph.context.stores import GlobalMemoryStore

        return GlobalMemoryStore(
            confirmation_callback=confirmation_callback, **self._store_fields(Tier.GLOBAL, None)
        )

    @operation(Permission.READ, "GET", "/tiers/{tier}", tag="contexts", id="list_tier")
    def tier(
        self,
        tier: Annotated[Tier | str, WireFormat(Tier)],
        scope_id: Annotated[
            Name | None, Field(description="The task or project; none is global.")
        ] = None,
        *,
        limit: PageLimit = 50,
    ) -> TierPage:
        """Return the items of a task, a project or the global tier, newest first.

        Args:
            scope_id: the task or the project; None for global.
            limit: 1..1,000.

        Raises:
            InvalidInput: no such tier, a missing or superfluous scope id, a limit out of range.
            AccessDenied: it is not open to the handle; it is logged and journalled.
        """
        from memgraph.operations.context.database_backend import DatabaseBackend
        from memgraph.operations.read.lookup import members

        [which] = members(Tier, [tier])
        if not 1 <= limit <= MAX_BATCH:
            raise InvalidInput(f"limit: 1 to {MAX_BATCH:,}", field="limit")
        backend = DatabaseBackend(self, which, scope_id)
        items = tuple(
            TierItem.model_construct(memory_id=each.memory_id, **dict(each.item))
            for each in backend.query_held({}, limit=limit)
        )
        return TierPage(tier=which, scope_id=scope_id, count=backend.count(), items=items)

    def promote(
        self,
        memory_id: str,
        to: Tier | str,
        scope_id: str | None = None,
        confirmation_callback: ConfirmationCallback | None = None,
        reason: str = "",
    ) -> str | None:
        """Promote a task's memory to its project, or a project's to global; return the new id.

        The promoted memory is a new one with the same text, type, tags, sensitivity, agent and
        source, derived from the old one, which stays where it is. Promoting twice returns the same
        id.

        Args:
            to: ``project`` (of a task's memory) or ``global`` (of a project's).
            scope_id: the project; None for global.
            confirmation_callback: called before a Preference or an Identity becomes global.
            reason: why; kept in the journal.

        Returns:
            The id; None: the person declined.

        Raises:
            NotFound: there is no such memory that this handle may see.
            InvalidInput: no such target, or it is a turn, a reflection or a key-value store's.
            Conflict: it skips a step, the memory is no longer active or valid, or its earlier
                promotion was replaced since.
            AccessDenied: the target is not open to the handle; it is logged and journalled.
            ConfirmationMissing: the callback gave no answer.
        """
        from memgraph.operations.context.promotion import promote, target_of

        because = self._because(reason)
        target = target_of(to, scope_id)
        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            self._require_open(opened, target.tier, target.scope_id)
            promoted = promote(
                opened,
                memory_id,
                target,
                view=self._view,
                actor=self.actor,
                reason=because,
                callback=confirmation_callback,
            )
            self._embed_soon(opened)
        return promoted

    def _store_fields(self, tier: Tier, scope_id: str | None) -> dict[str, Any]:
        """Return the arguments for a store of this tier. Raises AccessDenied."""
        from memgraph.operations.context.database_backend import DatabaseBackend

        with self._service.opened(self.name) as opened:
            self._require_open(opened, tier, scope_id)
        return {
            "backend": DatabaseBackend(self, tier, scope_id),
            "clock": self._service.clock,
            "ids": self._service.ids,
        }

    def _require_open(self, opened: OpenOrchestrator, tier: Tier, scope_id: str | None) -> None:
        if (tier is Tier.GLOBAL) != (scope_id is None) or not isinstance(scope_id, str | None):
            raise InvalidInput(
                "a task or a project needs a name; global has none", field=tier.value
            )
        granted = scope_id is None or scope_id in self.viewer.scope_ids(tier.scope)
        if tier.scope in self.viewer.scopes and granted:
            return
        error = AccessDenied(f"this {tier.value} is not open to the handle", field=tier.value)
        raise self._denied(opened, error, field=tier.value, asked=scope_id)


class InjectingHandle(ReadingHandle):
    """The part of ``Orchestrator`` that puts memories into a prompt."""

    @operation(Permission.READ, "POST", "/context/block", tag="contexts", body="BlockWanted")
    def get_context(
        self,
        prompt: Query,
        *,
        limit: Annotated[int, Field(ge=1, le=MAX_TOP_N)] | None = None,
        format: Annotated[  # noqa: A002  the word that settings have for it
            BlockFormat | str | None, WireFormat(BlockFormat)
        ] = None,
        exclude_session_id: Name | None = None,
        include_insight: bool = True,
        kinds: Annotated[Sequence[MemoryKind | str], WireFormat(tuple[MemoryKind, ...])] = (
            MemoryKind.FACT,
        ),
        agent_id: Name | None = None,
    ) -> ContextBlock:
        """Return the block of memories to put before a message, and its items.

        ``orc.get_context(message).text + message`` is a prompt: the text is empty or ends in a
        newline. One receipt names every memory in it, the reflection's too.

        Args:
            prompt: the message; an empty one gives the most important memories.
            limit: 1..1,000 memories beside the reflection; None: ``memory.context.facts``.
            format: None: ``memory.context.format``.
            exclude_session_id: the conversation of the message, whose turns the agent has already.
            include_insight: add the latest weekly reflection.
            kinds: of memories that may be included; empty: all.
            agent_id: the agent whose prompt it is: other agents' private memories are left out.
                None: those that the handle may see.

        Raises:
            InvalidInput: an argument is out of range.
            AccessDenied: the handle sees only another agent's memories; it is logged.
        """
        from memgraph.operations.context.injection import context_for
        from memgraph.operations.read.lookup import members

        with self._service.opened(self.name) as opened:
            chosen = opened.settings.memory.context
            [form] = members(BlockFormat, [chosen.format if format is None else format])
            request = validated(
                RecallRequest,
                {
                    "query": prompt,
                    "top_n": chosen.facts if limit is None else limit,
                    "kinds": tuple(kinds),
                    "exclude_session_id": exclude_session_id,
                    "agent_id": agent_id,
                },
            )
            try:
                viewer = narrow(self.viewer, agent_id=agent_id)
            except AccessDenied as error:
                raise self._denied(opened, error, field="agent_id", asked=agent_id) from None
            block, receipt, behind = context_for(
                opened, viewer, request, format=form, include_insight=include_insight
            )
            # A memory of several lines stands on one in it: as such it would come back.
            texts = () if form is BlockFormat.FENCED else (block.text,)
            self._keep_receipt(opened, receipt, behind, viewer=viewer, texts=texts)
            return block

    def build_context(
        self,
        task: Task | Mapping[str, Any] | str | None = None,
        request: ContextRequest | Mapping[str, Any] | None = None,
        **fields: Unpack[ContextFields],
    ) -> ContextPackage:
        """Build the context that a task needs, within a token budget; see ``ContextAssembler``.

        Unlike the host's own assembler it opens only what this handle's viewer was granted.

        Raises:
            InvalidInput: the task, the request or a field is wrong.
            AccessDenied: the task is not among the viewer's ``session_ids``, or its project not
                among its ``project_ids``; it is logged and journalled.
        """
        from memgraph.operations.context.builder import ContextBuilder

        builder = ContextBuilder(
            self._service,
            self.name,
            viewer=self.viewer,
            actor=self.actor,
            counters=self._service.counters,
            teller=self._teller,
        )
        return builder.build_context(task, request, **fields)


MOST_SESSIONS = 1_000
MOST_FAILURES = 1_000
CLAIM_S = 60.0


class SessionsHandle(WritingHandle):
    """The part of ``Orchestrator`` for sessions and events."""

    def publish(self, turn: UserTurn | AgentTurn) -> str:
        """Store a turn from the host's own bus; return its id.

        As ``save_episode``, but the kind of the turn decides whether a person or an agent spoke,
        whatever the role is called.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``remember``.
        """
        from memgraph.model.conversation import AgentTurn, UserTurn

        if not isinstance(turn, UserTurn | AgentTurn):
            raise InvalidInput("only a UserTurn or an AgentTurn can be published")
        return self._remember(turn, live=True).memory_id or ""

    def sessions(
        self,
        *,
        pending: bool | None = None,
        limit: int = 100,
        before: SessionPlace | str | None = None,
    ) -> Sequence[SessionInfo]:
        """Return the conversations of which this handle may see a turn, latest activity first.

        Args:
            pending: True: only those that wait for their consolidation, False: the others.
            limit: 1 to 1,000.
            before: the last session of the page before; continues after its position then. Its id
                alone: after its position now.

        Raises:
            InvalidInput: a limit out of its bounds.
            NotFound: no session of the id ``before``.
        """
        from memgraph.store import sessions

        if not 1 <= limit <= MOST_SESSIONS:
            raise InvalidInput(f"limit: 1 to {MOST_SESSIONS:,}", field="limit")
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            if isinstance(before, str):
                before = self._place(snapshot, before)
            return sessions.select(
                snapshot, self._view, pending=pending, before=before, limit=limit
            )

    def _place(self, snapshot: Snapshot, session_id: str) -> SessionPlace:
        from memgraph.store import sessions

        found = sessions.place(snapshot, self._view, session_id)
        if found is None:
            raise _no_session(session_id)
        return found

    @operation(
        Permission.WRITE,
        "POST",
        "/sessions/end",
        tag="conversations",
        body="Ending",
        answer=SessionEnded,
    )
    def end_session(self, session_id: Name) -> bool:
        """End a conversation now, without waiting for the next one.

        Returns:
            True when it was open. A later turn opens it again.

        Raises:
            NotFound: no such session, or none of its turns is visible.
        """
        from memgraph.store import events, sessions

        with self._write() as (opened, transaction):
            known = sessions.visible(transaction, self._view, session_id)
            if known is None:
                raise _no_session(session_id)
            if known.state is not SessionState.OPEN:
                return False
            sessions.complete(transaction, [session_id])
            events.append(transaction, transaction.at, [SessionCompleted(session_id=session_id)])
        self._tell_soon(opened)
        return True

    def subscribe(
        self,
        name: str,
        handler: Handler,
        *,
        topics: Sequence[str] | None = None,
        from_start: bool = False,
        claim_s: float = CLAIM_S,
    ) -> None:
        """Call ``handler`` with every event of these topics, in order, at least once.

        The name identifies the subscriber across restarts and processes: events while nobody used
        it are delivered to the next subscription, and of several processes that use it one gets
        each event. Delivered in a thread of its own, or by ``deliver_events`` when the service has
        no background. A handler that raises gets the event again after 1 s, 5 s, 25 s, 2 and 10
        minutes; then it is parked, see ``event_failures``. Subscribers belong to the host: they get
        events of every session and memory, by id, whatever this handle's viewer may see.

        Args:
            topics: of ``memgraph.model.events.EVENTS``; None: all.
            from_start: a new name begins at the oldest stored event; else with new ones.
            claim_s: how long the handler may take for an event before another process with the same
                subscriber considers it dead. At least 1.

        Raises:
            Conflict: the name is taken in this process.
            InvalidInput: an empty or overlong name, an unknown topic, too short a claim.
        """
        from memgraph.model.values import MAX_NAME_CHARS
        from memgraph.service.events import Subscriber, checked_topics

        if not 0 < len(name) <= MAX_NAME_CHARS:
            raise InvalidInput(f"name: 1 to {MAX_NAME_CHARS} characters", field="name")
        if not 1 <= claim_s <= 86_400:
            raise InvalidInput("claim_s: 1 to 86,400", field="claim_s")
        given = Subscriber(name, handler, checked_topics(topics), int(claim_s * 1_000))
        self.subscribe_as(given, from_start=from_start)

    def subscribe_as(self, given: Subscriber, *, from_start: bool) -> None:
        """Subscribe a validated subscriber; see ``subscribe``. Raises Conflict."""
        from memgraph.store import events

        with self._service.opened(self.name) as opened:
            with opened.database.write() as transaction:
                events.register(transaction, given.name, from_start=from_start)
            opened.subscribers.add(given)
            self._tell_soon(opened)

    def unsubscribe(self, name: str, *, forget: bool = False) -> bool:
        """Remove a subscriber; return True when this process had one of that name.

        Args:
            forget: it will not return anywhere: its undelivered and failed events are dropped. Else
                events are kept for it, 30 days at most.
        """
        from memgraph.store import events

        with self._service.opened(self.name) as opened:
            found = opened.subscribers.remove(name)
            opened.events.failing.discard(name)
            if forget:
                with opened.database.write() as transaction:
                    events.forget(transaction, name)
        return found

    def deliver_events(self) -> DeliveryRound:
        """Deliver waiting events now; for a service without background, and for tests.

        Raises:
            StorageError: the database failed; events not recorded as delivered come again.
        """
        with self._service.opened(self.name) as opened:
            told = opened.events.deliver()
            opened.upkeep.run()
        return told

    def event_failures(self, *, limit: int = 100) -> list[EventFailure]:
        """Return events that a subscriber did not accept after all attempts, newest first.

        Events of sessions or memories that this handle may not see are left out.

        Args:
            limit: 1 to 1,000.
        """
        from memgraph.store import events

        if not 1 <= limit <= MOST_FAILURES:
            raise InvalidInput(f"limit: 1 to {MOST_FAILURES:,}", field="limit")
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return events.failures(snapshot, limit, self._view)

    def retry_events(self) -> int:
        """Deliver parked events to subscribers of this process, once; return how many succeeded.

        Subscribers that are handling an event, here or in another process, or that pause after a
        failure, are skipped.
        """
        with self._service.opened(self.name) as opened:
            return opened.events.retry()


def _no_session(session_id: str) -> NotFound:
    return NotFound(f"no session {session_id[:80]!r}", session_id=session_id[:80])
