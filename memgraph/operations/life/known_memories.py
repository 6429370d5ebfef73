"""Choose the stored facts that a page of turns is shown with, because it may change them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from memgraph.clock import iso
from memgraph.consolidation.comparison import NewStatement, find_candidates
from memgraph.consolidation.drafts import place_of
from memgraph.consolidation.ports import MAX_KNOWN, KnownMemory
from memgraph.model.conversation import HAPPENED
from memgraph.model.enums import MemoryKind
from memgraph.model.values import Memory
from memgraph.operations.write.comparisons import cosines, nearest
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import comparisons, entities, memories, sessions as queries
from memgraph.store.comparisons import ComparedMemory, ComparisonLocation
from memgraph.store.sessions import TurnRow
from memgraph.store.snapshot import Snapshot
from memgraph.text.dates import period_of

# The newest facts of a place, which are ranked all; older ones are searched for.
_POOL = 500
_EACH = 12
_SAME_SUBJECT = 0.3
_BY_WORDS = 0.2


def known_memories(
    opened: OpenOrchestrator, rows: Sequence[TurnRow], at: int, limit: int = MAX_KNOWN
) -> list[KnownMemory]:
    """Return the stored facts that turns of one place may touch, in the order they were said.

    If there are more than ``limit``, those that a speaker of the turns said, or that name one of
    them, come first, and then those near to one of the turns by vector, words or entities.
    """
    place = place_of(rows[-1])
    location = ComparisonLocation(place, at)
    with opened.database.read() as snapshot:
        newest = comparisons.newest_facts(snapshot, location, _POOL)
        by_id = {each.memory_id: each for each in newest}
        scores: dict[str, float] = {}
        if len(by_id) > limit or len(newest) == _POOL:
            scores = _closeness(opened, snapshot, rows, by_id, at)
        chosen = sorted(by_id, key=lambda each: (-scores.get(each, 0), each))[:limit]
        speakers = queries.speakers(snapshot, chosen) if chosen else {}
        stored = {each.memory_id: each for each in memories.get_many(snapshot, chosen)}
    known = [
        KnownMemory(
            memory_id=each,
            content=by_id[each].content,
            type=stored[each].type,
            importance=stored[each].importance,
            speaker=_speaker(by_id[each], [role for role, _ in speakers.get(each, ())]),
            said_at=by_id[each].said_at,
            happened=_happened(stored[each], by_id[each].said_at),
        )
        for each in chosen
    ]
    return sorted(known, key=lambda each: (each.said_at, each.memory_id))


def _closeness(
    opened: OpenOrchestrator,
    snapshot: Snapshot,
    rows: Sequence[TurnRow],
    by_id: dict[str, ComparedMemory],
    at: int,
) -> dict[str, float]:
    """Return how close facts are to turns, up to about 1.5; those found are added to ``by_id``."""
    place, scores = place_of(rows[-1]), defaultdict[str, float](float)
    links = entities.links_of(snapshot, [row.pk for row in rows])
    for row in rows:
        statement = NewStatement(
            row.content,
            place,
            row.memory_id,
            entity_pks=tuple(sorted(entity for entity, pk in links if pk == row.pk)),
            near=nearest(opened, snapshot, row.pk, place),
        )
        found = find_candidates(
            snapshot, statement, at=at, limit=_EACH, marked=False, kind=MemoryKind.FACT
        )
        for rank, each in enumerate(found, start=1):
            by_id.setdefault(each.memory_id, each)
            scores[each.memory_id] = max(scores[each.memory_id], _BY_WORDS / rank)
    facts = list(by_id.values())
    turn_pks, fact_pks = [row.pk for row in rows], [each.pk for each in facts]
    roles = {row.source_role for row in rows}
    said_by = queries.speakers(snapshot, list(by_id))
    linked = entities.links_of(snapshot, fact_pks)
    meant = {entity for entity, _ in links}
    subjects = {pk for entity, pk in linked if entity in meant}
    near = cosines(opened, snapshot, fact_pks, turn_pks)
    for place_in_facts, each in enumerate(facts):
        if near is not None:
            scores[each.memory_id] += float(near[place_in_facts].max())
        by_them = roles & {role for role, _ in said_by.get(each.memory_id, ())}
        if by_them or each.pk in subjects:
            scores[each.memory_id] += _SAME_SUBJECT
    return scores


def _happened(memory: Memory, said_at: int) -> str:
    """Return the day, month or year of a memory's event, unless it is the day of ``said_at``."""
    at = memory.event_time
    if at is None:
        return ""
    day = iso(at)[: len("2024-05-17")]
    if period := period_of(memory.attributes.get(HAPPENED), at):
        return period
    return "" if iso(said_at).startswith(day) else day


def _speaker(memory: ComparedMemory, roles: Sequence[str | None]) -> str:
    named = dict.fromkeys(role for role in (memory.source_role, *roles) if role)
    return " and ".join(named) or memory.source_path or ""
