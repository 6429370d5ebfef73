"""Sources through a handle: what came from each, how far it is trusted, and taking it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.audit.journal import Entry
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.enums import SourceName, TrustTier
from memgraph.model.values import validated
from memgraph.rules.trust import Named, Trust, Trusted
from memgraph.service.handle import Handle
from memgraph.store import sources as sources_rows
from memgraph.store import trust as trust_rows
from memgraph.store.trust import TrustRow

if TYPE_CHECKING:
    from memgraph.model.sources import (
        SourceInfo,
        SourcePage,
        SourceRestoration,
        SourceRetraction,
        TrustedSource,
    )
    from memgraph.service.opened import Opened
    from memgraph.store.snapshot import Snapshot


class SourcesHandle(Handle):
    """The part of ``Orchestrator`` that knows where memories come from.

    A source is named by a kind and a name: ``path`` (a file, or a folder with all below it; a
    relative one lies in ``ingest/processed/``), ``conversation``, ``run`` (of a workflow) or
    ``content`` (a SHA-256).
    """

    def sources(
        self,
        *,
        kind: SourceName | str | None = None,
        limit: int = 50,
        after: str | None = None,
        sender: str | None = None,
    ) -> SourcePage:
        """Sources of which this handle sees something, by kind and name.

        Args:
            kind: None: paths, conversations and runs.
            limit: 1..500 sources.
            after: ``next_after`` of the page before.
            sender: only sources of which somebody of this name said something, or this actor, such
                as ``key:…``, stored something.

        Raises:
            InvalidInput: one of them is none.
        """
        from memgraph.service import sources

        chosen = None if kind is None else sources.kind_of(kind)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            trust = trust_rows.with_told(snapshot, _defaults(opened))
            return sources.listing(
                snapshot,
                trust,
                self._view,
                kind=chosen,
                limit=limit,
                after=after,
                sender=sender,
            )

    def source(self, kind: SourceName | str, name: str) -> SourceInfo:
        """What came from one source, and how far it is trusted.

        Raises:
            InvalidInput: it is no name of a source.
            NotFound: nothing came from it, as far as this handle sees.
        """
        from memgraph.service import sources

        named = self._named(kind, name)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            trust = trust_rows.with_told(snapshot, _defaults(opened))
            found = sources.info_of(snapshot, trust, named, self._view)
        if found is None:
            raise sources.no_source(named)
        return found

    def trusted(self) -> list[TrustedSource]:
        """What operators said of sources, by kind and name.

        A confined handle is told what it said itself, and what is said of sources of which it sees
        something.
        """
        from memgraph.service import sources

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return [
                each
                for each in sources.trusted(snapshot)
                if self._may_tell_of(snapshot, Named(each.kind, each.name), each)
            ]

    def trust(
        self,
        kind: SourceName | str,
        name: str,
        tier: TrustTier | str,
        *,
        max_memories: int | None = None,
        reason: str,
    ) -> TrustedSource:
        """Say how far a source is trusted; what was said of it before is replaced.

        It holds from now on: what replaced what stays so. A source of a lower tier replaces
        nothing that a higher one said: an Updates edge from it becomes an open contradiction.
        A confined handle speaks of sources of which it sees something, and replaces what it said.

        Args:
            tier: ``low``, ``standard`` or ``high``.
            max_memories: how many it may hold, retracted ones not counted, 0..10^9; 0: nothing
                more; None: what ``memory.trust.max_memories`` says of the tier.

        Raises:
            InvalidInput: it is no name of a source, no tier or no number, or no reason.
            NotFound: the handle is confined, and nothing came from it that it sees.
        """
        from memgraph.model.sources import TrustedSource
        from memgraph.service import sources

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
            trusted = Trusted(given.tier, given.max_memories)
            row = TrustRow(named, trusted, transaction.at, self.actor, because)
            trust_rows.tell(transaction, row)
            told = given.model_dump(mode="json", exclude={"set_at", "actor"})
            transaction.tell([Entry("trust", None, told)])
        return sources.trusted_from_row(row)

    def distrust(self, kind: SourceName | str, name: str, *, reason: str) -> None:
        """Take back what was said of a source: the settings decide again.

        Raises:
            InvalidInput: it is no name of a source, or no reason.
            NotFound: nothing was said of it.
        """
        from memgraph.service import sources

        named = self._named(kind, name)
        because = self._because(reason)
        with self._write() as (_, transaction):
            told_of = sources.told_of(transaction, named)
            if told_of is None or not self._may_tell_of(transaction, named, told_of):
                raise NotFound("nothing was said of this source", name=named.name[:80])
            trust_rows.untell(transaction, named)
            told = {"kind": named.kind.value, "name": named.name, "reason": because}
            transaction.tell([Entry("distrust", None, told)])

    def retract_source(
        self,
        *,
        path: str | None = None,
        conversation_id: str | None = None,
        workflow_run_id: str | None = None,
        content_sha256: str | None = None,
        reason: str,
        dry_run: bool = True,
    ) -> SourceRetraction:
        """Take back all that came from a source, and what was derived from that alone.

        What further sources say, or has other grounds, stays and is told. What had been replaced
        by nothing but what goes has its place back; contradictions that were decided for what goes
        are open again. All of it is one transaction, which ``restore_source`` reverses. What comes
        from the source later is stored again, unless ``trust`` with ``max_memories=0`` says
        otherwise.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: exactly one of them.
            dry_run: only tell what would go.

        Raises:
            InvalidInput: not exactly one, or no name of a source, or no reason.
            NotFound: nothing came from it, as far as this handle sees.
        """
        from memgraph.service import source_retracting

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

    def restore_source(
        self,
        *,
        path: str | None = None,
        conversation_id: str | None = None,
        workflow_run_id: str | None = None,
        content_sha256: str | None = None,
        reason: str,
        dry_run: bool = True,
    ) -> SourceRestoration:
        """Bring back what ``retract_source`` took back by the same name, in one transaction.

        What was restored, retracted for another reason or erased since stays as it is. What had its
        place back meanwhile is replaced again; a contradiction that is open again stays so, and is
        told.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: exactly one of them.
            dry_run: only tell what would come back.

        Raises:
            InvalidInput: not exactly one, or no name of a source, or no reason.
            NotFound: nothing is taken back with it, as far as this handle sees.
        """
        from memgraph.service import source_restoring

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
    ) -> Named:
        given = {
            SourceName.PATH: path,
            SourceName.CONVERSATION: conversation_id,
            SourceName.RUN: workflow_run_id,
            SourceName.CONTENT: content_sha256,
        }
        chosen = [(kind, name) for kind, name in given.items() if name is not None]
        if len(chosen) != 1:
            raise InvalidInput("name one source: a path, a conversation, a run or a content")
        return self._named(*chosen[0])

    def _may_tell_of(self, snapshot: Snapshot, named: Named, told: TrustedSource | None) -> bool:
        """Whether this handle may know what was ``told`` of a source, and say something of it."""
        if not self.viewer.confined or (told is not None and told.actor == self.actor):
            return True
        return sources_rows.is_seen(snapshot, named, self._view)

    def _named(self, kind: SourceName | str, name: str) -> Named:
        from memgraph.service import sources

        return sources.named_of(self._service.paths(self.name), kind, name)


def _defaults(opened: Opened) -> Trust:
    return Trust.of(opened.settings.memory.trust)
