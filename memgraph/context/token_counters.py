"""Token counters: a model's own tokenizer if it is available, else an estimate.

Tokenizers come with litellm, which takes seconds to load. It is loaded in a thread; the estimate is
used until it is ready. Nothing is ever downloaded for counting.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Final, Protocol

from memgraph.model.recall import Degraded
from memgraph.rules.budget import token_cost

ESTIMATE: Final = "estimate"
_KEPT_COUNTS = 8_192
_MOST_MODELS = 64
"""The maximum number of models looked up; further ones get the estimate."""


class TokenCounter(Protocol):
    """Counts the tokens of a text.

    Attributes:
        name: ``litellm:<model>`` or ``estimate``.
    """

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, 0 or more; always the same for the same text."""
        ...


class EstimatedCounter:
    """Estimates with `memgraph.rules.budget.token_cost`, which documents its error."""

    name = ESTIMATE

    def __init__(self) -> None:
        self.count = lru_cache(maxsize=_KEPT_COUNTS)(token_cost)


_UNKNOWN = Degraded(
    code="tokenizer.unknown",
    text="the tokenizer of this model is not available; tokens are estimated",
)
_LOADING = Degraded(
    code="tokenizer.loading",
    text="the tokenizer of this model is still being loaded; tokens are estimated",
)


class TokenCounters:
    """Loads the token counter of each model once per process. Thread-safe."""

    def __init__(self) -> None:
        self._estimate = EstimatedCounter()
        self._lock = threading.Lock()
        self._found: dict[str, TokenCounter | None] = {}
        self._loading: dict[str, threading.Thread] = {}

    def at_hand(self, model: str | None) -> tuple[TokenCounter, tuple[Degraded, ...]]:
        """Return the counter of a model without waiting, and why it is only the estimate, if so.

        A tokenizer that is not loaded yet starts loading in a thread.
        """
        if model is None:
            return self._estimate, ()
        if model not in self._found and self._start(model) is not None:
            return self._estimate, (_LOADING,)
        counter = self._found.get(model)
        return (self._estimate, (_UNKNOWN,)) if counter is None else (counter, ())

    def wait(self, model: str, timeout_s: float | None = None) -> bool:
        """Wait until the tokenizer of a model is loaded or known to be unavailable.

        Args:
            timeout_s: seconds; None: no limit.

        Returns:
            False on a timeout, or if too many models were looked up before.
        """
        if model not in self._found and (thread := self._start(model)) is not None:
            thread.join(timeout_s)
        return model in self._found

    def _start(self, model: str) -> threading.Thread | None:
        """Return the thread that loads the tokenizer; None if too many models were looked up."""
        with self._lock:
            thread = self._loading.get(model)
            if thread is None and len(self._loading) < _MOST_MODELS:
                # A daemon thread, so that a program can exit without waiting for litellm.
                thread = threading.Thread(
                    target=self._load, args=(model,), name="memgraph-tokenizer", daemon=True
                )
                self._loading[model] = thread
                thread.start()
            return thread

    def _load(self, model: str) -> None:
        from memgraph.providers.litellm_tokens import tokenizer_of

        counter = None
        try:
            counter = tokenizer_of(model)
        finally:
            self._found[model] = counter
