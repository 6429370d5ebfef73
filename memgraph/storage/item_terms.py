"""What an item is, as SQL over a row of ``memories m``, and the conditions of a filter on it.

SQL decides as ``memgraph.policy.filters`` does, or not at all: texts by their bytes in UTF-8, which
is the order of code points, times in milliseconds, numbers by value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from memgraph.model.recall import MAX_TOKEN_BUDGET
from memgraph.policy.filters import PAYLOAD, Operator, Term

# Up to here every whole number is a double of its own, and the driver can bind it.
_MAX_EXACT = 2**53


def _said(name: str, types: str, otherwise: str, proper: str) -> str:
    """What the attribute ``context_item`` says, if that is of one of the JSON types and proper;
    ``null`` is None. See ``memgraph.context.items``."""
    path = f"'$.context_item.{name}'"
    said = f"(m.attributes ->> {path})"
    return (
        f"CASE WHEN json_type(m.attributes, {path}) IN ({types})"
        f" AND ({said} IS NULL OR {said} {proper}) THEN {said} ELSE {otherwise} END"
    )


ID = "coalesce(m.item_id, m.memory_id)"
_PLAIN = {"kind": "lower(m.type)", "source": ":place_source"}
VALUES = {
    "context_item_id": ID,
    "kind": _said("kind", "'text'", _PLAIN["kind"], "<> ''"),
    "source": _said("source", "'text'", _PLAIN["source"], "<> ''"),
    "timestamp": "coalesce(m.event_time, m.created_at)",
    "importance": _said(
        "importance", "'real', 'integer', 'null'", "m.importance / 100.0", "BETWEEN 0 AND 1"
    ),
    "token_cost": _said(
        "token_cost", "'integer', 'null'", "m.token_cost", f"BETWEEN 0 AND {MAX_TOKEN_BUDGET}"
    ),
}
"""The fields of an item that have an order; they bind ``place_source``."""

_COMPARISONS = {
    Operator.EQ: "IS",
    Operator.NE: "IS NOT",
    Operator.GT: ">",
    Operator.GTE: ">=",
    Operator.LT: "<",
    Operator.LTE: "<=",
}


class Conditions:
    """A filter as SQL, as far as SQL can decide it.

    Attributes:
        parts: conditions that every item meets that passes.
        params: what they bind.
        rest: the terms that are still to be asked of each row.
    """

    def __init__(self, terms: Iterable[Term]) -> None:
        self.parts: list[str] = []
        self.params: dict[str, Any] = {}
        self.rest: list[Term] = []
        for number, term in enumerate(terms):
            self._add(term, f"term_{number}")

    def _add(self, term: Term, name: str) -> None:
        operands = term.operand if isinstance(term.operand, tuple) else (term.operand,)
        exact = _exact(term, operands, name) if all(map(_binds, operands)) else None
        hint = _hint(term, name)
        if hint is not None:
            self.parts.append(hint)
            self.params[f"{name}_spelled"] = json.dumps(term.operand, ensure_ascii=False)
        if exact is None:
            self.rest.append(term)
        else:
            self.parts.append(exact)
        if exact is not None or hint is not None:
            many = isinstance(term.operand, tuple)
            self.params[name] = json.dumps(term.operand) if many else term.operand


def _exact(term: Term, operands: tuple[Any, ...], name: str) -> str | None:
    """The term, its operand bound by ``name``; None: SQL cannot decide it."""
    listed = f"IN (SELECT value FROM json_each(:{name}))"
    if term.field == "tags":
        if term.operator not in (Operator.ANY, Operator.IN):
            return None
        return f"EXISTS (SELECT 1 FROM json_each(m.tags) t WHERE t.value {listed})"
    if term.field not in VALUES:
        return None
    value = VALUES[term.field]
    if term.operator is Operator.IN:
        # NULL is in no list, and nothing is known not to be in a list that holds it.
        return None if None in operands else f"coalesce({value} {listed}, 0)"
    return f"{value} {_COMPARISONS[term.operator]} :{name}"


def _hint(term: Term, name: str) -> str | None:
    """What must hold where a text is to be equal, and costs a tenth of looking into the JSON: the
    text stands there as our own encoder spells it."""
    if term.operator is not Operator.EQ or not isinstance(term.operand, str):
        return None
    if not _binds(term.operand):
        return None
    spelled = f"instr(m.attributes, :{name}_spelled)"
    if term.field == PAYLOAD:
        return f"({spelled} OR m.content = :{name} OR instr(m.content, :{name}_spelled))"
    if term.field in _PLAIN:
        return f"({_PLAIN[term.field]} = :{name} OR {spelled})"
    return None


def _binds(operand: Any) -> bool:
    """Whether the driver hands it over as it is: SQLite ends a text of JSON at a NUL."""
    if isinstance(operand, str):
        return "\x00" not in operand
    return operand is None or (isinstance(operand, int | float) and abs(operand) <= _MAX_EXACT)
