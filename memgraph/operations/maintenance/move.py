"""Move an orchestrator between a file and servers.

A copy of one state is verified while others write. It then follows their writes in rounds; only the
last round holds the lock of the writers.

The setting decides which store is in use. It changes in one step, after the copy is verified. A
move that is interrupted before that leaves the old store in use; afterwards only the old store has
to be put aside. The next move does either.
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
from memgraph.audit.findings import VerifyReport
from memgraph.audit.journal import JournalHead
from memgraph.audit.verify import check_chain
from memgraph.clock import Clock
from memgraph.errors import Conflict, InvalidConfig, JournalBroken
from memgraph.operations.erasure.erase import LOCK_NAME, TOMBSTONE
from memgraph.operations.erasure.plan import note_left_on_server
from memgraph.operations.erasure.signatures import RedactionProofs
from memgraph.operations.maintenance.maintenance import checked_copy, free_name, sound_anchor
from memgraph.paths import OrchestratorPaths, naming_full_disk
from memgraph.store import journal, metadata, whole_tables
from memgraph.store.engine import store_of
from memgraph.store.files import FileLock, draft_beside, publish
from memgraph.store.whole_tables import TableDigest

if TYPE_CHECKING:
    from memgraph.store.engine import Store
    from memgraph.store.snapshot import Snapshot

ROUNDS: Final = 5
LAST_ROWS: Final = 1_000
"""So many rows are left to the last round, or what is written during one."""
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
    """Move an orchestrator to another store, or finish a move that was interrupted.

    Readers continue. Writers wait during the last round and the change of the setting; an erasure
    waits for the whole move, because it also has to search copies.

    Args:
        target: the URL of a server; empty for a file.
        source: the URL of the current store, as in the settings; empty for a file.
        anchor_folder: the folder for anchors; empty for the folder of the database.
        key: the key of a keyed journal.

    Raises:
        Conflict: the orchestrator is already stored there.
        OrchestratorExists: there is another store at the target.
        InvalidConfig: the URL is invalid, or ``config.toml`` cannot be changed.
        SchemaOutdated, SchemaTooNew: the schema is not at head.
        DatabaseBusy: an erasure is under way, or a writer held the lock for a minute.
        DatabaseCorrupt, JournalBroken: the copy does not pass the audit; nothing was moved.
    """
    with naming_full_disk(paths.memory), FileLock(paths.memory / "moving.lock").held():
        finished = _finish_earlier(paths, source, clock)
        if source == target:
            if finished is not None:
                return finished
            raise Conflict("the orchestrator already uses this store", orchestrator=paths.name)
        settings = _placed(paths, target)
        _write_record(paths, source, target)
        published = False
        try:
            old, new = store_of(paths, source), store_of(paths, target)
            new.require_free()
            with (
                FileLock(paths.memory / LOCK_NAME).held(),
                new.draft(paths.memory) as draft,
            ):
                anchor_file = anchor.anchor_path(paths.database, anchor_folder)
                anchored = sound_anchor(anchor_file)
                follower = _Follower(old, draft, paths.memory)
                verified = _verified(draft, paths, anchored, key)
                for _ in range(ROUNDS):
                    if follower.catch_up() <= LAST_ROWS:
                        break
                with old.locked() as require_lock:
                    began = time.monotonic()
                    held = anchor.read_state(anchor_file)
                    follower.catch_up()
                    with draft.inspect() as snapshot:
                        anchor.require_held(snapshot, held, paths.name)
                        _check_journal(snapshot, verified, key)
                        memories = whole_tables.stored(snapshot).get("memories", TableDigest()).rows
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
    return MoveReport(paths.name, source, target, remaining, memories, paused_ms)


def _finish_earlier(paths: OrchestratorPaths, source: str, clock: Clock) -> MoveReport | None:
    """Finish or undo an interrupted move; return its report if it had changed the setting."""
    record = _read_record(paths)
    if record is None:
        return None
    old, new = record
    report = None
    if new == source:
        report = MoveReport(paths.name, old, new, _put_aside(paths, old, clock), 0, 0)
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


def _write_record(paths: OrchestratorPaths, source: str, target: str) -> None:
    with draft_beside(paths.moving) as record:
        record.write_text(json.dumps([source, target]), "utf-8")
        publish(record, paths.moving, force=True)


class _Follower:
    """A draft that is filled from a store in use and follows its changes."""

    def __init__(self, store: Store, draft: Store, folder: Path) -> None:
        with store.inspect() as snapshot:
            metadata.require_head(metadata.revision(snapshot) or "")
        self._store, self._draft = store, draft
        self._since = store.position()
        with TemporaryDirectory(prefix=".draft-", dir=folder) as temporary:
            file = Path(temporary) / "copy.db"
            store.back_up(file)
            draft.take(file)

    def catch_up(self) -> int:
        """Bring the draft to the current state of the store; return the number of changed rows."""
        position = self._store.position()
        with self._store.delta(self._draft.copy, self._since) as delta:
            self._draft.follow(delta)
        self._since = position
        return delta.size


def _verified(
    draft: Store, paths: OrchestratorPaths, anchored: JournalHead | None, key: bytes | None
) -> JournalHead:
    """Audit the copy that a draft was filled from; return the head of its journal."""
    draft.admit(of_any=False, key=key)
    with draft.inspect() as snapshot:
        checked_copy(snapshot, anchored, False, "the copy", RedactionProofs(paths), key)
        return JournalHead(*journal.head(snapshot))


def _check_journal(snapshot: Snapshot, verified: JournalHead, key: bytes | None) -> None:
    """Check that the new entries continue the verified chain.

    Raises:
        JournalBroken: they do not continue it.
        Conflict: they record an erasure, which did not search the copy.
    """
    report = VerifyReport()
    check_chain(snapshot, report, None, None, key, verified)
    is_there = not verified.seq or journal.hash_of(snapshot, verified.seq) == verified.hash
    if not (is_there and report.ok):
        raise JournalBroken(
            "entries written during the copy do not continue the journal",
            findings=dict(report.totals),
        )
    if journal.has_action(snapshot, TOMBSTONE, verified.seq):
        raise Conflict("memories were erased while the copy was made; run it again")


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
