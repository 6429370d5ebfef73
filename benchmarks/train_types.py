"""Train the type classifier's weights from the project's own corpus.

    python benchmarks/train_types.py [--extra FILE] [--validate FILE] [--folds N] [--write]

Needs the package alone (numpy and the local embedding model). Reads
``benchmarks/corpus/types.jsonl``; with ``--write`` replaces
``memgraph/providers/data/types_weights.npz``. ``--validate`` names labelled lines to score,
which never enter the training; ``--folds`` cross-validates on the corpus. Two runs on one
machine give the same weights: the loss is convex and the optimiser draws nothing at random.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from benchmarks.label_scores import TypesScore, score_types
from memgraph.providers.embedding import embedding_provider
from memgraph.providers.memory_types import (
    CUES_FILE,
    TYPE_LABELS,
    WEIGHTS_FILE,
    TypeWeights,
    features,
    probabilities,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

CORPUS: Final = Path(__file__).parent / "corpus" / "types.jsonl"

# Ordinary values: halving or doubling one moved the macro-F1 of held-out lines by at most 0.02.
L2: Final = 2e-5
DENSE_SCALE: Final = 0.6
MIN_LINES: Final = 2
ROUGH_WEIGHT: Final = 0.5
ITERATIONS: Final = 300


class Line(NamedTuple):
    text: str
    label: str
    weight: float


class Sparse(NamedTuple):
    """Rows of feature numbers, flat, with the row and the value of each entry."""

    columns: NDArray[np.intp]
    starts: NDArray[np.intp]
    values: NDArray[np.float32]
    by_column: NDArray[np.intp]
    column_starts: NDArray[np.intp]
    used_columns: NDArray[np.intp]
    rows: NDArray[np.intp]


def read_lines(path: Path) -> list[Line]:
    """Labelled lines of a JSON Lines file with the fields ``text`` and ``type``."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Line(row["text"], row["type"], 1.0) for row in rows]


def with_rough_copies(lines: Sequence[Line]) -> list[Line]:
    """Add each line as a hurried typist writes it: lower case, no closing full stop."""
    rough = [
        Line(line.text.lower().rstrip("."), line.label, ROUGH_WEIGHT * line.weight)
        for line in lines
        if line.text.lower().rstrip(".") != line.text
    ]
    return [*lines, *rough]


def balanced(lines: Sequence[Line]) -> NDArray[np.float32]:
    """Weights summing to 1 in which every label counts the same."""
    mass = Counter[str]()
    for line in lines:
        mass[line.label] += line.weight  # type: ignore[assignment] # a Counter of floats
    return np.array([x.weight / mass[x.label] / len(mass) for x in lines], dtype=np.float32)


def sparse(found: Sequence[list[str]], index: dict[str, int]) -> Sparse:
    """Rows of norm 1 over the known features; a row without any gets an entry of value 0."""
    rows = [[index[name] for name in names if name in index] for names in found]
    sizes = np.array([max(len(row), 1) for row in rows])
    values = np.repeat(1.0 / np.sqrt(sizes), sizes).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    for start, row in zip(starts, rows, strict=True):
        values[start] *= bool(row)
    columns = np.concatenate([row or [0] for row in rows]).astype(np.intp)
    order = np.argsort(columns, kind="stable")
    used, column_starts = np.unique(columns[order], return_index=True)
    owners = np.repeat(np.arange(len(rows)), sizes)
    return Sparse(columns, starts, values, order, column_starts, used, owners)


def fit(
    x: Sparse, dense: NDArray[np.float32], labels: Sequence[str], weights: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Multinomial logistic regression by accelerated gradient descent (Nesterov, FISTA steps).

    Returns the weights of the sparse and of the dense features; the last dense column is 1.
    """
    truth = np.eye(len(TYPE_LABELS), dtype=np.float32)[[TYPE_LABELS.index(y) for y in labels]]
    size = int(x.used_columns.max()) + 1
    here = np.zeros((size + dense.shape[1], len(TYPE_LABELS)), dtype=np.float32)
    ahead, momentum = here.copy(), 1.0
    decay = np.full((len(here), 1), L2, dtype=np.float32)
    decay[-1] = 0.0
    # Half the largest eigenvalue of the weighted Gram matrix bounds the softmax loss's curvature;
    # rows have squared norm <= 1 + DENSE_SCALE^2 + 1 and the weights sum to 1.
    step = 1.0 / (0.5 * (2.0 + DENSE_SCALE**2) + L2)
    for _ in range(ITERATIONS):
        scores = np.add.reduceat(ahead[x.columns] * x.values[:, None], x.starts)
        scores += dense @ ahead[size:]
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        error = (scores - truth) * weights[:, None]
        gradient = decay * ahead
        flat = error[x.rows[x.by_column]] * x.values[x.by_column, None]
        gradient[x.used_columns] += np.add.reduceat(flat, x.column_starts)
        gradient[size:] += dense.T @ error
        following = ahead - step * gradient
        grown = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
        ahead = following + (momentum - 1.0) / grown * (following - here)
        here, momentum = following, grown
    return here[:size], here[size:]


def train(lines: Sequence[Line], *, embedded: bool) -> TypeWeights:
    """Weights learnt from ``lines``, with the local embedding or from words alone."""
    lines = with_rough_copies(lines)
    found = [features(line.text) for line in lines]
    counts = Counter(name for names in found for name in names)
    names = sorted(name for name, count in counts.items() if count >= 2 * MIN_LINES - 1)
    index = {name: row for row, name in enumerate(names)}
    dense = np.ones((len(lines), 1), dtype=np.float32)
    if embedded:
        vectors = embedding_provider("local").embed([line.text for line in lines])
        dense = np.hstack([vectors * DENSE_SCALE, dense])
    labels = [line.label for line in lines]
    table, rest = fit(sparse(found, index), dense, labels, balanced(lines))
    return TypeWeights(index, table, rest[:-1] * DENSE_SCALE, rest[-1])


def predict(weights: TypeWeights, texts: Sequence[str]) -> list[str]:
    vectors = embedding_provider("local").embed(texts) if len(weights.dense) else None
    return [TYPE_LABELS[at] for at in probabilities(weights, texts, vectors).argmax(axis=1)]


def cross_validate(lines: Sequence[Line], folds: int, *, embedded: bool) -> TypesScore:
    """Every line is predicted by weights that have not seen it; line i is in fold i mod folds."""
    predicted = [""] * len(lines)
    for fold in range(folds):
        kept = [line for at, line in enumerate(lines) if at % folds != fold]
        weights = train(kept, embedded=embedded)
        predicted[fold::folds] = predict(weights, [line.text for line in lines[fold::folds]])
    return score_types([line.label for line in lines], predicted)


def write(path: Path, both: TypeWeights, words: TypeWeights) -> None:
    """Store both models; they share their features. Half precision costs no decision."""
    arrays = {
        "names": np.frombuffer(json.dumps(list(both.rows), ensure_ascii=False).encode(), np.uint8),
        "sources": np.array([sha256(CORPUS), sha256(CUES_FILE)]),
    }
    for name, weights in (("both", both), ("words", words)):
        arrays[f"{name}_table"] = weights.table.astype(np.float16)
        arrays[f"{name}_dense"] = weights.dense.astype(np.float16)
        arrays[f"{name}_bias"] = weights.bias.astype(np.float32)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def report(title: str, score: TypesScore) -> None:
    print(f"{title}: macro-F1 {score['macro_f1']:.3f}, accuracy {score['accuracy']:.3f}")
    for label, s in score["per_label"].items():
        figures = f"P {s['precision']:.2f} R {s['recall']:.2f} F1 {s['f1']:.2f}"
        print(f"  {label:12s} {figures}  ({s['hits']} of {s['gold']}, {s['predicted']} predicted)")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the type classifier's weights.")
    parser.add_argument("--extra", type=Path, help="further labelled lines to train on")
    parser.add_argument("--validate", type=Path, help="labelled lines to score, not trained on")
    parser.add_argument("--folds", type=int, default=0, help="cross-validate the training lines")
    parser.add_argument("--write", action="store_true", help="replace the shipped weights")
    options = parser.parse_args()

    lines = read_lines(CORPUS)
    if options.extra:
        lines += read_lines(options.extra)
    print(f"{len(lines)} lines: {dict(sorted(Counter(line.label for line in lines).items()))}")
    if options.folds:
        report(
            f"{options.folds}-fold on the corpus",
            cross_validate(lines, options.folds, embedded=True),
        )
    both, words = train(lines, embedded=True), train(lines, embedded=False)
    if options.validate:
        held_out = read_lines(options.validate)
        gold, texts = [line.label for line in held_out], [line.text for line in held_out]
        report("validation, words and embedding", score_types(gold, predict(both, texts)))
        report("validation, words alone", score_types(gold, predict(words, texts)))
    if options.write:
        write(WEIGHTS_FILE, both, words)
        print(f"wrote {WEIGHTS_FILE} ({WEIGHTS_FILE.stat().st_size / 1024:.0f} KiB)")


if __name__ == "__main__":
    main()
