"""What an agent stores comes back as it was given, all of it or nothing; its requests as JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from agent_items import EVERYTHING, IN_PROJECT, IN_SESSION, NAME, PATIENCE_S, call, item
from hypothesis import HealthCheck, given, settings, strategies as st

from memgraph import MemoryEntity, MemoryService, Orchestrator, Sensitivity
from memgraph.clock import FixedClock
from memgraph.errors import Conflict, InvalidInput, OrchestratorMissing, StorageError
from memgraph.model.enums import CapturedBy, MemoryKind, Scope
from memgraph.operations.write.entity_links import EntityLinker
from memgraph.operations.write.writer import Writer


def test_an_item_comes_back_as_it_was_given(ana: MemoryEntity, clock: FixedClock) -> None:
    given = {
        **item("Talked of the harbour.", metadataJson='{"b": 1,  "a": [1.0, "\\u00e9"]}'),
        "tier": "EpisodicMemory",
        "source": "AgentSource",
        "generatedByTurnId": "turn-9",
        "sessionId": "s",
        "sensitivity": "Public",
    }
    [stored] = call(ana, "store", {"items": [given]})["storedIds"]
    clock.advance(ms=500)
    assert stored.startswith("ep_")
    assert call(ana, "list_items") == [
        {
            "memoryItemId": stored,
            "agentId": "ana",
            **given,
            "projectId": None,
            "createdAt": "2026-01-01T00:00:00.000Z",
            "updatedAt": "2026-01-01T00:00:00.000Z",
        }
    ]
    assert call(ana, "retrieve", {"query": "harbour"}) == call(ana, "list_items", {})


METADATA = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=200)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(METADATA)
def test_metadata_is_kept_letter_by_letter(ana: MemoryEntity, metadata: str) -> None:
    [stored] = ana.store([item(metadata_json=metadata)]).stored_ids
    kept = {each.memory_item_id: each.metadata_json for each in ana.list_items(limit=1_000)}
    assert kept[stored] == metadata


def test_words_map_to_those_of_the_store(service: MemoryService, ana: MemoryEntity) -> None:
    tiers = {"EpisodicMemory": MemoryKind.EPISODE, "SemanticMemory": MemoryKind.FACT}
    sources = {
        "UserSource": CapturedBy.USER,
        "SystemSource": CapturedBy.SYSTEM,
        "AgentSource": CapturedBy.EXTRACTOR,
    }
    orc = service.orchestrator(NAME, viewer=EVERYTHING)
    said = list(product(tiers, sources, ({}, IN_SESSION, IN_PROJECT)))
    given = [item(tier=tier, source=source, **where) for tier, source, where in said]
    ids = ana.store(given).stored_ids
    # Ids come in the order of the items, the newest item comes first.
    records = ana.list_items(session_id="s", project_id="p", limit=100)[::-1]
    assert [each.memory_item_id for each in records] == list(ids)
    for (tier, source, _), asked, record in zip(said, given, records, strict=True):
        sent = record.model_dump(mode="json")
        assert (sent["tier"], sent["source"], sent["scope"]) == (tier, source, asked["scope"])
        assert (record.tier, record.source) == (tiers[tier], sources[source])
        assert record.sensitivity is Sensitivity.INTERNAL
        usual = (record.metadata_json, record.generated_by_turn_id, record.session_id)
        assert usual == (None, None, asked.get("sessionId"))
        memory = orc.get(record.memory_item_id)
        assert (memory.agent_id, memory.kind) == ("ana", tiers[tier])
        assert memory.scope_id == {Scope.SESSION: "s", Scope.PROJECT: "p"}.get(memory.scope)
        assert orc.trace(memory.memory_id).sources[0].captured_by is sources[source]
        assert (memory.confidence < 1.0) is (source == "AgentSource")


@pytest.mark.parametrize("tier", ["EpisodicMemory", "SemanticMemory"])
def test_a_repeated_item_gives_the_known_id(ana: MemoryEntity, tier: str) -> None:
    same = item(tier=tier, metadata_json="{}")
    [first] = ana.store([same]).stored_ids
    others = [
        item(tier=tier),
        item(tier=tier, metadata_json="{ }"),
        item(tier=tier, metadata_json="{}", generated_by_turn_id="1"),
        item(tier=tier, metadata_json="{}", session_id="s"),
        item(tier=tier, metadata_json="{}", session_id="s", generated_by_turn_id="1"),
        item(tier=tier, session_id="s", generated_by_turn_id="1"),
        item(tier=tier, metadata_json="{}", source="SystemSource"),
        item(tier=tier, metadata_json="{}", sensitivity="Public"),
        item("Alex likes  short answers.", tier=tier, metadata_json="{}"),
    ]
    ids = ana.store([others[0], same, *others[1:], same, others[3]]).stored_ids
    assert (ids[1], ids[-2], ids[-1]) == (first, first, ids[4])
    assert len(set(ids)) == 1 + len(others)
    assert len(ana.list_items(limit=100)) == 1 + len(others)


def test_one_wrong_item_stores_none(ana: MemoryEntity, all_of: Callable[[str], list[str]]) -> None:
    wrong: list[dict[str, Any]] = [
        *({"tier": "WorkingMemory"}, {"scope": "session"}, {"source": "user"}),
        *({"content": "  \n"}, {"content": "x" * 32_001}, {"content": "\ud800"}, {"content": 7}),
        *({"sensitivity": "Secret"}, {"metadataJson": "x" * 16_001}, {"metadataJson": {"a": 1}}),
        *({"metadataJson": "\udfff"}, {"generatedByTurnId": ""}, {"sessionId": "s" * 513}),
        *({"scope": "SessionScope"}, {"projectId": "p"}, {"memoryItemId": "fact_1"}),
        *({"agentId": "ben"}, {"generated_by_turn_id": "1", "generatedByTurnId": "2"}),
    ]
    for each in wrong:
        with pytest.raises(InvalidInput):
            call(ana, "store", {"items": [item("Good."), item() | each]})
    with pytest.raises(InvalidInput):
        ana.store([item()] * 1_001)
    for no_items in ("store", [5], [None]):
        with pytest.raises(InvalidInput):
            ana.store(no_items)  # type: ignore[arg-type]  # what a careless caller gives
    assert ana.store([]).stored_ids == ()
    assert all_of("ana") == []


def test_a_project_scope_without_a_project_is_the_entitys_or_the_default_one(
    service: MemoryService, ana: MemoryEntity
) -> None:
    ana.store([item(scope="ProjectScope")])
    MemoryEntity(service, NAME, "ana", project_id="q").store([item(scope="ProjectScope")])
    assert [each.project_id for each in ana.list_items()] == ["default"]
    assert [each.project_id for each in ana.list_items(project_id="q")] == ["q"]
    assert ana.list_items(project_id="p") == ()


def test_a_call_that_is_repeated_stores_once(ana: MemoryEntity) -> None:
    request = {"items": [item("One."), item("One.")], "callId": "call-1"}
    stored = call(ana, "store", request)
    assert len(set(stored["storedIds"])) == 2
    assert call(ana, "store", request) == stored
    other = call(ana, "store", {**request, "callId": "call-2"})
    assert not {*stored["storedIds"]} & {*other["storedIds"]}
    ana.forget(item_ids=stored["storedIds"])
    assert call(ana, "store", request) == stored
    assert [each.memory_item_id for each in ana.list_items()][::-1] == other["storedIds"]


@pytest.mark.engines
def test_a_call_id_with_other_items_is_refused(ana: MemoryEntity) -> None:
    first = [item(text) for text in ("One.", "Two.", "Three.")]
    stored = ana.store(first, call_id="call-1")
    for texts in (["Two."], ["One.", "Two."], ["One."], ["Two.", "One."]):
        with pytest.raises(Conflict) as refused:
            ana.store([item(text) for text in texts], call_id="call-1")
        assert refused.value.details == {"call_id": "call-1"}
    assert ana.store(first, call_id="call-1") == stored
    assert len(ana.list_items()) == len(first)


def test_a_store_that_breaks_off_leaves_nothing(
    ana: MemoryEntity, all_of: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise StorageError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(EntityLinker, "link", broken)
        with pytest.raises(StorageError):
            ana.store([item("One."), item("Two.")])
    assert all_of("ana") == []
    assert len(ana.store([item("One."), item("Two.")]).stored_ids) == 2


def test_a_store_is_one_entry_of_the_journal_each_and_one_transaction(
    service: MemoryService, ana: MemoryEntity
) -> None:
    with service.opened(NAME) as opened:
        before = opened.database.commits
        ana.store([item(f"Note {number}.") for number in range(10)])
        assert opened.database.commits == before + 1
        ana.forget(scope="GlobalScope")
        assert opened.database.commits == before + 2
        with opened.database.read() as connection:
            rows = connection.exec_driver_sql("SELECT action, actor FROM audit_log ORDER BY seq")
            assert [tuple(row) for row in rows] == [("remember", "ana")] * 10 + [
                ("retract", "ana")
            ] * 10


def test_both_spellings_are_understood(ana: MemoryEntity) -> None:
    snake = {"generated_by_turn_id": "1", "session_id": "s", "metadata_json": "{}"}
    camel = {"generatedByTurnId": "1", "sessionId": "s", "metadataJson": "{}"}
    stored = call(ana, "store", {"items": [item(**snake)]})
    assert stored == call(ana, "store", {"items": [item(**camel)]})
    assert call(ana, "forget", {"item_ids": stored["storedIds"]}) == {"deletedCount": 1}


def test_what_is_not_understood_is_refused(ana: MemoryEntity) -> None:
    requests: list[tuple[str, Any]] = [
        *(("retrieve", {}), ("retrieve", {"query": None}), ("retrieve", {"query": "\ud800"})),
        *(("retrieve", {"query": "x", "limit": limit}) for limit in (0, 1_001, True, "5")),
        *(("retrieve", {"query": "x", "top_n": 5}), ("retrieve", ["x"])),
        *(("list_items", {"tier": "episode"}), ("list_items", {"query": "x"})),
        *(("list_items", {"agentId": "ben"}), ("store", {"items": [item()], "agentId": "ben"})),
        *(("forget", {"cutoffDate": time}) for time in ("yesterday", True, [], 4e12 + 0.5)),
        *(("forget", {"itemIds": "fact_1"}), ("forget", {"itemIds": [7]})),
        ("forget", {"itemIds": [], "item_ids": ["fact_1"]}),
        *(("store", {"items": 5}), ("store", {"items": item()}), ("store", {})),
        # No criterion is not everything.
        *(("forget", nothing) for nothing in ({}, {"sessionId": "s"}, {"project_id": "p"}, None)),
    ]
    ana.store([item()])
    for method, payload in requests:
        with pytest.raises(InvalidInput) as refused:
            call(ana, method, payload)
        assert json.dumps(refused.value.as_dict())
    assert len(ana.list_items()) == 1


@given(
    st.sampled_from(["store", "retrieve", "forget", "list_items"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["items", "query", "tier", "scope", "limit", "itemIds", "content"])
                | st.text(max_size=5),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_any_payload_is_answered_or_refused(ana: MemoryEntity, method: str, payload: Any) -> None:
    # Any other error rises and fails it.
    with suppress(InvalidInput):
        json.dumps(call(ana, method, payload))
    assert call(ana, "retrieve", {"query": "still there"}) == []


def test_an_entity_is_of_an_orchestrator_that_is_there(
    service: MemoryService, orc: Orchestrator
) -> None:
    with pytest.raises(OrchestratorMissing):
        MemoryEntity(service, "nobody", "ana")
    for wrong in ("", "a\x00", "x" * 513, None):
        with pytest.raises(InvalidInput):
            MemoryEntity(service, NAME, wrong)  # type: ignore[arg-type]  # a careless caller
    with pytest.raises(InvalidInput):
        MemoryEntity(service, NAME, "ana", project_id="")


def test_two_agents_do_not_wait_for_one_another(
    ana: MemoryEntity,
    ben: MemoryEntity,
    all_of: Callable[[str], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meeting, prepare = threading.Barrier(2, timeout=PATIENCE_S), Writer.prepare

    def prepare_together(*given: Any) -> Any:
        meeting.wait()
        return prepare(*given)

    monkeypatch.setattr(Writer, "prepare", prepare_together)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda entity: entity.store([item("Both.")]), (ana, ben)))
    assert all_of("ana") == all_of("ben") == ["Both."]


def test_many_threads_of_two_services_store_the_same_once(tmp_path: Path) -> None:
    with (
        MemoryService(tmp_path, environ={}, background=False) as one,
        MemoryService(tmp_path, environ={}, background=False) as other,
    ):
        one.create(NAME)
        entities = [MemoryEntity(service, NAME, "ana") for service in (one, other)]
        both = [item("Once."), item("Once.", tier="EpisodicMemory")]
        with ThreadPoolExecutor(8) as pool:
            stored = list(pool.map(lambda entity: entity.store(both), entities * 4))
        assert len({each.stored_ids for each in stored}) == 1
