"""What recall must keep doing whatever its weights are: old answers, plain facts, legs left out."""

from __future__ import annotations

import random

import pytest

from benchmarks import ablation
from memgraph import Orchestrator

LEGS = ("text", "vector", "entity", "graph", "succession", "context")
TEAMS = ("billing", "search", "identity", "payments", "shipping", "mobile", "archive", "pricing")
THINGS = ("database", "queue", "build server", "release day", "on-call phone", "style guide")
WAYS = (
    "The {team} team decided on {value} for its {thing}.",
    "For the {thing} of {team}, {value} was chosen.",
    "{value} it is: the {thing} of the {team} team.",
)
QUESTIONS = (
    "What did the {team} team choose as {thing}?",
    "Which {thing} does {team} use?",
    "What was decided about the {thing} for {team}?",
)


@pytest.mark.parametrize("kind", ["fact", "episode"])
def test_an_old_event_does_not_bury_the_only_answer(orc: Orchestrator, kind: str) -> None:
    answer = orc.remember(
        "The spare key hangs behind the boiler.", kind=kind, event_time="1970-01-02"
    )
    for number in range(60):
        orc.remember(f"The boiler was looked after by firm {number}.", importance=80)
        orc.remember(f"Key figures of quarter {number} were fine.", importance=80)
    orc.settle()
    assert answer in orc.recall("Where is the spare key for the boiler?", top_n=3).ids


def test_plain_facts_are_found_among_many_that_share_words(orc: Orchestrator) -> None:
    chance = random.Random(11)
    told: dict[tuple[str, str], str] = {}
    for team in TEAMS:
        for thing in THINGS:
            value = f"{chance.choice('KLMNPRST')}{chance.choice('aeiou')}r{chance.randrange(10**6)}"
            text = chance.choice(WAYS).format(team=team, thing=thing, value=value)
            told[team, thing] = orc.remember(
                text, event_time=f"{chance.randrange(2001, 2025)}-01-01"
            )
    orc.settle()
    places = [
        orc.recall(question.format(team=team, thing=thing), top_n=10).ids.index(wanted) + 1
        for (team, thing), wanted in told.items()
        for question in QUESTIONS
    ]
    assert sum(place == 1 for place in places) >= 0.95 * len(places)
    assert max(places) <= 3


def test_a_leg_of_weight_zero_is_not_run(orc: Orchestrator) -> None:
    one = orc.remember("Greta Holm repairs the harbour crane.", kind="episode", session_id="s")
    orc.remember("She was late for the harbour.", kind="episode", session_id="s")
    joined = orc.remember("Invoice 7 was paid.")
    orc.relate(one, "CausedBy", joined)
    old = orc.remember("The harbour crane is red.")
    orc.correct(old, "It was painted over in green.", reason="seen")
    orc.settle()
    question = "Which harbour crane does Greta Holm repair?"
    assert {leg for item in orc.recall(question).items for leg in item.legs} == set(LEGS)
    for left_out in LEGS:
        with ablation.Variant({left_out: 0.0}).ranks():
            bundle = orc.recall(question)
        assert {leg for item in bundle.items for leg in item.legs} == set(LEGS) - {left_out}
        assert one in bundle.ids
