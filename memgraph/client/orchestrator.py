"""The handle of one orchestrator on a server: the library's methods, blocking and async."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar, Unpack

from memgraph.audit.findings import AuditDefect, FindingCode, VerifyReport
from memgraph.client.calls import Call, Read, RetryRule, nothing, part_of, segment, value_of
from memgraph.client.exchange import Steps, error_of
from memgraph.client.files import (
    BackupFile,
    ExportFile,
    backed_up,
    durable,
    exported,
    whole,
)
from memgraph.client.operations import (
    AsyncBase,
    AsyncSender,
    BlockingBase,
    RemoteTarget,
    Sender,
    like,
    method,
    plain,
    remote,
)
from memgraph.clock import iso, parse_time
from memgraph.context.assembly import ConfirmationCallback, confirmed
from memgraph.errors import ConfirmationMissing, InvalidInput, RemoteAnswerInvalid
from memgraph.model.access import Narrowing
from memgraph.model.context import ContextFields, ContextPackage, ContextRequest, Task, Tier
from memgraph.model.conversation import AgentTurn, SessionInfo, SessionPlace, UserTurn
from memgraph.model.enums import JobName
from memgraph.model.erasure import ErasureReport, erasure_target
from memgraph.model.jobs import JobRun, SessionReport
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
from memgraph.operations.audit import (
    AuditingHandle,
    CasesHandle,
    HistoryHandle,
    InfluenceHandle,
    ReceiptsHandle,
)
from memgraph.operations.contexts import ContextHandle, InjectingHandle, SessionsHandle
from memgraph.operations.entities import EntitiesHandle
from memgraph.operations.jobs import JobsHandle, MaintainingHandle
from memgraph.operations.reading import ExpiringHandle, ReadingHandle
from memgraph.operations.sources import ErasingHandle, IngestingHandle, SourcesHandle
from memgraph.operations.writing import WritingHandle
from memgraph.rules.access import question_about

T = TypeVar("T")

BYTES: Final = "application/octet-stream"
NDJSON: Final = "application/x-ndjson"
SQLITE: Final = "application/vnd.sqlite3"
MAX_BYTES: Final = 2_000_000
"""Maximum bytes of the items of one request: half of a server's default limit."""

Item = MemoryInput | Mapping[str, Any]


class OrchestratorMethods(RemoteTarget):
    """All remote methods of an orchestrator."""

    remember = remote(WritingHandle.remember)
    store = remote(WritingHandle.store)
    correct = remote(WritingHandle.correct)
    confirm = remote(WritingHandle.confirm)
    retract = remote(WritingHandle.retract)
    restore = remote(WritingHandle.restore)
    forget = remote(WritingHandle.forget)
    relate = remote(WritingHandle.relate)
    save_episode = remote(WritingHandle.save_episode)

    get = remote(ReadingHandle.get)
    list_memories = remote(ReadingHandle.list_memories)
    recall = remote(ReadingHandle.recall)
    subgraph = remote(ReadingHandle.subgraph)
    trace = remote(ReadingHandle.trace)
    contradictions = remote(ReadingHandle.contradictions)
    bulletin = remote(ReadingHandle.bulletin)
    visible_counts = remote(ReadingHandle.visible_counts)
    expiring = remote(ExpiringHandle.expiring)
    latest_reflection = remote(ExpiringHandle.latest_reflection)
    relevant = remote(ExpiringHandle.relevant)

    get_context = remote(InjectingHandle.get_context)
    tier = remote(ContextHandle.tier)
    end_session = remote(SessionsHandle.end_session)

    case = remote(CasesHandle.case)
    resolve = remote(CasesHandle.resolve)
    dismiss = remote(CasesHandle.dismiss)
    reopen = remote(CasesHandle.reopen)
    stale = remote(CasesHandle.stale)
    diff = remote(HistoryHandle.diff)
    history = remote(HistoryHandle.history)

    impact = remote(InfluenceHandle.impact)
    grounds = remote(InfluenceHandle.grounds)
    source_lines = remote(InfluenceHandle.source_lines)
    receipt = remote(ReceiptsHandle.receipt)
    receipts = remote(ReceiptsHandle.receipts)
    replay = remote(ReceiptsHandle.replay)
    bulletins = remote(ReceiptsHandle.bulletins)
    bulletin_issued = remote(ReceiptsHandle.bulletin_issued)
    audit = remote(AuditingHandle.audit)

    entities = remote(EntitiesHandle.entities)
    entity_proposals = remote(EntitiesHandle.entity_proposals)
    get_entity_info = remote(EntitiesHandle.get_entity_info)
    merge_entities = remote(EntitiesHandle.merge_entities)
    split_entity = remote(EntitiesHandle.split_entity)
    protect_entity = remote(EntitiesHandle.protect_entity)
    decide_entity_proposal = remote(EntitiesHandle.decide_entity_proposal)

    sources = remote(SourcesHandle.sources)
    source = remote(SourcesHandle.source)
    trusted = remote(SourcesHandle.trusted)
    trust = remote(SourcesHandle.trust)
    distrust = remote(SourcesHandle.distrust)
    retract_source = remote(SourcesHandle.retract_source)
    restore_source = remote(SourcesHandle.restore_source)
    erase_target = remote(ErasingHandle.erase_target)

    ingest_file = remote(IngestingHandle.ingest_file)
    ingest_files = remote(IngestingHandle.ingest_files)
    jobs = remote(JobsHandle.jobs)
    job_plans = remote(JobsHandle.job_plans)

    @like(WritingHandle.remember_many)
    def remember_many(self, items: Iterable[Item]) -> Steps[list[Outcome]]:
        return _store_all(self, "/memories/batch", MemoryInput, items)

    @like(WritingHandle.save_episodes)
    def save_episodes(self, batch: Iterable[Item]) -> Steps[list[Outcome]]:
        return _store_all(self, "/episodes/batch", EpisodeInput, batch)

    @like(ContextHandle.promote)
    def promote(
        self,
        memory_id: str,
        to: Tier | str,
        scope_id: str | None = None,
        confirmation_callback: ConfirmationCallback | None = None,
        reason: str = "",
    ) -> Steps[str | None]:
        # The person is asked on this side, in a thread where the handle is asynchronous.
        path = f"/memories/{segment(memory_id)}"
        fields = {"to": str(to), "scope_id": scope_id, "reason": reason}
        try:
            return (yield from self._promoted(path, fields))
        except ConfirmationMissing:
            if confirmation_callback is None:
                raise
        memory = yield from self._ask(self._get(path, value_of(Memory)))
        question = question_about(memory)
        answer = yield from self._aside(lambda: confirmed(confirmation_callback, question))
        return (yield from self._promoted(path, {**fields, "confirmed": answer}))

    def _promoted(self, path: str, fields: Mapping[str, Any]) -> Steps[str | None]:
        call = self._write(f"{path}/promote", fields, value_of(PromotedId))
        answer = yield from self._ask(call)
        return answer.memory_id

    @like(SessionsHandle.sessions)
    def sessions(
        self,
        *,
        pending: bool | None = None,
        limit: int = 100,
        before: SessionPlace | str | None = None,
    ) -> Call[Sequence[SessionInfo]]:
        name = "cursor" if isinstance(before, SessionPlace) else "before"
        after = {name: before.cursor if isinstance(before, SessionPlace) else before}
        return self._get("/sessions", _SESSIONS, pending=pending, limit=limit, **after)

    @like(InjectingHandle.build_context)
    def build_context(
        self,
        task: Task | Mapping[str, Any] | str | None = None,
        request: ContextRequest | Mapping[str, Any] | None = None,
        **fields: Unpack[ContextFields],
    ) -> Call[ContextPackage]:
        given = dict(request) if isinstance(request, ContextRequest | Mapping) else {}
        asked = validated(ContextRequest, {**given, **fields})
        named = validated(Task, dict(task)) if isinstance(task, Task | Mapping) else task
        sent = plain({"task": named, "request": asked})
        return self._look("/context", sent, value_of(ContextPackage))

    @like(ErasingHandle.erase)
    def erase(
        self, *, reason: str, dry_run: bool = True, progress: object = None, **target: str | None
    ) -> Call[ErasureReport]:
        del progress  # it stays on this side
        fields = {"target": erasure_target(**target), "reason": reason, "dry_run": dry_run}
        call = self._write("/erase", plain(fields), value_of(ErasureReport))
        return replace(call, slow=True)

    @method
    def stats(self) -> Call[dict[str, Any]]:
        """Return counts over everything stored, sizes on disk, and the state of the embeddings.

        Requires admin; ``visible_counts`` counts what the key sees, and requires only read.

        Raises:
            DatabaseCorrupt, …: the memory is disabled; the error has the reason.
        """
        return self._get("/status", part_of(OrchestratorStatus, _stored))

    @method
    def run(
        self, job: JobName | str, *, session_id: str | None = None, now: Moment | None = None
    ) -> Call[JobRun]:
        """Run a job now, whatever its schedule; return the record of the run.

        It is not sent again when its answer is lost: see ``jobs``.

        Raises:
            Conflict: another process is running this job.
            InvalidInput: no such job, or a session for a job that takes none.
            NotFound: no such session, or none of its turns is visible.
        """
        return self._run(job, _last, session_id=session_id, now=_time(now))

    @method
    def maintain(self, *, now: Moment | None = None) -> Call[Sequence[JobRun]]:
        """Run consolidation, decay and reflection in turn; stop at one that fails."""
        return self._run("consolidate", _runs, now=_time(now))

    @method
    def consolidate(
        self, session_id: str | None = None, *, dry_run: bool = False
    ) -> Call[Sequence[SessionReport]]:
        """Return what a consolidation would extract from the turns that were not read yet.

        Args:
            session_id: this session, even if it continues; None: all that are over or long idle.
            dry_run: must be True: ``run("consolidation")`` does it.

        Raises:
            InvalidInput: not a dry run.
            NotFound: no such session, or none of its turns is visible.
        """
        if not dry_run:
            raise InvalidInput("a server consolidates as a job: run('consolidation')")
        return self._run("consolidation", _sessions, session_id=session_id, dry_run=True)

    def _run(self, job: JobName | str, read: Read[T], **fields: Any) -> Call[T]:
        given = {name: each for name, each in fields.items() if each is not None}
        path = f"/jobs/{segment(str(job), field='job')}/run"
        return replace(self._look(path, given, read), repeat=RetryRule.NEVER, slow=True)

    @like(MaintainingHandle.verify)
    def verify(self, progress: object = None) -> Call[VerifyReport]:
        del progress  # it stays on this side
        return replace(self._look("/verify", {}, _verified), slow=True)

    @method
    def export(
        self, target: str | Path, *, force: bool = False, with_vectors: bool = False
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
        path = Path(target).expanduser().absolute()
        with whole(path, force=force) as file:
            call = Call(
                "GET",
                f"{self._root}/export",
                nothing,
                {"with_vectors": with_vectors},
                accepts=NDJSON,
                sink=file,
                slow=True,
            )
            yield from self._ask(call)
            return (yield from self._aside(lambda: exported(durable(file), self.name, path)))

    @method
    def backup(self, target: str | Path, *, force: bool = False) -> Steps[BackupFile]:
        """Write a checked copy of the database into one file; permissions as for ``export``.

        Args:
            force: replace an existing file.

        Raises:
            Conflict: the file exists.
            DatabaseCorrupt, JournalBroken: the copy did not pass the server's audit.
        """
        path = Path(target).expanduser().absolute()
        with whole(path, force=force) as file:
            call = Call(
                "GET", f"{self._root}/backup", nothing, accepts=SQLITE, sink=file, slow=True
            )
            yield from self._ask(call)
            return (yield from self._aside(lambda: backed_up(durable(file), self.name, path)))

    @method
    def upload(self, name: str, content: bytes) -> Call[UploadResult]:
        """Send a file; it is turned into memories in the background, within the key's bounds.

        Args:
            name: a file name that ends in .txt, .md or .json.
            content: the whole file, UTF-8. The same content is taken only once.

        Raises:
            IngestRejected, InvalidInput: it is no such file.
            RequestTooLarge: it exceeds the limit of ``memory.ingest``.
        """
        if not isinstance(content, bytes):
            raise InvalidInput("the content of a file must be bytes", field="content")
        call = self._look(
            f"/ingest/files/{segment(name, field='name')}", {}, value_of(UploadResult)
        )
        # Named by its content: a second one is the first.
        return replace(call, method="PUT", body=content, content_type=BYTES, repeat=RetryRule.SAFE)

    def __repr__(self) -> str:
        return f"<memgraph {type(self).__name__} {self.name}>"


class RemoteOrchestrator(OrchestratorMethods, BlockingBase):
    """The memory of one orchestrator, on a server. Made by ``Client.orchestrator``.

    Attributes:
        name: of the orchestrator.
        narrowing: the narrowing of this handle's view, within what the key grants.
    """

    def __init__(self, sender: Sender, name: str, narrowing: Narrowing) -> None:
        super().__init__(sender)
        self._set_place(name, narrowing)


class AsyncRemoteOrchestrator(OrchestratorMethods, AsyncBase):
    """The same, asynchronous. Made by ``AsyncClient.orchestrator``."""

    def __init__(self, sender: AsyncSender, name: str, narrowing: Narrowing) -> None:
        super().__init__(sender)
        self._set_place(name, narrowing)


_SESSIONS: Read[Sequence[SessionInfo]] = part_of(SessionPage, lambda page: page.items)
_OUTCOMES: Read[Sequence[Outcome]] = part_of(Outcomes, lambda told: told.outcomes)


def _time(time: Moment | None) -> str | None:
    return None if time is None else iso(parse_time(time))


def _stored(told: OrchestratorStatus) -> dict[str, Any]:
    if told.stats is None:
        raise error_of(told.health)
    return told.stats


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
    """Return the library's own report. A finding that this version does not know is refused."""
    told = value_of(AuditReport)(answer)
    try:
        findings = [
            AuditDefect(FindingCode(each.code), each.message, each.subject, each.details)
            for each in told.findings
        ]
    except ValueError:
        raise RemoteAnswerInvalid(
            "the server reported a finding that this client does not know"
        ) from None
    return VerifyReport(findings, Counter(told.totals), told.checked, told.last_at)


# Many items at a time: checked here, sent in batches, one outcome for each.


def _store_all(
    place: RemoteTarget, path: str, kind: type[MemoryInput], items: Iterable[Item]
) -> Steps[list[Outcome]]:
    """Store items batch by batch; an invalid one is rejected by itself, and not sent."""
    outcomes: list[Outcome] = []
    for batch in batches(_checked(kind, each) for each in items):
        sent = [each for each in batch if not isinstance(each, Outcome)]
        stored: Sequence[Outcome] = ()
        if sent:
            stored = yield from place._ask(place._write(path, {"items": sent}, _OUTCOMES))
        if len(stored) != len(sent):
            raise RemoteAnswerInvalid(
                "the server reported a different number of items than it received"
            )
        waiting = iter(stored)
        outcomes += [each if isinstance(each, Outcome) else next(waiting) for each in batch]
    return outcomes


def batches(
    items: Iterable[dict[str, Any] | Outcome],
) -> Iterator[list[dict[str, Any] | Outcome]]:
    """Yield batches in order, each of at most `MAX_BATCH` items and about `MAX_BYTES`."""
    batch: list[dict[str, Any] | Outcome] = []
    size = 0
    for each in items:
        cost = 0 if isinstance(each, Outcome) else _size(each)
        if batch and (len(batch) == MAX_BATCH or size + cost > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += cost
    if batch:
        yield batch


def _checked(kind: type[MemoryInput], item: Item) -> dict[str, Any] | Outcome:
    try:
        given = validated(kind, _fields(item))
    except InvalidInput as error:
        return Outcome(outcome="rejected", code=error.code, message=error.message)
    return given.model_dump(mode="json", exclude_unset=True)


def _fields(item: Item) -> dict[str, Any]:
    if isinstance(item, UserTurn | AgentTurn):
        raise InvalidInput("a server takes turns as EpisodeInput, whose role says who spoke")
    if isinstance(item, MemoryInput):
        return {name: getattr(item, name) for name in item.model_fields_set}
    if isinstance(item, Mapping):
        return dict(item)
    raise InvalidInput("an item is a mapping of fields, or a MemoryInput")


def _size(item: Mapping[str, Any]) -> int:
    """Return the approximate size as JSON, bytes; free texts are what can be long."""
    return len(json.dumps(item, ensure_ascii=False).encode("utf-8"))
