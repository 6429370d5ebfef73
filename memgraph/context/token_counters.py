"""Token counters: a model's own tokenizer if it is available, else an estimate.

A tokenizer comes with litellm, which takes seconds to load: it is loaded in a thread, and until
then the estimate is used. Nothing is ever downloaded for counting.
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
        by_line: a text costs exactly what its lines cost one by one.
    """

    @property
    def name(self) -> str: ...

    @property
    def by_line(self) -> bool: ...

    def count(self, text: str) -> int:
        """Return the tokens of a text, >= 0; the same for the same text."""
        ...


class EstimatedCounter:
    """`memgraph.rules.budget.token_cost`; its docstring documents the error."""

    name = ESTIMATE
    # No token of the estimate holds white space.
    by_line = True

    def __init__(self) -> None:
        self.count = lru_cache(maxsize=_KEPT_COUNTS)(token_cost)


_UNKNOWN = Degraded(
    code="tokenizer.unknown",
    text="the tokenizer of this model is not at hand; tokens are estimated",
)
_LOADING = Degraded(
    code="tokenizer.loading",
    text="the tokenizer of this model is still being loaded; tokens are estimated",
)


class TokenCounters:
    """The counters of a process's models, each loaded once. Thread-safe."""

    def __init__(self) -> None:
        self._estimate = EstimatedCounter()
        self._lock = threading.Lock()
        self._found: dict[str, TokenCounter | None] = {}
        self._loading: dict[str, threading.Thread] = {}

    def at_hand(self, model: str | None) -> tuple[TokenCounter, tuple[Degraded, ...]]:
        """Return the current counter of a model, without waiting, and why it is not its own
        tokenizer.

        One that is not loaded yet is loaded in a thread meanwhile.
        """
        if model is None:
            return self._estimate, ()
        if model not in self._found and self._start(model) is not None:
            return self._estimate, (_LOADING,)
        counter = self._found.get(model)
        return (self._estimate, (_UNKNOWN,)) if counter is None else (counter, ())

    def wait(self, model: str, timeout_s: float | None = None) -> bool:
        """Wait until the counter of a model is known; return True when it is.

        Args:
            timeout_s: seconds; None: as long as it takes.
        """
        if model not in self._found and (thread := self._start(model)) is not None:
            thread.join(timeout_s)
        return model in self._found

    def _start(self, model: str) -> threading.Thread | None:
        """Return the thread that loads it; None: there were too many other models."""
        with self._lock:
            thread = self._loading.get(model)
            if thread is None and len(self._loading) < _MOST_MODELS:
                # A daemon: a program that ends does not wait for litellm.
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
