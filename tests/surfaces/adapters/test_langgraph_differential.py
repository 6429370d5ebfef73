"""Random sequences of operations on LangGraph's own ``InMemoryStore`` and on ours: one answer.

What the two may differ in is said here once: the order of what is found (ours: the last put first),
times of creation (ours stay), namespaces that hold nothing (ours are not listed), and comparisons
of what has no order (ours do not hold, the reference raises). There is no conformance suite for
stores.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from working import working

from memgraph import MemoryService, Viewer
from memgraph.clock import FixedClock
from memgraph.surfaces.adapters.langgraph import MemgraphStore

EVERYTHING = 1_000_000
PROJECTS = count()

labels = st.sampled_from(["a", "ab", "a-b", "a/", "b", "é", "store"])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
prefixes = st.lists(labels, max_size=2).map(tuple)
names = st.sampled_from(["", "k", "K", " k", ".", "..", "a.b", "名"])
texts = st.text(alphabet=' \n\t\\"/nu\0\x85\xa0é\u0301xA1名', max_size=6)
numbers = st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -0.0, 2**70])
scalars = st.none() | st.booleans() | numbers | texts | st.sampled_from(["1", "2.5"])
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
fields = st.sampled_from(["x", "y", "z"])
values = st.dictionaries(fields, nested, max_size=3)
numeric = numbers | st.sampled_from(["1", "2.5"])
comparisons = st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), numeric, min_size=1, max_size=2
)
equalities = st.dictionaries(st.sampled_from(["$eq", "$ne"]), scalars, min_size=1, max_size=2)
filters = st.none() | st.dictionaries(fields, nested | comparisons | equalities, max_size=2)
paths = st.lists(labels | st.just("*"), min_size=1, max_size=2).map(tuple)
conditions = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), paths)

gets = st.builds(GetOp, namespaces, names, st.booleans())
indexes = st.sampled_from([None, False, ["x"]])
puts = st.builds(PutOp, namespaces, names, st.none() | values, indexes, ttl=st.none())
searches = st.builds(
    SearchOp,
    prefixes,
    filter=filters,
    limit=st.integers(0, 5),
    offset=st.integers(0, 3),
    query=st.none(),
    refresh_ttl=st.booleans(),
)
questions = st.builds(
    SearchOp,
    prefixes,
    filter=filters,
    limit=st.just(EVERYTHING),
    offset=st.just(0),
    query=texts.map(lambda text: text.replace("\0", "")) | st.sampled_from(["x", "A1"]),
    refresh_ttl=st.booleans(),
)
listings = st.builds(
    ListNamespacesOp,
    st.none() | st.lists(conditions, max_size=2).map(tuple),
    st.none() | st.integers(1, 3),
    st.integers(0, 5),
    st.integers(0, 2),
)
operations = st.one_of(puts, puts, gets, searches, questions, listings)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryService]:
    with working(tmp_path_factory.mktemp("stores") / "root") as made:
        yield made


def said(item: Item) -> tuple[tuple[str, ...], str, str]:
    return item.namespace, item.key, repr(item.value)


def fits(item: Item, wanted: dict[str, Any] | None) -> bool:
    """Whether the reference finds an item by a filter; what it cannot compare does not fit."""
    lone = InMemoryStore()
    lone.put(("lone",), "lone", item.value)
    try:
        return bool(lone.search((), filter=wanted))
    except (TypeError, ValueError):
        return False


class Stores(RuleBasedStateMachine):
    service: MemoryService
    compared: ClassVar[Counter[str]]

    @initialize()
    def open(self) -> None:
        project = f"p{next(PROJECTS)}"
        handle = self.service.orchestrator(
            "orc-1", create=True, viewer=Viewer(project_ids=frozenset({project}))
        )
        self.ours = MemgraphStore(handle, scope="project", scope_id=project)
        self.reference = InMemoryStore()
        self.clock = self.service.clock
        self.turn = 0
        # By name the batch in which it was put last, and the number of its version.
        self.put_in: dict[tuple[tuple[str, ...], str], tuple[int, int]] = {}
        self.what: dict[tuple[tuple[str, ...], str], tuple[str, Any]] = {}
        self.versions = count()

    @rule(ops=st.lists(operations, min_size=1, max_size=6), is_async=st.booleans())
    def batch(self, ops: list[Op], is_async: bool) -> None:
        self.compare(ops, is_async)

    @precondition(lambda self: self.put_in)
    @rule(data=st.data(), is_async=st.booleans())
    def get_what_was_put(self, data: st.DataObject, is_async: bool) -> None:
        namespace, key = data.draw(st.sampled_from(sorted(self.put_in)))
        self.compare([GetOp(namespace, key)], is_async)

    def compare(self, ops: list[Op], is_async: bool) -> None:
        assert isinstance(self.clock, FixedClock)
        self.clock.advance(ms=1)
        expected = [self.expect(op) for op in ops]
        self.reference.batch([op for op in ops if isinstance(op, PutOp)])
        found = asyncio.run(self.ours.abatch(ops)) if is_async else self.ours.batch(ops)
        assert [self.shown(op, each) for op, each in zip(ops, found, strict=True)] == expected
        self.compared.update(
            type(op).__name__ for op, each in zip(ops, expected, strict=True) if each
        )
        self.note(op for op in ops if isinstance(op, PutOp))

    @invariant()
    def everything_is_there(self) -> None:
        if not hasattr(self, "ours"):
            return
        items = self.reference.search((), limit=EVERYTHING)
        assert {said(each) for each in self.ours.search((), limit=EVERYTHING)} == {
            said(each) for each in items
        }
        for each in items[:3]:
            found = self.ours.get(each.namespace, each.key)
            assert found is not None
            assert said(found) == said(each)
            assert found.created_at <= found.updated_at

    def expect(self, op: Op) -> Any:
        """What the reference answers, in our order."""
        if isinstance(op, PutOp):
            return None
        if isinstance(op, SearchOp):
            everything = self.reference.search(op.namespace_prefix, limit=EVERYTHING)
            fitting = [each for each in everything if fits(each, op.filter)]
            if op.query:
                return sorted(map(said, fitting))
            fitting.sort(key=lambda each: self.put_in[each.namespace, each.key], reverse=True)
            return [said(each) for each in fitting[op.offset : op.offset + op.limit]]
        [found] = self.reference.batch([op])
        # Asking for an item of an unknown namespace makes it one that holds nothing.
        for empty in [each for each, items in self.reference._data.items() if not items]:
            del self.reference._data[empty]
        return said(found) if isinstance(found, Item) else found

    def shown(self, op: Op, found: Any) -> Any:
        if isinstance(op, SearchOp):
            assert all(isinstance(each, SearchItem) for each in found)
            items = [said(each) for each in found]
            return sorted(items) if op.query else items
        return said(found) if isinstance(found, Item) else found

    def note(self, ops: Iterable[PutOp]) -> None:
        self.turn += 1
        for (namespace, key), op in {(op.namespace, op.key): op for op in ops}.items():
            name = namespace, key
            if op.value is None:
                self.put_in.pop(name, None)
                self.what.pop(name, None)
                continue
            put = repr(op.value), op.index
            version = self.put_in[name][1] if self.what.get(name) == put else next(self.versions)
            self.put_in[name], self.what[name] = (self.turn, version), put
        for empty in [each for each, items in self.reference._data.items() if not items]:
            del self.reference._data[empty]


def test_it_answers_as_the_reference_does(service: MemoryService) -> None:
    class Bound(Stores):
        pass

    Bound.service = service
    Bound.compared = Counter()
    # Each step works on a database; shrinking a failure would take minutes of that.
    chosen = settings(
        max_examples=25,
        stateful_step_count=15,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(Bound, settings=chosen)
    # Each kind of question had answers that are not empty.
    assert Bound.compared.keys() == {"GetOp", "SearchOp", "ListNamespacesOp"}
