"""Move an orchestrator between a file and servers.

A move holds the lock of the writers: it copies the store, with every row digested on both sides,
puts the copy in place and changes the setting that decides which store is in use. A move that is
interrupted before the setting changes leaves the old store in use; afterwards only the old store
has to be put aside. The next move does either.
"""

from __future__ import annotations

import json
import re
import time
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from memgraph.clock import Clock
from memgraph.errors import Conflict, InvalidConfig
from memgraph.model.values import Value
from memgraph.operations.maintenance.maintenance import free_name
from memgraph.paths import OrchestratorPaths, naming_full_disk
from memgraph.store import journal, metadata
from memgraph.store.engine import Store
from memgraph.store.files import FileLock, draft_beside, fsync, publish
from memgraph.store.statements import row_count
from memgraph.store.stores import store_of

_TABLE: Final = re.compile(r"^\[memory\.storage\][^\n]*\n?", re.MULTILINE)
_URL: Final = re.compile(r"^[ \t]*url[ \t]*=[^\n]*\n?", re.MULTILINE)


class MoveReport(Value):
    """A finished move.

    Attributes:
        source, target: the URLs of servers; empty for a file.
        left: the folder or schema where the old store is kept; None if it was removed.
        memories: the number of moved memories; 0 if this only finished an earlier move.
        paused_ms: how long writers waited.
    """

    orchestrator: str
    source: str
    target: str
    left: str | None
    memories: int = 0
    paused_ms: int = 0


def move(paths: OrchestratorPaths, target: str, *, source: str, clock: Clock) -> MoveReport:
    """Move an orchestrator to another store, or finish a move that was interrupted.

    Readers continue. Writers and erasures wait until the move has ended.

    Args:
        target: the URL of a server; empty for a file.
        source: the URL of the current store, as in the settings; empty for a file.

    Raises:
        Conflict: the orchestrator is already stored there.
        OrchestratorExists: there is another store at the target.
        InvalidConfig: the URL is invalid, or ``config.toml`` cannot be changed.
        SchemaUnknown: the schema is not at head.
        DatabaseBusy: an erasure is under way, or a writer held the lock for a minute.
        DatabaseCorrupt: the copy differs from the store; nothing was moved.
    """
    with naming_full_disk(paths.memory), FileLock(paths.memory / "moving.lock").held():
        finished = _finish_earlier(paths, source, clock)
        if source == target:
            if finished is not None:
                return finished
            raise Conflict("the orchestrator already uses this store", orchestrator=paths.name)
        settings = _placed(paths, target)
        with draft_beside(paths.moving) as record:
            record.write_text(json.dumps([source, target]), "utf-8")
            publish(record, paths.moving, force=True)
        published = False
        try:
            old, new = store_of(paths, source), store_of(paths, target)
            new.require_free()
            with (
                FileLock(paths.erasing).held(),
                new.draft(paths.memory) as draft,
                old.locked() as require_lock,
            ):
                began = time.monotonic()
                memories = _copy(old, draft, paths.memory)
                # If the lock was lost, others may have written after the copy.
                require_lock()
                published = True
                new.publish(draft)
                remaining = _switch(paths, settings, source, clock)
                paused_ms = round((time.monotonic() - began) * 1000)
        except BaseException:
            if not published:
                paths.moving.unlink()
            raise
    return MoveReport(
        orchestrator=paths.name,
        source=source,
        target=target,
        left=remaining,
        memories=memories,
        paused_ms=paused_ms,
    )


def _copy(store: Store, draft: Store, folder: Path) -> int:
    """Fill a draft from a store; return the number of memories."""
    with store.inspect() as snapshot:
        metadata.require_head(metadata.revision(snapshot) or "")
    with TemporaryDirectory(prefix=".draft-", dir=folder) as temporary:
        file = Path(temporary) / "copy.db"
        store.back_up(file)
        draft.take(file)
    draft.admit()
    with draft.inspect() as snapshot:
        return row_count(snapshot, "memories")


def _finish_earlier(paths: OrchestratorPaths, source: str, clock: Clock) -> MoveReport | None:
    """Finish or undo an interrupted move; return its report if it had changed the setting."""
    record = _read_record(paths)
    if record is None:
        return None
    old, new = record
    report = None
    if new == source:
        report = MoveReport(
            orchestrator=paths.name, source=old, target=new, left=_put_aside(paths, old, clock)
        )
    elif _is_copy(store_of(paths, new), store_of(paths, source)):
        # The interrupted move published this copy, but it was never used.
        _put_aside(paths, new, clock)
    paths.moving.unlink()
    return report


def _switch(paths: OrchestratorPaths, settings: str, source: str, clock: Clock) -> str | None:
    """Change the setting and put the old store aside; return its new place."""
    with draft_beside(paths.config_file) as config:
        config.write_text(settings, "utf-8")
        publish(config, paths.config_file, force=True)
    remaining = _put_aside(paths, source, clock)
    paths.moving.unlink()
    return remaining


def _read_record(paths: OrchestratorPaths) -> tuple[str, str] | None:
    """Return source and target of an interrupted move; None if there is none.

    Raises:
        InvalidConfig: the record is damaged.
    """
    try:
        source, target = json.loads(paths.moving.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, RecursionError):
        raise InvalidConfig(
            f"{paths.moving} is damaged; remove it, and any copy that a move left on a server",
            path=str(paths.moving),
        ) from None
    return source, target


def _is_copy(store: Store, source: Store) -> bool:
    """Return True if a store exists and its journal is contained in that of ``source``."""
    if not store.exists():
        return False
    with store.inspect() as copy, source.inspect() as snapshot:
        seq, seal = journal.head(copy)
        creation_times = [metadata.get(side, "created_at") for side in (copy, snapshot)]
        return creation_times[0] == creation_times[1] and (
            not seq or journal.hash_of(snapshot, seq) == seal
        )


def _put_aside(paths: OrchestratorPaths, url: str, clock: Clock) -> str | None:
    """Move a store to the folder for replaced stores; return its new place."""
    folder = free_name(paths.memory / "replaced", "before-move", clock.now_ms())
    place = store_of(paths, url).put_aside(folder)
    if url and place is not None:
        # For the reports of erasures.
        paths.left_on_servers.parent.mkdir(parents=True, exist_ok=True)
        with paths.left_on_servers.open("a", encoding="utf-8") as file:
            file.write(f"{place} on {url}\n")
        for written in (paths.left_on_servers, paths.left_on_servers.parent, paths.memory):
            fsync(written)
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
