"""Items for tests: one by its few words, any that hypothesis thinks of, and filters for them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from memgraph.errors import InvalidInput
from memgraph.model.context import ContextItem
from memgraph.model.values import validated

HOSTILE = (
    "'; DROP TABLE memories; --",
    '"',
    "%",
    "_",
    "a*",
    "$.kind",
    "#new",
    ":view_agent_id",
    "?",
    "null",
    "é",
    "e\u0301",
    "\u202e",
    "日本",
    "🙂",
    "\ue000",
    "a\nb",
    " ",
    "1e3",
    "0",
    "x" * 512,
)
TIMES = (
    "2026-01-01T00:00:00.000Z",
    "2026-01-01T01:00:00+01:00",
    "2026-01-01",
    "20260101T000000Z",
    "2026-01-01T00:00:00.0004",
    "2025-12-31T23:59:59.999Z",
    "2026-06-01T12:00:00Z",
    "1969-12-31T23:59:59.123456+00:00",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999Z",
)
KINDS = ("decision", "goal", "todo", "fact", "reasoning", "tool_output", "Decision", *HOSTILE[:6])
KEYS = ("text", "decision", "lesson", "output", "context_item", "supersedes", "enriched_at", "n")


def item(item_id: str = "i-1", **fields: Any) -> ContextItem:
    """An item that says little, but for what is given."""
    given: dict[str, Any] = {
        "context_item_id": item_id,
        "kind": "decision",
        "source": "project/web",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "tags": ("project",),
        "importance": 0.5,
        "payload": {"decision": f"what {item_id} decides"},
    }
    return validated(ContextItem, given | fields)


def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Texts that are names, hostile ones among them."""
    plain = st.characters(codec="utf-8", exclude_characters="\x00")
    return st.sampled_from(HOSTILE) | st.text(plain, min_size=1, max_size=max_size)


def ids() -> st.SearchStrategy[str]:
    """Few, so that they meet again."""
    return st.sampled_from(["i-1", "i-2", "i-3", "i-4", "i-5", *HOSTILE[:6]])


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8)
)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | texts(6), inner, max_size=3)
    ),
    max_leaves=6,
)


def payloads() -> st.SearchStrategy[dict[str, Any]]:
    """Plain JSON objects, with and without a text."""
    return st.dictionaries(st.sampled_from(KEYS) | texts(6), _JSON, max_size=4)


def weights() -> st.SearchStrategy[float | None]:
    return st.none() | st.sampled_from([0.0, 0.5, 0.555, 0.56, 1.0]) | st.floats(0, 1)


def times() -> st.SearchStrategy[str]:
    return st.sampled_from(TIMES) | st.datetimes().map(lambda each: each.isoformat())


@st.composite
def items(draw: st.DrawFn, payload: st.SearchStrategy[dict[str, Any]] | None = None) -> ContextItem:
    """Any item; ``payload`` narrows what it holds."""
    return item(
        draw(ids()),
        kind=draw(st.sampled_from(KINDS) | texts()),
        source=draw(st.sampled_from(["project/web", "task/t/s", "global"]) | texts()),
        timestamp=draw(times()),
        tags=tuple(draw(st.lists(st.sampled_from(["a", "b", *HOSTILE[:8]]), max_size=3))),
        importance=draw(weights()),
        token_cost=draw(st.none() | st.sampled_from([0, 1, 10_000_000]) | st.integers(0, 500)),
        payload=draw(payloads() if payload is None else payload),
    )


_NUMBERS = (
    st.none()
    | weights()
    | st.integers(-2, 600)
    | st.sampled_from([10**40, -(10**40), 2**63, 2**53 + 1, 1e308, -0.0])
)
_OPERANDS: dict[str, st.SearchStrategy[Any]] = {
    "context_item_id": ids() | texts() | st.just("a\x00b"),
    "kind": st.sampled_from(KINDS) | texts(),
    "source": st.sampled_from(["project/web", "global"]) | texts(),
    "timestamp": times() | st.integers(1_700_000_000_000, 1_800_000_000_000) | st.datetimes(),
    "importance": _NUMBERS,
    "token_cost": _NUMBERS,
}
_OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")


@st.composite
def filters(draw: st.DrawFn) -> dict[str, Any]:
    """Any filter; now and then one that is refused."""
    found: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from([*_OPERANDS, "tags"]), max_size=3, unique=True)):
        if name == "tags":
            some = draw(st.lists(st.sampled_from(["a", "b", *HOSTILE[:8]]), max_size=3))
            found[name] = draw(st.sampled_from([some, {"$in": some}, {"$eq": some}, {"$ne": some}]))
            continue
        operands = _OPERANDS[name]
        ranges = st.dictionaries(st.sampled_from(_OPERATORS), operands, min_size=1, max_size=2)
        lists = st.lists(operands, max_size=3).map(lambda each: {"$in": each})
        found[name] = draw(operands | ranges | lists)
    return found


def asked(backend: Any, *query: Any) -> list[str] | str:
    """What a backend answers, all of each item; or the code of its refusal and the field."""
    try:
        found = [each.model_dump() for each in backend.query(*query)]
        return [json.dumps(each, sort_keys=True) for each in found]
    except InvalidInput as error:
        return f"{error.code}: {error.details['field']}"
