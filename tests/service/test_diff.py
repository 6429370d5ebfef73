"""What changed between two times, and over the life of one memory."""

from __future__ import annotations

import pytest
from working import put

from memgraph.clock import FixedClock
from memgraph.errors import InvalidInput
from memgraph.model.enums import EdgeType
from memgraph.model.graph import MemoryEvent, PairEvent
from memgraph.operations.orchestrator import Orchestrator


def ids(events: tuple[MemoryEvent, ...]) -> list[str]:
    return [each.memory_id for each in events]


def edges(events: tuple[PairEvent, ...]) -> list[str]:
    return [each.edge_id for each in events]


class Story:
    """Two memories that contradict each other, and all that becomes of them, a day for each."""

    def __init__(self, orc: Orchestrator, clock: FixedClock) -> None:
        self.orc = orc
        self.start = clock.now_ms()
        clock.advance(days=1)
        self.nine = put(orc, "The shop opens at nine.", confidence=0.5)
        self.ten = put(orc, "The shop opens at ten.", confidence=0.8)
        orc.relate(self.nine, "Contradicts", self.ten, reason="two times")
        put(orc, "Hello.", kind="episode", session_id="s1")
        self.told = clock.now_ms()
        clock.advance(days=1)
        [found] = orc.contradictions.list().items
        self.edge = found.edge.edge_id
        orc.contradictions.resolve(self.edge, winner=self.ten, reason="the sign says so")
        self.resolved = clock.now_ms()
        clock.advance(days=1)
        orc.contradictions.reopen(self.edge, reason="an old sign")
        clock.advance(days=1)
        orc.contradictions.dismiss(self.edge, reason="two shops")
        orc.confirm(self.nine)
        clock.advance(days=1)
        orc.retract(self.ten, reason="closed")
        clock.advance(days=1)
        orc.restore(self.ten, reason="open again")
        self.end = clock.now_ms()


@pytest.fixture
def story(orc: Orchestrator, clock: FixedClock) -> Story:
    return Story(orc, clock)


@pytest.mark.engines
def test_everything_that_happened_is_told_once(story: Story) -> None:
    found = story.orc.history.diff(story.start, story.end)
    assert ids(found.learnt) == [story.ten, story.nine]
    assert ids(found.replaced) == [story.nine]
    assert ids(found.retracted) == [story.ten]
    assert ids(found.restored) == [story.ten, story.nine]
    for each in (found.contradicted, found.resolved, found.reopened, found.dismissed):
        assert edges(each) == [story.edge]
    assert found.resolved[0].winner_id == story.ten
    assert [each.reason for each in (*found.contradicted, *found.dismissed)] == [
        "two times",
        "two shops",
    ]
    assert found.counts["said"] == 1
    assert not found.cut


def test_decisions_about_marks_are_listed(orc: Orchestrator, clock: FixedClock) -> None:
    nine = put(orc, "The shop opens at nine.")
    ten = put(orc, "The shop opens at ten.")
    mark = orc.relate(ten, "Updates", nine, weight=0.9)
    before = clock.now_ms()
    decide = orc.contradictions
    for act in (decide.dismiss, decide.reopen, decide.accept, decide.reopen):
        clock.advance(days=1)
        act(mark, reason=act.__name__)
    found = orc.history.diff(before, clock.now_ms())
    assert edges(found.accepted) == edges(found.dismissed) == [mark]
    assert [each.reason for each in found.reopened] == ["reopen", "reopen"]
    assert (found.counts["reopened"], found.counts["accepted"]) == (2, 1)
    [accepted] = found.accepted
    assert (accepted.edge_type, accepted.winner_id) == (EdgeType.UPDATES, ten)
    assert (accepted.first_id, accepted.second_id) == (nine, ten)
    assert found.contradicted == ()
    assert [ids(each) for each in (found.replaced, found.restored)] == [[nine], [nine]]


def test_erased_memories_are_listed_as_that_without_texts(
    orc: Orchestrator, clock: FixedClock
) -> None:
    turn = put(orc, "The safe is behind the mirror.", kind="episode", session_id="s1")
    fact = put(orc, "The mirror hides a safe.", derived_from=[turn])
    clock.advance(days=1)
    orc.retract(fact, reason="a rumour")
    clock.advance(days=1)
    report = orc.erasure.erase(session_id="s1", reason="asked for", dry_run=False)
    found = orc.history.diff(0, clock.now_ms())
    assert ids(found.retracted) == [fact]
    assert sorted(ids(found.erased)) == sorted([turn, fact])
    assert found.counts["erased"] == 2
    assert {(each.text, each.at) for each in found.erased} == {("[erased]", clock.now_ms())}
    assert {each.reason for each in found.erased} == {f"erased by {report.erasure_id}"}
    assert "mirror" not in found.model_dump_json()


def test_turns_are_counted_when_stored_and_listed_when_retracted_and_restored(
    orc: Orchestrator, clock: FixedClock
) -> None:
    before = clock.now_ms()
    clock.advance(days=1)
    turn = put(orc, "We open at nine.", kind="episode", session_id="s1")
    # What is stored as replaced is new and replaced.
    old = put(orc, "The shop opens at nine.", status="superseded")
    clock.advance(days=1)
    orc.retract(turn, reason="misheard")
    clock.advance(days=1)
    orc.restore(turn, reason="heard well")
    found = orc.history.diff(before, clock.now_ms())
    assert found.counts["said"] == 1
    assert ids(found.learnt) == ids(found.replaced) == [old]
    assert ids(found.retracted) == ids(found.restored) == [turn]


def test_an_interval_is_without_its_beginning_and_with_its_end_and_lists_are_bounded(
    story: Story,
) -> None:
    diff = story.orc.history.diff
    first = diff(story.start, story.told)
    assert (len(first.learnt), len(first.contradicted), len(first.resolved)) == (2, 1, 0)
    second = diff(story.told, story.resolved)
    assert (len(second.learnt), len(second.contradicted), len(second.resolved)) == (0, 0, 1)
    assert diff(story.told, story.told).counts == dict.fromkeys(first.counts, 0)
    cut = diff(story.start, story.end, limit=1)
    assert (ids(cut.learnt), cut.counts["learnt"], cut.cut) == ([story.ten], 2, True)
    with pytest.raises(InvalidInput, match="before the first"):
        diff(story.end, story.start)
    with pytest.raises(InvalidInput, match="limit"):
        diff(story.start, story.end, limit=0)


def test_the_life_of_a_memory_has_every_status(story: Story) -> None:
    found = story.orc.history.get(story.nine)
    assert [each.status.value for each in found.periods] == ["active", "superseded", "active"]
    ends = [each.until for each in found.periods]
    assert ends[:-1] == [each.since for each in found.periods[1:]]
    assert ends[-1] is None
    then = story.orc.get(story.nine, as_of=story.resolved)
    now = story.orc.get(story.nine)
    assert (then.status.value, now.status.value) == ("superseded", "active")
    # The end of its validity belongs to the status; it is when the winner was said.
    assert (then.valid_until, now.valid_until) == (story.orc.get(story.ten).created_at, None)
    # The loser of a resolution is trusted less while that is in force.
    assert (then.confidence, now.confidence) == (0.3, 1.0)
