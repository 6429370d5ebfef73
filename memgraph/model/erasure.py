"""Erasure: targets, requests, and the report."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from memgraph.errors import InvalidInput
from memgraph.model.values import Millis, Name, Value, validated


class ErasureTargetKind(StrEnum):
    """What the memories to erase have in common."""

    MEMORY = "memory"
    ENTITY = "entity"
    TEXT = "text"
    SESSION = "session"
    PATH = "path"
    CONVERSATION = "conversation"
    RUN = "run"
    CONTENT = "content"


class ErasureTarget(Value):
    """The target of an erasure.

    Attributes:
        value: an id; of an entity its id or a name; of content the SHA-256 of a file's bytes; of a
            text the text itself.
    """

    kind: ErasureTargetKind
    value: Name


_NAMED_BY: Final = {
    "memory_id": ErasureTargetKind.MEMORY,
    "entity": ErasureTargetKind.ENTITY,
    "text": ErasureTargetKind.TEXT,
    "session_id": ErasureTargetKind.SESSION,
    "path": ErasureTargetKind.PATH,
    "content_sha256": ErasureTargetKind.CONTENT,
    "conversation_id": ErasureTargetKind.CONVERSATION,
    "workflow_run_id": ErasureTargetKind.RUN,
}


def erasure_target(**named: str | None) -> ErasureTarget:
    """Return the target that is named. Raises InvalidInput: none is, or more than one."""
    targets = [(_NAMED_BY[name], value) for name, value in named.items() if value is not None]
    if len(targets) != 1:
        names = ", ".join(_NAMED_BY)
        message = f"name the target of an erasure by exactly one of: {names}"
        raise InvalidInput(message, fields=[*_NAMED_BY])
    [(kind, value)] = targets
    return validated(ErasureTarget, {"kind": kind, "value": value})


Why = Literal["other_grounds", "other_sources", "says_it"]


class NotErasedMemory(Value):
    """A memory that was not erased.

    Attributes:
        why: ``other_grounds``: it has evidence that stays; ``other_sources``: it has another
            source; ``says_it``: it contains an erased text.
    """

    memory_id: str
    why: Why


class Searched(Value):
    """What was searched for the erased texts.

    Attributes:
        strings: how many strings, without ``too_short`` ones (short phrases, plain words) and
            ``shared`` ones, which occur in memories or ids that stay.
        files, tables: how many of them were read.
    """

    strings: int = 0
    too_short: int = 0
    shared: int = 0
    files: int = 0
    tables: int = 0


class ServerTraces(Value):
    """Where a database server may keep erased texts beyond its tables. Nothing of it is proven.

    Attributes:
        wal_until: the position of the write-ahead log when the tables were clean: what lies before
            it may hold them, on the server, in archives and in backups, until it is removed there.
        wal_expected_until: when the server no longer needs that part of its log, if it archives
            nothing and nobody else reads it; None: not known. Its files are overwritten later.
        archived: whether the server archives its log.
        replicas: how many replicas and other readers of the log are connected or have a slot.
    """

    wal_until: str
    wal_expected_until: Millis | None = None
    archived: bool
    replicas: int


class ErasurePreview(Value):
    """The preview of a dry run; none of its texts are in the report of an erasure.

    Attributes:
        begins: the beginnings of the texts of memories that go and that stay, of so many of each.
        derived_ids: those that go for being derived alone.
        names: the entities that go.
    """

    begins: dict[str, str] = Field(default_factory=dict)
    derived_ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class ErasureReport(Value):
    """The report of an erasure: ids, numbers and digests, without erased texts.

    It is an entry of the journal.

    Attributes:
        erasure_id: its id in the journal; empty for a dry run.
        kind, target: the named target; of an entity its id, of a text a keyed digest, in a dry run
            the text itself.
        memory_ids: the erased ones, those derived from them alone included.
        derived: how many of them are there for being derived from others alone.
        entities: how many entities are gone, since nothing else names them.
        kept: memories that have something to do with it and stay.
        redactions: how many earlier entries of the journal were redacted; the entries of the
            erasure list them.
        rows: how many values of each table were redacted or removed; empty for a dry run.
        files_redacted, files_removed: relative to the orchestrator's folder. An earlier state on a
            server is a schema among them.
        files_refused: files that could not be read or written.
        outside: what lies elsewhere and is not touched: source files, and schemas that moves have
            left on servers, as ``schema on address``.
        server: what the server of the database keeps that memgraph cannot remove; None: it is a
            file, and the search has seen all of it.
        remains: the files and tables in which an erased text was found; none is the proof.
        unfinished: why it is not done; the next open goes on, and so does the same erasure.
        preview: of a dry run alone.
    """

    erasure_id: str
    orchestrator: str
    kind: ErasureTargetKind
    target: str
    reason: str
    actor: str
    started_at: Millis
    ended_at: Millis
    dry_run: bool = False
    memory_ids: tuple[str, ...] = ()
    derived: int = 0
    entities: int = 0
    kept: tuple[NotErasedMemory, ...] = ()
    redactions: int = 0
    rows: dict[str, int] = Field(default_factory=dict)
    files_redacted: tuple[str, ...] = ()
    files_removed: tuple[str, ...] = ()
    files_refused: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    server: ServerTraces | None = None
    searched: Searched = Field(default_factory=lambda: Searched())
    remains: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    preview: ErasurePreview | None = None

    @property
    def complete(self) -> bool:
        return not self.unfinished and not self.dry_run


class UndoneErasure(Value):
    """An erasure that the replaced database of a restore knew, and the restored one does not.

    Attributes:
        kind, target, ended_at, memory_ids: as in its report.
        restored: how many of these memories have a text now.
    """

    erasure_id: str
    kind: ErasureTargetKind
    target: str
    ended_at: Millis
    memory_ids: tuple[str, ...]
    restored: int = 0


class UnfinishedErasure(Value):
    """An erasure that was started and is not finished; without any of its texts.

    Attributes:
        kind, started_at: as in its report.
        unfinished, remains, files_refused: as in its report; empty until the first try has ended.
    """

    erasure_id: str
    kind: ErasureTargetKind
    started_at: Millis
    unfinished: tuple[str, ...]
    remains: tuple[str, ...]
    files_refused: tuple[str, ...]


class ErasureList(Value):
    """The reports of finished erasures, the newest first.

    Attributes:
        unfinished: the erasure to finish by the same ``erase`` again, if there is one.
        undone: erasures that a restore has undone, until the target is erased again or none of
            their memories has a text; of a text only the former if no memory came back.
        unknown_at: when a restore replaced a database that could not be read, so that the erasures
            that it undid are not known; None: none did, or the journal was accepted since.
    """

    erasures: tuple[ErasureReport, ...]
    unfinished: UnfinishedErasure | None = None
    undone: tuple[UndoneErasure, ...] = ()
    unknown_at: Millis | None = None
