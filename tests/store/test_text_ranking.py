"""Every index that ranks texts finds what exact BM25 finds, in every state that it may be in."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from filling import add_source, fresh_database, harbour_row

from memgraph.config.schema import StorageSettings
from memgraph.model.enums import Sensitivity
from memgraph.store import memories, postings, text_search
from memgraph.store.engine import Database
from memgraph.store.snapshot import Snapshot
from memgraph.store.sqlite.stores import SqliteStore
from memgraph.text.stem import stem, words

WORDS = [
    *("anchor", "barge", "crane", "dock", "eel", "ferry", "gull", "harbour", "island", "jetty"),
    *("keel", "lantern", "mooring", "net", "oar", "pier", "quay", "rope", "sail", "tide"),
    *("unloading", "vessel", "wharf", "yacht"),
]
PUBLIC, SECRET = Sensitivity.PUBLIC.value, Sensitivity.RESTRICTED.value


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with fresh_database(tmp_path) as opened:
        with opened.write() as transaction:
            add_source(transaction)
        yield opened


@pytest.fixture(autouse=True)
def small_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of a few memories."""
    for name, size in (
        ("TAIL", 16),
        ("MOST_TAIL", 64),
        ("MIDDLE", 64),
        ("LARGEST", 256),
        ("MOST_CHANGES", 8),
    ):
        monkeypatch.setattr(postings, name, size)


def text(chance: random.Random) -> str:
    # Some words stand in most texts, some in few.
    chosen = [WORDS[int(len(WORDS) * chance.random() ** 3)] for _ in range(chance.randint(1, 40))]
    return " ".join(chosen)


def store(database: Database, texts: list[str], first: int, **values: Any) -> None:
    with database.write() as connection:
        rows = [harbour_row(pk, content, **values) for pk, content in enumerate(texts, first)]
        memories.insert(connection, rows)
        postings.add(connection, first, first + len(texts) - 1)


def fill(database: Database, count: int, first: int = 1, **values: Any) -> None:
    chance = random.Random(first)
    for start in range(first, first + count, 50):
        several = min(50, first + count - start)
        store(database, [text(chance) for _ in range(several)], start, **values)


def change(database: Database, statement: str, *values: Any) -> None:
    with database.write() as connection:
        connection.exec_driver_sql(statement, values)


def by_fts5(connection: Snapshot, words: list[str]) -> dict[int, float]:
    """Return the score of every memory that holds a word, as FTS5 counts it."""
    quoted = " OR ".join(f'"{word}"' for word in words)
    result = connection.exec_driver_sql(
        "SELECT rowid, -rank FROM memory_fts"
        f" WHERE memory_fts MATCH '{{content tags search_terms}} : ({quoted})'"
    )
    return dict(result.all())


def best(
    connection: Snapshot,
    words: list[str],
    limit: int = 20,
    marks: frozenset[int] | None = None,
    among: list[int] | None = None,
) -> list[int]:
    stems = [stem(word) for word in words]
    return text_search.find(connection, stems).best(stems, limit, marks, among)


QUESTIONS = [
    ["anchor"],
    ["yacht"],
    ["vessel", "barge", "anchor"],
    ["berth", "quay"],
    ["unloading", "absent"],
    WORDS,
]


def agree(database: Database, limit: int = 20) -> int:
    """Compare the answers with FTS5's; return how many memories were compared."""
    compared = 0
    with database.read() as connection:
        for words in QUESTIONS:
            scores = by_fts5(connection, words)
            result = best(connection, words, limit)
            expected = sorted(scores.values(), reverse=True)[:limit]
            assert [scores[pk] for pk in result] == pytest.approx(expected, rel=1e-6, abs=0)
            compared += len(result)
            pairs = list(pairwise(result))
            assert all(item < other for item, other in pairs if scores[item] == scores[other])
        assert postings.check(connection)
    return compared


@pytest.mark.parametrize("count", [0, 16, 900])
def test_the_best_are_those_of_fts5(database: Database, count: int) -> None:
    if count:
        fill(database, count)
    before = agree(database)
    postings.merge(database)
    assert agree(database) == before
    assert (before > 0) == (count > 0)


def test_what_is_left_out_of_the_sum_could_not_be_among_the_best(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_search, "_WORTH_PRUNING", 0)
    fill(database, 900)
    before = [agree(database, limit) for limit in (1, 5, 50, 1_000)]
    assert before[0] < before[1] < before[2] < before[3]
    postings.merge(database)
    assert [agree(database, limit) for limit in (1, 5, 50, 1_000)] == before


def test_merging_keeps_few_segments(database: Database) -> None:
    fill(database, 1_000)
    postings.merge(database)
    with database.read() as connection:
        existing = postings.segments(connection)
    assert len(existing) < 12
    assert [item.first for item in existing[1:]] == [item.last + 1 for item in existing[:-1]]
    assert existing[0].first == 1
    assert existing[-1].last > 1_000 - postings.TAIL


@pytest.mark.parametrize("many", [3, 40])
def test_a_memory_is_found_by_the_words_that_it_has_now(database: Database, many: int) -> None:
    fill(database, 200)
    postings.merge(database)
    agree(database)
    for pk in range(5, 5 + many):
        change(database, "UPDATE memories SET tags = '[\"zephyr\"]' WHERE pk = ?", pk)
    change(database, "UPDATE memories SET tags = '[]' WHERE pk = 199")
    agree(database)
    with database.read() as connection:
        assert set(best(connection, ["zephyr"], 50)) == set(range(5, 5 + many))
        assert 7 not in best(connection, ["berth"], 50)
    postings.merge(database)
    agree(database)
    with database.read() as connection:
        remainder = connection.exec_driver_sql("SELECT count(*) FROM text_changes").scalar_one()
        assert set(best(connection, ["zephyr"], 50)) == set(range(5, 5 + many))
    assert remainder < postings.MOST_CHANGES


@pytest.mark.parametrize("merged", [True, False])
def test_what_may_not_be_seen_takes_no_place(database: Database, merged: bool) -> None:
    fill(database, 100)
    fill(database, 100, first=101, sensitivity=Sensitivity.RESTRICTED)
    if merged:
        postings.merge(database)
    public = frozenset({postings.mark_of("global", None, PUBLIC)})
    with database.read() as connection:
        result = best(connection, ["anchor", "barge"], 100, public)
        everything = best(connection, ["anchor", "barge"], 1_000)
        assert result == [pk for pk in everything if pk <= 100]
        assert best(connection, ["anchor"], 30, frozenset()) == []
        few = [7, 90, 150, *range(20, 60, 3), 900]
        assert (
            best(connection, ["anchor", "barge"], 5, public, few)
            == [pk for pk in result if pk in few][:5]
        )
    change(database, "UPDATE memories SET sensitivity = ? WHERE pk = ?", SECRET, result[0])
    with database.read() as connection:
        assert best(connection, ["anchor", "barge"], 100, public) == result[1:]
        assert best(connection, ["anchor", "barge"], 100, public, result) == result[1:]


def test_nothing_is_left_of_what_was_removed(database: Database) -> None:
    fill(database, 100)
    store(database, ["a quokka in the harbour", "a quokka at the quay"], 101)
    fill(database, 100, first=103)
    postings.merge(database)
    with database.write() as connection:
        connection.exec_driver_sql(
            "UPDATE memories SET content = 'gone', tags = '[]' WHERE pk = 101"
        )
        postings.remove(connection, [101])
        rows = connection.exec_driver_sql("SELECT segment, term, postings FROM text_postings").all()
        [held] = [each for each in postings.segments(connection) if each.first <= 101 <= each.last]
        offsets = {
            offset
            for segment, _, row in rows
            if segment == held.segment
            for offset in memoryview(row[: len(row) // 3 * 2]).cast("H")
        }
        assert 101 - held.first not in offsets
        assert 102 - held.first in offsets
        connection.exec_driver_sql("UPDATE memories SET content = 'gone' WHERE pk = 102")
        postings.remove(connection, [102])
        terms = connection.exec_driver_sql("SELECT DISTINCT term FROM text_postings").scalars()
        assert "quokka" not in set(terms)
    agree(database)
    with database.read() as connection:
        assert best(connection, ["quokka"]) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE text_postings SET postings = x'000001' WHERE term = 'barg'",
        "DELETE FROM text_postings WHERE term = 'barg'",
        "INSERT INTO text_postings SELECT segment, 'stray', postings FROM text_postings LIMIT 1",
        "INSERT INTO text_postings (segment, term, postings) VALUES (99, 'barg', x'000001')",
        "UPDATE text_segments SET lengths = zeroblob(length(lengths))",
        "UPDATE text_segments SET marks = zeroblob(length(marks))",
        "UPDATE text_segments SET tokens = tokens + 1",
        "INSERT INTO text_segments (stamp, first_pk, documents, tokens, lengths, marks)"
        " SELECT stamp, first_pk, documents, tokens, lengths, marks FROM text_segments",
    ],
)
def test_a_rebuild_mends_what_a_check_finds(database: Database, damage: str) -> None:
    fill(database, 40)
    postings.merge(database)
    agree(database)
    change(database, damage)
    with database.read() as connection:
        assert not postings.check(connection)
    postings.rebuild(database)
    agree(database)


def test_a_snapshot_shows_what_it_showed(database: Database) -> None:
    fill(database, 70)
    with database.read() as connection:
        before = best(connection, WORDS, 100)
        fill(database, 70, first=71)
        change(database, "UPDATE memories SET tags = '[\"zephyr\"]' WHERE pk = 5")
        postings.merge(database)
        agree(database)
        assert best(connection, WORDS, 100) == before
        assert best(connection, ["zephyr"]) == []


def test_what_another_process_writes_and_merges_is_found(database: Database) -> None:
    other = SqliteStore(database.path, "orc").open(
        StorageSettings(synchronous="NORMAL", busy_timeout_ms=1000)
    )
    for first in range(1, 400, 40):
        fill(other, 40, first=first)
        change(other, "UPDATE memories SET tags = '[\"zephyr\"]' WHERE pk = ?", first)
        before = agree(database)
        postings.merge(other)
        assert agree(database) == before > 0
        with database.read() as connection:
            assert first in best(connection, ["zephyr"])
    other.close()


def test_what_was_taken_back_is_not_kept(database: Database) -> None:
    fill(database, 5)

    def undo() -> None:
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE memories SET tags = '[\"zephyr\"]' WHERE pk = 3")
            assert best(connection, ["zephyr"]) == [3]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undo()
    with database.read() as connection:
        assert best(connection, ["zephyr"]) == []


def test_a_draft_that_was_overtaken_is_not_committed(database: Database) -> None:
    fill(database, 40)
    with database.read() as connection:
        late = postings.due(connection)
        same = postings.due(connection)
    assert late is not None
    assert same is not None
    change(database, "UPDATE memories SET tags = '[\"zephyr\"]' WHERE pk = 5")
    with database.write() as connection:
        assert not postings.commit(connection, late)
    postings.merge(database)
    with database.write() as connection:
        assert not postings.commit(connection, same)
    agree(database)


def test_a_bulk_load_leaves_no_long_tail(database: Database) -> None:
    fill(database, 500)
    with database.read() as connection:
        assert postings.segments(connection)[-1].last > 500 - 64 - 50
    agree(database)


def test_words_of_every_script_are_those_of_the_question(database: Database) -> None:
    texts = ["東京都に住む", "Café Zürich", "ΑΘΗΝΑ ήταν", "서울에서 만나", "naïve ﬁle", "x" * 300]
    store(database, texts, 1)
    asked = ["東京", "cafe", "αθηνα", "서울에서", "file"]
    with database.read() as connection:
        for place, word in enumerate(asked, start=1):
            assert best(connection, words(word)) == [place]
    fill(database, 1_100, first=len(texts) + 1)
    postings.merge(database)
    with database.read() as connection:
        assert postings.segments(connection)
        for place, word in enumerate(asked, start=1):
            assert best(connection, words(word)) == [place]


def test_rows_are_kept_up_to_a_number_of_bytes() -> None:
    cache = text_search.RowCache(1_000)
    owner = object()
    cache.put({(owner, 1, 0, str(number)): (number, 100) for number in range(10)})
    assert 0 < cache.used <= 1_000
    assert cache.get([(owner, 1, 0, "0")]) == {}
    assert list(cache.get([(owner, 1, 0, "9")]).values()) == [9]
    cache.put({(owner, 1, 0, "large"): (0, 5_000)})
    assert cache.used == 0
