"""Fit the weights of recall's context leg on conversations with marked evidence.

    python benchmarks/fit_context_leg.py locomo-dev.json

A softmax over the candidates of every question, the evidence being the right answers: the weights
maximise the mean log-likelihood (Newton's method, a little L2). Printed are the figures on each
conversation when the weights were fitted on the others, the same for all conversations together
with each group of features left out of the fit, then the weights fitted on all.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.retrieval import context
from memgraph.service.bench import locomo
from memgraph.service.memory_service import MemoryService

MAX_STEPS, L2, ENOUGH = 30, 0.0005, 1e-7
NAMES = tuple(context.WEIGHTS)
GROUPS = {
    "everything": (),
    "words": ("near_share", "session_share", "near_terms", "before_terms"),
    "words of the session": ("session_share", "best_of_session"),
    "words before": ("before_terms",),
    "meaning": ("own_meaning", "near_meaning", "feedback_meaning"),
    "meaning beside it": ("near_meaning",),
    "meaning of the best": ("feedback_meaning",),
    "speaker": ("speaker",),
    "length": ("length",),
    "question and answer": ("asks", "answers"),
    "times and numbers": ("time_asked", "number_asked", "period"),
}

Floats = NDArray[np.float64]


class Example(NamedTuple):
    """One question: features (names x candidates), turn ids of the candidates, the evidence."""

    features: Floats
    turn_ids: tuple[str, ...]
    evidence: frozenset[str]

    @property
    def right(self) -> list[int]:
        return [at for at, one in enumerate(self.turn_ids) if one in self.evidence]


def examples(service: MemoryService, conversation: locomo.Conversation) -> list[Example]:
    """Ask every question, keeping what the context leg saw."""
    memory = service.orchestrator(conversation.name, create=True)
    outcomes = memory.remember_many(conversation.turns)
    turn_of = {
        outcome.memory_id: turn.turn_id or ""
        for outcome, turn in zip(outcomes, conversation.turns, strict=True)
    }
    memory.embed_pending()
    seen: list[tuple[list[str], dict[str, Floats]]] = []
    original = context.features

    def kept(pool: context.Pool, *rest: Any) -> dict[str, Floats]:
        found = original(pool, *rest)
        seen.append(([turn_of[each.memory_id] for each in pool.candidates], found))
        return found

    context.features = kept
    try:
        made = []
        for asked in conversation.questions:
            seen.clear()
            memory.recall(asked.text)
            turn_ids, found = seen[0]
            zeros = np.zeros(len(turn_ids))
            table = np.stack([found.get(name, zeros) for name in NAMES])
            made.append(Example(table, tuple(turn_ids), asked.evidence))
    finally:
        context.features = original
    return made


def fit(given: list[Example], names: Sequence[str] = NAMES) -> Floats:
    """The weights, one per name of ``NAMES``; 0 for those that are not among ``names``."""
    columns = [NAMES.index(name) for name in names]
    answerable = [(each.features[columns], each.right) for each in given if each.right]
    weights = np.zeros(len(columns))
    best, gradient, curvature = _climb(answerable, weights)
    for _ in range(MAX_STEPS):
        step = np.linalg.solve(curvature, gradient)
        tried = _climb(answerable, weights + step)
        while tried[0] < best:
            step /= 2
            tried = _climb(answerable, weights + step)
        gain = tried[0] - best
        weights = weights + step
        best, gradient, curvature = tried
        if gain < ENOUGH:
            break
    whole = np.zeros(len(NAMES))
    whole[columns] = weights
    return whole


def _climb(
    answerable: list[tuple[Floats, list[int]]], weights: Floats
) -> tuple[float, Floats, Floats]:
    """The likelihood, its gradient and the negative of its second derivative."""
    total = -L2 / 2 * float(weights @ weights)
    gradient = -L2 * weights
    curvature = L2 * np.eye(len(weights))
    share = 1 / len(answerable)
    for features, right in answerable:
        logits = weights @ features
        logits -= logits.max()
        chances = np.exp(logits)
        chances /= chances.sum()
        expected = features @ chances
        total += share * float(np.log(chances[right] + 1e-300).mean())
        gradient += share * (features[:, right].mean(axis=1) - expected)
        curvature += share * ((features * chances) @ features.T - np.outer(expected, expected))
    return total, gradient, curvature


def scores(given: list[Example], weights: Floats) -> Iterator[dict[str, float]]:
    """The measures of each question when the context leg alone orders the answers."""
    for each in given:
        order = np.argsort(-(weights @ each.features), kind="stable")[: max(locomo.CUTOFFS)]
        yield locomo.score([each.turn_ids[at] for at in order], each.evidence)


def left_out(sets: list[list[Example]], names: Sequence[str]) -> list[list[dict[str, float]]]:
    """The measures of each conversation with weights fitted on the others."""
    found = []
    for at, tried in enumerate(sets):
        rest = [each for other, one in enumerate(sets) if other != at for each in one]
        found.append(list(scores(tried, fit(rest, names))))
    return found


def figures(rows: Sequence[dict[str, float]]) -> str:
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return "  ".join(f"{name} {mean:.3f}" for name, mean in means.items())


def main(path: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as root,
        MemoryService(root, environ={}, background=False) as service,
    ):
        sets = [examples(service, each) for each in locomo.read(path)]
    for number, rows in enumerate(left_out(sets, NAMES), start=1):
        print(f"conversation {number:<12} {figures(rows)}")
    for group, without in GROUPS.items():
        names = [name for name in NAMES if name not in without]
        rows = [row for each in left_out(sets, names) for row in each]
        print(f"{'without ' * bool(without) + group:<29} {figures(rows)}")
    weights = fit([each for one in sets for each in one])
    for name, weight in zip(NAMES, weights, strict=True):
        print(f'    "{name}": {weight:.2f},')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
