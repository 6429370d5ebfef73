"""What stands on a ground that no longer holds: along derivations, CausedBy and PartOf, bounded.

A memory that took the place of its ground is not shaken by the end of it, nor is what stands on
that ground by way of it alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from memgraph.model.enums import EdgeType

Step = TypeVar("Step", bound=tuple[Any, ...])

BASIS_EDGES: Final = frozenset({EdgeType.CAUSED_BY, EdgeType.PART_OF})
"""An edge of these types from a memory to another says: this one stands on the other."""
MAX_HOPS: Final = 6
"""Over so many steps the end of a ground is told on; premises further away are not looked at."""


class Basis(NamedTuple):
    """One memory stands on another. ``edge_type`` None: it was derived from it."""

    dependent_id: str
    ground_id: str
    edge_type: EdgeType | None
    edge_id: str = ""


class Refuted(NamedTuple):
    """A ground that no longer holds.

    Attributes:
        since: when it ended, milliseconds.
        replaced_by: ids of what took its place.
    """

    since: int
    replaced_by: frozenset[str] = frozenset()


def broken_paths(
    bases: Iterable[Basis], refuted: Mapping[str, Refuted], *, max_hops: int = MAX_HOPS
) -> dict[str, tuple[Basis, ...]]:
    """For each memory that stands on a refuted ground, the way down to it; pure.

    Of several grounds the one that ended last counts, of those of one moment the highest id; of
    several ways the shortest, ties by ids.

    Args:
        bases: who stands on what, in any order.
        refuted: the grounds that no longer hold, by id.
        max_hops: >= 0, the longest way.

    Returns:
        The ways by the id of the memory; each begins at it and ends at the refuted ground.
    """
    if not refuted:
        return {}
    above: dict[str, list[Basis]] = {}
    for basis in sorted(set(bases), key=_by_ids):
        above.setdefault(basis.ground_id, []).append(basis)
    found: dict[str, tuple[Basis, ...]] = {}
    # In the order in which endings are listed, whatever page of them is looked at.
    newest = sorted(refuted.items(), key=lambda one: (one[1].since, one[0]), reverse=True)
    for ground, ending in newest:
        for dependent, path in _reached(above, ground, ending.replaced_by, max_hops).items():
            found.setdefault(dependent, path)
    return found


def leading_to(bases: Iterable[Step], grounds: Collection[str]) -> list[Step]:
    """Those by way of which, over any number of steps, one of the grounds is reached; pure.

    Args:
        bases: tuples that begin as ``Basis`` does, with the dependent and the ground.
    """
    above: dict[str, list[Step]] = {}
    for basis in bases:
        above.setdefault(basis[1], []).append(basis)
    found: list[Step] = []
    waiting = list(grounds)
    passed = set(waiting)
    while waiting:
        for basis in above.get(waiting.pop(), ()):
            found.append(basis)
            if basis[0] not in passed:
                passed.add(basis[0])
                waiting.append(basis[0])
    return found


def _reached(
    above: Mapping[str, list[Basis]], ground: str, but: Iterable[str], max_hops: int
) -> dict[str, tuple[Basis, ...]]:
    """Breadth first, so that the first way to a memory is a shortest one."""
    passed = {ground, *but}
    found: dict[str, tuple[Basis, ...]] = {}
    frontier: list[tuple[str, tuple[Basis, ...]]] = [(ground, ())]
    for _ in range(max_hops):
        reached = []
        for one, path in frontier:
            for basis in above.get(one, ()):
                if basis.dependent_id not in passed:
                    passed.add(basis.dependent_id)
                    reached.append((basis.dependent_id, (basis, *path)))
        found.update(reached)
        frontier = reached
    return found


def _by_ids(basis: Basis) -> tuple[str, str, str, str]:
    return basis.ground_id, basis.dependent_id, basis.edge_type or "", basis.edge_id
