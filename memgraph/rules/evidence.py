"""Confidence by repetition: independent sources add to it, others do not.

The confidence of a memory with n independent sources is ``C - (C - base) x k^(n-1) x r^m``: each
further one takes away the same share of what is missing to a ceiling C below certainty. That is the
noisy-OR of J. Pearl, "Probabilistic Reasoning in Intelligent Systems", 1988, chapter 4, bounded:
however many repeat a thing, only a person's confirmation makes it certain.

Somebody who says it again is no further source. On other days it is some evidence that it still
holds: m counts those, 3 at most, so that one speaker adds less than a second one would.

Sources are kept beside a memory, each once, so a source that comes again adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

from memgraph.model.enums import EdgeType

CEILING = 0.95
SHARE_KEPT = 0.7
"""k: what is left of the distance to the ceiling after one further source."""
AGAIN_KEPT = 0.9
"""r: what is left of it after one of the same speakers said it on another day."""
MAX_AGAIN = 3


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a statement: a conversation, a file, or a run of a workflow.

    Attributes:
        speakers: who said it there; empty: a source in which nobody speaks.
        days: on which it was said, counted from the epoch.
        words: hashes of the turns that say it.
    """

    conversation_id: str | None = None
    source_path: str | None = None
    content_sha256: str | None = None
    workflow_run_id: str | None = None
    speakers: frozenset[str] = frozenset()
    days: frozenset[int] = frozenset()
    words: frozenset[str] = frozenset()

    @property
    def keys(self) -> frozenset[tuple[str, str]]:
        """Two origins that share one of them are the same place, told twice."""
        values = (
            ("conversation", self.conversation_id),
            ("path", self.source_path),
            ("content", self.content_sha256),
            ("run", self.workflow_run_id),
        )
        return frozenset((name, value) for name, value in values if value)


class SupportCount(NamedTuple):
    """``sources``: independent ones, at least 1. ``again``: days of saying it again, 0..3."""

    sources: int
    again: int = 0

    @property
    def share_kept(self) -> float:
        """Return what these leave of the distance to the ceiling, above 0 and at most 1."""
        return float(SHARE_KEPT ** (self.sources - 1) * AGAIN_KEPT**self.again)


def support_of(own: Iterable[Origin], supports: Iterable[Origin]) -> SupportCount:
    """Return what the sources of a memory come to.

    Args:
        own: where the memory came from: its source, the session in which it was said.
        supports: further sources in the order in which they came. One that shares its conversation,
            file or run with one before it is the same one, and one that names none is nothing. One
            that shares a speaker is no further source, nor one that has the very turn of another,
            as a copy of it has; said on another day it counts as said again, but for a file's.
    """
    counted = _Known()
    for origin in own:
        counted.add(origin)
    sources, repeated = 1, 0
    for origin in supports:
        copied = not origin.words.isdisjoint(counted.words)
        if origin.keys and origin.keys.isdisjoint(counted.keys):
            if not copied and origin.speakers.isdisjoint(counted.speakers):
                sources += 1
            elif not (copied and origin.source_path) and not origin.days <= counted.days:
                repeated += 1
        # Whose name stands over a copy may still say it in words of their own.
        counted.add(replace(origin, speakers=frozenset()) if copied else origin)
    return SupportCount(sources, min(repeated, MAX_AGAIN))


def independent_sources(own: Iterable[Origin], supports: Iterable[Origin]) -> int:
    """Return how many independent sources say it, the memory's own included; see ``support_of``."""
    return support_of(own, supports).sources


def stands_without(
    own: Iterable[Origin], supports: Iterable[Origin], is_refuted: Callable[[Origin], bool]
) -> bool:
    """Return True when a memory is said somewhere else, too, once its own source is given up.

    Args:
        own: see ``support_of``; given up as a whole.
        is_refuted: tells whether a further source is given up with it. A source that shares a name
            with it is the same place, and one with the same turn is a copy.
    """
    further = list(supports)
    lost = [*own, *(origin for origin in further if is_refuted(origin))]
    keys = frozenset().union(*(origin.keys for origin in lost))
    words = frozenset().union(*(origin.words for origin in lost))
    return any(
        bool(origin.keys) and origin.keys.isdisjoint(keys) and origin.words.isdisjoint(words)
        for origin in further
        if not is_refuted(origin)
    )


def strengthened(confidence: float, before: SupportCount, after: SupportCount) -> float:
    """Return the confidence after the support became more; never lower than it was."""
    share = after.share_kept / before.share_kept
    if share >= 1.0 or confidence >= CEILING:
        return confidence
    return CEILING - (CEILING - confidence) * share


def weakened(confidence: float, gained: Iterable[tuple[float, float]]) -> float:
    """Return the confidence without what retracted sources had added.

    Each gain took away a share of what was missing to the ceiling; that share is given back. What
    a person confirmed stays.

    Args:
        gained: the confidence before and after each gain.
    """
    missing = CEILING - confidence
    if missing <= 0.0:
        return confidence
    for before, after in gained:
        if before < after < CEILING:
            missing *= (CEILING - before) / (CEILING - after)
    return max(CEILING - missing, 0.0)


def regained(confidence: float, before: float, after: float) -> float:
    """Return the confidence with what ``weakened`` took: from ``before`` to ``after`` then.

    The share of what is missing to the ceiling is taken away again, from what is missing now.
    """
    missing = CEILING - confidence
    if missing <= 0.0 or not after < before < CEILING:
        return confidence
    return CEILING - missing * (CEILING - before) / (CEILING - after)


class _Known:
    """The known origins, to tell whether another is one of them."""

    def __init__(self) -> None:
        self.keys: set[tuple[str, str]] = set()
        self.speakers: set[str] = set()
        self.days: set[int] = set()
        self.words: set[str] = set()

    def add(self, origin: Origin) -> None:
        self.keys |= origin.keys
        self.speakers |= origin.speakers
        self.days |= origin.days
        self.words |= origin.words


# What stands on a ground that no longer holds: along derivations, CausedBy and PartOf, bounded.


Step = TypeVar("Step", bound=tuple[Any, ...])

BASIS_EDGES: Final = frozenset({EdgeType.CAUSED_BY, EdgeType.PART_OF})
"""An edge of these types from a memory to another says: this one stands on the other."""
MAX_HOPS: Final = 6
"""Over so many steps the end of a ground is told on; premises further away are not looked at."""


class Dependency(NamedTuple):
    """One memory stands on another. ``edge_type`` None: it was derived from it."""

    dependent_id: str
    ground_id: str
    edge_type: EdgeType | None
    edge_id: str = ""


class RefutedEvidence(NamedTuple):
    """A ground that no longer holds.

    Attributes:
        since: when it ended, milliseconds.
        replaced_by: ids of what took its place.
    """

    since: int
    replaced_by: frozenset[str] = frozenset()


def broken_paths(
    bases: Iterable[Dependency], refuted: Mapping[str, RefutedEvidence], *, max_hops: int = MAX_HOPS
) -> dict[str, tuple[Dependency, ...]]:
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
    above: dict[str, list[Dependency]] = {}
    for basis in sorted(set(bases), key=_by_ids):
        above.setdefault(basis.ground_id, []).append(basis)
    paths: dict[str, tuple[Dependency, ...]] = {}
    # In the order in which endings are listed, whatever page of them is looked at.
    newest = sorted(refuted.items(), key=lambda item: (item[1].since, item[0]), reverse=True)
    for ground, ending in newest:
        for dependent, path in _reached(above, ground, ending.replaced_by, max_hops).items():
            paths.setdefault(dependent, path)
    return paths


def leading_to(bases: Iterable[Step], grounds: Collection[str]) -> list[Step]:
    """Return those by way of which, over any number of steps, one of the grounds is reached; pure.

    Args:
        bases: tuples that begin as ``Dependency`` does, with the dependent and the ground.
    """
    above: dict[str, list[Step]] = {}
    for basis in bases:
        above.setdefault(basis[1], []).append(basis)
    steps: list[Step] = []
    waiting = list(grounds)
    passed = set(waiting)
    while waiting:
        for basis in above.get(waiting.pop(), ()):
            steps.append(basis)
            if basis[0] not in passed:
                passed.add(basis[0])
                waiting.append(basis[0])
    return steps


def _reached(
    above: Mapping[str, list[Dependency]], ground: str, but: Iterable[str], max_hops: int
) -> dict[str, tuple[Dependency, ...]]:
    """Breadth first, so that the first way to a memory is a shortest one."""
    passed = {ground, *but}
    paths: dict[str, tuple[Dependency, ...]] = {}
    frontier: list[tuple[str, tuple[Dependency, ...]]] = [(ground, ())]
    for _ in range(max_hops):
        reached = []
        for memory_id, path in frontier:
            for basis in above.get(memory_id, ()):
                if basis.dependent_id not in passed:
                    passed.add(basis.dependent_id)
                    reached.append((basis.dependent_id, (basis, *path)))
        paths.update(reached)
        frontier = reached
    return paths


def _by_ids(basis: Dependency) -> tuple[str, str, str, str]:
    return basis.ground_id, basis.dependent_id, basis.edge_type or "", basis.edge_id
