"""Text from outside, made safe for a terminal; values made safe for a program."""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from typing import Any

# Joiners that scripts and emoji need, and that cannot reorder or hide anything by themselves.
_HARMLESS_FORMAT = frozenset("\u200c\u200d\u00ad")
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def plain(text: str, *, keep_lines: bool = False) -> str:
    """Return ``text`` with every control, format and surrogate character shown as an escape.

    A terminal obeys escape sequences, and right-to-left overrides can make a line appear as
    something else; here they become visible: ESC is ``\\x1b``.

    Args:
        keep_lines: keep line feeds; otherwise they become spaces.
    """
    kept_part = "\n" if keep_lines else " "
    return "".join(kept_part if item == "\n" else _shown(item) for item in text.expandtabs(4))


def counted(number: int, text: str, many: str | None = None) -> str:
    """Return ``1 time``, ``2 times``. ``many``: the plural when it is not ``text`` with an s."""
    return f"{number} {text if number == 1 else many or text + 's'}"


def json_line(value: Any, *, ascii_only: bool = False) -> str:
    """Return one line of JSON without characters that act on a terminal: those are ``\\u`` escapes.

    Args:
        ascii_only: for an output limited to ASCII.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)
    if text.isascii() and text.isprintable():
        return text
    return "".join(item if _is_safe(item) else _json_escape(item) for item in text)


@lru_cache(maxsize=4096)
def _is_safe(char: str) -> bool:
    return char in _HARMLESS_FORMAT or unicodedata.category(char) not in _UNSAFE


def _shown(char: str) -> str:
    if char == " " or _is_safe(char):
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
