"""Measure the health of a store: the rates of duplicate, contradicted, stale, unsourced, orphaned
and unembedded memories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

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
        InvalidInput: a limit in ``fail_on`` is invalid.
    """
    limits = limits_of(fail_on)
    rates: dict[HealthMetric, _Rate] = {}

    def tell(metric: HealthMetric) -> None:
        progress(f"measuring {metric}", len(rates), len(HealthMetric))

    with opened.database.read() as snapshot:
        known = health.count(snapshot, view, turns=False)
        sample = health.sample(snapshot, view, MAX_SAMPLE)
        for metric in HealthMetric:
            if metric is HealthMetric.NEAR_DUPLICATE:
                continue
            tell(metric)
            if metric is HealthMetric.STALE:
                rates[metric] = _stale(snapshot, view, known, examples)
                continue
            counts_turns = metric is HealthMetric.UNEMBEDDED
            of = health.count(snapshot, view, turns=True) if counts_turns else known
            number, results = health.measured(snapshot, view, metric, examples)
            rates[metric] = _Rate(number, of, results)
    # Comparing texts takes seconds, so no snapshot is held open for it.
    tell(HealthMetric.NEAR_DUPLICATE)
    rates[HealthMetric.NEAR_DUPLICATE] = _near_duplicates(sample, known, examples)
    progress("measuring", len(HealthMetric), len(HealthMetric))
    measures = tuple(_measured(metric, rates[metric], limits) for metric in HealthMetric)
    return StoreHealth(
        orchestrator=opened.database.orchestrator_id,
        at=opened.clock.now_ms(),
        memories=known,
        measures=measures,
        ok=not any(measure.failed for measure in measures),
    )


def _stale(snapshot: Snapshot, view: View, known: int, examples: int) -> _Rate:
    """Measure stale memories, up to the maximum."""
    page = find_stale(snapshot, view, limit=MAX_STALE, max_looks=MAX_ENDINGS)
    stale_memories = [stale for stale in page.items if not stale.memory_id.startswith(_TURN)]
    shown = stale_memories[:examples]
    texts = memories.beginnings(snapshot, [stale.memory_id for stale in shown], EXCERPT_CHARS)
    results = [
        CountedMemory(stale.memory_id, stale.ground_id, texts[stale.memory_id]) for stale in shown
    ]
    return _Rate(len(stale_memories), known, results, sampled=page.cut or page.place is not None)


def _near_duplicates(sample: Sequence[MemoryOfPlace], known: int, examples: int) -> _Rate:
    """Measure near duplicates within the same scope and agent."""
    rows = {row.pk: row for row in sample}
    places: dict[str, dict[int, str]] = {}
    for row in sample:
        places.setdefault(row.place, {})[row.pk] = row.content
    pairs = {pk: other for texts in places.values() for pk, other in near_duplicates(texts).items()}
    results = [
        CountedMemory(
            rows[pk].memory_id, rows[pairs[pk]].memory_id, rows[pk].content[:EXCERPT_CHARS]
        )
        for pk in sorted(pairs, reverse=True)[:examples]
    ]
    return _Rate(len(pairs), len(sample), results, sampled=len(sample) < known)


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
