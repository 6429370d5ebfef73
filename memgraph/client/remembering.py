"""Write memories over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memgraph.client.batches import store_all
from memgraph.client.calls import Call, Read, Repeat, part_of, segment, value_of
from memgraph.client.exchange import Course
from memgraph.client.files import Place, plain
from memgraph.client.operations import remote
from memgraph.client.words import course, word
from memgraph.context.assembling import ConfirmationCallback, confirmed
from memgraph.errors import ConfirmationMissing, InvalidInput
from memgraph.model.context import Tier
from memgraph.model.enums import EdgeType
from memgraph.model.remote import (
    EdgeId,
    Forgotten,
    ForgottenList,
    IngestedFile,
    IngestPage,
    MemoryId,
    PromotedId,
    Remembered,
    Uploaded,
)
from memgraph.model.values import EdgeInput, Memory, MemoryInput, Outcome, validated
from memgraph.rules.access import question_about
from memgraph.service.handle_auditing import CasesHandle, HistoryHandle

MEMORY_ID: Read[str] = part_of(MemoryId, lambda told: told.memory_id)
OUTCOME: Read[Outcome] = part_of(Remembered, lambda told: Outcome(**told.model_dump()))


class RememberingWords(Place):
    """The methods that change memories."""

    @word
    def remember(self, /, content: str, **fields: Any) -> Call[str]:
        """Store one memory and return its id; for an existing one return that one's.

        Args:
            content: the text, 1 to 32,000 characters; it never changes afterwards.
            fields: the fields of ``MemoryInput``.

        Raises:
            InvalidInput: naming each field that is wrong.
            NotFound: a memory named in ``derived_from`` is missing, or not visible.
            AccessDenied: the key may not write, or not there.
        """
        given = validated(MemoryInput, {"content": content, **fields})
        return self._write("/memories", given, MEMORY_ID)

    @word
    def store(self, /, content: str, **fields: Any) -> Call[Outcome]:
        """Store one memory as ``remember`` does and return the outcome.

        The outcome's ``updates`` and ``contradicts`` name related facts about the same subject,
        ``reasons`` why.

        Raises:
            InvalidInput, NotFound, AccessDenied: see ``remember``.
        """
        given = validated(MemoryInput, {"content": content, **fields})
        return self._write("/memories", given, OUTCOME)

    @course
    def remember_many(
        self, items: Iterable[MemoryInput | Mapping[str, Any]]
    ) -> Course[list[Outcome]]:
        """Store many memories: in order, in batches, one outcome for each.

        A batch has at most 1,000 items and about 2 MB; ``items`` is read while earlier ones are
        written. An invalid item is rejected by itself. ``derived_from`` may name an earlier item of
        the same batch by ``#key``.
        """
        return store_all(self, "/memories/batch", MemoryInput, items)

    @word
    def correct(self, /, memory_id: str, content: str, *, reason: str, **fields: Any) -> Call[str]:
        """Replace a memory's text by a new memory with an Updates edge; return the new id.

        The new one keeps the old one's type, scope and tags unless ``fields`` override them.

        Raises:
            NotFound: no such memory.
            Conflict: it is retracted, or the new text is the old one.
        """
        given = plain({**fields, "content": content, "reason": reason})
        return self._write(f"/memories/{segment(memory_id)}/correct", given, MEMORY_ID)

    @word
    def confirm(self, memory_id: str) -> Call[None]:
        """Protect a memory: confidence 1, no decay. Raises NotFound, Conflict."""
        return self._done(f"/memories/{segment(memory_id)}/confirm", {})

    @word
    def retract(self, memory_id: str, *, reason: str) -> Call[None]:
        """Retract a memory; it stays in the history. Raises NotFound, IllegalTransition."""
        return self._done(f"/memories/{segment(memory_id)}/retract", {"reason": reason})

    @word
    def restore(self, memory_id: str, *, reason: str) -> Call[None]:
        """Restore a retracted memory: active, or superseded when its successor is active.

        Raises:
            NotFound, IllegalTransition: there is none, or it is not retracted.
            Conflict: it was erased.
        """
        return self._done(f"/memories/{segment(memory_id)}/restore", {"reason": reason})

    @word
    def forget(self, memory_ids: Sequence[str], *, reason: str) -> Call[list[Forgotten]]:
        """Retract many memories in one transaction, with an outcome for each, in order.

        Args:
            memory_ids: 1 to 1,000.

        Raises:
            InvalidInput: too many or too few, or an invalid reason.
        """
        if isinstance(memory_ids, str):
            raise InvalidInput("memory_ids: 1 to 1,000 ids", field="memory_ids")
        fields = {"memory_ids": list(memory_ids), "reason": reason}
        return self._write("/forget", fields, part_of(ForgottenList, lambda told: [*told.outcomes]))

    @word
    def relate(
        self,
        from_id: str,
        edge_type: EdgeType | str,
        to_id: str,
        *,
        weight: float = 1.0,
        reason: str | None = None,
        partial: bool = False,
    ) -> Call[str]:
        """Join two memories and return the edge's id; for an existing edge return that one's.

        Updates supersedes ``to_id`` unless ``partial``; a partial one may be made whole later.

        Raises:
            InvalidInput, NotFound, Conflict: what is wrong with it; nothing was written.
        """
        ends = {"from_id": from_id, "to_id": to_id, "edge_type": edge_type}
        link = validated(
            EdgeInput, {**ends, "weight": weight, "reason": reason, "partial": partial}
        )
        return self._write("/edges", link, part_of(EdgeId, lambda told: told.edge_id))

    @course
    def promote(
        self,
        memory_id: str,
        to: Tier | str,
        scope_id: str | None = None,
        confirmation_callback: ConfirmationCallback | None = None,
        reason: str = "",
    ) -> Course[str | None]:
        """Promote a task's memory to its project, or a project's to global; return the new id.

        See ``Orchestrator.promote``. The person is asked on this side.

        Args:
            to: ``project`` (of a task's memory) or ``global`` (of a project's).
            scope_id: the project; None for global.
            confirmation_callback: called before a Preference or an Identity becomes global; for an
                asynchronous handle it is called in a thread.
            reason: why; kept in the journal.

        Returns:
            The id; None: the person declined.

        Raises:
            NotFound, InvalidInput, Conflict, AccessDenied: as in the library.
            ConfirmationMissing: the callback gave no answer.
        """
        path = f"/memories/{segment(memory_id)}"
        fields = {"to": str(to), "scope_id": scope_id, "reason": reason}
        try:
            return (yield from self._promoted(path, fields))
        except ConfirmationMissing:
            if confirmation_callback is None:
                raise
        memory = yield from self._ask(self._get(path, value_of(Memory)))
        question = question_about(memory)
        said = yield from self._aside(lambda: confirmed(confirmation_callback, question))
        return (yield from self._promoted(path, {**fields, "confirmed": said}))

    def _promoted(self, path: str, fields: Mapping[str, Any]) -> Course[str | None]:
        call = self._write(f"{path}/promote", fields, value_of(PromotedId))
        answer = yield from self._ask(call)
        return answer.memory_id


class DecidingWords(Place):
    """The methods for resolving contradictions."""

    case = remote(CasesHandle.case)
    resolve = remote(CasesHandle.resolve)
    dismiss = remote(CasesHandle.dismiss)
    reopen = remote(CasesHandle.reopen)
    stale = remote(CasesHandle.stale)


class ComparingWords(Place):
    """The methods that compare times."""

    diff = remote(HistoryHandle.diff)
    history = remote(HistoryHandle.history)


BYTES = "application/octet-stream"


class FeedingWords(Place):
    """The methods for files."""

    @word
    def upload(self, name: str, content: bytes) -> Call[Uploaded]:
        """Send a file; it is turned into memories in the background, within the key's bounds.

        Args:
            name: a file name that ends in .txt, .md or .json.
            content: the whole file, UTF-8. The same content is taken only once.

        Raises:
            IngestRejected, InvalidInput: it is no such file.
            RequestTooLarge: it exceeds the limit of ``memory.ingest``.
        """
        if not isinstance(content, bytes):
            raise InvalidInput("the content of a file is bytes", field="content")
        call = self._look(f"/ingest/files/{segment(name, field='name')}", {}, value_of(Uploaded))
        # Named by its content: a second one is the first.
        return replace(call, method="PUT", body=content, content_type=BYTES, repeat=Repeat.SAFE)

    @word
    def ingest_file(self, sha256: str) -> Call[IngestedFile]:
        """Return the record of a file, as far as the key may see it.

        Args:
            sha256: of its content, 64 hexadecimal digits.

        Returns:
            Its ``at`` is in milliseconds since the epoch, like every time of the library's values.

        Raises:
            NotFound: it was not dropped here, or is hidden from the key.
        """
        path = f"/ingest/files/{segment(sha256, field='sha256')}"
        return self._get(path, value_of(IngestedFile))

    @word
    def ingest_files(self, *, limit: int = 50, after: str | None = None) -> Call[IngestPage]:
        """Return processed files, latest first, that the key may see.

        Args:
            limit: 1..1,000.
            after: ``next_cursor`` of the page before.

        Raises:
            InvalidInput: a limit out of range; ``after`` is no cursor.
        """
        return self._get("/ingest/files", value_of(IngestPage), limit=limit, cursor=after)
