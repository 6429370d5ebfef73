"""Files that were dropped or sent, and the memories made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from memgraph.errors import MemgraphError
from memgraph.model.access import Permission
from memgraph.model.enums import IngestStatus
from memgraph.model.operation import F, WireFormat, local, operation
from memgraph.model.remote import IngestedFile, IngestPage
from memgraph.model.remote import Limit as PageLimit
from memgraph.model.values import Name
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.sources import Document, DocumentOutcome
    from memgraph.operations.ingestion.extraction import Proposals
    from memgraph.operations.ingestion.manifests import FileReader
    from memgraph.operations.orchestrator import Orchestrator


class Ingestion(Handle[F], group="ingestion"):
    """Files that were dropped or sent: ``orc.ingestion``."""

    @operation(
        Permission.READ,
        "GET",
        "/ingest/files/{sha256}",
        tag="ingest",
        id="get_file",
        command="ingest-file",
    )
    def get(
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
            manifest = seen_file(opened, sha256, reader)
            if manifest is not None:
                return manifest
            sender = (
                uploads().waiting(self._service.paths(self.name).ingest, sha256)
                if _is_digest(sha256)
                else None
            )
            if sender is None:
                # It may have been waiting above, and have been processed since.
                manifest = seen_file(opened, sha256, reader)
                if manifest is not None:
                    return manifest
        if sender is None or not (reader.everything or sender["actor"] == self.actor):
            raise no_file(sha256)
        return IngestedFile(sha256=sha256, status="waiting", at=None, manifest=None)

    @operation(
        Permission.READ,
        "GET",
        "/ingest/files",
        tag="ingest",
        id="list_files",
        command="ingest-files",
    )
    def list(
        self,
        *,
        limit: PageLimit = 50,
        after: Annotated[
            str | None,
            WireFormat(Name, "cursor"),
            Field(description="`next_cursor` of the page before."),
        ] = None,
    ) -> IngestPage:
        """Return processed files, dropped or sent, latest first; see ``ingestion.get``.

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


class LocalIngestion(Ingestion[F]):
    """What a pipeline on this machine needs besides."""

    def known(self, sha256: str) -> tuple[IngestStatus, dict[str, Any]] | None:
        """Return the status and manifest of a content that was dropped before; None: a new one."""
        from memgraph.operations.ingestion.ingest import known

        with self._service.opened(self.name) as opened:
            return known(opened, sha256)

    @local
    def manifest(self, sha256: str) -> dict[str, Any]:
        """Return the ``status`` and ``manifest`` of a dropped content; see ``get``.

        Raises:
            NotFound: it was not dropped here, or is hidden from this handle.
        """
        manifest = self.get(sha256)
        return {"status": manifest.status, "manifest": manifest.manifest}

    def store(
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
                self._record_rejected(refused)
            if outcome.outcome != "duplicate":
                self._embed_soon(opened)
        return outcome

    def under_way(self, sha256: str) -> str | None:
        """Return the plan of a partly stored content; None: nothing or all of it is stored."""
        from memgraph.operations.ingestion.ingest import plan_under_way

        with self._service.opened(self.name) as opened:
            return plan_under_way(opened, sha256)

    def give_up(self, sha256: str) -> int:
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

    def reject(self, sha256: str, *, path: str, manifest: Mapping[str, Any]) -> None:
        """Record that a content was rejected or is held, and why; it may be accepted later."""
        from memgraph.operations.ingestion.ingest import record_rejection

        with self._service.opened(self.name) as opened:
            record_rejection(opened, sha256, path=path, manifest=manifest, actor=self.actor)

    def propose(self, text: str) -> Proposals | None:
        """Return the extractor's proposals for a text, judged by rules.

        None: no extractor is configured. ``error_code`` is set when the model failed.
        """
        from memgraph.operations.ingestion.extraction import configured_extractor, propose

        settings = self._service.settings(self.name)
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
            rest = without_own_output(opened, text)
        return rest.text, len(rest.reasons)

    def log_event(self, event: str, **fields: Any) -> None:
        """Write a line to the orchestrator's ``memory.log``."""
        with self._service.opened(self.name) as opened:
            opened.log.info(event, **fields)


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")
