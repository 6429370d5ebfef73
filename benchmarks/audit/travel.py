"""How long the past takes: recalls and bulletins as of a time, and what changed between two."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from benchmarks.audit.stores import Store
from benchmarks.synthetic import corpus
from benchmarks.timing import percentiles
from memgraph.clock import MS_PER_DAY
from memgraph.operations.orchestrator import Orchestrator

DIFF_TARGET_MS = 300.0
# As-of recall may take so many times what recall takes now.
RECALL_TARGET = 1.5
AGO = {"a day": 1, "a month": 30, "half a year": 182}
WARM_UP = 3
QUERY_CHARS = 80


def measured(
    memory: Orchestrator, store: Store, rounds: int
) -> Iterable[tuple[str, list[float], float | None]]:
    """What was measured, each time in seconds, and its target of the median in milliseconds."""
    moments = {name: store.last_at - days * MS_PER_DAY for name, days in AGO.items()}
    text, chance = corpus(), random.Random("travel")
    queries = [text.text(chance.randrange(store.size))[:QUERY_CHARS] for _ in range(rounds)]
    taken = _in_turn(
        {"now": memory.recall}
        | {name: partial(memory.recall, as_of=at) for name, at in moments.items()},
        queries,
    )
    yield "recall now", taken["now"], None
    most = RECALL_TARGET * percentiles(taken["now"])["p50"]
    for name in AGO:
        yield f"recall as of {name} ago", taken[name], most
    since = moments["a month"]
    of_a_month = _in_turn({"diff": lambda _: memory.history.diff(since, store.last_at)}, queries)
    yield "differences of a month", of_a_month["diff"], DIFF_TARGET_MS
    made = _in_turn(
        {name: _bulletin(memory, at) for name, at in ({"now": store.last_at} | moments).items()},
        queries,
    )
    for name, times in made.items():
        yield f"bulletin as of {name}{'' if name == 'now' else ' ago'}", times, None


def _bulletin(memory: Orchestrator, at: int) -> Callable[[str], object]:
    return lambda _: memory.bulletin(as_of=at)


def _in_turn(
    ways: Mapping[str, Callable[[str], object]], queries: Sequence[str]
) -> dict[str, list[float]]:
    """Each query in every way, one after the other: a slow minute of the machine hits them all."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for place, query in enumerate((*queries[:WARM_UP], *queries)):
        for name, ask in ways.items():
            start = time.perf_counter()
            ask(query)
            if place >= WARM_UP:
                taken[name].append(time.perf_counter() - start)
    return taken
