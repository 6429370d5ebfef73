"""Fit the weights of recall's context leg on conversations with marked evidence.

    python -m benchmarks.fit_context_leg locomo-dev.json [assistant-dev.jsonl]

A softmax over the candidates of every question, the evidence being the right answers: the weights
maximise the mean log-likelihood (Newton's method, a little L2). Printed are the figures on each
talk when the weights were fitted on the others, the same for all talks together with each group of
features left out of the fit, then the weights fitted on all. With chats as well (the form of
``benchmarks.retrieval``): the figures on each chat when the weights were fitted on the others and
kept near those of talks and chats together, then the weights fitted on all chats.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import locomo, retrieval
from memgraph import Orchestrator
from memgraph.retrieval import relevance
from memgraph.service.memory_service import MemoryService

MAX_STEPS, L2, ENOUGH = 30, 0.0005, 1e-7
L2_OF_CHATS = 0.02
NAMES = tuple(relevance.TALK_WEIGHTS)
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


def of_talk(service: MemoryService, talk: locomo.Conversation) -> list[Example]:
    """Ask every question of a talk between people."""
    memory = service.orchestrator(talk.name, create=True)
    outcomes = memory.remember_many(talk.turns)
    names = {
        outcome.memory_id or "": turn.turn_id or ""
        for outcome, turn in zip(outcomes, talk.turns, strict=True)
    }
    memory.settle()
    return _examples(memory, names, [(each.text, each.evidence) for each in talk.questions])


def of_chat(service: MemoryService, chat: Mapping[str, Any]) -> list[Example]:
    """Ask every question of a chat with an assistant."""
    memory = service.orchestrator(chat["store"], create=True)
    names = retrieval.load(memory, chat["units"])
    asked = [(each["text"], frozenset(each["gold"])) for each in chat["questions"]]
    return _examples(memory, names, asked)


def _examples(
    memory: Orchestrator, names: Mapping[str, str], asked: Sequence[tuple[str, frozenset[str]]]
) -> list[Example]:
    """Return what the context leg saw of each question."""
    seen: list[tuple[list[str], dict[str, Floats]]] = []
    original = relevance.features

    def kept(pool: relevance.CandidatePool, *rest: Any) -> dict[str, Floats]:
        found = original(pool, *rest)
        seen.append(([names[each.memory_id] for each in pool.candidates], found))
        return found

    relevance.features = kept  # type: ignore[assignment]
    try:
        made = []
        for text, evidence in asked:
            seen.clear()
            memory.recall(text)
            turn_ids, found = seen[0]
            zeros = np.zeros(len(turn_ids))
            table = np.stack([found.get(name, zeros) for name in NAMES])
            made.append(Example(table, tuple(turn_ids), evidence))
    finally:
        relevance.features = original
    return made


def fit(
    given: Sequence[Sequence[Example]],
    names: Sequence[str] = NAMES,
    l2: float = L2,
    near: Floats | None = None,
) -> Floats:
    """Return the weights, one per name of ``NAMES``; 0 for those that are not among ``names``.

    Args:
        given: sets of examples; every set counts alike.
        near: the weights from which ``l2`` keeps them; None: 0.
    """
    columns = [NAMES.index(name) for name in names]
    answerable = []
    for one in given:
        right = [(each.features[columns], each.right) for each in one if each.right]
        answerable += [(*each, 1 / len(given) / len(right)) for each in right]
    centre = np.zeros(len(columns)) if near is None else near[columns]
    weights = centre
    best, gradient, curvature = _climb(answerable, weights, l2, centre)
    for _ in range(MAX_STEPS):
        step = np.linalg.solve(curvature, gradient)
        tried = _climb(answerable, weights + step, l2, centre)
        while tried[0] < best:
            step /= 2
            tried = _climb(answerable, weights + step, l2, centre)
        gain = tried[0] - best
        weights = weights + step
        best, gradient, curvature = tried
        if gain < ENOUGH:
            break
    whole = np.zeros(len(NAMES))
    whole[columns] = weights
    return whole


def _climb(
    answerable: list[tuple[Floats, list[int], float]], weights: Floats, l2: float, centre: Floats
) -> tuple[float, Floats, Floats]:
    """The likelihood, its gradient and the negative of its second derivative."""
    away = weights - centre
    total = -l2 / 2 * float(away @ away)
    gradient = -l2 * away
    curvature = l2 * np.eye(len(weights))
    for features, right, share in answerable:
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
        ranked = [each.turn_ids[at] for at in order]
        gain = retrieval.score(ranked, dict.fromkeys(each.evidence, 1.0))["nDCG@10"]
        yield {**locomo.score(ranked, each.evidence), "nDCG@10": gain}


def left_out(sets: list[list[Example]], names: Sequence[str]) -> list[list[dict[str, float]]]:
    """The measures of each conversation with weights fitted on the others."""
    found = []
    for at, tried in enumerate(sets):
        rest = [each for other, one in enumerate(sets) if other != at for each in one]
        found.append(list(scores(tried, fit([rest], names))))
    return found


def chats_left_out(
    talks: list[Example], chats: list[list[Example]]
) -> Iterator[list[dict[str, float]]]:
    """Yield the measures of each chat with weights fitted on the talks and the other chats."""
    for at, tried in enumerate(chats):
        rest = [each for other, one in enumerate(chats) if other != at for each in one]
        yield list(scores(tried, fit([rest], l2=L2_OF_CHATS, near=fit([talks, rest]))))


def figures(rows: Sequence[dict[str, float]]) -> str:
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return "  ".join(f"{name} {mean:.3f}" for name, mean in means.items())


def main(talks: Path, chats: Path | None = None) -> None:
    with (
        tempfile.TemporaryDirectory() as root,
        MemoryService(root, environ={}, background=False) as service,
    ):
        sets = [of_talk(service, each) for each in locomo.read(talks)]
        lines = [] if chats is None else chats.read_text("utf-8").splitlines()
        of_chats = [of_chat(service, json.loads(each)) for each in lines]
    for number, rows in enumerate(left_out(sets, NAMES), start=1):
        print(f"talk {number:<24} {figures(rows)}")
    for group, without in GROUPS.items():
        names = [name for name in NAMES if name not in without]
        rows = [row for each in left_out(sets, names) for row in each]
        print(f"{'without ' * bool(without) + group:<29} {figures(rows)}")
    all_talks = [each for one in sets for each in one]
    _print_weights(fit([all_talks]))
    if of_chats:
        rows = []
        for number, one in enumerate(chats_left_out(all_talks, of_chats), start=1):
            print(f"chat {number:<24} {figures(one)}")
            rows += one
        print(f"{'all chats':<29} {figures(rows)}")
        all_chats = [each for one in of_chats for each in one]
        near = fit([all_talks, all_chats])
        _print_weights(fit([all_chats], l2=L2_OF_CHATS, near=near))


def _print_weights(weights: Floats) -> None:
    for name, weight in zip(NAMES, weights, strict=True):
        print(f'    "{name}": {weight:.2f},')


if __name__ == "__main__":
    main(*(Path(each) for each in sys.argv[1:]))
