"""The anchor: a small file beside the database that holds the journal's head.

It is written after each commit and never synced, so it may lag behind a crash, but never run ahead:
a journal that does not hold the anchored entry was cut or rewritten. Such an anchor is evidence: it
stays as it is, whatever is written afterwards, until somebody accepts the journal with a reason.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import sqlalchemy as sa

from memgraph.audit.journal import Head
from memgraph.errors import JournalBroken
from memgraph.storage import journal

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
        JournalBroken: something is there that is no anchor, or cannot be read.
    """
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, OSError):
        text = ""
    match = _FORM.fullmatch(text)
    if match is None:
        raise JournalBroken(f"{path} is not a journal anchor", path=str(path))
    return Head(int(match[1]), match[2].strip("-"))


def agrees(connection: sa.Connection, path: Path) -> bool:
    """Whether the journal holds the anchored entry, before anything is added to it.

    An empty journal needs no anchor; one with entries and without an anchor does not agree.
    """
    try:
        anchored = read(path)
    except JournalBroken:
        return False
    if anchored is None:
        return journal.head(connection)[0] == 0
    return anchored.seq == 0 or journal.hash_of(connection, anchored.seq) == anchored.hash
