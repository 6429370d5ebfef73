"""Edges: joining memories, and what an Updates edge does to the memory it points at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import sqlalchemy as sa

from memgraph.audit.journal import Entry
from memgraph.errors import Conflict, InvalidInput, MemgraphError, NotFound
from memgraph.ids import IdSource
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.values import MAX_REASON_CHARS, EdgeInput, MemoryInput, Outcome
from memgraph.policy.lifecycle import MemoryState, plan_supersession
from memgraph.policy.trust import LESS_TRUSTED, Trust
from memgraph.service.quotas import captured
from memgraph.storage import case_queries, edges, memories, trust_queries
from memgraph.storage.visibility import View

_PLAIN: Final = (EdgeType.PART_OF, EdgeType.CAUSED_BY, EdgeType.RELATED_TO)
_LESS_TRUSTED: Final = "a less trusted source replaces nothing that a more trusted one said"


class Compare(Enum):
    """When a new fact is compared with what is stored."""

    NOW = "now"
    LATER = "later"
    DONE = "done"
    NEVER = "never"


@dataclass(slots=True)
class Written:
    """What one transaction did: outcomes in the order of the items, and what to journal.

    ``to_compare``: how many facts wait to be compared with what is stored.
    """

    memories: list[Outcome] = field(default_factory=list)
    edges: list[Outcome] = field(default_factory=list)
    ids_by_key: dict[str, str] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    entries: list[Entry] = field(default_factory=list)
    errors: list[MemgraphError] = field(default_factory=list)
    to_compare: int = 0

    def reject(self, error: MemgraphError) -> Outcome:
        """The outcome of an item that cannot be stored; the error is kept for a strict caller."""
        self.errors.append(error)
        return Outcome(outcome="rejected", code=error.code, message=error.message)

    def resolve(self, reference: str) -> str:
        """A memory id as it is, ``#key`` as the id of that memory of the batch.

        Raises:
            NotFound: no memory of the batch has that key, or it was rejected.
        """
        if not reference.startswith("#"):
            return reference
        found = self.ids_by_key.get(reference[1:])
        if found is None:
            raise NotFound(f"no memory {reference[:80]!r} in this batch", key=reference[1:])
        return found


@dataclass(frozen=True, slots=True)
class Joiner:
    """Writes edges into one database; the caller holds the transaction.

    Attributes:
        trust: as the settings have it; what operators said is read with each Updates edge.
        view: what the writer may see, and therefore join; None: everything.
    """

    ids: IdSource
    trust: Trust
    view: View | None = None

    def join_all(
        self,
        connection: sa.Connection,
        links: Sequence[EdgeInput],
        written: Written,
        *,
        at: int,
        actor: str,
    ) -> list[Outcome]:
        """Store edges whose ``#key`` ends are memories of ``written``; one outcome for each."""
        plain = self._join_plain(connection, links, written, at=at)
        outcomes = [
            plain.get(place) or self._try_join(connection, link, written, at=at, actor=actor)
            for place, link in enumerate(links)
        ]
        written.edges.extend(outcomes)
        return outcomes

    def _join_plain(
        self, connection: sa.Connection, links: Sequence[EdgeInput], written: Written, *, at: int
    ) -> dict[int, Outcome]:
        """Store at once the edges that need no look at others, and give their outcomes by place.

        They come from memories of this transaction, and replace and contradict nothing.
        """
        places: dict[tuple[str, str, EdgeType], int] = {}
        for place, link in enumerate(links):
            from_id = written.ids_by_key.get(link.from_id.removeprefix("#"), link.from_id)
            to_id = written.ids_by_key.get(link.to_id.removeprefix("#"), link.to_id)
            key = (from_id, to_id, link.edge_type)
            turned = (to_id, from_id, link.edge_type)
            if from_id not in written.new or from_id == to_id or link.edge_type not in _PLAIN:
                continue
            if key not in places and not (link.edge_type in edges.SYMMETRIC and turned in places):
                places[key] = place
        outer = sorted({to_id for _, to_id, _ in places if to_id not in written.new})
        known = written.new | memories.existing_ids(connection, outer, self.view)
        rows = {
            place: _row(self.ids.new("edge_"), from_id, to_id, links[place], at)
            for (from_id, to_id, _), place in places.items()
            if to_id in known
        }
        if rows:
            edges.insert(connection, *rows.values())
        written.entries += [_related(row) for row in rows.values()]
        return {
            place: Outcome(outcome="stored", edge_id=row["edge_id"]) for place, row in rows.items()
        }

    def join(
        self, connection: sa.Connection, link: EdgeInput, written: Written, *, at: int, actor: str
    ) -> Outcome:
        """Store one edge; an Updates edge that is not partial supersedes what it points at.

        One from a memory that is trusted less than the other becomes an open contradiction: its
        outcome has the code ``source.less_trusted``.

        Raises:
            NotFound: an end does not exist, as far as the writer may see.
            Conflict: an end is in a status that forbids it.
        """
        from_id, to_id = written.resolve(link.from_id), written.resolve(link.to_id)
        if from_id == to_id:
            raise InvalidInput("an edge joins two different memories", memory_id=from_id)
        memories.require(connection, [from_id, to_id], self.view)
        known = edges.find(connection, from_id, to_id, link.edge_type)
        # What amended a part may replace the rest later; the reverse is not taken back.
        grows = known is not None and known.partial and not link.partial
        if known is not None and not grows:
            return Outcome(outcome="duplicate", edge_id=known.edge_id)
        if link.edge_type is EdgeType.CONTRADICTS:
            # What was dismissed is what two say: it holds where one of them is stored anew.
            dismissed = case_queries.dismissed_alike(connection, from_id, to_id, self.view)
            if dismissed is not None:
                return Outcome(outcome="duplicate", edge_id=dismissed)
        if link.edge_type is EdgeType.UPDATES:
            if not self.may_replace(connection, from_id, to_id):
                return self._open_case(connection, link, written, at=at, actor=actor)
            if not link.partial:
                self._supersede(connection, from_id, to_id, written, at=at, actor=actor)
        if known is not None:
            edges.make_whole(connection, known.edge_id, at=at)
            told: dict[str, Any] = {
                "to": to_id,
                "type": link.edge_type.value,
                "reason": link.reason,
            }
            told |= {"edge_id": known.edge_id, "was_partial": True}
            written.entries.append(Entry("relate", from_id, told))
            return Outcome(outcome="stored", edge_id=known.edge_id)
        row = _row(self.ids.new("edge_"), from_id, to_id, link, at)
        edges.insert(connection, row)
        written.entries.append(_related(row))
        return Outcome(outcome="stored", edge_id=row["edge_id"])

    def may_replace(self, connection: sa.Connection, new_id: str, old_id: str) -> bool:
        """Whether one memory is trusted far enough to replace another."""
        trust = trust_queries.with_told(connection, self.trust)
        return trust_queries.may_replace(connection, trust, new_id, old_id)

    def replaceable(
        self, connection: sa.Connection, given: MemoryInput, memory_ids: Sequence[str]
    ) -> set[str]:
        """Those of some memories that one yet to be stored may replace."""
        trust = trust_queries.with_told(connection, self.trust)
        return trust_queries.replaceable(connection, trust, captured(given), memory_ids)

    def most_trusted(self, connection: sa.Connection, memory_ids: Sequence[str]) -> set[str]:
        """Those of some memories that the best of their sources protect."""
        trust = trust_queries.with_told(connection, self.trust)
        if trust.uniform:
            return set(memory_ids)
        found = trust_queries.protections(connection, trust, memory_ids)
        best = max((each.level for each in found.values()), default=0)
        return {one for one, tier in found.items() if tier.level == best}

    def _open_case(
        self, connection: sa.Connection, link: EdgeInput, written: Written, *, at: int, actor: str
    ) -> Outcome:
        """What would replace a memory that is trusted further stands against it, undecided.

        Raises:
            IllegalTransition: one of the two is retracted.
        """
        ends = [written.resolve(each) for each in (link.from_id, link.to_id)]
        plan_supersession(*(state_of(connection, each) for each in ends))
        because = f"{_LESS_TRUSTED}: {link.reason}" if link.reason else _LESS_TRUSTED
        changed = {"edge_type": EdgeType.CONTRADICTS, "partial": False}
        case = link.model_copy(update={**changed, "reason": because[:MAX_REASON_CHARS]})
        outcome = self.join(connection, case, written, at=at, actor=actor)
        return outcome.model_copy(update={"code": LESS_TRUSTED, "message": _LESS_TRUSTED})

    def _try_join(
        self, connection: sa.Connection, link: EdgeInput, written: Written, *, at: int, actor: str
    ) -> Outcome:
        """One edge's rejection is its own: what it wrote is undone, the transaction goes on."""
        savepoint = connection.begin_nested()
        told = len(written.entries)
        try:
            outcome = self.join(connection, link, written, at=at, actor=actor)
        except (Conflict, InvalidInput, NotFound) as error:
            savepoint.rollback()
            del written.entries[told:]
            return written.reject(error)
        savepoint.commit()
        return outcome

    def _supersede(
        self,
        connection: sa.Connection,
        new_id: str,
        old_id: str,
        written: Written,
        *,
        at: int,
        actor: str,
    ) -> None:
        new, old = (state_of(connection, each) for each in (new_id, old_id))
        # Links may be read in any order, so what is replaced itself may replace; not in a circle,
        # where nothing would be left standing.
        if new.status is MemoryStatus.SUPERSEDED and edges.replaces(connection, old_id, new_id):
            raise Conflict("the memory that is to be replaced replaces the newer one itself")
        change = plan_supersession(new, old).change
        if change is None or change.status is None:
            return
        reason = f"replaced by {new_id}"
        memories.set_status(connection, old_id, change.status, at=at, actor=actor, reason=reason)
        written.entries.append(Entry("supersede", old_id, {"by": new_id}))


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


def _related(row: Mapping[str, Any]) -> Entry:
    told = {name: row[name] for name in ("reason", "edge_id", "weight", "partial")}
    names = {"to": row["to_memory_id"], "type": row["edge_type"].value}
    return Entry("relate", row["from_memory_id"], names | told)


def state_of(connection: sa.Connection, memory_id: str) -> MemoryState:
    """What the rules of the life of a memory look at. Raises NotFound."""
    memory = memories.get(connection, memory_id)
    won = memory.attributes.get("supersedes", [])
    return MemoryState(
        memory_id=memory_id,
        status=memory.status,
        confidence=memory.confidence,
        supersedes=tuple(str(one) for one in won) if isinstance(won, list) else (),
    )
