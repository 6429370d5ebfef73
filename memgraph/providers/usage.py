"""Count the calls and tokens of a language model, and refuse calls above a limit.

``MeteredCompletion`` wraps a provider: before each call its meter may refuse it, after each call
the meter gets what it used, as the provider reports it or else as estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from memgraph.errors import (
    ExtraMissing,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderUnavailable,
)
from memgraph.model.enums import ModelUse
from memgraph.providers.completion import estimated_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memgraph.providers.completion import CompletionProvider


CALLS_PER_RUN: Final = 200
TOKENS_PER_RUN: Final = 500_000
"""Tokens, read and written."""


@dataclass(slots=True)
class ModelUsage:
    """The number of calls of a model, and the tokens that it read and wrote."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def ends_run(self) -> bool:
        """True if a run that has used this much makes no more calls."""
        return self.calls >= CALLS_PER_RUN or self.tokens >= TOKENS_PER_RUN

    def add(self, other: ModelUsage) -> None:
        self.calls += other.calls
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out

    def as_counts(self) -> dict[str, int]:
        """Return the three numbers by name."""
        return {"calls": self.calls, "tokens_in": self.tokens_in, "tokens_out": self.tokens_out}


_tally: ContextVar[ModelUsage | None] = ContextVar("memgraph_model_usage", default=None)


@contextmanager
def usage_tally() -> Iterator[ModelUsage]:
    """Yield the usage of all metered calls of this thread within the block."""
    outer, own = _tally.get(), ModelUsage()
    token = _tally.set(own)
    try:
        yield own
    finally:
        _tally.reset(token)
        if outer is not None:
            outer.add(own)


def report_tokens(tokens_in: int | None, tokens_out: int | None) -> None:
    """Add the tokens that a provider reports for the current call; None: it reports none."""
    tally = _tally.get()
    if tally is not None:
        tally.tokens_in += tokens_in or 0
        tally.tokens_out += tokens_out or 0


class UsageMeter(Protocol):
    """Keeps the usage of a model. Called from many threads."""

    def admit(self, use: ModelUse) -> None:
        """Raise MonthlyLimitReached if no more calls may be made."""
        ...

    def record(self, use: ModelUse, usage: ModelUsage, error_code: str | None) -> None:
        """Add the usage of one call; ``error_code``: why it failed, or None."""
        ...


class MeteredCompletion:
    """A language model whose calls are counted; see `CompletionProvider`.

    Args:
        provider: the model.
        meter: admits calls and records their usage.
        use: what the calls are made for.
    """

    def __init__(
        self, provider: CompletionProvider, meter: UsageMeter, use: ModelUse = ModelUse.OTHER
    ) -> None:
        self._provider = provider
        self._meter = meter
        self._use = use

    @property
    def name(self) -> str:
        return self._provider.name

    def used_for(self, use: ModelUse) -> MeteredCompletion:
        """Return the same model, whose calls are counted under ``use``."""
        return MeteredCompletion(self._provider, self._meter, use)

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> Any:
        """See `CompletionProvider.complete_json`.

        Raises:
            MonthlyLimitReached: the tokens of this month are used up; nothing was sent.
        """
        self._meter.admit(self._use)
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


TIMEOUT: Final = "timeout"


def _was_read(failure: ProviderError) -> bool:
    """Return True if the model may have read, and its provider may charge, a request that failed.

    A request that was refused, or met a status of 429 or 5xx, costs nothing.
    """
    if isinstance(failure, ProviderUnavailable):
        return failure.details.get("reason") == TIMEOUT
    return isinstance(failure, ProviderAnswerInvalid)
