"""An operator's work, remotely: counts, jobs, the audit, copies, merging of entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from memgraph.audit.findings import Code, Finding, VerifyReport
from memgraph.client.calls import Call, Read, Repeat, nothing, part_of, segment, value_of
from memgraph.client.copies import BackedUp, Exported, backed_up, exported
from memgraph.client.exchange import Course, error_of
from memgraph.client.files import durable, whole
from memgraph.client.places import Place, Time, moment
from memgraph.client.words import course, word
from memgraph.errors import InvalidInput, RemoteAnswerInvalid
from memgraph.model.consolidation import SessionReport
from memgraph.model.entities import EntityInfo
from memgraph.model.enums import JobName
from memgraph.model.jobs import JobPlan, JobRun
from memgraph.model.remote import AuditReport, JobBoard, JobEnded, Status

T = TypeVar("T")

NDJSON = "application/x-ndjson"
SQLITE = "application/vnd.sqlite3"


class OperatingWords(Place):
    """The words of an operator; most take the permission admin."""

    @word
    def stats(self) -> Call[dict[str, Any]]:
        """Counts over everything stored, sizes on disk, the state of the embeddings; for admins.

        ``visible_counts`` counts what the key sees, and takes no more than to read.

        Raises:
            DatabaseCorrupt, …: the memory is disabled; the error says why.
        """
        return self._get("/status", part_of(Status, _stored))

    @word
    def jobs(self, *, limit: int = 50) -> Call[Sequence[JobRun]]:
        """What ran, the latest first; ``limit`` is 1..1000."""
        return self._get("/jobs", part_of(JobBoard, lambda board: board.runs), limit=limit)

    @word
    def job_plans(self) -> Call[Sequence[JobPlan]]:
        """When each job is next due, and what is overdue."""
        return self._get("/jobs", part_of(JobBoard, lambda board: board.plans), limit=1)

    @word
    def run(
        self, job: JobName | str, *, session_id: str | None = None, now: Time | None = None
    ) -> Call[JobRun]:
        """Run a job now, whatever its schedule says; gives what is recorded of it.

        It is not sent a second time when its answer is lost: ``jobs`` tells what ran.

        Raises:
            Conflict: another process is at this job.
            InvalidInput: no such job, or a session given to one that knows none.
            NotFound: no such session, or none of its turns is to be seen.
        """
        return self._run(job, _last, session_id=session_id, now=moment(now))

    @word
    def maintain(self, *, now: Time | None = None) -> Call[Sequence[JobRun]]:
        """Consolidation, decay and reflection, one after the other; one that fails ends it."""
        return self._run("consolidate", _runs, now=moment(now))

    @word
    def consolidate(
        self, session_id: str | None = None, *, dry_run: bool = False
    ) -> Call[Sequence[SessionReport]]:
        """What a consolidation would make of the turns that were not read yet.

        Args:
            session_id: this session, though it may go on; None: all that are over or long idle.
            dry_run: must be True: ``run("consolidation")`` does it.

        Raises:
            InvalidInput: not a dry run.
            NotFound: no such session, or none of its turns is to be seen.
        """
        if not dry_run:
            raise InvalidInput("a server consolidates as a job: run('consolidation')")
        return self._run("consolidation", _sessions, session_id=session_id, dry_run=True)

    @word
    def verify(self) -> Call[VerifyReport]:
        """Audit the database; what is wrong is in the report. Takes the permission audit."""
        return replace(self._look("/verify", {}, _verified), slow=True)

    @word
    def merge_entities(self, into: str, other: str, *, reason: str) -> Call[EntityInfo]:
        """Say that two entities are one: ``other`` becomes a name of ``into``. Journalled.

        Raises:
            NotFound: no memory that the key may see names one of them.
            Conflict: a name may mean several (``details["candidates"]``), or they are one already.
        """
        fields = {"into": into, "other": other, "reason": reason}
        return self._write("/entities/merge", fields, value_of(EntityInfo))

    @word
    def split_entity(self, entity: str, *, names: Sequence[str], reason: str) -> Call[EntityInfo]:
        """Make some names of an entity another one; gives that one. Journalled.

        Raises:
            NotFound: there is no such entity, or it is not called so, for this key.
            Conflict: a name is the entity's own, or one that the settings tell.
            InvalidInput: no name, or more than 50.
        """
        fields = {"entity": entity, "names": list(names), "reason": reason}
        return self._write("/entities/split", fields, value_of(EntityInfo))

    @word
    def protect_entity(
        self, name_or_id: str, *, reason: str, protected: bool = True
    ) -> Call[EntityInfo]:
        """Keep the facts about an entity from being retired by time. Journalled.

        Raises:
            NotFound: no memory that the key may see names it.
            Conflict: the name may mean several (``details["candidates"]``).
        """
        fields = {"name": name_or_id, "protected": protected, "reason": reason}
        return self._write("/entities/protect", fields, value_of(EntityInfo))

    @word
    def decide_entity_proposal(
        self, proposal_id: str, *, accept: bool, reason: str
    ) -> Call[EntityInfo]:
        """Merge the entities of a proposal, or reject it for good; gives the one that stays.

        Raises:
            NotFound: no such proposal is open for this key.
        """
        fields = {"proposal_id": proposal_id, "accept": accept, "reason": reason}
        return self._write("/entities/decide", fields, value_of(EntityInfo))

    @course
    def export(
        self, target: str | Path, *, force: bool = False, with_vectors: bool = False
    ) -> Course[Exported]:
        """Write everything the orchestrator knows into a file, whole or not at all.

        Takes a key that may do all and from which nothing is hidden; the handle's narrowing does
        not count.

        Args:
            force: replace a file that is there.
            with_vectors: embeddings too; without them an import embeds everything anew.

        Raises:
            Conflict: there is a file already.
            RemoteAnswerInvalid: what came is not a whole export.
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
        """Write a checked copy of the database into one file; see ``export`` for who may.

        Args:
            force: replace a file that is there.

        Raises:
            Conflict: there is a file already.
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
    """The library's own report. A finding that this version does not know is refused."""
    told = value_of(AuditReport)(answer)
    try:
        findings = [
            Finding(Code(each.code), each.message, each.subject, each.details)
            for each in told.findings
        ]
    except ValueError:
        raise RemoteAnswerInvalid("the server found what this client cannot name") from None
    return VerifyReport(findings, Counter(told.totals), told.checked, told.last_at)
