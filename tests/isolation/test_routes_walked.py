"""Call every route of the running application as every caller; nothing hidden leaks or changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from canaries import PROJECTS, TASKS, leaks, words_in
from fastapi.routing import iter_route_contexts
from route_walks import HERE, MAKING, WALKS, View, Walk
from sampling import third
from served_worlds import ONE, OUTSIDE, OWNERS, PEOPLE, SEEING, TWO, Ask, Built, Served, served

PUBLIC = {"/", "/openapi.json", "/healthz", "/readyz", "/metrics"}
"""Without an orchestrator in the path: see test_hostile_requests.py."""
ELSEWHERE = {
    "/mcp": "test_mcp_walked.py",
    "/console": "its pages: tests/surfaces/web/test_console_hidden.py",
}
"""What has no routes here, and where it is walked."""

READ_BY_POST = (
    *("/recall", "/subgraph", "/context", "/context/block", "/ask"),
    *("/entities/info", "/verify", "/sources/info", "/retrieve", "/listItems"),
    *("/turns/message", "/turns/step", "/turns/diagnostics"),
)
SENDING = WALKS["PUT", f"{HERE}/ingest/files/{{name}}"]
DENIED = {"memory.not_found", "access.denied"}
BRIEFLY = {*PEOPLE} - {"public", "a task", "a project", "an agent"}
"""Those who see as others do who ask everything: they send every third request of each walk."""


@dataclass(frozen=True)
class Told:
    """A request, its response, and the number of refusals that were logged for it."""

    ask: Ask
    answer: httpx.Response
    lines: int

    @property
    def denials(self) -> int:
        """Return the number of refusals in a response; a batch may have one for each item."""
        if self.ask.path == MAKING and self.ask.body and self.ask.body["name"] not in (ONE, TWO):
            # An orchestrator that does not exist has no log.
            return 0
        if self.answer.status_code in (403, 404):
            # A path with a slash in a parameter matches no route.
            return int(self.answer.json()["code"] != "request.refused")
        if not self.answer.is_success or not self.ask.path.endswith(("/batch", f"{HERE}/forget")):
            return 0
        return sum(each["code"] in DENIED for each in self.answer.json()["outcomes"])


def _on(server: Served, who: str, walk: Walk) -> list[Told]:
    view = View(server.world, server.other, PEOPLE[who].viewer, server.made)
    found: list[Told] = []
    # The first value is visible to the caller, the last one does not exist.
    asks = list(walk(view))
    if who in BRIEFLY:
        asks = asks[::3]
    elif walk is not SENDING:  # of each sender another file is refused
        asks = [*third(asks, sorted(PEOPLE).index(who))]
    for ask in asks:
        answer = server.ask(who, ask)
        found.append(Told(ask, answer, len(server.denied())))
        # A caller without access to the orchestrator is always refused.
        if who in OUTSIDE or (who.endswith(" alone") and '"permission"' in answer.text):
            break
    return found


def mounted(server: Served) -> set[tuple[str, str]]:
    """Return (method, path) of every route, including undocumented ones."""
    return {
        (method, str(route.path))
        for route in iter_route_contexts(server.app.routes)
        for method in (route.methods or {"*"}) - {"HEAD"}
        if route.path not in PUBLIC | ELSEWHERE.keys()
    }


def in_order(server: Served) -> list[tuple[str, str]]:
    """Return the routes to call; reads come before writes, which change the results."""
    return sorted(
        mounted(server) & WALKS.keys(),
        key=lambda each: (each[0] != "GET", not each[1].endswith(READ_BY_POST), each[1]),
    )


def test_every_route_is_walked(server: Served) -> None:
    assert mounted(server) - WALKS.keys() == set()
    documented = {(method, path) for method, path, _ in server.operations.values()}
    assert mounted(server) <= documented


@pytest.mark.parametrize("who", sorted(SEEING))
def test_somebody_on_every_route(made: Built, tmp_path: Path, who: str) -> None:
    forbidden, named = made.forbidden(SEEING[who].viewer), frozenset[str]()
    if who == "every scope":
        # Whoever may name any session names it by the agent or the task, too.
        opened = replace(
            SEEING[who].viewer, project_ids=frozenset(PROJECTS), session_ids=frozenset(TASKS)
        )
        named = forbidden - made.forbidden(opened)
    with served(made, tmp_path / "root") as server:
        hidden = {each.memory_id for each in server.world.hidden(SEEING[who].viewer)} - named
        before = server.rows(hidden)
        assert before.keys() == hidden != set()
        told = [each for route in in_order(server) for each in _on(server, who, WALKS[route])]
        refused, lines = server.work_off(), len(server.denied())
        for path in ("/ingest/files", "/ingest/files/{sha256}"):
            told += _on(server, who, WALKS["GET", HERE + path])
        assert server.rows(hidden) == before
    for each in told:
        # No request breaks the server, and every refusal is in the log.
        assert each.answer.status_code < 500, (each.ask, each.answer.text)
        assert each.lines == each.denials, (each.ask, each.answer.text)
        nothing_hidden_is_told(each, forbidden, named)
    assert lines == refused
    # A caller that sees every scope is never refused one.
    bounded = who != "an agent" and not who.endswith(" alone")
    assert refused > 0 or not bounded


def test_who_may_not_enter_is_answered_alike_on_every_route(server: Served) -> None:
    server.denied()
    routes = [route for route in in_order(server) if route[1].startswith(HERE)]
    for who, outside in OUTSIDE.items():
        told = [each for route in routes for each in _on(server, who, WALKS[route])]
        assert len({each.answer.text for each in told}) == 1, who
        assert {each.answer.status_code for each in told} == {outside.knocks}, who
        assert {each.lines for each in told} == {int(outside.knocks == 404)}, who


NAMES_A_SCOPE = (f"{HERE}/agents/", f"{HERE}/turns/")


def nothing_hidden_is_told(each: Told, forbidden: frozenset[str], named: frozenset[str]) -> None:
    """Nothing is told that is forbidden, but ``named``: what naming an agent or a task opens."""
    told = [each.answer.text, *map(str, each.answer.headers.items())]
    said = leaks([each.ask.said()], forbidden)
    if each.ask.path.startswith(NAMES_A_SCOPE):
        said |= named
    assert leaks(told, forbidden) - said == set(), each.ask


def test_every_walk_leads_somewhere(made: Built, tmp_path: Path) -> None:
    """The owner sees what is hidden from others; otherwise the other tests would prove nothing."""
    left: dict[tuple[str, str], str] = {}
    for who in OWNERS:
        # Each caller gets a fresh world.
        with served(made, tmp_path / who) as server:
            view = View(server.world, server.other, SEEING["no scope"].viewer, server.made)
            routes = in_order(server) if who == next(iter(OWNERS)) else [*left]
            left = {}
            for route in routes:
                # A walk may begin with what makes that there is something to find.
                own = route[1].rpartition("}")[2]
                answers = (
                    server.ask(who, ask).is_success and ask.path.endswith(own)
                    for ask in WALKS[route](view)
                )
                if not any(answers):
                    left[route] = who
    assert left == {}


def test_words_of_an_owner_are_found(server: Served) -> None:
    """The search for leaks finds a real leak."""
    answer = server.ask("everything", Ask("POST", HERE + "/recall", body={"query": "launch plan"}))
    assert words_in([answer.text])
    assert leaks([answer.text], server.world.forbidden(SEEING["no scope"].viewer))
