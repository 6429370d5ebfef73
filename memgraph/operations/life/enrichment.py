"""Nightly enrichment: the ``accurate`` strategy finds entity names that the rules miss.

Each memory is processed once. Links are written in small transactions after the models have
answered. A run continues where the last one stopped; once a week, or with other settings, it begins
with the oldest memory again, to find those that changed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from memgraph.clock import MS_PER_DAY
from memgraph.errors import ExtraMissing, MemgraphError, ProviderError, ProviderUnavailable
from memgraph.model.jobs import MAX_REJECTED_KEPT, JobReport, RejectedItem
from memgraph.model.operation import Progress, untold
from memgraph.model.tables import MemoryRow
from memgraph.operations.write.entity_links import MAX_KEPT_NAMES, names_of
from memgraph.service.open_orchestrator import OpenOrchestrator
from memgraph.store import enrichment, entities, memories, metadata
from memgraph.store.enrichment import ENRICHED_AT, ENRICHED_NAMES
from memgraph.store.entities import EntityName
from memgraph.store.snapshot import JournalledTransaction, NewEntry

if TYPE_CHECKING:
    from memgraph.providers.entity_names import EntityFindings

PART: Final = "enrichment"
ACTOR: Final = "enrichment"
NO_PROVIDER: Final = "no_accurate_provider"
_PASS_MS: Final = 7 * MS_PER_DAY
_PASS_KEY: Final = "enrichment"
"""The row with the current pass: its settings, its start, and the last memory looked at."""
# The number of keys examined per read, and the number of texts sent to the providers at once.
WINDOW: Final = 2_000
BATCH: Final = 20
MAX_ENRICHED = 50
"""The maximum number of memories enriched in one run."""
MAX_ENTITIES = 2
"""A memory with more entities is not enriched."""
# After this many refused texts in a row, the texts are not the cause.
MAX_REFUSED: Final = 3
# HTTP statuses that are due to the text; others are due to the key or the model.
_OF_THE_TEXT: Final = frozenset({400, 413, 422})


def enrich(
    opened: OpenOrchestrator,
    *,
    now_ms: int,
    actor: str = ACTOR,
    progress: Progress = untold,
    stop: Callable[[], bool] = lambda: False,
) -> JobReport:
    """Search memories with few entities for further ones, with models.

    Active episodes and facts are processed once (``attributes.enriched_at``), oldest first. One
    that became active again is found within a week. The run ends when a provider is down or refuses
    its key or model: names found so far are linked, and the next run begins with the memories that
    the provider did not see. A text that a provider refuses is reported as rejected and not sent
    again; ``MAX_REFUSED`` in a row end the run.

    Args:
        now_ms: the time to record in the memories.
        stop: checked before each batch.

    Returns:
        Skipped with the reason ``no_accurate_provider`` when there is neither spaCy nor a model.
        Counts: ``enriched``, ``links`` (new ones), ``withheld`` (too sensitive for the model, and
        there is no other provider), ``gone`` (changed during a call).

    Raises:
        StorageError: memories enriched so far stay enriched.
    """
    if not opened.naming.accurate_available:
        return JobReport.skipped(NO_PROVIDER)
    run = _Run(opened, now_ms, actor)
    run.resume()
    while run.taken < MAX_ENRICHED:
        progress(PART, run.taken, MAX_ENRICHED)
        batch = run.next_batch(stop)
        if stop() or (batch and not run.work_off(batch)):
            break
        run.note_progress()
        if not batch:
            break
    progress(PART, run.taken, MAX_ENRICHED)
    if run.error is not None:
        return JobReport.failed(run.error, run.counts, run.rejected)
    return JobReport.done(run.counts, run.rejected)


@dataclass
class _Run:
    opened: OpenOrchestrator
    now_ms: int
    actor: str
    taken: int = 0
    # The key of the last memory that was looked at, and when this pass began.
    cursor: int = 0
    since: int = 0
    counts: dict[str, int] = field(
        default_factory=lambda: {"enriched": 0, "links": 0, "withheld": 0, "gone": 0, "rejected": 0}
    )
    rejected: list[RejectedItem] = field(default_factory=list)
    error: MemgraphError | None = None
    told: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def settings(self) -> list[Any]:
        """Return what decides which memories a pass can enrich."""
        naming, llm = self.opened.naming, self.opened.settings.memory.llm
        return [*naming.accurate.names, llm.max_sensitivity, MAX_ENTITIES]

    def resume(self) -> None:
        """Continue the current pass, or begin another one."""
        with self.opened.database.read() as snapshot:
            text = metadata.get(snapshot, _PASS_KEY)
        settings, since, cursor = json.loads(text) if text else (None, 0, 0)
        is_current = settings == self.settings and 0 <= self.now_ms - since < _PASS_MS
        self.since, self.cursor = (since, cursor) if is_current else (self.now_ms, 0)

    def note_progress(self) -> None:
        with self.opened.database.write(durable=False) as transaction:
            text = json.dumps([self.settings, self.since, self.cursor])
            metadata.put(transaction, _PASS_KEY, text)

    def next_batch(self, stop: Callable[[], bool]) -> list[MemoryRow]:
        """Return the next candidates; none when all memories were looked at."""
        size = min(MAX_ENRICHED - self.taken, BATCH)
        while not stop():
            with self.opened.database.read() as snapshot:
                last = memories.last_pk(snapshot)
                through = min(self.cursor + WINDOW, last)
                batch = enrichment.candidates(snapshot, self.cursor, through, MAX_ENTITIES, size)
            self.cursor = batch[-1].pk if len(batch) == size else through
            if batch or through == last:
                return batch
        return []

    def work_off(self, batch: Sequence[MemoryRow]) -> bool:
        """Send a batch to the providers and link the names; return True if the run may continue."""
        names_by_pk: dict[int, list[EntityName]] = {}
        groups = list(self._groups(batch))
        answers = [
            self.opened.naming.accurate.extract([each.content for each in group], without=without)
            for without, group in groups
        ]
        if len(batch) > 1 and any(
            _is_refusal(error) for _, failures in answers for error in failures.values()
        ):
            # Send the texts one by one to find the refused one.
            return all(self.work_off([memory]) for memory in batch)
        for (without, group), answer in zip(groups, answers, strict=True):
            self._take(group, without, *answer, names_by_pk)
        self.taken += len(names_by_pk)
        if names_by_pk:
            self._write(names_by_pk, {memory.pk: memory for memory in batch})
        return self.error is None

    def _groups(
        self, batch: Sequence[MemoryRow]
    ) -> Iterable[tuple[tuple[str, ...], list[MemoryRow]]]:
        naming, model = self.opened.naming, self.opened.llm
        if "llm" not in naming.accurate.names or model is None:
            return [((), list(batch))] if batch else []
        may = [memory for memory in batch if model.may_read(memory.sensitivity)]
        may_not = [memory for memory in batch if memory not in may]
        if not set(naming.accurate.names) - {"llm", "regex"}:
            self.counts["withheld"] += len(may_not)
            may_not = []
        return [(without, group) for without, group in (((), may), (("llm",), may_not)) if group]

    def _take(
        self,
        group: Sequence[MemoryRow],
        without: Sequence[str],
        answer: Sequence[EntityFindings],
        failures: Mapping[str, MemgraphError],
        names_by_pk: dict[int, list[EntityName]],
    ) -> None:
        for provider in self.opened.naming.accurate.names:
            error = failures.get(provider)
            if error is not None:
                self._failed(provider, error, group)
            elif provider not in without:
                self.refused[provider] = 0
        for memory, found in zip(group, answer, strict=True):
            names_by_pk[memory.pk] = names_of(found.spans)
            for code in found.rejected:
                self._reject(code, memory.memory_id)

    def _failed(self, provider: str, error: MemgraphError, group: Sequence[MemoryRow]) -> None:
        if _is_refusal(error):
            self.refused[provider] += 1
            self._reject(error.code, group[0].memory_id)
            if self.refused[provider] >= MAX_REFUSED:
                self.error = error
        elif isinstance(error, ProviderError) and not isinstance(error, ExtraMissing):
            self.error = error
        elif provider not in self.told:
            self.told.add(provider)
            self._reject(error.code, f"provider {provider}")

    def _reject(self, code: str, where: str) -> None:
        self.counts["rejected"] += 1
        if len(self.rejected) < MAX_REJECTED_KEPT:
            self.rejected.append(RejectedItem(code=code, where=where))

    def _write(
        self,
        names_by_pk: dict[int, list[EntityName]],
        by_pk: dict[int, MemoryRow],
    ) -> None:
        """Link memories that are unchanged; mark them as enriched if all providers succeeded."""
        opened = self.opened
        with opened.transaction(self.actor) as transaction:
            open_memories = [
                memory
                for memory in enrichment.still_open(transaction, list(names_by_pk))
                if memory.content_hash == by_pk[memory.pk].content_hash
            ]
            new = link_names(
                opened,
                transaction,
                names_by_pk,
                open_memories,
                enriched_at=self.now_ms if self.error is None else None,
            )
        self.counts["links"] += new
        self.counts["gone"] += len(names_by_pk) - len(open_memories)
        if self.error is None:
            self.counts["enriched"] += len(open_memories)


def link_names(
    opened: OpenOrchestrator,
    transaction: JournalledTransaction,
    names_by_pk: Mapping[int, Sequence[EntityName]],
    open_memories: Sequence[MemoryRow],
    *,
    enriched_at: int | None,
) -> int:
    """Link memories to the names that models found in them; return the number of new links.

    Args:
        open_memories: the current rows of those memories that are not enriched yet.
        enriched_at: the time to record in them, in milliseconds; None: they stay to be enriched.
    """
    linker, resolved = opened.writer.linker, opened.naming.nicknames.resolved
    names = [(memory.pk, tuple(resolved(names_by_pk[memory.pk]))) for memory in open_memories]
    transaction.record(linker.mend_types(transaction, names))
    linked = entities.links_of(transaction, [memory.pk for memory in open_memories])
    new = linker.link(transaction, names, linked)
    if enriched_at is not None:
        for memory in open_memories:
            attributes = _stamped(opened, memory, names_by_pk[memory.pk], enriched_at)
            memories.update(transaction, memory.memory_id, attributes=attributes)
    if open_memories:
        ids = [memory.memory_id for memory in open_memories]
        transaction.record([NewEntry("enrich", None, {"memories": ids, "links": new})])
    return new


def _stamped(
    opened: OpenOrchestrator,
    memory: MemoryRow,
    names: Sequence[EntityName],
    now_ms: int,
) -> dict[str, Any]:
    """Return the attributes of an enriched memory, with the names that only models found."""
    by_rules = {(name.key, name.type) for name in opened.find_names(memory.content)}
    resolved = opened.naming.nicknames.resolved
    beyond = [
        [name.name, name.type.value]
        for name in names
        if all((each.key, each.type) not in by_rules for each in resolved([name]))
    ]
    attributes = {**memory.attributes, ENRICHED_AT: now_ms}
    if beyond:
        before = attributes.get(ENRICHED_NAMES)
        earlier = before if isinstance(before, list) else []
        new = [name for name in beyond if name not in earlier]
        attributes[ENRICHED_NAMES] = [*earlier, *new][:MAX_KEPT_NAMES]
    return attributes


def _is_refusal(error: MemgraphError) -> bool:
    """Return True when a provider rejected this text but may accept another one."""
    if not isinstance(error, ProviderError) or isinstance(error, ProviderUnavailable):
        return False
    status = error.details.get("status")
    if status is None:
        # Errors without a status but with these details are about a key, an address or a pipeline.
        return not error.details.keys() & {"error", "reason"}
    return status in _OF_THE_TEXT
