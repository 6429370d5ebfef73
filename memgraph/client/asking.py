"""Ask over HTTP."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from memgraph.client.calls import Call, Read, part_of, segment, typed, value_of
from memgraph.client.files import Place, Time, moment, plain
from memgraph.client.words import word
from memgraph.errors import InvalidInput
from memgraph.model.access import StoreHealth
from memgraph.model.context import Issued
from memgraph.model.entities import EntityInfo, EntityProfile, EntityProposal
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType, ShownStatus
from memgraph.model.graph import ContradictionPage, Subgraph, Trace
from memgraph.model.influence import Grounds, Impact, SourceLines
from memgraph.model.jobs import ExpiringReport, Relevant
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.receipts import (
    BulletinHistory,
    Receipt,
    ReceiptList,
    Replay,
    StoredBulletin,
)
from memgraph.model.remote import EntityList, EntityProposals, LatestReflection, MemoryPage
from memgraph.model.values import Memory, validated

_MEMORIES: Read[Sequence[Memory]] = part_of(MemoryPage, lambda page: page.items)
_ENTITIES: Read[Sequence[EntityInfo]] = part_of(EntityList, lambda page: page.items)
_PROPOSALS: Read[Sequence[EntityProposal]] = part_of(EntityProposals, lambda page: page.items)
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

    @word
    def entities(self, *, prefix: str = "", limit: int = 50) -> Call[Sequence[EntityInfo]]:
        """Return entities, most mentioned first. ``limit`` is 1..1000.

        Args:
            prefix: the beginning of one of their names, in any case.
        """
        return self._get("/entities", _ENTITIES, prefix=prefix or None, limit=limit)

    @word
    def entity_proposals(self) -> Call[Sequence[EntityProposal]]:
        """Return the model's nightly proposals: names that may mean a known entity."""
        return self._get("/entities/proposals", _PROPOSALS)

    @word
    def get_entity_info(self, name_or_id: str, *, limit: int = 10) -> Call[EntityProfile]:
        """Return an entity's profile, by its id, its name, an alias or a nickname.

        Args:
            limit: memories at most, 0..100.

        Raises:
            NotFound: no memory that the key may see names it.
        """
        fields = {"name": name_or_id, "limit": limit}
        return self._look("/entities/info", fields, value_of(EntityProfile))

    @word
    def visible_counts(self) -> Call[dict[str, dict[str, int]]]:
        """Return how many memories the key sees, of each kind, type and status."""
        return self._get("/stats", _COUNTS)


class FollowingWords(Place):
    """The methods that follow a memory; they require the permission audit."""

    @word
    def impact(
        self, memory_id: str, *, max_nodes: int = 1_000, as_of: Time | None = None
    ) -> Call[Impact]:
        """Return every recall, context, bulletin, run and derived memory that a memory reached.

        Args:
            max_nodes: 1..10,000 derived memories, and as many receipts; ``cut`` is True when there
                are more.
            as_of: what it had reached by then; None: by now.

        Raises:
            NotFound: there is no such memory that the key may see, or there was none then.
        """
        path = f"/memories/{segment(memory_id)}/impact"
        return self._get(path, value_of(Impact), max_nodes=max_nodes, as_of=moment(as_of))

    @word
    def grounds(
        self,
        memory_id: str | None = None,
        *,
        workflow_run_id: str | None = None,
        max_nodes: int = 1_000,
        lines: int = 0,
    ) -> Call[Grounds]:
        """Return all evidence of a memory, or of a run of a workflow.

        Args:
            memory_id, workflow_run_id: one of them.
            max_nodes: 1..10,000 memories, and as many receipts; ``cut`` is True when there are
                more.
            lines: 0..1,000 memories whose source lines are read as well.

        Raises:
            NotFound: there is no such memory that the key may see, or no receipt and no memory of
                such a run.
            InvalidInput: both or none are named, or a bound is out of range.
        """
        return self._get(
            "/grounds",
            value_of(Grounds),
            memory_id=memory_id,
            workflow_run_id=workflow_run_id,
            max_nodes=max_nodes,
            lines=lines,
        )

    @word
    def source_lines(self, memory_id: str) -> Call[SourceLines]:
        """Return what a memory was read from: its lines of the stored file, or turns.

        Raises:
            NotFound: there is no such memory that the key may see.
        """
        return self._get(f"/memories/{segment(memory_id)}/lines", value_of(SourceLines))


_RECEIPT = typed(Receipt)
_RECEIPTS = typed(ReceiptList)


class ReceiptWords(Place):
    """The methods for receipts; they require the permission audit."""

    @word
    def receipt(self, receipt_id: str) -> Call[Receipt]:
        """Return what was handed out, and why. Raises NotFound."""
        return self._get(f"/receipts/{segment(receipt_id)}", _RECEIPT)

    @word
    def receipts(
        self,
        *,
        task_id: str | None = None,
        workflow_run_id: str | None = None,
        conversation_id: str | None = None,
        purpose: str | None = None,
        limit: int = 20,
        before: str | None = None,
    ) -> Call[ReceiptList]:
        """Return the newest receipts of which the key may see every memory.

        Args:
            task_id, workflow_run_id, conversation_id, purpose: only receipts for these.
            limit: 1..1000.
            before: the last id of the page before.
        """
        return self._get(
            "/receipts",
            _RECEIPTS,
            task_id=task_id,
            workflow_run_id=workflow_run_id,
            conversation_id=conversation_id,
            purpose=purpose,
            limit=limit,
            before=before,
        )

    @word
    def replay(self, receipt_id: str, *, query: str | None = None) -> Call[Replay]:
        """Repeat the request of a receipt as of its moment, and compare the results.

        Args:
            query: the query, when the receipt keeps only its digest.

        Raises:
            NotFound: there is no such receipt that the key may see.
            AccessDenied: the original reader saw more than the key does.
            InvalidInput: the query is missing or another one; this kind of receipt cannot be
                replayed.
        """
        path = f"/receipts/{segment(receipt_id)}/replay"
        return self._look(path, plain({"query": query}), value_of(Replay))

    @word
    def bulletins(self, *, limit: int = 20, before: str | None = None) -> Call[BulletinHistory]:
        """Return bulletins that were handed out to readers who saw no more than the key, newest
        first.

        Args:
            limit: 1..1000.
            before: the last id of the page before.
        """
        return self._get("/bulletins", value_of(BulletinHistory), limit=limit, before=before)

    @word
    def bulletin_issued(self, bulletin_id: str) -> Call[StoredBulletin]:
        """Return a bulletin as it was handed out. Raises NotFound."""
        return self._get(f"/bulletins/{segment(bulletin_id)}", value_of(StoredBulletin))


class AuditingWords(Place):
    """The methods of an auditor; they require the permission audit."""

    @word
    def audit(self, *, fail_on: Sequence[str] = (), examples: int = 5) -> Call[StoreHealth]:
        """Return rates of what the key sees: duplicates, contradictions, unsourced memories …

        Args:
            fail_on: limits, such as ``stale=0.05``, ``echo`` (none at all) or ``all``.
            examples: 0..100, of each measure.

        Raises:
            InvalidInput: an invalid limit, or too many examples.
        """
        fields = {"fail_on": list(fail_on), "examples": examples}
        return replace(self._look("/audit", fields, value_of(StoreHealth)), slow=True)
