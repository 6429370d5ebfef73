"""The console's page of stale memories shows retracted evidence."""

from __future__ import annotations

from console_browsing import HOME, Browser, harmless
from serving_worlds import Served

from memgraph.clock import FixedClock, iso


def test_a_ground_that_lost_and_is_back_is_told_with_its_decision(
    served: Served, clock: FixedClock
) -> None:
    orc = served.orchestrator()
    won = orc.remember("The rent is 900.")
    lost = orc.remember("The landlord asks for 800.", source={"conversation_id": "forum"})
    edge = orc.relate(won, "Contradicts", lost)
    due = orc.remember("800 is due.", derived_from=[lost])
    orc.contradictions.resolve(edge, winner=won, reason="bank statement")
    decided = iso(clock.now_ms())[:10]
    clock.advance(days=2)
    orc.sources.retract(conversation_id="forum", reason="forged", dry_run=False)
    clock.advance(days=2)
    for memory_id in (lost, due):
        orc.restore(memory_id, reason="genuine")
    with Browser(served, served.key()) as browser:
        text = " ".join(harmless(browser.page(f"{HOME}stale")).text.split())
    assert f"Depends on evidence that lost a contradiction at {decided}" in text
    assert f"lost to {won}: bank statement" in text
    assert "genuine" not in text
