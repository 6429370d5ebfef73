"""The health of a store: duplicates, contradictions, stale, unsourced, orphaned or unembedded
memories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from memgraph.errors import InvalidInput
from memgraph.graph.stale import find_stale
from memgraph.model.access import HealthExample, HealthMeasure, HealthMetric, StoreHealth
from memgraph.model.enums import MemoryKind
from memgraph.operations.life.echoes import catch_up
from memgraph.rules.dedup import near_duplicates
from memgraph.rules.echo import line_hashes
from memgraph.rules.schedule import fails, limits_of, rate_of
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import echoes, health
from memgraph.store.health import EXCERPT_CHARS, CountedMemory, MemoryOfPlace
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_SAMPLE: Final = 20_000
"""The maximum number of texts compared with one another, or with what was handed out."""
MAX_EXAMPLES: Final = 100
MAX_STALE: Final = 20_000
MAX_ENDINGS: Final = 100_000
"""The maximum number of memories counted that depend on retracted evidence."""
_HASHES_AT_ONCE = 500
_TURN = MemoryKind.EPISODE.id_prefix

Told = Callable[[str, int, int], None]


class _Rate(NamedTuple):
    number: int
    of: int
    found: Sequence[CountedMemory]
    sampled: bool = False


def store_health(
    opened: OpenOrchestrator,
    view: View,
    *,
    fail_on: Sequence[str] = (),
    examples: int = 5,
    progress: Told = lambda _part, _done, _total: None,
) -> StoreHealth:
    """Measure; nothing is changed. See ``AuditingHandle.audit``.

    Raises:
        InvalidInput: an invalid limit, or ``examples`` outside 0..100.
    """
    if not 0 <= examples <= MAX_EXAMPLES:
        raise InvalidInput(f"examples must be between 0 and {MAX_EXAMPLES}", field="examples")
    limits = limits_of(fail_on)
    # What was handed out a moment ago counts, too.
    opened.receipts.flush()
    catch_up(opened)
    taken: dict[HealthMetric, _Rate] = {}
    with opened.database.read() as snapshot:
        measuring = _Measuring(snapshot, view, examples)
        for measure, rate in measuring.rates().items():
            progress(f"measuring {measure}", len(taken), len(HealthMetric))
            taken[measure] = rate()
    # Comparing texts takes seconds, and no snapshot is held for it.
    progress(f"measuring {HealthMetric.NEAR_DUPLICATE}", len(taken), len(HealthMetric))
    taken[HealthMetric.NEAR_DUPLICATE] = measuring.near_duplicates()
    progress("measuring", len(HealthMetric), len(HealthMetric))
    measures = tuple(_measured(each, taken[each], limits) for each in HealthMetric)
    return StoreHealth(
        orchestrator=opened.database.orchestrator_id,
        at=opened.clock.now_ms(),
        memories=measuring.known,
        measures=measures,
        ok=not any(each.failed for each in measures),
    )


class _Measuring:
    """One audit on one snapshot."""

    def __init__(self, snapshot: Snapshot, view: View, examples: int) -> None:
        self._snapshot = snapshot
        self._view = view
        self._examples = examples
        self.known = health.known_count(snapshot, view)
        self._sample = health.sample(snapshot, view, MAX_SAMPLE)

    def rates(self) -> Mapping[HealthMetric, Callable[[], _Rate]]:
        """Return the functions for the measures that are read from the snapshot."""
        return {
            HealthMetric.DUPLICATE: lambda: self._of_known(health.doubled),
            HealthMetric.CONTRADICTION: lambda: self._of_known(health.contradicted),
            HealthMetric.STALE: self._stale,
            HealthMetric.UNSOURCED: lambda: self._of_known(health.unsourced),
            HealthMetric.ORPHAN: lambda: self._of_known(health.orphans),
            HealthMetric.UNEMBEDDED: self._unembedded,
            HealthMetric.ECHO: self._echoes,
        }

    def _of_known(
        self, ask: Callable[[Snapshot, View, int], tuple[int, list[CountedMemory]]]
    ) -> _Rate:
        count, found = ask(self._snapshot, self._view, self._examples)
        return _Rate(count, self.known, found)

    def _stale(self) -> _Rate:
        """Measure all stale memories, up to the bound."""
        page = find_stale(self._snapshot, self._view, limit=MAX_STALE, max_looks=MAX_ENDINGS)
        fallen = [each for each in page.items if not each.memory_id.startswith(_TURN)]
        texts = health.beginnings(
            self._snapshot, [each.memory_id for each in fallen[: self._examples]]
        )
        found = [
            CountedMemory(each.memory_id, each.ground_id, texts[each.memory_id])
            for each in fallen[: self._examples]
        ]
        return _Rate(len(fallen), self.known, found, sampled=page.cut or page.place is not None)

    def _unembedded(self) -> _Rate:
        active = health.active_count(self._snapshot, self._view)
        count, found = health.unembedded(self._snapshot, self._view, self._examples)
        return _Rate(count, active, found)

    def near_duplicates(self) -> _Rate:
        """Measure near duplicates within each place: other projects and agents do not count."""
        sample = {each.pk: each for each in self._sample}
        places: dict[str, dict[int, str]] = {}
        for each in self._sample:
            places.setdefault(each.place, {})[each.pk] = each.content
        pairs = {
            pk: other for texts in places.values() for pk, other in near_duplicates(texts).items()
        }
        shown = sorted(pairs, reverse=True)[: self._examples]
        found = [_found(sample[pk], sample[pairs[pk]].memory_id) for pk in shown]
        return self._of_sample(len(pairs), found)

    def _echoes(self) -> _Rate:
        """Measure memories of which every line had been handed out before they were stored."""
        sample = self._sample
        lines = {each.pk: line_hashes(each.content) for each in sample}
        handed = self._handed_out({one for each in lines.values() for one in each})
        found = [
            each
            for each in sample
            if lines[each.pk]
            and all(handed.get(one, each.created_at) < each.created_at for one in lines[each.pk])
        ]
        shown = [_found(each, None) for each in found[::-1][: self._examples]]
        return self._of_sample(len(found), shown)

    def _handed_out(self, hashes: set[int]) -> dict[int, int]:
        """Return when each line was handed out first."""
        wanted = sorted(hashes)
        found: dict[int, int] = {}
        for start in range(0, len(wanted), _HASHES_AT_ONCE):
            part = echoes.find(self._snapshot, wanted[start : start + _HASHES_AT_ONCE])
            found |= {one: first for one, (first, _) in part.items()}
        return found

    def _of_sample(self, count: int, found: Sequence[CountedMemory]) -> _Rate:
        looked_at = len(self._sample)
        return _Rate(count, looked_at, found, sampled=looked_at < self.known)


def _found(each: MemoryOfPlace, other_id: str | None) -> CountedMemory:
    return CountedMemory(each.memory_id, other_id, each.content[:EXCERPT_CHARS])


def _measured(
    measure: HealthMetric, rate: _Rate, limits: Mapping[HealthMetric, float]
) -> HealthMeasure:
    share = rate_of(rate.number, rate.of)
    return HealthMeasure(
        measure=measure,
        count=rate.number,
        of=rate.of,
        rate=share,
        sampled=rate.sampled,
        examples=tuple(
            HealthExample(
                memory_ids=tuple(one for one in (each.memory_id, each.other_id) if one is not None),
                text=" ".join(each.text.split()),
            )
            for each in rate.found
        ),
        limit=limits.get(measure),
        failed=fails(measure, share, limits),
    )
