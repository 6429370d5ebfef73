"""The staleness bench runs whole at a small size, its targets hold there, and it can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sampling import third

from benchmarks import staleness
from benchmarks.histories import Check, Kind, histories
from memgraph import Orchestrator
from memgraph.errors import InvalidInput
from memgraph.retrieval import scores
from memgraph.retrieval.legs import SnapshotSearch
from memgraph.store import graph

SMALL = 10


def test_the_histories_of_a_seed_are_the_same_every_time() -> None:
    assert histories(30, 1) == histories(30, 1)
    assert histories(30, 1) != histories(30, 2)


def test_all_kinds_come_in_turn_and_in_varied_words() -> None:
    scripts = histories(120, 1)
    assert {kind: sum(each.kind is kind for each in scripts) for kind in Kind} == dict.fromkeys(
        Kind, 12
    )
    texts = [event.text for each in scripts for event in each.events if event.text]
    assert len(set(texts)) > 0.95 * len(texts)
    questions = {check.question for each in scripts for check in each.checks}
    assert len(questions) >= 120
    assert not questions & set(texts)
    assert 5 <= sum(each.terse for each in scripts) <= 40


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({"new": 1, "old": 2}, False),
        ({"old": 1, "new": 2}, True),
        ({"old": 4}, True),
        ({"new": 9}, False),
        ({}, False),
    ],
)
def test_stale_above(shown: dict[str, int], expected: bool) -> None:
    assert staleness.stale_above(Check("?", "new", ("old", "older")), shown) is expected


def test_what_holds_no_more_at_all_may_not_be_shown() -> None:
    assert staleness.stale_above(Check("?", None, ("claim",)), {"claim": 20})


def test_both_sides_have_to_be_shown_and_marked() -> None:
    check = Check("?", "one", disputed_by="other")
    shown = {"one": 1, "other": 2}
    assert staleness.both_sides(check, shown, {"one": {"other"}, "other": {"one"}})
    assert not staleness.both_sides(check, shown, {"one": {"other"}, "other": set()})
    assert not staleness.both_sides(check, {"one": 1}, {"one": {"other"}})


@pytest.mark.parametrize("apart", third([False, True], 0))
def test_a_small_run_reaches_the_targets(apart: bool) -> None:
    found = staleness.run(SMALL, 5, apart=apart)
    assert found["stale_above"] <= 0.02
    assert found["stale_above_with_superseded"] <= 0.02
    assert found["open_both_sides"] >= 0.98
    assert found["resolved_unmarked"] == found["as_of"] == 1.0
    assert found["current@10"] >= 0.95
    assert found["unchanged@1"] < found["unchanged@3"] > 0.5
    assert found["superseded_shown"] >= 0.5
    assert found["histories"] == SMALL
    assert found["memories"] > 5 * SMALL
    assert set(found["by_kind"]) == set(map(str, Kind))
    assert found["detected"]["Updates"]["stated"] > 0


def test_the_bench_notices_a_recall_that_takes_no_account_of_replacement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SnapshotSearch, "_succession", lambda *_: None)
    monkeypatch.setattr(graph, "read_pairs", lambda *_: None)
    neutral = replace(scores.MODIFIERS, superseded_factor=1.0)
    monkeypatch.setattr(scores, "MODIFIERS", neutral)
    found = staleness.run(SMALL, 5)
    assert found["stale_above"] >= 0.05
    assert found["stale_above_with_superseded"] >= 0.25
    assert found["open_both_sides"] == 0.0
    assert found["as_of"] < 1.0
    failed = {name for each in found["failures"] for name in each["failed"]}
    assert {"stale_above", "stale_above_with_superseded", "open_both_sides"} <= failed


def test_amendments_stand_before_what_they_amend(
    orc: Orchestrator,
) -> None:
    whole = orc.remember("The lighthouse of Skagen is painted red and has 180 steps.")
    stated, guessed = (orc.remember(f"Not red but {colour}.") for colour in ("blue", "green"))
    orc.relate(stated, "Updates", whole, partial=True)
    orc.relate(guessed, "Updates", whole, partial=True, weight=0.9)
    orc.settle()
    found = orc.recall("What is the lighthouse of Skagen painted in?").ids
    assert found[2] == whole
    assert {*found[:2]} == {stated, guessed}


@pytest.mark.parametrize("count", [0, 301])
def test_the_number_of_histories_has_bounds(count: int) -> None:
    with pytest.raises(InvalidInput):
        staleness.run(count)
