"""Writing a command's output to a file that a person named."""

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

from memgraph.errors import Conflict
from memgraph.paths import take_free_name


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, by renaming a draft beside it.

    A named device or pipe is written to directly.

    Raises:
        OSError: the folder is missing or may not be written, or the disk is full.
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
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that gets its name when the block succeeds, and never replaces another.

    For what cannot be done twice: that the file can be written is checked before the block.

    Raises:
        Conflict: the file exists.
        OSError: the folder is missing or may not be written, or the disk is full.
    """
    if os.path.lexists(path):
        raise Conflict(f"the file already exists: {path}", path=str(path))
    with _draft_of(path) as (file, draft):
        yield file
        file.close()
        take_free_name(draft, path)


@contextmanager
def _draft_of(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    if not target.parent.is_dir():
        # Otherwise the error would name the draft, which the user does not know.
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, draft
    finally:
        draft.unlink(missing_ok=True)


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
