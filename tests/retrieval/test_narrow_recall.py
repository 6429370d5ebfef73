"""Recall for a reader who sees little of much takes other ways to the same answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from working import working

from memgraph import MemoryService, Viewer
from memgraph.operations.write.embedding import MODEL_KEY
from memgraph.store import metadata, recall, vector_cache

PROJECTS, EACH = 8, 25
WORDS = ("parser", "lexer", "tabs", "oven", "shop", "Lisbon", "ledger", "ferry")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryService]:
    with working(tmp_path_factory.mktemp("narrow")) as made:
        made.create("orc")
        for project in range(PROJECTS):
            viewer = Viewer(project_ids=frozenset({f"p{project}"}))
            handle = made.orchestrator("orc", viewer=viewer)
            said = [
                " ".join(WORDS[(number + at) % len(WORDS)] for at in range(1 + number % 4))
                for number in range(EACH)
            ]
            handle.remember_many(
                [
                    {
                        "content": f"{each}, as note {number} of project {project} has it",
                        "scope": "project",
                        "scope_id": f"p{project}",
                        "type": "Decision" if number % 3 else "Fact",
                    }
                    for number, each in enumerate(said)
                ]
            )
        made.orchestrator("orc").settle()
        yield made


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few memories are many, and a part of them is few."""
    monkeypatch.setattr(vector_cache, "RANKED", 100)


def answers(service: MemoryService, question: str, **fields: object) -> tuple[str, ...]:
    viewer = Viewer(project_ids=frozenset({"p3"}))
    return service.orchestrator("orc", viewer=viewer).recall(question, **fields).ids


@pytest.mark.parametrize("question", ["parser tabs", "Which oven is in the shop?"])
@pytest.mark.parametrize("types", [(), ("Decision",)])
def test_the_narrow_way_finds_what_the_wide_one_finds(
    service: MemoryService,
    request: pytest.FixtureRequest,
    question: str,
    types: tuple[str, ...],
) -> None:
    wide = answers(service, question, top_n=10, types=types)
    request.getfixturevalue("narrow")
    assert answers(service, question, top_n=10, types=types) == wide
    assert len(wide) == 10


@pytest.mark.usefixtures("narrow")
def test_what_is_not_embedded_yet_is_found_by_its_words(service: MemoryService) -> None:
    viewer = Viewer(project_ids=frozenset({"p3"}))
    handle = service.orchestrator("orc", viewer=viewer)
    late = handle.remember("A quokka crossed the bridge", scope="project", scope_id="p3")
    assert answers(service, "quokka")[0] == late
    handle.retract(late, reason="test")
    assert late not in answers(service, "quokka")


@pytest.mark.usefixtures("narrow")
def test_words_are_found_while_the_index_is_made_anew(service: MemoryService) -> None:
    with service.opened("orc") as opened, opened.database.write() as connection:
        model = metadata.get(connection, MODEL_KEY)
        metadata.put(connection, MODEL_KEY, "another")
    found = answers(service, "note", top_n=20)
    with service.opened("orc") as opened, opened.database.write() as connection:
        metadata.put(connection, MODEL_KEY, model or "")
    assert len(found) == 20
    assert set(found) <= set(answers(service, "note", top_n=100))


@pytest.mark.usefixtures("narrow")
def test_nothing_that_is_hidden_is_found(service: MemoryService) -> None:
    viewer = Viewer(project_ids=frozenset({"p3"}))
    found = service.orchestrator("orc", viewer=viewer).recall("note of project 5", top_n=100)
    assert {item.memory.scope_id for item in found.items} == {"p3"}
    nobody = service.orchestrator("orc", viewer=Viewer(project_ids=frozenset({"p99"})))
    assert nobody.recall("note of project 5").ids == ()


def test_with_too_few_of_the_best_shown_more_are_looked_at(service: MemoryService) -> None:
    assert len(answers(service, "note", top_n=20, kinds=("fact",), types=("Fact",))) == 9
    items = service.orchestrator("orc", viewer=Viewer(project_ids=frozenset({"p3"}))).recall(
        "note lexer", types=("Fact",), top_n=20
    )
    assert sum("text" in item.legs for item in items.items) == 9


@pytest.mark.parametrize("fields", [{"valid_at": 2_000_000_000_000}, {"types": ("Fact",)}])
def test_a_filter_that_few_pass_finds_what_it_found_by_looking_further(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch, fields: dict[str, object]
) -> None:
    further = [answers(service, word, top_n=10, **fields) for word in WORDS]
    monkeypatch.setattr(recall, "WIDEST", 0)
    assert [answers(service, word, top_n=10, **fields) for word in WORDS] == further
    assert all(further)
