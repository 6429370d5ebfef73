"""The same memories in SQLite and in PostgreSQL: recalls and writes in turns.

Beside them a plain text search of PostgreSQL's own: the best 50 of a ``tsvector`` by ``ts_rank``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.synthetic import corpus
from benchmarks.timing import percentiles, seconds
from memgraph.service.memory_service import MemoryService

NAME = "bench-engines"
WARM_UP = 10
STEP = 5_000
# The shortest form of a search for any word: ranked by the server, over its own index of words.
PLAIN = """
    SELECT m.memory_id FROM "memgraph_bench-engines".memories AS m,
        CAST(replace(CAST(plainto_tsquery('english', %s) AS text), '&', '|') AS tsquery) AS q
    WHERE to_tsvector('english', m.content) @@ q
    ORDER BY ts_rank(to_tsvector('english', m.content), q) DESC LIMIT 50
"""


def run(url: str, size: int, rounds: int) -> dict[str, Any]:
    """Return percentiles in milliseconds of recalls and durable writes for each engine."""
    made = corpus()
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as folder,
        MemoryService(Path(folder) / "files", environ={}) as files,
        MemoryService(
            Path(folder) / "server", config={"memory.storage.url": url}, environ={}
        ) as server,
    ):
        engines = {
            name: service.orchestrator(NAME, create=True)
            for name, service in (("sqlite", files), ("postgresql", server))
        }
        for orc in engines.values():
            for start in range(0, size, STEP):
                orc.remember_many(made.turns(start, min(STEP, size - start)))
            orc.settle()
        recalls: dict[str, list[float]] = {name: [] for name in (*engines, "plain")}
        writes: dict[str, list[float]] = {name: [] for name in engines}
        same = 0
        plain = _Plain(url)
        for at in range(WARM_UP + rounds):
            question = made.question(at, size)
            answers = []
            for name, orc in engines.items():
                asked_at = time.perf_counter()
                answer = orc.recall(question)
                recalls[name].append(time.perf_counter() - asked_at)
                answers.append([item.memory.content for item in answer.items])
                text = f"A note of the bench, number {at}."
                writes[name].append(seconds(orc.remember, text))
            recalls["plain"].append(seconds(plain.search, question))
            # The first answers may be given before the vectors of a large store are read.
            same += at >= WARM_UP and answers[0] == answers[1]
        plain.close()
    return {
        "memories": size,
        "recall": {name: percentiles(times[WARM_UP:]) for name, times in recalls.items()},
        "write": {name: percentiles(times[WARM_UP:]) for name, times in writes.items()},
        "same_answers": round(same / rounds, 4),
    }


class _Plain:
    """A search by PostgreSQL alone, over an index of its own."""

    def __init__(self, url: str) -> None:
        from memgraph.store import postgres

        self._connection = postgres.connect(postgres.checked_url(url))
        self._connection.execute(
            'CREATE INDEX bench_words ON "memgraph_bench-engines".memories'
            " USING gin (to_tsvector('english', content))"
        )

    def search(self, question: str) -> None:
        self._connection.execute(PLAIN, (question,)).fetchall()

    def close(self) -> None:
        self._connection.execute('DROP SCHEMA "memgraph_bench-engines" CASCADE')
        self._connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="PostgreSQL, as memory.storage.url; a schema is made in it.")
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=100)
    given = parser.parse_args()
    print(json.dumps(run(given.url, given.size, given.rounds), indent=1))
