"""Sources of memories: list, read, trust, retract and restore them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from memgraph.errors import InvalidInput, NotFound
from memgraph.model.access import Permission
from memgraph.model.enums import SourceName, TrustTier
from memgraph.model.influence import SourceLines
from memgraph.model.operation import F, Limit, MemoryId, WireFormat, operation
from memgraph.model.sources import (
    SourceInfo,
    SourcePage,
    SourceRestoration,
    SourceRetraction,
    SourceText,
    TrustedSource,
    TrustedSources,
)
from memgraph.model.values import Reason, validated
from memgraph.operations.handle import Handle
from memgraph.rules.trust import AssignedTrust, NamedSource, TrustRules

if TYPE_CHECKING:
    from memgraph.service.open_orchestrator import OpenOrchestrator
    from memgraph.store.snapshot import Snapshot


Kind = Annotated[SourceName | str, WireFormat(SourceName)]


class Sources(Handle[F], group="sources"):
    """Sources of memories: ``orc.sources``.

    A source is identified by a kind and a name. The kinds are ``path`` (a file, or a folder with
    everything below it; a relative path lies in ``ingest/processed/``), ``conversation``, ``run``
    (a workflow run) and ``content`` (a SHA-256).
    """

    @operation(
        Permission.AUDIT, "GET", "/sources", tag="sources", id="list_sources", command="sources"
    )
    def list(
        self,
        *,
        kind: Annotated[
            SourceName | str | None,
            WireFormat(SourceName),
            Field(description="Only this kind; by default paths, conversations and runs."),
        ] = None,
        limit: Limit = 50,
        after: Annotated[
            SourceText | None,
            WireFormat(name="cursor"),
            Field(description="`next_after` of the previous page."),
        ] = None,
        sender: Annotated[
            SourceText | None,
            Field(description="Only sources with memories said or stored by this sender."),
        ] = None,
    ) -> SourcePage:
        """Return the sources of visible memories, sorted by kind and name.

        Args:
            kind: only sources of this kind; None: paths, conversations and runs.
            limit: 1..500 sources.
            after: ``next_after`` of the previous page.
            sender: only sources with memories said by a speaker of this name, or stored by this
                actor, such as ``key:…``.

        Raises:
            InvalidInput: an argument is invalid.
        """
        from memgraph.operations.provenance import sources
        from memgraph.store import trust as trust_rows

        chosen = None if kind is None else sources.kind_of(kind)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            trust = trust_rows.with_assigned(snapshot, _defaults(opened))
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
        command="source",
    )
    def get(self, kind: Kind, name: SourceText) -> SourceInfo:
        """Return the totals of one source's memories, and its trust.

        Raises:
            InvalidInput: the kind or name is invalid.
            NotFound: no memory that this handle sees comes from the source.
        """
        from memgraph.operations.provenance import sources
        from memgraph.store import trust as trust_rows

        source = self._named(kind, name)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            trust = trust_rows.with_assigned(snapshot, _defaults(opened))
            result = sources.info_of(snapshot, trust, source, self._view)
        if result is None:
            raise sources.no_source(source)
        return result

    @operation(
        Permission.AUDIT, "GET", "/memories/{memory_id}/lines", tag="auditing", id="source_lines"
    )
    def lines(self, memory_id: MemoryId) -> SourceLines:
        """Return the source lines of a memory: lines of its stored file, or turns.

        Lines are returned only if the file is unchanged, by its digest; see ``state``.

        Raises:
            NotFound: no such memory is visible to this handle.
        """
        from memgraph.operations.provenance.sources import source_lines

        memory_id = self._whole_id(memory_id)
        with self._service.opened(self.name) as opened:
            return source_lines(opened, self._view, memory_id)

    @operation(
        Permission.AUDIT,
        "GET",
        "/sources/trust",
        tag="sources",
        id="list_trusted",
        answer=TrustedSources,
    )
    def trusted(self) -> Sequence[TrustedSource]:
        """Return the trust that operators assigned to sources, sorted by kind and name.

        A confined handle sees only its own assignments, and those of sources of memories that it
        sees.
        """
        from memgraph.operations.provenance import sources

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return [
                item
                for item in sources.trusted(snapshot)
                if self._may_tell_of(snapshot, NamedSource(item.kind, item.name), item)
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
        """Assign a trust tier to a source, replacing an earlier assignment.

        It applies from now on: memories that were already replaced stay replaced. A source of a
        lower tier cannot replace memories of a higher one: its Updates edges become open
        contradictions. A confined handle can assign trust only to sources of memories that it sees,
        and change its own assignments.

        Args:
            tier: ``low``, ``standard`` or ``high``.
            max_memories: the maximum number of memories of the source, not counting retracted ones,
                0..10^9. 0: accept no more; None: ``memory.trust.max_memories`` of the tier.

        Raises:
            InvalidInput: the source, tier, number or reason is invalid.
            NotFound: the handle is confined and sees no memory of the source.
        """
        from memgraph.operations.provenance import sources
        from memgraph.store import trust as trust_rows
        from memgraph.store.snapshot import NewEntry

        source = self._named(kind, name)
        because = self._because(reason)
        with self._write() as (_, transaction):
            rule = {"tier": tier, "max_memories": max_memories}
            details = {"kind": source.kind, "name": source.name, "reason": because, **rule}
            assigned = {"set_at": transaction.at, "actor": self.actor}
            trusted_source = validated(TrustedSource, details | assigned)
            before = sources.told_of(transaction, source)
            if not self._may_tell_of(transaction, source, before):
                raise sources.no_source(source)
            trusted = AssignedTrust(trusted_source.tier, trusted_source.max_memories)
            row = trust_rows.TrustRow(source, trusted, transaction.at, self.actor, because)
            trust_rows.assign(transaction, row)
            details = trusted_source.model_dump(mode="json", exclude={"set_at", "actor"})
            transaction.record([NewEntry("trust", None, details)])
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
        """Remove the trust assigned to a source, so that the settings apply again.

        Raises:
            InvalidInput: the source or reason is invalid.
            NotFound: no trust was assigned to the source.
        """
        from memgraph.operations.provenance import sources
        from memgraph.store import trust as trust_rows
        from memgraph.store.snapshot import NewEntry

        source = self._named(kind, name)
        because = self._because(reason)
        with self._write() as (_, transaction):
            assigned = sources.told_of(transaction, source)
            if assigned is None or not self._may_tell_of(transaction, source, assigned):
                raise NotFound("no trust is assigned to this source", name=source.name[:80])
            trust_rows.unassign(transaction, source)
            details = {"kind": source.kind.value, "name": source.name, "reason": because}
            transaction.record([NewEntry("distrust", None, details)])

    @operation(
        Permission.ADMIN,
        "POST",
        "/sources/retract",
        tag="sources",
        body="SourceTaken",
        id="retract_source",
    )
    def retract(
        self,
        *,
        path: SourceText | None = None,
        conversation_id: SourceText | None = None,
        workflow_run_id: SourceText | None = None,
        content_sha256: SourceText | None = None,
        reason: Reason,
        dry_run: bool = True,
    ) -> SourceRetraction:
        """Retract all memories from a source, and those derived only from them.

        Memories with other sources or other evidence stay and are reported. Memories that had been
        replaced only by retracted ones become active again, and contradictions won by retracted
        memories are open again. All this is one transaction, which ``sources.restore`` reverses.
        New memories from the source are still accepted, unless ``sources.trust`` with
        ``max_memories=0`` prevents it.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: the source; exactly one of them.
            dry_run: only report what would be retracted.

        Raises:
            InvalidInput: not exactly one source is given, or the source or reason is invalid.
            NotFound: no memory that this handle sees comes from the source.
        """
        from memgraph.operations.provenance import retraction

        source = self._one_of(path, conversation_id, workflow_run_id, content_sha256)
        because = self._because(reason)
        if dry_run:
            with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
                result = retraction.plan_retraction(snapshot, source, self._view)
                return retraction.retraction_report(snapshot, source, result, dry_run=True)
        with self._write() as (_, transaction):
            result = retraction.plan_retraction(transaction, source, self._view)
            report = retraction.retraction_report(transaction, source, result, dry_run=False)
            retraction.retract(transaction, source, result, reason=because)
        return report

    @operation(
        Permission.ADMIN,
        "POST",
        "/sources/restore",
        tag="sources",
        body="SourceTaken",
        id="restore_source",
    )
    def restore(
        self,
        *,
        path: SourceText | None = None,
        conversation_id: SourceText | None = None,
        workflow_run_id: SourceText | None = None,
        content_sha256: SourceText | None = None,
        reason: Reason,
        dry_run: bool = True,
    ) -> SourceRestoration:
        """Restore what ``sources.retract`` retracted for the same source, in one transaction.

        Memories that were restored, retracted for another reason or erased since stay as they are.
        Memories that had become active again are replaced again. Reopened contradictions stay open
        and are reported.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: the source; exactly one of them.
            dry_run: only report what would be restored.

        Raises:
            InvalidInput: not exactly one source is given, or the source or reason is invalid.
            NotFound: no retraction of the source is visible to this handle.
        """
        from memgraph.operations.provenance import retraction

        source = self._one_of(path, conversation_id, workflow_run_id, content_sha256)
        because = self._because(reason)
        if dry_run:
            with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
                result = retraction.plan_restoration(snapshot, source, self._view)
                return retraction.restoration_report(snapshot, source, result, dry_run=True)
        with self._write() as (_, transaction):
            result = retraction.plan_restoration(transaction, source, self._view)
            report = retraction.restoration_report(transaction, source, result, dry_run=False)
            retraction.restore(transaction, source, result, reason=because, view=self._view)
        return report

    def _one_of(
        self,
        path: str | None,
        conversation_id: str | None,
        workflow_run_id: str | None,
        content_sha256: str | None,
    ) -> NamedSource:
        names = {
            SourceName.PATH: path,
            SourceName.CONVERSATION: conversation_id,
            SourceName.RUN: workflow_run_id,
            SourceName.CONTENT: content_sha256,
        }
        chosen = [(kind, name) for kind, name in names.items() if name is not None]
        if len(chosen) != 1:
            raise InvalidInput(
                "give exactly one source: a path, a conversation, a run or a content hash"
            )
        return self._named(*chosen[0])

    def _may_tell_of(
        self, snapshot: Snapshot, source: NamedSource, details: TrustedSource | None
    ) -> bool:
        """Return True if this handle may see and change the trust of a source."""
        if not self.viewer.confined or (details is not None and details.actor == self.actor):
            return True
        from memgraph.store import sources

        return sources.is_visible(snapshot, source, self._view)

    def _named(self, kind: SourceName | str, name: str) -> NamedSource:
        from memgraph.operations.provenance import sources

        return sources.named_of(self._service.paths(self.name), kind, name)


def _defaults(opened: OpenOrchestrator) -> TrustRules:
    return TrustRules.of(opened.settings.memory.trust)
