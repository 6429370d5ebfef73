"""What will expire in the next days, and that the nightly job does what was foretold."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from working import INFERRED

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.ids import CountingIds
from memgraph.model.enums import Sensitivity
from memgraph.operations.life.decay import decay


def test_the_first_to_go_comes_first(orc: Orchestrator, clock: FixedClock) -> None:
    slow = orc.remember("The cellar key hangs by the door.", decay_rate=0.05)
    weak = orc.remember("Perhaps the lift is broken.", confidence=0.3, source=INFERRED)
    usual = orc.remember("The printer is on the second floor.", source=INFERRED)
    orc.confirm(orc.remember("The vat id is 12345.", source=INFERRED))
    clock.advance(days=10)
    found = orc.memories.expiring()
    assert [each.memory.memory_id for each in found.items] == [weak, usual]
    assert (found.total, found.at, found.threshold) == (2, clock.now_ms(), 0.05)
    first, second = found.items
    assert (first.expires_at - clock.now_ms()) / MS_PER_DAY == pytest.approx(7.9176, abs=1e-3)
    assert second.confidence_now == pytest.approx(0.3679, abs=1e-3)
    assert second.confidence_then == pytest.approx(0.0183, abs=1e-3)
    assert slow in [each.memory.memory_id for each in orc.memories.expiring(days=60).items]


def test_reading_a_memory_takes_it_off_the_list(orc: Orchestrator, clock: FixedClock) -> None:
    orc.remember("The printer is on the second floor.", source=INFERRED)
    clock.advance(days=5)
    assert orc.memories.expiring().total == 1
    orc.recall("printer")
    assert orc.memories.expiring(days=29).total == 0
    assert orc.memories.expiring(days=30).total == 1


def test_a_limit_cuts_the_list_and_not_the_count(orc: Orchestrator) -> None:
    orc.remember_many([{"content": f"Note {number}.", "source": INFERRED} for number in range(5)])
    found = orc.memories.expiring(limit=2)
    assert (len(found.items), found.total) == (2, 5)
    assert orc.memories.expiring(limit=0).items == ()


def test_what_nobody_retired_yet_lies_in_the_past(orc: Orchestrator, clock: FixedClock) -> None:
    orc.remember("The printer is on the second floor.", source=INFERRED)
    clock.advance(days=50)
    [one] = orc.memories.expiring(days=0).items
    assert one.expires_at < clock.now_ms()


def test_only_what_the_viewer_may_see_is_listed_and_counted(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    orc.remember("The code is 4711.", sensitivity="Restricted", source=INFERRED)
    orc.remember("Paint is dry.", scope="project", scope_id="p", source=INFERRED)
    assert orc.memories.expiring().total == 0
    everything = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p"}))
    assert service.orchestrator("orc-1", viewer=everything).memories.expiring().total == 2


FACTS = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.1, 1.0, 30.0]), st.floats(0, 200)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FACTS, st.floats(0, 300))
def test_the_job_retires_just_what_was_foretold(
    tmp_path_factory: pytest.TempPathFactory,
    facts: list[tuple[float, float, float]],
    days: float,
) -> None:
    clock = FixedClock()
    root = tmp_path_factory.mktemp("root")
    with MemoryService(
        root, clock=clock, ids=CountingIds(), environ={}, background=False
    ) as service:
        orc = service.orchestrator("orc-1", create=True)
        for number, (confidence, rate, later) in enumerate(facts):
            clock.advance(days=later)
            orc.remember(f"Note {number}.", confidence=confidence, decay_rate=rate)
        foretold = orc.memories.expiring(days=days)
        with service.opened("orc-1") as opened:
            decay(opened, now_ms=foretold.until, actor="nightly")
        gone = {each.memory_id for each in orc.memories.list(statuses=["retracted"])}  # type: ignore[list-item]  # by value
        assert gone == {each.memory.memory_id for each in foretold.items}
        assert all(each.expires_at <= foretold.until for each in foretold.items)
        assert orc.memories.expiring(days=days).total == 0
