"""One page of a session: read, proposed, matched; then written in one transaction or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil

from memgraph.consolidation import matches as matching
from memgraph.consolidation.drafts import FactDraft, draft, groups_of, turn_of
from memgraph.consolidation.matches import MatchedDrafts, match
from memgraph.consolidation.ports import (
    ConflictJudge,
    Extractor,
    ModelBudget,
    PageProposal,
    SuspectedContradiction,
    TurnPage,
)
from memgraph.consolidation.resolution import ResolutionDecision, decide
from memgraph.errors import ProviderAnswerInvalid
from memgraph.model.enums import Scope, Sensitivity
from memgraph.model.jobs import RejectedItem
from memgraph.model.values import EdgeInput
from memgraph.operations.life.echoes import echo_filter
from memgraph.operations.life.models import RulePages
from memgraph.rules.echo import heard_role, judged_at
from memgraph.rules.scope import Viewer
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import sessions as queries
from memgraph.store.sessions import ComparisonPlace, Consolidation, TurnRow
from memgraph.store.snapshot import Snapshot

# Turns before a page, for what its own ones refer to.
CONTEXT_TURNS = 6


@dataclass(frozen=True, slots=True)
class PageResources:
    """The resources shared by the pages of one run."""

    opened: OpenOrchestrator
    extractor: Extractor
    judge: ConflictJudge | None
    budget: ModelBudget
    now_ms: int
    stop: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class PageTurns:
    """Turns as they were read, of any status; the cursor that they follow."""

    state: Consolidation
    turns: tuple[TurnRow, ...]
    before: tuple[TurnRow, ...]


@dataclass(slots=True)
class GroupWork:
    """The turns of one place, and the results so far."""

    place: ComparisonPlace
    turns: dict[str, TurnRow]
    proposal: PageProposal
    drafts: list[FactDraft] = field(default_factory=list)
    rejected: list[RejectedItem] = field(default_factory=list)
    matched: MatchedDrafts = field(default_factory=MatchedDrafts)
    decisions: list[ResolutionDecision] = field(default_factory=list)
    undecided: list[RejectedItem] = field(default_factory=list)


@dataclass(slots=True)
class PageWork:
    """A page after the extractor. ``incomplete``: why none of it may be kept."""

    groups: list[GroupWork] = field(default_factory=list)
    turns: int = 0
    echoes: int = 0
    calls: int = 0
    tokens: int = 0
    incomplete: bool = False


def read_page(snapshot: Snapshot, state: Consolidation, limit: int) -> PageTurns:
    """Return the next turns after the cursor of ``state``."""
    return PageTurns(
        state,
        tuple(queries.turns_after(snapshot, state.session_id, state.through_pk, limit)),
        tuple(queries.turns_before(snapshot, state.session_id, state.through_pk, CONTEXT_TURNS)),
    )


def propose(tools: PageResources, page: PageTurns) -> PageWork:
    """Ask the extractor for each place among the turns. No transaction is open meanwhile.

    Raises:
        ProviderError: the page stays for a later run.
    """
    work = PageWork()
    turns, echoes = _without_echoes(tools.opened, [t for t in page.turns if _counts(t)])
    before, _ = _without_echoes(tools.opened, page.before)
    work.turns, work.echoes = sum(map(_counts, page.turns)), echoes
    limit = tools.opened.settings.memory.consolidation.max_facts_per_page
    for place, rows in groups_of(turns).items():
        share = ceil(limit * len(rows) / len(turns))
        proposal = _ask(tools, _page(tools, page, place, rows, before, share))
        work.calls += proposal.calls
        work.tokens += proposal.tokens
        if not proposal.complete:
            work.incomplete = True
            return work
        work.groups.append(_drafted(page, place, rows, proposal, share))
    return work


def _ask(tools: PageResources, page: TurnPage) -> PageProposal:
    """Return the extractor's proposals; an unusable answer is replaced by those of the rules."""
    calls, tokens = page.budget.calls, page.budget.tokens
    try:
        return tools.extractor.propose(page)
    except ProviderAnswerInvalid as error:
        where = f"session {page.session_id}, turns from {page.turns[0].memory_id}"
        by_rules = RulePages().propose(page)
        return PageProposal(
            facts=by_rules.facts,
            rejected=(RejectedItem(code=error.code, where=where), *by_rules.rejected),
            calls=calls - page.budget.calls,
            tokens=tokens - page.budget.tokens,
        )


def match_all(tools: PageResources, page: PageTurns, work: PageWork) -> None:
    """Match all drafts and decisions with the store as it is now."""
    read, at = tools.opened.database.read, tools.now_ms
    for group in work.groups:
        group.matched = match(read, group.drafts, at=at)
        dismissed: list[EdgeInput] = []
        if tools.judge is not None:
            dismissed = _dismiss(tools.judge, group, tools.budget)
        group.decisions, group.undecided = decide(
            read,
            group.proposal.resolutions,
            group.drafts,
            group.matched,
            dismissed={frozenset((link.from_id, link.to_id)) for link in dismissed},
            at=at,
            where=f"session {page.state.session_id}",
        )


def _dismiss(judge: ConflictJudge, group: GroupWork, budget: ModelBudget) -> list[EdgeInput]:
    """Drop the edges that the judge considers no contradiction, and return them."""
    contents = {
        f"#{draft.number}": draft.given.content for draft in group.drafts
    } | group.matched.texts
    doubtful = group.matched.doubtful
    suspected = [
        link for link in group.matched.links if frozenset((link.from_id, link.to_id)) in doubtful
    ]
    if not suspected:
        return []
    words = judge.judge(
        [
            SuspectedContradiction(contents[link.to_id], contents[link.from_id], link.weight)
            for link in suspected
        ],
        sensitivity=Sensitivity(group.place.sensitivity),
        budget=budget,
    )
    dismissed = [link for link, word in zip(suspected, words, strict=True) if word is False]
    group.matched.links = [link for link in group.matched.links if link not in dismissed]
    return dismissed


def _page(
    tools: PageResources,
    page: PageTurns,
    place: ComparisonPlace,
    rows: Sequence[TurnRow],
    before: Sequence[TurnRow],
    limit: int,
) -> TurnPage:
    return TurnPage(
        session_id=page.state.session_id,
        turns=tuple(turn_of(row) for row in rows),
        before=tuple(turn_of(row) for row in before if _open_to(row, place)),
        sensitivity=Sensitivity(place.sensitivity),
        known=matching.StoredFacts(tools.opened.database.read, place, tools.now_ms),
        budget=tools.budget,
        max_facts=limit,
        now_ms=tools.now_ms,
        stop=tools.stop,
    )


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
        judged = draft(candidate, number, turns, session_id)
        if isinstance(judged, FactDraft):
            work.drafts.append(judged)
        else:
            work.rejected.append(judged)
    return work


def _counts(row: TurnRow) -> bool:
    return row.status == "active" and bool(row.content.strip())


def _open_to(row: TurnRow, place: ComparisonPlace) -> bool:
    """Return True when a turn may be shown to readers of the facts of a place."""
    level = Sensitivity(row.sensitivity).level
    return (
        (row.scope, row.scope_id) == (place.scope, place.scope_id)
        and row.agent_id in (None, place.agent_id)
        and level <= Sensitivity(place.sensitivity).level
    )


def _speaker(row: TurnRow) -> Viewer:
    """Return a viewer of what was visible where the turn was said."""
    ids = frozenset() if row.scope_id is None else frozenset({row.scope_id})
    return Viewer(
        clearance=Sensitivity(row.sensitivity),
        project_ids=ids if row.scope == Scope.PROJECT else frozenset(),
        session_ids=ids if row.scope == Scope.SESSION else frozenset(),
        agent_id=row.agent_id,
    )


def _without_echoes(opened: OpenOrchestrator, rows: Sequence[TurnRow]) -> tuple[list[TurnRow], int]:
    """Return turns without what the memory itself handed out, and how much that was."""
    filter_ = echo_filter(opened, [turn_of(row) for row in rows])
    turns, echoes = [], 0
    for row in rows:
        remaining = filter_.without_echo(
            row.content,
            source_role=heard_role(row.source_role, row.told_as),
            at_ms=judged_at(row.at, row.stored_at),
            viewer=_speaker(row),
        )
        echoes += len(remaining.reasons)
        if remaining.text.strip():
            turns.append(row._replace(content=remaining.text))
    return turns, echoes
