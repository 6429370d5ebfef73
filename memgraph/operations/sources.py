"""Sources of an orchestrator: ingest, take back, restore, trust, erase."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from memgraph.errors import InvalidInput, MemgraphError, NotFound
from memgraph.model.access import Permission
from memgraph.model.enums import IngestStatus, SourceName, TrustTier
from memgraph.model.erasure import (
    ErasureReport,
    ErasureRequest,
    ErasureTarget,
    ErasureTargetKind,
    erasure_target,
)
from memgraph.model.operation import Limit, WireFormat, operation
from memgraph.model.remote import IngestedFile, IngestPage
from memgraph.model.remote import Limit as PageLimit
from memgraph.model.sources import (
    SourceInfo,
    SourcePage,
    SourceRestoration,
    SourceRetraction,
    SourceText,
    TrustedSource,
    TrustedSources,
)
from memgraph.model.values import Name, Reason, validated
from memgraph.operations.handle import Handle
from memgraph.paths import OrchestratorPaths, naming_full_disk
from memgraph.rules.trust import AssignedTrust, NamedSource, TrustRules

if TYPE_CHECKING:
    from memgraph.config import Settings
    from memgraph.model.sources import Document, DocumentOutcome
    from memgraph.operations.ingestion.extraction import Proposals
    from memgraph.operations.ingestion.manifests import FileReader
    from memgraph.operations.orchestrator import Orchestrator
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.snapshot import Snapshot


Kind = Annotated[SourceName | str, WireFormat(SourceName)]


class SourcesHandle(Handle):
    """The part of ``Orchestrator`` for the sources of memories.

    A source is named by a kind and a name: ``path`` (a file, or a folder with all below it; a
    relative one lies in ``ingest/processed/``), ``conversation``, ``run`` (of a workflow) or
    ``content`` (a SHA-256).
    """

    @operation(Permission.AUDIT, "GET", "/sources", tag="sources", id="list_sources")
    def sources(
        self,
        *,
        kind: Annotated[
            SourceName | str | None,
            WireFormat(SourceName),
            Field(description="Without one: paths, conversations and runs."),
        ] = None,
        limit: Limit = 50,
        after: Annotated[
            SourceText | None,
            WireFormat(name="cursor"),
            Field(description="`next_after` of the page before."),
        ] = None,
        sender: Annotated[
            SourceText | None,
            Field(description="Only sources with statements by this sender, or stored by it."),
        ] = None,
    ) -> SourcePage:
        """Return sources of visible memories, by kind and name.

        Args:
            kind: None: paths, conversations and runs.
            limit: 1..500 sources.
            after: ``next_after`` of the page before.
            sender: only sources with statements by a speaker of this name, or stored by this actor,
                such as ``key:…``.

        Raises:
            InvalidInput: one of them is invalid.
        """
        from memgraph.operations.provenance import sources
        from memgraph.store import trust as trust_rows

        chosen = None if kind is None else sources.kind_of(kind)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            trust = trust_rows.with_told(snapshot, _defaults(opened))
            return sources.listing(
                snapshot, trust, self._view, kind=chosen, limit=limit, after=after, sender=sender
            )

    @operation(
        Permission.AUDIT,
        "POST",
        "/sources/info",
        tag="sources",
        id="source_info",
        body="SourceNamed",
    )
    def source(self, kind: Kind, name: SourceText) -> SourceInfo:
        """Return the memories of one source and its trust.

        Raises:
            InvalidInput: an invalid kind or name.
            NotFound: nothing that this handle sees came from it.
        """
        from memgraph.operations.provenance import sources
        from memgraph.store import trust as trust_rows

        named = self._named(kind, name)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            trust = trust_rows.with_told(snapshot, _defaults(opened))
            found = sources.info_of(snapshot, trust, named, self._view)
        if found is None:
            raise sources.no_source(named)
        return found

    @operation(
        Permission.AUDIT,
        "GET",
        "/sources/trust",
        tag="sources",
        id="list_trusted",
        answer=TrustedSources,
    )
    def trusted(self) -> list[TrustedSource]:
        """Return the trust that operators assigned to sources, by kind and name.

        A confined handle gets what it assigned itself, and what concerns sources of memories that
        it sees.
        """
        from memgraph.operations.provenance import sources

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return [
                each
                for each in sources.trusted(snapshot)
                if self._may_tell_of(snapshot, NamedSource(each.kind, each.name), each)
            ]

    @operation(
        Permission.ADMIN,
        "POST",
        "/sources/trust",
        tag="sources",
        id="trust_source",
        body="SourceTrust",
    )
    def trust(
        self,
        kind: Kind,
        name: SourceText,
        tier: Annotated[TrustTier | str, WireFormat(TrustTier)],
        *,
        max_memories: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None,
        reason: Reason,
    ) -> TrustedSource:
        """Assign a trust tier to a source, in place of an earlier one.

        It applies from now on: what was replaced stays replaced. A source of a lower tier replaces
        nothing of a higher one: an Updates edge from it becomes an open contradiction. A confined
        handle can assign it to sources of memories that it sees, and replace what it assigned.

        Args:
            tier: ``low``, ``standard`` or ``high``.
            max_memories: the maximum number of its memories, without retracted ones, 0..10^9; 0:
                accept nothing more; None: ``memory.trust.max_memories`` of the tier.

        Raises:
            InvalidInput: an invalid source, tier, number or reason.
            NotFound: the handle is confined, and sees no memory of it.
        """
        from memgraph.operations.provenance import sources
        from memgraph.store import trust as trust_rows
        from memgraph.store.snapshot import NewEntry

        named = self._named(kind, name)
        because = self._because(reason)
        with self._write() as (_, transaction):
            said = {"tier": tier, "max_memories": max_memories}
            told = {"kind": named.kind, "name": named.name, "reason": because, **said}
            who = {"set_at": transaction.at, "actor": self.actor}
            given = validated(TrustedSource, told | who)
            before = sources.told_of(transaction, named)
            if not self._may_tell_of(transaction, named, before):
                raise sources.no_source(named)
            trusted = AssignedTrust(given.tier, given.max_memories)
            row = trust_rows.TrustRow(named, trusted, transaction.at, self.actor, because)
            trust_rows.tell(transaction, row)
            told = given.model_dump(mode="json", exclude={"set_at", "actor"})
            transaction.tell([NewEntry("trust", None, told)])
        return sources.trusted_from_row(row)

    @operation(
        Permission.ADMIN,
        "POST",
        "/sources/distrust",
        tag="sources",
        id="distrust_source",
        body="SourceDistrust",
    )
    def distrust(self, kind: Kind, name: SourceText, *, reason: Reason) -> None:
        """Remove the trust assigned to a source: the settings apply again.

        Raises:
            InvalidInput: an invalid source or reason.
            NotFound: nothing was assigned to it.
        """
        from memgraph.operations.provenance import sources
        from memgraph.store import trust as trust_rows
        from memgraph.store.snapshot import NewEntry

        named = self._named(kind, name)
        because = self._because(reason)
        with self._write() as (_, transaction):
            told_of = sources.told_of(transaction, named)
            if told_of is None or not self._may_tell_of(transaction, named, told_of):
                raise NotFound("no trust is assigned to this source", name=named.name[:80])
            trust_rows.untell(transaction, named)
            told = {"kind": named.kind.value, "name": named.name, "reason": because}
            transaction.tell([NewEntry("distrust", None, told)])

    @operation(Permission.ADMIN, "POST", "/sources/retract", tag="sources", body="SourceTaken")
    def retract_source(
        self,
        *,
        path: SourceText | None = None,
        conversation_id: SourceText | None = None,
        workflow_run_id: SourceText | None = None,
        content_sha256: SourceText | None = None,
        reason: Reason,
        dry_run: bool = True,
    ) -> SourceRetraction:
        """Retract all memories from a source, and what was derived from them alone.

        Memories with other sources or other evidence stay and are reported. What had been replaced
        only by retracted memories is active again; contradictions that they won are open again. It
        is one transaction, which ``restore_source`` reverses. Later memories from the source are
        stored again, unless ``trust`` with ``max_memories=0`` prevents it.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: exactly one of them.
            dry_run: only report what would be retracted.

        Raises:
            InvalidInput: not exactly one source, an invalid one, or an invalid reason.
            NotFound: nothing that this handle sees came from it.
        """
        from memgraph.operations.provenance import retraction as source_retracting

        named = self._one_of(path, conversation_id, workflow_run_id, content_sha256)
        because = self._because(reason)
        if dry_run:
            with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
                found = source_retracting.plan(snapshot, named, self._view)
                return source_retracting.report(snapshot, named, found, dry_run=True)
        with self._write() as (_, transaction):
            found = source_retracting.plan(transaction, named, self._view)
            told = source_retracting.report(transaction, named, found, dry_run=False)
            source_retracting.retract(transaction, named, found, reason=because)
        return told

    @operation(Permission.ADMIN, "POST", "/sources/restore", tag="sources", body="SourceTaken")
    def restore_source(
        self,
        *,
        path: SourceText | None = None,
        conversation_id: SourceText | None = None,
        workflow_run_id: SourceText | None = None,
        content_sha256: SourceText | None = None,
        reason: Reason,
        dry_run: bool = True,
    ) -> SourceRestoration:
        """Restore what ``retract_source`` retracted by the same name, in one transaction.

        What was restored, retracted for another reason or erased since stays as it is. What became
        active meanwhile is replaced again; a contradiction that was reopened stays open, and is
        reported.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: exactly one of them.
            dry_run: only report what would be restored.

        Raises:
            InvalidInput: not exactly one source, an invalid one, or an invalid reason.
            NotFound: no retraction of it is visible to this handle.
        """
        from memgraph.operations.provenance import restoration as source_restoring

        named = self._one_of(path, conversation_id, workflow_run_id, content_sha256)
        because = self._because(reason)
        if dry_run:
            with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
                found = source_restoring.plan(snapshot, named, self._view)
                return source_restoring.report(snapshot, named, found, dry_run=True)
        with self._write() as (_, transaction):
            found = source_restoring.plan(transaction, named, self._view)
            told = source_restoring.report(transaction, named, found, dry_run=False)
            source_restoring.restore(transaction, named, found, reason=because, view=self._view)
        return told

    def _one_of(
        self,
        path: str | None,
        conversation_id: str | None,
        workflow_run_id: str | None,
        content_sha256: str | None,
    ) -> NamedSource:
        given = {
            SourceName.PATH: path,
            SourceName.CONVERSATION: conversation_id,
            SourceName.RUN: workflow_run_id,
            SourceName.CONTENT: content_sha256,
        }
        chosen = [(kind, name) for kind, name in given.items() if name is not None]
        if len(chosen) != 1:
            raise InvalidInput("name one source: a path, a conversation, a run or a content hash")
        return self._named(*chosen[0])

    def _may_tell_of(
        self, snapshot: Snapshot, named: NamedSource, told: TrustedSource | None
    ) -> bool:
        """Return True when this handle may see and change the trust of a source."""
        if not self.viewer.confined or (told is not None and told.actor == self.actor):
            return True
        from memgraph.store import sources

        return sources.is_seen(snapshot, named, self._view)

    def _named(self, kind: SourceName | str, name: str) -> NamedSource:
        from memgraph.operations.provenance import sources

        return sources.named_of(self._service.paths(self.name), kind, name)


def _defaults(opened: OpenOrchestrator) -> TrustRules:
    return TrustRules.of(opened.settings.memory.trust)


class ErasingHandle(Handle):
    """The part of ``Orchestrator`` that erases texts."""

    def erase(
        self,
        *,
        memory_id: str | None = None,
        entity: str | None = None,
        session_id: str | None = None,
        path: str | None = None,
        conversation_id: str | None = None,
        workflow_run_id: str | None = None,
        content_sha256: str | None = None,
        reason: str,
        dry_run: bool = True,
        progress: Callable[[str, int, int], None] = lambda _step, _done, _total: None,
    ) -> ErasureReport:
        """Preview an erasure; with ``dry_run=False`` perform it, with a signed report.

        Whatever the viewer of this handle sees, the texts of the named memories and of those
        derived from them alone are removed: from rows, indexes, vectors, receipts, bulletins, the
        journal, manifests, files in the drop zone's ``processed`` and ``rejected``, logs, and
        copies of the database in the folder of the orchestrator. Their ids, times and edges stay.
        Other memories with the same text are listed in the report and stay. Run it again when the
        report lists unfinished work.

        Args:
            memory_id: one memory.
            entity: all memories that name it, by id or name; and the entity.
            session_id: all turns of a session and all that was extracted from them.
            path: all memories from a file, or from the files in a folder; as in ``retract_source``.
            conversation_id, workflow_run_id, content_sha256: all memories from it; the digest is of
                a file's bytes.
            reason: journalled; it must not repeat what is erased.
            dry_run: only report what would go and what would stay; nothing is written.
            progress: called with the name of a step, its number and the number of steps.

        Raises:
            InvalidInput: not exactly one target, no reason, or one that repeats what is erased.
            NotFound: no such target.
            Conflict: it is already erased, or a name may mean several entities.
            StorageError: the database failed; running it again continues.
        """
        target = erasure_target(
            memory_id=memory_id,
            entity=entity,
            session_id=session_id,
            path=path,
            conversation_id=conversation_id,
            workflow_run_id=workflow_run_id,
            content_sha256=content_sha256,
        )
        return self.erase_target(target, reason=reason, dry_run=dry_run, progress=progress)

    @operation(
        Permission.ADMIN,
        "POST",
        "/erase",
        tag="erasure",
        id="erase",
        body=ErasureRequest,
        whole="an erasure",
        slow=True,
    )
    def erase_target(
        self,
        target: ErasureTarget,
        *,
        reason: str,
        dry_run: bool = True,
        progress: Callable[[str, int, int], None] = lambda _step, _done, _total: None,
    ) -> ErasureReport:
        """Call ``erase`` for a target given as a value."""
        from memgraph.operations.erasure.erase import erase
        from memgraph.operations.provenance.sources import named_of

        if target.kind is ErasureTargetKind.PATH:
            named = named_of(self._service.paths(self.name), SourceName.PATH, target.value)
            target = target.model_copy(update={"value": named.name})
        because = self._because(reason)
        folder = self._service.paths(self.name).memory
        with self._service.opened(self.name) as opened, naming_full_disk(folder):
            return erase(
                opened, target, reason=because, actor=self.actor, dry_run=dry_run, progress=progress
            )


class IngestingHandle(Handle):
    """The part of ``Orchestrator`` that takes in files."""

    @property
    def paths(self) -> OrchestratorPaths:
        """The paths of the orchestrator's files, with the drop zone."""
        return self._service.paths(self.name)

    @property
    def settings(self) -> Settings:
        """The settings in force for this orchestrator."""
        return self._service.settings(self.name)

    def ingested(self, sha256: str) -> tuple[IngestStatus, dict[str, Any]] | None:
        """Return the status and manifest of a content that was dropped before; None: a new one."""
        from memgraph.operations.ingestion.ingest import known

        with self._service.opened(self.name) as opened:
            return known(opened, sha256)

    def manifest(self, sha256: str) -> dict[str, Any]:
        """Return the ``status`` and ``manifest`` of a dropped content; see ``ingest_file``.

        Raises:
            NotFound: it was not dropped here, or is hidden from this handle.
        """
        found = self.ingest_file(sha256)
        return {"status": found.status, "manifest": found.manifest}

    @operation(Permission.READ, "GET", "/ingest/files/{sha256}", tag="ingest", id="get_file")
    def ingest_file(
        self,
        sha256: Annotated[Name, Field(description="Of its content, 64 hexadecimal digits.")],
    ) -> IngestedFile:
        """Return the record of a dropped or sent content, as far as this handle may see it.

        It is visible to a handle that sees every memory made from it, and to its sender; a content
        without memories to its sender and to a handle that sees everything.

        Args:
            sha256: of the content, 64 hexadecimal digits.

        Raises:
            NotFound: it was not dropped here, or is hidden from this handle.
        """
        from memgraph.operations.ingestion.manifests import no_file, seen_file
        from memgraph.operations.ingestion.uploads import uploads

        reader = self._file_reader()
        with self._service.opened(self.name) as opened:
            found = seen_file(opened, sha256, reader)
            if found is not None:
                return found
            sender = uploads().waiting(self.paths.ingest, sha256) if _is_digest(sha256) else None
            if sender is None:
                # It may have been waiting above, and have been processed since.
                found = seen_file(opened, sha256, reader)
                if found is not None:
                    return found
        if sender is None or not (reader.everything or sender["actor"] == self.actor):
            raise no_file(sha256)
        return IngestedFile(sha256=sha256, status="waiting", at=None, manifest=None)

    @operation(Permission.READ, "GET", "/ingest/files", tag="ingest", id="list_files")
    def ingest_files(
        self,
        *,
        limit: PageLimit = 50,
        after: Annotated[
            str | None,
            WireFormat(Name, "cursor"),
            Field(description="`next_cursor` of the page before."),
        ] = None,
    ) -> IngestPage:
        """Return processed files, dropped or sent, latest first; see ``ingest_file``.

        Args:
            limit: 1..1,000.
            after: ``next_cursor`` of the page before.

        Raises:
            InvalidInput: a limit out of range; ``after`` is no cursor.
        """
        from memgraph.operations.ingestion.manifests import seen_files

        with self._service.opened(self.name) as opened:
            return seen_files(opened, self._file_reader(), limit=limit, after=after)

    def _file_reader(self) -> FileReader:
        from memgraph.operations.ingestion.manifests import FileReader

        return FileReader(self._view, self.actor, self.whole)

    def ingest_document(
        self,
        document: Document,
        *,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> DocumentOutcome:
        """Store a parsed file in short transactions; a content stored before writes nothing.

        A confined viewer stores only what it would see, and joins only what it sees: the rest of
        the file is rejected item by item.

        Args:
            progress: called with the steps done and the number of steps, between transactions.
            stop: checked between transactions; True leaves the rest for a later call with the same
                document.
        """
        from memgraph.operations.ingestion.ingest import store_document

        refused: list[MemgraphError] = []
        with self._service.opened(self.name) as opened:
            view = self._view if self.viewer.confined else None
            try:
                outcome = store_document(
                    opened, document, self.actor, view, refused.append, progress=progress, stop=stop
                )
            finally:
                self._tell_rejected(refused)
            if outcome.outcome != "duplicate":
                self._embed_soon(opened)
        return outcome

    def ingest_under_way(self, sha256: str) -> str | None:
        """Return the plan of a partly stored content; None: nothing or all of it is stored."""
        from memgraph.operations.ingestion.ingest import plan_under_way

        with self._service.opened(self.name) as opened:
            return plan_under_way(opened, sha256)

    def ingest_given_up(self, sha256: str) -> int:
        """Retract the stored part of a content whose rest cannot be stored; return the number of
        memories.
        """
        from memgraph.operations.ingestion.ingest import give_up

        with self._service.opened(self.name) as opened:
            return give_up(opened, sha256, self.actor)

    def on_behalf(self, sender: Mapping[str, Any]) -> Orchestrator:
        """Return a handle with the actor and the bounds of another sender.

        Args:
            sender: the value of the other handle's ``sender``, from JSON.

        Raises:
            InvalidInput: it is not such a value.
        """
        from memgraph.operations.ingestion.uploads import viewer_of_sender

        viewer, actor = viewer_of_sender(sender)
        return self._service.orchestrator(self.name, viewer=viewer, actor=actor)

    def ingest_rejected(self, sha256: str, *, path: str, manifest: Mapping[str, Any]) -> None:
        """Record that a content was rejected or is held, and why; it may be accepted later."""
        from memgraph.operations.ingestion.ingest import record_rejection

        with self._service.opened(self.name) as opened:
            record_rejection(opened, sha256, path=path, manifest=manifest, actor=self.actor)

    def propose(self, text: str) -> Proposals | None:
        """Return the extractor's proposals for a text, judged by rules.

        None: no extractor is configured. ``error_code`` is set when the model failed.
        """
        from memgraph.operations.ingestion.extraction import configured_extractor, propose

        settings = self.settings
        provider = self._service.completion or configured_extractor(settings, self._service.environ)
        if provider is None:
            return None
        return propose(provider, text, max_chars=settings.memory.extractor.max_chars)

    def without_own_output(self, text: str) -> tuple[str, int]:
        """Return a text without what this memory wrote itself, and the number of lines and blocks
        removed.

        Line numbers stay. Only lines with the ids of existing memories are removed: a line without
        them belongs to the file, whoever wrote it first.
        """
        from memgraph.operations.life.echoes import without_own_output

        with self._service.opened(self.name) as opened:
            left = without_own_output(opened, text)
        return left.text, len(left.reasons)

    def log_event(self, event: str, **fields: Any) -> None:
        """Write a line to the orchestrator's ``memory.log``."""
        with self._service.opened(self.name) as opened:
            opened.log.info(event, **fields)


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")
