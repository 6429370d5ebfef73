"""What was handed out: recalls, bulletins, receipts, and the receipts behind an answer."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, Final, Literal, NamedTuple

from starlette.responses import Response

from memgraph.clock import iso
from memgraph.errors import InvalidInput, NotFound
from memgraph.model.access import Permission
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.receipts import WHY, BulletinEntry, BulletinHistory, Receipt, Replay
from memgraph.model.values import Memory, validated
from memgraph.operations.orchestrator import Orchestrator
from memgraph.rules.bulletin import BulletinSection
from memgraph.surfaces.web.charts import scored
from memgraph.surfaces.web.requests import MAX_TIME_CHARS, ConsolePage, Visit, moment_of

PER_PAGE: Final = 25
FILTERS: Final = ("conversation_id", "workflow_run_id", "task_id", "purpose")


def receipts(visit: Visit) -> Response:
    """Show the newest receipts that are fully visible."""
    orc = visit.enter(Permission.AUDIT)
    asked = {name: visit.query(name) for name in FILTERS if visit.query(name)}
    size = visit.size(PER_PAGE)
    result = orc.receipts.list(limit=size, before=visit.query("before") or None, **asked)
    more = result.cut and result.receipts
    return visit.listing(
        "receipts.html",
        lambda: [_row(receipt) for receipt in result.receipts],
        following={"before": result.receipts[-1].receipt_id} if more else None,
        receipts=result.receipts,
        filters=FILTERS,
        filtered=bool(asked),
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
    """Show one receipt, item by item."""
    return _receipt_page(visit, visit.enter(Permission.AUDIT))


def replay(visit: Visit) -> Response:
    """Repeat the request, as of its moment.

    When only the digest of the query was kept, the form has its text.
    """
    orc = visit.enter(Permission.AUDIT)
    replayed = orc.receipts.replay(visit.path("receipt_id"), query=visit.form.get("query") or None)
    return _receipt_page(visit, orc, replayed)


def _receipt_page(visit: Visit, orc: Orchestrator, replayed: Replay | None = None) -> Response:
    result = orc.receipts.get(visit.path("receipt_id"))
    return visit.show(
        "receipt.html", receipt=result, memories=_memories(orc, result), replay=replayed, why=WHY
    )


def _memories(orc: Orchestrator, receipt: Receipt) -> dict[str, Memory]:
    """Return the memories that still exist, by id."""
    there = {}
    for item in receipt.items:
        try:
            there[item.memory_id] = orc.get(item.memory_id)
        except NotFound as error:
            # Erased since, perhaps; this is no refusal.
            error.journalled = True
    return there


# The receipts behind an answer.

LINED: Final = 12
"""Memories whose source lines are shown."""
EXPLAINED: Final = 8
EMPTY: Final = {"answer": "", "conversation": "", "until": ""}


def why_form(visit: Visit) -> Response:
    """Show the empty form."""
    visit.enter(Permission.AUDIT)
    return visit.show("why.html", fields=EMPTY, explanation=None, lines={}, wrong="")


def explain(visit: Visit) -> Response:
    """Show which of the sentences of a pasted answer were handed out, by whom and from where.

    The answer is sent in a form: it may be long, and belongs into no address.
    """
    orc = visit.enter(Permission.AUDIT)
    fields = EMPTY | {name: text.strip() for name, text in visit.form.items()}
    until = fields.get("until", "")[:MAX_TIME_CHARS]
    try:
        explanation = orc.receipts.explain(
            fields.get("answer", ""),
            conversation_id=fields.get("conversation") or None,
            until=moment_of(until, visit.console.now_ms(), ends=True) if until else None,
            limit=EXPLAINED,
        )
    except InvalidInput as error:
        wrong = {"fields": fields, "explanation": None, "lines": {}, "wrong": error.message}
        return visit.show("why.html", status=422, **wrong)
    best = [sentence.memory_ids[0] for sentence in explanation.sentences if sentence.memory_ids]
    lines = visit.lines(*list(dict.fromkeys(best))[:LINED])
    return visit.show("why.html", fields=fields, explanation=explanation, lines=lines, wrong="")


# Bulletins.

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


# The recall playground.

TOP_N: Final = 10
MOST: Final = 100
"""Memories of one page."""


def recall_form(visit: Visit) -> Response:
    """Show the empty form."""
    visit.enter()
    return _recall_page(visit, {"as_of": visit.query("as_of")}, None)


def recall(visit: Visit) -> Response:
    """Show the answer to a question; like every recall it leaves a receipt.

    The question is sent in a form, so that it is in no address and in no history.
    """
    orc = visit.enter()
    fields = {name: text.strip() for name, text in visit.form.items() if text.strip()}
    try:
        return _recall_page(visit, fields, _recalled(visit, orc, fields))
    except InvalidInput as error:
        return _recall_page(visit, fields, None, wrong=error.message)


def _recalled(visit: Visit, orc: Orchestrator, call: dict[str, str]) -> Bundle:
    then = call.get("as_of", "")[:MAX_TIME_CHARS]
    asked: dict[str, Any] = {
        "query": call.get("query", ""),
        "top_n": _number(call, "top_n", TOP_N),
        "types": _one(call, "type"),
        "kinds": _one(call, "kind"),
        "as_of": iso(moment_of(then, visit.console.now_ms(), ends=True)) if then else None,
        "include_superseded": "include_superseded" in call,
    }
    if "token_budget" in call:
        asked["token_budget"] = _number(call, "token_budget", 0)
    if asked["top_n"] > MOST:
        raise InvalidInput(f"top_n: at most {MOST} here", field="top_n")
    return orc.recall(validated(RecallRequest, asked))


def _one(call: dict[str, str], name: str) -> tuple[str, ...]:
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
    ConsolePage("/{orchestrator}/receipts/{receipt_id}", replay, "POST"),
    ConsolePage("/{orchestrator}/why", why_form),
    ConsolePage("/{orchestrator}/why", explain, "POST"),
    ConsolePage("/{orchestrator}/bulletin", bulletin, timed=True),
    ConsolePage("/{orchestrator}/bulletins/{bulletin_id}", stored),
    ConsolePage("/{orchestrator}/recall", recall_form),
    ConsolePage("/{orchestrator}/recall", recall, "POST"),
)
