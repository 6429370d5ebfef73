"""What every part of a handle shares: whose memory it is, who looks, who acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from memgraph.errors import AccessDenied, MemgraphError, NotFound
from memgraph.model.values import Change, MemoryInput, validated
from memgraph.paths import SOURCE_FIELD
from memgraph.rules.scope import Viewer
from memgraph.rules.viewers import viewer_fields
from memgraph.service.denials import Denial, tell_denial
from memgraph.service.opened import JournalledTransaction, Opened
from memgraph.service.provenance import with_canonical_source
from memgraph.service.receipts import NOTHING, Behind
from memgraph.store import memories
from memgraph.store.visibility import View

if TYPE_CHECKING:
    from memgraph.model.receipts import Receipt
    from memgraph.service.memory_service import MemoryService


class Refused(NamedTuple):
    """An error that says no, and what of it is told to an auditor."""

    error: MemgraphError
    denial: Denial

    @classmethod
    def of(cls, error: MemgraphError) -> Refused:
        """Of an error that nobody told yet."""
        field = str(error.details.get("field", "write"))
        asked = error.asked
        if isinstance(error, NotFound):
            field = "id"
            asked = next((str(error.details[one]) for one in ASKED if one in error.details), None)
        return cls(error, Denial(field, asked, error.code))


ASKED: Final = ("memory_id", "edge_id", "receipt_id", "session_id", "name", "sha256", "key")
"""Under which names an error tells what was asked for."""

Teller = Callable[[Sequence[Refused]], None]


class Handle:
    """The base of ``Orchestrator``.

    Args:
        teller: journals what is refused; None: equal refusals are counted, see ``tell_denial``.
        reads: False: it may write alone, and learns nothing of what is stored.
    """

    def __init__(
        self,
        service: MemoryService,
        name: str,
        *,
        viewer: Viewer,
        actor: str,
        teller: Teller | None = None,
        reads: bool = True,
    ) -> None:
        self._service = service
        self.name = name
        self.viewer = viewer
        self.actor = actor
        self._teller = teller
        self.reads = reads

    @property
    def _view(self) -> View:
        """What may be looked at, and therefore changed: whoever cannot see a memory has none."""
        return View(self.viewer)

    def _whole_id(self, given: str) -> str:
        """The id that a short one of a prompt stands for; any other text as it is."""
        return self._whole_ids([given])[0]

    def _whole_ids(self, given: Sequence[str]) -> list[str]:
        """The ids that short ones of a prompt stand for, in order; any other texts as they are."""
        if not any(memories.is_short(one) for one in given):
            return list(given)
        with self._service.opened(self.name) as opened, opened.database.read() as snapshot:
            return memories.whole_ids(snapshot, given, self._view)

    @contextmanager
    def _write(self) -> Iterator[tuple[Opened, JournalledTransaction]]:
        with (
            self._service.opened(self.name) as opened,
            opened.transaction(self.actor) as transaction,
        ):
            yield opened, transaction

    def _because(self, reason: str) -> str:
        """Why something is changed, as it is journalled. Raises InvalidInput."""
        return validated(Change, {"actor": self.actor, "reason": reason}).reason

    def _denied(
        self, opened: Opened, error: AccessDenied, *, field: str, asked: str | None = None
    ) -> AccessDenied:
        """The error to raise, once it is told: ``raise self._denied(…)``."""
        if self._teller is not None:
            self._teller([Refused(error, Denial(field, asked))])
        else:
            tell_denial(opened, actor=self.actor, field=field, asked=asked)
        return error

    def _tell_rejected(self, errors: Sequence[MemgraphError]) -> None:
        """Items of a batch that were refused: nothing is raised for them, and all are told."""
        refused = [each for each in errors if isinstance(each, AccessDenied | NotFound)]
        if self._teller is not None:
            self._teller([Refused.of(each) for each in refused])
            return
        with self._service.opened(self.name) as opened:
            for each in refused:
                if isinstance(each, AccessDenied):
                    denial = Refused.of(each).denial
                    tell_denial(opened, actor=self.actor, field=denial.field, asked=denial.asked)

    def _canonical(self, opened: Opened, given: MemoryInput) -> MemoryInput:
        """The memory as it may name its source. Raises AccessDenied: told."""
        try:
            return with_canonical_source(opened, given)
        except AccessDenied as error:
            path = given.source.source_path
            raise self._denied(opened, error, field=SOURCE_FIELD, asked=path) from None

    def _embed_soon(self, opened: Opened) -> None:
        if self._service.embeds_in_background and opened.other_model is None:
            opened.background.wake()
        self._tell_soon(opened)

    def _tell_soon(self, opened: Opened) -> None:
        if self._service.embeds_in_background and opened.events.wanted:
            opened.courier.wake()

    def _keep_receipt(
        self,
        opened: Opened,
        receipt: Receipt,
        behind: Behind = NOTHING,
        *,
        viewer: Viewer | None = None,
        texts: Sequence[str] = (),
        enough: bool = False,
    ) -> None:
        """Keep a receipt, to be written with others off the path of whoever asked.

        Args:
            viewer: what the asker could see; None: what this handle does.
            texts: what was handed out that no memory has as a line.
            enough: there is enough to be written in any case.
        """
        seen = viewer_fields(self.viewer if viewer is None else viewer)
        settings = opened.settings_sha256
        whole = replace(receipt, actor=self.actor, viewer=seen, settings_sha256=settings)
        enough = opened.receipts.add(whole, behind) or enough
        for text in texts:
            enough = opened.receipts.add_text(text, receipt.at) or enough
        self._write_receipts(opened, enough=enough)

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
