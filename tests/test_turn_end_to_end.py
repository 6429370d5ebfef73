"""An orchestrator's turns with a memory, from message to message, through the reference host.

Queue, selector, workflows and hooks are the real ones; the model is scripted and knows nothing but
what its prompt holds, so that an answer is right only where the memory gave it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from examples.orchestrator.channels import Inbox, read
from examples.orchestrator.host import Host
from examples.orchestrator.models import ScriptedModel
from memgraph import MemoryHooks, MemoryService, MemoryType, SourceType, Viewer
from memgraph.ids import short_id

HERE = Path(__file__).resolve().parent.parent / "examples" / "orchestrator"
NAME, TASK, PROJECT = "print-shop", "spring-festival", "posters"
INSIDE = Viewer(project_ids=frozenset({PROJECT}), session_ids=frozenset({TASK}))
PATIENT_MS = 60_000
PATIENCE_S = 30.0
FESTIVAL = "counter/Mara: The spring festival wants 400 posters by 12 June, on recycled paper."
DAMP = "pressroom/Jonas: Recycled paper jams in the risograph when the store room is damp."
PLAN = "counter/Mara: Please plan the festival posters on recycled paper."
WHY = "counter/Mara: !why did the proof run of the festival jam?"


class Shop:
    """The host on a memory, and everything that it showed."""

    def __init__(self, service: MemoryService, hooks: MemoryHooks) -> None:
        self.service = service
        self.events: list[dict[str, Any]] = []
        model = ScriptedModel(HERE / "answers.yaml")
        self.prompts: list[tuple[str, str]] = []
        self._ask = model.ask
        self._host = Host(hooks, self, self._show, task_id=TASK, project_id=PROJECT)
        self._lines = 0

    def ask(self, purpose: str, system: str, user: str) -> str:
        self.prompts.append((purpose, system))
        return self._ask(purpose, system, user)

    def hear(self, *lines: str) -> list[str]:
        """Messages through the queue; gives the replies."""
        begins = [""] * self._lines
        self._lines += len(lines)
        return [self._host.answer(message) for message in Inbox(read([*begins, *lines], "test"))]

    def settle(self) -> None:
        """Wait until nobody works on the memory any more: what is closed late folds its WAL."""
        with self.service.opened(NAME) as opened:
            until = time.monotonic() + PATIENCE_S
            while opened.users > 1 and time.monotonic() < until:
                time.sleep(0.01)
            assert opened.users == 1

    def of(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["event"] == event]

    @property
    def codes(self) -> set[str]:
        return {each["code"] for each in self.of("warning")}

    def _show(self, event: str, **fields: Any) -> None:
        json.dumps(fields)
        self.events.append({"event": event, **fields})


@contextmanager
def opened(service: MemoryService, name: str = NAME) -> Iterator[Shop]:
    with MemoryHooks(service, name, deadline_ms=PATIENT_MS) as hooks:
        yield Shop(service, hooks)


@pytest.fixture
def shop(service: MemoryService) -> Iterator[Shop]:
    service.orchestrator(NAME, create=True)
    with opened(service) as made:
        yield made


def ids(memories: list[dict[str, str]]) -> set[str]:
    return {each["memory_id"] for each in memories}


def test_what_one_channel_says_another_recalls_and_every_prompt_has_the_bulletin(
    shop: Shop,
) -> None:
    question = "pressroom/Jonas: Which paper does the festival want for its posters?"
    noted, answer = shop.hear(FESTIVAL, question)
    assert (noted, answer) == ("Noted.", "Recycled paper, 400 posters by 12 June.")
    captured = shop.of("captured")[0]["memory_id"]
    assert captured in ids(shop.of("selected")[1]["saw"])
    assert captured in ids(shop.of("step")[1]["recalled"])
    assert shop.codes == set()
    shop.hear(DAMP, PLAN)
    turns = [prompt for purpose, prompt in shop.prompts if purpose != "diagnose"]
    assert len(turns) > 8
    assert all("Open todos" in prompt or "Nothing is known yet." in prompt for prompt in turns)
    assert "Open todos" in turns[-1]


def test_a_steps_decision_and_todo_are_in_the_next_context_and_bulletin(shop: Shop) -> None:
    shop.hear(FESTIVAL, DAMP, PLAN)
    (written,) = shop.of("remembered")
    assert (len(written["memory_ids"]), written["rejected"]) == (3, [])
    orc = shop.service.orchestrator(NAME, viewer=INSIDE)
    memories = [orc.get(each) for each in written["memory_ids"]]
    assert [each.type for each in memories] == [MemoryType.DECISION, *[MemoryType.TODO] * 2]
    for memory_id in written["memory_ids"]:
        source = orc.trace(memory_id).source
        assert source.source_type is SourceType.WORKFLOW_OUTPUT
        assert source.step_id == "plan"
        assert source.workflow_run_id == f"run-{shop.of('captured')[2]['message_id']}"
    (answer,) = shop.hear(
        "pressroom/Jonas: What was decided for the festival posters, and what is left to do?"
    )
    assert "Two colours on the risograph" in answer
    assert "900 sheets" in answer
    purpose, prompt = shop.prompts[-2]
    assert purpose == "select"
    bulletin = prompt.split("<data-")[0]
    assert all(short_id(each.memory_id) in bulletin for each in memories)
    assert set(written["memory_ids"]) <= ids(shop.of("step")[-1]["recalled"])


def test_a_database_that_breaks_in_the_middle_stops_no_turn(shop: Shop) -> None:
    shop.hear(FESTIVAL, PLAN)
    before = len(shop.of("warning"))
    assert before == 0
    shop.settle()
    shop.service.forget(NAME)
    database = shop.service.paths(NAME).database
    for beside in database.parent.glob(f"{database.name}-*"):
        beside.unlink()
    garbled = b"\x00garbage" * 4_000
    database.write_bytes(garbled)
    answers = shop.hear(DAMP, WHY, PLAN, "counter/Mara: !done")
    assert len(answers) == 4
    assert all(answers)
    assert "storage.corrupt" in shop.codes
    assert len(shop.of("captured")) == 2
    # The selector still read the last good bulletin.
    assert shop.of("selected")[-1]["bulletin"] is True
    assert database.read_bytes() == garbled
