"""Ingested files (from the drop zone or an upload) and the memories made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from memgraph.errors import MemgraphError
from memgraph.model.access import Permission
from memgraph.model.enums import ModelUse, Sensitivity
from memgraph.model.operation import F, WireFormat, operation
from memgraph.model.remote import IngestedFile, IngestPage, Limit as PageLimit
from memgraph.model.values import Name
from memgraph.operations.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.sources import Document, DocumentOutcome
    from memgraph.operations.ingestion.extraction import Proposals
    from memgraph.operations.ingestion.manifests import FileReader
    from memgraph.operations.orchestrator import Orchestrator


class Ingestion(Handle[F], group="ingestion", tag="ingest"):
    """Ingested files: ``orc.ingestion``."""

    @operation(Permission.READ, "GET /ingest/files/{sha256}", id="get_file", command="")
    def get(
        self,
        sha256: Annotated[
            Name, Field(description="SHA-256 of the content, 64 hexadecimal digits.")
        ],
    ) -> IngestedFile:
        """Return the record of an ingested file, as far as this handle may see it.

        A file is visible to its sender and to a handle that sees every memory made from it. A file
        without memories is visible to its sender and to a handle that sees everything.

        Args:
            sha256: the SHA-256 of the content, 64 hexadecimal digits.

        Raises:
            NotFound: the file was not ingested here, or is hidden from this handle.
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
                # It may have been processed since the first look-up.
                manifest = seen_file(opened, sha256, reader)
                if manifest is not None:
                    return manifest
        if sender is None or not (reader.everything or sender["actor"] == self.actor):
            raise no_file(sha256)
        return IngestedFile(sha256=sha256, status="waiting", at=None, manifest=None)

    @operation(Permission.READ, "GET /ingest/files", id="list_files", command="files")
    def list(
        self,
        *,
        limit: PageLimit = 50,
        after: Annotated[
            str | None,
            WireFormat(Name, "cursor"),
            Field(description="`next_cursor` of the previous page."),
        ] = None,
    ) -> IngestPage:
        """Return a page of processed files, latest first; see ``ingestion.get``.

        Args:
            limit: 1..1,000 files.
            after: ``next_cursor`` of the previous page.

        Raises:
            InvalidInput: ``limit`` is out of range, or ``after`` is not a cursor.
        """
        from memgraph.operations.ingestion.manifests import seen_files

        with self._service.opened(self.name) as opened:
            return seen_files(opened, self._file_reader(), limit=limit, after=after)

    def _file_reader(self) -> FileReader:
        from memgraph.operations.ingestion.manifests import FileReader

        # The actor of a host's own handle is any name, which proves nothing.
        actor = self.actor if self.viewer.confined else None
        return FileReader(self._view, actor, self.whole)


class LocalIngestion(Ingestion[F]):
    """Ingestion with the methods that a pipeline on this machine needs."""

    def stored(self, sha256: str) -> dict[str, Any] | None:
        """Return the manifest of a content that is stored; None if it is new, or was rejected."""
        from memgraph.operations.ingestion.ingest import stored_manifest

        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return stored_manifest(snapshot, sha256)

    def store(
        self,
        document: Document,
        *,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> DocumentOutcome:
        """Store a parsed file in short transactions; write nothing if it was stored before.

        A confined viewer can store only memories that it would see, and edges only between memories
        that it sees. Other items of the file are rejected one by one.

        Args:
            progress: called between transactions with the steps done and the number of steps.
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
                opened.background.wake()
        return outcome

    def under_way(self, sha256: str, claim: str, is_here: Callable[[str], bool]) -> bool:
        """Return True if another claim is storing this file: one for which ``is_here`` is True, or
        one of another drop zone, on a server, that stored a part of it within the last hour.
        """
        from memgraph.operations.ingestion.ingest import under_way

        with self._service.opened(self.name) as opened:
            return under_way(opened, sha256, claim, is_here)

    def give_up(self, sha256: str, claim: str) -> int:
        """Retract what a claim stored of a file whose rest it cannot store; return the number of
        memories.
        """
        from memgraph.operations.ingestion.ingest import give_up

        with self._service.opened(self.name) as opened:
            return give_up(opened, sha256, claim, self.actor)

    def on_behalf(self, sender: Mapping[str, Any]) -> Orchestrator:
        """Return a handle with the actor and the permissions of the sender of a file.

        Args:
            sender: the result of ``uploads.sender_of``, from JSON.

        Raises:
            InvalidInput: ``sender`` is not such a value.
        """
        from memgraph.operations.ingestion.uploads import viewer_of_sender

        viewer, actor = viewer_of_sender(sender)
        return self._service.orchestrator(self.name, viewer=viewer, actor=actor)

    def reject(self, sha256: str, *, path: str, manifest: Mapping[str, Any]) -> None:
        """Record that a file was rejected or is on hold, and why; it may be accepted later."""
        from memgraph.operations.ingestion.ingest import record_rejection

        with self._service.opened(self.name) as opened:
            record_rejection(opened, sha256, path=path, manifest=manifest, actor=self.actor)

    def propose(self, text: str) -> Proposals | None:
        """Return the extractor's proposals for a text, checked by rules.

        Returns None if no extractor is configured, or if ``memory.llm.max_sensitivity`` is below
        Internal, with which texts are stored. ``error_code`` is set if the model failed.
        """
        from memgraph.operations.ingestion.extraction import configured_extractor, propose
        from memgraph.operations.life.models import MeteredCompletion

        settings = self._service.settings(self.name)
        provider = self._service.completion or configured_extractor(settings, self._service.environ)
        limit = Sensitivity(settings.memory.llm.max_sensitivity)
        if provider is None or limit.level < Sensitivity.INTERNAL.level:
            return None
        with self._service.opened(self.name) as opened:
            metered = MeteredCompletion(provider, opened.model_meter, ModelUse.INGEST)
            return propose(metered, text)

    def log_event(self, event: str, **fields: Any) -> None:
        """Log an event to the orchestrator's ``memory.log``."""
        with self._service.opened(self.name) as opened:
            opened.log.info(event, **fields)


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")
