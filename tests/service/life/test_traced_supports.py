"""The trace names every conversation that says the same."""

from __future__ import annotations

from memgraph import MemoryKind, Orchestrator


def test_the_trace_tells_who_else_said_it(orc: Orchestrator) -> None:
    for number in range(3):
        orc.save_episode(
            "Preference: green tea in the morning.", session_id=f"talk-{number}", source_role="user"
        )
        orc.sessions.end(f"talk-{number}")
        orc.jobs.consolidate(f"talk-{number}")
    [fact] = orc.memories.list(kinds=[MemoryKind.FACT])
    traced = orc.trace(fact.memory_id)
    assert traced.source.conversation_id == "talk-0"
    assert {each.source.conversation_id for each in traced.supports} == {"talk-1", "talk-2"}
    # Three conversations, but one speaker.
    assert traced.independent_sources == 1
    assert len(traced.grounds) == 3
