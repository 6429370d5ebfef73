"""Erasure: targets, requests, results, and the signed report."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from memgraph.errors import InvalidInput
from memgraph.model.values import Millis, Name, Reason, Value, validated

REPORT_VERSION = 1
REHEARSED: Final = "nothing was erased; the same request with dry_run=false erases permanently"


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
        value: an id; for an entity its id or a name; for content the SHA-256 of a file's bytes.
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
    """Return the named target. Raises InvalidInput unless exactly one is named."""
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
        reason: recorded in the journal; it must not repeat the text.
        dry_run: only report what would be erased.
    """

    target: ErasureTarget
    reason: Reason
    dry_run: bool = True


class NotErasedMemory(Value):
    """A memory that was not erased.

    Attributes:
        why: ``other_grounds``: it has evidence that is not erased; ``other_sources``: it has
            another source; ``says_it``: it contains an erased text.
    """

    memory_id: str
    why: Literal["other_grounds", "other_sources", "says_it"]


class Tombstone(Value):
    """The journal entry of an erased memory."""

    memory_id: str
    seq: int
    hash: str


class RedactedEntry(Value):
    """A redacted journal entry: its hash, and the SHA-256 of its redacted details."""

    seq: int
    hash: str
    details: str


class CaseVariant(Value):
    """A file with erased phrases in another case, and the number of occurrences."""

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
    """Places outside its tables where a database server may keep erased texts. None are checked.

    Attributes:
        wal_until: the position of the write-ahead log when the tables were clean. The log before it
            may contain erased texts, on the server, in archives and in backups, until removed.
        archived: whether the server archives its log.
        replicas: the number of replicas and other readers of the log, connected or with a slot.
    """

    wal_until: str
    archived: bool
    replicas: int


class Signature(Value):
    """An Ed25519 signature over the report without this field; key and value are hexadecimal."""

    algorithm: Literal["Ed25519"] = "Ed25519"
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    value: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class ErasurePreview(Value):
    """The preview of a dry run. The report of an actual erasure has none of its texts.

    Attributes:
        note: states that nothing was erased, and how to erase.
        begins: the beginnings of the texts by memory id, for a limited number of memories that
            would be erased and that would stay.
        derived_ids: memories that would be erased only because they are derived from others.
        similar: names of other entities that share a word with the named one.
        waiting: files with the text that are not changed, because they are still to be ingested.
    """

    note: str = REHEARSED
    begins: dict[str, str] = Field(default_factory=dict)
    derived_ids: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class ErasureReport(Value):
    """The report of an erasure: ids, numbers and digests, without erased texts.

    Attributes:
        erasure_id: its id in the journal.
        kind, target: the named target; for an entity its id.
        memory_ids: the erased memories, including those derived only from them.
        derived: the number of memories erased only because they are derived from others.
        entities: the number of removed entities, which no other memory mentions.
        kept: memories that are related to the target but were not erased.
        tombstones: the journal entries of the erased memories.
        journal_redacted: the number of redacted earlier entries; ``redactions`` lists them for an
            audit, except in reports of earlier versions.
        rows: the number of redacted or removed values by table.
        files_redacted, files_removed: paths relative to the orchestrator's folder; in a dry run,
            the files that would be changed. On a server they include the schemas of earlier states.
        preview: only in a dry run.
        outside: places elsewhere that are not changed: source files, and schemas that moves have
            left on servers, as ``schema on address``.
        wal_truncated: whether the write-ahead log was truncated.
        vacuumed: whether the database was rewritten, or the dead rows of a server were removed.
        server: what the database server keeps that memgraph cannot remove; None: the database is a
            file, and the scan covers all of it.
        unfinished: why the erasure is not complete; run it again to continue. Empty: it is done.
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
