"""Ask over HTTP."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from memgraph.client.calls import Call, Read, part_of, segment, typed, value_of
from memgraph.client.files import Place, Time, moment
from memgraph.client.operations import remote
from memgraph.client.words import word
from memgraph.errors import InvalidInput
from memgraph.model.context import Issued
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, ShownStatus
from memgraph.model.graph import ContradictionPage, Subgraph, Trace
from memgraph.model.jobs import ExpiringReport, Relevant
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.remote import LatestReflection, MemoryPage
from memgraph.model.values import Memory, validated
from memgraph.service.handle_auditing import (
    AuditingHandle,
    InfluenceHandle,
    ReceiptsHandle,
)
from memgraph.service.handle_entities import EntitiesHandle

_MEMORIES: Read[Sequence[Memory]] = part_of(MemoryPage, lambda page: page.items)
_REFLECTION: Read[Memory | None] = part_of(LatestReflection, lambda told: told.memory)

_ISSUED = typed(Issued)
_COUNTS = typed(dict[str, dict[str, int]])


class AskingWords(Place):
    """The methods that read."""

    @word
    def get(self, memory_id: str, *, as_of: Time | None = None) -> Call[Memory]:
        """Return one memory; with ``as_of`` its status and values at that time.

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
        """Return memories, newest first, by page: ``before`` is the last id of the page before.

        An empty filter leaves nothing out; erased memories have only the status ``erased``;
        ``tags`` must all match; ``limit`` is 1..1000; ``as_of``: what was stored by then, with the
        statuses and values at that time.
        """
        return self._get(
            "/memories",
            _MEMORIES,
            type=types,
            kind=kinds,
            # Sent in full: a request without statuses returns active ones.
            status=statuses or tuple(ShownStatus),
            tag=tags,
            session_id=session_id,
            cursor=before,
            limit=limit,
            as_of=moment(as_of),
        )

    @word
    def recall(self, /, query: str | RecallRequest = "", **fields: Any) -> Call[Bundle]:
        """Return the memories that answer a question, best first, with reasons and sources.

        Args:
            query: words or a sentence; or a whole request.
            fields: the other fields of ``RecallRequest``.

        Raises:
            InvalidInput: a field is wrong, or there is neither a query nor a filter.
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
        """Return what belongs before the answer to a message: relevant facts and the last
        reflection.

        Args:
            prompt: the message; an empty one gives the most important facts.
            limit: 1..1,000 facts.
            exclude_session_id: the conversation of the message.
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
        """Return the memories within ``hops`` (1..4) of ``ids`` and the edges between them,
        bounded.

        ``retracted`` includes retracted memories.

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
        """Return a memory's sources, what became of it, and what depends on it.

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
        """Return open or resolved contradictions, newest first, with both sides.

        ``after`` is the ``next_after`` of the page before; ``limit`` is 1..500. ``text`` keeps
        those with each of its words on one side, ``memory_id`` those with this memory on one side;
        ``dismissed`` filters the resolved ones.
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
        """Return the bulletin for the next message; ``warning`` is set when it is not current.

        With ``as_of`` the bulletin of that time, built from what was known then.
        """
        return self._get("/bulletin", _ISSUED, as_of=moment(as_of))

    @word
    def expiring(self, *, days: float = 30.0, limit: int = 50) -> Call[ExpiringReport]:
        """Return the facts that expire within ``days`` unless they are used, soonest first.

        ``days`` is 0..36,600, ``limit`` 0..1,000; ``total`` counts all of them.
        """
        return self._get("/expiring", value_of(ExpiringReport), days=days, limit=limit)

    @word
    def latest_reflection(self) -> Call[Memory | None]:
        """Return the latest weekly reflection that the key may see; None: there is none."""
        return self._get("/reflection", _REFLECTION)

    entities = remote(EntitiesHandle.entities)
    entity_proposals = remote(EntitiesHandle.entity_proposals)
    get_entity_info = remote(EntitiesHandle.get_entity_info)

    @word
    def visible_counts(self) -> Call[dict[str, dict[str, int]]]:
        """Return how many memories the key sees, of each kind, type and status."""
        return self._get("/stats", _COUNTS)


class FollowingWords(Place):
    """The methods that follow a memory; they require the permission audit."""

    impact = remote(InfluenceHandle.impact)
    grounds = remote(InfluenceHandle.grounds)
    source_lines = remote(InfluenceHandle.source_lines)


class ReceiptWords(Place):
    """The methods for receipts; they require the permission audit."""

    receipt = remote(ReceiptsHandle.receipt)
    receipts = remote(ReceiptsHandle.receipts)
    replay = remote(ReceiptsHandle.replay)
    bulletins = remote(ReceiptsHandle.bulletins)
    bulletin_issued = remote(ReceiptsHandle.bulletin_issued)


class AuditingWords(Place):
    """The methods of an auditor; they require the permission audit."""

    audit = remote(AuditingHandle.audit)
