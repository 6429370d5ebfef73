"""Patterns of words."""

from __future__ import annotations

import re
from typing import Final

LETTERS: Final = re.compile(r"[^\W\d_]+")
"""Runs of letters."""
WORDS: Final = re.compile(r"[^\W_]+")
"""Runs of letters and digits, as the text index splits a text."""
CONTRACTIONS: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
"""Words; a contraction is one word: "don't"."""
COMPOUNDS: Final = re.compile(r"[^\W_]+(?:['’.+/:-][^\W_]+)*+")
"""Words; a compound, a path or a version is one word: "well-known", "3.11", "10:30"."""
