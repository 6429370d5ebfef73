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
from relation_families import family_rows
from relation_near_misses import near_rows
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from memgraph.classification.relation_features import pair_features, read_batch
from memgraph.classification.relation_frame import Statement
from memgraph.classification.relation_model import CLIP, RelationModel
from memgraph.classification.relation_reasons import ruled_out
from memgraph.model.enums import Relation
from memgraph.providers.embedding import embedding_provider

HERE = Path(__file__).parent
CORPUS = HERE / "corpus" / "relations.jsonl"
DOCUMENTS = HERE / "corpus" / "relations-documents.jsonl"
TARGET = HERE.parent / "memgraph" / "classification" / "data" / "relations.npz"
LABELS = [relation.value for relation in Relation]
SYMMETRIC = {"contradicts", "duplicate", "compatible"}
RELATED = 0.25
WEIGHT = {"written": 1.0, "family": 0.3, "near": 1.0, "near change": 0.1, "text": 0.03}
THRESHOLD = {
    "contradicts": 0.78,
    "updates": 0.3,
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


def neighbours(documents: Sequence[Row], nearest: int = 5) -> list[Row]:
    """Sentences of one text don't contradict or replace one another: each with its nearest ones."""
    embed = embedding_provider("local").embed
    pairs = []
    for number, document in enumerate(documents):
        texts = document["sentences"]
        vectors = embed(texts)
        likeness = vectors @ vectors.T
        for i, row in enumerate(likeness):
            for j in [int(j) for j in np.argsort(-row) if j != i][:nearest]:
                stamp = {"a_time": "2026-01-05T09:00:00Z", "b_time": "2026-01-05T09:00:00Z"}
                label = "compatible" if row[j] >= RELATED else "unrelated"
                pairs.append({"a": texts[i], "b": texts[j], "label": label,
                              "group": -1 - number, **stamp})  # fmt: skip
    return pairs


def source(row: Row) -> str:
    """Where a pair comes from: ``written``, ``family``, ``near`` (or ``near change``, where the
    later one bears the words of a change) or running ``text``."""
    if row["group"] < 0:
        return "text"
    if "kind" in row:
        return "near change" if row["kind"].endswith("changed") else "near"
    return "family" if "family" in row else "written"


def near_misses() -> list[Row]:
    """The generated near misses, but for those in words of a change that a rule decides."""
    rows = near_rows()
    kept = []
    for row, described in zip(rows, features(rows), strict=True):
        if source(row) == "near" or Relation.UPDATES not in ruled_out(described):
            kept.append(row)
    return kept


def features(rows: Sequence[Row]) -> list[dict[str, float]]:
    frames, vectors = read_batch(statements(rows), embedding_provider("local").embed)
    return [pair_features(a, b, vectors) for a, b in frames]


def fit(rows: Sequence[dict[str, float]], pairs: Sequence[Row]) -> RelationModel:
    """Both regressions on the standardised features of some pairs."""
    names = tuple(name for name in rows[0] if name != "asserted")  # a rule reads it
    table = np.array([[row[name] for name in names] for row in rows])
    sources = [source(pair) for pair in pairs]
    is_text = np.array([each == "text" for each in sources])
    mean, scale = table[~is_text].mean(axis=0), table[~is_text].std(axis=0)
    scale[scale < 1e-6] = 1.0
    table = np.clip((table - mean) / scale, -CLIP, CLIP)
    target = np.array([LABELS.index(pair["label"]) for pair in pairs])
    weight = np.array([WEIGHT[each] for each in sources])
    linear = LogisticRegression(C=0.05, max_iter=4000).fit(table, target, sample_weight=weight)
    prose = LogisticRegression(C=0.02, max_iter=4000).fit(table, is_text)
    return RelationModel(
        features=names, mean=_f32(mean), scale=_f32(scale),
        linear=_f32(np.vstack([linear.coef_.T, linear.intercept_])),
        prose=_f32(np.append(prose.coef_[0], prose.intercept_[0])),
        threshold={relation: THRESHOLD[relation.value] for relation in Relation},
    )  # fmt: skip


def _f32(array: NDArray[np.float64]) -> NDArray[np.float32]:
    return array.astype(np.float32)


def save(model: RelationModel, path: Path) -> None:
    np.savez_compressed(
        path, features=np.array(model.features), mean=model.mean, scale=model.scale,
        linear=model.linear, prose=model.prose,
        threshold=np.array([model.threshold[r] for r in Relation]),
    )  # fmt: skip


Judged = tuple[NDArray[np.float32], NDArray[np.float32]]


def report(
    name: str,
    model: RelationModel,
    judged: Judged,
    rows: Sequence[dict[str, float]],
    gold: Sequence[str],
) -> None:
    """Counts for each label, and precision of contradicts along its recall."""
    table, prose = judged
    guessed = [
        model.choose(
            dict(zip(Relation, map(float, line), strict=True)), float(p), ruled_out(row)
        ).value
        for line, p, row in zip(table, prose, rows, strict=True)
    ]
    right = sum(g == w for g, w in zip(guessed, gold, strict=True))
    print(f"{name}: accuracy {right}/{len(gold)} = {right / len(gold):.3f}")
    for label in LABELS:
        hits = sum(g == w == label for g, w in zip(guessed, gold, strict=True))
        of = f"precision {hits}/{guessed.count(label)} recall {hits}/{list(gold).count(label)}"
        print(f"  {label:12} {of}")
    scores = np.where(prose >= model.prose_limit, 0.0, table[:, 0])
    order = np.argsort(-scores)
    found = np.cumsum([gold[i] == "contradicts" for i in order])
    for share in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
        at = int(np.argmax(found >= share * found[-1]))
        print(
            f"  contradicts recall {share:.0%}: precision {found[at]}/{at + 1} = "
            f"{found[at] / (at + 1):.2f} at p >= {scores[order[at]]:.3f}"
        )


def cross_validate(rows: Sequence[Row], folds: int = 5) -> None:
    groups = [r["group"] for r in rows]
    held = np.zeros((len(rows), len(LABELS)), dtype=np.float32)
    prose = np.zeros(len(rows), dtype=np.float32)
    seen_rows: list[dict[str, float]] = [{} for _ in rows]
    model = None
    apart = neighbours(read(DOCUMENTS))
    for train, test in GroupKFold(folds).split(rows, groups=groups):
        written = [rows[i] for i in train if "family" not in rows[i]]
        generated = [rows[i] for i in train if "family" in rows[i]]
        seen = closure(written) + generated + apart
        model = fit(features(seen), seen)
        described = features([rows[i] for i in test])
        held[test], prose[test] = model.evaluate(described)
        for i, row in zip(test, described, strict=True):
            seen_rows[i] = row
    if model is None:
        return
    for name in ("written", "family", "near"):
        at = [i for i, row in enumerate(rows) if source(row).startswith(name)]
        gold = [rows[i]["label"] for i in at]
        report(f"cross-validation, {name}", model, (held[at], prose[at]),
               [seen_rows[i] for i in at], gold)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", type=Path, metavar="FILE", help="score this file, write nothing")
    parser.add_argument("--cross-validate", action="store_true")
    args = parser.parse_args()
    rows = read(CORPUS)
    if args.cross_validate:
        cross_validate(rows + family_rows() + near_misses())
        return
    apart, generated = neighbours(read(DOCUMENTS)), family_rows() + near_misses()
    seen = closure(rows) + generated + apart
    model = fit(features(seen), seen)
    if args.check:
        wanted = read(args.check)
        described = features(wanted)
        gold = [r["label"] for r in wanted]
        report(args.check.name, model, model.evaluate(described), described, gold)
        return
    save(model, TARGET)
    print(
        f"{TARGET.name}: {TARGET.stat().st_size:,} bytes from {len(rows)} pairs, {len(seen)} rows"
    )


if __name__ == "__main__":
    main()
