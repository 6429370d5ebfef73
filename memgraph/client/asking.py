"""Looking, remotely: get, list_memories, recall, the graph, the bulletin, expiring."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from memgraph.client.calls import Call, Read, part_of, segment, typed, value_of
from memgraph.client.places import Place, Time, moment
from memgraph.client.words import word
from memgraph.errors import InvalidInput
from memgraph.model.bulletin import Issued
from memgraph.model.entities import EntityInfo, EntityProfile, EntityProposal
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, ShownStatus
from memgraph.model.expiring import ExpiringReport
from memgraph.model.graph import ContradictionPage, Subgraph, Trace
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.reflection import Relevant
from memgraph.model.remote import EntityList, EntityProposals, LatestReflection, MemoryPage
from memgraph.model.values import Memory, validated

_MEMORIES: Read[Sequence[Memory]] = part_of(MemoryPage, lambda page: page.items)
_ENTITIES: Read[Sequence[EntityInfo]] = part_of(EntityList, lambda page: page.items)
_PROPOSALS: Read[Sequence[EntityProposal]] = part_of(EntityProposals, lambda page: page.items)
_REFLECTION: Read[Memory | None] = part_of(LatestReflection, lambda told: told.memory)

_ISSUED = typed(Issued)
_COUNTS = typed(dict[str, dict[str, int]])


class AskingWords(Place):
    """The words that look."""

    @word
    def get(self, memory_id: str, *, as_of: Time | None = None) -> Call[Memory]:
        """One memory; with ``as_of`` as it was at that time: its status and all that may change.

        Raises:
            NotFound: there is none that the key may see, or there was none then.
        """
        path = f"/memories/{segment(memory_id)}"
        return self._get(path, value_of(Memory), as_of=moment(as_of))

    @word
    def list_memories(
        self,
        *,
        types: Sequence[MemoryType] = (),
        kinds: Sequence[MemoryKind] = (),
        statuses: Sequence[MemoryStatus | ShownStatus] = (MemoryStatus.ACTIVE,),
        tags: Sequence[str] = (),
        session_id: str | None = None,
        before: str | None = None,
        limit: int = 50,
        as_of: Time | None = None,
    ) -> Call[Sequence[Memory]]:
        """Memories, newest first, a page at a time: ``before`` is the last id of the page before.

        An empty filter leaves nothing out; what is erased is of the status ``erased`` alone;
        ``tags`` asks for all of them; ``limit`` is 1..1000; ``as_of``: what was stored by
        then, with the statuses and values of then.
        """
        return self._get(
            "/memories",
            _MEMORIES,
            type=types,
            kind=kinds,
            # Said in full: a request that says nothing asks for active ones.
            status=statuses or tuple(ShownStatus),
            tag=tags,
            session_id=session_id,
            cursor=before,
            limit=limit,
            as_of=moment(as_of),
        )

    @word
    def recall(self, /, query: str | RecallRequest = "", **fields: Any) -> Call[Bundle]:
        """The memories that answer a question, best first, with their reasons and sources.

        Args:
            query: words or a sentence; or a whole request.
            fields: the other fields of ``RecallRequest``.

        Raises:
            InvalidInput: a field is wrong, or neither query nor filter says what to recall.
            AccessDenied: the request reaches further than the key.
        """
        request = query
        if not isinstance(request, RecallRequest):
            request = validated(RecallRequest, {"query": query, **fields})
        return self._look("/recall", request, value_of(Bundle))

    @word
    def relevant(
        self, prompt: str, *, limit: int = 5, exclude_session_id: str | None = None
    ) -> Call[Relevant]:
        """What belongs before the answer to a message: facts that fit it, and the last reflection.

        Args:
            prompt: the message; an empty one gives the most important facts.
            limit: 1..1,000 facts.
            exclude_session_id: the conversation that the message is from.
        """
        fields = {"prompt": prompt, "limit": limit, "exclude_session_id": exclude_session_id}
        return self._look("/relevant", fields, value_of(Relevant))

    @word
    def subgraph(
        self,
        ids: Sequence[str],
        *,
        hops: int = 1,
        max_nodes: int = 200,
        edge_types: Collection[EdgeType | str] | None = None,
        as_of: Time | None = None,
        retracted: bool = False,
    ) -> Call[Subgraph]:
        """The memories within ``hops`` (1..4) of ``ids`` and the edges between them, bounded.

        ``retracted``: with memories that were taken back.

        Raises:
            InvalidInput: a bound out of range.
        """
        if isinstance(ids, str):
            raise InvalidInput("ids is a list of memory ids", field="ids")
        if isinstance(edge_types, str):
            edge_types = [edge_types]
        fields = {
            "ids": list(ids),
            "hops": hops,
            "max_nodes": max_nodes,
            "edge_types": None if edge_types is None else sorted(edge_types),
            "as_of": moment(as_of),
            "retracted": retracted,
        }
        return self._look("/subgraph", fields, value_of(Subgraph))

    @word
    def trace(self, memory_id: str, *, as_of: Time | None = None) -> Call[Trace]:
        """Where a memory comes from, what became of it, and what stands on it.

        With ``as_of`` what was known of it then. Raises NotFound.
        """
        path = f"/memories/{segment(memory_id)}/trace"
        return self._get(path, value_of(Trace), as_of=moment(as_of))

    @word
    def contradictions(
        self,
        *,
        resolved: bool = False,
        limit: int = 50,
        after: str | None = None,
        as_of: Time | None = None,
        text: str | None = None,
        memory_id: str | None = None,
        dismissed: bool | None = None,
        oldest_first: bool = False,
    ) -> Call[ContradictionPage]:
        """Open contradictions, or resolved ones, the newest first, with both sides.

        ``after`` is the ``next_after`` of the page before; ``limit`` is 1..500. Only those are
        listed of which one side says each word of ``text`` and one is ``memory_id``; of resolved
        ones, with ``dismissed``, those that were or were not dismissed.
        """
        return self._get(
            "/contradictions",
            value_of(ContradictionPage),
            resolved=resolved,
            limit=limit,
            cursor=after,
            as_of=moment(as_of),
            text=text,
            memory_id=memory_id,
            dismissed=dismissed,
            oldest_first=oldest_first,
        )

    @word
    def bulletin(self, *, as_of: Time | None = None) -> Call[Issued]:
        """The bulletin for the next message; ``warning`` tells when it is not of the present.

        With ``as_of`` the one of that time, made again of what was known then.
        """
        return self._get("/bulletin", _ISSUED, as_of=moment(as_of))

    @word
    def expiring(self, *, days: float = 30.0, limit: int = 50) -> Call[ExpiringReport]:
        """What would be retired within ``days`` if nobody uses it, the first to go first.

        ``days`` is 0..36,600, ``limit`` 0..1,000; ``total`` counts all of them.
        """
        return self._get("/expiring", value_of(ExpiringReport), days=days, limit=limit)

    @word
    def latest_reflection(self) -> Call[Memory | None]:
        """The week's reflection that was saved last and that the key may see; None: none."""
        return self._get("/reflection", _REFLECTION)

    @word
    def entities(self, *, prefix: str = "", limit: int = 50) -> Call[Sequence[EntityInfo]]:
        """Entities, the most mentioned first. ``limit`` is 1..1000.

        Args:
            prefix: how one of their names begins, in any case.
        """
        return self._get("/entities", _ENTITIES, prefix=prefix or None, limit=limit)

    @word
    def entity_proposals(self) -> Call[Sequence[EntityProposal]]:
        """What a model proposed by night: names that mean an entity that is known."""
        return self._get("/entities/proposals", _PROPOSALS)

    @word
    def get_entity_info(self, name_or_id: str, *, limit: int = 10) -> Call[EntityProfile]:
        """All about an entity, by its id, its name, an alias or a nickname.

        Args:
            limit: memories at most, 0..100.

        Raises:
            NotFound: no memory that the key may see names it.
        """
        fields = {"name": name_or_id, "limit": limit}
        return self._look("/entities/info", fields, value_of(EntityProfile))

    @word
    def visible_counts(self) -> Call[dict[str, dict[str, int]]]:
        """How many memories the key sees, of each kind, type and status."""
        return self._get("/stats", _COUNTS)
