"""The anchor: a small file next to the database with the journal's head.

It is written after each commit and never synced. After a crash it may be behind the journal, but
never ahead: a journal without the anchored entry was truncated or rewritten. Such an anchor is
evidence, so later writes leave it unchanged until somebody accepts the journal and gives a reason.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path

from memgraph.audit.journal import JournalHead
from memgraph.errors import JournalBroken
from memgraph.store import journal
from memgraph.store.snapshot import Snapshot

_FORM = re.compile(r"(\d{20}) ([0-9a-f]{64}|-{64})\n")


class AnchorState(StrEnum):
    """The result of comparing a journal with its anchor.

    ``behind``: acknowledged journal entries are missing or were changed. ``missing``, ``damaged``:
    there is no usable anchor to compare with.
    """

    AGREES = "agrees"
    BEHIND = "behind"
    MISSING = "missing"
    DAMAGED = "damaged"


def anchor_path(database: Path, folder: str = "") -> Path:
    """Return the path of the anchor of an orchestrator's database.

    Args:
        folder: the value of ``memory.audit.anchor_path``; empty: next to the database.
    """
    if not folder:
        return database.with_name("journal.anchor")
    return Path(folder).expanduser() / f"{database.parent.parent.name}.anchor"


def write(path: Path, head: JournalHead) -> None:
    """Write the head in place, with one write of fixed length, short enough to be atomic."""
    record = f"{head.seq:020d} {head.hash or '-' * 64}\n".encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        os.pwrite(handle, record, 0)
    finally:
        os.close(handle)


def read(path: Path) -> JournalHead | None:
    """Return the anchored head; None when there is no anchor.

    Raises:
        JournalBroken: the file is not an anchor, or cannot be read.
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
    return JournalHead(int(match[1]), match[2].strip("-"))


def read_state(path: Path) -> JournalHead | AnchorState | None:
    """Return the anchored head; None when there is no anchor, or ``DAMAGED``."""
    try:
        return read(path)
    except JournalBroken:
        return AnchorState.DAMAGED


def compare(snapshot: Snapshot, anchored: JournalHead | AnchorState | None) -> AnchorState:
    """Compare the journal with its anchor.

    Args:
        anchored: the result of ``read_state`` from before the snapshot began, so that the snapshot
            must contain the anchored entry.
    """
    if isinstance(anchored, AnchorState):
        return anchored
    if anchored is None:
        empty = journal.head(snapshot)[0] == 0
        return AnchorState.AGREES if empty else AnchorState.MISSING
    holds = anchored.seq == 0 or journal.hash_of(snapshot, anchored.seq) == anchored.hash
    return AnchorState.AGREES if holds else AnchorState.BEHIND


def require_held(
    snapshot: Snapshot, anchored: JournalHead | AnchorState | None, orchestrator: str
) -> AnchorState:
    """Compare the journal with its anchor, and raise if entries are missing.

    Raises:
        JournalBroken: the journal lacks acknowledged entries.
    """
    state = compare(snapshot, anchored)
    if state is AnchorState.BEHIND and isinstance(anchored, JournalHead):
        seq = journal.head(snapshot)[0]
        raise JournalBroken(
            f"the journal ends at entry {seq} and lacks the acknowledged entry {anchored.seq};"
            f" writes are refused until you run: memgraph repair {orchestrator}",
            seq=seq,
            anchored=anchored.seq,
        )
    return state
