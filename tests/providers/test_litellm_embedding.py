"""The litellm path against a real server that answers well, badly, late or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memgraph.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
)
from memgraph.providers import _litellm, litellm_embedding
from memgraph.providers._litellm import MAX_WAIT_S, ModelConnection
from memgraph.providers.litellm_embedding import LitellmEmbedding

NoSecret = Callable[[BaseException], None]


def one_hot(text: str) -> list[float]:
    """Marks the text by its length, so that order shows in the vectors."""
    return [float(place == len(text) % 4) for place in range(4)]


@pytest.fixture
def make(
    model_server: Any, key: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., LitellmEmbedding]:
    monkeypatch.setattr(_litellm, "FIRST_WAIT_S", 0.0)

    def build(model: str = "openai/any", **changed: Any) -> LitellmEmbedding:
        settings = {
            "dimensions": 4,
            "timeout_s": 10.0,
            "retries": 2,
            "api_base": model_server.url,
            "api_key": key,
        }
        return LitellmEmbedding(model, **(settings | changed))

    return build


def failure(provider: LitellmEmbedding) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        provider.embed(["some text"])
    return caught.value


def test_batches_keep_the_order(
    model_server: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm_embedding, "BATCH_SIZE", 2)
    model_server.behave(model_server.embeds(one_hot))
    texts = ["aaa", "", "a", "aa", "aaaa", "  ", "a"]
    vectors = make().embed(texts)
    assert [row.tolist() for row in vectors] == [
        one_hot(text) if text.strip() else [0.0] * 4 for text in texts
    ]
    assert [request["input"] for request in model_server.requests] == [
        ["aaa", "a"],
        ["aa", "aaaa"],
        ["a"],
    ]


def test_sends_key_model_and_wanted_dimensions(model_server: Any, make: Any, key: str) -> None:
    model_server.behave(model_server.embeds(one_hot))
    make("openai/text-embedding-3-small").embed(["x"])
    request = model_server.requests[0]
    assert request["authorization"] == f"Bearer {key}"
    assert request["path"] == "/v1/embeddings"
    assert (request["model"], request["dimensions"]) == ("text-embedding-3-small", 4)


def test_the_key_may_come_from_the_environment(
    model_server: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    model_server.behave(model_server.embeds(one_hot))
    make(api_key=None).embed(["x"])
    assert model_server.requests[0]["authorization"] == "Bearer sk-from-environment"


@pytest.mark.parametrize("status", [429, 503])
def test_passing_trouble_is_retried(model_server: Any, make: Any, status: int) -> None:
    model_server.behave(
        model_server.fails(status), model_server.fails(status), model_server.embeds(one_hot)
    )
    np.testing.assert_array_equal(make().embed(["aa"]), [one_hot("aa")])
    assert len(model_server.requests) == 3


@pytest.mark.parametrize("status", [400, 401])
def test_a_refusal_is_not_retried(
    model_server: Any, make: Any, assert_no_secret: NoSecret, status: int
) -> None:
    model_server.behave(model_server.fails(status))
    error = failure(make())
    assert isinstance(error, ProviderRejected)
    assert error.details["status"] == status
    assert len(model_server.requests) == 1
    assert_no_secret(error)


def test_a_slow_server_times_out(model_server: Any, make: Any, assert_no_secret: NoSecret) -> None:
    model_server.behave(model_server.hangs)
    error = failure(make(timeout_s=0.2, retries=1))
    assert isinstance(error, ProviderUnavailable)
    assert len(model_server.requests) == 2
    assert_no_secret(error)


def test_retry_after_is_obeyed_or_ends_it(
    model_server: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_litellm, "FIRST_WAIT_S", MAX_WAIT_S)
    model_server.behave(model_server.fails(429, retry_after="0"), model_server.embeds(one_hot))
    assert make().embed(["aa"]).any()
    model_server.behave(model_server.fails(429, retry_after="3600"))
    model_server.requests.clear()
    assert failure(make()).details["retry_after_s"] == 3600
    assert len(model_server.requests) == 1


def vectors_body(*vectors: Any, first: int = 0) -> dict[str, Any]:
    data = [
        {"object": "embedding", "index": place, "embedding": vector}
        for place, vector in enumerate(vectors, start=first)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": "m", "data": data, "usage": usage}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (vectors_body([1.0, 2.0, 3.0]), "dimensions"),
        (vectors_body([1.0] * 4, [1.0] * 4), "count"),
        (vectors_body([1.0] * 4, first=1), "count"),
        (vectors_body("not a vector"), "shape"),
        ({"object": "list", "data": None}, "shape"),
        ("<html>hello</html>", "unreadable"),
        (b"\xff\xfe\x00", "unreadable"),
    ],
)
def test_an_unusable_answer_is_told_apart(
    model_server: Any, make: Any, assert_no_secret: NoSecret, body: Any, reason: str
) -> None:
    model_server.behave(model_server.says(200, body))
    error = failure(make())
    assert isinstance(error, ProviderAnswerInvalid)
    assert error.details["reason"] == reason
    assert len(model_server.requests) == 1
    assert_no_secret(error)


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "no-such-provider-anywhere"},
        {"api_base": "nonsense"},
        {"api_key": "sk\nbroken"},
    ],
)
def test_unusable_settings_are_rejected(make: Any, changed: dict[str, Any]) -> None:
    assert isinstance(failure(make(**changed)), ProviderRejected)


def test_a_missing_key_is_rejected(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    error = failure(make(api_key=None))
    assert isinstance(error, ProviderRejected)
    assert "key" in error.message


def test_a_connection_does_not_show_its_key(key: str) -> None:
    assert key not in repr(ModelConnection("m", 1.0, 0, api_key=key))


def test_litellm_is_told_to_stay_offline_before_it_is_imported(tmp_path: Path) -> None:
    """A stand-in module tells what the environment was at its import."""
    (tmp_path / "litellm.py").write_text(
        "import os\nprint(os.environ['LITELLM_LOCAL_MODEL_COST_MAP'], os.environ['LITELLM_MODE'])\n"
    )
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from memgraph.providers._litellm import _litellm\n"
        "print(_litellm().telemetry)\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM_")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.splitlines() == ["True PRODUCTION", "False"]


def test_pauses_double_with_jitter_up_to_the_limit(
    model_server: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    model_server.behave(model_server.fails(503))
    monkeypatch.setattr(_litellm, "FIRST_WAIT_S", 4.0)
    failure(make(retries=5))
    bounds = [(4, 8), (8, 12), (16, 20), (30, 34), (30, 34)]
    assert len(pauses) == len(bounds)
    for pause, (low, high) in zip(pauses, bounds, strict=True):
        assert low <= pause <= high
