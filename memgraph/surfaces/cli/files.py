"""Write files that a user names, and make text safe to print on a terminal."""

from __future__ import annotations

import errno
import json
import os
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, by renaming a temporary file in the same folder.

    A device or a pipe is written to directly.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = path.resolve()
    with _draft_of(target) as (file, draft):
        file.write(data)
        file.close()
        draft.replace(target)


@contextmanager
def _draft_of(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    if not target.parent.is_dir():
        # Otherwise the error would name the temporary file, which the user does not know.
        raise FileNotFoundError(errno.ENOENT, "the folder does not exist", str(target.parent))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, draft
    finally:
        draft.unlink(missing_ok=True)


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


def counted_as(name: str, number: int) -> str:
    """Return a number with the name of a count, a plural such as ``journal_entries``."""
    noun = name.replace("_", " ")
    if number != 1:
        return f"{number} {noun}"
    if noun.endswith("ies"):
        return f"1 {noun[:-3]}y"
    return f"1 {noun[:-2] if noun.endswith(('xes', 'sses')) else noun.removesuffix('s')}"


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
