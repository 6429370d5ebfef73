"""Erasure: targets, requests, results, and the signed report."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from memgraph.errors import InvalidInput
from memgraph.model.values import Millis, Name, Reason, Value, validated

REPORT_VERSION = 1
REHEARSED: Final = "nothing was erased; the same with dry_run=false erases it for ever"


class ErasureTargetKind(StrEnum):
    """The kind of name of the memories to erase."""

    MEMORY = "memory"
    ENTITY = "entity"
    SESSION = "session"
    PATH = "path"
    CONVERSATION = "conversation"
    RUN = "run"
    CONTENT = "content"


class ErasureTarget(Value):
    """The target of an erasure.

    Attributes:
        value: an id; of an entity its id or a name; of content the SHA-256 of a file's bytes.
    """

    kind: ErasureTargetKind
    value: Name


def erasure_target(
    *,
    memory_id: str | None = None,
    entity: str | None = None,
    session_id: str | None = None,
    path: str | None = None,
    conversation_id: str | None = None,
    workflow_run_id: str | None = None,
    content_sha256: str | None = None,
) -> ErasureTarget:
    """Return the target that is named. Raises InvalidInput: none is, or more than one."""
    values = {
        ErasureTargetKind.MEMORY: memory_id,
        ErasureTargetKind.ENTITY: entity,
        ErasureTargetKind.SESSION: session_id,
        ErasureTargetKind.PATH: path,
        ErasureTargetKind.CONVERSATION: conversation_id,
        ErasureTargetKind.RUN: workflow_run_id,
        ErasureTargetKind.CONTENT: content_sha256,
    }
    targets = [(kind, value) for kind, value in values.items() if value is not None]
    if len(targets) != 1:
        names = ", ".join(choice.value for choice in ErasureTargetKind)
        raise InvalidInput(f"name the target of an erasure by exactly one of: {names}")
    [(kind, value)] = targets
    return validated(ErasureTarget, {"kind": kind, "value": value})


class ErasureRequest(Value):
    """A request to erase, with its reason.

    Attributes:
        reason: journalled; it repeats nothing of the text.
        dry_run: only report what would be erased.
    """

    target: ErasureTarget
    reason: Reason
    dry_run: bool = True


class NotErasedMemory(Value):
    """A memory that was not erased.

    Attributes:
        why: ``other_grounds``: it has evidence that stays; ``other_sources``: it has another
            source; ``says_it``: it contains an erased text.
    """

    memory_id: str
    why: Literal["other_grounds", "other_sources", "says_it"]


class Tombstone(Value):
    """The journal entry of an erased memory."""

    memory_id: str
    seq: int
    hash: str


class RedactedEntry(Value):
    """An entry of the journal that was redacted: its seal, and the SHA-256 of its details now."""

    seq: int
    hash: str
    details: str


class CaseVariant(Value):
    """A file that contains erased phrases in another case, with the number of places."""

    file: str
    count: int


class Residue(Value):
    """The result of scanning the orchestrator's folder for the erased strings.

    Attributes:
        strings: the number of searched strings, without ``too_short`` ones (short phrases, plain
            words, dates) and ``shared`` ones, which occur in memories or ids that stay.
        bytes: the number of bytes read, in ``files`` files and ``tables`` of a server.
        hits: the number of strings that were found; 0 is the proof.
        places: the files with hits, relative to the folder, and tables with their schema;
            ``unread``: unreadable files.
        other_case: files, except databases, with a long phrase (20 characters, or three words) in
            another case. They are not overwritten: a person has to decide.
    """

    strings: int = 0
    too_short: int = 0
    shared: int = 0
    files: int = 0
    tables: int = 0
    bytes: int = 0
    hits: int = 0
    places: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    other_case: tuple[CaseVariant, ...] = ()


class ServerTraces(Value):
    """Where a database server may keep erased texts beyond its tables. Nothing of it is proven.

    Attributes:
        wal_until: the position of the write-ahead log when the tables were clean: what lies before
            it may hold them, on the server, in archives and in backups, until it is removed there.
        archived: whether the server archives its log.
        replicas: how many replicas and other readers of the log are connected or have a slot.
    """

    wal_until: str
    archived: bool
    replicas: int


class Signature(Value):
    """An Ed25519 signature over the report without this field; both in hexadecimal digits."""

    algorithm: Literal["Ed25519"] = "Ed25519"
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    value: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class ErasurePreview(Value):
    """The preview of a dry run; none of its texts are in the report of an erasure.

    Attributes:
        note: that nothing was erased, and how to erase it.
        begins: of memories that go and that stay the beginning of the text, of so many of each.
        derived_ids: those that go for being derived alone.
        changed_ids: memories that stay, and lose an erased string in their tags or attributes.
        rows: how many rows of each table, beside the memories that go, have an erased string.
        shared: erased strings that stay elsewhere, since memories or files that stay have them,
            too: as the title of a document.
        similar: names of other entities that share a word with the one that is named.
        waiting: files that say it and are not touched: they are still to be ingested.
    """

    note: str = REHEARSED
    begins: dict[str, str] = Field(default_factory=dict)
    derived_ids: tuple[str, ...] = ()
    changed_ids: tuple[str, ...] = ()
    rows: dict[str, int] = Field(default_factory=dict)
    shared: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class ErasureReport(Value):
    """The report of an erasure: ids, numbers and digests, without erased texts.

    Attributes:
        erasure_id: its id in the journal.
        kind, target: the named target; for an entity its id.
        memory_ids: the erased ones, those derived from them alone included.
        derived: how many of them are there for being derived from others alone.
        entities: how many entities were named nowhere else, and are gone.
        kept: memories that have something to do with it and stay.
        tombstones: of each erased memory its entry in the journal.
        journal_redacted: how many earlier entries were redacted; ``redactions``: which, for an
            audit. Reports of earlier versions do not list them.
        rows: how many values of each table were redacted or removed.
        files_redacted, files_removed: relative to the orchestrator's folder; of a dry run those
            that would be. On a server an earlier state is a schema, and stands among them.
        preview: of a dry run alone.
        outside: what lies elsewhere and is not touched: source files, and schemas that moves have
            left on servers, as ``schema on address``.
        wal_truncated, vacuumed: whether the database's files were cut to what they hold, and
            whether the database was written anew for it.
        server: what the server of the database keeps that memgraph cannot remove; None: it is a
            file, and the scan has seen all of it.
        unfinished: why it is not done; running the same erasure again goes on. Empty: it is done.
    """

    version: int = REPORT_VERSION
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
    tombstones: tuple[Tombstone, ...] = ()
    journal_redacted: int = 0
    redactions: tuple[RedactedEntry, ...] = ()
    rows: dict[str, int] = Field(default_factory=dict)
    files_redacted: tuple[str, ...] = ()
    files_removed: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    wal_truncated: bool = False
    vacuumed: bool = False
    server: ServerTraces | None = None
    residue: Residue = Residue()
    unfinished: tuple[str, ...] = ()
    preview: ErasurePreview | None = None
    signature: Signature | None = None

    @property
    def complete(self) -> bool:
        return not self.unfinished and not self.dry_run
