"""Fit the weights of recall's context leg on conversations with marked evidence.

    python benchmarks/fit_context_leg.py locomo-dev.json

A softmax over the candidates of every question, the evidence being the right answers: the weights
maximise the mean log-likelihood (Adam, a little L2). Printed are the figures on each conversation
when the weights were fitted on the others, then the weights fitted on all.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.retrieval import context
from memgraph.service.bench import locomo
from memgraph.service.memory_service import MemoryService

STEPS, RATE, FADE, L2 = 150, 0.4, 0.99, 0.002
NAMES = tuple(context.WEIGHTS)

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


def fit(given: list[Example]) -> Floats:
    """The weights, one per name."""
    answerable = [(each.features, each.right) for each in given if each.right]
    weights = np.zeros(len(NAMES))
    mean, square = weights.copy(), weights.copy()
    for step in range(1, STEPS + 1):
        gradient = -L2 * weights
        for features, right in answerable:
            logits = weights @ features
            chances = np.exp(logits - logits.max())
            chances /= chances.sum()
            gradient += (features[:, right].mean(axis=1) - features @ chances) / len(answerable)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        scale = np.sqrt(square / (1 - 0.99**step)) + 1e-8
        weights = weights + RATE * FADE**step * mean / (1 - 0.9**step) / scale
    return weights


def figures(given: list[Example], weights: Floats) -> dict[str, float]:
    """Mean measures when the context leg alone orders the answers."""
    rows = []
    for each in given:
        order = np.argsort(-(weights @ each.features), kind="stable")[: max(locomo.CUTOFFS)]
        rows.append(locomo.score([each.turn_ids[at] for at in order], each.evidence))
    return {name: round(float(np.mean([row[name] for row in rows])), 4) for name in rows[0]}


def main(path: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as root,
        MemoryService(root, environ={}, background=False) as service,
    ):
        sets = [examples(service, each) for each in locomo.read(path)]
    for left_out, tried in enumerate(sets):
        rest = [each for at, one in enumerate(sets) if at != left_out for each in one]
        print(f"conversation {left_out + 1}, left out: {figures(tried, fit(rest))}")
    weights = fit([each for one in sets for each in one])
    for name, weight in zip(NAMES, weights, strict=True):
        print(f'    "{name}": {weight:.1f},')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
