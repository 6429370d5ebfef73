"""Sources, remotely."""

from __future__ import annotations

from typing import Any

from memgraph.client.calls import Call, part_of, value_of
from memgraph.client.places import Place, plain
from memgraph.client.words import word
from memgraph.model.enums import SourceName, TrustTier
from memgraph.model.sources import (
    SourceInfo,
    SourcePage,
    SourceRestoration,
    SourceRetraction,
    TrustedList,
    TrustedSource,
)


class SourcingWords(Place):
    """Where memories come from. Looking takes the permission audit, changing admin.

    A source is named by a kind and a name: ``path`` (a file, or a folder with all below it),
    ``conversation``, ``run`` or ``content`` (a SHA-256).
    """

    @word
    def sources(
        self,
        *,
        kind: SourceName | str | None = None,
        limit: int = 50,
        after: str | None = None,
        sender: str | None = None,
    ) -> Call[SourcePage]:
        """Sources of which the key sees something, by kind and name; see the library.

        Raises:
            InvalidInput: a kind, a limit (1..500) or a cursor that is none.
        """
        return self._get(
            "/sources", value_of(SourcePage), kind=kind, limit=limit, cursor=after, sender=sender
        )

    @word
    def source(self, kind: SourceName | str, name: str) -> Call[SourceInfo]:
        """What came from one source, and how far it is trusted. Raises NotFound, InvalidInput."""
        fields = plain({"kind": kind, "name": name})
        return self._look("/sources/info", fields, value_of(SourceInfo))

    @word
    def trusted(self) -> Call[list[TrustedSource]]:
        """What was said of sources, as far as the key may know, by kind and name."""
        return self._get("/sources/trust", part_of(TrustedList, lambda told: [*told.items]))

    @word
    def trust(
        self,
        kind: SourceName | str,
        name: str,
        tier: TrustTier | str,
        *,
        max_memories: int | None = None,
        reason: str,
    ) -> Call[TrustedSource]:
        """Say how far a source is trusted; what was said of it before is replaced.

        Args:
            tier: ``low``, ``standard`` or ``high``.
            max_memories: how many it may hold; 0: nothing more; None: as the settings have it.

        Raises:
            InvalidInput: it is no name of a source, no tier or no number, or no reason.
        """
        said = {"tier": tier, "max_memories": max_memories, "reason": reason}
        fields = plain({"kind": kind, "name": name, **said})
        return self._write("/sources/trust", fields, value_of(TrustedSource))

    @word
    def distrust(self, kind: SourceName | str, name: str, *, reason: str) -> Call[None]:
        """Take back what was said of a source. Raises NotFound, InvalidInput."""
        return self._done(
            "/sources/distrust", plain({"kind": kind, "name": name, "reason": reason})
        )

    @word
    def retract_source(
        self,
        *,
        path: str | None = None,
        conversation_id: str | None = None,
        workflow_run_id: str | None = None,
        content_sha256: str | None = None,
        reason: str,
        dry_run: bool = True,
    ) -> Call[SourceRetraction]:
        """Take back all that came from a source, and what was derived from that alone.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: exactly one of them.
            dry_run: only tell what would go.

        Raises:
            InvalidInput: not exactly one, or no name of a source, or no reason.
            NotFound: nothing came from it, as far as the key sees.
        """
        fields = _taken(path, conversation_id, workflow_run_id, content_sha256, reason, dry_run)
        return self._write("/sources/retract", fields, value_of(SourceRetraction))

    @word
    def restore_source(
        self,
        *,
        path: str | None = None,
        conversation_id: str | None = None,
        workflow_run_id: str | None = None,
        content_sha256: str | None = None,
        reason: str,
        dry_run: bool = True,
    ) -> Call[SourceRestoration]:
        """Bring back what ``retract_source`` took back by the same name.

        Args:
            path, conversation_id, workflow_run_id, content_sha256: exactly one of them.
            dry_run: only tell what would come back.

        Raises:
            InvalidInput: not exactly one, or no name of a source, or no reason.
            NotFound: nothing is taken back with it, as far as the key sees.
        """
        fields = _taken(path, conversation_id, workflow_run_id, content_sha256, reason, dry_run)
        return self._write("/sources/restore", fields, value_of(SourceRestoration))


def _taken(
    path: str | None,
    conversation_id: str | None,
    workflow_run_id: str | None,
    content_sha256: str | None,
    reason: str,
    dry_run: bool,
) -> dict[str, Any]:
    return plain(
        {
            "path": path,
            "conversation_id": conversation_id,
            "workflow_run_id": workflow_run_id,
            "content_sha256": content_sha256,
            "reason": reason,
            "dry_run": dry_run,
        }
    )
