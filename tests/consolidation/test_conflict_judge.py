"""A model's second opinion on contradictions: it may dismiss, and never more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memgraph.consolidation.conflict_judge import PAIRS_PER_CALL, ModelConflictJudge, verdicts_of
from memgraph.consolidation.ports import ModelBudget, SuspectedContradiction
from memgraph.errors import ProviderAnswerInvalid, ProviderUnavailable
from memgraph.model.enums import Sensitivity
from memgraph.providers.fake import FakeCompletion


def suspicions(count: int) -> list[SuspectedContradiction]:
    return [
        SuspectedContradiction(f"Room {n} is red.", f"Room {n} is <blue>.", 0.8)
        for n in range(count)
    ]


def answer(**words: bool) -> dict[str, Any]:
    return {
        "verdicts": [
            {"number": int(number[1:]), "contradicts": word} for number, word in words.items()
        ]
    }


def judge(provider: FakeCompletion) -> ModelConflictJudge:
    return ModelConflictJudge(provider, max_sensitivity=Sensitivity.INTERNAL, mark=lambda: "mark")


def asked(
    given: ModelConflictJudge, count: int, budget: ModelBudget, level: str = "Internal"
) -> list[bool | None]:
    return list(given.judge(suspicions(count), sensitivity=Sensitivity(level), budget=budget))


def test_each_pair_has_its_word_or_none() -> None:
    provider, budget = FakeCompletion([answer(n1=True, n2=False, n9=False)]), ModelBudget(5, 10_000)
    assert asked(judge(provider), 3, budget) == [True, False, None]
    assert budget.calls == 4
    assert 0 < budget.tokens < 9_900
    begin, *lines, end = provider.calls[0][1].split("\n")
    assert (begin, end) == ("<data-mark>", "</data-mark>")
    assert json.loads(lines[0]) == {
        "number": 1,
        "earlier": "Room 0 is red.",
        "later": "Room 0 is <blue>.",
    }
    assert "<blue" not in lines[0]


def test_a_pair_is_asked_about_once() -> None:
    provider, budget = FakeCompletion([answer(n1=False, n2=True)]), ModelBudget(5, 10_000)
    given = judge(provider)
    assert asked(given, 2, budget) == asked(given, 2, budget) == [False, True]
    assert len(provider.calls) == 1


def test_many_pairs_are_asked_in_parts_as_far_as_the_budget_goes() -> None:
    provider = FakeCompletion([answer(n1=False), answer(n1=True), answer(n1=False)])
    words = asked(judge(provider), 3 * PAIRS_PER_CALL, ModelBudget(2, 100_000))
    assert len(provider.calls) == 2
    assert (words[0], words[PAIRS_PER_CALL]) == (False, True)
    assert words[2 * PAIRS_PER_CALL] is None


def test_what_is_too_sensitive_is_not_sent() -> None:
    provider = FakeCompletion([answer(n1=False)])
    assert asked(judge(provider), 1, ModelBudget(5, 10_000), "Confidential") == [None]
    assert provider.calls == []


@pytest.mark.parametrize(
    "said",
    [
        ProviderUnavailable("down"),
        ProviderAnswerInvalid("no JSON"),
        None,
        [],
        {"verdicts": "all"},
        {"verdicts": [{"number": "1", "contradicts": False}, 7]},
        {"verdicts": [{"number": 1, "contradicts": 0}]},
        {"verdicts": [{"number": 1, "contradicts": False}, {"number": 1, "contradicts": True}]},
    ],
)
def test_no_readable_word_leaves_it_to_the_rules(said: Any) -> None:
    assert asked(judge(FakeCompletion([said])), 1, ModelBudget(5, 10_000)) == [None]


def test_only_whole_numbers_and_truth_values_are_read() -> None:
    given = {
        "verdicts": [{"number": True, "contradicts": True}, {"number": 2, "contradicts": True}]
    }
    assert verdicts_of(given) == {2: True}
