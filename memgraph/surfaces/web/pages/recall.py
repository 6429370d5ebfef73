"""The recall playground: a question, its answer, and the scores of each memory."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.model.recall import Bundle, RecallRequest
from memgraph.model.values import validated
from memgraph.operations.orchestrator import Orchestrator
from memgraph.surfaces.web.graphs import scored
from memgraph.surfaces.web.requests import ConsolePage, Visit

TOP_N: Final = 10
MOST: Final = 100
"""Memories of one page."""


def form(visit: Visit) -> Response:
    """Show the empty form."""
    visit.enter()
    return _page(visit, {"as_of": visit.query("as_of")}, None)


def answer(visit: Visit) -> Response:
    """Show the answer to a question; like every recall it leaves a receipt.

    The question is sent in a form, so that it is in no address and in no history.
    """
    orc = visit.enter()
    fields = {name: text.strip() for name, text in visit.form.items() if text.strip()}
    try:
        return _page(visit, fields, _recalled(orc, fields))
    except InvalidInput as error:
        return _page(visit, fields, None, wrong=error.message)


def _recalled(orc: Orchestrator, call: dict[str, str]) -> Bundle:
    asked: dict[str, Any] = {
        "query": call.get("query", ""),
        "top_n": _number(call, "top_n", TOP_N),
        "types": _one(call, "type"),
        "kinds": _one(call, "kind"),
        "as_of": call.get("as_of"),
        "include_superseded": "include_superseded" in call,
    }
    if "token_budget" in call:
        asked["token_budget"] = _number(call, "token_budget", 0)
    if asked["top_n"] > MOST:
        raise InvalidInput(f"top_n: {MOST} at most here", field="top_n")
    return orc.recall(validated(RecallRequest, asked))


def _one(call: dict[str, str], name: str) -> tuple[str, ...]:
    return (call[name],) if name in call else ()


def _number(call: dict[str, str], name: str, default: int) -> int:
    text = call.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise InvalidInput(f"{name}: a whole number", field=name)
    return int(text)


def _page(
    visit: Visit, call: dict[str, str], bundle: Bundle | None, *, wrong: str = ""
) -> Response:
    return visit.show(
        "recall.html",
        status=422 if wrong else 200,
        given=call,
        bundle=bundle,
        scored=[] if bundle is None else scored(bundle.items),
        wrong=wrong,
        types=[item.value for item in MemoryType],
        kinds=[item.value for item in MemoryKind],
        top_n=TOP_N,
        may_audit=visit.may(Permission.AUDIT),
    )


PAGES: Final = (
    ConsolePage("/{orchestrator}/recall", form),
    ConsolePage("/{orchestrator}/recall", answer, "POST"),
)
