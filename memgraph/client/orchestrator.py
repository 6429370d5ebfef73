"""The handle of one orchestrator on a server: the library's methods, blocking and async."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, Unpack

from memgraph.audit.findings import AuditDefect, FindingCode, VerifyReport
from memgraph.client.calls import Call, Read, nothing, part_of, segment, value_of
from memgraph.client.exchange import (
    BackupFile,
    ExportFile,
    Steps,
    backed_up,
    durable,
    error_of,
    exported,
    whole,
)
from memgraph.client.operations import (
    AsyncSender,
    RemoteTarget,
    Sender,
    asked_of_a_server,
    like,
    method,
    plain,
)
from memgraph.clock import iso, parse_time
from memgraph.context.assembly import ConfirmationCallback, confirmed
from memgraph.errors import ConfirmationMissing, InvalidInput, RemoteAnswerInvalid
from memgraph.model.access import Narrowing
from memgraph.model.context import ContextFields, ContextPackage, ContextRequest, Task
from memgraph.model.conversation import AgentTurn, SessionInfo, SessionPlace, UserTurn
from memgraph.model.enums import JobName, MemoryKind, Scope
from memgraph.model.erasure import ErasureReport, erasure_target
from memgraph.model.jobs import JobRun, SessionReport
from memgraph.model.operation import Awaited, Blocking, F, with_groups
from memgraph.model.remote import (
    MAX_BATCH,
    AuditReport,
    JobResult,
    OrchestratorStatus,
    Outcomes,
    PromotedId,
    SessionPage,
    UploadResult,
)
from memgraph.model.values import (
    EpisodeInput,
    Memory,
    MemoryInput,
    Moment,
    Outcome,
    validated,
)
from memgraph.operations.contexts import Contexts
from memgraph.operations.erasure.operations import Erasure
from memgraph.operations.everyday import Everyday
from memgraph.operations.groups import Operations, Sessions
from memgraph.operations.handle import GroupT, Handle
from memgraph.operations.ingestion.operations import Ingestion
from memgraph.operations.jobs import Jobs
from memgraph.rules.access import question_about

T = TypeVar("T")

BYTES: Final = "application/octet-stream"
NDJSON: Final = "application/x-ndjson"
SQLITE: Final = "application/vnd.sqlite3"
MAX_BYTES: Final = 2_000_000
"""Maximum bytes of the items of one request: half of a server's default limit."""

Item = MemoryInput | Mapping[str, Any]


# Methods that are described by hand: see docs/decisions/0131.


def _remember_many(server: RemoteTarget, items: Iterable[Item]) -> Steps[list[Outcome]]:
    return _store_all(server, "/memories/batch", MemoryInput, items)


def _save_episodes(server: RemoteTarget, batch: Iterable[Item]) -> Steps[list[Outcome]]:
    return _store_all(server, "/episodes/batch", EpisodeInput, batch)


def _promote(
    server: RemoteTarget,
    memory_id: str,
    to: Scope | str,
    scope_id: str | None = None,
    confirmation_callback: ConfirmationCallback | None = None,
    reason: str = "",
) -> Steps[str | None]:
    # The client asks the person, in a thread if the handle is asynchronous.
    path = f"/memories/{segment(memory_id)}"
    fields = {"to": str(to), "scope_id": scope_id, "reason": reason}
    try:
        return (yield from _promoted(server, path, fields))
    except ConfirmationMissing:
        if confirmation_callback is None:
            raise
    memory = yield from server.ask(server.get(path, value_of(Memory)))
    question = question_about(memory)
    answer = yield from server.aside(lambda: confirmed(confirmation_callback, question))
    return (yield from _promoted(server, path, {**fields, "confirmed": answer}))


def _promoted(server: RemoteTarget, path: str, fields: Mapping[str, Any]) -> Steps[str | None]:
    answer = yield from server.ask(server.post(f"{path}/promote", fields, value_of(PromotedId)))
    return answer.memory_id


def _list_sessions(
    server: RemoteTarget,
    *,
    pending: bool | None = None,
    limit: int = 100,
    before: SessionPlace | str | None = None,
) -> Call[Sequence[SessionInfo]]:
    name = "cursor" if isinstance(before, SessionPlace) else "before"
    after = {name: before.cursor if isinstance(before, SessionPlace) else before}
    return server.get("/sessions", _SESSIONS, pending=pending, limit=limit, **after)


def _build_context(
    server: RemoteTarget,
    task: Task | Mapping[str, Any] | str | None = None,
    request: ContextRequest | Mapping[str, Any] | None = None,
    **fields: Unpack[ContextFields],
) -> Call[ContextPackage]:
    known_fields = dict(request) if isinstance(request, ContextRequest | Mapping) else {}
    context_request = validated(ContextRequest, {**known_fields, **fields})
    context_task = validated(Task, dict(task)) if isinstance(task, Task | Mapping) else task
    return server.post(
        "/context",
        plain({"task": context_task, "request": context_request}),
        value_of(ContextPackage),
    )


def _erase(
    server: RemoteTarget,
    *,
    reason: str,
    dry_run: bool = True,
    **target: str | None,
) -> Call[ErasureReport]:
    fields = {"target": erasure_target(**target), "reason": reason, "dry_run": dry_run}
    call = server.post("/erase", plain(fields), value_of(ErasureReport))
    return replace(call, slow=True, repeats=dry_run)


def _verify(server: RemoteTarget, progress: object = None) -> Call[VerifyReport]:
    del progress  # it stays on this side
    return replace(server.post("/verify", {}, _verified), slow=True)


def _run_job(server: RemoteTarget, job: JobName | str, read: Read[T], **fields: Any) -> Call[T]:
    present = {name: field for name, field in fields.items() if field is not None}
    path = f"/jobs/{segment(str(job), field='job')}/run"
    return replace(server.post(path, present, read), repeats=False, slow=True)


def _run(
    server: RemoteTarget,
    job: JobName | str,
    *,
    session_id: str | None = None,
    now: Moment | None = None,
    progress: object = None,
) -> Call[JobRun]:
    """Run a job now, regardless of its schedule; return the record of the run.

    The call is not repeated when its response is lost: see ``list`` for the runs of the job.

    Raises:
        Conflict: another process is running this job.
        InvalidInput: no such job, or a session for a job that takes none.
        NotFound: no such session, or none of its turns is visible.
    """
    del progress  # it stays on this side
    return _run_job(server, job, _last, session_id=session_id, now=_time(now))


def _maintain(
    server: RemoteTarget, *, now: Moment | None = None, progress: object = None
) -> Call[Sequence[JobRun]]:
    """Run consolidation, decay and reflection in turn; stop at the first that fails."""
    del progress  # it stays on this side
    return _run_job(server, "consolidate", _runs, now=_time(now))


def _consolidate(
    server: RemoteTarget,
    session_id: str | None = None,
    *,
    dry_run: bool = False,
    progress: object = None,
) -> Call[Sequence[SessionReport]]:
    """Return what a consolidation would extract from turns that were not consolidated yet.

    Args:
        session_id: a session, even if it continues; None: all that ended or have long been idle.
        dry_run: must be True; call ``run("consolidation")`` to consolidate.

    Raises:
        InvalidInput: not a dry run.
        NotFound: no such session, or none of its turns is visible.
    """
    del progress  # it stays on this side
    if not dry_run:
        raise InvalidInput("a server consolidates only as a job: use jobs.run('consolidation')")
    return _run_job(server, "consolidation", _sessions, session_id=session_id, dry_run=True)


def _upload(server: RemoteTarget, name: str, content: bytes) -> Call[UploadResult]:
    """Send a file; it is turned into memories in the background, within the key's bounds.

    Args:
        name: a file name that ends in .txt, .md or .json.
        content: the whole file, UTF-8. The same content is accepted only once.

    Raises:
        IngestRejected, InvalidInput: the name or the content is not accepted.
        RequestTooLarge: it exceeds the limit of ``memory.ingest``.
    """
    if not isinstance(content, bytes):
        raise InvalidInput("the content of a file must be bytes", field="content")
    call = server.post(f"/ingest/files/{segment(name, field='name')}", {}, value_of(UploadResult))
    # The server identifies a file by its content, so that sending it twice is safe.
    return replace(call, method="PUT", body=content, content_type=BYTES)


def _stats(server: RemoteTarget) -> Call[dict[str, Any]]:
    """Return counts over everything stored, sizes on disk, and the state of the embeddings.

    Requires admin; ``memories.counts`` counts what the key sees, and requires only read.

    Raises:
        DatabaseCorrupt, …: the memory is disabled; the error has the reason.
    """
    return server.get("/status", part_of(OrchestratorStatus, _stored))


def _export(
    server: RemoteTarget,
    target: str | Path,
    *,
    force: bool = False,
    with_vectors: bool = False,
    progress: object = None,
) -> Steps[ExportFile]:
    """Write all data of the orchestrator to a file, atomically.

    Requires a key with all permissions from which nothing is hidden; the handle's narrowing is
    ignored.

    Args:
        force: replace an existing file.
        with_vectors: include embeddings; without them an import embeds everything again.

    Raises:
        Conflict: the file exists.
        RemoteAnswerInvalid: the answer is not a complete export.
    """
    del progress  # it stays on this side
    path = Path(target).expanduser().absolute()
    with whole(path, force=force) as draft:
        call = Call(
            "GET",
            f"{server.root}/export",
            nothing,
            {"with_vectors": with_vectors},
            accepts=NDJSON,
            sink=draft,
            slow=True,
        )
        yield from server.ask(call)
        return (yield from server.aside(lambda: exported(durable(draft), server.name, path)))


def _backup(
    server: RemoteTarget, target: str | Path, *, force: bool = False, progress: object = None
) -> Steps[BackupFile]:
    """Write a checked copy of the database into one file; permissions as for ``export``.

    Args:
        force: replace an existing file.

    Raises:
        Conflict: the file exists.
        DatabaseCorrupt, JournalBroken: the copy did not pass the server's audit.
    """
    del progress  # it stays on this side
    path = Path(target).expanduser().absolute()
    with whole(path, force=force) as draft:
        call = Call("GET", f"{server.root}/backup", nothing, accepts=SQLITE, sink=draft, slow=True)
        yield from server.ask(call)
        return (yield from server.aside(lambda: backed_up(durable(draft), server.name, path)))


class RemoteSessions(Sessions[F]):
    """Conversations: ``orc.sessions``."""

    list = like(Sessions.list, _list_sessions)


class RemoteContexts(Contexts[F]):
    """Contexts of tasks, and tiers: ``orc.contexts``."""

    build = like(Contexts.build, _build_context)
    promote = like(Contexts.promote, _promote)


class RemoteErasure(Erasure[F]):
    """The erasure of texts: ``orc.erasure``."""

    erase = like(Erasure.erase, _erase)


class RemoteJobs(Jobs[F]):
    """Background jobs of the server: ``orc.jobs``."""

    run = method(_run)
    maintain = method(_maintain)
    consolidate = method(_consolidate)


class RemoteIngestion(Ingestion[F]):
    """Uploaded files and dropped files: ``orc.ingestion``."""

    upload = method(_upload)


class RemoteMaintenance(Handle[F]):
    """The state of the database: ``orc.maintenance``."""

    stats = method(_stats)


class RemoteExchange(Handle[F]):
    """Copies of all data: ``orc.exchange``."""

    export = method(_export)
    backup = method(_backup)


@cache
def _remote_group(kind: Any) -> Any:
    """Return the client's form of a group."""
    return asked_of_a_server(type(kind.__name__, (kind,), {}))


@asked_of_a_server
@with_groups
class RemoteOperations(Operations[F]):
    """The operations of an orchestrator on a server.

    Attributes:
        name: the name of the orchestrator.
        narrowing: the narrowing of this handle's view, within what the key grants.
    """

    sessions: RemoteSessions[F]
    contexts: RemoteContexts[F]
    erasure: RemoteErasure[F]
    jobs: RemoteJobs[F]
    ingestion: RemoteIngestion[F]
    maintenance: RemoteMaintenance[F]
    exchange: RemoteExchange[F]

    remember_many = like(Everyday.remember_many, _remember_many)
    save_episodes = like(Everyday.save_episodes, _save_episodes)
    verify = like(Everyday.verify, _verify)

    def __init__(self, sender: Sender | AsyncSender, name: str, narrowing: Narrowing) -> None:
        self.name = name
        self.narrowing = narrowing
        self._remote = RemoteTarget(sender, name, narrowing)

    def _as(self, kind: type[GroupT]) -> GroupT:
        group: GroupT = super()._as(_remote_group(kind))  # type: ignore[arg-type]  # of a cache
        return group

    def __repr__(self) -> str:
        return f"<memgraph {type(self).__name__} {self.name}>"


class RemoteOrchestrator(RemoteOperations[Blocking]):
    """The memory of one orchestrator, on a server. Made by ``Client.orchestrator``."""


class AsyncRemoteOrchestrator(RemoteOperations[Awaited]):
    """The asynchronous form of ``RemoteOrchestrator``. Made by ``AsyncClient.orchestrator``."""


_SESSIONS: Read[Sequence[SessionInfo]] = part_of(SessionPage, lambda page: page.items)
_OUTCOMES: Read[Sequence[Outcome]] = part_of(Outcomes, lambda told: told.outcomes)


def _time(time: Moment | None) -> str | None:
    return None if time is None else iso(parse_time(time))


def _stored(status: OrchestratorStatus) -> dict[str, Any]:
    if status.stats is None:
        raise error_of(status.health)
    return status.stats


def _runs(answer: bytes) -> Sequence[JobRun]:
    return value_of(JobResult)(answer).runs or ()


def _last(answer: bytes) -> JobRun:
    runs = _runs(answer)
    if len(runs) != 1:
        raise RemoteAnswerInvalid("the server did not report the run")
    return runs[0]


def _sessions(answer: bytes) -> Sequence[SessionReport]:
    return value_of(JobResult)(answer).sessions or ()


def _verified(answer: bytes) -> VerifyReport:
    """Parse the report of an audit. Raises RemoteAnswerInvalid for an unknown kind of finding."""
    report = value_of(AuditReport)(answer)
    try:
        findings = [
            AuditDefect(
                FindingCode(finding.code), finding.message, finding.subject, finding.details
            )
            for finding in report.findings
        ]
    except ValueError:
        raise RemoteAnswerInvalid(
            "the server reported a finding that this client does not know"
        ) from None
    return VerifyReport(findings, Counter(report.totals), report.checked, report.last_at)


# Many items at a time: checked here, sent in batches, one outcome for each.


def _store_all(
    server: RemoteTarget, path: str, kind: type[MemoryInput], items: Iterable[Item]
) -> Steps[list[Outcome]]:
    """Store items in batches; an invalid item is rejected alone, and not sent."""
    outcomes: list[Outcome] = []
    for batch in batches(_checked(kind, each) for each in items):
        sent = [item for item in batch if not isinstance(item, Outcome)]
        stored: Sequence[Outcome] = ()
        if sent:
            call = server.post(path, {"items": sent}, _OUTCOMES)
            numbered = all(_is_numbered(kind, item) for item in sent)
            stored = yield from server.ask(replace(call, repeats=numbered))
        if len(stored) != len(sent):
            raise RemoteAnswerInvalid(
                "the server reported a different number of items than it received"
            )
        waiting = iter(stored)
        outcomes += [item if isinstance(item, Outcome) else next(waiting) for item in batch]
    return outcomes


def batches(
    items: Iterable[dict[str, Any] | Outcome],
) -> Iterator[list[dict[str, Any] | Outcome]]:
    """Yield batches in order, each of at most `MAX_BATCH` items and about `MAX_BYTES`."""
    batch: list[dict[str, Any] | Outcome] = []
    size = 0
    for item in items:
        cost = 0 if isinstance(item, Outcome) else _size(item)
        if batch and (len(batch) == MAX_BATCH or size + cost > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += cost
    if batch:
        yield batch


def _checked(kind: type[MemoryInput], item: Item) -> dict[str, Any] | Outcome:
    try:
        checked = validated(kind, _fields(item))
    except InvalidInput as error:
        return Outcome(outcome="rejected", code=error.code, message=error.message)
    return checked.model_dump(mode="json", exclude_unset=True)


def _is_numbered(kind: type[MemoryInput], item: Mapping[str, Any]) -> bool:
    """Return False for a turn without a ``turn_id``: sent again, it would be stored twice."""
    is_turn = kind is EpisodeInput or item.get("kind") == MemoryKind.EPISODE
    return not is_turn or bool(item.get("turn_id"))


def _fields(item: Item) -> dict[str, Any]:
    if isinstance(item, UserTurn | AgentTurn):
        raise InvalidInput("pass turns as EpisodeInput, whose role tells who spoke")
    if isinstance(item, MemoryInput):
        return {name: getattr(item, name) for name in item.model_fields_set}
    if isinstance(item, Mapping):
        return dict(item)
    raise InvalidInput("an item must be a mapping of fields, or a MemoryInput")


def _size(item: Mapping[str, Any]) -> int:
    """Return the approximate size of an item as JSON, bytes."""
    return len(json.dumps(item, ensure_ascii=False).encode("utf-8"))
