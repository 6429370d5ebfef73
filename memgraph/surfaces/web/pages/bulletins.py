"""The bulletin as it would be handed out now, past ones, and the difference between two."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple

from starlette.responses import Response

from memgraph.model.access import Permission
from memgraph.model.receipts import BulletinEntry, BulletinHistory
from memgraph.operations.orchestrator import Orchestrator
from memgraph.rules.bulletin import BulletinSection
from memgraph.surfaces.web.requests import ConsolePage, Visit

HISTORY: Final = 50
AT_ONCE: Final = 1_000
"""Bulletins that are searched together for those of an earlier time."""


class ComparedLine(NamedTuple):
    """A line of two bulletins: in both, only in the later one, or only in the earlier one."""

    change: Literal["same", "added", "removed"]
    text: str


def differing(before: str, after: str) -> list[ComparedLine]:
    """Return the lines of two texts, in order, each with its change. Pure."""
    old, new = before.splitlines(), after.splitlines()
    results: list[ComparedLine] = []
    # Without the heuristic for long texts, which ignores frequent lines.
    for tag, i, j, m, n in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            results += [ComparedLine("same", item) for item in old[i:j]]
        else:
            results += [ComparedLine("removed", item) for item in old[i:j]]
            results += [ComparedLine("added", item) for item in new[m:n]]
    return results


def bulletin(visit: Visit) -> Response:
    """Show the bulletin for this reader, by section, with the memories behind each line.

    One as of a time is built again; a current one is handed out, and leaves a receipt. Those that
    were handed out by then are listed with it.
    """
    orc = visit.enter()
    issued = orc.bulletin(as_of=visit.as_of)
    history = _history(orc, visit.as_of) if visit.may(Permission.AUDIT) else None
    headings = {item.value: item.heading for item in BulletinSection}
    return visit.show("bulletin.html", issued=issued, history=history, headings=headings)


def _history(orc: Orchestrator, as_of: int | None) -> BulletinHistory:
    """Return the newest bulletins that were handed out, by ``as_of`` if it is given."""
    if as_of is None:
        return orc.receipts.bulletins(limit=HISTORY)
    page = orc.receipts.bulletins(limit=AT_ONCE)
    result = _by(page, as_of)
    while page.cut and page.bulletins and len(result) <= HISTORY:
        page = orc.receipts.bulletins(limit=AT_ONCE, before=page.bulletins[-1].bulletin_id)
        result += _by(page, as_of)
    cut = page.cut or len(result) > HISTORY
    return BulletinHistory(bulletins=tuple(result[:HISTORY]), cut=cut)


def _by(page: BulletinHistory, as_of: int) -> list[BulletinEntry]:
    return [bulletin for bulletin in page.bulletins if bulletin.created_at <= as_of]


def stored(visit: Visit) -> Response:
    """Show a bulletin as it was handed out, and its difference from another one."""
    orc = visit.enter(Permission.AUDIT)
    shown_rows = orc.receipts.bulletin(visit.path("bulletin_id"))
    other = visit.query("against")
    against = orc.receipts.bulletin(other) if other else None
    return visit.show(
        "bulletin_issued.html",
        shown=shown_rows,
        against=against,
        lines=[] if against is None else differing(against.body, shown_rows.body),
    )


PAGES: Final = (
    ConsolePage("/{orchestrator}/bulletin", bulletin, timed=True),
    ConsolePage("/{orchestrator}/bulletins/{bulletin_id}", stored),
)
