"""One suite for the port, run over every implementation; then the port's own helpers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from memgraph.errors import InvalidConfig, ProviderAnswerInvalid, ProviderUnavailable
from memgraph.providers.embedding import (
    MAX_ANSWER_BYTES,
    MAX_CHARACTERS,
    CheckedEmbedding,
    EmbeddingProvider,
    checked,
    embedding_provider,
)

TEXTS = [
    "Anna decided to move the cache to Redis.",
    "The cache moves to Redis, Anna decided.",
    "Lunch is at noon.",
    "Ünïcödé, 漢字 and \U0001f9ea",
    "a lone \ud800 surrogate",
]


def hashed(text: str) -> list[float]:
    digest = hashlib.sha256(text.encode()).digest()
    return [byte / 255 + 0.01 for byte in digest[:8]]


@pytest.fixture(params=["local", "fake", "litellm"])
def provider(request: pytest.FixtureRequest) -> EmbeddingProvider:
    if request.param != "litellm":
        return embedding_provider(request.param)
    server = request.getfixturevalue("model_server")
    server.behave(server.embeds(hashed))
    return embedding_provider("litellm/openai/any", dimensions=8, api_base=server.url, api_key="k")


def test_rows_are_unit_float32_in_order(provider: EmbeddingProvider) -> None:
    vectors = provider.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), provider.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_array_equal(provider.embed([text])[0], vector)


def test_nothing_to_embed_gives_zeros(provider: EmbeddingProvider) -> None:
    vectors = provider.embed(["", "word", " \n\t"])
    assert np.flatnonzero(vectors.any(axis=1)).tolist() == [1]


def test_only_the_head_of_a_long_text_counts(provider: EmbeddingProvider) -> None:
    head = ("river " * MAX_CHARACTERS)[:MAX_CHARACTERS]
    first, second = provider.embed([head + " mountain", head + " desert"])
    np.testing.assert_array_equal(first, second)


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_checked_scales_to_norm_one(vectors: np.ndarray) -> None:
    out = checked(vectors, *vectors.shape, zero_rows=True)
    assert np.isfinite(out).all()
    norms = np.linalg.norm(out.astype(np.float64), axis=1)
    np.testing.assert_allclose(norms, np.abs(vectors).max(axis=1) > 0.0, atol=1e-5)


@pytest.mark.parametrize(
    ("vectors", "reason"),
    [
        ([[1.0, 2.0]], "count"),
        ([[1.0, 2.0, 3.0]] * 2, "dimensions"),
        ([[1.0, float("nan")]] * 2, "not_finite"),
        ([[1.0, float("-inf")]] * 2, "not_finite"),
        ([[1.0, None]] * 2, "not_finite"),
        ([[0.0, 0.0], [1.0, 0.0]], "zero"),
        ([[1.0], [1.0, 2.0]], "shape"),
        ([1.0, 2.0], "shape"),
        (["ab", "cd"], "shape"),
        (None, "shape"),
        ([[10**400, 1]] * 2, "shape"),
    ],
)
def test_checked_refuses(vectors: Any, reason: str) -> None:
    with pytest.raises(ProviderAnswerInvalid) as caught:
        checked(vectors, 2, 2)
    assert caught.value.details["reason"] == reason
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: embedding_provider("nosuch"), "name"),
        (lambda: embedding_provider("litellm/"), "name"),
        (lambda: embedding_provider(""), "name"),
        (lambda: embedding_provider("litellm/x"), "dimensions"),
        (lambda: embedding_provider("local", dimensions=128), "dimensions"),
        (lambda: embedding_provider("fake", dimensions=0), "dimensions"),
        (lambda: embedding_provider("litellm/x", dimensions=4, timeout_s=0.0), "timeout_s"),
        (lambda: embedding_provider("litellm/x", dimensions=4, retries=-1), "retries"),
    ],
)
def test_factory_names_the_bad_setting(make: Callable[[], object], key: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        make()
    assert caught.value.details["key"] == key


class Foreign:
    """A provider written by a user: answers whatever it was made with."""

    name, model = "foreign", "foreign-1"

    def __init__(self, answer: Any, dimensions: Any = 2) -> None:
        self.answer, self.dimensions = answer, dimensions

    def embed(self, texts: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([[np.nan, 1.0]], "not_finite"),
        (np.broadcast_to(np.float32(1.0), (1, MAX_ANSWER_BYTES // 4 + 1)), "size"),
    ],
)
def test_the_answer_of_a_foreign_provider_is_checked(answer: Any, reason: str) -> None:
    with pytest.raises(ProviderAnswerInvalid) as raised:
        CheckedEmbedding(Foreign(answer)).embed(["one"])
    assert raised.value.details["reason"] == reason


def test_an_exception_of_a_foreign_provider_is_typed_and_not_quoted() -> None:
    with pytest.raises(ProviderUnavailable) as raised:
        CheckedEmbedding(Foreign(RuntimeError("key sk-secret"))).embed(["one"])
    assert "RuntimeError" in str(raised.value)
    assert "sk-secret" not in str(raised.value)
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("dimensions", [0, -1, "2", None])
def test_a_foreign_provider_has_dimensions(dimensions: Any) -> None:
    with pytest.raises(InvalidConfig):
        CheckedEmbedding(Foreign([], dimensions))
