"""Why an agent said something: the receipts and memories behind each sentence of an answer."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.surfaces.web.graphs import lines_of
from memgraph.surfaces.web.requests import MAX_TIME_CHARS, ConsolePage, Visit, moment_of

READ: Final = 12
"""Memories whose source lines are shown."""
RECEIPTS: Final = 8
EMPTY: Final = {"answer": "", "conversation": "", "until": ""}


def form(visit: Visit) -> Response:
    """Show the empty form."""
    visit.enter(Permission.AUDIT)
    return visit.show("why.html", given=EMPTY, explanation=None, lines={}, wrong="")


def explain(visit: Visit) -> Response:
    """Show which of the sentences of a pasted answer were handed out, by whom and from where.

    The answer is sent in a form: it may be long, and belongs into no address.
    """
    orc = visit.enter(Permission.AUDIT)
    call = EMPTY | {name: text.strip() for name, text in visit.form.items()}
    until = call.get("until", "")[:MAX_TIME_CHARS]
    try:
        explanation = orc.receipts.explain(
            call.get("answer", ""),
            conversation_id=call.get("conversation") or None,
            until=moment_of(until, visit.console.now_ms(), ends=True) if until else None,
            limit=RECEIPTS,
        )
    except InvalidInput as error:
        wrong = {"given": call, "explanation": None, "lines": {}, "wrong": error.message}
        return visit.show("why.html", status=422, **wrong)
    best = [sentence.memory_ids[0] for sentence in explanation.sentences if sentence.memory_ids]
    lines = lines_of(visit, *list(dict.fromkeys(best))[:READ])
    return visit.show("why.html", given=call, explanation=explanation, lines=lines, wrong="")


PAGES: Final = (
    ConsolePage("/{orchestrator}/why", form),
    ConsolePage("/{orchestrator}/why", explain, "POST"),
)
