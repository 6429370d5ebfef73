"""The vector index: one suite for a process that keeps a copy, and for one that reads the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filling import add_source, fresh_database, memory_row as row
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from sampling import often

from memgraph.model.enums import STORED_STATUSES, Sensitivity
from memgraph.store import embeddings, memories, metadata, vector_cache, vector_index
from memgraph.store.engine import Database
from memgraph.store.snapshot import Snapshot
from memgraph.store.sqlite.indexes import SqliteVectorIndex
from memgraph.store.vector_cache import HeldVectors, VectorCache, VectorRows, VectorStamp
from memgraph.store.vector_index import FaultyVector, VectorFault, VectorIndex

MODEL = "m"
OPEN = embeddings.visibility("global", None, "active", "Public")
RETRACTED = embeddings.visibility("global", None, "retracted", "Public")
Floats = NDArray[np.float32]
Opener = Callable[[Snapshot], VectorIndex]


@pytest.fixture(params=[256, 20])
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    with made(tmp_path, request.param) as opened:
        yield opened


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Database]:
    with made(tmp_path, 20) as opened:
        yield opened


@pytest.fixture(params=["kept", "rows"])
def index(request: pytest.FixtureRequest) -> Opener:
    cache = VectorCache(10**8).hold() if request.param == "kept" else None
    return lambda connection: embeddings.index(connection, cache)


@contextmanager
def made(folder: Path, dimensions: int) -> Iterator[Database]:
    with fresh_database(folder, dimensions) as opened:
        with opened.write() as connection:
            metadata.put(connection, "embedding_model", MODEL)
            add_source(connection)
        yield opened


def unit_vectors(count: int, dimensions: int, seed: int = 1) -> Floats:
    """Around a hundred directions, as sentences lie around topics."""
    chance = np.random.default_rng(seed)
    result = (
        chance.normal(size=(count, dimensions))
        + 2
        * np.random.default_rng(0).normal(size=(100, dimensions))[chance.integers(100, size=count)]
    )
    unit: Floats = (result / np.linalg.norm(result, axis=1, keepdims=True)).astype("<f4")
    return unit


def rounded(vectors: Floats) -> Floats:
    codes = embeddings.quantized(vectors).astype(np.float32)
    return codes / np.linalg.norm(codes, axis=1, keepdims=True)


def fill(connection: Snapshot, count: int, first: int = 1, **values: Any) -> Floats:
    """``count`` memories with vectors; gives the vectors as they are stored."""
    pks = range(first, first + count)
    memories.insert(connection, [row(pk, **values) for pk in pks])
    embeddings.enqueue(connection, list(pks))
    opened = embeddings.index(connection)
    vectors = unit_vectors(count, opened.dimensions, seed=first)
    opened.add(list(pks), vectors, MODEL)
    return rounded(vectors)


def filled(database: Database, count: int) -> Floats:
    with database.write() as connection:
        return fill(connection, count)


def retract(connection: Snapshot, pk: int) -> None:
    connection.exec_driver_sql("UPDATE memories SET status = 'retracted' WHERE pk = ?", (pk,))
    embeddings.index(connection).refresh([f"fact_{pk:05d}"])


def best(stored: Floats, query: Floats, but: Sequence[int] = ()) -> list[int]:
    order = np.argsort(-(stored @ query), kind="stable") + 1
    return [pk for pk in order.tolist() if pk not in but]


def test_the_nearest_are_found(database: Database, index: Opener) -> None:
    with database.write() as connection:
        stored = fill(connection, 600)
        embeddings.index(connection).remove([3, 77, 600])
    query = unit_vectors(1, stored.shape[1], seed=5)[0]
    with database.read() as connection:
        result = index(connection).search(query, 40, visibilities=[OPEN])
    assert result == best(stored, query, but=(3, 77, 600))[:40]


def test_what_is_not_visible_takes_no_place(small: Database, index: Opener) -> None:
    with small.write() as connection:
        fill(connection, 300, sensitivity=Sensitivity.RESTRICTED)
        stored = fill(connection, 5, first=301)
    hidden = embeddings.visibility("global", None, "active", "Restricted")
    with small.read() as connection:
        opened = index(connection)
        assert opened.search(stored[0], 5, visibilities=[OPEN])[0] == 301
        assert sorted(opened.search(stored[0], 9, visibilities=[OPEN])) == list(range(301, 306))
        assert len(opened.search(stored[0], 99, visibilities=[OPEN, hidden])) == 99
        assert opened.search(stored[0], 5, visibilities=[]) == []


def test_equal_vectors_are_ordered_by_key(small: Database, index: Opener) -> None:
    with small.write() as connection:
        stored = fill(connection, 5)
        embeddings.index(connection).add([4, 2], stored[[0, 0]], MODEL)
    with small.read() as connection:
        assert index(connection).search(stored[0], 3, visibilities=[OPEN]) == [1, 2, 4]


def test_an_index_of_nothing_finds_nothing(small: Database, index: Opener) -> None:
    with small.read() as connection:
        opened = index(connection)
        assert opened.search(unit_vectors(1, 20)[0], 5, visibilities=[OPEN]) == []
        assert opened.vectors([1, 2]).tolist() == [[0.0] * 20] * 2
        assert opened.vectors([]).shape == (0, 20)


def test_vectors_by_key(database: Database, index: Opener) -> None:
    stored = filled(database, 5)
    with database.read() as connection:
        opened = index(connection)
        opened.load()
        result = opened.vectors([4, 77, 2, 4])
    assert np.allclose(result[[0, 2, 3]], stored[[3, 1, 3]], atol=1e-6)
    assert not result[1].any()


def test_a_change_of_status_is_followed(small: Database, index: Opener) -> None:
    stored = filled(small, 5)
    with small.read() as connection:
        assert index(connection).search(stored[1], 5, visibilities=[OPEN])[0] == 2
    with small.write() as connection:
        retract(connection, 2)
        embeddings.index(connection).refresh(["fact_unknown"])
    with small.read() as connection:
        opened = index(connection)
        assert sorted(opened.search(stored[1], 5, visibilities=[OPEN])) == [1, 3, 4, 5]
        assert opened.search(stored[1], 5, visibilities=[RETRACTED]) == [2]


def test_vectors_of_another_model_or_size_are_not_searched(small: Database, index: Opener) -> None:
    with small.write() as connection:
        stored = fill(connection, 3)
        embeddings.index(connection).add([2], stored[[1]], "another")
        embeddings.index(connection).add([3], unit_vectors(1, 24), MODEL)
    with small.read() as connection:
        opened = index(connection)
        assert opened.search(stored[1], 5, visibilities=[OPEN]) == [1]
        assert not opened.vectors([2, 3]).any()
    with small.write() as connection:
        assert embeddings.index(connection).rebuild(24) == 1
    with small.read() as connection:
        opened = index(connection)
        assert opened.dimensions == 24
        assert opened.search(unit_vectors(1, 24)[0], 5, visibilities=[OPEN]) == [3]
    with small.write() as connection:
        metadata.put(connection, "embedding_model", "another")
    with small.read() as connection:
        assert index(connection).search(unit_vectors(1, 24)[0], 5, visibilities=[OPEN]) == []


def keys_of(index: VectorIndex) -> list[int]:
    """Return the keys of all vectors with the visibility ``OPEN``."""
    query = np.full(index.dimensions, index.dimensions**-0.5, np.float32)
    return sorted(index.search(query, 1_000, visibilities=[OPEN]))


def test_check_names_what_is_wrong_and_rebuild_mends_visibility(small: Database) -> None:
    with small.write() as connection:
        fill(connection, 6)
        opened = embeddings.index(connection)
        assert list(opened.check()) == []
        connection.exec_driver_sql(
            "UPDATE memory_embeddings SET vector = zeroblob(20) WHERE memory_pk = 2"
        )
        connection.exec_driver_sql(
            "UPDATE memory_embeddings SET vector = substr(vector, 2) WHERE memory_pk = 3"
        )
        connection.exec_driver_sql(
            "UPDATE memory_embeddings SET visibility = 3 WHERE memory_pk = 5"
        )
        assert list(opened.check()) == [
            FaultyVector(2, "fact_00002", VectorFault.DAMAGED),
            FaultyVector(3, "fact_00003", VectorFault.DAMAGED),
            FaultyVector(5, "fact_00005", VectorFault.VISIBILITY),
        ]
        opened.remove([2, 3])
        assert opened.rebuild() == 4
        assert list(opened.check()) == []


@pytest.mark.parametrize(
    ("blob", "dimensions"),
    [
        (b"", 0),
        (b"", 3),
        (None, 3),
        ("\x7f\x01\x02", 3),
        (b"\x7f\x01", 3),
        (b"\x7e\x01\x02", 3),
        (b"\x7f\x80\x02", 3),
        (b"\x7f\x01\x02", None),
    ],
)
def test_what_cannot_be_a_vector_is_damaged(blob: Any, dimensions: Any) -> None:
    assert embeddings.damaged([(b"\x81\x01\x02", 3), (blob, dimensions)]) == [1]


@pytest.mark.parametrize("scope_id", ["a", "b", None])
def test_visibility_tells_scope_status_and_sensitivity_apart(scope_id: str | None) -> None:
    scope = "global" if scope_id is None else "project"
    visibilities = {
        embeddings.visibility(scope, scope_id, status.value, sensitivity.value)
        for status in STORED_STATUSES
        for sensitivity in Sensitivity
    }
    assert len(visibilities) == 12
    assert embeddings.visibility("session", "a", "active", "Public") not in visibilities


# What a process keeps.


def test_many_are_nominated_by_their_signs(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, "RANKED", 200)
    monkeypatch.setattr(vector_cache, "_PART", 500)
    cache = VectorCache(10**7).hold()
    with database.write() as connection:
        stored = fill(connection, 3_000)
        for pk in range(5, 3_000, 5):
            connection.exec_driver_sql(
                "UPDATE memories SET status = 'retracted' WHERE pk = ?", (pk,)
            )
        embeddings.index(connection).refresh([f"fact_{pk:05d}" for pk in range(5, 3_000, 5)])
    with database.read() as connection:
        cached, rows = embeddings.index(connection, cache), embeddings.index(connection)
        shared = []
        for query in stored[:40]:
            result = cached.search(query, 20, visibilities=[OPEN])
            assert len(result) == 20
            assert not any(pk % 5 == 0 for pk in result)
            exact = rows.search(query, 20, visibilities=[OPEN])
            shared.append(len(set(result) & set(exact)) / 20)
    # Of twenty dimensions the signs tell little.
    assert np.mean(shared) > (0.9 if stored.shape[1] > 20 else 0.6)


def test_very_many_equal_vectors_are_not_all_ranked(
    small: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, "RANKED", 100)
    ranked = []
    cosines = vector_cache.VectorState._cosines

    def noted(self: Any, query: Floats, places: Any) -> Floats:
        ranked.append(len(places))
        return cosines(self, query, places)

    monkeypatch.setattr(vector_cache.VectorState, "_cosines", noted)
    with small.write() as connection:
        stored = fill(connection, 1_000)
        pks = list(range(101, 1_001))
        embeddings.index(connection).add(pks, np.repeat(stored[:1], len(pks), axis=0), MODEL)
    with small.read() as connection:
        cache = VectorCache(10**7).hold()
        result = embeddings.index(connection, cache).search(stored[0], 50, visibilities=[OPEN])
    assert result == [1, *range(101, 150)]
    assert ranked[0] <= 230


def test_only_what_changed_is_read(small: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = VectorCache(10**7).hold()
    read: list[tuple[int, int]] = []
    reading = SqliteVectorIndex._read

    def noted(self: Any, first: int, last: int) -> VectorRows:
        read.append((first, last))
        return reading(self, first, last)

    def visible() -> list[int]:
        read.clear()
        with small.read() as connection:
            return keys_of(embeddings.index(connection, cache))

    monkeypatch.setattr(SqliteVectorIndex, "_read", noted)
    filled(small, 50)
    assert visible() == list(range(1, 51))
    with small.write() as connection:
        fill(connection, 3, first=60)
        retract(connection, 7)
    assert visible() == [*range(1, 7), *range(8, 51), 60, 61, 62]
    assert sorted(read) == [(7, 7), (60, 62)]
    assert len(visible()) == 52
    assert read == []
    monkeypatch.setattr(vector_index, "MOST_RUNS", 2)
    with small.write() as connection:
        embeddings.index(connection).remove([1, 5, 9, 10])
    assert len(visible()) == 48
    assert read == [(1, 10)]
    with small.write() as connection:
        embeddings.index(connection).rebuild()
    assert len(visible()) == 48
    assert read[0][0] == 1
    assert read[-1][1] > 50


def test_large_changes_are_read_in_pieces(small: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "_BYTES_AT_ONCE", 10 * 20)
    cache = VectorCache(10**7).hold()
    stored = filled(small, 60)
    for first in (61, 200):
        with small.read() as connection:
            embeddings.index(connection, cache).load()
        with small.write() as connection:
            fill(connection, 35, first=first)
            embeddings.index(connection).remove(list(range(15, 38)))
    with small.read() as connection:
        cached, rows = embeddings.index(connection, cache), embeddings.index(connection)
        result = cached.search(stored[0], 200, visibilities=[OPEN])
        assert sorted(result) == [*range(1, 15), *range(38, 96), *range(200, 235)]
        assert sorted(result) == sorted(rows.search(stored[0], 200, visibilities=[OPEN]))


def test_old_changes_are_forgotten_and_then_all_is_read(small: Database) -> None:
    cache = VectorCache(10**7).hold()
    stored = filled(small, 2)
    with small.read() as connection:
        embeddings.index(connection, cache).load()
    with small.write() as connection:
        for _ in range(vector_index.VERSIONS_KEPT + 5):
            embeddings.index(connection).refresh(["fact_00001"])
        fill(connection, 1, first=3)
        [[number]] = connection.exec_driver_sql("SELECT count(*) FROM memory_vector_changes")
    assert number == vector_index.VERSIONS_KEPT
    with small.read() as connection:
        opened = embeddings.index(connection, cache)
        assert len(opened.search(stored[0], 5, visibilities=[OPEN])) == 3


def test_a_reader_of_an_earlier_snapshot_finds_what_was_there(small: Database) -> None:
    cache = VectorCache(10**7).hold()
    stored = filled(small, 5)
    with small.read() as earlier, small.read() as other:
        # The snapshot of the earlier one stands.
        assert earlier.exec_driver_sql("SELECT count(*) FROM memories").scalar() == 5
        assert embeddings.index(other, cache).search(stored[0], 1, visibilities=[OPEN]) == [1]
        with small.write() as connection:
            retract(connection, 1)
            fill(connection, 1, first=6)
        with small.read() as later:
            opened = embeddings.index(later, cache)
            assert sorted(opened.search(stored[0], 9, visibilities=[OPEN])) == [2, 3, 4, 5, 6]
        for cached in (cache, VectorCache(10**7).hold(), None):
            opened = embeddings.index(earlier, cached)
            assert sorted(opened.search(stored[0], 9, visibilities=[OPEN])) == [1, 2, 3, 4, 5]
            assert opened.vectors([1]).any()
            assert not opened.vectors([6]).any()
        # What has only just begun to keep anything is ahead of a reader as well.
        late = VectorCache(10**7).hold()
        with small.read() as later:
            embeddings.index(later, late).search(stored[0], 1, visibilities=[OPEN])
        opened = embeddings.index(earlier, late)
        assert sorted(opened.search(stored[0], 9, visibilities=[OPEN])) == [1, 2, 3, 4, 5]


Change = tuple[str, list[int]]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "retract", "replace"]),
        st.lists(st.integers(1, 30), min_size=1, max_size=6, unique=True),
    ),
    max_size=12,
)


@settings(max_examples=often(60))
@given(CHANGES, st.sets(st.integers(0, 11)))
def test_a_copy_says_what_the_rows_say(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Change], reads: set[int]
) -> None:
    cache = VectorCache(10**7).hold()
    vectors = unit_vectors(31, 20)
    with made(tmp_path_factory.mktemp("copy"), 20) as database:
        with database.write() as connection:
            memories.insert(connection, [row(pk) for pk in range(1, 31)])
            embeddings.enqueue(connection, list(range(1, 31)))
        for number, (change, pks) in enumerate(changes):
            with database.write() as connection:
                opened = embeddings.index(connection)
                if change == "add":
                    opened.add(pks, vectors[pks], MODEL)
                elif change == "replace":
                    opened.add(pks, vectors[[30 - pk for pk in pks]], MODEL)
                elif change == "remove":
                    opened.remove(pks)
                else:
                    retract(connection, pks[0])
            if number in reads:
                assert agree(database, cache, vectors) == embedded(database)
        assert agree(database, cache, vectors) == embedded(database)


def embedded(database: Database) -> int:
    with database.read() as connection:
        return connection.exec_driver_sql(
            "SELECT count(*) FROM memory_embeddings WHERE vector IS NOT NULL"
        ).scalar_one()


def agree(database: Database, cache: HeldVectors, queries: Floats) -> int:
    """Compare what a copy finds with what the rows say; return how many vectors were found."""
    with database.read() as connection:
        cached, rows = embeddings.index(connection, cache), embeddings.index(connection)
        cached.load()
        assert np.allclose(cached.vectors(range(1, 32)), rows.vectors(range(1, 32)), atol=1e-6)
        for visibilities in ([OPEN], [RETRACTED], [OPEN, RETRACTED]):
            for query in queries[:3]:
                result = cached.search(query, 40, visibilities=visibilities)
                assert sorted(result) == sorted(rows.search(query, 40, visibilities=visibilities))
    return len(result)


def rows_of(pks: Sequence[int]) -> VectorRows:
    keys = np.array(pks, np.int64)
    codes = np.repeat(np.array([[127, 1, 2, 3]], np.int8), len(pks), axis=0)
    codes[:, 1] = keys % 100
    return VectorRows(keys, np.full(len(pks), OPEN), codes)


def test_reading_goes_on_where_it_was_interrupted() -> None:
    cache = VectorCache(10**6).hold()
    queries: list[int] = []

    def read(after: int) -> tuple[VectorRows, int]:
        queries.append(after)
        if queries.count(20) == 1 and after == 20:
            raise TimeoutError
        return rows_of(range(after + 1, after + 11)), after + 10

    first, second = VectorStamp(4, MODEL, 4), VectorStamp(5, MODEL, 4)
    with pytest.raises(TimeoutError):
        cache.state(first, 40, read, lambda _version: None)
    # Key 3 went meanwhile, and key 35 came: it is read with the rest, and as a change.
    changes = [(3, 3, rows_of([])), (35, 35, rows_of([35]))]
    state = cache.state(second, 40, read, lambda version: changes if version == 4 else None)
    assert queries == [0, 10, 20, 20, 30]
    assert state is not None
    found = state.nearest(np.full(4, 0.5, np.float32), 40, [OPEN], None)
    assert sorted(found) == [pk for pk in range(1, 41) if pk != 3]


def test_replaced_vectors_do_not_stay_in_the_cache() -> None:
    cache, pks = VectorCache(10**6), range(1, 2_001)
    held, sizes = cache.hold(), []
    for version in range(1, 4):
        rows = rows_of(pks)
        rows.codes[:, 2] = version
        stamp = VectorStamp(version, MODEL, 4)
        state = held.state(
            stamp,
            2_000,
            lambda _, rows=rows: (rows, 2_000),
            lambda _, rows=rows: [(1, 2_000, rows)],
        )
        assert state is not None
        assert np.allclose(state.vectors([7])[0], np.array([127, 7, version, 3]) / 127.3, atol=0.01)
        sizes.append(cache.used)
    assert sizes == [sizes[0]] * 3


def test_vectors_are_there_where_a_search_ran_out_of_time(
    small: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> VectorRows:
        raise TimeoutError

    stored = filled(small, 3)
    monkeypatch.setattr(SqliteVectorIndex, "_read", interrupted)
    with small.read() as connection:
        opened = embeddings.index(connection, VectorCache(10**6).hold())
        with pytest.raises(TimeoutError):
            opened.search(stored[0], 1, visibilities=[OPEN])
        assert np.allclose(opened.vectors([2]), stored[[1]], atol=1e-6)


def test_too_many_are_not_kept(small: Database) -> None:
    cache = VectorCache(100)
    stored = filled(small, 5)
    with small.read() as connection:
        opened = embeddings.index(connection, cache.hold())
        assert opened.search(stored[3], 1, visibilities=[OPEN]) == [4]
    assert cache.used == 0


def test_the_longest_unused_give_way() -> None:
    size = 40 * (4 + 8 + 16)
    cache = VectorCache(2 * size)
    first, two, three = (cache.hold() for _ in range(3))

    def state(held: HeldVectors) -> list[int]:
        read: list[int] = []

        def reading(after: int) -> tuple[VectorRows, int]:
            read.append(after)
            return rows_of(range(1, 41)), 40

        assert held.state(VectorStamp(1, MODEL, 4), 40, reading, lambda _version: None) is not None
        return read

    assert [state(held) for held in (first, two, first, three)] == [[0], [0], [], [0]]
    assert cache.used == 2 * size
    assert state(first) == []
    assert state(two) == [0]
    first.close()
    two.close()
    three.close()
    assert cache.used == 0
