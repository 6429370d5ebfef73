"""Requests of one key one after another, in order; requests of others at the same time."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from memgraph.operations.context.entity import KeyedQueues, mailboxes_of

PATIENCE_S = 30.0


def started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def ended(threads: list[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(PATIENCE_S)
    return not any(thread.is_alive() for thread in threads)


class Line:
    """Threads that come to a key one by one, while the first holds it."""

    def __init__(self, boxes: KeyedQueues, key: str = "a") -> None:
        self.boxes, self.key = boxes, key
        self.order: list[int] = []
        self.threads: list[threading.Thread] = []
        self.gate = threading.Event()

    def come(self, number: int, work: Callable[[], object] = lambda: None) -> None:
        """Start a request, and go on when it stands in the line."""
        arrived = threading.Event()

        def request() -> None:
            arrived.set()
            with self.boxes.turn(self.key):
                self.order.append(number)
                work()

        before = self.boxes.waiting(self.key)
        self.threads.append(started(request))
        assert arrived.wait(PATIENCE_S)
        # The thread is on its way: it needs no more than to be let run.
        for _ in range(int(PATIENCE_S * 1_000)):
            if self.boxes.waiting(self.key) > before:
                return
            threading.Event().wait(0.001)
        raise AssertionError("it never came")


def assert_goes_on(boxes: KeyedQueues) -> None:
    served: list[str] = []

    def request() -> None:
        with boxes.turn("a"):
            served.append("a")

    assert ended([started(request)])
    assert served == ["a"]


def test_requests_are_served_in_the_order_in_which_they_came() -> None:
    boxes = KeyedQueues()
    line = Line(boxes)
    line.come(0, lambda: line.gate.wait(PATIENCE_S))
    for number in range(1, 20):
        line.come(number)
    assert line.order == [0]
    line.gate.set()
    assert ended(line.threads)
    assert line.order == list(range(20))
    assert boxes.waiting("a") == 0


def test_one_at_a_time() -> None:
    boxes, within, most = KeyedQueues(), [0], [0]

    def request() -> None:
        for _ in range(50):
            with boxes.turn("a"):
                within[0] += 1
                most[0] = max(most[0], within[0])
                time.sleep(0)  # lets another thread come in, if one can
                within[0] -= 1

    threads = [started(request) for _ in range(8)]
    assert ended(threads)
    assert (most, within) == ([1], [0])


def test_one_that_fails_does_not_stall_the_next() -> None:
    line = Line(KeyedQueues())
    failed: list[str] = []

    def fail() -> None:
        raise LookupError

    def request() -> None:
        try:
            with line.boxes.turn("a"):
                fail()
        except LookupError:
            failed.append("a")

    line.come(0, lambda: line.gate.wait(PATIENCE_S))
    line.threads.append(started(request))
    line.gate.set()
    assert ended(line.threads)
    with line.boxes.turn("a"):
        assert failed == ["a"]


def test_one_that_is_interrupted_while_it_waits_leaves_the_line() -> None:
    """Ctrl-C comes to a thread that waits, and the others go on."""
    boxes = KeyedQueues()
    line = Line(boxes)
    line.come(0, lambda: line.gate.wait(PATIENCE_S))

    class Interrupted:
        def __init__(self) -> None:
            self.held = False

        def acquire(self) -> None:
            if self.held:
                raise KeyboardInterrupt
            self.held = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memgraph.operations.context.entity.threading.Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt), boxes.turn("a"):
            raise AssertionError("it was not its turn")
    assert boxes.waiting("a") == 1
    line.come(1)
    line.gate.set()
    assert ended(line.threads)
    assert line.order == [0, 1]


def test_keys_do_not_wait_for_one_another() -> None:
    boxes, meeting = KeyedQueues(), threading.Barrier(3)

    def request(key: str) -> None:
        with boxes.turn(key):
            # Broken, and so an error in the thread, unless all three are within.
            meeting.wait(PATIENCE_S)

    threads = [started(lambda key=key: request(key)) for key in "abc"]  # type: ignore[misc]
    assert ended(threads)
    assert not meeting.broken


def test_an_owner_has_one_line_and_takes_it_along() -> None:
    class Owner:
        pass

    one, other = Owner(), Owner()
    assert mailboxes_of(one) is mailboxes_of(one) is not mailboxes_of(other)
    boxes = mailboxes_of(one)
    with boxes.turn("a"):
        pass
    count = len(gc.get_referrers(boxes))
    del one
    gc.collect()
    assert len(gc.get_referrers(boxes)) < count


def test_thousands_of_keys_leave_nothing_behind() -> None:
    boxes = KeyedQueues()

    def request(first: int) -> None:
        for number in range(first, 5_000, 7):
            with contextlib.suppress(LookupError), boxes.turn(number):
                assert boxes.waiting(number) == 1
                raise LookupError

    threads = [started(lambda first=first: request(first)) for first in range(7)]  # type: ignore[misc]
    with boxes.turn("held"):
        assert ended(threads)
        assert len(boxes) == 1
    assert len(boxes) == 0


@pytest.mark.parametrize("place", ["before", "within", "after"])
def test_one_that_is_interrupted_while_it_leaves_does_not_stall_the_next(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Ctrl-C may come at any step: with the lock, before it and after it."""
    boxes = KeyedQueues()
    leave = KeyedQueues._leave
    calls: list[str] = []

    def interrupted(self: KeyedQueues, key: str, mine: Any) -> None:
        calls.append(place)
        if len(calls) > 1:
            return leave(self, key, mine)
        if place == "within":
            with self._lock:
                raise KeyboardInterrupt
        if place == "after":
            leave(self, key, mine)
        raise KeyboardInterrupt

    monkeypatch.setattr(KeyedQueues, "_leave", interrupted)
    with pytest.raises(KeyboardInterrupt), boxes.turn("a"):
        pass
    assert len(boxes) == 0
    assert_goes_on(boxes)


def test_a_thread_that_an_exception_ends_anywhere_does_not_stall_the_next() -> None:
    """Exceptions that come from outside, as Ctrl-C does, at whatever instruction it is."""
    boxes = KeyedQueues()
    stop, ends = threading.Event(), [0]

    def request() -> None:
        while not stop.is_set():
            try:
                while not stop.is_set():
                    with boxes.turn("a"):
                        pass
            except KeyboardInterrupt:
                ends[0] += 1

    threads = [started(request) for _ in range(2)]
    for number in range(200):
        before = ends[0]
        ident = ctypes.c_ulong(threads[number % 2].ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(KeyboardInterrupt))
        for _ in range(int(PATIENCE_S * 1_000)):
            if ends[0] > before:
                break
            time.sleep(0.001)
    stop.set()
    assert ended(threads)
    assert ends[0] == 200
    assert len(boxes) == 0
    assert_goes_on(boxes)
