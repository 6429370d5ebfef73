"""What every part of a handle shares: whose memory it is, who looks, who acts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memgraph.errors import MemgraphError
from memgraph.policy.scope import Viewer
from memgraph.service.opened import Opened, Transaction
from memgraph.storage.visibility import View

if TYPE_CHECKING:
    from memgraph.service.memory_service import MemoryService


class Handle:
    """The base of ``Orchestrator``."""

    def __init__(self, service: MemoryService, name: str, *, viewer: Viewer, actor: str) -> None:
        self._service = service
        self.name = name
        self.viewer = viewer
        self.actor = actor

    @property
    def _view(self) -> View:
        """What may be looked at, and therefore changed: whoever cannot see a memory has none."""
        return View(self.viewer)

    @contextmanager
    def _write(self) -> Iterator[tuple[Opened, Transaction]]:
        with (
            self._service.opened(self.name) as opened,
            opened.transaction(self.actor) as transaction,
        ):
            yield opened, transaction

    def _embed_soon(self, opened: Opened) -> None:
        if self._service.embeds_in_background and opened.other_model is None:
            opened.background.wake()
        self._tell_soon(opened)

    def _tell_soon(self, opened: Opened) -> None:
        if self._service.embeds_in_background and opened.events.wanted:
            opened.courier.wake()

    def _write_receipts(self, opened: Opened, *, enough: bool) -> None:
        if self._service.embeds_in_background:
            # A few are written soon, too: another process may be about to retire what they name.
            if enough:
                opened.background.wake()
            elif opened.receipts.waiting:
                opened.background.wake_later()
            return
        if not enough:
            return
        try:
            opened.receipts.flush()
        except MemgraphError as error:
            # They are kept for the next try; the answer does not depend on them.
            opened.log.failure("receipts.flush", error)
