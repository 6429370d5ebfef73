"""The fakes that users' tests build on."""

from __future__ import annotations

import pytest

from memgraph.errors import ProviderRejected, ProviderUnavailable
from memgraph.providers.completion import CompletionProvider
from memgraph.providers.fake import FakeCompletion, FakeEmbedding


def test_vectors_are_the_same_in_every_release() -> None:
    vector = FakeEmbedding(4).embed(["hello world"])[0]
    assert [round(float(x), 4) for x in vector] == [-0.3725, -0.879, 0.2707, -0.1236]


def test_shared_words_bring_texts_together() -> None:
    a, b, c = FakeEmbedding(256).embed(["red green blue", "Blue, red!", "one two three"])
    assert a @ b > 0.5 > abs(a @ c)


def test_can_fail_and_come_back() -> None:
    fake = FakeEmbedding(fail_with=ProviderUnavailable("down"))
    with pytest.raises(ProviderUnavailable):
        fake.embed(["a", "b"])
    fake.fail_with = None
    assert fake.embed(["a"]).any()
    assert fake.calls == [2, 1]


def test_answers_come_in_order_then_none() -> None:
    answers = [{"n": [1]}, ProviderRejected("no")]
    fake = FakeCompletion(answers)
    assert isinstance(fake, CompletionProvider)
    first = fake.complete_json("s", "u1", {})
    first["n"].append(2)
    assert answers[0] == {"n": [1]}
    with pytest.raises(ProviderRejected):
        fake.complete_json("s", "u2", {})
    with pytest.raises(ProviderUnavailable):
        fake.complete_json("s", "u3", {})
    assert fake.calls == [("s", "u1"), ("s", "u2"), ("s", "u3")]
