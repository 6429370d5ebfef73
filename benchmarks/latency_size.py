"""One size of the latency bench: everything that is measured of so many memories."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import latency_load, latency_process, latency_targets, latency_worst, raw
from benchmarks.latency_load import NAME
from benchmarks.synthetic import Corpus, corpus
from benchmarks.timing import NO_READER, Tell, peak_memory_mb, percentiles, ratio, seconds
from memgraph.model.recall import RecallRequest
from memgraph.operations.orchestrator import Orchestrator
from memgraph.operations.read.recall import reading
from memgraph.providers.local import LocalEmbedding
from memgraph.rules.scope import Viewer
from memgraph.service.memory_service import MemoryService
from memgraph.service.open_orchestrator import OpenOrchestrator

WARM_UP = 10
# So many of ours, then as many of plain SQL: the machine is in the same state for both.
BLOCK = 5
MESSAGES_PER_ROUND = 3


@dataclass(frozen=True, slots=True)
class Job:
    """What to measure.

    Attributes:
        rounds: measurements of each kind.
        keep: where the loaded memories stay and are looked for; None: nothing stays.
    """

    size: int
    rounds: int
    keep: Path | None


@dataclass(frozen=True, slots=True)
class _Bench:
    service: MemoryService
    memory: Orchestrator
    corpus: Corpus
    folder: Path
    job: Job
    tell: Tell


def measure(job: Job, tell: Tell) -> dict[str, Any]:
    """All figures of one size, see ``latency.run``; the peak memory is that of this process."""
    started = time.perf_counter()
    tell = _named(job, tell)
    if job.keep is not None:
        job.keep.mkdir(parents=True, exist_ok=True)
        latency_load.facts_of(job.keep / str(job.size))
    made_up = corpus()
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-", dir=job.keep) as temporary:
        folder = Path(temporary)
        loaded = folder / "loaded" if job.keep is None else job.keep / str(job.size)
        figures = dict(latency_load.loaded(loaded, job.size, made_up, tell))
        root = loaded / latency_load.ROOT
        if job.keep is not None:
            root = folder / latency_load.ROOT
            latency_load.copied(loaded, root)
        with MemoryService(root, config=NO_READER, environ={}, background=False) as service:
            bench = _Bench(service, service.orchestrator(NAME), made_up, folder, job, tell)
            figures |= _ours(bench)
            figures["peak_memory_mb"] = peak_memory_mb()
            path, bytes_each = latency_load.floor(loaded, job.size, bench.tell)
            figures["raw_disk_bytes_per_memory"] = bytes_each
            figures |= _recalls(bench, path)
            prepared = latency_worst.prepare(service, made_up, job.size, bench.tell)
            worst = latency_worst.measure(service, prepared, max(job.rounds // 5, 1), bench.tell)
        figures |= latency_process.measure(root, job.size, made_up, job.rounds, tell)
    figures["worst"] = latency_targets.check_worst(worst, job.size)
    figures["targets"] = latency_targets.check(figures, job.size)
    figures["seconds"] = round(time.perf_counter() - started, 1)
    return figures


def _ours(bench: _Bench) -> dict[str, Any]:
    """What memgraph does by itself: before plain SQL has its part in this process's memory."""
    bench.tell("warming up", 0, WARM_UP)
    for at in range(WARM_UP):
        bench.memory.recall(bench.corpus.question(at, bench.job.size))
    return _graph(bench) | _bulletins(bench) | _writes(bench) | _messages(bench)


def _recalls(bench: _Bench, path: Path) -> dict[str, Any]:
    """Recall and plain SQL in turns, a few questions of each; then exact search.

    As in a user's process a thread writes the receipts, beside whatever is measured meanwhile.
    """
    size, rounds = bench.job.size, bench.job.rounds
    questions = [bench.corpus.question(at, size) for at in range(WARM_UP + rounds)]
    vectors = LocalEmbedding().embed(questions)
    asked = [
        (raw.any_word(one), vector.tobytes())
        for one, vector in zip(questions, vectors, strict=True)
    ]
    plain = raw.Floor(path)
    taken: list[float] = []
    floor: list[float] = []
    with MemoryService(bench.service.root, config=NO_READER, environ={}) as service:
        memory = service.orchestrator(NAME)
        for at in range(WARM_UP):
            memory.recall(questions[at])
            plain.seconds(asked[at])
        for start in range(WARM_UP, WARM_UP + rounds, BLOCK):
            bench.tell("recall", start - WARM_UP, rounds)
            block = range(start, min(start + BLOCK, WARM_UP + rounds))
            taken += [seconds(memory.recall, questions[at]) for at in block]
            floor += [plain.seconds(asked[at]) for at in block]
        bench.tell("context", 0, rounds)
        blocks = [seconds(memory.context, each) for each in questions]
    plain.close()
    found = {"recall": percentiles(taken), "raw_recall": percentiles(floor)}
    found["context"] = percentiles(blocks[WARM_UP:])
    checked = questions[WARM_UP : WARM_UP + max(rounds // 4, 5)]
    overlaps = []
    for done, text in enumerate(checked):
        bench.tell("exact search", done, len(checked))
        overlaps.append(_overlap(bench, text))
    return {
        **found,
        "recall_ratio": ratio(found["recall"], found["raw_recall"]),
        "overlap_at_20": round(sum(overlaps) / len(overlaps), 4),
    }


def _overlap(bench: _Bench, text: str) -> float:
    """The share of the exact answer, by the same rules, that the answer holds."""
    request = RecallRequest(query=text, top_n=20)
    with bench.service.opened(NAME) as opened:
        quick, exact = (
            _found(opened, bench.memory.viewer, request, exactly) for exactly in (False, True)
        )
    return len(set(quick) & set(exact)) / max(len(exact), 1)


def _found(
    opened: OpenOrchestrator, viewer: Viewer, request: RecallRequest, exact: bool
) -> list[str]:
    with reading(opened, viewer, request, exact=exact) as chosen:
        return [item.memory.memory_id for item in chosen.items]


def _graph(bench: _Bench) -> dict[str, Any]:
    ids = latency_load.memory_ids(bench.service, latency_load.JOINED)
    rounds = bench.job.rounds
    bench.tell("subgraph", 0, rounds)
    sizes = []
    taken = []
    for at in range(rounds + 1):
        start = time.perf_counter()
        found = bench.memory.graph.subgraph([ids[at * 13 % len(ids)]], hops=2, max_nodes=200)
        taken.append(time.perf_counter() - start)
        sizes.append(len(found.nodes))
    return {
        "subgraph": percentiles(taken[1:]),
        "subgraph_nodes": sum(sizes) // len(sizes),
    }


def _bulletins(bench: _Bench) -> dict[str, Any]:
    rounds = bench.job.rounds
    bench.tell("bulletin", 0, rounds)
    bench.memory.bulletin()
    changed = []
    for number in range(rounds):
        bench.memory.remember(f"A decision of the bench, number {number}.", type="Decision")
        changed.append(seconds(bench.memory.bulletin))
    unchanged = [seconds(bench.memory.bulletin) for _ in range(rounds)]
    return {
        "bulletin_changed": percentiles(changed),
        "bulletin_unchanged": percentiles(unchanged),
    }


def _writes(bench: _Bench) -> dict[str, Any]:
    """Durable writes beside plain ones of the same rows, a few of each in turns."""
    rounds = bench.job.rounds
    copy = bench.folder / "copy.db"
    latency_load.checkpointed(bench.service)
    database = latency_load.database_of(bench.service)
    bench.tell("durable writes", 0, rounds)
    shutil.copyfile(database, copy)
    turns = list(bench.corpus.turns(bench.job.size, WARM_UP + rounds))
    plain = raw.PlainWrites(copy, database)
    taken: list[float] = []
    floor: list[float] = []
    for start in range(0, len(turns), BLOCK):
        block = [
            (turn.content, turn.model_dump(exclude={"content", "key"}))
            for turn in turns[start : start + BLOCK]
        ]
        taken += [seconds(bench.memory.remember, text, **fields) for text, fields in block]
        floor += plain.seconds(len(block))
    plain.close()
    copy.unlink()
    bench.memory.settle()
    measured, beside = percentiles(taken[WARM_UP:]), percentiles(floor[WARM_UP:])
    return {"write": measured, "raw_write": beside, "write_ratio": ratio(measured, beside)}


def _messages(bench: _Bench) -> dict[str, Any]:
    """Messages one right after another, while a thread embeds them, as in a user's process."""
    count = bench.job.rounds * MESSAGES_PER_ROUND
    bench.tell("save_episode", 0, count)
    first = bench.job.size + WARM_UP + bench.job.rounds
    turns = list(bench.corpus.turns(first, WARM_UP + count))
    taken = []
    usual = MemoryService(bench.service.root, config=NO_READER, environ={}, background=True)
    with usual as service:
        memory = service.orchestrator(NAME)
        for turn in turns:
            start = time.perf_counter()
            memory.save_episode(
                turn.content,
                session_id=turn.session_id or "",
                source_role=turn.source_role or "",
            )
            taken.append(time.perf_counter() - start)
        with service.opened(NAME) as opened:
            opened.background.wait_idle(60.0)
    return {"save_episode": percentiles(taken[WARM_UP:])}


def _named(job: Job, tell: Tell) -> Tell:
    return lambda stage, done, total: tell(f"{job.size:,}: {stage}", done, total)
