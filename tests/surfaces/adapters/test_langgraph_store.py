"""LangGraph's store over the memory: what its base class promises, and what ours adds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import store_workers
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from processes import Process
from working import working

from memgraph import EdgeType, MemoryService, Orchestrator, Scope, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.model.enums import MemoryKind, MemoryStatus
from memgraph.operations.context.database_backend import DatabaseBackend
from memgraph.operations.context.namespaces import NamespaceHandle
from memgraph.operations.life import reflection as reflecting
from memgraph.store import items as items_rows
from memgraph.store import memories
from memgraph.surfaces.adapters.langgraph import MemgraphStore

USER = ("users", "alice")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[MemoryService]:
    with working(tmp_path / "root") as made:
        yield made


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    return service.orchestrator("orc-1", create=True)


@pytest.fixture
def store(orc: Orchestrator) -> MemgraphStore:
    return MemgraphStore(orc)


@pytest.fixture
def clock(service: MemoryService) -> FixedClock:
    assert isinstance(service.clock, FixedClock)
    return service.clock


def keys(found: list[Any]) -> list[str]:
    return [each.key for each in found]


def value(store: MemgraphStore, namespace: tuple[str, ...] = USER, key: str = "k") -> Any:
    found = store.get(namespace, key)
    return None if found is None else found.value


def test_an_item_is_a_memory_with_its_history(
    orc: Orchestrator, store: MemgraphStore, clock: FixedClock
) -> None:
    store.put(USER, "k", {"drinks": "tea"})
    clock.advance(ms=5)
    store.put(USER, "k", {"drinks": "coffee"})
    item = store.get(USER, "k")
    assert item is not None
    assert item.value == {"drinks": "coffee"}
    assert (item.updated_at - item.created_at).total_seconds() == 0.005
    newer, older = orc.memories.list(statuses=(MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED))
    assert (newer.status, older.status) == (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED)
    assert "coffee" in newer.content
    assert "tea" in older.content
    [edge] = orc.graph.subgraph([newer.memory_id]).edges
    assert (edge.from_id, edge.edge_type, edge.to_id) == (
        newer.memory_id,
        EdgeType.UPDATES,
        older.memory_id,
    )
    store.delete(USER, "k")
    assert store.get(USER, "k") is None
    assert orc.get(newer.memory_id).status is MemoryStatus.RETRACTED
    assert orc.trace(newer.memory_id).status_history[-1].reason == "deleted"
    assert orc.verify().ok


def test_the_same_value_again_is_no_new_version(
    orc: Orchestrator, store: MemgraphStore, clock: FixedClock
) -> None:
    store.put(USER, "k", {"x": 1})
    store.put(USER, "other", {"x": 1})
    clock.advance(ms=5)
    store.put(USER, "k", {"x": 1})
    assert len(orc.memories.list(statuses=())) == 2
    # It was put last, so it comes first.
    assert keys(store.search(USER)) == ["k", "other"]
    assert orc.verify().ok


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"x": "a b"}, {"x": "a  b"}),
        ({"x": "a b"}, {"x": "a\nb"}),
        ({"x": "\u00e9"}, {"x": "e\u0301"}),
        ({"x": 1}, {"x": True}),
        ({"x": 1}, {"x": 1.0}),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}),
        ({"x": "a\xa0b"}, {"x": "a b"}),
    ],
)
def test_values_that_texts_would_take_for_one_are_two(
    store: MemgraphStore, one: dict[str, Any], other: dict[str, Any]
) -> None:
    for each in (one, other, one, other):
        store.put(USER, "k", each)
        assert repr(value(store)) == repr(each)
        store.put(USER, "by path", each, index=["x"])
        assert repr(value(store, key="by path")) == repr(each)


def test_a_value_is_whole_or_refused(orc: Orchestrator, store: MemgraphStore) -> None:
    large = {"text": "word " * 6_000}
    store.put(USER, "k", large)
    assert value(store) == large
    for wrong in ({"text": "x" * 32_000}, {"x": float("nan")}, {"x": object()}):
        with pytest.raises(InvalidInput):
            store.batch([PutOp(USER, "first", {"x": 1}), PutOp(USER, "k", wrong)])
    assert value(store) == large
    assert store.get(USER, "first") is None
    assert len(orc.memories.list(statuses=())) == 1


def test_labels_are_those_of_the_base_class(store: MemgraphStore) -> None:
    for wrong in [(), ("",), ("a.b",), ("langgraph",), (1,), ("a\0",)]:
        with pytest.raises(InvalidNamespaceError):
            store.put(wrong, "k", {})  # type: ignore[arg-type]  # a number is no label
    for op in [
        GetOp(("a.b",), "k"),
        PutOp(("a.b",), "k", {}),
        SearchOp(("a.b",)),
        ListNamespacesOp((MatchCondition("prefix", ("a.b",)),)),
    ]:
        with pytest.raises(InvalidNamespaceError):
            store.batch([op])
    with pytest.raises(InvalidInput, match="together"):
        store.put(("a",), "k" * 600, {})


def test_a_query_ranks_and_what_it_does_not_find_follows(store: MemgraphStore) -> None:
    store.put(USER, "1", {"note": "The heron fishes at dawn.\nOwls do not."})
    store.put(USER, "2", {"note": "Rent is due on Monday."})
    store.put(USER, "3", {"note": "A heron and its nest of herons: heron!"})
    found = store.search(USER, query="heron")
    assert set(keys(found[:2])) == {"1", "3"}
    assert found[0].score is not None
    assert found[0].score >= (found[1].score or 0.0) > 0.0
    assert (found[2].key, found[2].score) == ("2", None)
    # The first word of a line is found, though in plain JSON an ``n`` would stick to it.
    assert store.search(USER, query="owls", limit=1)[0].key == "1"
    assert keys(store.search(USER, query="heron", limit=1, offset=2)) == ["2"]
    assert keys(store.search(USER, query="rent", filter={"note": {"$ne": None}}, limit=1)) == ["2"]
    assert store.search(USER, query="rent", filter={"note": "other"}) == []


def test_what_is_searched_can_be_chosen(orc: Orchestrator, store: MemgraphStore) -> None:
    store.put(USER, "all", {"said": "a heron", "noise": "lemon"})
    store.put(USER, "none", {"said": "a heron", "noise": "lemon"}, index=False)
    store.put(USER, "path", {"said": ["a heron", {"x": 1}], "noise": "lemon"}, index=["said[0]"])
    store.put(USER, "nothing there", {"noise": "lemon"}, index=["said"])

    def scored(query: str) -> set[str]:
        return {each.key for each in store.search(USER, query=query) if each.score is not None}

    assert scored("heron") == {"all", "path"}
    assert scored("lemon") == {"all"}
    assert value(store, key="path") == {"said": ["a heron", {"x": 1}], "noise": "lemon"}
    # Searched anew: the value is as it was, and yet something changed.
    store.put(USER, "none", {"said": "a heron", "noise": "lemon"})
    assert scored("lemon") == {"all", "none"}
    chosen = MemgraphStore(orc, fields=["said"])
    chosen.put(("chosen",), "k", {"said": "a heron", "noise": "lemon"})
    assert chosen.search(("chosen",), query="lemon")[0].score is None
    assert chosen.search(("chosen",), query="heron")[0].score is not None


def test_filters_limits_and_what_cannot_be_asked(store: MemgraphStore, clock: FixedClock) -> None:
    for at in range(5):
        store.put(USER, str(at), {"n": at, "odd": bool(at % 2)})
        clock.advance(ms=1)
    assert keys(store.search(USER)) == ["4", "3", "2", "1", "0"]
    assert keys(store.search(USER, limit=2, offset=1)) == ["3", "2"]
    assert keys(store.search(USER, filter={"odd": True})) == ["3", "1"]
    assert keys(store.search(USER, filter={"n": {"$gte": 1, "$lt": 4}}, limit=2)) == ["3", "2"]
    assert store.search(USER, limit=0) == []
    for wrong in ({"limit": -1}, {"offset": -1}, {"filter": {"n": {"$near": 1}}}):
        with pytest.raises(InvalidInput):
            store.search(USER, **wrong)  # type: ignore[arg-type]  # of mixed types
    with pytest.raises(InvalidInput):
        store.list_namespaces(limit=-1)


def test_items_expire_and_reading_keeps_them(store: MemgraphStore, clock: FixedClock) -> None:
    store.put(USER, "k", {"x": "heron"}, ttl=10)
    store.put(USER, "kept", {"x": "heron"})
    clock.advance(ms=9 * 60_000)
    assert value(store) == {"x": "heron"}
    clock.advance(ms=9 * 60_000)
    assert keys(store.search(USER, filter={"x": "heron"})) == ["kept", "k"]
    clock.advance(ms=9 * 60_000)
    assert store.get(USER, "k", refresh_ttl=False) is not None
    clock.advance(ms=60_000)
    assert store.get(USER, "k") is None
    assert keys(store.search(USER)) == ["kept"]
    assert keys(store.search(USER, query="heron")) == ["kept"]
    store.put(("gone",), "k", {}, ttl=1)
    clock.advance(ms=60_000)
    assert store.list_namespaces() == [USER]


@pytest.mark.parametrize("again", [{"x": "heron"}, {"x": "lemon"}, None])
def test_a_reader_does_not_set_an_end_to_what_was_put_meanwhile(
    orc: Orchestrator, clock: FixedClock, monkeypatch: pytest.MonkeyPatch, again: Any
) -> None:
    store, writer = MemgraphStore(orc), MemgraphStore(orc)
    store.put(USER, "k", {"x": "heron"}, ttl=10)
    [before] = orc.memories.list()
    refresh = NamespaceHandle._refresh

    def late(self: NamespaceHandle, opened: Any, items: Any) -> None:
        monkeypatch.setattr(NamespaceHandle, "_refresh", refresh)
        clock.advance(ms=60_000)
        writer.batch([PutOp(USER, "k", again)])
        refresh(self, opened, items)

    monkeypatch.setattr(NamespaceHandle, "_refresh", late)
    assert value(store) == {"x": "heron"}
    clock.advance(days=1)
    assert value(store) == again
    if again != {"x": "heron"}:
        # The end of the version that was replaced is as it was.
        assert orc.get(before.memory_id).valid_until == before.valid_until


def test_what_an_item_won_against_stays_hidden_and_is_not_lost(service: MemoryService) -> None:
    orc = service.orchestrator("orc-1", create=True)
    above = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.CONFIDENTIAL))
    store = MemgraphStore(orc)
    store.put(USER, "k", {"x": "heron"}, ttl=10)
    [item] = orc.memories.list()
    hidden = above.remember("No heron.", sensitivity=Sensitivity.CONFIDENTIAL)
    edge = above.relate(item.memory_id, EdgeType.CONTRADICTS, hidden)
    above.contradictions.resolve(edge, winner=item.memory_id, reason="seen")
    for found in (store.get(USER, "k"), *store.search(USER), *store.search(USER, query="heron")):
        assert found is not None
        assert found.value == {"x": "heron"}
        assert hidden not in str(found.dict())
    assert "supersedes" not in orc.get(item.memory_id).attributes
    store.put(USER, "k", {"x": "heron"})
    assert above.get(item.memory_id).attributes["supersedes"] == [hidden]


def test_of_two_that_share_a_name_every_reader_is_shown_the_later_one(
    orc: Orchestrator, store: MemgraphStore, clock: FixedClock
) -> None:
    store.put(USER, "k", {"x": "old heron"})
    [old] = orc.memories.list()
    store.delete(USER, "k")
    store.put(USER, "k", {"x": "new heron"}, ttl=10)
    store.put(USER, "other", {"x": "lemon"})
    clock.advance(ms=1)
    orc.restore(old.memory_id, reason="deleted by mistake")

    def shown(**asked: Any) -> list[Any]:
        return [one.value["x"] for one in store.search(USER, refresh_ttl=False, **asked)]

    assert value(store) == {"x": "new heron"}
    assert shown() == ["lemon", "new heron"]
    assert [shown(limit=1, offset=at) for at in range(3)] == [["lemon"], ["new heron"], []]
    assert shown(query="heron") == ["new heron", "lemon"]
    assert shown(filter={"x": "old heron"}) == shown(query="h", filter={"x": "old heron"}) == []
    clock.advance(ms=10 * 60_000)
    assert shown(query="heron") == ["old heron", "lemon"]
    assert sorted(shown()) == ["lemon", "old heron"]


def test_statements_with_the_tags_of_an_item_are_statements(
    orc: Orchestrator, store: MemgraphStore
) -> None:
    """Documents and models choose their tags: they neither break a store nor hide by them."""
    store.put(USER, "k", {"x": "heron"})
    [item] = orc.memories.list()
    told = orc.remember("The heron is grey.", tags=item.tags)
    assert keys(store.search(USER, query="heron grey")) == ["k"]
    assert keys(store.search(USER)) == ["k"]
    assert told in [each.memory_id for each in orc.memories.list()]


def test_an_expired_item_begins_anew(
    orc: Orchestrator, store: MemgraphStore, clock: FixedClock
) -> None:
    store.put(USER, "k", {"x": 1}, ttl=1)
    clock.advance(ms=60_000)
    store.put(USER, "k", {"x": 1})
    item = store.get(USER, "k")
    assert item is not None
    assert item.created_at == item.updated_at
    clock.advance(days=400)
    assert value(store) == {"x": 1}
    active = orc.memories.list()
    assert len(active) == 1
    assert active[0].valid_until is None


def test_a_time_to_live_by_default_and_its_bounds(orc: Orchestrator, clock: FixedClock) -> None:
    store = MemgraphStore(orc, ttl={"default_ttl": 1.0, "refresh_on_read": False})
    store.put(USER, "k", {"x": 1})
    clock.advance(ms=30_000)
    assert value(store) == {"x": 1}
    store.put(USER, "k", {"x": 1})
    clock.advance(ms=59_999)
    assert value(store) == {"x": 1}
    clock.advance(ms=1)
    assert value(store) is None
    store.put(USER, "k", {"x": 1}, ttl=None)
    clock.advance(days=1)
    assert value(store) == {"x": 1}
    for wrong in (0.0, -1.0, float("inf"), float("nan"), 1e12):
        with pytest.raises(InvalidInput):
            store.put(USER, "k", {}, ttl=wrong)


def test_what_a_search_hands_out_is_in_a_receipt(orc: Orchestrator, store: MemgraphStore) -> None:
    store.put(USER, "k", {"x": "heron"})
    store.put(USER, "other", {"x": "lemon"})
    [memory] = [each for each in orc.memories.list() if "heron" in each.content]
    for _ in range(16):
        store.search(USER, query="heron", limit=1)
    assert orc.get(memory.memory_id).access_count == 16
    [lemon] = [each for each in orc.memories.list() if "lemon" in each.content]
    assert lemon.access_count == 0


def test_stores_of_two_places_do_not_see_one_another(service: MemoryService) -> None:
    service.orchestrator("orc-1", create=True)
    viewer = Viewer(
        clearance=Sensitivity.CONFIDENTIAL,
        project_ids=frozenset({"p", "q"}),
        session_ids=frozenset({"s"}),
    )
    orc = service.orchestrator("orc-1", viewer=viewer)
    agent = service.orchestrator("orc-1", viewer=Viewer(agent_id="bee"))
    stores = {
        "global": MemgraphStore(orc),
        "p": MemgraphStore(orc, scope="project", scope_id="p"),
        "q": MemgraphStore(orc, scope=Scope.PROJECT, scope_id="q"),
        "s": MemgraphStore(orc, scope="session", scope_id="s"),
        "agent": MemgraphStore(agent),
    }
    for name, store in stores.items():
        assert store.list_namespaces() == []
        store.put(USER, "k", {"heron": name})
    for name, store in stores.items():
        assert value(store) == {"heron": name}
        assert [each.value for each in store.search((), query="heron")] == [{"heron": name}]
        store.delete(USER, "k")
        store.put((name,), "k", {})
        assert store.list_namespaces() == [(name,)]


def test_a_store_that_would_not_see_its_items_is_refused(
    service: MemoryService, orc: Orchestrator
) -> None:
    for fields in (
        {"scope": "project", "scope_id": "p"},
        {"sensitivity": Sensitivity.RESTRICTED},
    ):
        with pytest.raises(AccessDenied):
            MemgraphStore(orc, **fields)  # type: ignore[arg-type]  # of mixed types
    log = service.paths("orc-1").log_file.read_text(encoding="utf-8")
    assert log.count('"event": "access.denied"') == 2
    for wrong in ({"scope": "nowhere"}, {"scope": "project"}, {"importance": 101}):
        with pytest.raises(InvalidInput):
            MemgraphStore(orc, **wrong)  # type: ignore[arg-type]  # as above


def test_items_are_memories_and_no_statements(orc: Orchestrator, store: MemgraphStore) -> None:
    store.put(USER, "k", {"memory": "Ann works in Turin"}, index=["memory"])
    [item] = orc.recall("Where does Ann work?").items
    assert item.memory.content == "Ann works in Turin"
    assert item.memory.kind is MemoryKind.FACT
    assert item.memory.decay_rate == 0.0
    # Said in a conversation it is a fact of its own, whatever becomes of the item.
    orc.save_episode("Fact: Ann works in Turin.", session_id="s1", source_role="user")
    orc.sessions.end("s1")
    orc.jobs.consolidate()
    store.delete(USER, "k")
    facts = orc.memories.list(kinds=(MemoryKind.FACT,))
    assert len(facts) == 1
    assert "Turin" in facts[0].content
    assert orc.contradictions.list().items == ()


def test_the_event_loop_goes_on(store: MemgraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    gone_on = threading.Event()
    read = items_rows.find

    def slow(*given: Any) -> Any:
        seen.append(threading.current_thread())
        assert gone_on.wait(60)
        return read(*given)

    monkeypatch.setattr(items_rows, "find", slow)

    async def both() -> None:
        asked = asyncio.ensure_future(store.aget(USER, "k"))
        while not (seen or asked.done()):
            await asyncio.sleep(0.01)
        assert not asked.done()
        gone_on.set()
        assert await asked is None

    asyncio.run(both())
    assert threading.main_thread() not in seen


def test_processes_share_a_store(
    service: MemoryService, orc: Orchestrator, store: MemgraphStore
) -> None:
    store.put(USER, "shared", {"at": -1})
    workers = [Process(store_workers.put, service.root, worker) for worker in "ab"]
    assert [each.wait() for each in workers] == [0, 0]
    assert len(store.search(USER, limit=100)) == 2 * store_workers.PUTS + 1
    assert value(store, key="shared")["at"] == store_workers.PUTS - 1
    everything = orc.memories.list(statuses=(), limit=100)
    shared = [each for each in everything if each.item_id == "store/users.alice..shared"]
    assert len(shared) == 2 * store_workers.PUTS + 1
    assert [each.status for each in shared].count(MemoryStatus.ACTIVE) == 1
    assert orc.verify().ok


def test_an_item_is_one_look_at_the_index(orc: Orchestrator, service: MemoryService) -> None:
    handle = NamespaceHandle(orc)
    store = MemgraphStore(orc)
    for at in range(30):
        store.put((f"n{at % 3}",), str(at), {"n": at})
    statements: list[str] = []
    with service.opened("orc-1") as opened, opened.database.read() as connection:
        raw = connection.driver
        assert raw is not None
        raw.set_trace_callback(statements.append)
        place = handle._place
        items_rows.find(connection, place, ["store/n1..1"])
        items_rows.newest(connection, place, ("n1",))
        found = items_rows.namespaces(connection, place, ())
        raw.set_trace_callback(None)
        asked = [each for each in statements if "FROM memories" in each]
        plans = [
            " ".join(row[-1] for row in raw.execute(f"EXPLAIN QUERY PLAN {each}")) for each in asked
        ]
    assert found == [("n0",), ("n1",), ("n2",)]
    # One look for each namespace and one that finds no more.
    assert len(asked) == 2 + len(found) + 1
    assert all("ix_memories_item_id" in plan for plan in plans)
    assert not any("SCAN memories" in plan or "SCAN m " in plan for plan in plans)
    assert not any("content" in each for each in asked[2:])


def test_many_items_that_say_the_same_are_not_read_for_one_more(
    orc: Orchestrator, store: MemgraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.batch([PutOp(USER, str(at), {"done": False}) for at in range(50)])
    asked: list[Sequence[str]] = []
    existing = memories.existing_ids

    def counted(connection: Any, ids: Sequence[str], *rest: Any, **named: Any) -> set[str]:
        asked.append(ids)
        return existing(connection, ids, *rest, **named)

    monkeypatch.setattr(memories, "existing_ids", counted)
    store.put(USER, "one more", {"done": False})
    store.put(USER, "1", {"done": False}, index=False)
    assert max(map(len, asked)) <= 2
    # The same text without a name is a memory of its own.
    assert orc.remember('{"done": false}') != orc.remember('{"done": false}', item_id="mine")
    assert len(orc.memories.list(limit=100)) == 53


def test_a_store_neither_fills_nor_empties_a_tier(service: MemoryService) -> None:
    service.orchestrator("orc-1", create=True)
    viewer = Viewer(project_ids=frozenset({"p"}))
    orc = service.orchestrator("orc-1", viewer=viewer)
    store = MemgraphStore(orc, scope="project", scope_id="p")
    store.put(USER, "k", {"x": 1})
    project = DatabaseBackend(orc, Scope.PROJECT, "p")
    assert project.count() == 0
    assert project.list_all() == []
    project.clear("over")
    assert value(store) == {"x": 1}


@pytest.mark.reads_pairs
def test_what_a_model_remembers_is_not_held_against_an_item(
    orc: Orchestrator, store: MemgraphStore
) -> None:
    store.put(USER, "home", {"said": "Ann lives in Turin."}, index=["said"])
    told = orc.agents.propose_fact("Ann lives in Rome.")
    orc.settle()
    assert orc.graph.subgraph([told.memory_id]).edges == ()


def test_a_reflection_is_not_made_of_items(
    service: MemoryService, orc: Orchestrator, store: MemgraphStore, clock: FixedClock
) -> None:
    for at in range(30):
        store.put(USER, str(at), {"said": f"Ann paid invoice {at} of the heron fund."})
    clock.advance(days=2)
    with service.opened("orc-1") as opened:
        reflecting.reflect(opened, now_ms=clock.now_ms(), actor="test")
    assert orc.memories.latest_reflection() is None
    for at in range(30):
        orc.remember(f"Ann paid invoice {at} of the heron fund.", type="Decision")
    clock.advance(days=2)
    with service.opened("orc-1") as opened:
        reflecting.reflect(opened, now_ms=clock.now_ms(), actor="test")
    assert orc.memories.latest_reflection() is not None


def test_an_export_brings_a_store_along(
    service: MemoryService, orc: Orchestrator, store: MemgraphStore
) -> None:
    store.put(USER, "k", {"x": "a  b\nc", "y": [1, {"z": None}]})
    store.put(USER, "path", {"x": "a  b", "y": 1}, index=["x"])
    store.put(USER, "k", {"x": "a b\nc", "y": [1, {"z": None}]})
    service.import_lines("orc-2", BytesIO(b"".join(orc.exchange.export_lines())))
    other = service.orchestrator("orc-2")
    copied = MemgraphStore(other)
    for key in ("k", "path"):
        assert repr(value(copied, key=key)) == repr(value(store, key=key))
    assert copied.search(USER, query="b")[0].score is not None
