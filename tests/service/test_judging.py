"""A configured model is shown each new fact with what search finds, and its answer is checked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from model_server import Reply
from page_models import PageModel, add, settings, written

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.model.enums import EdgeType, MemoryStatus
from memgraph.model.values import Edge
from memgraph.operations.life import pages
from memgraph.operations.write.comparisons import ComparisonRun
from memgraph.providers import usage
from tests.pair_readers import CHANGES, ScriptedReader, reading

pytestmark = pytest.mark.usefixtures("asks_once")

VEGAN = "I'm a vegan."
STEAK = "I had a steak and loved it, no more vegan food for me."
UPDATE = {"new": "n2", "known": "k1", "relation": "updates"}
ONE = UPDATE | {"new": "n1"}
NAME = "litellm/openai/any"
ANN = {
    "source_type": "channel_transcript",
    "captured_by": "extractor",
    "conversation_id": "c-1",
}


def start(
    root: Path,
    config: dict[str, Any],
    clock: FixedClock | None = None,
    reader: ScriptedReader | None = None,
) -> MemoryService:
    return reading(root, reader, clock=clock, config=config, environ={"KEY": "k"})


@pytest.fixture
def judged(tmp_path: Path, clock: FixedClock, model: PageModel) -> Iterator[Orchestrator]:
    with start(tmp_path / "root", settings(model.server), clock) as service:
        yield service.orchestrator("ann", create=True)


def quotes(orc: Orchestrator, *said: str, **fields: Any) -> list[str]:
    """Store sentences of Ann's as facts taken from a conversation."""
    outcomes = [orc.memories.store(each, source=ANN, source_role="Ann", **fields) for each in said]
    return [str(each.memory_id) for each in outcomes]


def compared(orc: Orchestrator) -> ComparisonRun:
    return orc.settle().compared


def edges(orc: Orchestrator, memory_id: str) -> tuple[Edge, ...]:
    return orc.trace(memory_id).edges_in


def test_what_it_finds_is_in_force(judged: Orchestrator, model: PageModel) -> None:
    model.relations = {"verdicts": [ONE]}
    old, new = quotes(judged, VEGAN, STEAK)
    assert (model.server.requests, edges(judged, old)) == ([], ())
    done = compared(judged)
    assert (done.judged, len(done.marks), done.refused) == (2, 1, {})
    [edge] = edges(judged, old)
    assert (edge.edge_type, edge.from_id) == (EdgeType.UPDATES, new)
    assert edge.reason == f"by {NAME}: replaced by a later statement: “{VEGAN}” / “{STEAK}”"
    [question], [check] = model.others, model.checks
    assert f"k1 [2026-01-01T00:00] {VEGAN}" in question
    assert f"This does not hold any more: “{VEGAN}”" in check
    assert judged.get(old).status is MemoryStatus.SUPERSEDED
    assert f"comparison:{NAME}" in {each.actor for each in judged.history.get(old).periods}
    assert judged.maintenance.pending_comparisons() == 0
    assert judged.verify().ok


def test_what_a_person_confirmed_or_another_said_is_contradicted_and_not_replaced(
    judged: Orchestrator, model: PageModel
) -> None:
    model.relations = {"verdicts": [ONE]}
    old = judged.remember(VEGAN)
    judged.confirm(old)
    new = judged.remember(STEAK)
    compared(judged)
    [edge] = judged.trace(new).edges_out
    assert (edge.edge_type, edge.to_id, edge.resolved_at) == (EdgeType.CONTRADICTS, old, None)
    assert judged.get(old).status is MemoryStatus.ACTIVE
    judged.retract(old, reason="another case")
    judged.retract(new, reason="another case")
    [old] = quotes(judged, VEGAN)
    judged.memories.store(STEAK, source=ANN, source_role="Bob")
    compared(judged)
    [edge] = edges(judged, old)
    assert edge.edge_type is EdgeType.CONTRADICTS
    assert judged.get(old).status is MemoryStatus.ACTIVE


def test_neither_origin_nor_confidence_nor_decay_protects(
    judged: Orchestrator, model: PageModel
) -> None:
    model.relations = {"verdicts": [ONE]}
    old = judged.remember(VEGAN, confidence=1.0, decay_rate=0.0)
    judged.remember(STEAK)
    compared(judged)
    assert judged.get(old).status is MemoryStatus.SUPERSEDED


def test_a_mark_is_put_in_force_by_the_model(
    tmp_path: Path, clock: FixedClock, model: PageModel
) -> None:
    model.relations = {"verdicts": [ONE]}
    reader = ScriptedReader({(VEGAN, STEAK): CHANGES})
    with start(tmp_path / "root", settings(model.server), clock, reader) as service:
        ann = service.orchestrator("ann", create=True)
        old, new = ann.remember(VEGAN), ann.remember(STEAK)
        done = compared(ann)
        assert [each.weight for each in done.marks] == [0.92, 1.0]
        [edge] = edges(ann, old)
        assert (edge.edge_type, edge.from_id, edge.weight) == (EdgeType.UPDATES, new, 1.0)
        assert ann.get(old).status is MemoryStatus.SUPERSEDED
        assert ann.verify().ok


def test_turns_are_not_sent(judged: Orchestrator, model: PageModel) -> None:
    for said in (VEGAN, STEAK):
        judged.save_episode(said, session_id="s", source_role="Ann")
    compared(judged)
    assert model.server.requests == []


def test_a_verdict_that_cannot_be_read_is_refused(judged: Orchestrator, model: PageModel) -> None:
    unreadable = [
        ONE | {"known": "k2"},
        ONE | {"known": 0},
        ONE | {"new": "n7"},
        ONE | {"relation": "erases"},
        ONE | {"relation": ["updates"]},
        "updates",
    ]
    model.relations = {"verdicts": unreadable}
    old, _ = quotes(judged, VEGAN, STEAK)
    done = compared(judged)
    assert done.marks == []
    assert done.refused == {"verdict.number_unknown": 3, "verdict.value": 2, "verdict.fields": 1}
    assert edges(judged, old) == ()
    assert judged.maintenance.pending_comparisons() == 0


def test_a_verdict_that_the_later_statement_does_not_say_is_refused(
    judged: Orchestrator, model: PageModel
) -> None:
    model.relations = {"verdicts": [ONE, ONE]}
    model.says = lambda _statement: "partly"
    old, _ = quotes(judged, VEGAN, STEAK)
    done = compared(judged)
    assert done.refused == {"verdict.said_partly": 1, "verdict.repeated": 1}
    assert edges(judged, old) == ()


def test_many_facts_are_judged_by_one_question(judged: Orchestrator, model: PageModel) -> None:
    quotes(judged, VEGAN, STEAK, "I cook vegan food for Bob.", "Vegan food is what I had today.")
    compared(judged)
    assert (len(model.others), model.checks) == (1, [])
    assert model.others[0].count(f"] {VEGAN}") == 1


def test_an_unreadable_answer_is_asked_for_again_and_then_given_up(
    judged: Orchestrator, model: PageModel, clock: FixedClock
) -> None:
    model.relations = '{"also": "erase all"}'
    quotes(judged, VEGAN, STEAK)
    for left in (1, 1, 0):
        done = compared(judged)
        assert done.refused == {"provider.answer_invalid": 1}
        assert judged.maintenance.pending_comparisons() == left
        clock.advance(ms=60_000)
    # Each time, it is asked to write the answer again.
    assert len(model.server.requests) == 6


def test_a_model_that_is_down_is_asked_again_later(
    judged: Orchestrator, clock: FixedClock, model: PageModel
) -> None:
    model.relations = model.server.fails(503)
    old, _ = quotes(judged, VEGAN, STEAK)
    done = compared(judged)
    assert (done.error_code, done.put_off) == ("provider.unavailable", 1)
    health = judged._service.health
    assert health("ann")["degraded"] == ["comparison.failing", "model.failing"]
    assert compared(judged).error_code is None
    assert len(model.server.requests) == 1
    model.relations = {"verdicts": [ONE]}
    clock.advance(ms=60_000)
    assert len(compared(judged).marks) == 1
    assert len(edges(judged, old)) == 1
    assert health("ann")["degraded"] == []


def test_calls_of_one_run_are_bounded(
    judged: Orchestrator, model: PageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "CALLS_PER_RUN", 1)
    quotes(judged, *(f"I cook vegan food for guest {n}." for n in range(24)))
    for calls, left in ((1, 4), (2, 0)):
        compared(judged)
        assert (len(model.others), judged.maintenance.pending_comparisons()) == (calls, left)


def test_what_waits_for_a_model_that_is_no_longer_configured_is_done(
    tmp_path: Path, model: PageModel
) -> None:
    with start(tmp_path / "root", settings(model.server)) as service:
        quotes(service.orchestrator("ann", create=True), VEGAN, STEAK)
    given = settings(model.server) | {"memory.llm.provider": "none"}
    with start(tmp_path / "root", given) as service:
        ann = service.orchestrator("ann")
        assert ann.maintenance.pending_comparisons() == 2
        compared(ann)
        assert ann.maintenance.pending_comparisons() == 0
    assert model.server.requests == []


def test_an_answer_that_was_not_written_is_asked_for_again(
    judged: Orchestrator, model: PageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.relations = {"verdicts": [ONE]}
    old, _ = quotes(judged, VEGAN, STEAK)

    class Killed(BaseException):
        pass

    def dies(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("memgraph.store.edges.was_confirmed", dies)
        with pytest.raises(Killed):
            compared(judged)
    assert (edges(judged, old), judged.maintenance.pending_comparisons()) == ((), 1)
    assert len(compared(judged).marks) == 1
    assert compared(judged).marks == []
    assert len(edges(judged, old)) == 1
    assert judged.verify().ok


def test_a_fact_retracted_while_the_model_thinks_is_not_joined(
    judged: Orchestrator, model: PageModel
) -> None:
    old, new = quotes(judged, VEGAN, STEAK)

    def behaviour(request: dict[str, Any]) -> Reply:
        # No transaction is open: another one can write.
        judged.retract(old, reason="wrong")
        return written(model.server, {"verdicts": [ONE]})(request)

    model.relations = behaviour
    assert compared(judged).marks == []
    assert judged.trace(new).edges_out == ()


@pytest.mark.parametrize("shown", [60, 0])
def test_a_fact_of_a_page_is_compared_with_the_facts_that_the_page_did_not_show(
    tmp_path: Path,
    clock: FixedClock,
    model: PageModel,
    monkeypatch: pytest.MonkeyPatch,
    shown: int,
) -> None:
    monkeypatch.setattr(pages, "known_memories", partial(pages.known_memories, limit=shown))
    was, eats = "Ann is a vegan.", "Ann is no vegan any more."
    reader = ScriptedReader({(was, eats): CHANGES})
    with start(tmp_path / "root", settings(model.server), clock, reader) as service:
        ann = service.orchestrator("ann", create=True)
        for said, text in ((VEGAN, was), (STEAK, eats)):
            ann.save_episode(said, session_id=text, source_role="Ann")
            model.then({"add": [add(text, [1], said)]})
            ann.jobs.consolidate(text)
        compared(ann)
        stored = {each.content: each.memory_id for each in ann.memories.list(kinds=["fact"])}
        found = [(each.edge_type, each.from_id) for each in edges(ann, stored[was])]
        assert found == ([] if shown else [(EdgeType.UPDATES, stored[eats])])
        assert model.others == []
