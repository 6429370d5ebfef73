"""What memories reached and what stood behind runs, through a handle: as it was, and of nobody."""

from __future__ import annotations

from memgraph import Orchestrator
from memgraph.clock import FixedClock, iso
from memgraph.model.influence import Impact


def test_a_memory_handed_out_as_of_then_has_an_impact_that_can_be_written(
    orc: Orchestrator, clock: FixedClock
) -> None:
    one = orc.remember("The oven is slow.")
    then = clock.now_ms()
    clock.advance(days=1)
    asked = orc.recall("oven", as_of=iso(then))
    found = orc.impact(one)
    assert [(each.receipt_id, each.as_of) for each in found.hand_outs] == [(asked.receipt_id, then)]
    assert Impact.model_validate_json(found.model_dump_json()) == found
