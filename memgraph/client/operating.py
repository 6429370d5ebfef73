"""Operator's work, remotely: counts, jobs, the audit, copies, merging of entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from memgraph.audit.findings import Code, Finding, VerifyReport
from memgraph.client.calls import Call, Read, Repeat, nothing, part_of, segment, value_of
from memgraph.client.exchange import Course, error_of
from memgraph.client.files import (
    BackedUp,
    Exported,
    Place,
    Time,
    backed_up,
    durable,
    exported,
    moment,
    whole,
)
from memgraph.client.operations import remote
from memgraph.client.words import course, word
from memgraph.errors import InvalidInput, RemoteAnswerInvalid
from memgraph.model.enums import JobName
from memgraph.model.jobs import JobPlan, JobRun, SessionReport
from memgraph.model.remote import AuditReport, JobBoard, JobEnded, Status
from memgraph.service.handle_entities import EntitiesHandle

T = TypeVar("T")

NDJSON = "application/x-ndjson"
SQLITE = "application/vnd.sqlite3"


class OperatingWords(Place):
    """The methods of an operator; most require the permission admin."""

    @word
    def stats(self) -> Call[dict[str, Any]]:
        """Return counts over everything stored, sizes on disk, and the state of the embeddings.

        Requires admin; ``visible_counts`` counts what the key sees, and requires only read.

        Raises:
            DatabaseCorrupt, …: the memory is disabled; the error has the reason.
        """
        return self._get("/status", part_of(Status, _stored))

    @word
    def jobs(self, *, limit: int = 50) -> Call[Sequence[JobRun]]:
        """Return past runs, latest first; ``limit`` is 1..1000."""
        return self._get("/jobs", part_of(JobBoard, lambda board: board.runs), limit=limit)

    @word
    def job_plans(self) -> Call[Sequence[JobPlan]]:
        """Return when each job is next due, and what is overdue."""
        return self._get("/jobs", part_of(JobBoard, lambda board: board.plans), limit=1)

    @word
    def run(
        self, job: JobName | str, *, session_id: str | None = None, now: Time | None = None
    ) -> Call[JobRun]:
        """Run a job now, whatever its schedule; return the record of the run.

        It is not sent again when its answer is lost: see ``jobs``.

        Raises:
            Conflict: another process is running this job.
            InvalidInput: no such job, or a session for a job that takes none.
            NotFound: no such session, or none of its turns is visible.
        """
        return self._run(job, _last, session_id=session_id, now=moment(now))

    @word
    def maintain(self, *, now: Time | None = None) -> Call[Sequence[JobRun]]:
        """Run consolidation, decay and reflection in turn; stop at one that fails."""
        return self._run("consolidate", _runs, now=moment(now))

    @word
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

    @word
    def verify(self) -> Call[VerifyReport]:
        """Audit the database; problems are in the report. Requires the permission audit."""
        return replace(self._look("/verify", {}, _verified), slow=True)

    merge_entities = remote(EntitiesHandle.merge_entities)
    split_entity = remote(EntitiesHandle.split_entity)
    protect_entity = remote(EntitiesHandle.protect_entity)
    decide_entity_proposal = remote(EntitiesHandle.decide_entity_proposal)

    @course
    def export(
        self, target: str | Path, *, force: bool = False, with_vectors: bool = False
    ) -> Course[Exported]:
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

    @course
    def backup(self, target: str | Path, *, force: bool = False) -> Course[BackedUp]:
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

    def _run(self, job: JobName | str, read: Read[T], **fields: Any) -> Call[T]:
        given = {name: each for name, each in fields.items() if each is not None}
        path = f"/jobs/{segment(str(job), field='job')}/run"
        return replace(self._look(path, given, read), repeat=Repeat.NEVER, slow=True)


def _stored(told: Status) -> dict[str, Any]:
    if told.stats is None:
        raise error_of(told.health)
    return told.stats


def _runs(answer: bytes) -> Sequence[JobRun]:
    return value_of(JobEnded)(answer).runs or ()


def _last(answer: bytes) -> JobRun:
    runs = _runs(answer)
    if len(runs) != 1:
        raise RemoteAnswerInvalid("the server did not tell of the run")
    return runs[0]


def _sessions(answer: bytes) -> Sequence[SessionReport]:
    return value_of(JobEnded)(answer).sessions or ()


def _verified(answer: bytes) -> VerifyReport:
    """Return the library's own report. A finding that this version does not know is refused."""
    told = value_of(AuditReport)(answer)
    try:
        findings = [
            Finding(Code(each.code), each.message, each.subject, each.details)
            for each in told.findings
        ]
    except ValueError:
        raise RemoteAnswerInvalid("the server found what this client cannot name") from None
    return VerifyReport(findings, Counter(told.totals), told.checked, told.last_at)
