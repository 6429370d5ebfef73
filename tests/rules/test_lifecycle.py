"""Status transitions, supersession, and resolving a contradiction and taking that back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from memgraph.errors import IllegalTransition, InvalidInput
from memgraph.model.enums import STORED_STATUSES, MemoryStatus
from memgraph.rules.lifecycle import (
    MemoryChange,
    MemoryState,
    ResolutionRecord,
    StatusAction,
    may,
    next_status,
    plan_reopening,
    plan_resolution,
    plan_supersession,
)

ACTIVE, SUPERSEDED, RETRACTED = STORED_STATUSES
confidences = st.floats(0, 1)
statuses = st.sampled_from(STORED_STATUSES)


def state(
    memory_id: str = "fact_a",
    status: MemoryStatus = ACTIVE,
    confidence: float = 0.8,
    supersedes: tuple[str, ...] = (),
) -> MemoryState:
    return MemoryState(memory_id, status, confidence, supersedes)


def applied(before: MemoryState, changes: tuple[MemoryChange, ...]) -> MemoryState:
    for change in changes:
        if change.memory_id == before.memory_id:
            before = replace(
                before,
                **{
                    name: value
                    for name in ("status", "confidence", "supersedes")
                    if (value := getattr(change, name)) is not None
                },
            )
    return before


def test_every_other_transition_is_illegal_and_says_which() -> None:
    refused = [(s, a) for s in STORED_STATUSES for a in StatusAction if not may(s, a)]
    assert len(refused) == 7
    for status, action in refused:
        with pytest.raises(IllegalTransition) as caught:
            next_status(status, action)
        assert caught.value.details == {"status": status.value, "action": action.value}


@pytest.mark.parametrize(("new", "old"), [(RETRACTED, ACTIVE), (ACTIVE, RETRACTED)])
def test_supersession_refuses_retracted(new: MemoryStatus, old: MemoryStatus) -> None:
    with pytest.raises(IllegalTransition):
        plan_supersession(state("b", new), state("a", old))


def test_a_memory_neither_supersedes_nor_contradicts_itself() -> None:
    with pytest.raises(InvalidInput):
        plan_supersession(state("a"), state("a"))
    with pytest.raises(InvalidInput):
        plan_resolution(state("a"), state("a"))


def test_resolution_supersedes_the_loser_lowers_it_and_tells_the_winner() -> None:
    winner, loser = state("w", supersedes=("x",)), state("l", confidence=0.9)
    plan = plan_resolution(winner, loser)
    assert applied(loser, plan.changes) == state("l", SUPERSEDED, 0.3)
    assert applied(winner, plan.changes) == state("w", supersedes=("x", "l"))
    assert plan.record == ResolutionRecord("w", "l", ACTIVE, 0.9, supersedes_added=True)


@given(statuses, confidences)
def test_resolution_never_raises_confidence_nor_revives_the_loser(
    status: MemoryStatus, confidence: float
) -> None:
    loser = state("l", status, confidence)
    after = applied(loser, plan_resolution(state("w"), loser).changes)
    assert after.confidence == min(confidence, 0.3)
    assert after.status is (RETRACTED if status is RETRACTED else SUPERSEDED)


@pytest.mark.parametrize("status", [SUPERSEDED, RETRACTED])
def test_only_an_active_memory_wins(status: MemoryStatus) -> None:
    with pytest.raises(IllegalTransition):
        plan_resolution(state("w", status), state("l"))


def test_a_standing_record_about_another_memory_is_refused() -> None:
    other = plan_resolution(state("w"), state("x")).record
    with pytest.raises(InvalidInput):
        plan_resolution(state("w2"), state("l"), current=other)


@given(statuses, confidences, st.booleans())
def test_reopening_at_once_restores_both(
    status: MemoryStatus, confidence: float, known: bool
) -> None:
    winner = state("w", supersedes=("l",) if known else ())
    loser = state("l", status, confidence)
    plan = plan_resolution(winner, loser)
    back = plan_reopening(
        plan.record, winner=applied(winner, plan.changes), loser=applied(loser, plan.changes)
    )
    assert applied(applied(loser, plan.changes), back) == loser
    assert applied(applied(winner, plan.changes), back) == winner


@given(confidences, st.permutations(["w1", "w2", "w3"]))
def test_a_loser_of_several_comes_back_with_the_last_reopening_in_any_order(
    confidence: float, order: list[str]
) -> None:
    original = loser = state("l", confidence=confidence)
    records: dict[str, ResolutionRecord] = {}
    for name in ("w1", "w2", "w3"):
        standing = next(iter(records.values()), None)
        plan = plan_resolution(state(name), loser, current=standing)
        loser, records[name] = applied(loser, plan.changes), plan.record
    for name in order:
        record = records.pop(name)
        back = plan_reopening(record, winner=None, loser=loser, replaced=bool(records))
        loser = applied(loser, back)
        assert (loser.status is ACTIVE) == (not records)
    assert loser == original


def test_reopening_leaves_what_happened_since() -> None:
    record = plan_resolution(state("w"), state("l", confidence=0.9)).record
    retracted = plan_reopening(record, winner=None, loser=state("l", RETRACTED, 0.3))
    assert retracted == (MemoryChange("l", confidence=0.9),)
    confirmed = plan_reopening(record, winner=None, loser=state("l", SUPERSEDED, 1.0))
    assert confirmed == (MemoryChange("l", status=ACTIVE),)


@given(statuses, confidences, st.booleans())
def test_a_record_survives_its_stored_form(
    status: MemoryStatus, confidence: float, added: bool
) -> None:
    record = ResolutionRecord("w", "l", status, confidence, added)
    assert ResolutionRecord.from_dict(record.as_dict() | {"reason": "later"}) == record


@pytest.mark.parametrize(
    "spoil",
    [
        {"loser_prior_status": "gone"},
        {"loser_prior_confidence": "much"},
        {"loser_prior_confidence": float("nan")},
        {"loser_prior_confidence": 1.5},
        {"loser_prior_status": None},
    ],
)
def test_a_spoiled_record_is_refused(spoil: dict[str, object]) -> None:
    stored = ResolutionRecord("w", "l", ACTIVE, 0.5, supersedes_added=True).as_dict()
    with pytest.raises(InvalidInput):
        ResolutionRecord.from_dict(stored | spoil)
    with pytest.raises(InvalidInput):
        ResolutionRecord.from_dict({})
