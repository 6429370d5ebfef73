"""Count tokens with the tokenizers in litellm's own package, without any download.

litellm would download the tokenizers of Llama and Command R at first use, and use that of an old
OpenAI model for unknown models. Neither is used here.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

from memgraph.providers import _litellm

# The package contains two encodings of OpenAI, and the tokenizer of Anthropic.
_ENCODINGS: Final = frozenset({"cl100k_base", "o200k_base"})
# The prefixes of providers that serve the models of OpenAI or Anthropic.
_PREFIXES: Final = ("openai/", "azure/", "anthropic/")
_WITHOUT_A_TOKENIZER = "claude-3"
_KEPT_COUNTS = 8_192


class LitellmCounter:
    """Count tokens as litellm does for one model.

    Args:
        model: the name of the model in litellm.
        tokenizer_model: the name under which litellm finds its tokenizer.
    """

    def __init__(self, model: str, tokenizer_model: str) -> None:
        self.name = f"litellm:{model}"
        self._model = tokenizer_model
        self._counter: Any = importlib.import_module("litellm").token_counter
        self.count = lru_cache(maxsize=_KEPT_COUNTS)(self._count)

    def _count(self, text: str) -> int:
        return int(self._counter(model=self._model, text=text)) if text else 0


def tokenizer_of(model: str) -> LitellmCounter | None:
    """Return the token counter of a model; None without litellm or a suitable tokenizer in it.

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
