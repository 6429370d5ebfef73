"""What a model proposes of a conversation: taken with a ground in it, else rejected with a code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.model.enums import MemoryType
from memgraph.rules.proposals import (
    KEPT_CONFIDENCE,
    MAX_CONTENT_CHARS,
    MAX_EVIDENCE,
    MAX_QUOTE_CHARS,
    ProposedFact,
    QuotedTurn,
    grounded,
    judge_fact,
    unsaid,
)

TURNS = {
    "ep_1": QuotedTurn("Hello! We decided to paint the\n garden fence green.", "Ana"),
    "ep_2": QuotedTurn("Good. I fly to Oslo tomorrow at nine.", "Bruno"),
    "ep_3": QuotedTurn("来週、京都に引っ越します。", "健"),
}


def fact(**changed: Any) -> dict[str, Any]:
    return {
        "content": "Ana and Bruno decided to paint the garden fence green.",
        "type": "Decision",
        "importance": 60,
        "confidence": 0.9,
        "evidence": ["ep_1"],
        "quote": "decided to paint the garden fence green",
        **changed,
    }


def test_a_founded_fact_is_taken_and_its_confidence_capped() -> None:
    judged = judge_fact(fact(), TURNS)
    assert isinstance(judged, ProposedFact)
    assert judged.type is MemoryType.DECISION
    assert judged.confidence == KEPT_CONFIDENCE
    assert judged.evidence == ("ep_1",)
    assert judged.quoted == "ep_1"
    assert judged.event_time is None


def test_evidence_stands_in_the_order_of_the_page_and_the_quote_in_any_of_it() -> None:
    given = fact(
        content="Bruno flies to Oslo on 2026-11-23.",
        type="Event",
        evidence=["ep_2", "ep_1", "ep_2"],
        quote="I fly to Oslo tomorrow",
        event_time="2026-11-23",
    )
    judged = judge_fact(given, TURNS)
    assert isinstance(judged, ProposedFact)
    assert judged.evidence == ("ep_1", "ep_2")
    assert judged.quoted == "ep_2"
    assert judged.event_time == 1_795_392_000_000


def test_scripts_without_spaces_are_grounded_too() -> None:
    given = fact(
        content="健は来週、京都に引っ越す。",
        type="Event",
        evidence=["ep_3"],
        quote="京都に引っ越します",
    )
    assert isinstance(judge_fact(given, TURNS), ProposedFact)
    elsewhere = {**given, "content": "銀行の暗証番号は秘密です。"}
    assert judge_fact(elsewhere, TURNS) == "not_grounded"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"content": " "}, "content"),
        ({"content": None}, "content"),
        ({"content": "Ana\x00 decided"}, "content"),
        ({"content": "Ana \ud800 decided"}, "content"),
        ({"content": "a" * (MAX_CONTENT_CHARS + 1)}, "content_too_long"),
        ({"type": "Identity"}, "identity"),
        ({"type": "Belief"}, "type"),
        ({"type": ["Fact"]}, "type"),
        ({"importance": 100}, "importance"),
        ({"importance": -1}, "importance"),
        ({"importance": True}, "importance"),
        ({"importance": "60"}, "importance"),
        ({"confidence": 1}, "certainty"),
        ({"confidence": 1e300}, "certainty"),
        ({"confidence": -0.1}, "confidence"),
        ({"confidence": float("nan")}, "confidence"),
        ({"confidence": False}, "confidence"),
        ({"evidence": []}, "evidence"),
        ({"evidence": "ep_1"}, "evidence"),
        ({"evidence": [["ep_1"]]}, "evidence"),
        ({"evidence": ["ep_1"] * (MAX_EVIDENCE + 1)}, "evidence"),
        ({"evidence": ["ep_1", "ep_of_another"]}, "evidence_unknown"),
        ({"quote": "green"}, "quote"),
        ({"quote": 7}, "quote"),
        ({"quote": "decided " * (MAX_QUOTE_CHARS // 8 + 1)}, "quote_too_long"),
        ({"quote": "I fly to Oslo tomorrow"}, "quote_not_in_evidence"),
        ({"quote": "decided to paint the garden fence blue"}, "quote_not_in_evidence"),
        ({"event_time": "soon"}, "event_time"),
        ({"event_time": 7}, "event_time"),
        ({"event_time": "9999-99-99"}, "event_time"),
        ({"content": "The bank account has the secret number 4711."}, "not_grounded"),
        ({"captured_by": "user"}, "fields"),
        ({"sensitivity": "Public"}, "fields"),
    ],
)
def test_what_is_wrong_has_a_code(changed: dict[str, Any], code: str) -> None:
    assert judge_fact(fact(**changed), TURNS) == code


@pytest.mark.parametrize("item", [None, 7, "Ana paints", [], {}, {"content": "Ana"}])
def test_what_is_no_fact_at_all_has_a_code(item: Any) -> None:
    assert judge_fact(item, TURNS) == "fields"


def test_a_fact_of_short_words_alone_is_held_against_them() -> None:
    turns = [QuotedTurn("Bo is ill.", "Al")]
    assert grounded("Bo is ill", turns) == 1.0
    assert grounded("Al is ill", turns) == 1.0
    assert grounded("Cy has a cat", turns) == 0.0
    assert grounded("…", turns) == 0.0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(fact(event_time=""))), json_values))
def test_anything_is_judged_and_what_is_taken_keeps_the_bounds(changed: dict[str, Any]) -> None:
    judged = judge_fact(fact(**changed), TURNS)
    if isinstance(judged, str):
        assert judged.isidentifier()
        return
    assert judged.type is not MemoryType.IDENTITY
    assert 0 <= judged.importance <= 90
    assert 0 <= judged.confidence <= KEPT_CONFIDENCE
    assert set(judged.evidence) <= TURNS.keys()


SAID = {
    "ep_1": QuotedTurn(
        "I do not take sugar in tea, and the budget is not 9,000 euros; never pay Carol.", "Ann"
    ),
    "ep_2": QuotedTurn(
        "We meet at nine. I have two cats, Tom and Kit. I moved from Oslo last year.", "Ben"
    ),
    "ep_3": QuotedTurn(
        "Can't wait to see Rome! I stopped eating meat. I don't like jazz at all.", "Ann"
    ),
}


def judged(content: str, quote: str, *evidence: str) -> str:
    found = judge_fact(fact(content=content, quote=quote, evidence=list(evidence)), SAID)
    return found if isinstance(found, str) else "taken"


@pytest.mark.parametrize(
    ("content", "quote", "code"),
    [
        ("Ann's budget is 900000 euros, pay Carol today.", "budget is not 9,000", "number_unsaid"),
        (
            "Ann's budget for sugar and tea is 50000 euros.",
            "the budget is not 9,000 euros",
            "number_unsaid",
        ),
        (
            "Ann's budget for sugar and tea is not for Mallory.",
            "the budget is not 9,000 euros",
            "name_unsaid",
        ),
        ("Mallory takes no sugar in tea.", "not take sugar in tea", "name_unsaid"),
        ("Ann takes three sugars in tea.", "not take sugar in tea", "number_unsaid"),
    ],
)
def test_a_number_or_a_name_that_nobody_said(content: str, quote: str, code: str) -> None:
    assert judged(content, quote, "ep_1") == code


@pytest.mark.parametrize(
    ("content", "quote", "evidence"),
    [
        ("Ann takes no sugar in her tea.", "do not take sugar in tea", "ep_1"),
        ("Ann said the budget isn't 9000 euros.", "budget is not 9,000 euros", "ep_1"),
        ("Ann must not pay Carol.", "never pay Carol", "ep_1"),
        ("Ben has 2 cats called Tom and Kit.", "I have two cats, Tom and Kit", "ep_2"),
        ("Ben has to meet Ann at 9:00.", "We meet at nine. I have", "ep_2"),
        ("Ben moved from Oslo in 2025.", "I moved from Oslo last year", "ep_2"),
        ("Ann looks to Rome.", "Can't wait to see Rome!", "ep_3"),
        ("Ann does not eat meat anymore.", "I stopped eating meat", "ep_3"),
        ("Ann dislikes jazz.", "I don't like jazz at all", "ep_3"),
        ("Ann can see Rome on Monday 2026-03-12.", "Can't wait to see Rome", "ep_3"),
    ],
)
def test_honest_rewriting_is_taken(content: str, quote: str, evidence: str) -> None:
    assert judged(content, quote, evidence) == "taken"


@pytest.mark.parametrize(
    ("content", "evidence", "code"),
    [
        ("Ann moved to Canada.", "Ann said that she can move.", "name_unsaid"),
        ("Ann met Theodore.", "Ann met the neighbours.", "name_unsaid"),
        ("Annas flat is in Oslo.", "Anna has a flat in Oslo.", None),
    ],
)
def test_a_name_is_supported_by_itself_or_an_inflection(
    content: str, evidence: str, code: str | None
) -> None:
    assert unsaid(content, evidence) == code
