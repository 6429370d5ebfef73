"""Pairs of memories as a graph from the later to the earlier statement."""

from collections.abc import Sequence
from itertools import pairwise

from memgraph.model.enums import MarkKind
from memgraph.rules.contradictions import UNDATED, ConflictSide, in_order
from memgraph.rules.marks import MarkGraph, Pair, PairKind, Replacement, Succession

OLD, MIDDLE, NEW = ConflictSide(1, "a"), ConflictSide(2, "b"), ConflictSide(3, "c")


def pair(one: ConflictSide, other: ConflictSide, kind: PairKind = PairKind.CONTRADICTS) -> Pair:
    later, earlier = in_order((one, other))
    return Pair(kind, later, earlier, 0.9, f"{later.memory_id}{earlier.memory_id}", "because")


def changes(*sides: ConflictSide) -> list[Pair]:
    return [pair(one, other, PairKind.CHANGES) for one, other in pairwise(sides)]


def graph_of(pairs: Sequence[Pair]) -> MarkGraph:
    graph = MarkGraph()
    graph.add_pairs(pairs)
    return graph


def kinds(pairs: MarkGraph, memory_id: str) -> Sequence[tuple[MarkKind, str]]:
    return [(mark.kind, mark.memory_id) for mark in pairs.marks(memory_id)]


def test_opponents_are_told_apart_by_their_time() -> None:
    pairs = graph_of([pair(OLD, MIDDLE), pair(NEW, OLD), pair(MIDDLE, OLD)])
    assert pairs.later("a") == ("c", "b")
    assert pairs.earlier("a") == ()
    assert pairs.earlier("c") == ("a",)
    assert pairs.opponents("a") == ("b", "c")
    assert pairs.is_contested("a")
    assert not pairs.is_apart


def test_of_one_moment_the_higher_id_is_the_later() -> None:
    pairs = graph_of([pair(ConflictSide(1, "b"), ConflictSide(1, "a"))])
    assert pairs.later("a") == ("b",)


def test_of_two_undated_sides_the_one_stored_first_comes_first() -> None:
    pairs = graph_of([pair(ConflictSide(UNDATED, "b"), ConflictSide(UNDATED, "a"))])
    assert pairs.later("b") == ("a",)
    assert pairs.note("a") == "probably contradicts b (undated)"


def test_an_undated_side_is_the_earlier() -> None:
    assert graph_of([pair(ConflictSide(UNDATED, "b"), OLD)]).later("b") == ("a",)


def test_without_pairs_nothing_is_in_it() -> None:
    pairs = graph_of([])
    assert pairs.graph is None
    assert pairs.is_apart
    assert not pairs.is_contested("a")
    assert (pairs.opponents("a"), pairs.later("a"), pairs.marks("a")) == ((), (), ())


def test_what_is_read_later_is_added() -> None:
    both = graph_of([pair(OLD, MIDDLE)])
    assert both.later("a") == ("b",)
    both.add_pairs([pair(OLD, NEW)], of=["a"])
    assert both.later("a") == ("c", "b")
    assert both.unread(["a", "b", "b"]) == ["b"]


def test_a_succession_ends_at_what_nothing_replaced_and_winners_come_last() -> None:
    steps = MarkGraph()
    steps.add_replacements(
        [
            Replacement(True, 1, "winner", "old", "e1"),
            Replacement(False, 2, "new", "old", "e2"),
            Replacement(False, 3, "newest", "new", "e3"),
        ]
    )
    assert steps.succession("old") == Succession(("new", "winner", "newest"), ("winner", "newest"))
    assert steps.succession("newest") is None
    assert "old" not in steps
    assert steps.is_apart


def test_changes_are_followed_and_contradictions_are_not() -> None:
    chain = graph_of(changes(OLD, MIDDLE, NEW))
    assert chain.later("a") == chain.changed_by("a") == ("c", "b")
    assert chain.earlier("c") == ("b", "a")
    assert chain.opponents("a") == ()
    assert not chain.is_contested("a")
    contradictions = graph_of([pair(OLD, MIDDLE), pair(MIDDLE, NEW)])
    assert contradictions.later("a") == ("b",)
    assert contradictions.changed_by("a") == ()


def test_a_circle_of_changes_ends() -> None:
    circle = [*changes(OLD, MIDDLE), Pair(PairKind.CHANGES, OLD, MIDDLE, 0.9, "back")]
    assert graph_of(circle).later("a") == ("b",)
    assert graph_of(circle).later("b") == ("a",)


def test_marks_name_both_sides_contradictions_first() -> None:
    replaced = Pair(PairKind.REPLACES, NEW, OLD, 1.0, "ca")
    pairs = graph_of([replaced, pair(OLD, MIDDLE), *changes(MIDDLE, NEW)])
    assert kinds(pairs, "a") == [(MarkKind.CONTRADICTS, "b"), (MarkKind.REPLACED_BY, "c")]
    assert kinds(pairs, "b") == [(MarkKind.CONTRADICTS, "a"), (MarkKind.CHANGED_BY, "c")]
    assert kinds(pairs, "c") == [(MarkKind.CHANGES, "b"), (MarkKind.REPLACES, "a")]
    assert pairs.note("b") == (
        "probably contradicts a (1970-01-01); probably changed by c (1970-01-01)"
    )
    assert pairs.note("c") == "probably changes b (1970-01-01)"
    stated = graph_of([pair(OLD, MIDDLE)._replace(weight=1.0)])
    assert stated.note("b") == "contradicts a (1970-01-01)"
    mark = pairs.marks("c")[0]
    assert (mark.weight, mark.edge_id, mark.reason) == (0.9, "cb", "because")


def test_a_note_counts_what_it_does_not_name() -> None:
    others = [ConflictSide(at, f"x{at}") for at in range(2, 7)]
    pairs = graph_of([pair(OLD, other, PairKind.CHANGES) for other in others])
    assert pairs.note("a").startswith("probably changed by x6 (1970-01-01), x5")
    assert pairs.note("a").endswith(" and 2 more")


def test_what_is_only_replaced_stands_apart() -> None:
    assert graph_of([Pair(PairKind.REPLACES, NEW, OLD, 1.0, "ca")]).is_apart
    assert not graph_of([Pair(PairKind.AMENDS, NEW, OLD, 1.0, "ca")]).is_apart
