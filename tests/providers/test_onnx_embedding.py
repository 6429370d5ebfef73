"""A model of ONNX from a folder: tiny graphs made here, and folders that hold no model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from memgraph import MemoryService
from memgraph.errors import (
    ExtraMissing,
    InvalidConfig,
    ProviderAnswerInvalid,
    ProviderRejected,
    ProviderUnavailable,
)
from memgraph.providers import onnx_embedding
from memgraph.providers.embedding import EmbeddingProvider, embedding_provider
from memgraph.providers.onnx_embedding import UNREADABLE, OnnxEmbedding

WORDS = ("[PAD]", "[UNK]", "heron", "crane", "reed", "stork")
TABLE = np.array(
    [[9, 9, 9], [0, 0, 1], [3, 4, 0], [4, 3, 0], [0, 5, 0], [5, 0, 0]], dtype=np.float32
)


def graph(table: np.ndarray = TABLE, inputs: tuple[str, ...] = ("input_ids",)) -> bytes:
    """Return a model whose token vectors are rows of a table."""
    values = [
        helper.make_tensor_value_info(each, TensorProto.INT64, ["n", "tokens"]) for each in inputs
    ]
    out = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, ["n", "tokens", table.shape[1]]
    )
    node = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    made = helper.make_graph(
        [node], "tiny", values, [out], [numpy_helper.from_array(table, "table")]
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


def tokenizer() -> str:
    words = Tokenizer(WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    # As many are published: padded to a fixed length and cut early.
    words.enable_padding(length=16)
    words.enable_truncation(2)
    text: str = words.to_str()
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(graph())
    (folder / "tokenizer.json").write_text(tokenizer())
    return folder


def provider(folder: Path, dimensions: int = 3, batch_size: int = 8) -> OnnxEmbedding:
    return OnnxEmbedding(folder, dimensions=dimensions, batch_size=batch_size)


def test_a_vector_is_the_mean_of_the_token_vectors(folder: Path) -> None:
    found = provider(folder).embed(["reed stork", "heron", " ", ""])
    half = 0.5**0.5
    assert found.tolist() == pytest.approx(
        np.array([[half, half, 0], [0.6, 0.8, 0], [0, 0, 0], [0, 0, 0]])
    )
    assert found.dtype == np.float32


def test_a_text_has_the_same_vector_beside_longer_ones(folder: Path) -> None:
    texts = ["heron", "crane reed stork heron", "reed", "stork reed"]
    for batch_size in (1, 2, 8):
        together = provider(folder, batch_size=batch_size).embed(texts)
        alone = np.concatenate([provider(folder).embed([each]) for each in texts])
        assert together == pytest.approx(alone)


def test_the_first_token_counts_where_the_model_says_so(folder: Path) -> None:
    before = provider(folder).model
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert provider(folder).embed(["heron stork"]).tolist() == [pytest.approx([0.6, 0.8, 0.0])]
    assert provider(folder).model != before


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
    ],
)
def test_a_long_text_is_cut_where_the_model_says(folder: Path, file: str, key: str) -> None:
    (folder / file).write_text(json.dumps({key: 1}))
    assert provider(folder).embed(["heron stork"]).tolist() == [pytest.approx([0.6, 0.8, 0.0])]


def test_vectors_are_cut_to_the_configured_dimensions(folder: Path) -> None:
    cut = provider(folder, dimensions=2)
    assert cut.embed(["heron"]).tolist() == [pytest.approx([0.6, 0.8])]
    assert cut.model != provider(folder).model


def test_more_dimensions_than_the_model_has_are_refused(folder: Path) -> None:
    with pytest.raises(ProviderAnswerInvalid) as refused:
        provider(folder, dimensions=4).embed(["heron"])
    assert refused.value.details["reason"] == "dimensions"


def test_a_vector_of_the_text_is_taken_as_it_is(folder: Path) -> None:
    pooled = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["n", 3])
    model = onnx.load_from_string(graph())
    axes = numpy_helper.from_array(np.array([1], dtype=np.int64), "axes")
    model.graph.initializer.append(axes)
    model.graph.node.append(
        helper.make_node("ReduceSum", ["last_hidden_state", "axes"], [pooled.name], keepdims=0)
    )
    model.graph.output.append(pooled)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    assert provider(folder).embed(["reed"]).tolist() == [pytest.approx([0.0, 1.0, 0.0])]


@pytest.mark.parametrize("name", ["model_optimized.onnx", "onnx/model.onnx"])
def test_other_places_of_the_graph(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / "model.onnx").rename(folder / name)
    assert provider(folder).embed(["heron"]).any()


def test_a_model_is_known_by_its_bytes(folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    name = provider(folder).model
    folder.rename(moved)
    assert provider(moved).model == name
    (moved / "model.onnx").write_bytes(graph(TABLE[:, ::-1].copy()))
    assert provider(moved).model != name


def _replaced(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(data)


def _deep(folder: Path) -> None:
    (folder / "sentence_bert_config.json").write_text("[" * 200_000)


def _pipe(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")


def _folder(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").mkdir()


@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (lambda folder: (folder / "model.onnx").unlink(), "model.onnx"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json"),
        (_replaced("model.onnx", b""), "model.onnx"),
        (_replaced("model.onnx", b"\x00\xff" * 999), "model.onnx"),
        (_replaced("model.onnx", graph()[:-9]), "model.onnx"),
        (_replaced("model.onnx", graph(inputs=("input_ids", "pixels"))), "model.onnx"),
        (_replaced("tokenizer.json", b"{}"), "tokenizer.json"),
        (_replaced("tokenizer.json", b"\xff\xfe"), "tokenizer.json"),
        (_replaced("sentence_bert_config.json", b"{"), "sentence_bert_config.json"),
        (_deep, "sentence_bert_config.json"),
        (_pipe, "tokenizer.json"),
        (_folder, "model.onnx"),
    ],
)
def test_a_folder_without_a_model_is_rejected(
    folder: Path, damage: Callable[[Path], object], file: str
) -> None:
    damage(folder)
    with pytest.raises(ProviderRejected) as rejected:
        provider(folder).embed(["heron"])
    assert rejected.value.details["file"] == file


def test_a_file_that_is_too_large_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_embedding, "MAX_MODEL_BYTES", 10)
    assert provider(folder).model == UNREADABLE
    with pytest.raises(ProviderRejected, match="too large"):
        provider(folder).embed(["heron"])


def test_a_graph_names_no_file_beside_it(folder: Path) -> None:
    model = onnx.load_from_string(graph())
    [table] = model.graph.initializer
    (folder / "table").write_bytes(table.raw_data)
    table.ClearField("raw_data")
    table.data_location = TensorProto.EXTERNAL
    table.external_data.add(key="location", value="table")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ProviderRejected):
        provider(folder).embed(["heron"])


def test_a_run_that_fails_is_typed(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(graph(TABLE[:3]))
    with pytest.raises(ProviderUnavailable) as failed:
        provider(folder).embed(["stork"])
    assert "stork" not in str(failed.value)


def test_without_the_package_the_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ExtraMissing, match=r"pip install 'memgraph-memory\[onnx\]'"):
        provider(folder).embed(["heron"])


def test_by_its_name(folder: Path) -> None:
    made = embedding_provider("onnx", dimensions=3, model_folder=str(folder))
    assert isinstance(made, EmbeddingProvider)
    assert made.embed(["heron"]).shape == (1, 3)
    with pytest.raises(InvalidConfig, match="Dimensions"):
        embedding_provider("onnx", model_folder=str(folder))
    for relative in ("", "model"):
        with pytest.raises(InvalidConfig, match="absolute"):
            embedding_provider("onnx", dimensions=3, model_folder=relative)


def test_recall_finds_by_its_vectors(folder: Path, tmp_path: Path) -> None:
    settings = {"provider": "onnx", "dimensions": "3", "model_folder": str(folder)}
    environ = {f"MEMGRAPH_MEMORY__EMBEDDING__{key.upper()}": one for key, one in settings.items()}
    with MemoryService(tmp_path / "root", environ=environ, background=False) as service:
        orc = service.orchestrator("ponds", create=True)
        near = orc.remember("crane")
        orc.remember("stork")
        orc.maintenance.embed_pending()
        [first, _] = orc.recall("heron").items
    assert first.memory.memory_id == near
    assert first.legs["vector"] == 1
