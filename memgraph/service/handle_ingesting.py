"""What the ingest pipeline does through a handle; the files themselves are its own business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memgraph.config import Settings
from memgraph.model.enums import IngestStatus, MemoryType
from memgraph.paths import OrchestratorPaths
from memgraph.service.handle import Handle

if TYPE_CHECKING:
    from memgraph.model.ingest import Document, DocumentOutcome
    from memgraph.service.extraction import Proposals


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
        """What became of a dropped content: its ``status`` and ``manifest``.

        Args:
            sha256: of the content, 64 hexadecimal digits.

        Raises:
            NotFound: it was not dropped here, or it became a memory that this handle may not see.
        """
        from memgraph.service.ingesting import manifest_seen

        with self._service.opened(self.name) as opened:
            status, told = manifest_seen(opened, sha256, self._view)
        return {"status": status.value, "manifest": told}

    def ingest_document(self, document: Document) -> DocumentOutcome:
        """Store a parsed file as a whole; a content that was stored before writes nothing."""
        from memgraph.service.ingesting import store_document

        with self._service.opened(self.name) as opened:
            outcome = store_document(opened, document, self.actor)
            if outcome.outcome == "stored":
                self._embed_soon(opened)
            return outcome

    def ingest_rejected(self, sha256: str, *, path: str, manifest: Mapping[str, Any]) -> None:
        """Note that a content was refused, and why; it may be taken later."""
        from memgraph.service.ingesting import record_rejection

        with self._service.opened(self.name) as opened:
            record_rejection(opened, sha256, path=path, manifest=manifest, actor=self.actor)

    def classify_types(self, texts: Sequence[str]) -> list[tuple[MemoryType | None, float]]:
        """For each text what it is worth remembering as (None: nothing), and how likely, 0..1."""
        from memgraph.service.classifiers import classify_types

        return classify_types(texts)

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
