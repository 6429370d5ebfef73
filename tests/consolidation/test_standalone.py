"""First person to third: only where the grammar is plain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.consolidation.speakers import Speaker, other_of, speaker_of
from memgraph.consolidation.standalone import resolve
from memgraph.consolidation.words import third_person, words_of


def person(role: str) -> Speaker:
    found = speaker_of(role)
    assert found is not None
    return found


ANA, BEN, USER = person("Ana"), person("Ben"), person("user")


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("I moved to Lisbon with my wife.", "Ana moved to Lisbon with their wife."),
        ("My dog is called Rex.", "Ana's dog is called Rex."),
        ("I'm a nurse and work at the clinic.", "Ana is a nurse and works at the clinic."),
        ("I live in Berlin and love the winters.", "Ana lives in Berlin and loves the winters."),
        ("I love to cook and bake.", "Ana loves to cook and bake."),
        ("I enjoy hiking but hate running.", "Ana enjoys hiking but hates running."),
        ("I'd been there before.", "Ana had been there before."),
        ("I'd love to paint.", "Ana would love to paint."),
        ("I've never tried sushi.", "Ana has never tried sushi."),
        ("I don't eat meat.", "Ana doesn't eat meat."),
        ("I haven't decided yet.", "Ana hasn't decided yet."),
        ("I was ill, so I stayed in.", "Ana was ill, so they stayed in."),
        ("I gotta call my mom.", "Ana has to call their mom."),
        ("I'm gonna sell my car.", "Ana is going to sell their car."),
        ("I really only try fish.", "Ana really only tries fish."),
        ("My wife and I moved away.", "Ana and their wife moved away."),
        ("My boss and I don't agree.", "Ana and their boss don't agree."),
        ("My boss and I'm sure my cat left.", "Ana and their boss are sure Ana's cat left."),
        ("Nate and I are going out.", "Nate and Ana are going out."),
        ("Our cat is three.", "Ana's cat is three."),
        ("When I was ten, my family left.", "When Ana was ten, their family left."),
        ("Last May I finally took a break.", "Last May Ana finally took a break."),
        ("I think I want to leave.", "Ana thinks they want to leave."),
    ],
)
def test_the_speaker_is_named_and_the_verb_agrees(said: str, written: str) -> None:
    assert resolve(said, ANA, BEN) == written


def test_a_role_is_written_as_who_it_is() -> None:
    assert resolve("I like tea.", USER, None) == "The user likes tea."
    assert resolve("Yesterday I sold my car.", USER, None) == "Yesterday the user sold their car."


def test_they_is_not_said_where_somebody_else_could_be_meant() -> None:
    assert resolve("I told the kids my story.", ANA, None) == "Ana told the kids Ana's story."
    assert resolve("I called Tom and my boss.", ANA, None) == "Ana called Tom and Ana's boss."


def test_you_is_the_other_of_two() -> None:
    assert resolve("I will send you your book.", ANA, BEN) == "Ana will send Ben Ben's book."
    assert resolve("I will send you your book.", ANA, None) is None


@pytest.mark.parametrize(
    "said",
    [
        "We went camping.",
        "I read a lot.",
        "So did I think.",
        "World War I started then.",
        "I, well, you know.",
        "I the.",
    ],
)
def test_what_is_not_plain_is_left_alone(said: str) -> None:
    assert resolve(said, ANA, None) is None


@pytest.mark.parametrize(
    ("base", "third"),
    [("try", "tries"), ("play", "plays"), ("watch", "watches"), ("have", "has"), ("fix", "fixes")],
)
def test_the_third_person(base: str, third: str) -> None:
    assert third_person(base) == third


def test_who_is_heard() -> None:
    assert speaker_of("system") is None
    assert speaker_of(" ") is None
    assert speaker_of("tool") is None
    assert person("assistant").agent
    assert person("AI").name == "the AI"
    assert person("ana").name == "Ana"
    assert other_of(ANA, ["Ana", "Ben", "system"]) == BEN
    assert other_of(ANA, ["Ana", "Ben", "Cleo"]) is None
    assert other_of(ANA, ["Ana"]) is None


WORDS = ["I", "you", "my", "we", "am", "'m", "was", "the", "a", "dog", "and", ",", "run", "I'd'"]


@given(st.lists(st.sampled_from(WORDS)))
def test_any_words_are_resolved_or_left(said: list[str]) -> None:
    text = " ".join(said)
    written = resolve(text, ANA, BEN)
    if written is not None:
        lowers = {word.lower for word in words_of(written)}
        assert not lowers & {"i", "my", "we", "you", "i'm"}
