"""``memgraph bench latency``: how long things take at several sizes, beside plain SQL.

Everything goes through the public interface with default settings, on made-up conversations; the
plain SQL runs on the same data in the same run. Every size has a process of its own, so that its
peak memory is its own.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import latency_size
from benchmarks.latency_size import Job
from benchmarks.timing import Tell
from memgraph.errors import BenchFailed, InvalidInput, MemgraphError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

LEAST = 100
_ROUNDS = 100


def run(
    sizes: Sequence[int],
    tell: Tell = lambda _stage, _done, _total: None,
    *,
    rounds: int = _ROUNDS,
    keep: Path | None = None,
) -> dict[str, Any]:
    """Measure at every size, smallest first, each in a process of its own.

    Args:
        tell: takes a stage, how much of it is done, and how much there is.
        rounds: measurements of each kind.
        keep: a folder where the loaded memories of every size stay; those that are there already
            are not loaded again.

    Returns:
        ``machine``, ``rounds`` and, under ``sizes`` by number of memories, ``p50``, ``p95`` and
        ``p99`` in milliseconds of ``recall``, ``context``, ``write``, ``save_episode``,
        ``bulletin_changed``, ``bulletin_unchanged``, ``subgraph`` (of ``subgraph_nodes``) and of
        the plain SQL ``raw_recall``, ``raw_write``; ``recall_ratio`` and ``write_ratio`` of the
        medians; ``overlap_at_20`` with exact search; ``bulk_per_s`` with embedding;
        ``peak_memory_mb`` of the process, plain SQL and worst cases left out;
        ``disk_bytes_per_memory`` beyond its own
        text, ``raw_disk_bytes_per_memory`` the same; the ``worst`` cases by name; ``start`` and
        ``http`` as `latency_process.measure` returns them; ``targets``,
        each with its ``value`` and whether it is ``met``; ``reused``; ``seconds``.

    Raises:
        InvalidInput: no size, one below 100, or a folder to keep that holds something else.
        BenchFailed: a process ended without an answer.
    """
    if not sizes or min(sizes) < LEAST:
        raise InvalidInput(f"sizes: at least one, each at least {LEAST} memories")
    return {
        "machine": {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "system": platform.system(),
        },
        "rounds": rounds,
        "sizes": {
            str(size): _in_a_process(Job(size, rounds, keep), tell) for size in sorted(set(sizes))
        },
    }


def _in_a_process(job: Job, tell: Tell) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(job, theirs), name=f"bench-{job.size}")
    child.start()
    theirs.close()
    try:
        while True:
            kind, *told = ours.recv()
            if kind == "told":
                tell(*told)
            elif kind == "failed":
                raise told[0]
            else:
                found: dict[str, Any] = json.loads(told[0])
                child.join()
                return found
    except EOFError:
        child.join()
        raise BenchFailed(
            f"the process that measured {job.size} memories ended with code {child.exitcode}",
            size=job.size,
        ) from None
    finally:
        ours.close()
        if child.is_alive():
            child.terminate()
            child.join()


def _child(job: Job, answers: Connection) -> None:
    try:
        found = latency_size.measure(job, lambda *told: answers.send(("told", *told)))
    except MemgraphError as error:
        answers.send(("failed", error))
    else:
        answers.send(("done", json.dumps(found)))
