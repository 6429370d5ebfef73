"""Measure the health of a store: the rates of duplicate, contradicted, stale, unsourced, orphaned
and unembedded memories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from memgraph.errors import InvalidInput
from memgraph.graph.stale import find_stale
from memgraph.model.access import HealthExample, HealthMeasure, HealthMetric, StoreHealth
from memgraph.model.enums import MemoryKind
from memgraph.rules.schedule import fails, limits_of, rate_of
from memgraph.rules.similarity import near_duplicates
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import health, memories
from memgraph.store.health import EXCERPT_CHARS, CountedMemory, MemoryOfPlace
from memgraph.store.snapshot import Snapshot
from memgraph.store.visibility import View

MAX_SAMPLE: Final = 20_000
"""The maximum number of texts compared with one another."""
MAX_EXAMPLES: Final = 100
MAX_STALE: Final = 20_000
MAX_ENDINGS: Final = 100_000
"""The maximum number of superseded or retracted memories examined for stale dependents."""
_TURN = MemoryKind.EPISODE.id_prefix

Progress = Callable[[str, int, int], None]


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
    progress: Progress = lambda _part, _done, _total: None,
) -> StoreHealth:
    """Measure the health of the store; nothing is changed. See ``Audit.measure``.

    Raises:
        InvalidInput: a limit in ``fail_on`` is invalid, or ``examples`` is outside 0..100.
    """
    if not 0 <= examples <= MAX_EXAMPLES:
        raise InvalidInput(f"examples must be between 0 and {MAX_EXAMPLES}", field="examples")
    limits = limits_of(fail_on)
    rates: dict[HealthMetric, _Rate] = {}
    with opened.database.read() as snapshot:
        measuring = _Measuring(snapshot, view, examples)
        for measure, rate in measuring.rates().items():
            progress(f"measuring {measure}", len(rates), len(HealthMetric))
            rates[measure] = rate()
    # Comparing texts takes seconds, so no snapshot is held open for it.
    progress(f"measuring {HealthMetric.NEAR_DUPLICATE}", len(rates), len(HealthMetric))
    rates[HealthMetric.NEAR_DUPLICATE] = measuring.near_duplicates()
    progress("measuring", len(HealthMetric), len(HealthMetric))
    measures = tuple(_measured(metric, rates[metric], limits) for metric in HealthMetric)
    return StoreHealth(
        orchestrator=opened.database.orchestrator_id,
        at=opened.clock.now_ms(),
        memories=measuring.known,
        measures=measures,
        ok=not any(measure.failed for measure in measures),
    )


class _Measuring:
    """The measurements on one snapshot."""

    def __init__(self, snapshot: Snapshot, view: View, examples: int) -> None:
        self._snapshot = snapshot
        self._view = view
        self._examples = examples
        self.known = health.known_count(snapshot, view)
        self._sample = health.sample(snapshot, view, MAX_SAMPLE)

    def rates(self) -> Mapping[HealthMetric, Callable[[], _Rate]]:
        """Return the functions that compute measures from the snapshot, by metric."""
        return {
            HealthMetric.DUPLICATE: lambda: self._of_known(health.doubled),
            HealthMetric.CONTRADICTION: lambda: self._of_known(health.contradicted),
            HealthMetric.STALE: self._stale,
            HealthMetric.UNSOURCED: lambda: self._of_known(health.unsourced),
            HealthMetric.ORPHAN: lambda: self._of_known(health.orphans),
            HealthMetric.UNEMBEDDED: self._unembedded,
        }

    def _of_known(
        self, ask: Callable[[Snapshot, View, int], tuple[int, list[CountedMemory]]]
    ) -> _Rate:
        count, examples = ask(self._snapshot, self._view, self._examples)
        return _Rate(count, self.known, examples)

    def _stale(self) -> _Rate:
        """Measure stale memories, up to the maximum."""
        page = find_stale(self._snapshot, self._view, limit=MAX_STALE, max_looks=MAX_ENDINGS)
        stale_memories = [stale for stale in page.items if not stale.memory_id.startswith(_TURN)]
        ids = [memory.memory_id for memory in stale_memories[: self._examples]]
        texts = memories.beginnings(self._snapshot, ids, EXCERPT_CHARS)
        examples = [
            CountedMemory(stale.memory_id, stale.ground_id, texts[stale.memory_id])
            for stale in stale_memories[: self._examples]
        ]
        return _Rate(
            len(stale_memories), self.known, examples, sampled=page.cut or page.place is not None
        )

    def _unembedded(self) -> _Rate:
        active = health.active_count(self._snapshot, self._view)
        count, examples = health.unembedded(self._snapshot, self._view, self._examples)
        return _Rate(count, active, examples)

    def near_duplicates(self) -> _Rate:
        """Measure near duplicates within the same scope and agent."""
        sample = {row.pk: row for row in self._sample}
        places: dict[str, dict[int, str]] = {}
        for row in self._sample:
            places.setdefault(row.place, {})[row.pk] = row.content
        pairs = {
            pk: other for texts in places.values() for pk, other in near_duplicates(texts).items()
        }
        shown_pks = sorted(pairs, reverse=True)[: self._examples]
        examples = [_found(sample[pk], sample[pairs[pk]].memory_id) for pk in shown_pks]
        return self._of_sample(len(pairs), examples)

    def _of_sample(self, count: int, examples: Sequence[CountedMemory]) -> _Rate:
        looked_at = len(self._sample)
        return _Rate(count, looked_at, examples, sampled=looked_at < self.known)


def _found(memory: MemoryOfPlace, other_id: str | None) -> CountedMemory:
    return CountedMemory(memory.memory_id, other_id, memory.content[:EXCERPT_CHARS])


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
                memory_ids=tuple(
                    memory_id
                    for memory_id in (example.memory_id, example.other_id)
                    if memory_id is not None
                ),
                text=" ".join(example.text.split()),
            )
            for example in rate.found
        ),
        limit=limits.get(measure),
        failed=fails(measure, share, limits),
    )
