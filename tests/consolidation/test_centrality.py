"""PageRank over a week's memories, compared with networkx and checked by its properties."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

from memgraph.consolidation.digest import (
    DAMPING,
    WeightedEdge,
    central,
    derivation_ties,
    edge_ties,
    entity_ties,
)
from memgraph.model.enums import EdgeType

names = st.sampled_from([f"fact_{number}" for number in range(8)])
preferences = st.dictionaries(names, st.floats(0.01, 100), min_size=1)
ties = st.lists(st.builds(WeightedEdge, names, names, st.floats(0.05, 1)), max_size=20).map(
    lambda found: [tie for tie in found if tie.one != tie.other]
)


@given(preferences, ties)
def test_the_values_are_those_of_networkx(
    preference: dict[str, float], given: list[WeightedEdge]
) -> None:
    known = {tie for tie in given if tie.one in preference and tie.other in preference}
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(preference)
    for tie in known:
        before = graph.get_edge_data(tie.one, tie.other, {"weight": 0.0})["weight"]
        graph.add_edge(tie.one, tie.other, weight=before + tie.weight)
    expected = _pagerank_python(
        graph, alpha=DAMPING, personalization=preference, max_iter=500, tol=1e-12
    )
    found = central(preference, given)
    assert found == pytest.approx(expected, abs=2e-4)
    assert sum(found.values()) == pytest.approx(1.0)


@given(preferences, ties, st.randoms())
def test_the_order_of_what_is_given_changes_no_bit(
    preference: dict[str, float], given: list[WeightedEdge], random: object
) -> None:
    shuffled, turned = list(given), dict(reversed(preference.items()))
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a Random
    assert central(preference, given) == central(turned, shuffled)


def test_what_many_share_stands_in_the_middle() -> None:
    facts = dict.fromkeys("abcd", 1.0)
    found = central(facts, edge_ties([(one, "d", EdgeType.RELATED_TO, 1.0) for one in "abc"]))
    assert max(found, key=lambda each: found[each]) == "d"
    assert found["a"] == pytest.approx(found["b"])


def test_an_entity_joins_those_that_name_it() -> None:
    links = [("leeds", "a"), ("leeds", "b"), ("marta", "c")]
    assert {tie.one for tie in entity_ties(links)} == {"entity:leeds"}
    found = central(dict.fromkeys("abc", 1.0), entity_ties(links))
    assert set(found) == {"a", "b", "c"}
    assert found["a"] + found["b"] < 1.0  # the entity holds a share of its own
    assert found["c"] < 1 / 3


def test_a_wider_known_entity_tells_less() -> None:
    few = entity_ties([("x", "a"), ("x", "b")])[0].weight
    many = entity_ties([("x", name) for name in "abcdefg"])[0].weight
    assert (few, many) == (pytest.approx(0.6309, abs=1e-4), pytest.approx(1 / 3))


def test_importance_alone_ranks_what_nothing_joins() -> None:
    assert central({"a": 3.0, "b": 1.0}, []) == pytest.approx({"a": 0.75, "b": 0.25})
    assert central({"a": 0.0}, derivation_ties([("a", "b")])) == {"a": 0.0}


def test_ends_that_are_not_of_the_week_do_nothing() -> None:
    outside = derivation_ties([("a", "ep_old"), ("ep_old", "b")])
    assert central({"a": 1.0, "b": 1.0}, outside) == central({"a": 1.0, "b": 1.0}, [])
