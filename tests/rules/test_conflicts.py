"""Open contradictions as a graph from the later to the earlier statement."""

from memgraph.rules.contradictions import UNDATED, Conflicts, ConflictSide

OLD, MIDDLE, NEW = ConflictSide(1, "a"), ConflictSide(2, "b"), ConflictSide(3, "c")


def test_opponents_are_told_apart_by_their_time() -> None:
    conflicts = Conflicts.of([(OLD, MIDDLE), (NEW, OLD), (MIDDLE, OLD)])
    assert conflicts.later("a") == ("c", "b")
    assert conflicts.earlier("a") == ()
    assert conflicts.earlier("c") == ("a",)
    assert conflicts.opponents("a") == ("b", "c")
    assert conflicts.memory_ids == ["a", "b", "c"]


def test_of_one_moment_the_higher_id_is_the_later() -> None:
    conflicts = Conflicts.of([(ConflictSide(1, "b"), ConflictSide(1, "a"))])
    assert conflicts.later("a") == ("b",)


def test_of_two_undated_sides_the_one_stored_first_comes_first() -> None:
    conflicts = Conflicts.of([(ConflictSide(UNDATED, "b"), ConflictSide(UNDATED, "a"))])
    assert conflicts.later("b") == ("a",)
    assert conflicts.mark("a") == "contradicted by b (undated)"


def test_an_undated_side_is_the_earlier() -> None:
    assert Conflicts.of([(ConflictSide(UNDATED, "b"), OLD)]).later("b") == ("a",)


def test_without_contradictions_nothing_is_in_it() -> None:
    conflicts = Conflicts.of([])
    assert conflicts.graph is None
    assert "a" not in conflicts
    assert (conflicts.opponents("a"), conflicts.later("a"), conflicts.memory_ids) == ((), (), [])


def test_two_graphs_are_joined() -> None:
    both = Conflicts.of([(OLD, MIDDLE)]) | Conflicts.of([(OLD, NEW)]) | Conflicts.of([])
    assert both.later("a") == ("c", "b")
