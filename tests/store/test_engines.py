"""One suite for every engine: what the ports promise, and the same answers as those of SQLite."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from filling import NOW, add_source, harbour_row as row

from memgraph import errors
from memgraph.config.schema import StorageSettings
from memgraph.paths import OrchestratorPaths
from memgraph.store import (
    embeddings,
    memories,
    metadata,
    postings,
    tables,
    text_index,
    text_search,
    whole_tables,
)
from memgraph.store.engine import Database, DeadlinePassed
from memgraph.store.snapshot import Snapshot, Transaction
from memgraph.store.statements import CompiledStatement
from memgraph.store.stores import store_of
from memgraph.store.vector_cache import VectorCache
from memgraph.text.stem import stem

MODEL = "m"
OPEN = embeddings.visibility("global", None, "active", "Public")
WORDS = [
    *("anchor", "barges", "cranes", "docking", "eel", "ferry", "gulls", "harbour", "island"),
    *("jetty", "keel", "lanterns", "mooring", "nets", "oars", "pier", "quay", "ropes", "sailing"),
    *("tide", "unloading", "vessels", "wharf", "yacht", "naïve", "Über", "東京都"),
]
Make = Callable[..., Database]


@pytest.fixture
def make(tmp_path: Path, storage_url: str) -> Iterator[Make]:
    """Make and open a database of the engine; closed at the end."""
    opened = []

    def made(name: str = "orc", *, url: str = storage_url, **settings: Any) -> Database:
        store = store_of(OrchestratorPaths(tmp_path, name), url)
        if not store.exists():
            store.create(dimensions=8, now_ms=NOW)
        database = store.open(StorageSettings(**settings))
        opened.append(database)
        with database.write() as transaction:
            metadata.put(transaction, "embedding_model", MODEL)
            if not transaction.scalar(sa.select(tables.sources.c.source_id)):
                add_source(transaction)
        return database

    yield made
    for database in opened:
        database.close()


@pytest.fixture
def database(make: Make) -> Database:
    return make()


def fill(database: Database, first: int, last: int) -> None:
    chance = random.Random(first)
    rows = [
        row(pk, " ".join(chance.choices(WORDS, k=chance.randint(1, 12))))
        for pk in range(first, last + 1)
    ]
    with database.write() as transaction:
        memories.insert(transaction, rows)
        postings.add(transaction, first, last)
        embeddings.enqueue(transaction, [each["pk"] for each in rows])


def change(transaction: Transaction, pk: int, **values: Any) -> None:
    transaction.execute(sa.update(tables.memories).where(tables.memories.c.pk == pk), values)


def count(snapshot: Snapshot, table: sa.Table) -> int:
    return int(snapshot.scalar(sa.select(sa.func.count()).select_from(table)))


# What a database promises.


@pytest.mark.engines
def test_a_transaction_is_all_or_nothing(database: Database) -> None:
    def fail() -> None:
        with database.write() as transaction:
            metadata.put(transaction, "a", "1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with database.write() as transaction:
        metadata.put(transaction, "b", "2")
        assert metadata.get(transaction, "b") == "2"
    with database.read() as snapshot:
        assert (metadata.get(snapshot, "a"), metadata.get(snapshot, "b")) == (None, "2")


@pytest.mark.engines
def test_tables_of_the_design_documents_are_views_that_nobody_writes(database: Database) -> None:
    attributes = '{"metadata_json": "{\\"a\\": 1}"}'
    fields = {"kind": "episode", "session_id": "s", "turn_id": "t"}
    fields |= {"scope": "session", "scope_id": "s"}
    with database.write() as transaction:
        rows = [row(1, "text", agent_id="ada", attributes=attributes, **fields), row(2, "text")]
        memories.insert(transaction, rows)
        session = {"session_id": "s", "first_seen_at": NOW, "last_seen_at": NOW}
        transaction.execute(sa.insert(tables.sessions).values(session))
    views = {
        "memory_items": [
            (
                *("fact_00001", "ada", "EpisodicMemory", "SessionScope", "UserSource", "text"),
                *('{"a": 1}', "t", "s", "Public", NOW, NOW),
            )
        ],
        "vec_memories": [],
        "sessions_consolidations": [("s", NOW, None)],
    }
    for name, rows_ in views.items():
        with database.read() as snapshot:
            found = snapshot.driver.execute(f"SELECT * FROM {name}").fetchall()
        assert [tuple(each) for each in found] == rows_, name
        with pytest.raises(errors.StorageError), database.write() as transaction:
            transaction.driver.execute(f"DELETE FROM {name}")


@pytest.mark.engines
def test_a_snapshot_stands_still(database: Database) -> None:
    with database.read() as snapshot:
        before = metadata.get(snapshot, "a")
        with database.write() as transaction:
            metadata.put(transaction, "a", "1")
        assert metadata.get(snapshot, "a") == before is None
    with database.read() as snapshot:
        assert metadata.get(snapshot, "a") == "1"


@pytest.mark.engines
def test_writers_of_two_openings_take_turns(make: Make) -> None:
    databases = [make(), make()]

    def work(database: Database) -> None:
        for _ in range(20):
            with database.write() as transaction:
                counted = int(metadata.get(transaction, "counted") or 0)
                metadata.put(transaction, "counted", str(counted + 1))

    threads = [threading.Thread(target=work, args=(each,)) for each in databases for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with databases[0].read() as snapshot:
        assert metadata.get(snapshot, "counted") == "80"
    assert sum(each.commits for each in databases) == 82


@pytest.mark.engines
def test_who_waits_too_long_is_told(make: Make) -> None:
    item, other = make(), make(busy_timeout_ms=50)
    with item.write(), pytest.raises(errors.DatabaseBusy), other.write():
        pass
    with other.write() as transaction:
        metadata.put(transaction, "a", "1")


@pytest.mark.engines
def test_errors_are_of_ours(database: Database) -> None:
    with pytest.raises(errors.Conflict), database.write() as transaction:
        memories.insert(transaction, [row(1, "text"), row(1, "text")])
    with pytest.raises(errors.InvalidInput), database.write() as transaction:
        memories.insert(transaction, [row(1, "text", confidence=2.0)])
    with pytest.raises(errors.InvalidInput), database.write() as transaction:
        memories.insert(transaction, [row(1, "text", source_id="src_2")])
    with pytest.raises(errors.InvalidInput), database.write() as transaction:
        memories.insert(transaction, [row(2**70, "text")])
    with pytest.raises(errors.InvalidInput), database.write() as transaction:
        memories.insert(transaction, [row(1, "\ud800")])
    with pytest.raises(errors.StorageError) as caught, database.read() as snapshot:
        snapshot.execute(sa.select(sa.column("x")).select_from(sa.table("no_such_table")))
    assert database.engine.is_schema_fault(caught.value)


@pytest.mark.engines
def test_a_deadline_interrupts_and_the_snapshot_stays(database: Database) -> None:
    with database.write() as transaction:
        memories.insert(transaction, [row(pk, "text") for pk in range(1, 1_001)])
    a, b, c = (tables.memories.alias(name) for name in "abc")
    slow = sa.select(sa.func.count()).select_from(
        a.join(b, a.c.content == b.c.content).join(c, b.c.content == c.c.content)
    )
    with database.read() as snapshot:
        begun = time.monotonic()
        with database.engine.deadlines(snapshot) as deadline:
            with deadline(5_000):
                assert count(snapshot, tables.sources) == 1
            for _ in range(2):
                with pytest.raises(DeadlinePassed), deadline(50):
                    CompiledStatement(slow).rows(snapshot)
            assert time.monotonic() - begun < 30
            assert count(snapshot, tables.memories) == 1_000
            with deadline(5_000):
                assert count(snapshot, tables.sources) == 1
        assert count(snapshot, tables.sources) == 1


@pytest.mark.engines
def test_what_was_left_for_later_is_done_beside_a_reader(database: Database) -> None:
    fill(database, 1, 300)
    with database.read() as snapshot:
        database.fold(after=0)
        assert count(snapshot, tables.memories) == 300
    with database.write() as transaction:
        metadata.put(transaction, "a", "1")
    database.fold(after=0)
    with database.read() as snapshot:
        assert metadata.get(snapshot, "a") == "1"


@pytest.mark.engines
def test_the_schema_is_as_it_is_expected(database: Database) -> None:
    with database.read() as snapshot:
        assert database.engine.schema(snapshot) == database.engine.expected_schema()
        assert database.engine.damage(snapshot) == []
        assert list(database.engine.dangling(snapshot)) == []


@pytest.mark.engines
def test_what_is_there_is_not_made_again(make: Make, tmp_path: Path, storage_url: str) -> None:
    store = make().store
    assert store.exists()
    with pytest.raises(errors.OrchestratorExists):
        store.create(dimensions=8, now_ms=NOW)
    with pytest.raises(errors.OrchestratorExists):
        store.require_free()
    other = store_of(OrchestratorPaths(tmp_path, "other"), storage_url)
    assert not other.exists()
    with pytest.raises(errors.DatabaseMissing):
        other.open(StorageSettings())


@pytest.mark.engines
def test_what_is_closed_stays_closed(make: Make) -> None:
    database = make()
    database.close()
    for block in (database.read, database.write):
        with pytest.raises(errors.MemoryDisabled), block():
            pytest.fail("closed")


@pytest.mark.engines
def test_a_session_reads_the_classes(make: Make) -> None:
    from memgraph.model.tables import MemoryRow

    database = make()
    fill(database, 1, 3)
    with database.store.session(StorageSettings()) as session:
        cache = session.scalars(sa.select(MemoryRow).order_by(MemoryRow.pk)).all()  # type: ignore[arg-type]
        assert [item.memory_id for item in cache] == ["fact_00001", "fact_00002", "fact_00003"]
        assert cache[0].source_id == "src_0"


@pytest.mark.engines
def test_vectors_with_a_copy_and_without(database: Database) -> None:
    fill(database, 1, 60)
    chance = np.random.default_rng(7)
    vectors = chance.normal(size=(60, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with database.write() as transaction:
        embeddings.index(transaction).add(list(range(1, 61)), vectors, MODEL)
        change(transaction, 5, status="retracted")
        embeddings.index(transaction).refresh(["fact_00005"])
        embeddings.index(transaction).remove([6])
    cache = VectorCache(10**6).hold()
    for _ in range(2):
        with database.read() as snapshot:
            cached, rows = embeddings.index(snapshot, cache), embeddings.index(snapshot)
            assert cached.dimensions == 8
            for query in vectors[:10]:
                result = cached.search(query, 12, visibilities=[OPEN])
                assert result == rows.search(query, 12, visibilities=[OPEN])
                assert not {5, 6} & set(result)
                few = rows.search(query, 12, visibilities=[OPEN], among=[1, 2, 5])
                assert sorted(few) == [1, 2]
            assert np.allclose(cached.vectors([2, 6]), rows.vectors([2, 6]), atol=1e-6)
            assert list(rows.check()) == []
        with database.write() as transaction:
            embeddings.index(transaction).add([6], vectors[:1], MODEL)
            embeddings.index(transaction).remove([6])


# The same answers as those of SQLite.


@pytest.fixture
def twins(make: Make, postgres_url: str) -> tuple[Database, Database]:
    """A database of each engine; what is done to one is done to the other."""
    return make("one", url=""), make("other", url=postgres_url)


def both(databases: tuple[Database, ...], ask: Callable[[Transaction], Any]) -> Any:
    """Return what both answer, which is the same."""
    answers = []
    for database in databases:
        with database.write() as transaction:
            answers.append(ask(transaction))
    assert answers[0] == answers[1]
    return answers[0]


def test_both_rank_texts_alike(twins: tuple[Database, Database]) -> None:
    def asked(words: tuple[str, ...]) -> Callable[[Transaction], Any]:
        def ask(transaction: Transaction) -> Any:
            stems = [stem(word.lower()) for word in words]
            matches = text_search.find(transaction, stems)
            marks = frozenset([postings.mark_of("global", None, "Public")])
            return matches.documents, dict(matches.frequencies), matches.best(stems, 15, marks)

        return ask

    result = 0
    for step in range(3):
        for database in twins:
            fill(database, 1 + 600 * step, 600 * (step + 1))
            with database.write() as transaction:
                change(transaction, 3 + step, tags='["zephyr"]')
                change(transaction, 9 + step, content="Gulls over the harbour.")
            postings.merge(database)
        for words in itertools.combinations([*WORDS[:6], "zephyr"], 2):
            result += len(both(twins, asked(words))[2])
    assert result > 500
    assert both(twins, lambda transaction: postings.check(transaction))


def test_a_word_is_counted_in_the_newest_memories_too(twins: tuple[Database, Database]) -> None:
    for database in twins:
        fill(database, 1, 1_200)
        postings.merge(database)
        with database.write() as transaction:
            transaction.execute(sa.insert(tables.memories), [row(1_201, "Harbour of zephyrs.")])
    stems = [stem(word) for word in ("harbour", "zephyrs", "nowhere")]
    counts = both(twins, lambda transaction: text_search.find(transaction, stems).frequencies)
    assert counts.keys() == set(stems[:2])
    assert counts[stems[1]] == 1


def test_both_find_the_same_phrases(twins: tuple[Database, Database]) -> None:
    for database in twins:
        fill(database, 1, 400)
        with database.write() as transaction:
            change(transaction, 7, content="An eel's \"keel\" is not naive; the O'Hara_case.")
            change(transaction, 8, source_role="Harbour Master", tags='["quay side"]')
            transaction.execute(
                sa.delete(tables.embeddings).where(tables.embeddings.c.memory_pk == 9)
            )
            transaction.execute(sa.delete(tables.memories).where(tables.memories.c.pk == 9))

    def pks(expression: str) -> Callable[[Transaction], list[int]]:
        def ask(transaction: Transaction) -> list[int]:
            match = transaction.engine.phrases.expression(expression)
            result = CompiledStatement(text_index.matching("match"))
            return sorted(result.column(transaction, match=match))

        return ask

    expressions = [
        '"anchor"',
        '"anchors" AND "gull"',
        '"anchor barge" OR "pier quay"',
        'content : "harbour"',
        '{content search_terms} : "eel" AND content : "keel"',
        '(content : "naive") AND (content : "case")',
        '"mira holt"',
        '"harbour master"',
        'content : "master"',
        '"quay side"',
        'search_terms : "東京 京都"',
        text_index.saying(["Mira Holt", "東京都", "O'Hara"]),
        '"nothing of it"',
    ]
    with pytest.raises(ValueError, match="quoted phrases"), twins[1].read() as snapshot:
        snapshot.engine.phrases.expression('"anchor" AND pier')
    result = [both(twins, pks(expression)) for expression in expressions]
    assert sum(map(bool, result)) >= len(expressions) - 4
    assert both(twins, lambda snapshot: snapshot.engine.phrases.check(snapshot))


def test_both_count_what_changed(twins: tuple[Database, Database]) -> None:
    def columns(transaction: Transaction) -> Any:
        names = {*whole_tables.SEALED, *whole_tables.COUNTED}
        return {name: transaction.engine.columns(transaction, name) for name in names}

    def counted(transaction: Transaction) -> Any:
        whole_tables.update(transaction)
        d = tables.table_digests.c
        rows = transaction.execute(sa.select(d.name, d.rows, d.digest).order_by(d.name))
        return [tuple(row) for row in rows if row.rows]

    for database in twins:
        fill(database, 1, 30)
        with database.write() as transaction:
            change(transaction, 3, confidence=1.0, importance=7, updated_at=NOW + 1)
            change(transaction, 4, access_count=3, last_accessed_at=NOW)
            row_of = {"memory_id": "fact_00001", "status": "active", "since": NOW, "actor": "a"}
            transaction.execute(sa.insert(tables.statuses).values(**row_of))
    assert len(both(twins, columns)) > 10
    assert {name: rows for name, rows, _ in both(twins, counted)}["memory_status"] == 1
    assert both(twins, lambda snapshot: list(whole_tables.differing(snapshot))) == []
    for database in twins:
        with database.write() as transaction:
            # As whoever writes beside us: nothing is noted.
            change(transaction, 3, importance=8)
            database.engine.row_changes(transaction)
    result = both(twins, lambda snapshot: [name for name, *_ in whole_tables.differing(snapshot)])
    assert result == ["memories"]
