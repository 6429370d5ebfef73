"""Console pages for contradictions and probable changes: lists, cases, and decisions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from memgraph.errors import InvalidInput
from memgraph.graph.cases import MAX_SOUGHT_CHARS
from memgraph.model.access import Permission
from memgraph.model.enums import EdgeType
from memgraph.model.graph import Case
from memgraph.surfaces.web.pages.memories import bulk
from memgraph.surfaces.web.render import FOLDER
from memgraph.surfaces.web.requests import ConsolePage, Visit

PER_PAGE: Final = 25


class List(NamedTuple):
    """A list of the section.

    Attributes:
        title: the text of its tab.
        decisions: the decisions for selected rows, with the texts of their buttons.
    """

    title: str
    changes: bool = False
    resolved: bool = False
    decisions: Mapping[str, str] = {}


LISTS: Final = {
    "open": List(
        "Open contradictions",
        decisions={
            "newer": "Keep the newer side",
            "older": "Keep the older side",
            "dismiss": "Dismiss (not a contradiction)",
        },
    ),
    "changes": List(
        "Probable changes",
        changes=True,
        decisions={
            "accept": "Accept (the newer replaces the older)",
            "dismiss": "Dismiss (both are correct)",
        },
    ),
    "decided": List("Decided contradictions", resolved=True),
    "dismissed": List("Decided changes", changes=True, resolved=True),
}
OLDEST: Final = "oldest first"
ORDERS: Final = ("newest first", OLDEST)
FILTERS: Final = ("text", "memory", "order")


def listing(visit: Visit) -> Response:
    """Show contradictions or probable changes, by the text of a side or by a memory."""
    orc = visit.enter()
    tabs = {name: each.title for name, each in LISTS.items()}
    state = visit.one_of("state", tuple(LISTS))
    order = visit.one_of("order", ORDERS)
    chosen = LISTS[state]
    page = orc.contradictions.list(
        resolved=chosen.resolved,
        changes=chosen.changes,
        text=visit.query("text") or None,
        memory_id=visit.query("memory") or None,
        oldest_first=order == OLDEST,
        limit=PER_PAGE,
        after=visit.query("after") or None,
        as_of=visit.as_of,
    )
    return visit.show(
        "contradictions.html",
        following=visit.following(after=page.next_after),
        decisions=chosen.decisions if visit.may_decide else {},
        page=page,
        tabs=tabs,
        state=state,
        orders=ORDERS,
        order=order,
        oldest_first=order == OLDEST,
        filters=FILTERS,
        filtered=any(visit.query(name) for name in FILTERS),
        most=MAX_SOUGHT_CHARS,
    )


def decide_many(visit: Visit) -> Response:
    """Apply one decision to all chosen rows, each in a separate change."""
    orc = visit.enter(Permission.WRITE)
    reason, decision = visit.required("reason"), visit.form.get("decision", "")

    def decide_one(edge_id: str) -> None:
        if decision == "dismiss":
            orc.contradictions.dismiss(edge_id, reason=reason)
        elif decision == "accept":
            orc.contradictions.accept(edge_id, reason=reason)
        else:
            side = orc.contradictions.get(edge_id).sides[decision == "newer"]
            orc.contradictions.resolve(edge_id, winner=side.memory.memory_id, reason=reason)

    if decision not in ("newer", "older", "accept", "dismiss"):
        raise InvalidInput("decision must be newer, older, accept or dismiss", field="decision")
    state = "changes" if visit.form.get("state") == "changes" else None
    return bulk(visit, decide_one, visit.link("contradictions", state=state))


def case(visit: Visit) -> Response:
    """Show both sides with their source lines and what differs, and the possible decisions."""
    result, lines = _read(visit)
    return visit.show(
        "case.html",
        case=result,
        is_change=result.edge.edge_type is EdgeType.UPDATES,
        texts=_texts_of(result),
        lines=lines,
        may_write=visit.may_decide,
    )


def _read(visit: Visit) -> tuple[Case, Mapping[str, Any]]:
    result = visit.enter().contradictions.get(visit.path("edge_id"), as_of=visit.as_of)
    return result, visit.lines(*(side.memory.memory_id for side in result.sides))


def export(visit: Visit) -> Response:
    """Return the case as a self-contained HTML file without scripts."""
    result, lines = _read(visit)
    name = re.sub(r"[^A-Za-z0-9_-]", "", result.edge.edge_id)[:80]
    text = visit.console.text(
        "case_document.html",
        case=result,
        orchestrator=visit.orchestrator,
        lines=lines,
        texts=_texts_of(result),
        # Inlined, since the file must be self-contained.
        style=Markup((FOLDER / "static" / "console.css").read_text(encoding="utf-8")),
    )
    headers = {"Content-Disposition": f'attachment; filename="case-{name}.html"'}
    return Response(text, media_type="text/html", headers=headers)


def decide(visit: Visit) -> Response:
    """Apply the decision of the pressed button."""
    orc = visit.enter(Permission.WRITE)
    edge_id, decision = visit.path("edge_id"), visit.form.get("decision", "")
    decisions: dict[str, Callable[..., None]] = {
        "resolve": orc.contradictions.resolve,
        "accept": orc.contradictions.accept,
        "dismiss": orc.contradictions.dismiss,
        "reopen": orc.contradictions.reopen,
    }
    if decision not in decisions:
        raise InvalidInput(f"decision must be one of {', '.join(decisions)}", field="decision")
    fields = {"winner": visit.required("winner")} if decision == "resolve" else {}
    decisions[decision](edge_id, reason=visit.required("reason"), **fields)
    done = {"resolve": "resolved", "dismiss": "dismissed"}.get(decision, f"{decision}ed")
    return visit.go(visit.link("contradictions", edge_id), f"The case is {done}.")


# What differs between the texts of the two sides.

MOST_WORDS: Final = 1_000
"""The number of words in which differences are looked for."""
Runs = list[tuple[bool, str]]
"""A text in runs of words, each with True where the other text differs."""


def _texts_of(case: Case) -> tuple[Runs, Runs]:
    """Return the texts of the two sides, with what differs."""
    first, second = (side.memory.content for side in case.sides)
    return differing(first, second)


def differing(first: str, second: str) -> tuple[Runs, Runs]:
    """Return two texts as runs; in texts without a common word nothing is marked. Pure."""
    tokens = [re.findall(r"\s*\S+|\s+$", text) for text in (first, second)]
    old, new = ([token.strip() for token in each[:MOST_WORDS]] for each in tokens)
    sides: tuple[Runs, Runs] = ([], [])
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    if not any(tag == "equal" for tag, *_ in codes):
        return [(False, first)], [(False, second)]
    for tag, i, j, m, n in codes:
        for side, run in zip(sides, (tokens[0][i:j], tokens[1][m:n]), strict=True):
            text = "".join(run)
            start = len(text) - len(text.lstrip())
            side += [(False, text[:start]), (tag != "equal", text[start:])] if text else []
    for side, rest in zip(sides, tokens, strict=True):
        side.append((False, "".join(rest[MOST_WORDS:])))
    return sides


PAGES: Final = (
    ConsolePage("/{orchestrator}/contradictions", listing, timed=True),
    ConsolePage("/{orchestrator}/contradictions", decide_many, "POST"),
    ConsolePage("/{orchestrator}/contradictions/{edge_id}", case, timed=True),
    ConsolePage("/{orchestrator}/contradictions/{edge_id}", decide, "POST"),
    ConsolePage("/{orchestrator}/contradictions/{edge_id}/export", export, timed=True),
)
