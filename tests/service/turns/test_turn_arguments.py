"""What hooks are given: one thing is not taken for its letters, and what is none is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemoryHooks, Orchestrator
from memgraph.errors import InvalidInput

STEP = {"workflow_run_id": "r", "step_id": "s"}
TALK = {"conversation_id": "c"}


def stored(orc: Orchestrator) -> Any:
    return orc.maintenance.stats()["memories"]


WRONG: dict[str, Callable[[Any], Any]] = {
    "findings: a text": lambda one: one.record_findings("The pump leaks."),
    "findings: of numbers": lambda one: one.record_findings(["The pump leaks.", 5]),
    "promote: a text": lambda one: one.end_task("k", "abc", project_id="p"),
    "turns: a mapping": lambda one: one.on_transcript({"content": "hi"}, **TALK),
    "output: a number": lambda one: one.on_step_output(5, **STEP),
    "content: none": lambda one: one.on_message(None, **TALK),
    "an empty id": lambda one: one.on_message("hi", conversation_id=""),
    "a missing id": lambda one: one.on_message("hi"),
    "an unknown field": lambda one: one.on_message("hi", **TALK, speeker="Ana"),
    "no time": lambda one: one.on_message("hi", **TALK, deadline_ms=True),
    "memory_ids: a text": lambda one: one.on_diagnostics("why?", memory_ids="fact_1"),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_what_is_none_of_them_is_refused_and_nothing_is_stored(
    orc: Orchestrator, hooks: MemoryHooks, call: Callable[[Any], Any]
) -> None:
    before = stored(orc)
    with pytest.raises(InvalidInput):
        call(hooks)
    assert hooks.close() == 0
    assert stored(orc) == before


def test_hooks_are_made_of_a_service() -> None:
    service: Any = "root"
    with pytest.raises(InvalidInput, match="service"):
        MemoryHooks(service, "z")


def test_a_list_of_texts_is_read_as_its_lines(orc: Orchestrator, hooks: MemoryHooks) -> None:
    lines = ["Decision: keep it", "- [ ] tell the pilot", "That is all."]
    listed = hooks.on_step_output(lines, **STEP).memory_ids
    assert [orc.get(each).content for each in listed] == [
        "keep it",
        "tell the pilot",
        "That is all.",
    ]
    assert hooks.on_step_output("\n".join(lines), **STEP).memory_ids == listed
