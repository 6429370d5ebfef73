"""What a reranker's order does to an answer, whatever the order is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.model.enums import EdgeType, MarkKind, Sensitivity
from memgraph.model.recall import (
    MAX_TOP_N,
    Bundle,
    Degraded,
    Mark,
    RecallItem,
    RecallRequest,
)
from memgraph.model.values import Edge, Memory, StoredSource
from memgraph.retrieval.recall import EDGES_PER_MEMORY, MAX_EDGES_PER_ITEM
from memgraph.retrieval.reranking import LEG, reranked, sendable, widened

K = 60


def item(name: str, score: float = 0.0, **fields: Any) -> RecallItem:
    """A recalled memory; ``source``, ``cost`` and ``sensitivity`` are those of the memory."""
    source = StoredSource.model_construct(source_id=fields.pop("source", f"src-{name}"))
    memory = Memory.model_construct(
        memory_id=name,
        content=f"text of {name}",
        created_at=fields.pop("created_at", 1),
        event_time=None,
        source_id=source.source_id,
        token_cost=fields.pop("cost", 1),
        sensitivity=fields.pop("sensitivity", Sensitivity.INTERNAL),
    )
    given = {
        "memory": memory,
        "source": source,
        "score": score,
        "legs": {"text": 1},
        "modifiers": {"importance": 1.0},
        "effective_confidence": 1.0,
        "citation": name,
        "contradicted_by": (),
        "marks": tuple(contradicts(name, other) for other in fields.get("contradicted_by", ())),
        "brought_by": None,
    }
    return RecallItem.model_construct(**(given | fields))


def contradicts(name: str, other: str) -> Mark:
    edge_id = "-".join(sorted((name, other)))
    return Mark(kind=MarkKind.CONTRADICTS, memory_id=other, weight=1.0, edge_id=edge_id)


def bundle(*items: RecallItem, **fields: Any) -> Bundle:
    given = {
        "receipt_id": "rcl_1",
        "query": "q",
        "at": 1,
        "items": items,
        "edges": (),
        "sources": tuple(each.source for each in items),
        "degraded": (),
        "cut": False,
        "cut_reasons": (),
        "token_cost": sum(each.memory.token_cost for each in items),
    }
    return Bundle.model_construct(**(given | fields))


def edge(name: str, from_id: str, to_id: str, **fields: Any) -> Edge:
    given = {"edge_type": EdgeType.RELATED_TO, "weight": 1.0, "partial": False}
    return Edge.model_construct(edge_id=name, from_id=from_id, to_id=to_id, **(given | fields))


def amends(name: str, from_id: str, to_id: str, weight: float = 1.0) -> Edge:
    return edge(name, from_id, to_id, edge_type=EdgeType.UPDATES, partial=True, weight=weight)


def take(pool: Bundle, order: Sequence[str], **changed: Any) -> Bundle:
    given = {"top_n": 100, "token_budget": None, "rrf_k": K, "weight": 20.0}
    return reranked(pool, order, **(given | changed))


ABC = bundle(item("a", 0.3), item("b", 0.2), item("c", 0.1))


def test_the_order_is_one_more_leg_of_the_fusion() -> None:
    modifiers = {"importance": 1.02, "recency": 0.5}
    pool = bundle(item("a", 0.3), item("b", 0.2, modifiers=modifiers), item("c", 0.1))
    found = take(pool, ["c", "b"], weight=3.0)
    assert [each.legs for each in found.items] == [
        {"text": 1},
        {"text": 1, LEG: 2},
        {"text": 1, LEG: 1},
    ]
    assert found.ids == ("a", "b", "c")
    scores = {each.memory.memory_id: each.score for each in found.items}
    assert scores["a"] == 0.3
    assert scores["b"] == pytest.approx(0.2 + 1.02 * 0.5 * 3.0 / (K + 2))
    assert scores["c"] == pytest.approx(0.1 + 3.0 / (K + 1))
    assert found.items[1].modifiers == modifiers


def test_a_heavy_order_wins_and_an_equal_score_goes_by_id() -> None:
    assert take(ABC, ["c", "b", "a"], weight=100.0 * K).ids == ("c", "b", "a")
    assert take(ABC, ["c", "b", "a"], weight=0.0).ids == ("a", "b", "c")
    even = bundle(item("b", 0.5), item("a", 0.5))
    assert take(even, []).ids == ("a", "b")


def test_a_memory_that_was_kept_from_the_model_keeps_its_place() -> None:
    pool = bundle(*(item(name, 0.9 - place / 10) for place, name in enumerate("abcde")))
    found = take(pool, ["e", "c", "a"], withheld={"b", "d"}, weight=1_000.0)
    assert found.ids == ("e", "b", "c", "d", "a")
    assert [LEG in each.legs for each in found.items] == [True, False, True, False, True]


def test_both_sides_of_a_contradiction_stand_together() -> None:
    pool = bundle(
        item("a", 0.9),
        item("b", 0.8, contradicted_by=("x",)),
        item("x", 0.1, contradicted_by=("b", "c")),
        item("c", 0.7, contradicted_by=("x", "z")),
        item("z", brought_by="c", legs={}, contradicted_by=("c",)),
    )
    found = take(pool, ["c", "a", "b"], weight=1_000.0)
    assert found.ids == ("z", "x", "c", "a", "b")
    assert found.items[0].brought_by == "c"
    assert take(pool, ["c"], weight=1_000.0, top_n=2).ids == ("z", "x")


def test_what_changed_a_memory_goes_before_it() -> None:
    mark = {"weight": 0.9, "edge_id": "e1"}
    changes = Mark(kind=MarkKind.CHANGES, memory_id="b", **mark)
    changed = Mark(kind=MarkKind.CHANGED_BY, memory_id="z", **mark)
    pool = bundle(
        item("a", 0.9),
        item("z", 0.8, marks=(changes,), modifiers={"importance": 1.0, "pair": 4.0}),
        item("b", 0.7, marks=(changed,)),
    )
    found = take(pool, ["b", "a"], weight=1_000.0)
    assert found.ids == ("z", "b", "a")
    assert take(pool, ["a", "z"], weight=1_000.0).ids == ("a", "z", "b")
    assert take(pool, ["a", "z"], weight=20.0).items[1].modifiers == {"importance": 1.0}


def test_what_amended_a_memory_goes_before_it() -> None:
    pool = bundle(
        item("a", 0.9),
        item("b", 0.8),
        item("n", 0.2),
        item("m", 0.1),
        item("z", brought_by="b", legs={}),
        item("g", 0.05),
        edges=(
            amends("e4", "z", "b"),
            amends("e3", "n", "b"),
            amends("e2", "m", "b"),
            amends("e1", "gone", "b"),
            amends("e0", "g", "a", weight=0.7),
        ),
    )
    found = take(pool, ["b", "a", "m"], weight=1_000.0)
    assert found.ids == ("m", "n", "b", "a", "g", "z")
    assert take(pool, ["b"], weight=1_000.0, top_n=3).ids == ("n", "m", "b")


def test_who_stands_first_now_has_brought_the_other_side() -> None:
    pool = bundle(
        item("a", 0.9, contradicted_by=("z",)),
        item("z", brought_by="a", legs={}),
        item("b", 0.8, contradicted_by=("z",)),
    )
    found = take(pool, ["b", "a"], weight=1_000.0)
    assert found.ids == ("z", "b", "a")
    assert found.items[0].brought_by == "b"
    assert found.items[0].score == 0.0


def test_what_is_cut_is_told() -> None:
    whole = take(ABC, ["c"])
    assert (whole.cut, whole.cut_reasons) == (False, ())
    assert take(ABC, ["c"], top_n=2).cut_reasons == ("top_n",)
    cut_before = bundle(*ABC.items, cut=True, cut_reasons=("max_edges", "top_n"))
    assert take(cut_before, ["c"]).cut_reasons == ("top_n",)
    dear = bundle(item("a", 0.3, cost=5), item("b", 0.2, cost=7), item("c", 0.1, cost=4))
    found = take(dear, ["a", "b", "c"], token_budget=9, top_n=3)
    assert (found.ids, found.token_cost) == (("a", "c"), 9)
    assert found.cut_reasons == ("token_budget",)
    assert take(dear, [], token_budget=3, top_n=2).cut_reasons == ("token_budget", "top_n")


def test_sources_and_what_was_missing_follow_the_items() -> None:
    told = Degraded(code="vector.pending", text="x")
    pool = bundle(
        item("a", 0.3, source="s2"),
        item("b", 0.2, source="s1"),
        item("c", 0.1, source="s2"),
        degraded=(told,),
    )
    more = Degraded(code="rerank.withheld", text="y")
    found = take(pool, ["c", "b"], weight=1_000.0, top_n=2, degraded=[more])
    assert [each.source_id for each in found.sources] == ["s1", "s2"]
    assert found.degraded == (told, more)
    assert found.receipt_id == pool.receipt_id
    assert [each.source_id for each in take(pool, [], top_n=1).sources] == ["s2"]


def test_edges_are_those_of_the_items_within_the_bounds_of_recall() -> None:
    hub = [edge(f"e{place:02}", "a", f"far{place}") for place in range(EDGES_PER_MEMORY + 3)]
    far = edge("f", "b", "c")
    found = take(bundle(*ABC.items, edges=(*hub, far)), ["a"], top_n=1, weight=1_000.0)
    assert found.edges == tuple(hub[:EDGES_PER_MEMORY])
    both = take(bundle(*ABC.items, edges=(*hub, far)), ["a", "b", "c"])
    assert far in both.edges
    out_and_in = [*hub, *(edge(f"i{place}", f"far{place}", "a") for place in range(9))]
    dense = take(bundle(*ABC.items, edges=tuple(out_and_in)), ["a"], top_n=1, weight=1_000.0)
    assert dense.edges == (*hub[:EDGES_PER_MEMORY], *out_and_in[len(hub) :])[:MAX_EDGES_PER_ITEM]
    assert dense.cut_reasons == ("max_edges", "top_n")


def test_only_what_may_be_seen_is_sent() -> None:
    pool = bundle(
        item("a", 0.9, sensitivity=Sensitivity.RESTRICTED),
        item("b", 0.8, sensitivity=Sensitivity.PUBLIC),
        item("z", brought_by="b", legs={}),
        item("c", 0.7, sensitivity=Sensitivity.CONFIDENTIAL),
        item("d", 0.6),
        item("e", 0.5, sensitivity=Sensitivity.RESTRICTED),
    )
    sent, withheld = sendable(pool, 4, Sensitivity.INTERNAL)
    assert [each.memory.memory_id for each in sent] == ["b", "d"]
    assert withheld == {"a", "c"}
    everything, nothing = sendable(pool, 50, Sensitivity.RESTRICTED)
    assert [each.memory.memory_id for each in everything] == ["a", "b", "c", "d", "e"]
    assert nothing == frozenset()


def test_an_answer_to_filters_alone_is_not_sent() -> None:
    pool = bundle(item("a", 0.3, legs={"filter": 1}), item("b", 0.2, legs={"filter": 2}))
    assert sendable(pool, 50, Sensitivity.RESTRICTED) == ([], frozenset())


@pytest.mark.parametrize(
    ("top_n", "candidates", "expected"), [(20, 50, 70), (300, 50, 320), (990, 50, MAX_TOP_N)]
)
def test_more_is_recalled_than_is_handed_out(top_n: int, candidates: int, expected: int) -> None:
    request = RecallRequest(query="q", top_n=5, token_budget=10, tags=("t",))
    wide = widened(request, top_n, candidates)
    assert wide == RecallRequest(query="q", top_n=expected, tags=("t",))


NAMES = [f"m{place:02}" for place in range(12)]


@st.composite
def pools(draw: st.DrawFn) -> Bundle:
    """Any bundle that recall could give, and some that it would not."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    others = st.lists(st.sampled_from(NAMES), unique=True, max_size=3).map(tuple)
    brought = st.none() | st.sampled_from(NAMES)
    return bundle(
        *(
            item(
                name,
                draw(st.floats(0.0, 1.0)),
                cost=draw(st.integers(0, 9)),
                contradicted_by=draw(others),
                brought_by=draw(brought),
                modifiers={"importance": draw(st.floats(0.25, 1.02))},
            )
            for name in names
        )
    )


ORDERS = st.permutations(NAMES) | st.lists(st.sampled_from([*NAMES, "nobody", ""]), max_size=40)


@given(pools(), ORDERS, st.sets(st.sampled_from(NAMES)), st.floats(0.0, 100.0))
def test_no_order_loses_or_doubles_a_candidate(
    pool: Bundle, order: list[str], withheld: set[str], weight: float
) -> None:
    found = take(pool, order, top_n=len(pool.items), withheld=withheld, weight=weight)
    assert sorted(found.ids) == sorted(pool.ids)
    assert not found.cut
    old = {each.memory.memory_id: each for each in pool.items}
    for each in found.items:
        before = old[each.memory.memory_id]
        rank = each.legs.get(LEG)
        gained = 0.0 if rank is None else math.prod(before.modifiers.values()) * weight / (K + rank)
        assert each.score == before.score + gained
        assert {**each.legs, LEG: 0} == {**before.legs, LEG: 0}
        assert (each.memory, each.modifiers) == (before.memory, before.modifiers)


@given(pools(), ORDERS, st.integers(1, 14), st.none() | st.integers(0, 40))
def test_limits_cut_the_end_of_the_same_order(
    pool: Bundle, order: list[str], top_n: int, budget: int | None
) -> None:
    whole = take(pool, order)
    found = take(pool, order, top_n=top_n, token_budget=budget)
    kept = [each for each in whole.ids[:top_n] if each in found.ids]
    assert list(found.ids) == kept
    assert ("top_n" in found.cut_reasons) == (top_n < len(pool.items))
    if budget is None:
        assert found.ids == whole.ids[:top_n]
    else:
        assert found.token_cost <= budget
    assert found.cut == (set(found.ids) != set(pool.ids))
