"""Move an orchestrator between a file and database servers.

The setting ``memory.storage.url`` decides which store is in use; it is changed atomically once the
copy is verified. If a move is interrupted before that, the old store stays in use; afterwards only
the old store remains to be put aside. The next move completes either case.
"""

from __future__ import annotations

import json
import re
import time
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from memgraph.audit import anchor
from memgraph.clock import Clock
from memgraph.errors import Conflict, InvalidConfig
from memgraph.operations.erasure.plan import note_left_on_server
from memgraph.operations.erasure.signatures import RedactionProofs
from memgraph.operations.maintenance.maintenance import checked_copy, free_name, sound_anchor
from memgraph.paths import OrchestratorPaths, naming_full_disk
from memgraph.store import journal, metadata
from memgraph.store.engine import store_of
from memgraph.store.files import FileLock, draft_beside, publish

if TYPE_CHECKING:
    from memgraph.store.engine import Store

_TABLE: Final = re.compile(r"^\[memory\.storage\][^\n]*\n?", re.MULTILINE)
_URL: Final = re.compile(r"^[ \t]*url[ \t]*=[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MoveReport:
    """A finished move.

    Attributes:
        source, target: the URLs of servers; empty for a file.
        left: the folder or schema where the old store is kept; None if it was removed.
        memories: the number of verified memories; 0 if this only finished an earlier move.
        paused_ms: how long writers waited.
    """

    orchestrator: str
    source: str
    target: str
    left: str | None
    memories: int
    paused_ms: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def move(
    paths: OrchestratorPaths,
    target: str,
    *,
    source: str,
    clock: Clock,
    anchor_folder: str = "",
    key: bytes | None = None,
) -> MoveReport:
    """Move an orchestrator to another store, or finish an interrupted move.

    Reads continue. Writers wait from the start of the copy to the end of the move.

    Args:
        target: the URL of a server; empty for a file.
        source: the current URL, as in the settings.
        anchor_folder: the folder of the anchors; empty: next to the database.
        key: the key of a keyed journal.

    Raises:
        Conflict: the orchestrator is already there.
        OrchestratorExists: the target is not empty.
        InvalidConfig: the URL is invalid, or ``config.toml`` cannot be changed.
        DatabaseCorrupt, JournalBroken: the copy failed the audit; nothing was moved.
    """
    with naming_full_disk(paths.memory), FileLock(paths.memory / "moving.lock").held():
        unfinished = json.loads(paths.moving.read_text("utf-8")) if paths.moving.exists() else None
        if unfinished is not None and unfinished[1] == source:
            left_at = _put_aside(paths, unfinished[0], clock)
            paths.moving.unlink()
            return MoveReport(paths.name, unfinished[0], source, left_at, 0, 0)
        if source == target:
            raise Conflict("the orchestrator already uses this store", orchestrator=paths.name)
        settings = _placed(paths, target)
        if unfinished is not None:
            # An interrupted move published this copy, but it was never used.
            if _is_copy(store_of(paths, unfinished[1]), store_of(paths, source)):
                _put_aside(paths, unfinished[1], clock)
            paths.moving.unlink()
        paths.moving.write_text(json.dumps([source, target]), "utf-8")
        published = False
        try:
            old, new = store_of(paths, source), store_of(paths, target)
            new.require_free()
            with (
                new.draft(paths.memory) as draft,
                TemporaryDirectory(prefix=".draft-", dir=paths.memory) as folder,
                old.locked() as require_lock,
            ):
                started = time.monotonic()
                anchored = sound_anchor(anchor.anchor_path(paths.database, anchor_folder))
                file = Path(folder) / "copy.db"
                old.back_up(file)
                draft.take(file)
                draft.admit(of_any=False, key=key)
                with draft.inspect() as snapshot:
                    proofs = RedactionProofs(paths)
                    report = checked_copy(snapshot, anchored, False, "the copy", proofs, key)
                # If the lock was lost, others may have written after the copy.
                require_lock()
                published = True
                new.publish(draft)
                with draft_beside(paths.config_file) as config:
                    config.write_text(settings, "utf-8")
                    publish(config, paths.config_file, force=True)
                left_at = _put_aside(paths, source, clock)
                paths.moving.unlink()
                paused_ms = round((time.monotonic() - started) * 1000)
        except BaseException:
            if not published:
                paths.moving.unlink()
            raise
    memories = report.checked.get("memories", 0)
    return MoveReport(paths.name, source, target, left_at, memories, paused_ms)


def _is_copy(store: Store, source: Store) -> bool:
    """Return True if a store exists and its journal is contained in that of ``source``."""
    if not store.exists():
        return False
    with store.inspect() as copy, source.inspect() as snapshot:
        seq, copy_hash = journal.head(copy)
        creation_times = [metadata.get(side, "created_at") for side in (copy, snapshot)]
        return creation_times[0] == creation_times[1] and (
            not seq or journal.hash_of(snapshot, seq) == copy_hash
        )


def _put_aside(paths: OrchestratorPaths, url: str, clock: Clock) -> str | None:
    """Move a store to the folder for replaced stores; return its new place."""
    folder = free_name(paths.memory / "replaced", "before-move", clock.now_ms())
    place = store_of(paths, url).put_aside(folder)
    if url and place is not None:
        note_left_on_server(paths, url, place)
    return place


def _placed(paths: OrchestratorPaths, url: str) -> str:
    """Return the orchestrator's own settings with another ``memory.storage.url``.

    Raises:
        InvalidConfig: the file has a form that must be edited by hand.
    """
    file = paths.config_file
    text = file.read_text("utf-8") if file.exists() else ""
    line = f"url = {json.dumps(url)}\n"
    if table := _TABLE.search(text):
        end = text.find("\n[", table.end() - 1) + 1 or len(text)
        rest = _URL.sub("", text[table.end() : end])
        head = table.group() if table.group().endswith("\n") else f"{table.group()}\n"
        text = f"{text[: table.start()]}{head}{line}{rest}{text[end:]}"
    else:
        text = f"{text.rstrip()}\n\n[memory.storage]\n{line}".lstrip()
    try:
        is_changed = tomllib.loads(text)["memory"]["storage"]["url"] == url
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        is_changed = False
    if not is_changed:
        raise InvalidConfig(
            f"memory.storage.url cannot be changed in {file}: set it in a table [memory.storage]",
            field="memory.storage.url",
        )
    return text
