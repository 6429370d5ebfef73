"""Sources of memories: list, read and retract them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.enums import SourceName
from memgraph.model.influence import SourceLines
from memgraph.model.operation import F, Limit, MemoryId, WireFormat, operation
from memgraph.model.sources import NamedSource, SourceInfo, SourcePage, SourceRetraction, SourceText
from memgraph.model.values import Reason, one_of
from memgraph.operations.handle import Handle

Kind = Annotated[SourceName | str, WireFormat(SourceName)]


class Sources(Handle[F], group="sources"):
    """Sources of memories: ``orc.sources``.

    A source is identified by a kind and a name. The kinds are ``path`` (a file, or a folder with
    everything below it; a relative path lies in ``ingest/processed/``), ``conversation``, ``run``
    (a workflow run) and ``content`` (a SHA-256).
    """

    @operation(Permission.AUDIT, "GET /sources", id="list_sources", command="sources")
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

        chosen = None if kind is None else one_of(SourceName, kind, "kind")
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return sources.listing(
                snapshot, self._view, kind=chosen, limit=limit, after=after, sender=sender
            )

    @operation(
        Permission.AUDIT, "POST /sources/info", id="source_info", body="SourceNamed", command=""
    )
    def get(self, kind: Kind, name: SourceText) -> SourceInfo:
        """Return the totals of one source's memories.

        Raises:
            InvalidInput: the kind or name is invalid.
            NotFound: no memory that this handle sees comes from the source.
        """
        from memgraph.operations.provenance.sources import no_source
        from memgraph.store.sources import info

        source = self._named(kind, name)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            result = info(snapshot, source, self._view)
        if result is None:
            raise no_source(source)
        return result

    @operation(
        Permission.AUDIT,
        "GET /memories/{memory_id}/lines",
        tag="auditing",
        id="source_lines",
        command="",
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

    @operation(Permission.ADMIN, "POST /sources/retract", body="SourceTaken", id="retract_source")
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
        memories are open again. All this is one transaction. New memories from the source are
        still accepted.

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
                return retraction.shortened(
                    retraction.plan_retraction(snapshot, source, self._view)
                )
        with self._write() as (_, transaction):
            report = retraction.retract(transaction, source, self._view, reason=because)
        return retraction.shortened(report)

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

    def _named(self, kind: SourceName | str, name: str) -> NamedSource:
        from memgraph.operations.provenance import sources

        return sources.named_of(self._service.paths(self.name), kind, name)
