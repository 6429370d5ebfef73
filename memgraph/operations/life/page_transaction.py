"""The transaction that writes a page: everything is checked again, and written together.

A page whose assumptions no longer hold is matched, or read, again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memgraph.consolidation.drafts import FactDraft, source_of
from memgraph.consolidation.matches import is_protected, relation_of
from memgraph.consolidation.resolution import ResolutionDecision
from memgraph.errors import Conflict, InvalidInput, NotFound, QuotaReached
from memgraph.model.enums import EdgeType, Relation
from memgraph.model.events import ContradictionFound, Event, SessionConsolidated
from memgraph.model.jobs import EdgeNote, FactNote, RejectedItem
from memgraph.model.values import EdgeInput, validated
from memgraph.operations.life.pages import GroupWork, PageTurns, PageWork
from memgraph.operations.write import changes
from memgraph.operations.write.edges import ComparisonTime, StoredBatch
from memgraph.operations.write.writer import PreparedMemory
from memgraph.rules.dedup import content_hash
from memgraph.rules.echo import known_echo
from memgraph.rules.trust import KEPT_APART
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import edges, events, memories
from memgraph.store import sessions as queries
from memgraph.store.sessions import ComparisonPlace, FactRow
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot

# Facts that came between matching and writing; more of them and the page is matched anew.
MAX_SINCE = 200


class PageChanged(Exception):
    """Another process wrote the page, or a turn of it is gone: read it again."""


class StoreChanged(Exception):
    """Facts that drafts were compared with have changed: match them again."""


@dataclass(slots=True)
class PageResult:
    """The result of a page. ``last``: no turn of the session is left to be read."""

    facts: list[FactNote] = field(default_factory=list)
    edges: list[EdgeNote] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)
    rejected: list[RejectedItem] = field(default_factory=list)
    last: bool = False


def write_page(
    opened: OpenOrchestrator, page: PageTurns, work: PageWork, *, actor: str
) -> PageResult:
    """Write a page with its journal entries and the moved cursor, or nothing of it.

    Raises:
        PageMoved, StoreMoved: nothing was written.
    """
    prepared = [
        [opened.writer.prepare(draft.given) for draft in group.matched.fresh]
        for group in work.groups
    ]
    with opened.transaction(actor) as transaction:
        _require_unmoved(transaction, page, work)
        done, new_events = PageResult(), list[Event]()
        # All of them before the first is written: what one writes is beside the next.
        for group in work.groups:
            _require_unchanged_store(transaction, group, transaction.at)
        for group, items in zip(work.groups, prepared, strict=True):
            _write_group(opened, transaction, page.state.session_id, group, items, done, new_events)
        stored = sum(fact.outcome == "stored" for fact in done.facts)
        session_id, through = page.state.session_id, page.turns[-1] if page.turns else None
        after = page.state.through_pk if through is None else through.pk
        done.last = not queries.has_turns_after(transaction, session_id, after)
        queries.note_consolidated(
            transaction,
            session_id,
            page.state.through if through is None else through.memory_id,
            transaction.at if done.last else None,
        )
        if done.last:
            number = queries.extracted_facts(transaction, session_id)
            new_events.append(SessionConsolidated(session_id=session_id, facts=number))
        transaction.record([_entry(page, work, done, stored)])
        events.append(transaction, transaction.at, new_events)
    return done


def preview(work: PageWork, earlier: list[tuple[ComparisonPlace, str]]) -> PageResult:
    """Return what would be written, for a dry run.

    Args:
        earlier: what earlier pages would have stored; facts of this one are added.
    """
    done = PageResult(last=False)
    for group in work.groups:
        done.rejected += [*group.rejected, *group.undecided]
        for draft in group.matched.fresh:
            content = draft.given.content
            is_repeated = any(
                at == group.place and relation_of(content, old) is Relation.DUPLICATE
                for at, old in earlier
            )
            done.facts.append(_note(draft, None, "strengthened" if is_repeated else "stored"))
        earlier += [(group.place, draft.given.content) for draft in group.matched.fresh]
        done.facts += [
            _note(draft, target, "strengthened") for draft, target in _strengthening(group)
        ]
        texts = {f"#{draft.number}": draft.given.content for draft in group.drafts}
        done.edges += [
            _edge_note(
                link, texts.get(link.from_id, link.from_id), texts.get(link.to_id, link.to_id)
            )
            for link in group.matched.links
        ]
        done.resolved += [
            f"{decision.winner} over {decision.loser}" for decision in group.decisions
        ]
    return done


def _entry(page: PageTurns, work: PageWork, done: PageResult, stored: int) -> NewEntry:
    details = {
        "session_id": page.state.session_id,
        "through": page.turns[-1].memory_id if page.turns else page.state.through,
        "turns": work.turns,
        "facts": stored,
        "strengthened": len(done.facts) - stored,
        "last": done.last,
    }
    return NewEntry("consolidate", None, details)


def _require_unmoved(snapshot: Snapshot, page: PageTurns, work: PageWork) -> None:
    state = queries.session_state(snapshot, page.state.session_id)
    if state is None or state.through != page.state.through:
        raise PageChanged
    read = {turn for group in work.groups for turn in group.turns}
    if memories.active_ids(snapshot, read) != read:
        raise PageChanged


def _require_unchanged_store(snapshot: Snapshot, group: GroupWork, at: int) -> None:
    matched, place = group.matched, group.place
    targets = {target for target in matched.repeats.values() if not target.startswith("#")}
    if memories.active_ids(snapshot, targets) != targets:
        raise StoreChanged
    contents = [draft.given.content for draft in matched.fresh]
    if not contents:
        return
    if queries.same_facts(snapshot, {content_hash(content) for content in contents}, place, at=at):
        raise StoreChanged
    since = queries.facts_since(snapshot, matched.since, place, MAX_SINCE, at=at)
    if len(since) == MAX_SINCE or any(_touches(new, old) for new in contents for old in since):
        raise StoreChanged


def _touches(new: str, old: FactRow) -> bool:
    """Return True when a new fact repeats or contradicts one that was stored meanwhile."""
    relation = relation_of(new, old.content)
    return relation is not None and (relation is not Relation.DUPLICATE or bool(old.twin))


def _write_group(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    session_id: str,
    group: GroupWork,
    items: Sequence[PreparedMemory],
    done: PageResult,
    events_: list[Event],
) -> None:
    done.rejected += [*group.rejected, *group.undecided]
    # They were held against the store when the page was matched.
    written = opened.writer.store(transaction, items, [], compare=ComparisonTime.DONE)
    for draft, outcome in zip(group.matched.fresh, written.memories, strict=True):
        if outcome.code == QuotaReached.code:
            where = f"{session_id}, draft {draft.number}"
            done.rejected.append(RejectedItem(code=QuotaReached.code, where=where))
            continue
        if outcome.outcome != "stored":
            # All of it was looked at in this transaction: something else is wrong.
            raise StoreChanged
        done.facts.append(_note(draft, outcome.memory_id))
    for draft, target in _strengthening(group):
        rows = [group.turns[turn_id] for turn_id in draft.evidence]
        source = memories.source_id(source_of(rows, session_id))
        memories.insert_sources(transaction, {source: source_of(rows, session_id)})
        transaction.record(
            changes.strengthen(transaction, target, source_id=source, evidence=draft.evidence)
        )
        done.facts.append(_note(draft, target, "strengthened"))
    transaction.record(written.entries)
    open_ones = _join(opened, transaction, group, group.matched.links, written, done)
    for decision in group.decisions:
        _decide(opened, transaction, group, decision, written, done, open_ones)
    events_ += open_ones.values()


def _strengthening(group: GroupWork) -> list[tuple[FactDraft, str]]:
    """Return drafts that repeat stored memories, each with that memory's id.

    Without those that no person said: they repeat what is known.
    """
    pairs = []
    for draft in group.drafts:
        target = group.matched.target(draft.number)
        if not target.startswith("#") and known_echo(draft.voice) is None:
            pairs.append((draft, target))
    return pairs


def _join(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    group: GroupWork,
    links: Sequence[EdgeInput],
    written: StoredBatch,
    done: PageResult,
) -> dict[str, Event]:
    """Write edges between active memories; return an event for each open contradiction by edge."""
    stored = {end for link in links for end in (link.from_id, link.to_id) if end[0] != "#"}
    active = memories.active_ids(transaction, stored)
    rows = queries.facts_by_id(transaction, sorted(active), group.place, at=transaction.at)
    # A memory that a person stated or confirmed may be contradicted; only a person replaces it.
    protected = {memory_id for memory_id, row in rows.items() if is_protected(row)}
    resolvable = [
        link.model_copy(update={"edge_type": EdgeType.CONTRADICTS})
        if link.to_id in protected
        else link
        for link in links
        if all(end[0] == "#" or end in active for end in (link.from_id, link.to_id))
    ]
    joined = StoredBatch(ids_by_key=written.ids_by_key)
    outcomes = opened.writer.consolidator.join_all(transaction, resolvable, joined)
    transaction.record(joined.entries)
    found_events: dict[str, Event] = {}
    for link, outcome in zip(resolvable, outcomes, strict=True):
        if outcome.outcome != "stored" or outcome.edge_id is None:
            continue
        from_id, to_id = written.resolve(link.from_id), written.resolve(link.to_id)
        if outcome.code in KEPT_APART:
            link = link.model_copy(update={"edge_type": EdgeType.CONTRADICTS})
        done.edges.append(_edge_note(link, from_id, to_id))
        if link.edge_type is EdgeType.CONTRADICTS:
            found_events[outcome.edge_id] = ContradictionFound(
                edge_id=outcome.edge_id, from_id=from_id, to_id=to_id
            )
    return found_events


def _decide(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    group: GroupWork,
    decision: ResolutionDecision,
    written: StoredBatch,
    done: PageResult,
    open_ones: dict[str, Event],
) -> None:
    """Decide one contradiction as the extractor proposed, if its sides are unchanged."""
    at, actor = transaction.at, transaction.actor
    try:
        winner, loser = written.resolve(decision.winner), decision.loser
    except NotFound as error:
        done.rejected.append(RejectedItem(code=error.code, where=decision.where))
        return
    if edges.find(transaction, winner, loser, EdgeType.UPDATES) is not None:
        return  # settled by the rules
    rows = queries.facts_by_id(transaction, [winner, loser], group.place, at=at)
    if len(rows) < 2 or is_protected(rows[loser]):
        done.rejected.append(RejectedItem(code="resolution.changed", where=decision.where))
        return
    try:
        if edges.find(transaction, winner, loser, EdgeType.CONTRADICTS) is None:
            link = validated(
                EdgeInput,
                {
                    "from_id": winner,
                    "to_id": loser,
                    "edge_type": EdgeType.CONTRADICTS,
                    "reason": f"proposed: {decision.reason}",
                },
            )
            open_ones |= _join(opened, transaction, group, [link], written, done)
        edge = edges.get_between(transaction, winner, loser, EdgeType.CONTRADICTS)
        why = opened.writer.consolidator.kept_apart(transaction, winner, loser, actor)
        if why is not None:
            # It stays open: a person decides, or nobody does.
            done.rejected.append(RejectedItem(code=why, where=decision.where))
            return
        transaction.record(
            changes.resolve(transaction, edge, winner_id=winner, reason=decision.reason)
        )
    except (Conflict, InvalidInput, NotFound) as error:
        done.rejected.append(RejectedItem(code=error.code, where=decision.where))
        return
    open_ones.pop(edge.edge_id, None)
    done.resolved.append(edge.edge_id)


def _note(draft: FactDraft, memory_id: str | None, outcome: str = "stored") -> FactNote:
    return FactNote.model_construct(
        outcome=outcome,
        memory_id=memory_id,
        type=draft.given.type,
        content=draft.given.content,
        evidence=draft.evidence,
    )


def _edge_note(link: EdgeInput, from_id: str, to_id: str) -> EdgeNote:
    return EdgeNote(from_id=from_id, to_id=to_id, edge_type=link.edge_type, reason=link.reason)
