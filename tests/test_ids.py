"""Ids are unique and sort by time, also in forked child processes."""

from __future__ import annotations

import os

from memgraph.clock import FixedClock
from memgraph.ids import UlidSource


def test_ids_are_unique_and_sort_in_the_order_they_were_made() -> None:
    clock = FixedClock()
    source = UlidSource(clock)
    made = []
    for _ in range(200):
        made.append(source.new("mem_"))
        clock.advance(ms=1)
    assert made == sorted(set(made))
    assert len({one[-16:] for one in made}) == len(made)


def test_a_child_draws_chances_of_its_own() -> None:
    clock = FixedClock()
    source = UlidSource(clock)
    source.new("mem_")
    clock.advance(ms=1)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, source.new("mem_").encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read()[-16:] != source.new("mem_")[-16:]
