"""The handle of one orchestrator on a server: the library's methods, blocking and async."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from memgraph.client.operations import (
    RemoteTarget,
    asked_of_a_server,
    is_unnumbered_turn,
    like,
    method,
    nothing,
    remote,
    segment,
)
from memgraph.client.server import Call, Server
from memgraph.context.assembly import ConfirmationCallback, confirmed as answer_of
from memgraph.errors import ConfirmationMissing, Conflict, InvalidInput, RemoteAnswerInvalid
from memgraph.model.access import Narrowing
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.enums import Scope
from memgraph.model.operation import Awaited, Blocking, F, with_groups
from memgraph.model.remote import MAX_BATCH, Outcomes, UploadResult
from memgraph.model.values import EpisodeInput, Memory, MemoryInput, Outcome, Value, validated
from memgraph.operations.contexts import Contexts
from memgraph.operations.everyday import Everyday
from memgraph.operations.groups import Operations
from memgraph.operations.handle import GroupT, Handle
from memgraph.operations.ingestion.operations import Ingestion
from memgraph.operations.threads import await_all, awaited_group, daemon_pool
from memgraph.rules.access import question_about

BYTES: Final = "application/octet-stream"
NDJSON: Final = "application/x-ndjson"
SQLITE: Final = "application/vnd.sqlite3"
MAX_BYTES: Final = 2_000_000
"""Maximum bytes of the items of one request: half of a server's default limit."""

Item = MemoryInput | Mapping[str, Any]


# Methods that cannot be derived: see docs/decisions/0131. A ``progress`` stays on this side.


class RemoteHandle:
    """What the methods of a client need."""

    _remote: RemoteTarget


_promote = remote(Contexts.promote)


class RemoteContexts(RemoteHandle, Contexts[F]):
    """Contexts of tasks, and tiers: ``orc.contexts``."""

    @like(Contexts.promote)
    def promote(
        self,
        memory_id: str,
        to: Scope | str,
        scope_id: str | None = None,
        confirmation_callback: ConfirmationCallback | None = None,
        reason: str = "",
        *,
        confirmed: bool | None = None,
    ) -> str | None:
        fields = {"reason": reason, "confirmed": confirmed}
        try:
            return _promote(self, memory_id, to, scope_id, **fields)
        except ConfirmationMissing:
            if confirmation_callback is None:
                raise
        # The client asks the person.
        memory = self._remote.send("GET", f"/memories/{segment(memory_id)}", Memory)
        fields["confirmed"] = answer_of(confirmation_callback, question_about(memory))
        return _promote(self, memory_id, to, scope_id, **fields)


class RemoteIngestion(RemoteHandle, Ingestion[F]):
    """Uploaded files and dropped files: ``orc.ingestion``."""

    @method
    def upload(self, name: str, content: bytes) -> UploadResult:
        """Send a file; it is turned into memories in the background, within the key's bounds.

        Args:
            name: a file name that ends in .txt, .md or .json.
            content: the whole file, UTF-8. The same content is accepted only once, so that sending
                it twice is safe.

        Raises:
            IngestRejected, InvalidInput: the name or the content is not accepted.
            RequestTooLarge: it exceeds the limit of ``memory.ingest``.
        """
        if not isinstance(content, bytes):
            raise InvalidInput("the content of a file must be bytes", field="content")
        path = f"/ingest/files/{segment(name, field='name')}"
        return self._remote.send("PUT", path, UploadResult, body=content, content_type=BYTES)


class FileReport(Value):
    """A finished copy, which the server checked before sending it."""

    orchestrator: str
    path: Path
    bytes: int
    sha256: str


class RemoteExchange(RemoteHandle, Handle[F]):
    """Copies of all data: ``orc.exchange``.

    They require a key with all permissions from which nothing is hidden; the handle's narrowing is
    ignored.
    """

    @method
    def export(
        self,
        target: str | Path,
        *,
        force: bool = False,
        with_vectors: bool = False,
        progress: object = None,  # noqa: ARG002
    ) -> FileReport:
        """Write all data of the orchestrator to a file, atomically.

        Args:
            force: replace an existing file.
            with_vectors: include embeddings.

        Raises:
            Conflict: the file exists.
        """
        return self._copied("/export", target, NDJSON, force=force, with_vectors=with_vectors)

    @method
    def backup(
        self,
        target: str | Path,
        *,
        force: bool = False,
        progress: object = None,  # noqa: ARG002
    ) -> FileReport:
        """Write a checked copy of the database into one file, atomically.

        Args:
            force: replace an existing file.

        Raises:
            Conflict: the file exists.
            DatabaseCorrupt, JournalBroken: the copy did not pass the server's audit.
        """
        return self._copied("/backup", target, SQLITE, force=force)

    def _copied(
        self, path: str, target: str | Path, accepts: str, *, force: bool, **params: Any
    ) -> FileReport:
        from memgraph.store.files import draft_beside, publish

        target = Path(target).expanduser().absolute()
        if target.is_dir():
            raise InvalidInput(f"{target} is a folder; name a file")
        if target.exists() and not force:
            raise Conflict(f"the file already exists: {target}", path=str(target))
        address = self._remote.root + path
        with draft_beside(target) as draft:
            with draft.open("w+b") as file:
                self._remote.server.send(
                    Call("GET", address, nothing, params, accepts=accepts, sink=file, slow=True)
                )
                file.seek(0)
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
            publish(draft, target, force=force)
        return FileReport(orchestrator=self._remote.name, path=target, bytes=size, sha256=digest)


@cache
def _remote_group(kind: Any) -> Any:
    """Return the client's form of a group."""
    return asked_of_a_server(type(kind.__name__, (kind,), {}))


@asked_of_a_server
@with_groups
class RemoteOperations(RemoteHandle, Operations[F]):
    """The operations of an orchestrator on a server."""

    contexts: RemoteContexts[F]
    ingestion: RemoteIngestion[F]
    exchange: RemoteExchange[F]

    @like(Everyday.remember_many)
    def remember_many(self, items: Iterable[Item]) -> list[Outcome]:
        return _store_all(self._remote, "/memories/batch", MemoryInput, items)

    @like(Everyday.save_episodes)
    def save_episodes(self, batch: Iterable[Item]) -> list[Outcome]:
        return _store_all(self._remote, "/episodes/batch", EpisodeInput, batch)

    def __repr__(self) -> str:
        return f"<memgraph {type(self).__name__} {self.name}>"


class RemoteOrchestrator(RemoteOperations[Blocking]):
    """The memory of one orchestrator, on a server. Made by ``Client.orchestrator``.

    Attributes:
        name: the name of the orchestrator.
        narrowing: the narrowing of this handle's view, within what the key grants.
    """

    def __init__(self, server: Server, name: str, narrowing: Narrowing) -> None:
        self.name = name
        self.narrowing = narrowing
        self._remote = RemoteTarget(server, name, narrowing)

    def _as(self, kind: type[GroupT]) -> GroupT:
        group: GroupT = super()._as(_remote_group(kind))  # type: ignore[arg-type]  # of a cache
        return group


@await_all
class AsyncRemoteOrchestrator(RemoteOperations[Awaited]):
    """The asynchronous form of ``RemoteOrchestrator``. Made by ``AsyncClient.orchestrator``."""

    def __init__(self, orchestrator: RemoteOrchestrator) -> None:
        self.__dict__.update(vars(orchestrator))
        self._target: Any = orchestrator
        self._pool = daemon_pool()

    def _as(self, kind: type[GroupT]) -> GroupT:
        group: GroupT = super()._as(awaited_group(_remote_group(kind)))  # type: ignore[arg-type]
        group.__dict__ = vars(self) | {"_target": self._target._as(kind)}
        return group


# Many items at a time: checked here, sent in batches, one outcome for each.


def _store_all(
    target: RemoteTarget, path: str, kind: type[MemoryInput], items: Iterable[Item]
) -> list[Outcome]:
    """Store items in batches; an invalid item is rejected alone, and not sent."""
    outcomes: list[Outcome] = []
    for batch in batches(_checked(kind, item) for item in items):
        sent = [item for item in batch if isinstance(item, MemoryInput)]
        stored: Sequence[Outcome] = ()
        if sent:
            body = b'{"items":[' + b",".join(map(_encoded, sent)) + b"]}"
            repeats = not any(map(is_unnumbered_turn, sent))
            stored = target.send("POST", path, Outcomes, body=body, repeats=repeats).outcomes
        if len(stored) != len(sent):
            raise RemoteAnswerInvalid(
                "the server reported a different number of items than it received"
            )
        waiting = iter(stored)
        outcomes += [item if isinstance(item, Outcome) else next(waiting) for item in batch]
    return outcomes


def batches(
    items: Iterable[MemoryInput | Outcome],
) -> Iterator[list[MemoryInput | Outcome]]:
    """Yield batches in order, each of at most `MAX_BATCH` items and about `MAX_BYTES`."""
    batch: list[MemoryInput | Outcome] = []
    size = 0
    for item in items:
        cost = 0 if isinstance(item, Outcome) else len(_encoded(item))
        if batch and (len(batch) == MAX_BATCH or size + cost > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += cost
    if batch:
        yield batch


def _encoded(item: MemoryInput) -> bytes:
    return item.model_dump_json(exclude_unset=True).encode()


def _checked(kind: type[MemoryInput], item: Item) -> MemoryInput | Outcome:
    try:
        return validated(kind, _fields(item))
    except InvalidInput as error:
        return Outcome(outcome="rejected", code=error.code, message=error.message)


def _fields(item: Item) -> dict[str, Any]:
    if isinstance(item, UserTurn | AgentTurn):
        raise InvalidInput("pass turns as EpisodeInput, whose role tells who spoke")
    if isinstance(item, MemoryInput):
        return {name: getattr(item, name) for name in item.model_fields_set}
    if isinstance(item, Mapping):
        return dict(item)
    raise InvalidInput("an item must be a mapping of fields, or a MemoryInput")
