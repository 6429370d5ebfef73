"""Create the models and extractors that the settings configure."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from memgraph.clock import Clock, iso
from memgraph.config import Settings
from memgraph.consolidation.labels import LabelExtractor
from memgraph.consolidation.ports import Extractor
from memgraph.errors import (
    ExtraMissing,
    MonthlyLimitReached,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderUnavailable,
    StorageError,
)
from memgraph.log import EventLog
from memgraph.model.enums import ModelUse, Sensitivity
from memgraph.model.values import compact_json
from memgraph.providers.completion import CompletionProvider, completion_provider, estimated_tokens
from memgraph.providers.options import options_of
from memgraph.providers.usage import ModelUsage, usage_tally
from memgraph.service.meters import Meters
from memgraph.store import metadata
from memgraph.store.engine import Database
from memgraph.store.snapshot import Snapshot


@dataclass(frozen=True)
class LanguageModel:
    """A language model that answers with JSON; see ``memgraph.providers.completion.ask_json``.

    Attributes:
        max_sensitivity: the highest sensitivity of texts that may be sent to the model.
        meter: admits calls and counts what they use; None: nobody does.
    """

    completion: CompletionProvider
    max_sensitivity: Sensitivity = Sensitivity.INTERNAL
    meter: ModelMeter | None = None

    @property
    def name(self) -> str:
        return self.completion.name

    def completion_for(self, use: ModelUse) -> CompletionProvider:
        """Return the JSON interface, whose calls are counted under a use."""
        if self.meter is None:
            return self.completion
        return MeteredCompletion(self.completion, self.meter, use)

    def may_read(self, sensitivity: Sensitivity) -> bool:
        """Return True if a text of this sensitivity may be sent to the model."""
        return sensitivity.level <= self.max_sensitivity.level


def configured_llm(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> LanguageModel | None:
    """Return the model of ``memory.llm.provider``; None if that is ``none``.

    Opens no connection.
    """
    chosen = settings.memory.llm
    if chosen.provider == "none":
        return None
    completion = completion_provider(
        chosen.provider, **options_of(chosen, environ, chosen.timeout_s)
    )
    return LanguageModel(completion, Sensitivity(chosen.max_sensitivity))


USAGE_KEY: Final = "model.usage."
"""The prefix of the key of a month's usage, followed by the month, such as ``2026-11``."""
FAILURE_KEY: Final = "model.failure"
"""The key of the error code of the last call, if it failed."""


class ModelMeter:
    """Counts what the language models of one orchestrator use in a calendar month (UTC).

    The counts are in the database, so that all processes share them. What cannot be written stays
    in memory until the next call.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        log: EventLog,
        meters: Meters,
        monthly_tokens: int,
    ) -> None:
        self._database = database
        self._clock = clock
        self._log = log
        self._meters = meters
        self._limit = monthly_tokens
        self._unwritten: dict[tuple[str, ModelUse], ModelUsage] = defaultdict(ModelUsage)
        self._lock = threading.Lock()

    def admit(self) -> None:
        """Raise MonthlyLimitReached if no more calls may be made this month."""
        if not self._limit:
            return
        month = self._month()
        with self._database.read() as snapshot:
            stored = sum(usage.tokens for usage in model_usage(snapshot, month).values())
        with self._lock:
            unwritten = sum(usage.tokens for usage in self._unwritten.values())
        if stored + unwritten >= self._limit:
            raise MonthlyLimitReached(
                f"the {self._limit} tokens of {month} are used up: raise"
                " memory.llm.monthly_tokens, or wait for the next month",
                key="memory.llm.monthly_tokens",
                limit=self._limit,
                month=month,
            )

    def record(self, use: ModelUse, usage: ModelUsage, error_code: str | None) -> None:
        """Add the usage of one call; ``error_code``: why it failed, or None."""
        self._meters.count("model_calls", use.value, error_code or "ok")
        self._meters.count("model_tokens", use.value, "in", amount=usage.tokens_in)
        self._meters.count("model_tokens", use.value, "out", amount=usage.tokens_out)
        with self._lock:
            self._unwritten[self._month(), use].add(usage)
            try:
                self._write(error_code)
            except StorageError as error:
                self._log.failure("model.usage", error)
            else:
                self._unwritten.clear()

    def _write(self, error_code: str | None) -> None:
        with self._database.write(durable=False) as transaction:
            for (month, use), usage in self._unwritten.items():
                usages = model_usage(transaction, month)
                usages.setdefault(use, ModelUsage()).add(usage)
                counts = {str(each): usages[each].as_counts() for each in usages}
                metadata.put(transaction, USAGE_KEY + month, compact_json(counts))
            if error_code is not None:
                metadata.put(transaction, FAILURE_KEY, error_code)
            elif metadata.get(transaction, FAILURE_KEY) is not None:
                metadata.drop(transaction, FAILURE_KEY)

    def _month(self) -> str:
        return month_of(self._clock.now_ms())

    def shortcomings(self, snapshot: Snapshot) -> list[str]:
        """Return the codes of what keeps the models from working."""
        codes = []
        if metadata.get(snapshot, FAILURE_KEY) is not None:
            codes.append("model.failing")
        usages = model_usage(snapshot, self._month())
        if self._limit and sum(usage.tokens for usage in usages.values()) >= self._limit:
            codes.append(MonthlyLimitReached.code)
        return codes


class MeteredCompletion:
    """A language model whose calls are counted under a use; see `CompletionProvider`."""

    def __init__(self, provider: CompletionProvider, meter: ModelMeter, use: ModelUse) -> None:
        self._provider = provider
        self._meter = meter
        self._use = use
        self.name = provider.name

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        """See `CompletionProvider.complete_json`.

        Raises:
            MonthlyLimitReached: the tokens of this month are used up; nothing was sent.
        """
        self._meter.admit()
        failure: ProviderError | None = None
        answer: Any = None
        with usage_tally() as usage:
            try:
                answer = self._provider.complete_json(system, user, schema)
            except ExtraMissing:
                raise
            except ProviderError as error:
                failure = error
            usage.calls += 1
            if failure is None or _was_read(failure):
                usage.tokens_in = usage.tokens_in or sum(
                    map(estimated_tokens, (system, user, schema))
                )
            if failure is None:
                usage.tokens_out = usage.tokens_out or estimated_tokens(answer)
        self._meter.record(self._use, usage, None if failure is None else failure.code)
        if failure is not None:
            raise failure
        return answer


def _was_read(failure: ProviderError) -> bool:
    """Return True if the model may have read, and its provider may charge, a request that failed.

    A request that was refused, or met a status of 429 or 5xx, costs nothing.
    """
    if isinstance(failure, ProviderUnavailable):
        return failure.details.get("reason") == "timeout"
    return isinstance(failure, ProviderAnswerInvalid)


def month_of(at_ms: int) -> str:
    """Return the calendar month of a time in UTC, such as ``2026-11``."""
    return iso(at_ms)[: len("2026-11")]


def model_usage(snapshot: Snapshot, month: str) -> dict[ModelUse, ModelUsage]:
    """Return what the models used in a month, by what for."""
    text = metadata.get(snapshot, USAGE_KEY + month)
    counts: dict[str, Any] = {} if text is None else json.loads(text)
    return {ModelUse(use): ModelUsage(**numbers) for use, numbers in counts.items()}


def chosen_extractor(model: LanguageModel | None) -> Extractor:
    """Return the extractor of a model; without one, what reads only labelled sentences."""
    if model is None:
        return LabelExtractor()
    from memgraph.consolidation.page_model import ModelExtractor

    return ModelExtractor(
        model.completion_for(ModelUse.CONSOLIDATION),
        LabelExtractor(),
        max_sensitivity=model.max_sensitivity,
    )
