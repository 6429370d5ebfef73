"""What every memory backend does, asked of each."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from item_worlds import HOSTILE, KINDS, asked, filters, ids, item, items
from sampling import often

from memgraph import MemoryService, Orchestrator, Viewer
from memgraph.context.stores import InMemoryBackend, MemoryBackend, ProjectMemoryStore
from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.model.enums import Scope
from memgraph.operations.context.database_backend import DatabaseBackend
from memgraph.rules.filters import FIELDS, ORDER_FIELDS
from memgraph.rules.lifecycle import evicted

PROJECTS = frozenset({"web"})


@pytest.fixture(params=["memory", "database"])
def backend(request: pytest.FixtureRequest, storage_url: str) -> MemoryBackend:
    if request.param == "memory":
        return InMemoryBackend()
    service: MemoryService = request.getfixturevalue("service")
    service.orchestrator("orc-1", create=True)
    handle = service.orchestrator("orc-1", viewer=Viewer(project_ids=PROJECTS))
    return DatabaseBackend(handle, Scope.PROJECT, "web")


def names(found: list[ContextItem]) -> list[str]:
    return [each.context_item_id for each in found]


def filled(backend: MemoryBackend, *given: ContextItem) -> MemoryBackend:
    for each in given:
        backend.add(each)
    return backend


def test_a_backend_is_one(backend: MemoryBackend) -> None:
    assert isinstance(backend, MemoryBackend)


def test_an_empty_backend_holds_nothing(backend: MemoryBackend) -> None:
    assert (backend.count(), backend.list_all(), backend.query({})) == (0, [], [])
    assert backend.get("i-1") is None
    assert backend.delete("i-1") is False
    assert backend.clear() == 0


def test_what_is_added_is_there(backend: MemoryBackend) -> None:
    one = item(payload={"decision": "x", "why": [1, 2.5, None, {"a": "b"}]})

    backend.add(one)

    assert backend.get("i-1") == one
    assert backend.list_all() == backend.query({}) == [one]
    assert backend.count() == 1


def test_what_is_handed_out_is_a_copy(backend: MemoryBackend) -> None:
    one = item(payload={"text": "x", "list": []})
    backend.add(one)
    one.payload["list"].append("mine")

    for found in (backend.get("i-1"), *backend.list_all(), *backend.query({})):
        assert found is not None
        assert found.payload["list"] == []
        found.payload["list"].append("theirs")


def test_an_item_of_a_known_id_takes_its_place(backend: MemoryBackend) -> None:
    changes: list[dict[str, Any]] = [
        {"payload": {"decision": "something else"}},
        {"payload": {"decision": "what i-1 decides", "more": True}},
        {"payload": {"text": "what i-1 decides"}},
        {"importance": None},
        {"importance": 0.501},
        {"timestamp": "2026-01-01T01:00:00+01:00"},
        {"kind": "goal"},
        {"tags": ("project", "ops")},
        {"token_cost": 7},
        {"source": "global"},
    ]
    for change in changes:
        filled(backend, item(), item(**change))
        assert backend.list_all() == [item(**change)]
        assert backend.get("i-1") == item(**change)


def test_true_is_not_one(backend: MemoryBackend) -> None:
    filled(backend, item(payload={"text": "x", "n": 1}), item(payload={"text": "x", "n": True}))

    assert backend.list_all()[0].payload["n"] is True


def test_two_items_may_say_the_same(backend: MemoryBackend) -> None:
    filled(backend, item("a", payload={"text": "same"}), item("b", payload={"text": "same"}))

    assert backend.count() == 2


def test_what_is_deleted_is_gone_and_may_come_again(backend: MemoryBackend) -> None:
    filled(backend, item("a"), item("b"))

    assert backend.delete("a") is True
    assert backend.delete("a") is False
    assert names(backend.list_all()) == ["b"]
    backend.add(item("a"))
    assert backend.get("a") == item("a")


def test_clearing_tells_how_many_there_were(backend: MemoryBackend) -> None:
    filled(backend, item("a"), item("b"))

    assert backend.clear() == 2
    assert backend.count() == 0


@pytest.mark.engines
def test_the_order_is_that_of_the_instants(backend: MemoryBackend) -> None:
    filled(
        backend,
        item("noon", timestamp="2026-01-01T12:00:00Z"),
        item("earlier", timestamp="2026-01-01T13:30:00+02:00"),
        item("date", timestamp="2026-01-01"),
        item("also-noon", timestamp="2026-01-01T12:00:00.000400Z"),
    )

    newest_first = ["also-noon", "noon", "earlier", "date"]
    assert names(backend.query({})) == newest_first
    assert names(backend.query({}, order_by="-timestamp")) == names(backend.list_all())
    assert names(backend.list_all()) == ["date", "earlier", "also-noon", "noon"]
    assert names(backend.query({}, limit=2)) == newest_first[:2]


@pytest.mark.parametrize("field", ["importance", "token_cost"])
def test_what_has_no_value_comes_last_either_way(backend: MemoryBackend, field: str) -> None:
    filled(backend, item("none", **{field: None}), item("zero", **{field: 0}))
    filled(backend, item("one", **{field: 1}), item("also-none", **{field: None}))

    assert names(backend.query({}, order_by=field)) == ["one", "zero", "also-none", "none"]
    assert names(backend.query({}, order_by=f"-{field}")) == ["zero", "one", "also-none", "none"]


CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["a", "b", "c"]),
    ({"kind": "decision"}, ["a", "b"]),
    ({"kind": "Decision"}, []),
    ({"kind": "decision", "source": "global"}, ["b"]),
    ({"kind": {"$in": ["goal", "todo"]}}, ["c"]),
    ({"kind": {"$in": []}}, []),
    ({"kind": {"$ne": "goal"}}, ["a", "b"]),
    ({"kind": {"$gt": "decision", "$lt": "h"}}, ["c"]),
    ({"context_item_id": {"$gte": "b"}}, ["b", "c"]),
    ({"tags": ["x"]}, ["a", "b"]),
    ({"tags": ["y", "z"]}, ["b", "c"]),
    ({"tags": []}, []),
    ({"tags": {"$in": ["z"]}}, ["c"]),
    ({"tags": {"$eq": ["x"]}}, ["a"]),
    ({"tags": {"$ne": ["x"]}}, ["b", "c"]),
    ({"importance": 0.7}, ["a"]),
    ({"importance": None}, ["c"]),
    ({"importance": {"$ne": None}}, ["a", "b"]),
    ({"importance": {"$ne": 0.7}}, ["b", "c"]),
    ({"importance": {"$in": [None, 1]}}, ["b", "c"]),
    ({"importance": {"$gte": 0.7}}, ["a", "b"]),
    ({"importance": {"$gt": 0.7, "$lte": 1}}, ["b"]),
    ({"importance": {"$lt": 10**400}}, ["a", "b"]),
    ({"importance": {"$gt": -(10**30)}}, ["a", "b"]),
    ({"token_cost": {"$lte": 3}}, ["a"]),
    ({"timestamp": "2026-01-01T12:00:00+00:00"}, ["a"]),
    ({"timestamp": {"$gt": "2026-01-01T13:00:00+01:00"}}, ["b", "c"]),
    ({"timestamp": {"$in": ["2026-01-02"]}}, ["b"]),
]


def test_filters(backend: MemoryBackend) -> None:
    filled(
        backend,
        item(
            "a",
            timestamp="2026-01-01T12:00:00Z",
            tags=("x",),
            importance=0.7,
            token_cost=3,
            payload={"decision": "first", "why": "cost"},
        ),
        item(
            "b",
            timestamp="2026-01-02T00:00:00Z",
            source="global",
            tags=("x", "y"),
            importance=1.0,
            token_cost=4,
            payload={"decision": "second", "why": {"code": 3}},
        ),
        item(
            "c",
            kind="goal",
            timestamp="2026-01-03T00:00:00Z",
            tags=("z",),
            importance=None,
            token_cost=None,
            payload={"decision": "third", "list": [1, 2]},
        ),
    )

    for wanted, found in CASES:
        assert sorted(names(backend.query(wanted))) == found, wanted


REFUSED: list[tuple[Any, str]] = [
    ({"colour": "red"}, "colour"),
    ({"payload": {"$eq": {}}}, "payload"),
    ({"payload.code": 1}, "payload.code"),
    ({3: 1}, "3"),
    ({"kind": {}}, "kind"),
    ({"kind": {"$regex": "x"}}, "kind"),
    ({"kind": {"eq": "x"}}, "kind"),
    ({"kind": {"$eq": {"$eq": "x"}}}, "kind"),
    ({"kind": ["decision"]}, "kind"),
    ({"kind": 3}, "kind"),
    ({"kind": None}, "kind"),
    ({"kind": {"$in": "decision"}}, "kind"),
    ({"tags": "x"}, "tags"),
    ({"tags": [3]}, "tags"),
    ({"tags": {"$gt": ["x"]}}, "tags"),
    ({"importance": "0.7"}, "importance"),
    ({"importance": True}, "importance"),
    ({"importance": float("nan")}, "importance"),
    ({"importance": {"$gt": None}}, "importance"),
    ({"importance": {"$lt": float("inf")}}, "importance"),
    ({"importance": [0.7]}, "importance"),
    ({"timestamp": "yesterday"}, "timestamp"),
    ({"timestamp": None}, "timestamp"),
    ({"timestamp": 1.5}, "timestamp"),
    ({"timestamp": True}, "timestamp"),
    ([("kind", "decision")], "filters"),
]


def test_what_is_no_question_is_refused_by_the_name_of_its_field(backend: MemoryBackend) -> None:
    filled(backend, item())
    for wanted, field in REFUSED:
        with pytest.raises(InvalidInput) as caught:
            backend.query(wanted)
        assert caught.value.details["field"] == field
    orders: list[Any] = ["", "-", "--timestamp", "tags", "payload", "colour", None, 3]
    for order in orders:
        with pytest.raises(InvalidInput, match="order_by"):
            backend.query({}, order_by=order)
    limits: list[Any] = [0, -1, 1_000_001, True, 2.0, "3", None]
    for limit in limits:
        with pytest.raises(InvalidInput, match="limit"):
            backend.query({}, limit=limit)


def test_what_is_no_item_is_refused(backend: MemoryBackend) -> None:
    given_items: list[Any] = [None, {"context_item_id": "a"}, "a"]
    for given_item in given_items:
        with pytest.raises(InvalidInput, match="ContextItem"):
            backend.add(given_item)


def test_an_item_that_cannot_be_stored_leaves_everything_as_it_was(backend: MemoryBackend) -> None:
    filled(backend, item("a"))

    with pytest.raises(InvalidInput, match="tags"):
        backend.add(item("b", tags=tuple(map(str, range(65)))))

    assert names(backend.list_all()) == ["a"]


@pytest.mark.engines
def test_hostile_names_are_names(backend: MemoryBackend) -> None:
    filled(backend, item("other"))
    for hostile in HOSTILE:
        one = item(hostile, kind=hostile, source=hostile, tags=(hostile,), payload={hostile: "x"})
        backend.add(one)
        for wanted in (
            {"kind": hostile},
            {"source": {"$in": [hostile]}},
            {"tags": [hostile]},
            {"context_item_id": hostile},
        ):
            assert backend.query(wanted) == [one]
        assert backend.get(hostile) == one
        assert backend.delete(hostile) is True
    assert names(backend.list_all()) == ["other"]


def test_an_id_that_no_item_can_have_is_not_there(backend: MemoryBackend) -> None:
    for unheard_of in ("", "\ud800", "a\x00b", "x" * 600):
        assert backend.get(unheard_of) is None
        assert backend.delete(unheard_of) is False


@pytest.mark.engines
def test_what_is_too_much_is_evicted_with_the_write(backend: MemoryBackend) -> None:
    filled(
        backend,
        item("goal", kind="goal", importance=0.0),
        item("light", kind="reasoning", importance=0.1),
        item("unweighed", kind="reasoning", importance=None),
        item("old", kind="reasoning", importance=0.9, timestamp="2020-01-01"),
    )
    store = ProjectMemoryStore("web", backend, 3)

    new = store.add_convention("Short lines.", "python").context_item_id
    assert {*names(backend.list_all())} == {"goal", "old", new}
    kept = store.add_decision("Long lines.").context_item_id
    assert {*names(backend.list_all())} == {"goal", "old", kept}


def test_threads_do_not_disturb_one_another(backend: MemoryBackend) -> None:
    def work(thread: int) -> None:
        for number in range(6):
            backend.add(item(f"{thread}-{number}"))
            backend.add(item("shared", payload={"text": f"by {thread}, the {number}th"}))
            assert backend.get(f"{thread}-{number}") == item(f"{thread}-{number}")
        assert backend.delete(f"{thread}-0")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))

    assert backend.count() == 4 * 5 + 1
    assert backend.delete("shared") is True
    assert backend.get("shared") is None


@pytest.fixture(scope="module")
def handle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestrator]:
    """One database for all examples of a property; each has a project of its own in it."""
    with MemoryService(tmp_path_factory.mktemp("root"), environ={}, background=False) as made:
        made.orchestrator("orc-1", create=True)
        granted = Viewer(project_ids=frozenset(f"p-{number}" for number in range(1_000)))
        yield made.orchestrator("orc-1", viewer=granted)


def test_no_life_of_items_tells_the_backends_apart(handle: Orchestrator) -> None:
    fresh = iter(range(1_000))

    class Lives(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.place = f"p-{next(fresh)}"
            self.one = InMemoryBackend()
            self.other = DatabaseBackend(handle, Scope.PROJECT, self.place)

        @rule(one=items())
        def add(self, one: ContextItem) -> None:
            self.one.add(one)
            self.other.add(one)

        @rule(one=items(), most=st.integers(1, 4))
        def add_bounded(self, one: ContextItem, most: int) -> None:
            self.one.add(one)
            gone = evicted(self.one.list_all(), most, new=one.context_item_id)
            assert self.other.add_bounded(one, most) == gone
            for item_id in gone:
                self.one.delete(item_id)

        @rule(item_id=ids())
        def delete(self, item_id: str) -> None:
            assert self.one.delete(item_id) is self.other.delete(item_id)

        @rule(item_id=ids())
        def get(self, item_id: str) -> None:
            assert self.one.get(item_id) == self.other.get(item_id)

        @rule()
        def clear(self) -> None:
            assert self.one.clear() == self.other.clear()

        @rule()
        def reopen(self) -> None:
            self.other = DatabaseBackend(handle, Scope.PROJECT, self.place)

        @rule(wanted=filters(), order=st.sampled_from(ORDER_FIELDS), kind=st.sampled_from(KINDS))
        def ask(self, wanted: dict[str, Any], order: str, kind: str) -> None:
            for each in (wanted, wanted | {"kind": kind}):
                assert asked(self.one, each, 3, order) == asked(self.other, each, 3, order)

        @invariant()
        def hold_the_same(self) -> None:
            if hasattr(self, "other"):
                assert self.one.list_all() == self.other.list_all()
                assert self.one.count() == self.other.count()

    Lives.TestCase.settings = settings(max_examples=often(24), stateful_step_count=20)
    Lives.TestCase().runTest()

    assert handle.verify().findings == []


def test_every_field_of_an_item_can_be_asked_for() -> None:
    assert {*FIELDS, "payload"} == set(ContextItem.model_fields)
