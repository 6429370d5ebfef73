"""The seal of a journal: when its chain was checked last, and what came of that."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from memgraph.clock import MS_PER_DAY, iso
from memgraph.operations.orchestrator import Orchestrator

if TYPE_CHECKING:
    from memgraph.audit.journal import JournalHead
    from memgraph.surfaces.web.requests import Visit

AGAIN_MS: Final = MS_PER_DAY // 24
"""After so long all entries are checked once more; until then, only new ones."""


@dataclass
class Seal:
    """The last check of one journal.

    Attributes:
        entries: how many the journal has.
        problem: what was found, in words; empty: nothing.
        whole_at: when all entries were checked, milliseconds.
    """

    at: int = 0
    entries: int = 0
    head: JournalHead | None = None
    problem: str = ""
    whole_at: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def text(self) -> str:
        """Return it in one line for people."""
        time = iso(self.at)[11:16]
        if self.problem:
            return f"Chain broken: {self.problem}, {time}"
        return f"Chain verified, {self.entries:,} entries, {time}"


def sealed(visit: Visit, orc: Orchestrator) -> Seal:
    """Check the journal of an orchestrator, from where it was checked before, and return that."""
    seal = visit.console.seals.setdefault(orc.name, Seal())
    with seal.lock:
        now = visit.console.now_ms()
        start = seal.head if not seal.problem and now - seal.whole_at < AGAIN_MS else None
        report, head = orc.maintenance.verify_chain(start)
        seal.at, seal.entries, seal.head = now, head.seq, head
        if start is None:
            seal.whole_at = now
        seal.problem = (
            "" if report.ok else "; ".join(finding.message for finding in report.findings[:3])
        )
    return seal
