"""What recall likes least: a hub, copies, common words, endless queries, one endless session.

The memories and edges that make it so are added to the loaded ones, so this is measured last.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import latency_load
from benchmarks.synthetic import Corpus
from benchmarks.timing import NO_READER, Tell, percentiles, seconds
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.model.values import EpisodeInput
from memgraph.service.memory_service import MemoryService
from memgraph.text.lexicon import STOP_WORDS

HUB_EDGES = 10_000
COPIES = 500
SESSION_TURNS = 10_000
LONG_QUERY_WORDS = 10_000
COMMON_WORDS = 32
# One is named in every turn of the long session, one in nearly half of them.
EVERYWHERE, OFTEN = "@worldwide", "@neighbour"
_OFTEN_SHARE = 0.49
_COPY = "The harbour lantern was lit again before the ferry came in that evening."


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was added, and what to ask for it."""

    hub: str
    hub_text: str
    common: list[str]
    commonest: str
    long_query: str
    last_turn: str


def prepare(service: MemoryService, corpus: Corpus, size: int, tell: Tell) -> Prepared:
    """Add what makes recall hard, at most as much as there is already."""
    memory = service.orchestrator(latency_load.NAME)
    tell("adding the worst cases", 0, 3)
    hub_text = f"Everything comes together here: {corpus.text(size // 2)}"
    hub = memory.remember(hub_text, type=MemoryType.DECISION, importance=100)
    ids = [one for one in latency_load.memory_ids(service, HUB_EDGES) if one != hub]
    latency_load.join(service, [(one, hub) for one in ids], weight=0.9)
    tell("adding the worst cases", 1, 3)
    memory.save_episodes(
        EpisodeInput(content=_COPY, session_id=f"copies-{at % 25}", source_role="user")
        for at in range(min(COPIES, size))
    )
    tell("adding the worst cases", 2, 3)
    turns = list(_long_session(corpus, size))
    memory.save_episodes(turns)
    memory.settle()
    common = _common_words(service)
    chance = random.Random(size)
    told = [corpus.text(chance.randrange(size)) for _ in range(LONG_QUERY_WORDS // 8)]
    words = " ".join(told).split()
    while len(words) < LONG_QUERY_WORDS:
        words += words
    return Prepared(
        hub=hub,
        hub_text=hub_text,
        common=[word for word in common if word not in STOP_WORDS][:COMMON_WORDS],
        commonest=common[0],
        long_query=" ".join(words[:LONG_QUERY_WORDS]),
        last_turn=turns[-1].content,
    )


def measure(
    service: MemoryService, prepared: Prepared, rounds: int, tell: Tell
) -> dict[str, dict[str, Any]]:
    """p50, p95, p99 in milliseconds of each case; ``degraded`` names what was given up.

    As in a user's process a thread writes the receipts of recalls.
    """
    memory = service.orchestrator(latency_load.NAME)
    asked: dict[str, str] = {
        "hub of 10,000 edges: recall": prepared.hub_text,
        "500 identical texts": _COPY,
        "one very common word": prepared.common[0],
        "the commonest word of all": prepared.commonest,
        "32 common words": " ".join(prepared.common),
        "query of 10,000 words": prepared.long_query,
        "entity named in everything": f"What about {EVERYWHERE}?",
        "entity named in half of it": f"What about {OFTEN}?",
        "session of 10,000 turns": prepared.last_turn,
    }
    found: dict[str, dict[str, Any]] = {}
    with MemoryService(service.root, config=NO_READER, environ={}) as usual:
        for number, (name, text) in enumerate(asked.items()):
            tell(f"worst case: {name}", number, len(asked) + 2)
            told: set[str] = set()
            recall = partial(_recall, usual.orchestrator(latency_load.NAME), text, told)
            found[name] = _repeated(rounds, recall)
            found[name]["degraded"] = sorted(told)
    tell("worst case: hub", len(asked), len(asked) + 2)
    found["hub of 10,000 edges: subgraph"] = _repeated(
        rounds, lambda: memory.graph.subgraph([prepared.hub], hops=2, max_nodes=200)
    )
    numbers = iter(range(rounds + 1))
    found["hub of 10,000 edges: bulletin"] = _repeated(
        rounds,
        memory.bulletin,
        lambda: memory.remember(f"Worst case {next(numbers)}.", type=MemoryType.DECISION),
    )
    return found


def _repeated(
    rounds: int, action: Callable[[], object], before: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    taken = []
    for _ in range(rounds + 1):
        before()
        taken.append(seconds(action))
    return {**percentiles(taken[1:])}


def _recall(memory: Any, text: str, told: set[str]) -> None:
    told.update(each.code for each in memory.recall(text).degraded)


def _long_session(corpus: Corpus, size: int) -> Iterator[EpisodeInput]:
    for at in range(min(SESSION_TURNS, size)):
        name = f"{EVERYWHERE} and {OFTEN}" if at % 100 < _OFTEN_SHARE * 100 else EVERYWHERE
        yield EpisodeInput(
            content=f"{name}: {corpus.text(at)}",
            kind=MemoryKind.EPISODE,
            session_id="endless",
            source_role="user",
        )


def _common_words(service: MemoryService) -> list[str]:
    """The words that stand in most memories, the commonest first, as the index holds them."""
    with service.opened(latency_load.NAME) as opened, opened.database.read() as connection:
        connection.exec_driver_sql(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.bench_terms"
            " USING fts5vocab('main', 'memory_fts', 'row')"
        )
        found = connection.exec_driver_sql(
            "SELECT term FROM temp.bench_terms ORDER BY doc DESC, term LIMIT ?",
            (COMMON_WORDS * 20,),
        )
        return [str(term) for (term,) in found if str(term).isalpha()]
