"""A reflection by a model: every sentence cites what it was given, or is dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memgraph.consolidation.reflection_model import (
    MAX_CITED,
    MAX_PROMPT_TOKENS,
    MAX_SENTENCE_CHARS,
    MAX_SENTENCES,
    CitedSentence,
    ModelReflection,
    ReflectionInput,
    reflect_with_model,
)
from memgraph.errors import ProviderAnswerInvalid, ProviderUnavailable
from memgraph.model.enums import MemoryType, Sensitivity
from memgraph.providers.completion import ModelBudget
from memgraph.providers.fake import FakeCompletion


def memory(number: int, **changed: Any) -> ReflectionInput:
    given: dict[str, Any] = {
        "memory_id": f"fact_{number}",
        "content": f"The garden has {number} <trees>.",
        "type": MemoryType.FACT,
        "at_ms": 86_400_000,
        "sensitivity": Sensitivity.INTERNAL,
    }
    return ReflectionInput(**(given | changed))


def sentence(*numbers: Any, text: Any = "The garden grew.") -> dict[str, Any]:
    return {"text": text, "memories": list(numbers)}


def reflected(
    *sentences: Any,
    memories: list[ReflectionInput] | None = None,
    budget: ModelBudget | None = None,
) -> ModelReflection | None:
    return reflect_with_model(
        FakeCompletion([{"sentences": list(sentences)}]),
        [memory(7), memory(8), memory(9)] if memories is None else memories,
        budget or ModelBudget(3, 100_000),
        max_sensitivity=Sensitivity.INTERNAL,
    )


def test_sentences_with_the_ids_they_cite() -> None:
    budget = ModelBudget(3, 100_000)
    found = reflected(sentence(1, 3, 1), sentence(2, text="Two\n more\u202e trees."), budget=budget)
    assert found is not None
    assert found.sentences == (
        CitedSentence("The garden grew.", ("fact_7", "fact_9")),
        CitedSentence("Two more trees.", ("fact_8",)),
    )
    assert found.text == "- The garden grew. [fact_7, fact_9]\n- Two more trees. [fact_8]"
    assert found.cited == ("fact_7", "fact_9", "fact_8")
    assert (found.sent, found.rejected) == (3, ())
    assert budget.calls == 1
    assert budget.tokens < 100_000


def test_memories_are_fenced_and_numbered() -> None:
    provider = FakeCompletion([{"sentences": [sentence(1)]}])
    reflect_with_model(
        provider,
        [memory(7)],
        ModelBudget(1, 1_000),
        max_sensitivity=Sensitivity.INTERNAL,
        mark=lambda: "mark",
    )
    begin, line, end = provider.calls[0][1].split("\n")
    assert (begin, end) == ("<data-mark>", "</data-mark>")
    assert json.loads(line)["text"].endswith("<trees>.")
    assert json.loads(line) == {
        "number": 1,
        "type": "Fact",
        "at": "1970-01-02",
        "text": "The garden has 7 <trees>.",
    }


def test_a_line_has_its_speaker_and_what_came_instead() -> None:
    provider = FakeCompletion([{"sentences": [sentence(1)]}])
    reflect_with_model(
        provider,
        [memory(7, speaker="Mira"), memory(8), memory(9)],
        ModelBudget(3, 10_000),
        [("fact_9", "fact_7", 1.0), ("fact_9", "fact_8", 0.9), ("fact_9", "fact_4", 1.0)],
        max_sensitivity=Sensitivity.INTERNAL,
    )
    first, second, third = map(json.loads, provider.calls[0][1].split("\n")[1:-1])
    assert (first["speaker"], first["replaced_by"]) == ("Mira", [3])
    assert second["probably_changed_by"] == [3]
    assert third.keys() == {"number", "type", "at", "text"}


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ("nonsense", "fields"),
        ({"text": "The garden grew."}, "fields"),
        (sentence(1, text=7), "text"),
        (sentence(1, text=" \x00\u200b"), "text"),
        (sentence(1, text="g" * (MAX_SENTENCE_CHARS + 1)), "text_too_long"),
        (sentence(), "uncited"),
        (sentence(*[1] * (MAX_CITED + 1)), "uncited"),
        ({"text": "All of it.", "memories": "all"}, "uncited"),
        (sentence(4), "citation_unknown"),
        (sentence(0), "citation_unknown"),
        (sentence(-1), "citation_unknown"),
        (sentence(True), "citation_unknown"),
        (sentence("fact_7"), "citation_unknown"),
        (sentence(1, 4), "citation_unknown"),
    ],
)
def test_a_sentence_that_cannot_be_used_is_dropped_and_told(bad: Any, code: str) -> None:
    found = reflected(bad, sentence(1))
    assert found is not None
    assert [each.text for each in found.sentences] == ["The garden grew."]
    assert [(each.code, each.where) for each in found.rejected] == [
        (f"reflection.{code}", "sentence 0")
    ]


def test_a_sentence_that_the_cited_memories_do_not_say_is_dropped() -> None:
    provider = FakeCompletion([{"sentences": [sentence(1)]}], says="partly")
    with pytest.raises(ProviderAnswerInvalid) as caught:
        reflect_with_model(
            provider, [memory(7)], ModelBudget(3, 9_000), max_sensitivity=Sensitivity.INTERNAL
        )
    assert caught.value.details["rejected"] == [("reflection.said_partly", "sentence 0")]
    [check] = provider.checks
    assert "1 [1970-01-02] Fact: The garden has 7 <trees>." in check
    assert "statement 1 (cites 1): The garden grew." in check


def test_its_length_is_bounded() -> None:
    found = reflected(*[sentence(1, text=("tree " * 80)[:MAX_SENTENCE_CHARS])] * 1_000)
    assert found is not None
    assert len(found.sentences) == MAX_SENTENCES
    assert [each.code for each in found.rejected] == ["reflection.too_many"]


@pytest.mark.parametrize("answer", [None, [], {"sentences": None}, {"sentences": [sentence(9)]}])
def test_an_answer_without_a_usable_sentence_is_invalid(answer: Any) -> None:
    with pytest.raises(ProviderAnswerInvalid):
        reflect_with_model(
            FakeCompletion([answer]),
            [memory(1)],
            ModelBudget(1, 1_000),
            max_sensitivity=Sensitivity.INTERNAL,
        )


def test_a_model_that_is_down_is_told_and_its_call_counted() -> None:
    budget = ModelBudget(2, 1_000)
    with pytest.raises(ProviderUnavailable):
        reflect_with_model(
            FakeCompletion(), [memory(1)], budget, max_sensitivity=Sensitivity.INTERNAL
        )
    assert budget.calls == 1


def test_what_is_too_sensitive_or_too_much_is_not_sent() -> None:
    secret = memory(1, sensitivity=Sensitivity.CONFIDENTIAL)
    assert reflected(sentence(1), memories=[secret]) is None
    assert reflected(sentence(1), memories=[]) is None
    found = reflected(sentence(1), memories=[secret, memory(2)])
    assert found is not None
    assert (found.cited, found.sent) == (("fact_2",), 1)
    many = [memory(n, content="tree " * 200) for n in range(1_000)]
    found = reflected(sentence(1, text="The tree grew."), memories=many)
    assert found is not None
    assert 100 < found.sent < MAX_PROMPT_TOKENS // 100


def test_without_a_budget_the_model_is_not_asked() -> None:
    assert reflected(sentence(1), budget=ModelBudget(0, 1_000)) is None
