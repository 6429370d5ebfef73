"""``memgraph bench turns``: many turns of many orchestrators at once, in one process.

A turn is what a host does: a message, a pause for the model that selects, a step's context, a pause
for the model that works, the step's output, the reply. The pauses stand for a model elsewhere and
take no CPU here: turns begin at a rate of ``turns / (2 * pause_ms)``, which with the CPU of a
turn (``cpu_ms_per_turn``) says how busy the process is. Default settings, the local embedding, the
deadline of a turn as it is set.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from benchmarks.synthetic import Corpus, corpus
from benchmarks.timing import NO_READER, Tell, peak_memory_mb, percentiles
from memgraph.errors import InvalidInput
from memgraph.model.turns import StepContext, WriteBackResult
from memgraph.service.memory_service import MemoryService
from memgraph.service.turns.hooks import MemoryHooks

MAX_TURNS = 2_000
MAX_ORCHESTRATORS = 200
MAX_MEMORIES = 1_000_000
MAX_PAUSE_MS = 60_000
MAX_ROUNDS = 100
LEAST_SWITCH_MS, MOST_SWITCH_MS = 0.1, 100.0
# Of each orchestrator, before anything is measured: imports, the model, the files.
WARM_MS = 60_000
CLOSE_S = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked at once.

    Attributes:
        turns: in flight at the same time; ``orchestrators``: over so many.
        memories: turns of earlier talk in each orchestrator.
        rounds: turns of each conversation, one after the other.
        pause_ms: what each of a turn's two model calls takes.
        switch_ms: how long Python lets a thread run while others want to; its own default is 5.
    """

    turns: int = 200
    orchestrators: int = 20
    memories: int = 1_000
    rounds: int = 3
    pause_ms: int = 5_000
    switch_ms: float = 5.0
    seed: int = 1

    def __post_init__(self) -> None:
        bounds: dict[str, tuple[float, float]] = {
            "turns": (1, MAX_TURNS),
            "orchestrators": (1, MAX_ORCHESTRATORS),
            "memories": (0, MAX_MEMORIES),
            "rounds": (1, MAX_ROUNDS),
            "pause_ms": (0, MAX_PAUSE_MS),
            "switch_ms": (LEAST_SWITCH_MS, MOST_SWITCH_MS),
        }
        for name, (least, most) in bounds.items():
            if not least <= getattr(self, name) <= most:
                raise InvalidInput(f"{name}: {least:,} to {most:,}", field=name)


@dataclass(slots=True)
class _Seen:
    """What the turns of one measurement took. Written to by many threads."""

    message: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    output: list[float] = field(default_factory=list)
    reply: list[float] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    degraded: int = 0
    turns: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, told: Sequence[StepContext | WriteBackResult]) -> None:
        """A turn came to its end; what its hooks had to do without."""
        codes = {each.code for one in told for each in one.warnings}
        with self.lock:
            self.turns += 1
            self.degraded += bool(codes)
            self.codes.update(codes)

    def report(self) -> dict[str, Any]:
        timed = {name: getattr(self, name) for name in ("message", "step", "output", "reply")}
        times = {f"on_{name}_ms": percentiles(taken) for name, taken in timed.items() if taken}
        return {
            "turns": self.turns,
            "errors": sum(self.errors.values()),
            "error_kinds": dict(self.errors),
            "degraded": self.degraded,
            "warnings": dict(sorted(self.codes.items())),
            **times,
        }


def run(load: Load, progress: Tell = lambda _stage, _done, _total: None) -> dict[str, Any]:
    """Measure turns in flight, then all first messages at the same instant.

    Returns:
        The load; ``in_flight`` and ``burst`` with ``errors``, ``degraded`` turns, ``warnings`` by
        code and p50, p95, p99 of each hook in ms; ``stored``: whether every acknowledged message is
        there, once.
    """
    talk = corpus(load.seed)
    usual = sys.getswitchinterval()
    with (
        tempfile.TemporaryDirectory(prefix="memgraph-bench-") as root,
        MemoryService(root, config=NO_READER, environ={}) as service,
    ):
        names = [f"orc-{number}" for number in range(load.orchestrators)]
        for number, name in enumerate(names):
            progress("storing", number, len(names))
            earlier = talk.turns(number * load.memories, load.memories)
            service.orchestrator(name, create=True).remember_many(earlier)
            service.orchestrator(name).settle()
        hooks = [MemoryHooks(service, name) for name in names]
        try:
            for number, each in enumerate(hooks):
                progress("warming", number, len(hooks))
                _warm(each, talk)
            acknowledged: list[tuple[str, str]] = []
            sys.setswitchinterval(load.switch_ms / 1_000)
            flying = _in_flight(hooks, talk, load, acknowledged, progress)
            burst = _burst(hooks, talk, load, acknowledged, progress)
        finally:
            sys.setswitchinterval(usual)
            lost = sum(each.close(CLOSE_S) for each in hooks)
        return {
            "turns": load.turns,
            "orchestrators": load.orchestrators,
            "memories": load.memories,
            "rounds": load.rounds,
            "pause_ms": load.pause_ms,
            "switch_ms": load.switch_ms,
            "cpus": os.cpu_count(),
            "in_flight": flying,
            "burst": burst,
            "lost": lost,
            "stored": _stored(service, acknowledged),
            "peak_memory_mb": peak_memory_mb(),
        }


def _warm(hooks: MemoryHooks, talk: Corpus) -> None:
    hooks.prepare(WARM_MS)
    for number in range(2):
        hooks.on_message(talk.text(number), conversation_id="warm", deadline_ms=WARM_MS)
    hooks.on_step_output(
        "Decision: begin.", workflow_run_id="warm", step_id="warm", deadline_ms=WARM_MS
    )


def _in_flight(
    hooks: Sequence[MemoryHooks],
    talk: Corpus,
    load: Load,
    acknowledged: list[tuple[str, str]],
    progress: Tell,
) -> dict[str, Any]:
    seen = _Seen()
    total = load.turns * load.rounds
    # Conversations begin spread over one turn's pauses, as people do.
    apart = 2 * load.pause_ms / 1_000 / load.turns

    def converse(number: int) -> None:
        time.sleep(number * apart)
        for turn in range(load.rounds):
            try:
                _turn(hooks[number % len(hooks)], talk, load, (number, turn), seen, acknowledged)
            except Exception as error:  # noqa: BLE001 - counted: that no turn fails is measured
                with seen.lock:
                    seen.errors[type(error).__name__] += 1
            progress("turns", seen.turns, total)

    cpu, begun = time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(load.turns, thread_name_prefix="turn") as pool:
        list(pool.map(converse, range(load.turns)))
    seconds = time.perf_counter() - begun
    busy = (time.process_time() - cpu) / max(seen.turns, 1) * 1_000
    return {
        **seen.report(),
        "seconds": round(seconds, 1),
        "turns_per_second": round(seen.turns / seconds, 1),
        "cpu_ms_per_turn": round(busy, 1),
    }


def _turn(
    hooks: MemoryHooks,
    talk: Corpus,
    load: Load,
    which: tuple[int, int],
    seen: _Seen,
    acknowledged: list[tuple[str, str]],
) -> None:
    number, turn = which
    run_id, channel = f"run-{number}-{turn}", f"channel-{number}"
    said = talk.question(number * load.rounds + turn, max(load.memories, 1))
    begun = time.perf_counter()
    message = hooks.on_message(said, conversation_id=channel, turn_id=f"{run_id}-message")
    seen.message.append(time.perf_counter() - begun)
    if message.episode_id is not None:
        acknowledged.append((hooks.name, message.episode_id))
    time.sleep(load.pause_ms / 1_000)
    begun = time.perf_counter()
    step = hooks.on_step(said, workflow_run_id=run_id, step_id="work", conversation_id=channel)
    seen.step.append(time.perf_counter() - begun)
    time.sleep(load.pause_ms / 1_000)
    output = f"Decision: {talk.text(number)[:200]}\n- [ ] look at {run_id} again\n"
    begun = time.perf_counter()
    written = hooks.on_step_output(output, workflow_run_id=run_id, step_id="work")
    seen.output.append(time.perf_counter() - begun)
    reply = {"content": output, "source_role": "assistant", "turn_id": f"{run_id}-reply"}
    begun = time.perf_counter()
    kept = hooks.on_transcript([reply], conversation_id=channel)
    seen.reply.append(time.perf_counter() - begun)
    seen.note([message, step, written, kept])


def _burst(
    hooks: Sequence[MemoryHooks],
    talk: Corpus,
    load: Load,
    acknowledged: list[tuple[str, str]],
    progress: Tell,
) -> dict[str, Any]:
    """Every conversation gets a message at the same instant."""
    progress("burst", 0, load.turns)
    seen = _Seen()
    gate = threading.Barrier(load.turns)

    def message(number: int) -> None:
        each = hooks[number % len(hooks)]
        said = talk.question(number, max(load.memories, 1))
        gate.wait()
        begun = time.perf_counter()
        try:
            turn = each.on_message(said, conversation_id=f"burst-{number}", turn_id="burst")
        except Exception as error:  # noqa: BLE001 - counted: that no turn fails is measured
            with seen.lock:
                seen.errors[type(error).__name__] += 1
            return
        seen.message.append(time.perf_counter() - begun)
        if turn.episode_id is not None:
            acknowledged.append((each.name, turn.episode_id))
        seen.note([turn])

    with ThreadPoolExecutor(load.turns, thread_name_prefix="burst") as pool:
        list(pool.map(message, range(load.turns)))
    return seen.report()


def _stored(service: MemoryService, acknowledged: Sequence[tuple[str, str]]) -> bool:
    """Whether every acknowledged message is there, and none was acknowledged as another."""
    there = all(
        service.orchestrator(name).get(memory_id).memory_id == memory_id
        for name, memory_id in acknowledged
    )
    return there and len(set(acknowledged)) == len(acknowledged)
