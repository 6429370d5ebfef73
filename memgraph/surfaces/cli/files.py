"""Make text safe to print on a terminal, and count things in words."""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from typing import Any

# Joiners that some scripts and emoji need, and that cannot reorder or hide text.
_HARMLESS_FORMAT = frozenset("\u200c\u200d\u00ad")
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def plain(text: str, *, keep_lines: bool = False) -> str:
    """Return ``text`` with control, format and surrogate characters replaced by visible escapes.

    A terminal obeys escape sequences, and right-to-left overrides can disguise a line. Here they
    become visible: ESC is shown as ``\\x1b``.

    Args:
        keep_lines: keep line feeds; otherwise they become spaces.
    """
    line_break = "\n" if keep_lines else " "
    return "".join(line_break if item == "\n" else _escaped(item) for item in text.expandtabs(4))


def counted(number: int, text: str, many: str | None = None) -> str:
    """Return a number with its noun, such as ``1 time`` or ``2 times``.

    Args:
        many: the plural, if it is not ``text`` with an s.
    """
    return f"{number} {text if number == 1 else many or text + 's'}"


def json_line(value: Any, *, ascii_only: bool = False) -> str:
    """Return one line of JSON with characters that a terminal would obey as ``\\u`` escapes.

    Args:
        ascii_only: escape all characters outside of ASCII, too.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)
    if text.isascii() and text.isprintable():
        return text
    return "".join(item if _is_safe(item) else _json_escape(item) for item in text)


@lru_cache(maxsize=4096)
def _is_safe(char: str) -> bool:
    return char in _HARMLESS_FORMAT or unicodedata.category(char) not in _UNSAFE


def _escaped(char: str) -> str:
    if char == " " or _is_safe(char):
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
