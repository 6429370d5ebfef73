"""The parts of the console, in the order in which the menu has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memgraph.model.access import Permission


@dataclass(frozen=True, slots=True)
class Section:
    """An entry of the menu.

    Attributes:
        path: below the orchestrator's own address; empty: that address itself.
        title: what the menu says.
        permission: whoever lacks it is not shown the entry.
    """

    path: str
    title: str
    permission: Permission = Permission.READ


SECTIONS: Final = (
    Section("", "Overview"),
    Section("contradictions", "Contradictions"),
    Section("memories", "Memories"),
    Section("graph", "Graph"),
    Section("recall", "Recall"),
    Section("bulletin", "Bulletin"),
    Section("diff", "Changes"),
    Section("stale", "Stale", Permission.AUDIT),
    Section("receipts", "Receipts", Permission.AUDIT),
    Section("health", "Health", Permission.AUDIT),
    Section("ingest", "Files"),
    Section("jobs", "Jobs"),
)
