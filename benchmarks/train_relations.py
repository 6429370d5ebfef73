"""Train the weights of the relation classifier from the corpus in this folder.

Needs scikit-learn, for training alone. Run from the repository's root:

    python benchmarks/train_relations.py                      # writes data/relations.npz
    python benchmarks/train_relations.py --check PAIRS.jsonl   # trains, scores, writes nothing
    python benchmarks/train_relations.py --cross-validate
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.neural_network import MLPClassifier

from memgraph.classification.relation_features import pair_features, read_batch
from memgraph.classification.relation_frame import Statement
from memgraph.classification.relation_model import _CLIP, RelationModel
from memgraph.model.enums import Relation
from memgraph.providers.embedding import embedding_provider

HERE = Path(__file__).parent
CORPUS = HERE / "corpus" / "relations.jsonl"
TARGET = HERE.parent / "memgraph" / "classification" / "data" / "relations.npz"
LABELS = [relation.value for relation in Relation]
SYMMETRIC = {"contradicts", "duplicate", "compatible"}
NETWORKS, HIDDEN, SHARE = 8, 24, 0.5
THRESHOLD = {
    "contradicts": 0.8,
    "updates": 0.0,
    "duplicate": 0.5,
    "compatible": 0.0,
    "unrelated": 0.0,
}

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def _ms(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() * 1000)


def statements(rows: Iterable[Row]) -> list[tuple[Statement, Statement]]:
    return [
        (Statement(r["a"], _ms(r["a_time"])), Statement(r["b"], _ms(r["b_time"]))) for r in rows
    ]


def closure(rows: Sequence[Row], seed: int = 0) -> list[Row]:
    """The rows and what follows from them: a duplicate of a stands for a, relations without a
    direction hold the other way round, and lines of two topics are unrelated."""
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["group"]].append(row)
    more = list(rows)
    for members in groups.values():
        for twin in (r for r in members if r["label"] == "duplicate"):
            more += [
                {**r, "a": twin["b"]}
                for r in members
                if r["label"] in {"contradicts", "updates", "compatible"}
            ]
    more += [{**r, "a": r["b"], "b": r["a"]} for r in more if r["label"] in SYMMETRIC]
    random = np.random.default_rng(seed)
    for _ in range(len(rows) // 4):
        one, two = (int(i) for i in random.integers(len(rows), size=2))
        if rows[one]["group"] != rows[two]["group"]:
            more.append({**rows[one], "b": rows[two]["b"], "label": "unrelated"})
    return more


def features(rows: Sequence[Row]) -> list[dict[str, float]]:
    frames, vectors = read_batch(statements(rows), embedding_provider("local").embed)
    return [pair_features(a, b, vectors) for a, b in frames]


def fit(rows: Sequence[dict[str, float]], labels: Sequence[str]) -> RelationModel:
    """A linear model and several small networks on standardised features."""
    names = tuple(rows[0])
    table = np.array([[row[name] for name in names] for row in rows])
    mean, scale = table.mean(axis=0), table.std(axis=0)
    scale[scale < 1e-6] = 1.0
    table = np.clip((table - mean) / scale, -_CLIP, _CLIP)
    target = np.array([LABELS.index(label) for label in labels])
    linear = LogisticRegression(C=0.05, max_iter=4000).fit(table, target)
    hidden, output = [], []
    for seed in range(NETWORKS):
        net = MLPClassifier(
            (HIDDEN,), alpha=3.0, max_iter=60, random_state=seed, learning_rate_init=2e-3
        ).fit(table, target)
        hidden.append(np.vstack([net.coefs_[0], net.intercepts_[0]]))
        output.append(np.vstack([net.coefs_[1], net.intercepts_[1]]))
    return RelationModel(
        features=names, mean=_f32(mean), scale=_f32(scale),
        linear=_f32(np.vstack([linear.coef_.T, linear.intercept_])),
        hidden=_f32(np.array(hidden)), output=_f32(np.array(output)), share=SHARE,
        threshold={relation: THRESHOLD[relation.value] for relation in Relation},
    )  # fmt: skip


def _f32(array: NDArray[np.float64]) -> NDArray[np.float32]:
    return array.astype(np.float32)


def save(model: RelationModel, path: Path) -> None:
    np.savez_compressed(
        path, features=np.array(model.features), mean=model.mean, scale=model.scale,
        linear=model.linear, hidden=model.hidden, output=model.output,
        share=np.array(model.share), threshold=np.array([model.threshold[r] for r in Relation]),
    )  # fmt: skip


def choose(model: RelationModel, line: NDArray[np.float32]) -> str:
    order = np.argsort(-line)
    relations = list(Relation)
    allowed = (relations[i] for i in order if line[i] >= model.threshold[relations[i]])
    return next(allowed, Relation.COMPATIBLE).value


def report(
    name: str, model: RelationModel, table: NDArray[np.float32], gold: Sequence[str]
) -> None:
    """Counts for each label, and precision of contradicts along its recall."""
    guessed = [choose(model, line) for line in table]
    print(f"{name}: accuracy {np.mean([g == w for g, w in zip(guessed, gold, strict=True)]):.3f}")
    for label in LABELS:
        hits = sum(g == w == label for g, w in zip(guessed, gold, strict=True))
        print(
            f"  {label:12} precision {hits}/{guessed.count(label)} recall {hits}/{list(gold).count(label)}"
        )
    order = np.argsort(-table[:, 0])
    right = np.cumsum([gold[i] == "contradicts" for i in order])
    total = int(right[-1])
    for share in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
        at = int(np.argmax(right >= share * total))
        print(
            f"  contradicts recall {share:.0%}: precision {right[at]}/{at + 1} = "
            f"{right[at] / (at + 1):.2f} at p >= {table[order[at], 0]:.3f}"
        )


def cross_validate(rows: Sequence[Row], folds: int = 5) -> None:
    groups = [r["group"] for r in rows]
    held = np.zeros((len(rows), len(LABELS)), dtype=np.float32)
    model = None
    for train, test in GroupKFold(folds).split(rows, groups=groups):
        seen = closure([rows[i] for i in train])
        model = fit(features(seen), [r["label"] for r in seen])
        held[test] = model.probabilities(features([rows[i] for i in test]))
    if model is not None:
        report("cross-validation", model, held, [r["label"] for r in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", type=Path, metavar="FILE", help="score this file, write nothing")
    parser.add_argument("--cross-validate", action="store_true")
    args = parser.parse_args()
    rows = read(CORPUS)
    if args.cross_validate:
        cross_validate(rows)
        return
    seen = closure(rows)
    model = fit(features(seen), [r["label"] for r in seen])
    if args.check:
        wanted = read(args.check)
        report(
            args.check.name,
            model,
            model.probabilities(features(wanted)),
            [r["label"] for r in wanted],
        )
        return
    save(model, TARGET)
    print(
        f"{TARGET.name}: {TARGET.stat().st_size:,} bytes from {len(rows)} pairs, {len(seen)} rows"
    )


if __name__ == "__main__":
    main()
