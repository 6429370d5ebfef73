"""The anchor: a small file next to the database with the journal's head.

It is written after each commit and never synced. After a crash it may be behind the journal, but
never ahead: a journal without the anchored entry was truncated or rewritten. An anchor that was set
back, behind what the last nightly audit saw or before the first entry, counts as damaged. Either is
evidence, so later writes leave it unchanged until somebody accepts the journal and gives a reason.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from memgraph.audit.findings import AnchorState
from memgraph.errors import JournalBroken
from memgraph.store import journal, metadata
from memgraph.store.files import fsync
from memgraph.store.journal import JournalHead
from memgraph.store.snapshot import Snapshot

_FORM = re.compile(r"(\d{20}) ([0-9a-f]{64}|-{64})\n")


def anchor_path(database: Path, folder: str = "") -> Path:
    """Return the path of the anchor of an orchestrator's database.

    Args:
        folder: the value of ``memory.audit.anchor_path``; empty: next to the database.
    """
    if not folder:
        return database.with_name("journal.anchor")
    return Path(folder).expanduser() / f"{database.parent.parent.name}.anchor"


# More than a record has, so that a longer file does not match.
_MOST_BYTES = 128


def write(path: Path, head: JournalHead) -> None:
    """Write the head in place, with one write of fixed length, short enough to be atomic."""
    record = f"{head.seq:020d} {head.hash or '-' * 64}\n".encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        os.pwrite(handle, record, 0)
    finally:
        os.close(handle)


def read(path: Path) -> JournalHead | AnchorState:
    """Return the anchored head; ``MISSING`` or ``DAMAGED`` without one."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # Every write reads it: this takes a quarter of the time of ``read_text``.
            text = os.read(handle, _MOST_BYTES).decode("ascii")
        finally:
            os.close(handle)
    except FileNotFoundError:
        return AnchorState.MISSING
    except (UnicodeDecodeError, OSError):
        return AnchorState.DAMAGED
    match = _FORM.fullmatch(text)
    if match is None:
        return AnchorState.DAMAGED
    return JournalHead(int(match[1]), match[2].strip("-"))


def read_durable(path: Path) -> JournalHead | None:
    """Return the anchored head after flushing the anchor to disk; None without a usable anchor."""
    head = read(path)
    if not isinstance(head, JournalHead):
        return None
    fsync(path)
    return head


def compare(snapshot: Snapshot, anchored: JournalHead | AnchorState, path: Path) -> AnchorState:
    """Compare the journal with its anchor, and both with what the last nightly audit saw.

    Args:
        anchored: the result of ``read`` from before the snapshot began, so that the snapshot
            must contain the anchored entry.
        path: the path of the anchor.
    """
    seen = metadata.last_verification(snapshot).seen
    if seen is not None and journal.hash_of(snapshot, seen[0]) != seen[1]:
        return AnchorState.BEHIND
    if isinstance(anchored, AnchorState):
        # A database that was never written to has no anchor yet.
        is_new = anchored is AnchorState.MISSING and journal.head(snapshot).seq == 0
        return AnchorState.AGREES if is_new else anchored
    if anchored.seq and journal.hash_of(snapshot, anchored.seq) != anchored.hash:
        return AnchorState.BEHIND

    def is_set_back(head: JournalHead) -> bool:
        # A process that dies between a commit and its anchor leaves one change unanchored.
        behind_seen = seen is not None and head.seq < seen[0]
        return behind_seen or (head.seq == 0 and journal.has_several_changes(snapshot))

    if is_set_back(anchored):
        # It may have moved on since it was read, before the snapshot began.
        current = read(path)
        if not isinstance(current, JournalHead) or is_set_back(current):
            return AnchorState.DAMAGED
    return AnchorState.AGREES


def require_held(
    snapshot: Snapshot, anchored: JournalHead | AnchorState, path: Path, orchestrator: str
) -> AnchorState:
    """Compare the journal with its anchor, and raise if entries are missing.

    Raises:
        JournalBroken: the journal lacks acknowledged entries.
    """
    state = compare(snapshot, anchored, path)
    if state is AnchorState.BEHIND:
        seq = journal.head(snapshot).seq
        known, _ = metadata.last_verification(snapshot).seen or (0, "")
        if isinstance(anchored, JournalHead):
            known = max(known, anchored.seq)
        raise JournalBroken(
            f"the journal ends at entry {seq} and lacks the acknowledged entry {known};"
            f" writes are refused until you run: memgraph repair {orchestrator}",
            seq=seq,
            anchored=known,
        )
    return state
