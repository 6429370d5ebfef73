"""Requests as JSON; those for one agent in order, of two side by side."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agent_items import NAME, PATIENCE_S, call, ended, item, running
from hypothesis import HealthCheck, given, settings, strategies as st

from memgraph import MemoryEntity, MemoryService, Orchestrator
from memgraph.errors import InvalidInput, OrchestratorMissing
from memgraph.operations.write.writer import Writer


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


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Does something within the store of an item of this text, before its transaction."""
    told: dict[str, Callable[[], object]] = {}
    prepare = Writer.prepare

    def prepared(self: Writer, given: Any, *rest: Any) -> Any:
        told.get(given.content, lambda: None)()
        return prepare(self, given, *rest)

    monkeypatch.setattr(Writer, "prepare", prepared)
    return told.__setitem__


def test_two_agents_do_not_wait_for_one_another(
    ana: MemoryEntity,
    ben: MemoryEntity,
    all_of: Callable[[str], list[str]],
    gate: Callable[[str, Callable[[], object]], None],
) -> None:
    meeting = threading.Barrier(2)
    gate("Both.", lambda: meeting.wait(PATIENCE_S))
    threads = running(lambda: ana.store([item("Both.")]), lambda: ben.store([item("Both.")]))
    assert ended(threads)
    assert not meeting.broken
    assert all_of("ana") == all_of("ben") == ["Both."]


def test_many_threads_of_two_services_store_the_same_once(tmp_path: Path) -> None:
    with (
        MemoryService(tmp_path, environ={}, background=False) as one,
        MemoryService(tmp_path, environ={}, background=False) as other,
    ):
        one.create(NAME)
        ids: list[tuple[str, ...]] = []
        both = [item("Once."), item("Once.", tier="EpisodicMemory")]

        def store(service: MemoryService) -> None:
            ids.append(MemoryEntity(service, NAME, "ana").store(both).stored_ids)

        assert ended(running(*[partial(store, service) for service in (one, other) * 4]))
        assert len(ids) == 8
        assert len(set(ids)) == 1
