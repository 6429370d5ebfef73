"""For each command the command lines that would show what is hidden, if anything did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from canaries import PROJECTS, QUERY, TASKS
from route_walks import TELLS, View
from served_worlds import ONE, TWO

Line = list[str]
Lines = Callable[[View], Iterator[Line]]
WHY = ("--reason", "asked")

OPERATORS = {
    **dict.fromkeys(
        ("ingest", "repair", "rebuild", "embed", "worker", "run"), "work on everything"
    ),
    **dict.fromkeys(
        ("key create", "key list", "key revoke", "key rotate", "key forget"), "the operator's keys"
    ),
    **dict.fromkeys(("restore", "migrate-store"), "replace or move whole databases"),
    **dict.fromkeys(("export", "backup", "verify"), "copy or audit everything"),
    **dict.fromkeys(("config show", "config check"), "tell settings alone"),
    "serve": "its routes are walked by themselves",
    "mcp": "its tools and resources are walked by themselves",
    "erase": "erases whatever it is told to",
    "files": "the files of a root are its operator's",
    "erasures": "tells what was erased, which only who sees everything may know",
}
"""Commands that are the operator's on a root, and why nothing is to be walked there.

On a server they send requests with a key, as all do: its routes are walked by themselves.
"""

BY_THEMSELVES = {"context", "tier", "promote"}
"""Commands to which --project and --session say what they are about."""


def _each(command: str, *ids: str, more: tuple[str, ...] = ()) -> Iterator[Line]:
    for one in ids:
        yield [command, ONE, one, *more]


def _remember(view: View) -> Iterator[Line]:
    yield ["remember", ONE, "Nothing much."]
    yield ["remember", ONE, f"{view.words[0]} {TELLS}"]


def _retract_source(view: View) -> Iterator[Line]:
    for talk in view.talks[:4]:
        yield ["retract-source", ONE, "--conversation-id", talk, *WHY]
    yield ["retract-source", ONE, "--path", "/", *WHY]


def _say(view: View) -> Iterator[Line]:
    yield ["say", ONE, "Hello.", "--session-id", "mine"]


def _sessions(view: View) -> Iterator[Line]:
    yield ["sessions", ONE, "--limit", "500"]
    yield ["sessions", ONE, "--pending"]
    for talk in view.talks[:1]:
        yield ["sessions", ONE, "--before", f"1.{talk}"]


def _relate(view: View) -> Iterator[Line]:
    own, other = view.own[:2]
    for one in (other, view.hidden[0], view.hidden[-2]):
        yield ["relate", ONE, own, "RelatedTo", one]
        yield ["relate", ONE, one, "CausedBy", own]


def _recall(view: View) -> Iterator[Line]:
    yield ["recall", ONE, QUERY, "--token-budget", "10000", "--explain"]
    yield ["recall", ONE, QUERY, "--include-superseded"]
    yield ["recall", ONE, view.words[0]]
    yield ["recall", ONE, "--tag", view.words[1]]
    yield ["recall", ONE, "--session-id", view.talks[0]]
    yield ["recall", ONE, "--conversation-id", view.words[2]]


def _context(view: View) -> Iterator[Line]:
    yield ["context", ONE, QUERY, "--explain", "--budget-tokens", "20000"]


def _ask(view: View) -> Iterator[Line]:
    yield ["ask", ONE, QUERY, "--budget-tokens", "20000"]


def _subgraph(view: View) -> Iterator[Line]:
    yield ["subgraph", ONE, *view.own[:5], "--hops", "4"]
    yield ["subgraph", ONE, *view.hidden]


def _contradictions(view: View) -> Iterator[Line]:
    yield ["contradictions", ONE, "--limit", "500"]
    yield ["contradictions", ONE, "--limit", "500", "--resolved"]
    yield ["contradictions", ONE, "--after", f"{view.world.at + 1}.{view.hidden_edges[0][0]}"]


def _resolve(view: View) -> Iterator[Line]:
    for edge, one, _ in view.hidden_edges[:6]:
        yield ["resolve", ONE, edge, "--winner", one, *WHY]


def _edges(verb: str, view: View, *more: str) -> Iterator[Line]:
    for edge, _, _ in view.hidden_edges[:6]:
        yield [verb, ONE, edge, *more]


def _accept(view: View) -> Line:
    return ["accept", ONE, view.made["mark"], *WHY]


def _promote(view: View) -> Iterator[Line]:
    ids = [*view.own_of_a_task[:1], *view.hidden_of_a_task[:2], view.hidden[-2]]
    for one, task in product(ids, sorted(view.viewer.session_ids) or TASKS):
        to = ("--to", "project", "--scope-id", PROJECTS[0])
        yield ["promote", ONE, one, "--session", task, *to, "--yes", *WHY]


def _list(view: View) -> Iterator[Line]:
    yield ["list", ONE, "--all", "--limit", "500"]
    yield ["list", ONE, "--tag", view.words[0]]
    yield ["list", ONE, "--session-id", view.talks[0]]
    yield ["list", ONE, "--before", view.hidden[0]]


def _entities(view: View) -> Iterator[Line]:
    yield ["entities", ONE, "--limit", "1000"]
    yield ["entities", ONE, "--prefix", "kx"]


def _merge(view: View) -> Iterator[Line]:
    own = [each.word for each in view.world.seen(view.viewer)[:2]]
    for other in (own[1], *view.words[:2]):
        yield ["merge-entities", ONE, own[0], other, *WHY]
        yield ["merge-entities", ONE, other, own[0], *WHY]


def _remove_alias(view: View) -> Iterator[Line]:
    own = [each.word for each in view.world.seen(view.viewer)[:2]]
    for entity, name in (own, (own[0], view.words[0]), (view.words[0], view.words[1])):
        yield ["remove-alias", ONE, entity, name, *WHY]


def _protect(view: View) -> Iterator[Line]:
    for word in (view.world.seen(view.viewer)[0].word, *view.words[:2]):
        yield ["protect-entity", ONE, word, *WHY]


def _entity(view: View) -> Iterator[Line]:
    hidden = [each.word for each in view.world.hidden(view.viewer)[::20]]
    yield from _each("entity", *hidden, *view.words[:3], *TASKS, *PROJECTS)


COMMAND_WALKS: dict[str, Lines] = {
    # Receipts tell what was asked: by nobody here as yet.
    "receipts": lambda view: iter([["receipts", ONE]]),
    "init": lambda view: iter([["init", ONE, "--exist-ok"], ["init", TWO]]),
    "sessions": _sessions,
    "recall": _recall,
    "context": _context,
    "ask": _ask,
    "subgraph": _subgraph,
    "bulletin": lambda view: iter([["bulletin", ONE]]),
    "contradictions": _contradictions,
    "resolve": _resolve,
    "case": lambda view: _edges("case", view),
    "dismiss": lambda view: _edges("dismiss", view, *WHY),
    "reopen": lambda view: _edges("reopen", view, *WHY),
    "accept": lambda view: iter([*_edges("accept", view, *WHY), _accept(view)]),
    "trace": lambda view: _each("trace", *view.own[:3], *view.hidden),
    "diff": lambda _: iter([["diff", ONE, "2000-01-01", "2100-01-01", "--limit", "1000"]]),
    "impact": lambda view: _each("impact", *view.own[:3], *view.hidden),
    "grounds": lambda view: _each("grounds", *view.own[:3], *view.hidden),
    "correct": lambda view: _each(
        "correct", view.own[3], *view.hidden[:2], more=("Something else.", *WHY)
    ),
    "confirm": lambda view: _each("confirm", view.own[4], *view.hidden[:2]),
    "retract": lambda view: _each("retract", view.own[5], *view.hidden[:2], more=WHY),
    "restore-memory": lambda view: _each("restore-memory", view.own[5], *view.hidden[:2], more=WHY),
    "promote": _promote,
    "tier": lambda view: iter([["tier", ONE, "global", "--limit", "500"]]),
    "bulletins": lambda view: iter([["bulletins", ONE]]),
    "issued-bulletin": lambda view: iter(
        ["issued-bulletin", ONE, view.made[each]] for each in ("bulletin", "far_bulletin")
    ),
    "receipt": lambda view: iter(
        ["receipt", ONE, view.made[each]] for each in ("receipt", "far_receipt")
    ),
    "reflection": lambda view: iter([["reflection", ONE]]),
    "list": _list,
    "get": lambda view: _each("get", view.own[0], *view.hidden),
    "entities": _entities,
    "merge-entities": _merge,
    "remove-alias": _remove_alias,
    "protect-entity": _protect,
    "entity": _entity,
    "stats": lambda view: iter([["stats", ONE]]),
    "sources": lambda view: iter(
        [["sources", ONE, "--limit", "500"], ["sources", ONE, "--kind", "run"]]
    ),
    "retract-source": _retract_source,
    "end-session": lambda view: _each("end-session", *view.talks[:2]),
    "jobs": lambda view: iter([["jobs", ONE]]),
    "health": lambda view: iter([["health"], ["health", ONE], ["health", TWO]]),
    # The last ones: what they write themselves is told by the others.
    "relate": _relate,
    "say": _say,
    "remember": _remember,
}
