"""A reflection by a model: every sentence cites what it was given, or is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.consolidation.reflection_model import MAX_PROMPT_TOKENS, reflect_with_model
from memgraph.consolidation.week import WeekLine
from memgraph.errors import ProviderAnswerInvalid
from memgraph.model.enums import MemoryKind, MemoryType, Sensitivity
from memgraph.model.jobs import RejectedItem
from memgraph.model.values import Memory
from memgraph.providers.fake import FakeCompletion


def memory(number: int, **changed: Any) -> Memory:
    given: dict[str, Any] = {
        "memory_id": f"fact_{number}",
        "kind": MemoryKind.FACT,
        "content": f"The garden has {number} <trees>.",
        "type": MemoryType.FACT,
        "event_time": None,
        "created_at": 86_400_000,
        "sensitivity": Sensitivity.INTERNAL,
        "source_role": None,
    }
    return Memory.model_construct(**(given | changed))


def sentence(*numbers: Any, text: Any = "The garden grew.") -> dict[str, Any]:
    return {"text": text, "lines": list(numbers)}


def reflected(
    *sentences: Any,
    memories: list[Memory] | None = None,
) -> tuple[list[WeekLine], list[RejectedItem]]:
    return reflect_with_model(
        FakeCompletion([{"sentences": list(sentences)}]),
        [memory(7), memory(8), memory(9)] if memories is None else memories,
        max_sensitivity=Sensitivity.INTERNAL,
    )


def test_sentences_with_the_ids_they_cite() -> None:
    found = reflected(sentence(1, 3, 1), sentence(2, text="Two\n more\u202e trees."))
    assert found == (
        [
            WeekLine("The garden grew.", ("fact_7", "fact_9")),
            WeekLine("Two more trees.", ("fact_8",)),
        ],
        [],
    )


def test_memories_are_fenced_and_numbered_with_their_speaker_and_what_came_instead() -> None:
    provider = FakeCompletion([{"sentences": [sentence(1)]}])
    reflect_with_model(
        provider,
        [memory(7, source_role="Mira"), memory(8), memory(9)],
        [("fact_9", "fact_7", 1.0), ("fact_9", "fact_8", 0.9), ("fact_9", "fact_4", 1.0)],
        max_sensitivity=Sensitivity.INTERNAL,
    )
    assert provider.calls[0][1].split("\n")[1:-1] == [
        "1 [1970-01-02] Mira: The garden has 7 <trees>. (replaced by 3)",
        "2 [1970-01-02] Fact: The garden has 8 <trees>. (probably changed by 3)",
        "3 [1970-01-02] Fact: The garden has 9 <trees>.",
    ]


@pytest.mark.parametrize(
    "bad",
    [
        "nonsense",
        {"text": "The garden grew."},
        sentence(1, text=7),
        sentence(1, text=" \x00\u200b"),
        sentence(),
        {"text": "All of it.", "lines": "all"},
        sentence(4),
        sentence(0),
        sentence("fact_97"),
    ],
)
def test_a_sentence_that_cites_nothing_is_dropped_and_counted(bad: Any) -> None:
    lines, rejected = reflected(bad, sentence(1))
    assert [each.text for each in lines] == ["The garden grew."]
    assert [(each.code, each.count) for each in rejected] == [("reflection.uncited", 1)]


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        ("", ""),
        ("Garden grew.", "Garden grew."),
        ("7 trees grew.", "7 trees grew."),
        ("8 trees grew.", ""),
        ("Ann has trees.", ""),
        ("The garden grew and anybody may have its keys.", ""),
    ],
)
def test_of_a_sentence_that_the_memories_say_in_part_that_part_is_kept(
    answer: str, part: str
) -> None:
    provider = FakeCompletion([{"sentences": [sentence(1), sentence(2, text="Rain!")]}])
    verdicts = [
        {"statement": 1, "differs": "when", "says": "partly", "text": answer},
        {"statement": 2, "differs": "", "says": "yes", "text": ""},
    ]

    class Checking(FakeCompletion):
        def complete_json(self, system: str, user: str, schema: Any) -> Any:
            given = provider.complete_json(system, user, schema)
            return {"verdicts": verdicts} if provider.checks else given

    lines, rejected = reflect_with_model(
        Checking(),
        [memory(7), memory(8)],
        max_sensitivity=Sensitivity.INTERNAL,
    )
    assert [each.text for each in lines] == ([part] if part else []) + ["Rain!"]
    assert [each.code for each in rejected] == ([] if part else ["reflection.said_partly"])
    [check] = provider.checks
    assert "1 [1970-01-02] Fact: The garden has 7 <trees>." in check
    assert "statement 1 (cites 1): The garden grew." in check


@pytest.mark.parametrize("answer", [None, [], {"sentences": None}, {"sentences": [sentence(9)]}])
def test_an_answer_without_a_usable_sentence_is_invalid(answer: Any) -> None:
    with pytest.raises(ProviderAnswerInvalid):
        reflect_with_model(
            FakeCompletion([answer, answer]),
            [memory(1)],
            max_sensitivity=Sensitivity.INTERNAL,
        )


def test_what_is_too_sensitive_or_too_much_is_not_sent() -> None:
    secret = memory(1, sensitivity=Sensitivity.CONFIDENTIAL)
    assert reflected(sentence(1), memories=[secret]) == ([], [])
    assert reflected(sentence(1), memories=[]) == ([], [])
    [line], _ = reflected(sentence(1), memories=[secret, memory(2)])
    assert line.memory_ids == ("fact_2",)
    provider = FakeCompletion([{"sentences": [sentence(1, text="The tree grew.")]}])
    many = [memory(n, content="tree " * 200) for n in range(1_000)]
    reflect_with_model(provider, many, max_sensitivity=Sensitivity.INTERNAL)
    sent = provider.calls[0][1].count("\n") - 1
    assert 100 < sent < MAX_PROMPT_TOKENS // 100
