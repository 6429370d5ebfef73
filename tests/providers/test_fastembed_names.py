"""Models by the names that fastembed knows: its real table, a cache made here, no network."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from adapter_environments import needs
from test_onnx_embedding import graph, tokenizer

from memgraph import MemoryService
from memgraph.errors import ExtraMissing, InvalidConfig, ProviderRejected
from memgraph.providers.embedding import embedding_provider
from memgraph.providers.onnx_embedding import UNREADABLE

MEAN = "sentence-transformers/all-MiniLM-L6-v2"
FIRST = "BAAI/bge-small-en-v1.5"
OTHERWISE = "jinaai/jina-embeddings-v3"

Put = Callable[[str], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Lay a tiny model down where fastembed keeps what it downloaded under a name."""
    needs("fastembed", "fastembed")
    from fastembed import TextEmbedding

    def put(name: str) -> Path:
        [known] = [each for each in TextEmbedding.list_supported_models() if each["model"] == name]
        held = tmp_path / "cache" / ("models--" + known["sources"]["hf"].replace("/", "--"))
        (held / "refs").mkdir(parents=True)
        (held / "refs" / "main").write_text("0" * 40)
        folder = held / "snapshots" / ("0" * 40)
        for file in (known["model_file"], *known["additional_files"]):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(graph())
        (folder / "tokenizer.json").write_text(tokenizer())
        return tmp_path / "cache"

    return put


def test_a_name_is_found_in_the_cache_and_pooled_as_the_table_says(put: Put) -> None:
    for name, vector in ((MEAN, (0.5**0.5, 0.5**0.5, 0)), (FIRST, (0, 1, 0))):
        cache = str(put(name))
        for spelled in (name, name.upper()):
            made = embedding_provider("onnx", dimensions=3, model=spelled, model_folder=cache)
            assert made.embed(["reed stork"]).tolist() == [pytest.approx(vector)]
            assert made.model.startswith("onnx:")
            assert made.model != UNREADABLE


def test_the_cache_of_the_environment_is_looked_into(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(put(MEAN)))
    made = embedding_provider("onnx", dimensions=3, model=MEAN)
    assert made.embed(["heron"]).tolist() == [pytest.approx((0.6, 0.8, 0))]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nobody/knows-this", "does not know a model"),
        (FIRST, "cache does not contain"),
        (OTHERWISE, "other than the mean or the first"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(put: Put, name: str, reason: str) -> None:
    cache = str(put(OTHERWISE))
    made = embedding_provider("onnx", dimensions=3, model=name, model_folder=cache)
    assert made.model == UNREADABLE
    with pytest.raises(ProviderRejected, match=reason) as refused:
        made.embed(["heron"])
    assert refused.value.details["model"] == name


def test_recall_uses_a_named_model(put: Put, tmp_path: Path) -> None:
    config = {"provider": "onnx", "model": MEAN, "dimensions": 3, "model_folder": str(put(MEAN))}
    settings = {f"memory.embedding.{key}": one for key, one in config.items()}
    with MemoryService(tmp_path / "root", environ={}, background=False, config=settings) as service:
        orc = service.orchestrator("ponds", create=True)
        near = orc.remember("crane")
        orc.remember("stork")
        orc.maintenance.embed_pending()
        [first, _] = orc.recall("heron").items
    assert first.memory.memory_id == near
    assert first.legs["vector"] == 1


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    made = embedding_provider("onnx", dimensions=3, model=MEAN)
    assert made.model == UNREADABLE
    with pytest.raises(
        ExtraMissing, match=r"pip install 'memgraph-memory\[fastembed\]'"
    ) as missing:
        made.embed(["heron"])
    assert (missing.value.code, missing.value.details["extra"]) == ("extra.missing", "fastembed")


def test_a_relative_cache_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="absolute"):
        embedding_provider("onnx", dimensions=3, model=MEAN, model_folder="cache")
