"""The text leg over very many matches finds and ranks what FTS5 itself would."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from memgraph import MemoryService, Orchestrator
from memgraph.model.enums import Sensitivity
from memgraph.model.recall import RecallRequest
from memgraph.policy.scope import Viewer
from memgraph.retrieval import legs, many_matches, query
from memgraph.retrieval.legs import ACTIVE
from memgraph.retrieval.many_matches import best_of_many
from memgraph.storage import recall_queries
from memgraph.storage.narrowing import Narrowing
from memgraph.storage.visibility import View

WORDS = [
    "anchor",
    "barge",
    "crane",
    "dock",
    "eel",
    "ferry",
    "gull",
    "harbour",
    "island",
    "jetty",
    "keel",
    "lantern",
]


def fill(orc: Orchestrator, count: int, seed: int = 3) -> None:
    chance = random.Random(seed)
    orc.remember_many(
        {
            "content": " ".join(chance.choices(WORDS, k=chance.randint(3, 30))) + f" {number}",
            "source_role": "Mira" if number % 3 else None,
            "tags": ["berth"] if number % 5 == 0 else [],
        }
        for number in range(count)
    )


@contextmanager
def reading(service: MemoryService) -> Iterator[sa.Connection]:
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        yield connection


def asked(connection: sa.Connection, text: str) -> query.Terms:
    question = query.read(text)
    frequencies = recall_queries.document_frequencies(connection, question.words)
    documents = recall_queries.document_count(connection)
    return query.choose_terms(question, frequencies, documents, 1_000_000)


def narrowing(viewer: Viewer) -> Narrowing:
    return Narrowing(View(viewer, None, ACTIVE), RecallRequest(query="x"), 2_000_000_000_000)


@pytest.mark.parametrize("text", ["anchor", "crane and dock", "eels at the ferry of the harbour"])
def test_the_best_are_those_of_fts5(service: MemoryService, orc: Orchestrator, text: str) -> None:
    fill(orc, 400)
    with reading(service) as connection:
        terms = asked(connection, text)
        by = narrowing(orc.viewer)
        documents = recall_queries.document_count(connection)
        found = best_of_many(connection, terms, documents, by, 30)
        expected = recall_queries.by_text(connection, terms.match, by, 30)
    # What stands beside a content counts with its mean length: near ranks may change places.
    assert len({each.pk for each in found} & {each.pk for each in expected}) >= 25
    assert found[0] in expected[:2]


def test_the_mean_length_is_that_of_what_is_stored(
    service: MemoryService, orc: Orchestrator
) -> None:
    orc.remember_many(
        [
            {"content": "one two three", "source_role": "Mira"},
            {"content": "four five six seven eight", "tags": ["berth", "quay"]},
        ]
    )
    with reading(service) as connection:
        assert recall_queries.mean_tokens(connection) == (4.0, 1.5)


def test_what_a_reader_may_not_see_takes_no_place(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_matches, "READ_CLOSELY", 20)
    fill(orc, 60)
    orc.remember_many(
        {"content": f"anchor anchor {number}", "sensitivity": Sensitivity.RESTRICTED}
        for number in range(60)
    )
    with reading(service) as connection:
        terms = asked(connection, "anchor")
        by = narrowing(orc.viewer)
        found = best_of_many(connection, terms, 120, by, 10)
        shown = set(recall_queries.allowed(connection, by))
    assert len(found) == 10
    assert {each.pk for each in found} <= shown


@pytest.mark.parametrize("words", ["status", "status of the project"])
def test_what_is_old_is_found_by_who_sees_nothing_else(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr(many_matches, "READ_CLOSELY", 40)
    monkeypatch.setattr(legs, "RANKED_AT_ONCE", 10)
    monkeypatch.setattr(query, "RANKED_AT_ONCE", 10)
    monkeypatch.setattr(legs, "most_matching_rows", lambda _: 40)
    viewer = Viewer(project_ids=frozenset({"ship"}))
    orc = service.orchestrator("orc-1", create=True, viewer=viewer)
    orc.remember_many(
        {
            "content": f"status of the old project item {number}",
            "scope": "project",
            "scope_id": "ship",
        }
        for number in range(30)
    )
    orc.remember_many({"content": f"status number {number}"} for number in range(300))
    found = orc.recall(words, scopes=["project"], top_n=30)
    assert sum("text" in item.legs for item in found.items) == 30


def test_a_word_in_the_tags_counts(
    service: MemoryService, orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    orc.remember_many({"content": f"A note about the crane, {number}"} for number in range(30))
    tagged = orc.remember("Something else altogether", tags=["berth"])
    with reading(service) as connection:
        terms = asked(connection, "crane berth")
        found = best_of_many(connection, terms, 31, narrowing(orc.viewer), 10)
    assert found[0].memory_id == tagged


def test_a_word_that_stands_everywhere_is_searched_among_the_newest(
    orc: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legs, "RANKED_AT_ONCE", 10)
    monkeypatch.setattr(query, "RANKED_AT_ONCE", 10)
    monkeypatch.setattr(legs, "most_matching_rows", lambda _: 60)
    orc.remember_many({"content": f"The lighthouse log, day {number}"} for number in range(200))
    found = orc.recall("lighthouse", top_n=60)
    by_text = {item.memory.content for item in found.items if "text" in item.legs}
    assert "text.newest" in {each.code for each in found.degraded}
    assert by_text
    assert by_text <= {f"The lighthouse log, day {number}" for number in range(140, 200)}


@pytest.mark.parametrize(
    "numbers",
    [[], [0], [7], [1, 22, 333, 10**15], list(range(0, 12_000, 3)), [0, 9, 10, 99, 100, 10**17]],
)
def test_a_list_of_keys_is_read_as_it_is_written(numbers: list[int]) -> None:
    listed = ",".join(map(str, numbers))
    assert recall_queries._numbers(listed).tolist() == numbers
