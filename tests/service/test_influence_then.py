"""What memories reached and what stood behind runs, through a handle: as it was, and of nobody."""

from __future__ import annotations

import pytest

from memgraph import Orchestrator
from memgraph.clock import FixedClock, iso
from memgraph.errors import NotFound
from memgraph.model.influence import Impact


def test_what_it_had_reached_by_then_is_not_crowded_out_by_what_came_later(
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
