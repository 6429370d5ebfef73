"""Vectors kept between recalls: those of the snapshot, whatever was kept before."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memgraph.storage.vector_cache import HeldVectors, VectorCache

DIMENSIONS = 4


def vector(pk: int, generation: str = "0") -> NDArray[np.float32]:
    return np.random.default_rng([pk, int(generation)]).normal(size=DIMENSIONS).astype("<f4")


@dataclass
class Rows:
    """Stands for the rows of a database; counts what is asked of it."""

    generation: str = "0"
    missing: set[int] = field(default_factory=set)
    asked: list[int] = field(default_factory=list)

    def fetch(self, pks: list[int]) -> list[tuple[int, bytes]]:
        self.asked.extend(pks)
        return [(pk, vector(pk, self.generation).tobytes()) for pk in pks if pk not in self.missing]


def aligned(held: HeldVectors, rows: Rows, pks: list[int]) -> NDArray[np.float32] | None:
    keys = np.array(pks, dtype=np.int64)
    return held.aligned(rows.generation, keys, DIMENSIONS, rows.fetch)


def expected(pks: list[int], generation: str = "0") -> NDArray[np.float32]:
    found = [vector(pk, generation) for pk in pks]
    return np.array(found, dtype=np.float32).reshape(len(pks), DIMENSIONS)


def test_only_what_is_new_is_fetched() -> None:
    held, rows = VectorCache(10**6).hold(), Rows()
    aligned(held, rows, [1, 2, 3])
    first = held.of("0", [3, 1])
    found = aligned(held, rows, [1, 2, 3, 4, 5])
    assert rows.asked == [1, 2, 3, 4, 5]
    assert found is not None
    assert np.array_equal(found, expected([1, 2, 3, 4, 5]))
    assert first is not None
    assert np.array_equal(first, expected([3, 1]))


@given(
    st.lists(
        st.tuples(st.sampled_from("01"), st.lists(st.integers(1, 40), unique=True, max_size=25)),
        max_size=12,
    )
)
def test_every_snapshot_gets_its_own_vectors(snapshots: list[tuple[str, list[int]]]) -> None:
    held = VectorCache(10**6).hold()
    for generation, pks in snapshots:
        found = aligned(held, Rows(generation), pks)
        assert found is not None
        assert np.array_equal(found, expected(pks, generation))
        some = sorted(pks)[::2]
        few = held.of(generation, some)
        if pks:
            assert few is not None
            assert np.array_equal(few, expected(some, generation))
        assert held.of(generation, [99]) is None


def test_rows_handed_out_stay_as_they_were() -> None:
    held, rows = VectorCache(10**6).hold(), Rows()
    before = aligned(held, rows, [1, 2])
    aligned(held, rows, [1, 2, 3])
    aligned(held, rows, [7, 2])
    assert before is not None
    assert np.array_equal(before, expected([1, 2]))


def test_a_key_without_a_vector_is_not_covered_up() -> None:
    held, rows = VectorCache(10**6).hold(), Rows(missing={2})
    assert aligned(held, rows, [1, 2, 3]) is None
    rows.missing.clear()
    assert aligned(held, rows, [1, 2, 3]) is not None


def test_another_generation_brings_its_own_vectors() -> None:
    held = VectorCache(10**6).hold()
    aligned(held, Rows(), [1, 2])
    assert held.of("1", [1]) is None
    found = aligned(held, Rows("1"), [1, 2])
    assert found is not None
    assert np.array_equal(found, expected([1, 2], "1"))


def test_the_longest_unused_give_way() -> None:
    cache = VectorCache(max_bytes=7 * DIMENSIONS * 4)
    one, other = cache.hold(), cache.hold()
    aligned(one, Rows(), [1, 2])
    aligned(other, Rows(), [1, 2, 3])
    assert one.of("0", [1]) is not None
    aligned(other, Rows(), [1, 2, 3, 4])
    assert one.of("0", [1]) is None
    assert other.of("0", [4]) is not None


def test_too_many_are_not_kept() -> None:
    held = VectorCache(max_bytes=3 * DIMENSIONS * 4).hold()
    assert aligned(held, Rows(), [1, 2, 3]) is None
    assert aligned(held, Rows(), [1, 2]) is not None


def test_what_was_closed_takes_no_room() -> None:
    cache = VectorCache(max_bytes=3 * DIMENSIONS * 4)
    first, second = cache.hold(), cache.hold()
    aligned(first, Rows(), [1, 2])
    first.close()
    aligned(second, Rows(), [1, 2])
    assert first.of("0", [1]) is None
    assert second.of("0", [1]) is not None


def met(rows: Rows, pks: list[int], held: HeldVectors) -> list[int]:
    """Asks for single vectors, holds them against the rows, and gives which of them there are."""
    found, there = held.met(rows.generation, DIMENSIONS, pks, rows.fetch)
    for pk, row, known in zip(pks, found, there, strict=True):
        wanted = vector(pk, rows.generation) if known else np.zeros(DIMENSIONS, np.float32)
        assert np.array_equal(row, wanted)
    return [pk for pk, known in zip(pks, there, strict=True) if known]


@given(
    st.lists(
        st.tuples(st.sampled_from("01"), st.lists(st.integers(1, 40), max_size=25)), max_size=12
    ),
    st.integers(0, 30),
    st.sets(st.integers(1, 40), max_size=5),
)
def test_vectors_met_one_by_one_are_those_of_their_generation(
    asked: list[tuple[str, list[int]]], room: int, missing: set[int]
) -> None:
    cache = VectorCache(room * DIMENSIONS * 4)
    held = cache.hold()
    for generation, pks in asked:
        rows = Rows(generation, missing)
        assert met(rows, pks, held) == [pk for pk in pks if pk not in missing]
        assert cache.used <= cache.max_bytes


def test_what_was_met_is_read_once_and_the_oldest_gives_way() -> None:
    held, rows = VectorCache(3 * DIMENSIONS * 4).hold(), Rows()
    for pks in ([1, 2], [2, 3], [4, 3], [1]):
        met(rows, pks, held)
    assert rows.asked == [1, 2, 3, 4, 1]


def test_vectors_of_others_that_were_met_give_way() -> None:
    cache = VectorCache(4 * DIMENSIONS * 4)
    first, second, rows = cache.hold(), cache.hold(), Rows()
    met(rows, [1, 2, 3], first)
    met(rows, [1, 2, 3], second)
    assert cache.used == 3 * DIMENSIONS * 4
    met(rows, [3], second)
    met(rows, [1], first)
    assert rows.asked == [1, 2, 3, 1, 2, 3, 1]


def test_vectors_met_one_by_one_count_beside_all_of_them_and_give_way_to_them() -> None:
    row = DIMENSIONS * 4
    cache = VectorCache(100 * row)
    held, rows = cache.hold(), Rows()
    met(rows, list(range(20)), held)
    aligned(held, rows, list(range(20, 40)))
    # A quarter more is counted of those that are kept as a whole.
    assert cache.used == (20 + 25) * row
    rows.asked.clear()
    assert met(rows, [1, 2], held) == [1, 2]
    assert rows.asked == []
    aligned(held, rows, list(range(20, 92)))
    assert cache.used == 90 * row
    met(rows, [1, 2], held)
    assert rows.asked == [*range(40, 92), 1, 2]
    # More of them than there is room for: the others stay.
    met(rows, list(range(100, 130)), held)
    assert held.of("0", [91]) is not None
    assert cache.used <= cache.max_bytes


def test_more_room_than_the_machine_has_is_taken_as_it_is_needed() -> None:
    held, rows = VectorCache(2**50).hold(), Rows()
    for start in range(0, 5_000, 500):
        met(rows, list(range(start, start + 500)), held)
    rows.asked.clear()
    assert met(rows, list(range(5_000)), held) == list(range(5_000))
    assert rows.asked == []


def test_the_oldest_give_way_where_the_last_doubling_was_cut_short() -> None:
    held, rows = VectorCache(1_500 * DIMENSIONS * 4).hold(), Rows()
    met(rows, list(range(1_500)), held)
    met(rows, list(range(1_500, 1_600)), held)
    rows.asked.clear()
    met(rows, list(range(100, 1_600)), held)
    assert rows.asked == []
    met(rows, [99], held)
    assert rows.asked == [99]
