"""The anchor: a small file beside the database that holds the journal's head.

It is written after each commit and never synced, so it may lag behind a crash, but never run ahead:
a journal that does not hold the anchored entry was cut or rewritten.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from memgraph.audit.journal import Head
from memgraph.errors import JournalBroken

_FORM = re.compile(r"(\d{20}) ([0-9a-f]{64}|-{64})\n")


def anchor_path(database: Path) -> Path:
    return database.with_name("journal.anchor")


def write(path: Path, head: Head) -> None:
    """One write of fixed length in place: short enough to be whole or not at all."""
    record = f"{head.seq:020d} {head.hash or '-' * 64}\n".encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        os.pwrite(handle, record, 0)
    finally:
        os.close(handle)


def read(path: Path) -> Head | None:
    """The anchored head; None when there is no anchor.

    Raises:
        JournalBroken: the file is there and is not an anchor.
    """
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        text = ""
    match = _FORM.fullmatch(text)
    if match is None:
        raise JournalBroken(f"{path} is not a journal anchor", path=str(path))
    return Head(int(match[1]), match[2].strip("-"))
