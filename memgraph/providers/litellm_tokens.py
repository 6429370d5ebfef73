"""Counting tokens with the tokenizers that lie in litellm's own package; never a download.

litellm knows more tokenizers than it holds: those of Llama and Command R it fetches at first use,
and for a model that it does not know it counts as an old OpenAI model would. Both are refused here.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

from memgraph.providers import _litellm

# What lies in the package: two of OpenAI's, and Anthropic's.
_ENCODINGS: Final = frozenset({"cl100k_base", "o200k_base"})
# Names of providers that serve OpenAI's or Anthropic's own models.
_PREFIXES: Final = ("openai/", "azure/", "anthropic/")
_WITHOUT_A_TOKENIZER = "claude-3"
_KEPT_COUNTS = 8_192


class LitellmCounter:
    """Counts as litellm does for one model.

    Args:
        model: as litellm names it.
        tokenizer_model: the name by which litellm finds the tokenizer.
    """

    # A token of a byte-pair encoding may hold a newline and what follows it.
    by_line = False

    def __init__(self, model: str, tokenizer_model: str) -> None:
        self.name = f"litellm:{model}"
        self._model = tokenizer_model
        self._counter: Any = importlib.import_module("litellm").token_counter
        self.count = lru_cache(maxsize=_KEPT_COUNTS)(self._count)

    def _count(self, text: str) -> int:
        return int(self._counter(model=self._model, text=text)) if text else 0


def tokenizer_of(model: str) -> LitellmCounter | None:
    """Return the counter of a model; None: litellm is not installed, or the tokenizer is not in it.

    Loads litellm, which takes seconds.
    """
    if find_spec("litellm") is None or find_spec("tiktoken") is None:
        return None
    bare = model
    for prefix in _PREFIXES:
        bare = bare.removeprefix(prefix)
    _litellm.load()
    return LitellmCounter(model, bare) if _is_of_openai(bare) or _is_of_anthropic(bare) else None


def _is_of_openai(model: str) -> bool:
    tiktoken: Any = importlib.import_module("tiktoken")
    try:
        return tiktoken.encoding_name_for_model(model) in _ENCODINGS
    except KeyError:
        return False


def _is_of_anthropic(model: str) -> bool:
    anthropic_models: Any = importlib.import_module("litellm").anthropic_models
    return model in anthropic_models and _WITHOUT_A_TOKENIZER not in model
