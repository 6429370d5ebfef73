"""Count the calls and tokens of language models, and bound those of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

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
