"""Contradictions as cases: both sides, a suggestion, dismissal; and what fell with its ground."""

from __future__ import annotations

from typing import Any

import pytest
from working import put

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.clock import MS_PER_DAY, FixedClock, iso
from memgraph.errors import Conflict, NotFound
from memgraph.model.access import Permission
from memgraph.model.enums import MemoryStatus, Scope
from memgraph.model.graph import Case, InvalidPremise
from memgraph.model.influence import Impact
from memgraph.store import supports


def rival(orc: Orchestrator, clock: FixedClock, **later: Any) -> tuple[str, str, str]:
    """Two memories a week apart that contradict each other, and the edge."""
    old = put(orc, "The office is in Lisbon.")
    clock.advance(days=7)
    new = put(orc, "The office is in Porto.", **later)
    return old, new, orc.relate(new, "Contradicts", old)


def codes(case: Case) -> list[tuple[str, str]]:
    assert case.suggestion is not None
    return [(each.code, each.favours) for each in case.suggestion.reasons]


def test_a_case_shows_both_sides_and_suggests(orc: Orchestrator, clock: FixedClock) -> None:
    old, new, edge = rival(orc, clock)
    orc.confirm(old)
    resting = put(orc, "Mail goes to Lisbon.", derived_from=[old])
    further = put(orc, "The courier goes to Lisbon.", derived_from=[resting])
    case = orc.contradictions.get(edge)
    assert (case.state, case.moot, case.edge.edge_id) == ("open", False, edge)
    assert [side.memory.memory_id for side in case.sides] == [old, new]
    assert [side.stored_by for side in case.sides] == [orc.actor] * 2
    assert [side.confirmed for side in case.sides] == [True, False]
    assert [side.influence.derived for side in case.sides] == [2, 0]
    assert codes(case)[0] == ("confirmed", old)
    assert ("newer", new) in codes(case)
    assert case.suggestion is not None
    assert case.suggestion.winner_id == old
    assert [each.action for each in case.journal] == ["relate"]
    assert orc.get(further).status is MemoryStatus.ACTIVE


def test_what_lost_replaces_what_won_only_after_the_decision_is_reopened(
    orc: Orchestrator, clock: FixedClock
) -> None:
    old, new, edge = rival(orc, clock)
    mark = orc.relate(new, "Updates", old, weight=0.9)
    later = put(orc, "The office is in Faro.")
    orc.contradictions.resolve(edge, winner=old, reason="the letterhead says so")

    def status() -> list[str]:
        return [orc.get(each).status.value for each in (old, new, later)]

    with pytest.raises(Conflict, match=f"reopen {edge[-6:].lower()} first"):
        orc.contradictions.accept(mark, reason="the lease says so")
    assert status() == ["active", "superseded", "active"]
    orc.relate(later, "Updates", old)
    # Also over what replaced the winner.
    with pytest.raises(Conflict, match="reopen"):
        orc.relate(new, "Updates", later)
    assert status() == ["superseded", "superseded", "active"]
    orc.contradictions.reopen(edge, reason="an old letterhead")
    # Being handed out is a use; this is none.
    assert orc.get(new).last_accessed_at is None
    orc.relate(new, "Updates", later)
    assert status() == ["superseded", "active", "superseded"]


def test_a_dismissed_pair_is_not_raised_again_by_whoever_says_the_same(
    orc: Orchestrator, service: MemoryService, clock: FixedClock
) -> None:
    old, new, edge = rival(orc, clock)
    orc.contradictions.dismiss(edge, reason="two offices")
    case = orc.contradictions.get(edge)
    assert (case.state, case.suggestion) == ("dismissed", None)
    assert case.edge.resolution == {
        "outcome": "dismissed",
        "reason": "two offices",
        "actor": orc.actor,
    }
    assert [each.action for each in case.journal] == ["relate", "dismiss"]
    assert [orc.get(each).status for each in (old, new)] == [MemoryStatus.ACTIVE] * 2
    [decided] = orc.contradictions.list(resolved=True).items
    assert (decided.state, decided.moot) == ("dismissed", False)
    assert orc.relate(old, "Contradicts", new) == edge
    assert orc.contradictions.list().items == ()
    recalled = orc.recall("office").items
    assert [item.modifiers["contradiction"] for item in recalled] == [1.0, 1.0]
    with pytest.raises(Conflict):
        orc.contradictions.dismiss(edge, reason="again")
    with pytest.raises(Conflict):
        orc.contradictions.resolve(edge, winner=new, reason="moved")
    assert orc.verify().ok
    # A side that comes back, from the same file or another, says nothing new.
    orc.retract(old, reason="cleaned up")
    back = put(orc, "The office is in Lisbon.")
    assert back != old
    assert orc.relate(back, "Contradicts", new) == edge
    orc.retract(new, reason="cleaned up")
    other = put(orc, "The office is in  Porto.")
    assert orc.relate(other, "Contradicts", back) == edge
    assert orc.contradictions.list().items == ()
    orc.contradictions.reopen(edge, reason="one was closed")
    assert orc.relate(back, "Contradicts", other) != edge


def test_a_dismissal_holds_where_it_was_said(service: MemoryService, orc: Orchestrator) -> None:
    """In another project the same words may contradict each other; and what is hidden, too."""
    wide = service.orchestrator(orc.name, viewer=Viewer(project_ids=frozenset({"a", "b"})))
    edges = []
    for project in ("a", "b"):
        where = {"scope": "project", "scope_id": project}
        one = put(wide, "The office is in Lisbon.", **where)
        other = put(wide, "The office is in Porto.", **where)
        edges.append(wide.relate(one, "Contradicts", other))
        if project == "a":
            wide.contradictions.dismiss(edges[0], reason="two offices")
    assert len(set(edges)) == 2
    assert [each.edge.edge_id for each in wide.contradictions.list().items] == edges[1:]


def test_a_dismissal_is_taken_back_and_one_beside_it_stands_against_nobody(
    orc: Orchestrator, clock: FixedClock
) -> None:
    old, new, edge = rival(orc, clock)
    third = put(orc, "The office is in Faro.")
    other = orc.relate(third, "Contradicts", old)
    for each in (edge, other):
        orc.contradictions.dismiss(each, reason="two offices")
    orc.contradictions.reopen(edge, reason="one was closed")
    assert orc.contradictions.get(edge).state == "open"
    orc.contradictions.resolve(edge, winner=new, reason="moved")
    assert orc.contradictions.get(edge).state == "resolved"
    assert orc.get(old).status is MemoryStatus.SUPERSEDED
    actions = [each.action for each in orc.contradictions.get(edge).journal]
    assert actions == ["relate", "dismiss", "reopen", "resolve"]
    orc.contradictions.reopen(edge, reason="it did not")
    assert orc.get(old).status is MemoryStatus.ACTIVE
    orc.retract(old, reason="wrong")
    orc.restore(old, reason="right")
    assert orc.get(old).status is MemoryStatus.ACTIVE
    assert orc.verify().ok


def test_a_case_as_it_was_counts_what_was_known_then_alone(
    orc: Orchestrator, service: MemoryService, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later recalls take no room from earlier ones, and later sources count for nothing."""
    old, new, edge = rival(orc, clock)
    orc.recall("Lisbon office")
    clock.advance(ms=1_000)
    then = clock.now_ms()
    clock.advance(days=1)
    again = put(orc, "Lisbon has the office.", source={"workflow_run_id": "run-9"})
    source_id = orc.get(again).source_id
    with service.opened("orc-1") as opened, opened.transaction("user") as transaction:
        assert supports.add(transaction, old, source_id)
    monkeypatch.setattr("memgraph.graph.cases.MAX_RECEIPTS", 1)
    for _ in range(3):
        clock.advance(days=1)
        last = orc.recall("Lisbon office").receipt_id
    assert orc.receipts.get(last).items
    orc.contradictions.resolve(edge, winner=new, reason="moved")
    case = orc.contradictions.get(edge, as_of=then)
    assert case.state == "open"
    assert [side.memory.status for side in case.sides] == [MemoryStatus.ACTIVE] * 2
    assert [each.action for each in case.journal] == ["relate"]
    now, past = orc.contradictions.get(edge).sides[0], case.sides[0]
    assert (len(now.supports), len(past.supports)) == (1, 0)
    assert (now.independent_sources, past.independent_sources) == (2, 1)
    assert (past.influence.recalls, past.influence.cut) == (1, False)
    with pytest.raises(NotFound):
        orc.contradictions.get(edge, as_of=then - 8 * MS_PER_DAY)


def test_a_case_tells_auditors_whom_each_side_reached_and_others_how_many(
    orc: Orchestrator, clock: FixedClock
) -> None:
    _, new, edge = rival(orc, clock)
    first = orc.recall("Lisbon", top_n=1)
    # The later side of an open contradiction comes first.
    assert [item.memory.memory_id for item in first.items] == [new]
    assert orc.receipts.get(first.receipt_id).items
    reached = [side.influence for side in orc.contradictions.get(edge).sides]
    assert [(each.recalls, each.receipts) for each in reached] == [
        (0, ()),
        (1, (first.receipt_id,)),
    ]
    orc.permissions -= {Permission.AUDIT}
    counted = orc.contradictions.get(edge).sides[1].influence
    assert (counted.recalls, counted.receipts, counted.runs) == (1, (), ())
    assert (counted.conversations, counted.cut) == ((), False)


def test_a_case_with_a_hidden_side_is_not_there(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    seeing = service.orchestrator("orc-1", viewer=Viewer(project_ids=frozenset({"p"})))
    old, _, edge = rival(seeing, clock, scope="project", scope_id="p")
    assert seeing.contradictions.get(edge).edge.edge_id == edge
    blind = service.orchestrator("orc-1", viewer=Viewer(scopes=frozenset({Scope.GLOBAL})))
    absent = []
    for name, asked in (
        (edge, blind.contradictions.get),
        ("edge_nowhere", seeing.contradictions.get),
    ):
        with pytest.raises(NotFound) as told:
            asked(name)
        absent.append(str(told.value).replace(name, "?"))
    assert absent[0] == absent[1]
    with pytest.raises(NotFound):
        blind.contradictions.dismiss(edge, reason="what is it")
    with pytest.raises(NotFound):
        orc.contradictions.get(orc.relate(old, "RelatedTo", put(orc, "The office has a roof.")))


def test_a_probable_change_is_listed_and_read_like_a_case_until_it_is_decided(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    pairs = []
    for door in range(3):
        old = put(orc, f"Door {door} is blue.")
        clock.advance(days=1)
        new = put(orc, f"Door {door} is red.")
        pairs.append((old, new, orc.relate(new, "Updates", old, weight=0.8, reason="repainted")))
    stated = orc.relate(pairs[0][1], "Updates", put(orc, "Door 0 is grey."))
    marks = [edge for _, _, edge in pairs]
    first = orc.contradictions.list(changes=True, limit=2)
    rest = orc.contradictions.list(changes=True, limit=2, after=first.next_after)
    assert [each.edge.edge_id for each in (*first.items, *rest.items)] == marks[::-1]
    assert [each.edge.edge_id for each in orc.contradictions.list().items] == marks[::-1]
    assert orc.contradictions.list(changes=False).items == ()
    assert [each.first.memory_id for each in rest.items] == [pairs[0][0]]
    case = orc.contradictions.get(marks[0])
    assert [side.memory.memory_id for side in case.sides] == list(pairs[0][:2])
    assert (case.state, case.edge.weight, case.suggestion) == ("open", 0.8, None)
    orc.contradictions.dismiss(marks[0], reason="two doors")
    orc.contradictions.accept(marks[1], reason="seen there")
    assert [each.edge.edge_id for each in orc.contradictions.list(changes=True).items] == marks[2:]
    accepted, dismissed = orc.contradictions.list(changes=True, resolved=True).items
    assert [each.edge.edge_id for each in (accepted, dismissed)] == marks[1::-1]
    assert (accepted.state, dismissed.state) == ("resolved", "dismissed")
    assert orc.contradictions.get(marks[0]).state == "dismissed"
    case = orc.contradictions.get(marks[1])
    assert (case.state, case.edge.resolution) == (
        "resolved",
        {
            "winner_id": pairs[1][1],
            "loser_id": pairs[1][0],
            "reason": "seen there",
            "actor": orc.actor,
            "mark": {"weight": 0.8, "partial": False, "reason": "repainted"},
        },
    )
    with pytest.raises(NotFound):
        orc.contradictions.get(stated)


class Doubted:
    """A memory in an open contradiction, whose case names the refuted evidence below it."""

    def __init__(self, orc: Orchestrator, memory_id: str) -> None:
        self._orc, self._memory_id = orc, memory_id
        self._edge = orc.relate(put(orc, "It is otherwise."), "Contradicts", memory_id)

    def premise(self, as_of: int | None = None) -> InvalidPremise | None:
        sides = self._orc.contradictions.get(self._edge, as_of=as_of).sides
        [own] = [side for side in sides if side.memory.memory_id == self._memory_id]
        return own.premise

    def broken(self, as_of: int | None = None) -> InvalidPremise:
        premise = self.premise(as_of)
        assert premise is not None
        return premise


def test_a_case_shows_the_way_to_a_fallen_ground_until_it_is_restored(orc: Orchestrator) -> None:
    ground = put(orc, "Ground floor.")
    first = put(orc, "Floor 1.", derived_from=[ground])
    second = put(orc, "Floor 2.", derived_from=[first])
    caused = put(orc, "The lift was built.")
    edge = orc.relate(caused, "CausedBy", second)
    doubted = Doubted(orc, caused)
    assert doubted.premise() is None
    orc.retract(ground, reason="a rumour")
    assert (doubted.broken().ended, doubted.broken().reason) == ("retracted", "a rumour")
    assert orc.trace(ground).stale_dependents == (first, second, caused)
    orc.restore(ground, reason="it was true")
    assert doubted.premise() is None
    newer = orc.correct(ground, "Ground floor, raised.", reason="flood")
    way = doubted.broken()
    assert [
        (each.memory_id, each.ground_id, each.edge_type, each.edge_id) for each in way.path
    ] == [
        (caused, second, "CausedBy", edge),
        (second, first, None, None),
        (first, ground, None, None),
    ]
    assert (way.ended, way.replaced_by) == ("replaced", (newer,))
    assert way.ground.memory_id == ground
    recalled = {each.memory.memory_id: each for each in orc.recall("floor lift").items}
    for one in (first, second, caused):
        assert recalled[one].modifiers["stale_basis"] < 1.0
    # What was derived from its ground and replaced it stands, and what stands on that.
    raised = put(orc, "Ground floor, raised twice.", derived_from=[newer])
    above = put(orc, "The floor above was raised.", derived_from=[raised])
    orc.relate(raised, "Updates", newer)
    recalled = {each.memory.memory_id: each for each in orc.recall("floor raised").items}
    for one in (raised, above):
        assert recalled[one].modifiers["stale_basis"] == 1.0


def test_what_lost_and_is_back_is_still_lost(orc: Orchestrator, clock: FixedClock) -> None:
    won = put(orc, "The rent is 900.")
    lost = put(orc, "The rent is 800.", source={"conversation_id": "forum"})
    due = put(orc, "800 is due.", derived_from=[lost, put(orc, "Rent is due.")])
    doubted = Doubted(orc, due)
    case = orc.relate(won, "Contradicts", lost)
    orc.contradictions.resolve(case, winner=won, reason="bank statement")
    stale = doubted.broken()
    assert (stale.ended, stale.reason) == ("lost", f"lost to {won}: bank statement")
    orc.sources.retract(conversation_id="forum", reason="forged", dry_run=False)
    between = clock.now_ms()
    clock.advance(days=2)
    orc.restore(lost, reason="genuine")
    assert doubted.broken() == stale.model_copy(update={"ground": orc.get(lost)})
    assert doubted.broken(between).ended == "retracted"


def test_what_was_replaced_and_is_back_tells_of_that(
    orc: Orchestrator, service: MemoryService, clock: FixedClock
) -> None:
    old = put(orc, "The rent is 800.", source={"conversation_id": "forum"})
    due = put(orc, "800 is due.", derived_from=[old, put(orc, "Rent is due.")])
    doubted = Doubted(orc, due)
    new = service.orchestrator("orc-1", actor="aud").correct(old, "It is 900.", reason="x")
    at = clock.now_ms()
    before = doubted.broken()
    for _ in range(2):
        clock.advance(days=2)
        with pytest.raises(Conflict):
            orc.retract(old, reason="forged")
    stale = doubted.broken()
    assert stale == before.model_copy(update={"ground": orc.get(old)})
    assert (stale.ended_at, stale.actor) == (at, "aud")
    orc.retract(new, reason="wrong")
    orc.restore(old, reason="nothing stands against it")
    assert doubted.premise() is None
    clock.advance(days=2)
    orc.restore(new, reason="right")
    stale = doubted.broken()
    assert (stale.ended_at, stale.actor) == (clock.now_ms(), orc.actor)


def marked(orc: Orchestrator, memory_id: str) -> set[bool]:
    """Whether it stands on fallen ground, as a trace and a recall say."""
    [item] = [each for each in orc.recall("umbrella").items if each.memory.memory_id == memory_id]
    return {
        bool(orc.trace(memory_id).stale_grounds),
        item.modifiers.get("stale_basis", 1.0) < 1.0,
    }


def test_all_say_the_same_of_what_was_tidied_away_before_or_after_it_lost(
    orc: Orchestrator, clock: FixedClock
) -> None:
    old, new, edge = rival(orc, clock)
    above = put(orc, "Take an umbrella to the office.", derived_from=[old])
    orc.retract(old, reason="evicted")
    assert marked(orc, above) == {False}
    clock.advance(days=1)
    orc.contradictions.resolve(edge, winner=new, reason="looked it up")
    assert marked(orc, above) == {True}
    clock.advance(days=1)
    orc.contradictions.reopen(edge, reason="looked again")
    assert marked(orc, above) == {False}
    rains = put(orc, "It rains in May.")
    may = put(orc, "Take an umbrella in May.", derived_from=[rains])
    dry = orc.correct(rains, "It is dry in May.", reason="measured")
    assert marked(orc, may) == {True}
    for one in (dry, rains):
        orc.retract(one, reason="cleared")
    assert marked(orc, may) == {True}
    assert orc.verify().ok


def test_what_a_memory_had_reached_by_then_is_not_crowded_out_by_what_came_later(
    orc: Orchestrator, clock: FixedClock
) -> None:
    one = orc.remember("The oven is slow.")
    early = orc.recall("oven")
    then = clock.now_ms()
    clock.advance(days=1)
    asked = orc.recall("oven", as_of=iso(then))
    found = orc.graph.impact(one)
    shown = [(each.receipt_id, each.as_of) for each in found.hand_outs]
    assert shown == [(asked.receipt_id, then), (early.receipt_id, None)]
    assert Impact.model_validate_json(found.model_dump_json()) == found
    above = orc.remember("Bake longer.", derived_from=[one])
    for _ in range(3):
        orc.recall("oven")
    by_now, by_then = (orc.graph.impact(one, max_nodes=2, as_of=at) for at in (None, iso(then)))
    assert early.receipt_id not in [each.receipt_id for each in by_now.hand_outs]
    assert [each.memory_id for each in by_now.derived] == [above]
    assert [each.receipt_id for each in by_then.hand_outs] == [early.receipt_id]
    assert (by_then.derived, by_then.cut) == ((), False)
    with pytest.raises(NotFound):
        orc.graph.impact(above, as_of=iso(then))
