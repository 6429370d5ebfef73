"""Console pages for deliveries: recall, bulletins and receipts."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, Final, Literal, NamedTuple

from starlette.responses import Response

from memgraph.clock import iso
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.access import Permission
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.receipts import BulletinEntry, BulletinHistory, Receipt
from memgraph.model.values import Memory, validated
from memgraph.operations.orchestrator import Orchestrator
from memgraph.rules.bulletin import BulletinSection
from memgraph.surfaces.web.charts import scored
from memgraph.surfaces.web.requests import MAX_TIME_CHARS, ConsolePage, Visit, moment_of

PER_PAGE: Final = 25
FILTERS: Final = ("conversation_id", "workflow_run_id", "task_id", "purpose")


def receipts(visit: Visit) -> Response:
    """Show the newest receipts whose memories the visitor may all see."""
    orc = visit.enter(Permission.AUDIT)
    chosen_filters = {name: visit.query(name) for name in FILTERS if visit.query(name)}
    size = visit.size(PER_PAGE)
    result = orc.receipts.list(limit=size, before=visit.query("before") or None, **chosen_filters)
    more = result.cut and result.receipts
    return visit.listing(
        "receipts.html",
        lambda: [_row(receipt) for receipt in result.receipts],
        following={"before": result.receipts[-1].receipt_id} if more else None,
        receipts=result.receipts,
        filters=FILTERS,
        filtered=bool(chosen_filters),
    )


def _row(receipt: Receipt) -> dict[str, Any]:
    return {
        "receipt_id": receipt.receipt_id,
        "at": iso(receipt.at),
        "purpose": receipt.purpose or "recall",
        "query": receipt.query,
        "query_sha256": receipt.query_sha256,
        "actor": receipt.actor,
        "conversation_id": receipt.conversation_id,
        "workflow_run_id": receipt.workflow_run_id,
        "memories": [item.memory_id for item in receipt.items],
    }


def receipt(visit: Visit) -> Response:
    """Show a receipt with all its items."""
    orc = visit.enter(Permission.AUDIT)
    result = orc.receipts.get(visit.path("receipt_id"))
    return visit.show("receipt.html", receipt=result, memories=_memories(orc, result))


def _memories(orc: Orchestrator, receipt: Receipt) -> dict[str, Memory]:
    """Return the memories of a receipt that still exist, by id."""
    memories = {}
    for item in receipt.items:
        try:
            memories[item.memory_id] = orc.get(item.memory_id)
        except NotFound as error:
            # It may have been erased since, which must not be logged as a refusal.
            error.logged = True
    return memories


# Bulletins.

HISTORY: Final = 50
AT_ONCE: Final = 1_000
"""The number of bulletins that are read at a time to find those of an earlier time."""


class ComparedLine(NamedTuple):
    """A line of two bulletins: in both, only in the later one, or only in the earlier one."""

    change: Literal["same", "added", "removed"]
    text: str


def differing(before: str, after: str) -> list[ComparedLine]:
    """Return the lines of two texts in order, with their changes. Pure."""
    old, new = before.splitlines(), after.splitlines()
    results: list[ComparedLine] = []
    # Disable the heuristic for long texts, which ignores frequent lines.
    for tag, i, j, m, n in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            results += [ComparedLine("same", item) for item in old[i:j]]
        else:
            results += [ComparedLine("removed", item) for item in old[i:j]]
            results += [ComparedLine("added", item) for item in new[m:n]]
    return results


def bulletin(visit: Visit) -> Response:
    """Show the bulletin for this reader, by section, with the memories behind each line.

    As of a past time the bulletin is rebuilt; the current one is delivered, which creates a
    receipt. Earlier deliveries are listed below it.
    """
    orc = visit.enter()
    issued = orc.bulletin(as_of=visit.as_of)
    history = _history(orc, visit.as_of) if visit.may(Permission.AUDIT) else None
    headings = {item.value: item.heading for item in BulletinSection}
    return visit.show("bulletin.html", issued=issued, history=history, headings=headings)


def _history(orc: Orchestrator, as_of: int | None) -> BulletinHistory:
    """Return the newest delivered bulletins, up to ``as_of`` unless it is None."""
    if as_of is None:
        return orc.receipts.bulletins(limit=HISTORY)
    page = orc.receipts.bulletins(limit=AT_ONCE)
    bulletins = _up_to(page, as_of)
    while page.cut and page.bulletins and len(bulletins) <= HISTORY:
        page = orc.receipts.bulletins(limit=AT_ONCE, before=page.bulletins[-1].bulletin_id)
        bulletins += _up_to(page, as_of)
    cut = page.cut or len(bulletins) > HISTORY
    return BulletinHistory(bulletins=tuple(bulletins[:HISTORY]), cut=cut)


def _up_to(page: BulletinHistory, as_of: int) -> list[BulletinEntry]:
    return [bulletin for bulletin in page.bulletins if bulletin.created_at <= as_of]


def stored(visit: Visit) -> Response:
    """Show a bulletin as it was delivered, and its differences from another one."""
    orc = visit.enter(Permission.AUDIT)
    current = orc.receipts.bulletin(visit.path("bulletin_id"))
    other = visit.query("against")
    against = orc.receipts.bulletin(other) if other else None
    return visit.show(
        "bulletin_issued.html",
        shown=current,
        against=against,
        lines=[] if against is None else differing(against.body, current.body),
    )


# The recall playground.

TOP_N: Final = 10
MOST: Final = 100
"""The maximum number of memories on a page."""


def recall_form(visit: Visit) -> Response:
    """Show the empty form for a query."""
    visit.enter()
    return _recall_page(visit, {"as_of": visit.query("as_of")}, None)


def recall(visit: Visit) -> Response:
    """Show the result of a query; like every recall it creates a receipt.

    The query is sent in a form, so that it does not appear in URLs or in the browser's history.
    """
    orc = visit.enter()
    fields = {name: text.strip() for name, text in visit.form.items() if text.strip()}
    try:
        return _recall_page(visit, fields, _run_recall(visit, orc, fields))
    except InvalidInput as error:
        return _recall_page(visit, fields, None, wrong=error.message)


def _run_recall(visit: Visit, orc: Orchestrator, call: dict[str, str]) -> Bundle:
    as_of = call.get("as_of", "")[:MAX_TIME_CHARS]
    fields: dict[str, Any] = {
        "query": call.get("query", ""),
        "top_n": _number(call, "top_n", TOP_N),
        "types": _single(call, "type"),
        "kinds": _single(call, "kind"),
        "as_of": iso(moment_of(as_of, visit.console.now_ms(), ends=True)) if as_of else None,
        "include_superseded": "include_superseded" in call,
    }
    if "token_budget" in call:
        fields["token_budget"] = _number(call, "token_budget", 0)
    if fields["top_n"] > MOST:
        raise InvalidInput(f"top_n must be at most {MOST}", field="top_n")
    return orc.recall(validated(RecallRequest, fields))


def _single(call: dict[str, str], name: str) -> tuple[str, ...]:
    return (call[name],) if name in call else ()


def _number(call: dict[str, str], name: str, default: int) -> int:
    text = call.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise InvalidInput(f"{name} must be a whole number", field=name)
    return int(text)


def _recall_page(
    visit: Visit, call: dict[str, str], bundle: Bundle | None, *, wrong: str = ""
) -> Response:
    return visit.show(
        "recall.html",
        status=422 if wrong else 200,
        fields=call,
        bundle=bundle,
        scored=[] if bundle is None else scored(bundle.items),
        wrong=wrong,
        top_n=TOP_N,
    )


PAGES: Final = (
    ConsolePage("/{orchestrator}/receipts", receipts),
    ConsolePage("/{orchestrator}/receipts/{receipt_id}", receipt),
    ConsolePage("/{orchestrator}/bulletin", bulletin, timed=True),
    ConsolePage("/{orchestrator}/bulletins/{bulletin_id}", stored),
    ConsolePage("/{orchestrator}/recall", recall_form),
    ConsolePage("/{orchestrator}/recall", recall, "POST"),
)
