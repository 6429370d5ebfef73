"""Whether a ground still holds, told on to what stands on it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memgraph.rules.evidence import (
    MAX_HOPS,
    Dependency,
    RefutedEvidence,
    broken_paths,
    evidence_graph,
)

names = st.sampled_from("abcdef")
bases = st.lists(
    st.tuples(names, names).filter(lambda ends: ends[0] != ends[1]), max_size=12, unique=True
).map(lambda pairs: [Dependency(one, ground, None) for one, ground in pairs])
endings = st.dictionaries(
    names,
    st.builds(RefutedEvidence, st.integers(0, 3), st.frozensets(names, max_size=2)),
    max_size=4,
)


def ways(bases: list[Dependency], start: str, goal: str, avoiding: frozenset[str]) -> list[int]:
    """Lengths of all ways without a circle from a memory down to a ground."""
    found: list[int] = []

    def down(one: str, passed: tuple[str, ...]) -> None:
        if one == goal:
            found.append(len(passed))
            return
        for basis in bases:
            if basis.dependent_id == one and one not in (*passed, *avoiding):
                down(basis.ground_id, (*passed, one))

    down(start, ())
    return [each for each in found if each]


@given(bases, endings, st.integers(0, 4))
def test_the_way_is_a_shortest_one_to_the_ground_that_ended_last(
    bases: list[Dependency], refuted: dict[str, RefutedEvidence], max_hops: int
) -> None:
    found = broken_paths(evidence_graph(bases), refuted, max_hops=max_hops)
    for start in "abcdef":
        reachable = {
            ground: min(lengths)
            for ground, ending in refuted.items()
            if ground != start
            and (lengths := ways(bases, start, ground, ending.replaced_by))
            and min(lengths) <= max_hops
        }
        if not reachable:
            assert start not in found
            continue
        latest = max(reachable, key=lambda one: (refuted[one].since, one))
        path = found[start]
        assert path[0].dependent_id == start
        assert path[-1].ground_id == latest
        assert len(path) == reachable[latest]
        assert all(step in bases for step in path)
        assert all(one.ground_id == two.dependent_id for one, two in pairwise(path))


@given(bases, endings)
def test_the_order_in_which_it_is_told_does_not_matter(
    bases: list[Dependency], refuted: dict[str, RefutedEvidence]
) -> None:
    there = broken_paths(evidence_graph(bases), refuted)
    back = broken_paths(evidence_graph(bases[::-1]), dict(reversed(refuted.items())))
    assert there == back


def test_far_away_it_is_not_told_on() -> None:
    tower = [Dependency(str(floor + 1), str(floor), None) for floor in range(MAX_HOPS + 2)]
    found = broken_paths(evidence_graph(tower), {"0": RefutedEvidence(0)})
    assert set(found) == {str(floor) for floor in range(1, MAX_HOPS + 1)}
    assert broken_paths(evidence_graph(tower), {}) == {}
