"""When a memory ceased to be valid, after whatever happened to it and what replaced it."""

from __future__ import annotations

from pathlib import Path

import pytest
from working import SEES_ALL, put

from memgraph import MemoryService, Sensitivity
from memgraph.clock import MS_PER_DAY, FixedClock, iso
from memgraph.ids import short_id
from memgraph.model.enums import SourceType
from memgraph.model.values import Source
from memgraph.operations.orchestrator import Orchestrator


@pytest.fixture
def pier(orc: Orchestrator, tmp_path: Path) -> Source:
    """A file without a date."""
    path = str(tmp_path / "root" / orc.name / "memory" / "ingest" / "pier.md")
    return Source(source_type=SourceType.INGEST_FILE, source_path=path)


@pytest.mark.parametrize("by", ["correction", "contradiction"])
def test_a_replacement_that_was_undone_ends_nothing_and_replaces_nothing(
    orc: Orchestrator, clock: FixedClock, by: str
) -> None:
    start, undone_at = clock.now_ms(), clock.now_ms() + 20 * MS_PER_DAY
    old = put(orc, "The deposit is 50 euros.")
    clock.advance(days=10)
    wrong = orc.correct(old, "The deposit is 60 euros.", reason="misread")
    clock.advance(days=10)
    orc.retract(wrong, reason="misread")
    orc.restore(old, reason="it holds after all")
    clock.advance(days=10)
    text = "The deposit is 70 euros."
    if by == "correction":
        right = orc.correct(old, text, reason="new terms")
    else:
        right = put(orc, text)
        edge = orc.relate(right, "Contradicts", old)
        orc.contradictions.resolve(edge, winner=right, reason="new terms")
    assert orc.get(old).valid_until == clock.now_ms()
    for day in (5, 15, 25) if by == "correction" else ():
        at = start + day * MS_PER_DAY
        assert orc.recall("deposit euros", valid_at=at, include_superseded=True).ids == (old,)
    traces = orc.trace(old), orc.trace(wrong), orc.trace(right)
    [undone] = (edge for edge in traces[0].edges_in if edge.from_id == wrong)
    assert (undone.relation, undone.undone_at) == ("replaced", undone_at)
    assert traces[1].replaced == ()
    corrected = by == "correction"
    assert [link.memory_id for link in traces[0].replaced_by] == [right] * corrected
    assert old in {link.memory_id for link in traces[2].replaced} or not corrected


def test_a_retraction_that_was_taken_back_replaces_again_and_an_end_outlives_one(
    orc: Orchestrator, clock: FixedClock
) -> None:
    old = put(orc, "The deposit is 50 euros.", source=Source(conversation_id="talk"))
    clock.advance(days=1)
    said = clock.now_ms()
    new = orc.correct(old, "The deposit is 60 euros.", reason="new terms")
    clock.advance(days=1)
    orc.retract(new, reason="misread")
    orc.restore(old, reason="it holds after all")
    clock.advance(days=1)
    orc.restore(new, reason="read rightly")
    assert orc.get(old).valid_until == said
    [edge] = (trace := orc.trace(old)).edges_in
    assert (edge.relation, edge.undone_at) == ("replaces", None)
    assert [link.memory_id for link in trace.replaced_by] == [new]
    clock.advance(days=1)
    orc.sources.retract(conversation_id="talk", reason="poisoned", dry_run=False)
    retracted = orc.get(old)
    assert (retracted.status.value, retracted.valid_until) == ("retracted", said)


@pytest.mark.engines
def test_what_was_said_before_a_memory_ends_it_by_the_decision(
    orc: Orchestrator, clock: FixedClock
) -> None:
    elder = put(orc, "The lamp in the hall is green.")
    clock.advance(days=1)
    loser = put(orc, "The lamp in the hall is red.")
    tower = put(orc, "The tower of Ghent dates from 1950.")
    said = clock.now_ms()
    clock.advance(days=1)
    edge = orc.relate(loser, "Contradicts", elder)
    orc.contradictions.resolve(edge, winner=elder, reason="seen")
    right = put(orc, "The tower of Ghent dates from 1932.", event_time="1932-01-01")
    orc.relate(right, "Updates", tower)
    assert [orc.get(one).valid_until for one in (loser, tower)] == [clock.now_ms()] * 2
    was_valid = orc.recall("tower of Ghent", valid_at=said, include_superseded=True).ids
    assert set(was_valid) == {tower, right}
    text = orc.context("When was the tower of Ghent built?").text
    assert f"until {iso(clock.now_ms())[:10]}, see" in text
    part = put(orc, "The spire of Ghent dates from 1931.", event_time="1931-01-01")
    whole = put(orc, "The spire and the bell of Ghent date from 1950.")
    orc.relate(part, "Updates", whole, partial=True)
    text = orc.context("When was the spire of Ghent built?").text
    assert f"in part until {iso(clock.now_ms())[:10]}, see" in text


@pytest.mark.engines
def test_an_own_end_in_the_future_does_not_outlive_what_ended_a_memory_before(
    service: MemoryService, orc: Orchestrator, clock: FixedClock
) -> None:
    sees_all = service.orchestrator(orc.name, viewer=SEES_ALL)
    later = clock.now_ms() + 500 * MS_PER_DAY
    texts = ("The vault has code 5.", "The cellar has code 5.")
    ids = [put(orc, text, valid_until=later + MS_PER_DAY) for text in texts]
    clock.advance(days=1)
    new = put(sees_all, "The vault has code 6.", sensitivity=Sensitivity.RESTRICTED)
    sees_all.relate(new, "Updates", ids[0])
    orc.retract(ids[1], reason="misread")
    assert [orc.get(one).valid_until for one in ids] == [clock.now_ms()] * 2
    assert orc.recall("code", valid_at=later, include_superseded=True).ids == ()


def test_a_successor_without_a_date_is_undated_in_every_line(
    orc: Orchestrator, clock: FixedClock, pier: Source
) -> None:
    old = put(orc, "The ferry leaves from pier 1.")
    turn = put(orc, "Where do we meet? At gate 3.", kind="episode", session_id="s")
    gate = put(orc, "They meet at gate 3.", derived_from=[turn])
    part = put(orc, "The kiosk sells tea and cake.")
    clock.advance(days=40)
    orc.relate(put(orc, "The ferry leaves from pier 2.", source=pier), "Updates", old)
    orc.relate(put(orc, "They meet at gate 4.", source=pier), "Updates", gate)
    less = put(orc, "The kiosk sells no cake.", source=pier)
    orc.relate(less, "Updates", part, partial=True)
    text = orc.context("Which ferry leaves from pier 1?").text
    assert "Fact, replaced by [1]: The ferry leaves from pier 1." in text
    assert "replaced by [" in orc.context("At which gate do we meet?").text
    kiosk = orc.context("What does the kiosk sell?").text
    assert "in part replaced by [" in kiosk
    assert "until" not in text + orc.context("At which gate do we meet?").text + kiosk


def test_a_successor_that_has_no_place_in_an_answer_is_dated_like_the_others(
    orc: Orchestrator, pier: Source
) -> None:
    old = put(orc, "The ferry leaves from pier 1.")
    winners = [put(orc, f"The ferry leaves from pier {n}.", source=pier) for n in (2, 3)]
    edges = [orc.relate(one, "Contradicts", old) for one in winners]
    for edge, winner in zip(edges, winners, strict=True):
        orc.contradictions.resolve(edge, winner=winner, reason="the timetable")
    items = orc.recall("ferry pier 1", include_superseded=True, top_n=2).items
    [mark] = [item.mark for item in items if item.memory.memory_id == old]
    assert mark.count("(undated)") == 2
    assert all(short_id(winner) in mark for winner in winners)


@pytest.mark.parametrize("dated_first", [True, False])
def test_of_several_winners_one_without_a_date_leaves_the_end_unknown(
    orc: Orchestrator, clock: FixedClock, pier: Source, dated_first: bool
) -> None:
    old = put(orc, "The ferry leaves from pier 1.")
    for number, source in enumerate([Source(), pier] if dated_first else [pier, Source()], 2):
        clock.advance(days=40)
        winner = put(orc, f"The ferry leaves from pier {number}.", source=source)
        edge = orc.relate(winner, "Contradicts", old)
        orc.contradictions.resolve(edge, winner=winner, reason="the timetable")
    text = orc.context("Which ferry leaves from pier 1?").text
    assert "Fact, replaced by [" in text
    assert "until" not in text
    assert orc.get(old).valid_until is None


@pytest.mark.engines
def test_an_own_end_before_a_replacement_without_a_date_stays(
    orc: Orchestrator, clock: FixedClock, pier: Source
) -> None:
    ends = [clock.now_ms() + days * MS_PER_DAY for days in (2, 90)]
    olds = [put(orc, f"The ferry leaves from pier {end}.", valid_until=end) for end in ends]
    clock.advance(days=40)
    new = put(orc, "The ferry leaves from pier 2.", source=pier)
    for old in olds:
        orc.relate(new, "Updates", old)
    assert [orc.get(old).valid_until for old in olds] == [ends[0], None]
    assert f"until {iso(ends[0])[:10]}, see" in orc.context("Where does the ferry leave?").text


def test_what_replaces_a_memory_may_be_undated_and_stored_before_it(
    orc: Orchestrator, clock: FixedClock, pier: Source
) -> None:
    new = put(orc, "The ferry leaves from pier 2.", source=pier)
    clock.advance(days=40)
    old = put(orc, "The ferry leaves from pier 1.")
    orc.relate(new, "Updates", old)
    assert orc.get(old).valid_until is None
