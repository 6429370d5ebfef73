"""What each guard of a consolidation holds back, and what a run tells of what it left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lines_extractor import Lines

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.model.enums import JobState, MemoryKind, Sensitivity
from memgraph.model.jobs import SessionReport
from memgraph.operations.life import consolidation as consolidating
from memgraph.operations.life.consolidation import consolidate_pending
from memgraph.operations.life.pages import StoreChanged

TEA = "Ann drinks green tea in the morning."
BUILD = "The nightly build takes 10 minutes."
SLOWER = "The nightly build takes 25 minutes."


def say(orc: Orchestrator, session: str, *lines: str, **fields: Any) -> list[str]:
    given = {"source_role": "user"} | fields
    return [orc.save_episode(line, session_id=session, **given) for line in lines]


def run(orc: Orchestrator, session: str, **options: Any) -> SessionReport:
    [report] = orc.jobs.consolidate(session, **({"extractor": Lines()} | options))
    return report


def held(orc: Orchestrator) -> dict[str, str]:
    found = orc.memories.list(kinds=[MemoryKind.FACT], limit=100)
    return {each.content: each.memory_id for each in found}


def before_writing(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """``happens`` once, between the first matching and its writing."""
    write, left = consolidating.write_page, [happens]

    def write_page(*given: Any, **more: Any) -> Any:
        if left:
            left.pop()()
        return write(*given, **more)

    monkeypatch.setattr(consolidating, "write_page", write_page)


def test_an_expired_twin_swallows_no_new_statement(orc: Orchestrator, clock: FixedClock) -> None:
    old = orc.remember(TEA, valid_until=clock.now_ms() + MS_PER_DAY)
    clock.advance(ms=10 * MS_PER_DAY)
    say(orc, "s-1", TEA)
    [fact] = run(orc, "s-1").facts
    assert fact.outcome == "stored"
    assert fact.memory_id != old
    # Nor for whoever tells it: what is said again is valid again.
    other = orc.remember(BUILD, valid_until=clock.now_ms() + MS_PER_DAY)
    assert orc.remember(BUILD) == other
    clock.advance(ms=10 * MS_PER_DAY)
    assert orc.remember(BUILD) != other
    assert orc.verify().ok


def test_an_expired_fact_stands_against_nothing(orc: Orchestrator, clock: FixedClock) -> None:
    orc.remember(BUILD, valid_until=clock.now_ms() + MS_PER_DAY)
    clock.advance(ms=10 * MS_PER_DAY)
    say(orc, "s-1", SLOWER)
    report = run(orc, "s-1")
    assert (report.edges, len(report.facts)) == ((), 1)


def test_two_places_on_one_page_do_not_hold_up_each_other(orc: Orchestrator) -> None:
    seer = orc._service.orchestrator(orc.name, viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    say(seer, "s-1", BUILD)
    say(seer, "s-1", SLOWER, sensitivity="Confidential")
    report = run(seer, "s-1")
    assert report.reason is None
    assert len(report.facts) == 2


def test_no_edge_leads_to_what_was_retracted_before_the_writing(
    orc: Orchestrator, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(orc, "s-1", BUILD)
    run(orc, "s-1")
    clock.advance(ms=MS_PER_DAY)
    say(orc, "s-2", SLOWER)
    before_writing(monkeypatch, lambda: orc.retract(held(orc)[BUILD], reason="wrong"))
    report = run(orc, "s-2")
    assert report.edges == ()
    assert set(held(orc)) == {SLOWER}


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ({"sensitivity": "Restricted"}, {}),
        ({"agent_id": "planner"}, {}),
        ({"agent_id": "planner"}, {"agent_id": "writer"}),
    ],
)
def test_nobody_reads_a_turn_before_that_is_closed_to_the_page(
    orc: Orchestrator, hidden: dict[str, str], shown: dict[str, str]
) -> None:
    seer = orc._service.orchestrator(orc.name, viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    say(seer, "s-1", TEA, **hidden)
    run(seer, "s-1")
    say(seer, "s-1", BUILD, **shown)
    extractor = Lines()
    run(seer, "s-1", extractor=extractor)
    [page] = extractor.pages
    assert page.before == ()
    say(seer, "s-1", SLOWER, **hidden)
    run(seer, "s-1", extractor=extractor)
    assert TEA in {turn.content for turn in extractor.pages[-1].before}


def test_what_was_confirmed_keeps_its_confidence(orc: Orchestrator) -> None:
    fixed = orc.remember(TEA, confidence=0.6)
    orc.confirm(fixed)
    other = orc.remember(BUILD, confidence=0.6)
    say(orc, "s-1", TEA, BUILD)
    run(orc, "s-1")
    assert orc.get(fixed).confidence == 1.0
    assert orc.get(other).confidence > 0.6
    assert len(orc.trace(fixed).supports) == 1


def test_it_is_told_how_many_labels_were_left_out(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgraph.operations.life.pages.MAX_FACTS", 24)
    things = "walnuts lobster gluten milk soy sesame mustard celery lupin eggs fish pollen dust"
    lines = [f"TODO: {do} no {each}." for each in things.split() for do in ("buy", "cook")]
    say(orc, "s-1", *lines, source_role="Ann")
    [report] = orc.jobs.consolidate("s-1")
    assert len(report.facts) == 24
    [left] = report.rejected
    assert (left.code, left.count) == ("fact.too_many", len(lines) - 24)
    assert report.counts["rejected"] == len(lines) - 24


def test_a_session_that_is_written_to_all_the_time_is_told(
    orc: Orchestrator, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(*_given: Any, **_more: Any) -> None:
        raise StoreChanged

    say(orc, "s-1", TEA)
    monkeypatch.setattr(consolidating, "write_page", moved)
    with service.opened(orc.name) as opened:
        report = consolidate_pending(opened, extractor=Lines(), now_ms=2**42)
    assert (report.state, report.reason) == (JobState.DONE, "contended")
    assert (report.counts["contended"], report.counts["sessions"]) == (1, 0)
