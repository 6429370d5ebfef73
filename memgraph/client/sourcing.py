"""Sources over HTTP."""

from __future__ import annotations

from dataclasses import replace

from memgraph.client.calls import Call, value_of
from memgraph.client.files import Place
from memgraph.client.operations import remote
from memgraph.client.words import word
from memgraph.model.erasing import ErasureReport, ErasureTarget, erasure_target
from memgraph.service.handle_sources import SourcesHandle as Sources


class SourcingWords(Place):
    """The methods for sources. Reading requires the permission audit, changing admin.

    A source is named by a kind and a name: ``path`` (a file, or a folder with all below it),
    ``conversation``, ``run`` or ``content`` (a SHA-256).
    """

    sources = remote(Sources.sources)
    source = remote(Sources.source)
    trusted = remote(Sources.trusted)
    trust = remote(Sources.trust)
    distrust = remote(Sources.distrust)
    retract_source = remote(Sources.retract_source)
    restore_source = remote(Sources.restore_source)


class ErasingWords(Place):
    """The methods for erasure; they require the permission admin and a key that sees everything."""

    @word
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
    ) -> Call[ErasureReport]:
        """Preview an erasure; ``dry_run=False`` performs it: see ``Orchestrator.erase``.

        Name exactly one target. The server signs the report; when it lists unfinished work, the
        same call continues.

        Raises:
            InvalidInput: not exactly one target, no reason, or one that repeats what is erased.
            NotFound: no such target.
            Conflict: it is erased already, or a name may mean several entities.
            AccessDenied: something is hidden from the key.
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
        return self._erase(target, reason=reason, dry_run=dry_run)

    @word
    def erase_target(
        self, target: ErasureTarget, *, reason: str, dry_run: bool = True
    ) -> Call[ErasureReport]:
        """Call ``erase`` for a target given as a value. Raises as ``erase``."""
        return self._erase(target, reason=reason, dry_run=dry_run)

    def _erase(self, target: ErasureTarget, *, reason: str, dry_run: bool) -> Call[ErasureReport]:
        fields = {"target": target.model_dump(mode="json"), "reason": reason, "dry_run": dry_run}
        # A repeated one that was done tells that it was: it is asked for under a key.
        return replace(self._write("/erase", fields, value_of(ErasureReport)), slow=True)
