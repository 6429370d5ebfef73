"""``memgraph bench latency``: how long things take at several sizes, beside plain SQL.

Everything goes through the public interface with default settings, on made-up conversations; the
plain SQL runs on the same data in the same run.
"""

from __future__ import annotations

import platform
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memgraph.errors import InvalidInput
from memgraph.model.recall import RecallRequest
from memgraph.providers.local import LocalEmbedding
from memgraph.retrieval.recall import recall
from memgraph.service.bench import raw
from memgraph.service.bench.corpus import Corpus, corpus
from memgraph.service.memory_service import MemoryService
from memgraph.service.orchestrator import Orchestrator
from memgraph.storage import edges

NAME = "bench"
WARM_UP = 10
EDGES_PER_MEMORY = 0.2
MAX_EDGES = 20_000
_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class _Bench:
    service: MemoryService
    memory: Orchestrator
    corpus: Corpus
    folder: Path
    size: int
    rounds: int
    progress: Callable[[str], None]

    @property
    def database(self) -> Path:
        with self.service.opened(NAME) as opened:
            return opened.database.path


def run(
    sizes: Sequence[int],
    progress: Callable[[str], None] = lambda _: None,
    *,
    rounds: int = _ROUNDS,
) -> dict[str, Any]:
    """Measure at every size, smallest first.

    Returns:
        ``machine`` and, under ``sizes`` by number of memories, ``p50``, ``p95`` and ``p99`` in
        milliseconds of ``recall``, ``write``, ``bulletin_changed``, ``bulletin_unchanged``,
        ``subgraph`` and of the plain SQL ``raw_recall``, ``raw_write``; ``recall_ratio`` and
        ``write_ratio`` of the medians; ``overlap_at_20`` with exact search; ``bulk_per_s``
        with embedding; ``peak_memory_mb`` of the process so far; ``disk_bytes_per_memory``
        beyond its own text, ``raw_disk_bytes_per_memory`` the same.

    Raises:
        InvalidInput: no size, or one below 100.
    """
    if not sizes or min(sizes) < 100:
        raise InvalidInput("sizes: at least one, each at least 100 memories")
    return {
        "machine": {
            "processor": platform.machine(),
            "python": platform.python_version(),
            "system": platform.system(),
        },
        "rounds": rounds,
        "sizes": {str(size): _at_size(size, rounds, progress) for size in sorted(set(sizes))},
    }


def _at_size(size: int, rounds: int, progress: Callable[[str], None]) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as folder,
        MemoryService(Path(folder) / "root", environ={}, background=False) as service,
    ):
        memory = service.orchestrator(NAME, create=True)
        bench = _Bench(service, memory, corpus(), Path(folder), size, rounds, progress)
        found: dict[str, Any] = {"bulk_per_s": _load(bench)}
        found |= _disk(bench)
        found |= _recalls(bench)
        found |= _graph(bench)
        found |= _bulletins(bench)
        found |= _writes(bench)
        found["peak_memory_mb"] = round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1
        )
        found |= _floor(bench, found)
        return found


def _load(bench: _Bench) -> float:
    bench.progress(f"{bench.size}: loading")
    taken = 0.0
    step = 10_000
    for start in range(0, bench.size, step):
        turns = list(bench.corpus.turns(start, min(step, bench.size - start)))
        begin = time.perf_counter()
        outcomes = bench.memory.remember_many(turns)
        bench.memory.embed_pending()
        taken += time.perf_counter() - begin
        if any(each.outcome != "stored" for each in outcomes):
            raise InvalidInput("a turn was not stored")
    _join(bench)
    return round(bench.size / taken, 1)


def _join(bench: _Bench) -> None:
    """Edges between turns some way apart, written directly: they are not what is measured."""
    with bench.service.opened(NAME) as opened, opened.database.write() as connection:
        count = min(int(bench.size * EDGES_PER_MEMORY), MAX_EDGES)
        found = connection.exec_driver_sql(
            "SELECT memory_id FROM memories ORDER BY pk LIMIT ?", (count,)
        )
        ids = [one for (one,) in found]
        for at, one in enumerate(ids):
            other = ids[(at * 7 + 11) % len(ids)]
            if one != other:
                edges.insert(
                    connection,
                    {
                        "edge_id": opened.ids.new("edge_"),
                        "from_memory_id": one,
                        "to_memory_id": other,
                        "edge_type": "RelatedTo",
                        "weight": 0.5,
                        "created_at": opened.clock.now_ms(),
                    },
                )


def _recalls(bench: _Bench) -> dict[str, Any]:
    bench.progress(f"{bench.size}: recall")
    questions = _questions(bench)
    for text in questions[:WARM_UP]:
        bench.memory.recall(text)
    taken = []
    for text in questions[WARM_UP:]:
        begin = time.perf_counter()
        bench.memory.recall(text)
        taken.append(time.perf_counter() - begin)
    checked = questions[WARM_UP : WARM_UP + max(bench.rounds // 4, 5)]
    overlaps = [_overlap(bench, text) for text in checked]
    return {
        "recall": percentiles(taken),
        "overlap_at_20": round(sum(overlaps) / len(overlaps), 4),
    }


def _overlap(bench: _Bench, text: str) -> float:
    """The share of the exact answer, by the same rules, that the answer holds."""
    request = RecallRequest(query=text, top_n=20)
    with bench.service.opened(NAME) as opened:
        quick, exact = (
            recall(
                opened.database,
                request,
                viewer=bench.memory.viewer,
                settings=opened.settings.memory,
                embed=LocalEmbedding().embed
                if opened.embedding is None
                else opened.embedding.embed,
                name_keys=lambda given: {name.key for name in opened.find_names(given)},
                now_ms=opened.clock.now_ms(),
                ids=opened.ids,
                exact=exactly,
                held=opened.held_vectors,
            ).ids
            for exactly in (False, True)
        )
    return len(set(quick) & set(exact)) / max(len(exact), 1)


def _graph(bench: _Bench) -> dict[str, Any]:
    ids = [each.memory_id for each in bench.memory.list_memories(limit=1)]
    with bench.service.opened(NAME) as opened, opened.database.read() as connection:
        found = connection.exec_driver_sql(
            "SELECT from_memory_id FROM memory_edges ORDER BY edge_id LIMIT ?", (bench.rounds,)
        )
        ids = [one for (one,) in found] or ids
    return {
        "subgraph": _timed(
            lambda at: bench.memory.subgraph([ids[at % len(ids)]], hops=2, max_nodes=200), bench
        )
    }


def _bulletins(bench: _Bench) -> dict[str, Any]:
    bench.progress(f"{bench.size}: bulletin")
    bench.memory.bulletin()
    changed = []
    for number in range(bench.rounds):
        bench.memory.remember(f"A decision of the bench, number {number}.", type="Decision")
        begin = time.perf_counter()
        bench.memory.bulletin()
        changed.append(time.perf_counter() - begin)
    return {
        "bulletin_changed": percentiles(changed),
        "bulletin_unchanged": _timed(lambda _: bench.memory.bulletin(), bench),
    }


def _writes(bench: _Bench) -> dict[str, Any]:
    bench.progress(f"{bench.size}: durable writes")
    copy = bench.folder / "copy.db"
    with bench.service.opened(NAME) as opened, opened.database.exclusive() as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copyfile(bench.database, copy)
    turns = list(bench.corpus.turns(bench.size, bench.rounds))
    taken = []
    for turn in turns:
        fields = turn.model_dump(exclude={"content", "key"})
        begin = time.perf_counter()
        bench.memory.remember(turn.content, **fields)
        taken.append(time.perf_counter() - begin)
    plain = raw.time_writes(copy, bench.database, bench.rounds)
    measured, floor = percentiles(taken), percentiles(plain, unit=1.0)
    return {"write": measured, "raw_write": floor, "write_ratio": _ratio(measured, floor)}


def _disk(bench: _Bench) -> dict[str, Any]:
    with bench.service.opened(NAME) as opened, opened.database.exclusive() as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    text = sum(len(bench.corpus.text(number)) for number in range(bench.size))
    used = bench.database.stat().st_size - text
    return {"disk_bytes_per_memory": round(used / bench.size, 1)}


def _floor(bench: _Bench, found: dict[str, Any]) -> dict[str, Any]:
    bench.progress(f"{bench.size}: plain SQL")
    path = bench.folder / "floor.db"
    used = raw.fill_floor(path, bench.database)
    text = sum(len(bench.corpus.text(number)) for number in range(bench.size))
    questions = _questions(bench)
    vectors = LocalEmbedding().embed(questions)
    asked = [(one, vector.tobytes()) for one, vector in zip(questions, vectors, strict=True)]
    taken = raw.time_floor(path, asked)[WARM_UP:]
    floor = percentiles(taken, unit=1.0)
    return {
        "raw_recall": floor,
        "recall_ratio": _ratio(found["recall"], floor),
        "raw_disk_bytes_per_memory": round((used - text) / bench.size, 1),
    }


def _questions(bench: _Bench) -> list[str]:
    return [bench.corpus.question(at, bench.size) for at in range(bench.rounds + WARM_UP)]


def _timed(action: Callable[[int], object], bench: _Bench) -> dict[str, float]:
    action(0)
    taken = []
    for at in range(bench.rounds):
        begin = time.perf_counter()
        action(at)
        taken.append(time.perf_counter() - begin)
    return percentiles(taken)


def percentiles(taken: Sequence[float], *, unit: float = 1000.0) -> dict[str, float]:
    """p50, p95 and p99 (nearest rank) of some times, each multiplied by ``unit``."""
    ordered = sorted(taken)
    return {
        f"p{share}": round(ordered[max(-(-share * len(ordered) // 100) - 1, 0)] * unit, 3)
        for share in (50, 95, 99)
    }


def _ratio(measured: dict[str, float], floor: dict[str, float]) -> float:
    return round(measured["p50"] / max(floor["p50"], 1e-6), 3)
