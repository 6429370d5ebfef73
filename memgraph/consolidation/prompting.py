"""Data from outside inside a prompt of consolidation."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from typing import Any

from memgraph.rules.budget import token_cost

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def random_mark() -> str:
    """A word that no text can know; new for every prompt."""
    return secrets.token_hex(8)


def fenced_lines(values: Iterable[Any], mark: str) -> str:
    """Values as JSON, each on a line of its own, between two marks that hold the random word."""
    # ASCII alone: what stands for no visible character shows as an escape.
    lines = [json.dumps(value).translate(_ESCAPES) for value in values]
    return "\n".join((f"<data-{mark}>", *lines, f"</data-{mark}>"))


def estimated_tokens(value: Any) -> int:
    """What a value costs as JSON in a prompt, for models that do not report it."""
    return token_cost(value if isinstance(value, str) else json.dumps(value))
