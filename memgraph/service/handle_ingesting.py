"""What the ingest pipeline does through a handle; the files themselves are its own business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from memgraph.config import Settings
from memgraph.errors import MemgraphError
from memgraph.model.enums import IngestStatus
from memgraph.paths import OrchestratorPaths
from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.ingest import Document, DocumentOutcome
    from memgraph.model.remote import IngestedFile, IngestPage
    from memgraph.service.extraction import Proposals
    from memgraph.service.manifests import FileReader
    from memgraph.service.orchestrator import Orchestrator


class IngestingHandle(Handle):
    """The part of ``Orchestrator`` that takes in files."""

    @property
    def paths(self) -> OrchestratorPaths:
        """Where the orchestrator's files lie, the drop zone among them."""
        return self._service.paths(self.name)

    @property
    def settings(self) -> Settings:
        """The settings in force for this orchestrator."""
        return self._service.settings(self.name)

    def ingested(self, sha256: str) -> tuple[IngestStatus, dict[str, Any]] | None:
        """What became of a content that was dropped before, and its manifest; None: a new one."""
        from memgraph.service.ingesting import known

        with self._service.opened(self.name) as opened:
            return known(opened, sha256)

    def manifest(self, sha256: str) -> dict[str, Any]:
        """What became of a dropped content: its ``status`` and ``manifest``; see ``ingest_file``.

        Raises:
            NotFound: it was not dropped here, or is hidden from this handle.
        """
        found = self.ingest_file(sha256)
        return {"status": found.status, "manifest": found.manifest}

    def ingest_file(self, sha256: str, *, everything: bool | None = None) -> IngestedFile:
        """What became of a dropped or sent content, as far as this handle may know it.

        It is there for who sees every memory that came of it, and for who sent it; one of which
        nothing came for its sender and for who sees everything.

        Args:
            sha256: of the content, 64 hexadecimal digits.
            everything: whether nothing in the orchestrator is hidden from the holder of this
                handle; None: of a host's own handle that, of a confined one not.

        Raises:
            NotFound: it was not dropped here, or is hidden from this handle.
        """
        from memgraph.model.remote import IngestedFile
        from memgraph.service.intake import uploads
        from memgraph.service.manifests import no_file, seen_file

        reader = self._file_reader(everything)
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

    def ingest_files(
        self, *, limit: int = 50, after: str | None = None, everything: bool | None = None
    ) -> IngestPage:
        """Dropped and sent files that were worked off, the latest first; see ``ingest_file``.

        Args:
            limit: 1..1,000.
            after: ``next_cursor`` of the page before.

        Raises:
            InvalidInput: a limit out of range; ``after`` is no cursor.
        """
        from memgraph.service.manifests import seen_files

        with self._service.opened(self.name) as opened:
            return seen_files(opened, self._file_reader(everything), limit=limit, after=after)

    def _file_reader(self, everything: bool | None) -> FileReader:
        from memgraph.service.manifests import FileReader

        sees_all = not self.viewer.confined if everything is None else everything
        return FileReader(self._view, self.actor, sees_all)

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
            progress: told how many of how many steps are done, between transactions.
            stop: asked between transactions; True leaves the rest for the same document later.
        """
        from memgraph.service.ingesting import store_document

        refused: list[MemgraphError] = []
        with self._service.opened(self.name) as opened:
            view = self._view if self.viewer.confined else None
            try:
                outcome = store_document(
                    opened,
                    document,
                    self.actor,
                    view,
                    refused.append,
                    progress=progress,
                    stop=stop,
                )
            finally:
                self._tell_rejected(refused)
            if outcome.outcome != "duplicate":
                self._embed_soon(opened)
        return outcome

    def ingest_under_way(self, sha256: str) -> str | None:
        """The plan of a content of which a part is stored; None: no part, or all of it."""
        from memgraph.service.ingesting import plan_under_way

        with self._service.opened(self.name) as opened:
            return plan_under_way(opened, sha256)

    def ingest_given_up(self, sha256: str) -> int:
        """Retract what is stored of a content whose rest cannot be; how many memories that were."""
        from memgraph.service.ingesting import give_up

        with self._service.opened(self.name) as opened:
            return give_up(opened, sha256, self.actor)

    def on_behalf(self, sender: Mapping[str, Any]) -> Orchestrator:
        """A handle for what somebody else sent: its actor, and its bounds.

        Args:
            sender: what ``sender`` of the other's handle gave, from JSON.

        Raises:
            InvalidInput: it is not such a one.
        """
        from memgraph.service.intake import viewer_of_sender

        viewer, actor = viewer_of_sender(sender)
        return self._service.orchestrator(self.name, viewer=viewer, actor=actor)

    def ingest_rejected(self, sha256: str, *, path: str, manifest: Mapping[str, Any]) -> None:
        """Note that a content was refused or is held, and why; it may be taken later."""
        from memgraph.service.ingesting import record_rejection

        with self._service.opened(self.name) as opened:
            record_rejection(opened, sha256, path=path, manifest=manifest, actor=self.actor)

    def propose(self, text: str) -> Proposals | None:
        """What the configured extractor would remember of a text, judged by rules.

        None: no extractor is configured. A model that fails is told in ``error_code``.
        """
        from memgraph.service.extraction import configured_extractor, propose

        settings = self.settings
        provider = self._service.completion or configured_extractor(settings, self._service.environ)
        if provider is None:
            return None
        return propose(provider, text, max_chars=settings.memory.extractor.max_chars)

    def without_own_output(self, text: str) -> tuple[str, int]:
        """A text without what this memory wrote itself, and how many lines and blocks that were.

        Line numbers stay. Only what carries the ids of memories that are here is looked at: a line
        without them is the file's own, whoever said it before.
        """
        from memgraph.service.life.echoes import without_own_output

        with self._service.opened(self.name) as opened:
            left = without_own_output(opened, text)
        return left.text, len(left.reasons)

    def log_event(self, event: str, **fields: Any) -> None:
        """A line in the orchestrator's ``memory.log``."""
        with self._service.opened(self.name) as opened:
            opened.log.info(event, **fields)


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")
