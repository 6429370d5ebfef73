"""The vector index finds what vec0 itself would find, and keeps up with the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from memgraph.model.enums import MemoryStatus, Scope, Sensitivity
from memgraph.storage import embeddings, memories, provisioning, vector_search, vectors
from memgraph.storage.database import Database
from memgraph.storage.rows import MEMORY_FIELDS
from memgraph.storage.vector_cache import VectorCache

NOW = 1_767_225_600_000
OPEN = vectors.visibility("global", None, "active", "Public")


@pytest.fixture(params=[256, 64, 20])
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    path = tmp_path / "memory.db"
    provisioning.create(path, "orc", dimensions=request.param, now_ms=NOW)
    opened = provisioning.open_database(path, "orc", synchronous="NORMAL", busy_timeout_ms=1000)
    yield opened
    opened.close()


def row(pk: int, **values: Any) -> dict[str, Any]:
    return (
        dict.fromkeys((*MEMORY_FIELDS, "search_terms"))
        | {
            "pk": pk,
            "memory_id": f"fact_{pk:04d}",
            "orchestrator_id": "orc",
            "kind": "fact",
            "type": "Fact",
            "content": f"text {pk}",
            "summary": "",
            "importance": 50,
            "confidence": 1.0,
            "status": MemoryStatus.ACTIVE,
            "sensitivity": Sensitivity.PUBLIC,
            "scope": Scope.GLOBAL,
            "created_at": NOW,
            "updated_at": NOW,
            "access_count": 0,
            "decay_rate": 0.0,
            "tags": "[]",
            "attributes": "{}",
            "content_hash": str(pk),
            "token_cost": 1,
            "source_id": "src_1",
        }
        | values
    )


def unit_vectors(count: int, dimensions: int, seed: int = 1) -> np.ndarray[Any, Any]:
    found = np.random.default_rng(seed).normal(size=(count, dimensions)).astype("<f4")
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def fill(connection: sa.Connection, count: int, **values: Any) -> np.ndarray[Any, Any]:
    """``count`` memories with vectors; gives the vectors, that of pk ``n`` in row ``n - 1``."""
    connection.exec_driver_sql(
        "INSERT OR IGNORE INTO memory_sources (source_id, source_type, captured_by)"
        " VALUES ('src_1', 'manual', 'user')"
    )
    memories.insert(connection, [row(pk, **values) for pk in range(1, count + 1)])
    found = unit_vectors(count, vectors.indexed_dimensions(connection))
    pks = range(1, count + 1)
    embeddings.enqueue(connection, list(pks))
    blobs = {pk: found[pk - 1].tobytes() for pk in pks}
    embeddings.mark_ready(connection, blobs, "m", found.shape[1])
    vectors.add(connection, list(blobs.items()))
    return found


def by_bits(
    connection: sa.Connection,
    query: np.ndarray[Any, Any],
    limit: int,
    visibilities: Collection[int] = (OPEN,),
    among: Collection[int] | None = None,
) -> list[int]:
    keys, _ = vector_search.nearest_by_bits(
        vector_search.runs(connection), query, limit, visibilities=visibilities, among=among
    )
    found: list[int] = keys.tolist()
    return found


def test_nearest_agrees_with_the_distances_of_vec0(database: Database) -> None:
    with database.write() as connection:
        fill(connection, 1500)
        vectors.remove(connection, [3, 700, 1499])
        query = unit_vectors(1, vectors.indexed_dimensions(connection), seed=5)[0]
        found = by_bits(connection, query, 40)
        padded = query.tobytes() + bytes(4 * (-len(query) % 8))
        told = connection.exec_driver_sql(
            "SELECT memory_pk, distance FROM memory_vectors"
            " WHERE embedding MATCH vec_quantize_binary(?) AND k = 1500",
            (padded,),
        ).all()
    expected = [pk for pk, _ in sorted(told, key=lambda each: (each[1], each[0]))][:40]
    assert found == expected
    assert len(told) == 1497


def test_the_nearest_by_bits_bring_their_bits(database: Database) -> None:
    with database.write() as connection:
        given = fill(connection, 1500)
        keys, packed = vector_search.nearest_by_bits(
            vector_search.runs(connection), given[3], 40, visibilities=[OPEN]
        )
    signs = np.packbits(given[keys - 1] > 0, axis=1, bitorder="little")
    assert np.array_equal(packed, signs)


def test_agreement_is_the_product_with_the_signs(database: Database) -> None:
    with database.read() as connection:
        dimensions = vectors.indexed_dimensions(connection)
    given = unit_vectors(30, dimensions)
    packed = np.packbits(given > 0, axis=1, bitorder="little")
    expected = np.where(given > 0, 1.0, -1.0) @ given[4]
    assert np.allclose(vector_search.agreement(packed, given[4]), expected, atol=1e-5)


def test_a_set_of_keys_narrows_the_search(database: Database) -> None:
    with database.write() as connection:
        given = fill(connection, 50)
        among = [2, 4, 6, 99]
        found = by_bits(connection, given[1], 10, [OPEN], among=among)
    assert found[0] == 2
    assert sorted(found) == [2, 4, 6]


def test_what_is_not_visible_takes_no_place(database: Database) -> None:
    with database.write() as connection:
        given = fill(connection, 30, sensitivity=Sensitivity.RESTRICTED)
        hidden = vectors.visibility("global", None, "active", "Restricted")
        assert by_bits(connection, given[0], 5, [OPEN]) == []
        assert by_bits(connection, given[0], 5, [OPEN, hidden])[0] == 1


def indexed(connection: sa.Connection) -> dict[int, int]:
    """The visibility of every key in the index."""
    keys, _, visibilities = vector_search.entries(connection)
    return dict(zip(keys.tolist(), visibilities.tolist(), strict=True))


def test_refresh_follows_a_change_of_status(database: Database) -> None:
    with database.write() as connection:
        given = fill(connection, 5)
        connection.exec_driver_sql("UPDATE memories SET status = 'superseded' WHERE pk = 2")
        assert set(indexed(connection).values()) == {OPEN}
        vectors.refresh(connection, ["fact_0002", "fact_unknown"])
        replaced = vectors.visibility("global", None, "superseded", "Public")
        assert indexed(connection) == {1: OPEN, 2: replaced, 3: OPEN, 4: OPEN, 5: OPEN}
        found = by_bits(connection, given[1], 5, [OPEN])
    assert sorted(found) == [1, 3, 4, 5]


def test_adding_again_replaces(database: Database) -> None:
    with database.write() as connection:
        given = fill(connection, 5)
        vectors.add(connection, [(1, given[4].tobytes())])
        assert len(indexed(connection)) == 5
        assert by_bits(connection, given[4], 2, [OPEN]) == [1, 5]


def test_nearest_exact_agrees_with_numpy(database: Database) -> None:
    with database.write() as connection:
        given = fill(connection, 40)
        query = unit_vectors(1, given.shape[1], seed=9)[0]
        found = vector_search.nearest_exact(connection, query, 7)
    assert found == [int(at) + 1 for at in np.argsort(-(given @ query), kind="stable")[:7]]


def test_canonical_vectors_by_key(database: Database) -> None:
    with database.write() as connection:
        given = fill(connection, 5)
        read = vector_search.Vectors(connection)
        found, again = read.of([4, 2, 77]), read.of([5, 4])
        assert read.of([]).shape == (0, given.shape[1])
    assert np.array_equal(found[:2], given[[3, 1]])
    assert not found[2].any()
    assert np.array_equal(again, given[[4, 3]])


def test_rebuild_mends_drift(database: Database) -> None:
    with database.write() as connection:
        fill(connection, 12)
        before = indexed(connection)
        vectors.remove(connection, [5, 6])
        connection.exec_driver_sql(
            "INSERT INTO memory_vectors (memory_pk, embedding, visibility)"
            " VALUES (90, vec_quantize_binary(?), 0)",
            (np.ones(-(-vectors.indexed_dimensions(connection) // 8) * 8, "<f4").tobytes(),),
        )
        assert indexed(connection).keys() == before.keys() - {5, 6} | {90}
        assert vectors.rebuild(connection) == 12
        assert indexed(connection) == before


@pytest.mark.parametrize("scope_id", ["a", "b", None])
def test_visibility_tells_scope_status_and_sensitivity_apart(scope_id: str | None) -> None:
    scope = "global" if scope_id is None else "project"
    seen = {
        vectors.visibility(scope, scope_id, status.value, sensitivity.value)
        for status in MemoryStatus
        for sensitivity in Sensitivity
    }
    assert len(seen) == 12
    assert vectors.visibility("session", "a", "active", "Public") not in seen


def test_few_vectors_are_compared_exactly(database: Database) -> None:
    held = VectorCache(10**6).hold()
    with database.write() as connection:
        given = fill(connection, 600)
        vectors.remove(connection, [3])
        read = vector_search.Vectors(connection, held)
        query = unit_vectors(1, given.shape[1], seed=5)[0]
        scores = given @ query
        scores[2] = -2.0
        best = [
            int(at) + 1
            for at in np.argsort(-scores, kind="stable")[: 5 * vector_search.OVERSAMPLING]
        ]
        assert read.nearest(query, 5, visibilities=[OPEN]) == best
        among = best[1::2]
        assert read.nearest(query, 5, visibilities=[OPEN], among=among) == among
        assert read.nearest(query, 5, visibilities=[]) == []
        assert np.array_equal(read.of([9, 8]), given[[8, 7]])


def test_what_is_kept_follows_every_change(database: Database) -> None:
    held = VectorCache(10**6).hold()

    def first(query: np.ndarray[Any, Any]) -> int:
        with database.read() as connection:
            return vector_search.Vectors(connection, held).nearest(query, 5, visibilities=[OPEN])[0]

    with database.write() as connection:
        given = fill(connection, 40)
    assert first(given[6]) == 7
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE memories SET status = 'retracted' WHERE pk = 7")
        vectors.refresh(connection, ["fact_0007"])
    assert first(given[6]) != 7
    with database.write() as connection:
        # As a rebuild with another model does it: taken back, embedded anew.
        embeddings.reset(connection, [8, 9])
        vectors.remove(connection, [8, 9])
        anew = {8: given[6].tobytes(), 9: given[7].tobytes()}
        embeddings.mark_ready(connection, anew, "other", given.shape[1])
        vectors.add(connection, list(anew.items()))
    assert first(given[6]) == 8
    assert first(given[7]) == 9


def test_an_index_beside_the_vectors_is_searched_by_its_bits(database: Database) -> None:
    with database.write() as connection:
        given = fill(connection, 30)
        connection.exec_driver_sql(
            "UPDATE memory_embeddings SET state = 'failed', vector = NULL WHERE memory_pk = 2"
        )
        read = vector_search.Vectors(connection, VectorCache(10**6).hold())
        found = read.nearest(given[1], 5, visibilities=[OPEN])
    assert len(found) == 29
    assert 2 not in found


def test_a_kept_copy_of_the_index_finds_what_the_index_would(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "COMPARED_EXACTLY", 0)
    monkeypatch.setattr(vector_search, "_PART", 500)
    held, nothing = VectorCache(10**6).hold(), VectorCache(10).hold()
    with database.write() as connection:
        given = fill(connection, 1500)
        query = given[700]
        for change in ([], [701], [3, 1499]):
            vectors.remove(connection, change)
            kept, small, none = (
                vector_search.Vectors(connection, each).nearest(query, 5, visibilities=[OPEN])
                for each in (held, nothing, None)
            )
            assert kept == small == none
            assert (701 in kept) == (701 not in change and change != [3, 1499])
