"""Many memories at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import fields
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from memgraph.errors import AccessDenied, InvalidInput, MemgraphError, MemoryDisabled, ProviderError
from memgraph.model.values import Change, EpisodeInput, MemoryInput, Outcome, validated
from memgraph.providers.local import LocalEmbedding
from memgraph.rules.scope import Viewer
from memgraph.service.joining import Compare
from memgraph.service.opened import Opened
from memgraph.service.provenance import with_canonical_source
from memgraph.service.writing import Prepared
from memgraph.store.embeddings import embedded_text
from memgraph.store.visibility import View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memgraph.model.remote import Uploaded
    from memgraph.service.memory_service import MemoryService
    from memgraph.service.orchestrator import Orchestrator


# Memories of one transaction: large enough that its fixed cost is small, short enough for others.
TRANSACTION_SIZE = 1_000
# Fewer are no bulk load: loading the model takes longer than storing them.
BULK = 100

Item = MemoryInput | Mapping[str, Any]


class Loader:
    """Stores items for one handle, each thousand in a transaction.

    Args:
        kind: the required kind of item.
        embeds: True when a bulk load embeds by itself with the local model.
        rejected: called with the reasons why items were not stored, before their outcomes are
            yielded.
    """

    def __init__(
        self,
        opened: Opened,
        kind: type[MemoryInput],
        *,
        actor: str,
        view: View,
        embeds: bool,
        rejected: Callable[[Sequence[MemgraphError]], None],
    ) -> None:
        self._opened = opened
        self._kind = kind
        self._actor = actor
        self._view = view
        self._rejected = rejected
        given = opened.embedding
        self._embedding = given if embeds and isinstance(given, LocalEmbedding) else None

    def load(self, items: Iterable[Item]) -> list[Outcome]:
        """Return one outcome for each item, in order; a batch is durable before the next is
        written.
        """
        outcomes: list[Outcome] = []
        with ThreadPoolExecutor(1, thread_name_prefix="memgraph-load") as pool:
            writing: Future[list[Outcome]] | None = None
            try:
                for batch in _batches(items):
                    ready = self._prepare(batch)
                    if writing is not None:
                        done, writing = writing, None
                        outcomes.extend(done.result())
                    elif len(batch) < TRANSACTION_SIZE:
                        # The only one: nothing to do beside it.
                        return self._store(ready)
                    # The claim of the request goes with it.
                    writing = pool.submit(copy_context().run, self._store, ready)
            finally:
                # A failed write is raised, whatever else went wrong meanwhile.
                if writing is not None:
                    outcomes.extend(writing.result())
        return outcomes

    def _prepare(self, batch: Sequence[Item]) -> list[Prepared | Outcome]:
        errors: list[MemgraphError] = []
        checked = [self._checked(item, errors) for item in batch]
        if errors:
            # At once: each time takes a transaction.
            self._rejected(errors)
        vectors = iter(self._embedded([one for one in checked if isinstance(one, MemoryInput)]))
        prepare = self._opened.writer.prepare
        return [
            prepare(one, next(vectors, None)) if isinstance(one, MemoryInput) else one
            for one in checked
        ]

    def _checked(self, item: Item, errors: list[MemgraphError]) -> MemoryInput | Outcome:
        """Return the item, or its outcome when it is rejected; the error goes to ``errors``."""
        try:
            return with_canonical_source(self._opened, self._as_input(item))
        except (AccessDenied, InvalidInput) as error:
            errors.append(error)
            return Outcome(outcome="rejected", code=error.code, message=error.message)

    def _embedded(self, given: Sequence[MemoryInput]) -> Iterable[NDArray[np.float32]]:
        """Return a vector for each; empty when the outbox has to do it."""
        if self._embedding is None or len(given) < BULK:
            return ()
        try:
            return self._embedding.embed(
                [embedded_text(each.source_role, each.content) for each in given]
            )
        except ProviderError:
            # The outbox meets the same error, counts and reports it.
            return ()

    def _store(self, ready: Sequence[Prepared | Outcome]) -> list[Outcome]:
        items = [each for each in ready if isinstance(each, Prepared)]
        if items:
            with self._opened.transaction(self._actor) as transaction:
                written = self._opened.writer.store(
                    transaction,
                    items,
                    [],
                    at=transaction.at,
                    actor=self._actor,
                    view=self._view,
                    embedding=self._embedding,
                    live=self._kind is EpisodeInput,
                    compare=Compare.STORED,
                )
                transaction.tell(written.entries)
            if written.errors:
                self._rejected(written.errors)
            stored = iter(written.memories)
        return [next(stored) if isinstance(each, Prepared) else each for each in ready]

    def _as_input(self, item: Item) -> MemoryInput:
        if isinstance(item, self._kind):
            return item
        if not isinstance(item, Mapping):
            name = self._kind.__name__
            raise InvalidInput(f"an item is given as {name} or as a mapping of its fields")
        return validated(self._kind, dict(item))


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    remaining = iter(items)
    while batch := list(islice(remaining, TRANSACTION_SIZE)):
        yield batch


ENTRY_POINTS: Final = "memgraph.ingest"
ENTRY_POINT: Final = "uploads"
ACTOR: Final = "ingest"
"""The journal's actor for files that were dropped by hand."""
RETRY_S: Final = 5.0
"""Seconds after which unprocessed files are tried again."""
PATIENCE_S: Final = 10.0
"""Seconds that stopping waits for the current file."""


class Draft(Protocol):
    """A file being received; always ``discard`` it in the end."""

    def write(self, data: bytes) -> None: ...

    def place(self) -> Uploaded: ...

    def discard(self) -> None: ...


class Uploads(Protocol):
    """The interface of the entry point. See ``ingest.uploads``."""

    def draft(self, handle: Orchestrator, name: str, sender: Mapping[str, Any]) -> Draft: ...

    def waiting(self, zone: Path, sha256: str) -> Mapping[str, Any] | None: ...

    def some_wait(self, zone: Path) -> bool: ...

    def run(self, handle: Orchestrator, stop: Callable[[], bool]) -> None: ...


@cache
def uploads() -> Uploads:
    """Return the installed file reader. Raises MemoryDisabled: there is none."""
    from importlib.metadata import entry_points

    for each in entry_points(group=ENTRY_POINTS, name=ENTRY_POINT):
        return cast(Uploads, each.load())
    raise MemoryDisabled(f"no package reads files: none has the entry point {ENTRY_POINTS}")


def sender_of(handle: Orchestrator) -> dict[str, Any]:
    """Return the sender of files through a handle, as JSON: its actor, and the bounds of its
    viewer.
    """
    viewer: dict[str, Any] = {}
    for each in fields(Viewer):
        value = getattr(handle.viewer, each.name)
        viewer[each.name] = sorted(value) if isinstance(value, frozenset) else value
    return {"actor": handle.actor, "viewer": viewer}


def viewer_of_sender(sender: Mapping[str, Any]) -> tuple[Viewer, str]:
    """Return the viewer and the actor of ``sender_of``. Raises InvalidInput: an invalid value."""
    try:
        actor = validated(Change, {"actor": sender["actor"]}).actor
        return Viewer(**sender["viewer"]), actor
    except (KeyError, TypeError) as error:
        raise InvalidInput("this is no sender of a file", field="sender") from error


def draft(handle: Orchestrator, name: str) -> Draft:
    """Start receiving a file for an orchestrator, within the bounds of a handle.

    Raises:
        MemoryDisabled: ``memory.ingest.enabled`` is false, or no file reader is installed.
        InvalidInput: a file name that is not accepted.
    """
    if not handle.settings.memory.ingest.enabled:
        raise MemoryDisabled("ingestion is switched off: memory.ingest.enabled = false")
    return uploads().draft(handle, name, sender_of(handle))


class Intake:
    """Processes the drop zones of a service, one after the other, in one thread."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._asked: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def wake(self, name: str) -> None:
        """Process the drop zone of an orchestrator soon."""
        with self._lock:
            if self._stopping.is_set():
                return
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="memgraph-intake", daemon=True
                )
                self._thread.start()
        self._asked.put(name)

    def wake_waiting(self) -> None:
        """Process files sent to any orchestrator before this process began."""
        for name in self._service.orchestrators():
            if uploads().some_wait(self._service.paths(name).ingest):
                self.wake(name)

    def stop(self) -> None:
        """Stop after the current file; the rest waits for the next process."""
        with self._lock:
            self._stopping.set()
            thread = self._thread
        self._asked.put(None)
        if thread is not None:
            thread.join(PATIENCE_S)

    def _run(self) -> None:
        again: set[str] = set()
        while not self._stopping.is_set():
            names = self._next(again)
            again = {each for each in names if not self._work_off(each)}

    def _next(self, again: set[str]) -> set[str]:
        """Return the orchestrators whose drop zone is next: a requested one, else those to
        retry.
        """
        try:
            asked = self._asked.get(timeout=RETRY_S if again else None)
        except queue.Empty:
            return again
        return again if asked is None else again | {asked}

    def _work_off(self, name: str) -> bool:
        """Process an orchestrator's drop zone; return True when nothing is left."""
        if self._stopping.is_set():
            return True
        try:
            handle = self._service.orchestrator(name, actor=ACTOR)
            uploads().run(handle, self._stopping.is_set)
            return not uploads().some_wait(handle.paths.ingest)
        except (MemgraphError, OSError) as error:
            self._tell(name, error)
            return not self._service.paths(name).memory.exists()
        # What one file brings out is told, and the files of others get their turn.
        except Exception as error:  # noqa: BLE001 - whatever it is, the thread goes on
            self._tell(name, error)
            return True

    def _tell(self, name: str, error: Exception) -> None:
        try:
            with self._service.opened(name) as opened:
                opened.log.failure("ingest.upload", error)
        except MemgraphError:
            # It cannot be opened: whoever asks for it is told, and so is /readyz.
            return
