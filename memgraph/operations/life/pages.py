"""Consolidate one page of a session: read it, extract facts, match them and write the result.

A page is written in one transaction or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Literal, NamedTuple

from memgraph.consolidation import drafts
from memgraph.consolidation.drafts import (
    FactDraft,
    MatchedDrafts,
    groups_of,
    match,
    source_of,
    turn_of,
)
from memgraph.consolidation.labels import LabelExtractor
from memgraph.consolidation.ports import Extractor, PageProposal, PageUnread, TurnPage
from memgraph.model.conversation import SPEAKER_NAME, SpeakerRole, voice_of
from memgraph.model.enums import EntityType, MemoryType, Sensitivity
from memgraph.model.jobs import RejectedItem
from memgraph.model.values import EdgeInput
from memgraph.operations.life.enrichment import link_names
from memgraph.operations.life.known_memories import known_memories
from memgraph.operations.life.replacement import ChangeOutcome, KnownChange, Replacer
from memgraph.operations.write import changes
from memgraph.operations.write.edges import StoredBatch
from memgraph.operations.write.entity_links import has_part, merge_entry, speaker_named
from memgraph.operations.write.writer import PreparedMemory
from memgraph.rules.proposals import is_quoted
from memgraph.rules.similarity import statements, without_echoes
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import (
    enrichment,
    entities,
    entity_merges,
    entity_records,
    memories,
    receipts,
    sessions as queries,
)
from memgraph.store.entities import EntityName
from memgraph.store.sessions import ComparisonPlace, Consolidation, TurnRow
from memgraph.store.snapshot import JournalledTransaction, NewEntry, Snapshot
from memgraph.text.names import canonical

# Turns before a page that are read as context, because its own turns may refer to them.
CONTEXT_TURNS = 6
# The last turns of a session that are linked to a speaker whose name becomes known.
MAX_NAMED_TURNS = 200
MAX_FACTS = 60
"""The maximum number of facts from one page, the best ones: two for each of its turns."""
SURE_NAME = 0.7
"""From this confidence on, a name means what the rules say, whatever a model says."""


@dataclass(frozen=True, slots=True)
class PageTurns:
    """The turns of a page with any status, the turns before it, and the cursor it follows."""

    state: Consolidation
    turns: tuple[TurnRow, ...]
    before: tuple[TurnRow, ...]

    @property
    def through(self) -> tuple[str | None, int]:
        """The id and the key of the last turn that is read with this page."""
        last = self.turns[-1] if self.turns else None
        if last is None:
            return self.state.through, self.state.through_pk
        return last.memory_id, last.pk


@dataclass(slots=True)
class GroupWork:
    """The turns of a page with the same visibility, and the results for them so far."""

    place: ComparisonPlace
    turns: dict[str, TurnRow]
    proposal: PageProposal
    drafts: list[FactDraft] = field(default_factory=list)
    rejected: list[RejectedItem] = field(default_factory=list)
    matched: MatchedDrafts = field(default_factory=MatchedDrafts)


@dataclass(slots=True)
class PageWork:
    """A page after extraction."""

    groups: list[GroupWork] = field(default_factory=list)
    turns: int = 0
    echoes: int = 0
    by_model: bool = True


def read_page(snapshot: Snapshot, state: Consolidation, limit: int) -> PageTurns:
    """Return the next turns after the cursor of ``state``."""
    return PageTurns(
        state,
        tuple(queries.turns_after(snapshot, state.session_id, state.through_pk, limit)),
        tuple(queries.turns_before(snapshot, state.session_id, state.through_pk, CONTEXT_TURNS)),
    )


def propose(
    opened: OpenOrchestrator,
    extractor: Extractor,
    page: PageTurns,
    now_ms: int,
    is_over: Callable[[], bool],
) -> PageWork:
    """Run the extractor once for each group of turns with the same visibility.

    No transaction is open meanwhile.

    Args:
        is_over: checked between groups; if it is true, the page stays unread.

    Raises:
        PageUnread, ProviderError: the page is left for a later run.
    """
    work = PageWork(by_model=extractor.name != LabelExtractor.name)
    handed_out = _handed_out(opened, page.state.session_id)
    turns, echoes = _without_echoes([t for t in page.turns if _counts(t)], handed_out)
    before, _ = _without_echoes(page.before, handed_out)
    work.turns, work.echoes = sum(map(_counts, page.turns)), echoes
    for place, rows in groups_of(turns).items():
        if work.groups and is_over():
            raise PageUnread
        share = ceil(MAX_FACTS * len(rows) / len(turns))
        context = [row for row in before if _open_to(row, place)]
        proposal = extractor.propose(
            TurnPage(
                session_id=page.state.session_id,
                turns=tuple(turn_of(row) for row in rows),
                before=tuple(turn_of(row) for row in context),
                sensitivity=Sensitivity(place.sensitivity),
                known=partial(known_memories, opened, [*context, *rows], now_ms),
                max_facts=share,
            )
        )
        work.groups.append(_drafted(page, place, rows, proposal, share))
    return work


def match_all(opened: OpenOrchestrator, work: PageWork, now_ms: int) -> None:
    """Match all drafts against the current state of the store."""
    for group in work.groups:
        with opened.database.read() as snapshot:
            group.matched = match(snapshot, group.drafts, at=now_ms)


def _drafted(
    page: PageTurns,
    place: ComparisonPlace,
    rows: Sequence[TurnRow],
    proposal: PageProposal,
    limit: int,
) -> GroupWork:
    turns = {row.memory_id: row for row in rows}
    work = GroupWork(place, turns, proposal, rejected=list(proposal.rejected))
    session_id = page.state.session_id
    for number, candidate in enumerate(proposal.facts):
        if len(work.drafts) == limit:
            remaining = len(proposal.facts) - number
            where = f"session {session_id}, facts from {number}"
            work.rejected.append(RejectedItem(code="fact.too_many", where=where, count=remaining))
            break
        outcome = drafts.draft(candidate, number, turns, session_id)
        if isinstance(outcome, FactDraft):
            work.drafts.append(outcome)
        else:
            work.rejected.append(outcome)
    return work


def _counts(row: TurnRow) -> bool:
    return row.status == "active" and bool(row.content.strip())


def _open_to(row: TurnRow, place: ComparisonPlace) -> bool:
    """Return True if all readers of the facts of a place may see this turn."""
    level = Sensitivity(row.sensitivity).level
    return (
        (row.scope, row.scope_id) == (place.scope, place.scope_id)
        and row.agent_id in (None, place.agent_id)
        and level <= Sensitivity(place.sensitivity).level
    )


def _handed_out(opened: OpenOrchestrator, session_id: str) -> dict[str, int]:
    """Return the lines and sentences handed out to a session, folded, each with its first time."""
    opened.receipts.flush()
    with opened.database.read() as snapshot:
        memories = receipts.handed_out(snapshot, session_id)
    times: dict[str, int] = {}
    for memory in memories:
        for statement in statements(f"{memory.content}\n{memory.summary or ''}"):
            times[statement] = min(memory.first_at, times.get(statement, memory.first_at))
    return times


def _without_echoes(
    rows: Sequence[TurnRow], handed_out: Mapping[str, int]
) -> tuple[list[TurnRow], int]:
    turns, echoes = [], 0
    for row in rows:
        text, count = without_echoes(row.content, handed_out, row.stored_at)
        echoes += count
        if text.strip():
            turns.append(row._replace(content=text))
    return turns, echoes


class PageChanged(Exception):
    """Another process wrote the page, or one of its turns is gone: read the page again."""


class StoreChanged(Exception):
    """The facts that drafts were compared with have changed: match the drafts again."""


class FactNote(NamedTuple):
    """A fact found in a page, the id of its memory, and the ids of its turns."""

    outcome: Literal["stored", "strengthened"]
    memory_id: str
    type: MemoryType
    content: str
    evidence: tuple[str, ...]


@dataclass(slots=True)
class PageReport:
    """What was read and written of a page.

    Attributes:
        turns: the number of turns with a text.
        echoes: the number of sentences that only repeated delivered memories and were left out.
        replaced: the ids of the memories that a model found to be changed or ended.
    """

    turns: int = 0
    echoes: int = 0
    facts: list[FactNote] = field(default_factory=list)
    edges: list[EdgeInput] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    rejected: list[RejectedItem] = field(default_factory=list)

    def add(self, other: PageReport) -> None:
        self.turns += other.turns
        self.echoes += other.echoes
        self.facts += other.facts
        self.edges += other.edges
        self.replaced += other.replaced
        self.rejected += other.rejected


def write_page(
    opened: OpenOrchestrator, page: PageTurns, work: PageWork, *, actor: str
) -> tuple[PageReport, bool]:
    """Write a page, its journal entries and the new cursor in one transaction.

    Returns:
        What was written, and True if no turn of the session is left to read.

    Raises:
        PageChanged, StoreChanged: nothing was written.
    """
    prepared = [
        [opened.writer.prepare(draft.given) for draft in group.matched.fresh]
        for group in work.groups
    ]
    model = next((group.proposal.model for group in work.groups if group.proposal.model), None)
    if model is not None:
        actor = f"{actor}:{model}"
    session_id, (through, through_pk) = page.state.session_id, page.through
    report = PageReport(work.turns, work.echoes)
    with opened.transaction(actor) as transaction:
        _require_unmoved(transaction, page, work)
        # Check all groups before the first is written: later ones would see its facts as new.
        for group in work.groups:
            _require_unchanged_store(transaction, group, transaction.at)
        for group, items in zip(work.groups, prepared, strict=True):
            _write_group(opened, transaction, session_id, group, items, report)
        is_last = not queries.has_turns_after(transaction, session_id, through_pk)
        consolidated_at = transaction.at if is_last else None
        queries.note_consolidated(
            transaction, session_id, through, consolidated_at, by_model=work.by_model
        )
        stored_count = sum(fact.outcome == "stored" for fact in report.facts)
        details = {
            "session_id": session_id,
            "through": through,
            "turns": work.turns,
            "facts": stored_count,
            "strengthened": len(report.facts) - stored_count,
            "last": is_last,
        }
        transaction.record([NewEntry("consolidate", None, details)])
    return report, is_last


def _require_unmoved(snapshot: Snapshot, page: PageTurns, work: PageWork) -> None:
    state = queries.session_state(snapshot, page.state.session_id)
    if state is None or state.through != page.state.through:
        raise PageChanged
    turn_ids = {turn for group in work.groups for turn in group.turns}
    if memories.active_ids(snapshot, turn_ids) != turn_ids:
        raise PageChanged


def _require_unchanged_store(snapshot: Snapshot, group: GroupWork, at: int) -> None:
    matched = group.matched
    targets = {target for target in matched.repeats.values() if not target.startswith("#")}
    if memories.active_ids(snapshot, targets) != targets:
        raise StoreChanged
    if matched.fresh and memories.last_pk(snapshot) != matched.last_pk:
        again = match(snapshot, group.drafts, at=at)
        if again.repeats != matched.repeats:
            raise StoreChanged


def _write_group(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    session_id: str,
    group: GroupWork,
    items: Sequence[PreparedMemory],
    report: PageReport,
) -> None:
    report.rejected += group.rejected
    first_pk = memories.last_pk(transaction) + 1
    by_model = group.proposal.model is not None
    shown = group.proposal.shown if by_model else None
    written = opened.writer.store(transaction, items, [], known=shown)
    for draft, outcome in zip(group.matched.fresh, written.memories, strict=True):
        if outcome.outcome != "stored" or outcome.memory_id is None:
            # Every reason was checked in this transaction, so the store must have changed.
            raise StoreChanged
        report.facts.append(_note("stored", outcome.memory_id, draft))
    for note in _repeated(group):
        source = source_of([group.turns[turn_id] for turn_id in note.evidence], session_id)
        source_id = memories.source_id(source)
        memories.insert_sources(transaction, {source_id: source})
        transaction.record(
            changes.strengthen(
                transaction, note.memory_id, source_id=source_id, evidence=note.evidence
            )
        )
        report.facts.append(note)
    transaction.record(written.entries)
    roles = _name_speakers(opened, transaction, session_id, group)
    if by_model:
        _name_entities(opened, transaction, group, first_pk, roles)
        _change_known(opened, transaction, group, written, report)


def _name_entities(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    group: GroupWork,
    first_pk: int,
    roles: Collection[str],
) -> None:
    """Link the facts and turns of a page to the entities that the model named; add their aliases.

    A page that a model has read needs no other enrichment.

    Args:
        first_pk: the key of the first of the facts, which were stored one after another.
        roles: the keys of roles such as "user", which are no names.
    """
    named = opened.naming.named_by_model
    names: dict[int, list[EntityName]] = {}
    pairs: list[tuple[EntityName, EntityName]] = []
    said = " ".join(canonical(turn.content) for turn in group.turns.values())
    for pk, draft in enumerate(group.matched.fresh, start=first_pk):
        names[pk] = named((each.name, each.type) for each in draft.entities)
        for each in draft.entities:
            both = named([(each.name, each.type), (each.same_as, each.type)])
            if len(both) == 2 and both[1].key in said and both[1].key not in roles:
                # "Mr. Petrov" is the name Petrov.
                known = opened.find_names(each.same_as)
                pairs.append((both[0], known[0] if len(known) == 1 else both[1]))
    everything = dict.fromkeys(name for found in names.values() for name in found)
    unsure = _unsure(transaction, pairs)
    for turn in group.turns.values():
        text = canonical(turn.content)
        names[turn.pk] = [name for name in everything if name.key in text]
        for full, short in unsure:
            if short.key in text.split():
                names[turn.pk] += [full, short]
    _add_aliases(transaction, pairs)
    open_memories = enrichment.still_open(transaction, list(names))
    link_names(opened, transaction, names, open_memories, enriched_at=transaction.at)
    _add_aliases(transaction, pairs)


def _unsure(
    transaction: JournalledTransaction, pairs: Sequence[tuple[EntityName, EntityName]]
) -> list[tuple[EntityName, EntityName]]:
    """Return the full and the short names of a page whose short name several persons have.

    Such a name is as sure as one of the persons who have it: below ``SURE_NAME`` the model decides
    whom the page means.
    """
    ordered = [sorted(pair, key=lambda name: -len(name.key)) for pair in pairs]
    people = entities.people_of(transaction, {short.key for _, short in ordered})
    return [
        (full, short)
        for full, short in ordered
        if has_part(full, short.key) and 1 / len(people.get(short.key) or (full,)) < SURE_NAME
    ]


def _name_speakers(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    session_id: str,
    group: GroupWork,
) -> set[str]:
    """Link a person's turns of the session to the name behind their role.

    It is the name that one of the turns was stored with (``attributes.speaker_name``), or that the
    model read. It is kept with each turn, so that later pages use it, too.

    Returns:
        The keys of the roles of persons that are no names, such as "user".
    """
    last_pk = max(turn.pk for turn in group.turns.values())
    rows = {
        row.memory_id: (row.pk, canonical(row.source_role or ""))
        for row in queries.turns_before(transaction, session_id, last_pk, MAX_NAMED_TURNS)
        if voice_of(row.source_role, row.told_as) is SpeakerRole.PERSON
        and speaker_named(row.source_role or "", row.told_as) is None
        and _open_to(row, group.place)
    }
    roles = {role for _, role in rows.values()}
    turns = sorted(memories.get_many(transaction, list(rows)), key=lambda t: rows[t.memory_id])
    names = {
        rows[turn.memory_id][1]: turn.attributes[SPEAKER_NAME]
        for turn in turns
        if SPEAKER_NAME in turn.attributes
    }
    names |= {
        canonical(entity.same_as): entity.name
        for draft in group.drafts
        for entity in draft.entities
        if entity.type is EntityType.PERSON and canonical(entity.same_as) in roles
    }
    named = []
    for turn in turns:
        pk, role = rows[turn.memory_id]
        if role in names and SPEAKER_NAME not in turn.attributes:
            attributes = {**turn.attributes, SPEAKER_NAME: names[role]}
            memories.update(transaction, turn.memory_id, attributes=attributes)
            named.append(pk)
    linked = entities.links_of(transaction, named)
    opened.writer.linker.link(transaction, [(pk, ()) for pk in named], linked)
    return roles


def _add_aliases(
    transaction: JournalledTransaction, pairs: Sequence[tuple[EntityName, EntityName]]
) -> None:
    """Add names of one entity as its aliases.

    A name that is another entity's stays with it, except a first or last name alone: too uncertain
    to be kept apart, its entity is merged into the one with the full name.
    """
    for pair in pairs:
        keys = entities.find(transaction, pair).keys
        full, short = sorted(pair, key=lambda name: -len(name.key))
        apart = full in keys and keys.get(short, keys[full]) != keys[full]
        if apart and short.type is EntityType.PERSON:
            # Only this person has that first or last name.
            meant = entities.by_one_name(transaction, [short.key]).get(short.key)
            if meant == keys[full]:
                rows = entity_records.by_keys(transaction, [full.key, short.key])
                by_pk = {row.pk: row for row in rows}
                moved = entity_merges.merge(transaction, keys[full], keys[short])
                reason = "one person, by a page of turns"
                merged = merge_entry(by_pk[keys[full]], by_pk[keys[short]], moved, reason)
                transaction.record([merged])
        for known, other in (pair, pair[::-1]):
            if known in keys and other not in keys:
                entities.add_spellings(transaction, [(other.key, keys[known], other.name)])
                break


def _repeated(group: GroupWork) -> Iterator[FactNote]:
    """Yield the stored memories that the page says again, each with the turns that do.

    Only a person adds evidence: an agent may repeat what the memory told it.
    """
    for draft in group.drafts:
        target = group.matched.target(draft.number)
        if not target.startswith("#") and draft.voice is SpeakerRole.PERSON:
            yield _note("strengthened", target, draft)
    for repeated in group.proposal.repeated:
        turns = [group.turns[turn_id] for turn_id in repeated.evidence]
        evidence = tuple(
            turn.memory_id
            for turn in turns
            if voice_of(turn.source_role, turn.told_as) is SpeakerRole.PERSON
        )
        if evidence:
            known = repeated.memory_id, repeated.type, repeated.content
            yield FactNote("strengthened", *known, evidence)


def _note(outcome: Literal["stored", "strengthened"], memory_id: str, draft: FactDraft) -> FactNote:
    return FactNote(outcome, memory_id, draft.given.type, draft.given.content, draft.evidence)


def _change_known(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    group: GroupWork,
    written: StoredBatch,
    report: PageReport,
) -> None:
    replacer = Replacer(opened, transaction, group.proposal.model or "")
    pending: list[KnownChange] = []
    for draft in group.drafts:
        if draft.changes is not None:
            new_id = written.resolve(group.matched.target(draft.number))
            if new_id != draft.changes:
                quote = str(draft.given.attributes["quote"])
                pending.append(_change(group, draft.changes, new_id, draft.evidence, quote))
    pending += [
        _change(group, ended.memory_id, None, ended.evidence, ended.quote)
        for ended in group.proposal.ended
    ]
    for change in pending:
        outcome, links = replacer.apply(change)
        report.edges += links
        if outcome is ChangeOutcome.REPLACED:
            report.replaced.append(change.old_id)
        else:
            where = f"{change.quoted.memory_id} to {change.old_id}"
            report.rejected.append(RejectedItem(code=f"change.{outcome}", where=where))


def _change(
    group: GroupWork, old_id: str, new_id: str | None, evidence: Sequence[str], quote: str
) -> KnownChange:
    cited = tuple(group.turns[turn_id] for turn_id in evidence)
    quoted = next((turn for turn in cited if is_quoted(quote, turn.content)), cited[-1])
    return KnownChange(old_id, new_id, cited, quoted, quote)
