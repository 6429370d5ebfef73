"""Store a conversation for an agent framework, and return its entries unchanged and in order.

The entries are episodes of a session. Turns of persons and agents can be recalled and become
facts; other entries are stored as silent episodes, which consolidation ignores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Final

from memgraph.errors import DatabaseCorrupt, InvalidInput
from memgraph.model.conversation import (
    ENTRY_PREFIX,
    SILENT_ROLE,
    AgentTurn,
    ConversationEntry,
    UserTurn,
)
from memgraph.model.enums import (
    CapturedBy,
    MemoryKind,
    MemoryStatus,
    Scope,
    Sensitivity,
    SourceType,
)
from memgraph.model.values import EpisodeInput, Memory, Source, validated
from memgraph.operations.context.promotion import retract_all
from memgraph.operations.handle import Handle
from memgraph.operations.write import changes
from memgraph.rules.conversations import entry_of, part_place, parts_of
from memgraph.rules.lifecycle import CLEARED
from memgraph.rules.scope import ScopeFacts
from memgraph.store import memories
from memgraph.store.memories import MemoryFilter
from memgraph.store.snapshot import JournalledTransaction, Snapshot

_PAGE: Final = 1_000
_SHOWN: Final = frozenset({MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED})


class Transcript(Handle):
    """The entries of one session. Thread-safe; several processes may share a session.

    A session belongs to one scope, and to the handle's agent if it has one; elsewhere the same name
    is a different session. Turns that were stored by other means are not entries, and an entry
    with a retracted part is not returned.

    Args:
        handle: an orchestrator's handle, whose viewer and actor are used.
        session_id: the id of the conversation.
        person, agent: the names of the speakers, used as the ``source_role`` of their turns.
        scope, scope_id, sensitivity: the fields of the episodes.

    Raises:
        InvalidInput: an argument is invalid; the error names it.
        AccessDenied: the handle's viewer could not see the stored episodes.
    """

    def __init__(
        self,
        handle: Handle,
        session_id: str,
        *,
        person: str = "user",
        agent: str = "assistant",
        scope: Scope | str = Scope.GLOBAL,
        scope_id: str | None = None,
        sensitivity: Sensitivity | str = Sensitivity.INTERNAL,
    ) -> None:
        self._like(handle)
        self._person, self._agent = person, agent
        self._fields: dict[str, Any] = {
            "session_id": session_id,
            "scope": scope,
            "scope_id": scope_id,
            "sensitivity": sensitivity,
            "agent_id": self.viewer.agent_id,
        }
        for role in (person, agent):
            episode = self._episode(EpisodeInput, "-", role)
        facts = ScopeFacts(episode.scope, episode.scope_id, episode.sensitivity, episode.agent_id)
        self._require_visible(facts, "the handle could not see its own entries")
        self.session_id = episode.session_id
        self._place = (episode.scope, episode.scope_id, episode.agent_id)

    def append(self, entries: Sequence[ConversationEntry]) -> None:
        """Append entries, all of them or none.

        Raises:
            InvalidInput: a record is not JSON, or a text has no speaker.
        """
        if not entries:
            return
        with self._service.opened(self.name) as opened:
            prepared = [
                opened.writer.prepare(episode)
                for entry in entries
                for episode in self._episodes(entry, opened.ids.new(ENTRY_PREFIX))
            ]
            with opened.transaction(self.actor) as transaction:
                opened.writer.store_all(transaction, prepared, [], view=self._view, live=True)
            self._embed_soon(opened)

    def entries(self, limit: int | None = None) -> list[ConversationEntry]:
        """Return the last ``limit`` entries, or all of them, oldest first.

        Raises:
            InvalidInput: a limit below 0.
        """
        if limit is not None and limit < 0:
            raise InvalidInput("limit must be 0 or more, or None", field="limit")
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return [_entry(parts) for parts in self._newest(snapshot, limit)][::-1]

    def pop(self, *, reason: str = "popped") -> ConversationEntry | None:
        """Retract the last entry and return it, or None if there is none.

        Facts extracted from it become stale.
        """
        with self._write() as (_, transaction):
            for parts in self._newest(transaction, 1):
                self._retract(transaction, parts, reason)
                return _entry(parts)
        return None

    def clear(self, *, reason: str = CLEARED) -> int:
        """Retract all entries; return the number of episodes, which stay in the history.

        With the reason ``cleared``, facts extracted from them stay active.
        """
        with self._write() as (_, transaction):
            results = [*self._parts(transaction)]
            self._retract(transaction, results, reason)
        return len(results)

    def _episodes(self, entry: ConversationEntry, item_id: str) -> Iterator[EpisodeInput]:
        """Yield the episodes of an entry, all with one id, so that entries are never mixed."""
        for part in parts_of(entry):
            fields = {"item_id": item_id, "attributes": part.attributes}
            if not part.said:
                yield self._episode(EpisodeInput, part.content, SILENT_ROLE, **fields)
            elif entry.speaker == "person":
                yield self._episode(UserTurn, part.content, self._person, **fields)
            else:
                yield self._episode(AgentTurn, part.content, self._agent, **fields)

    def _episode(
        self, kind: type[EpisodeInput], content: str, role: str, **fields: Any
    ) -> EpisodeInput:
        source = Source.model_construct(
            source_type=SourceType.CHANNEL_TRANSCRIPT,
            conversation_id=self._fields["session_id"],
            captured_by=CapturedBy.USER if kind is UserTurn else CapturedBy.SYSTEM,
        )
        fields |= {"content": content, "source_role": role, "source": source}
        return validated(kind, {**self._fields, **fields})

    def _retract(
        self, transaction: JournalledTransaction, parts: Sequence[Memory], reason: str
    ) -> None:
        active = [part.memory_id for part in parts if part.status is MemoryStatus.ACTIVE]
        if active:
            retract_all(transaction, active, reason)
        for part in parts:
            if part.status is MemoryStatus.SUPERSEDED:
                retracted = changes.retract(
                    transaction, part.memory_id, reason=reason, view=self._view, replaced=True
                )
                transaction.record(retracted)

    def _newest(self, snapshot: Snapshot, limit: int | None) -> Iterator[list[Memory]]:
        """Return the parts of the complete entries, newest entry first."""
        # With the part that shows where the last entry ends.
        stored = self._parts(snapshot, _PAGE if limit is None else limit + 1)
        entries = (list(parts)[::-1] for _, parts in groupby(stored, key=attrgetter("item_id")))
        return islice((parts for parts in entries if _is_complete(parts)), limit)

    def _parts(self, snapshot: Snapshot, at_once: int = _PAGE) -> Iterator[Memory]:
        """Yield the active episodes of entries, newest first."""
        view = replace(self._view, statuses=_SHOWN)
        before: str | None = None
        size = min(max(at_once, 1), _PAGE)
        while True:
            chosen = MemoryFilter(
                kinds=(MemoryKind.EPISODE,), session_id=self.session_id, before=before
            )
            page = memories.select(snapshot, view, chosen, limit=size)
            for item in page:
                # The view may include episodes of another project or agent; these are not entries.
                here = (item.scope, item.scope_id, item.agent_id) == self._place
                is_entry = (item.item_id or "").startswith(ENTRY_PREFIX)
                if here and is_entry and part_place(item.attributes) is not None:
                    yield item
            if len(page) < size:
                return
            before, size = page[-1].memory_id, _PAGE


def _is_complete(parts: Sequence[Memory]) -> bool:
    places = [part_place(part.attributes) for part in parts]
    return places == [(place, len(parts)) for place in range(len(parts))]


def _entry(parts: Sequence[Memory]) -> ConversationEntry:
    try:
        return entry_of([(part.content, part.attributes) for part in parts])
    except (ValueError, TypeError) as error:
        first = parts[0].memory_id
        raise DatabaseCorrupt("an entry of a session cannot be read", id=first) from error
