"""What hooks are given: one thing is not taken for its letters, and what is none is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemoryHooks, Orchestrator
from memgraph.errors import InvalidInput

STEP = {"workflow_run_id": "r", "step_id": "s"}
TALK = {"conversation_id": "c"}


WRONG: list[Callable[[Any], Any]] = [
    lambda one: one.record_findings("The pump leaks."),
    lambda one: one.record_findings(["The pump leaks.", 5]),
    lambda one: one.end_task("k", "abc", project_id="p"),
    lambda one: one.on_transcript({"content": "hi"}, **TALK),
    lambda one: one.on_step_output(5, **STEP),
    lambda one: one.on_message(None, **TALK),
    lambda one: one.on_message("hi", conversation_id=""),
    lambda one: one.on_message("hi"),
    lambda one: one.on_message("hi", **TALK, speeker="Ana"),
    lambda one: one.on_message("hi", **TALK, deadline_ms=True),
    lambda one: one.on_diagnostics("why?", memory_ids="fact_1"),
]


def test_what_is_none_of_them_is_refused_and_nothing_is_stored(
    orc: Orchestrator, hooks: MemoryHooks
) -> None:
    before = orc.maintenance.stats()["memories"]
    for call in WRONG:
        with pytest.raises(InvalidInput):
            call(hooks)
    assert hooks.close() == 0
    assert orc.maintenance.stats()["memories"] == before


def test_hooks_are_made_of_a_service() -> None:
    service: Any = "root"
    with pytest.raises(InvalidInput, match="service"):
        MemoryHooks(service, "z")
