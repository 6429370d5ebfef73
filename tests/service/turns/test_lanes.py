"""Lanes: nobody waits for what hangs, and no thread is left over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from memgraph.operations import threads
from memgraph.service.turns.lanes import Lane, LaneError

PATIENCE_S = 10.0


def soon(seconds: float = PATIENCE_S) -> float:
    return time.monotonic() + seconds


def wait_for(condition: Callable[[], bool]) -> None:
    until = soon()
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def threads_of(lane: str) -> int:
    return sum(each.name == f"memgraph-{lane}" for each in threading.enumerate())


def test_what_nobody_waits_for_is_not_begun() -> None:
    lane, gate, begun = Lane("t", threads=1, waiting=2), threading.Event(), list[int]()
    entered = threading.Event()
    first = lane.submit(lambda: entered.set() or gate.wait())
    assert entered.wait(PATIENCE_S)
    late = lane.submit(lambda: begun.append(1))
    with pytest.raises(LaneError, match="in time"):
        late.result(soon(0.01))
    # Its place is free for another.
    lane.submit(lambda: begun.append(2))
    last = lane.submit(lambda: begun.append(3))
    gate.set()
    first.result(soon())
    last.result(soon())
    assert begun == [2, 3]
    lane.close(PATIENCE_S)


def test_threads_end_without_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_S", 0.01)
    lane = Lane("idle", threads=3, waiting=10)
    for each in [lane.submit(lambda: None) for _ in range(10)]:
        each.result(soon())
    wait_for(lambda: threads_of("idle") == 0)
    assert lane.submit(lambda: 1).result(soon()) == 1


def test_a_gate_lets_in_so_many_and_what_hangs_in_it_stops_nobody() -> None:
    gate, begun, hang = threading.Semaphore(1), threading.Event(), threading.Event()
    stuck, free = (Lane(name, threads=1, waiting=5, gate=gate) for name in ("stuck", "free"))
    hung = stuck.submit(lambda: begun.set() or hang.wait())
    assert begun.wait(PATIENCE_S)
    waiting = free.submit(lambda: "in")
    with pytest.raises(LaneError, match="in time"):
        hung.result(soon(0.02))
    assert waiting.result(soon()) == "in"
    hang.set()
    wait_for(lambda: not stuck.unfinished)
    assert stuck.submit(lambda: "again").result(soon()) == "again"
    assert (stuck.close(PATIENCE_S), free.close(PATIENCE_S)) == (0, 0)
