"""Every route of the running application, asked by everybody: nothing hidden is told or changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
import pytest
import service_walks  # noqa: F401  # adds its walks
from canaries import leaks, words_in
from fastapi.routing import iter_route_contexts
from route_walks import HERE, WALKS, View
from served_worlds import (
    ONE,
    OUTSIDE,
    OWNERS,
    PEOPLE,
    SEEING,
    TWO,
    Ask,
    Built,
    Served,
    build,
    served,
)

PUBLIC = {"/openapi.json", "/healthz", "/readyz", "/metrics"}
"""Without an orchestrator in the path: see test_hostile_requests.py."""
MAKING = "/v1/orchestrators"
READ_BY_POST = (
    *("/recall", "/relevant", "/subgraph", "/context", "/context/block"),
    *("/entities/info", "/verify"),
)
DENIED = {"memory.not_found", "access.denied"}


@dataclass(frozen=True)
class Told:
    """A request, its answer, and how many refusals it was entered with into the journals."""

    ask: Ask
    answer: httpx.Response
    entries: int

    @property
    def denials(self) -> int:
        """How many refusals the answer is: of a batch, one for each item."""
        if self.ask.path == MAKING and self.ask.body and self.ask.body["name"] not in (ONE, TWO):
            # Where there is none, there is no journal.
            return 0
        if self.answer.status_code in (403, 404):
            # No route at all: an address with a slash in it.
            return int(self.answer.json()["code"] != "request.refused")
        if not self.answer.is_success or not self.ask.path.endswith(("/batch", "/forget")):
            return 0
        return sum(each["code"] in DENIED for each in self.answer.json()["outcomes"])


@dataclass
class Walked:
    """What somebody was told on all routes."""

    told: list[Told] = field(default_factory=list)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)


Walking = Callable[[str], Walked]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("isolation") / "root")


@pytest.fixture(scope="module")
def walked(made: Built, tmp_path_factory: pytest.TempPathFactory) -> Walking:
    """Sends somebody over all routes of a server of their own; once."""

    @cache
    def walk(who: str) -> Walked:
        with served(made, tmp_path_factory.mktemp("walk") / "root") as server:
            viewer = PEOPLE[who].viewer
            hidden = {each.memory_id for each in server.world.hidden(viewer)}
            result = Walked(before=server.rows(hidden))
            assert result.before.keys() == hidden
            for route in in_order(server):
                result.told += _on(server, who, route)
            result.after = server.rows(hidden)
            return result

    return walk


def _on(server: Served, who: str, route: tuple[str, str]) -> list[Told]:
    view = View(server.world, server.other, PEOPLE[who].viewer, server.made)
    found: list[Told] = []
    for ask in WALKS[route](view):
        answer = server.ask(who, ask)
        found.append(Told(ask, answer, len(server.denied())))
        # Who may not enter is told so whatever it asks for.
        if who in OUTSIDE or (who.endswith(" alone") and '"permission"' in answer.text):
            break
    return found


def mounted(server: Served) -> set[tuple[str, str]]:
    """(method, path) of every route, the undocumented ones too."""
    return {
        (method, str(route.path))
        for route in iter_route_contexts(server.app.routes)
        for method in (route.methods or {"*"}) - {"HEAD"}
        if route.path not in PUBLIC | {"/mcp"}
    }


def in_order(server: Served) -> list[tuple[str, str]]:
    """The routes that are walked, reads before writes: those change what is found."""
    return sorted(
        mounted(server) & WALKS.keys(),
        key=lambda each: (each[0] != "GET", not each[1].endswith(READ_BY_POST), each[1]),
    )


@pytest.fixture(scope="module")
def server(made: Built, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with served(made, tmp_path_factory.mktemp("server") / "root") as running:
        yield running


def test_every_route_is_walked(server: Served) -> None:
    assert mounted(server) - WALKS.keys() == set()
    documented = {(method, path) for method, path, _ in server.operations.values()}
    assert mounted(server) <= documented


@pytest.mark.parametrize("who", SEEING)
def test_nothing_hidden_is_told(walked: Walking, made: Built, who: str) -> None:
    viewer = SEEING[who].viewer
    forbidden = made.world.forbidden(viewer) | made.other.forbidden(viewer)
    forbidden |= {each.memory_id for each in made.other.canaries}
    for each in walked(who).told:
        told = [each.answer.text, *map(str, each.answer.headers.items())]
        said = leaks([each.ask.said()], forbidden)
        assert leaks(told, forbidden) - said == set(), each.ask


@pytest.mark.parametrize("who", PEOPLE)
def test_no_request_breaks_the_server(walked: Walking, who: str) -> None:
    for each in walked(who).told:
        assert each.answer.status_code < 500, (each.ask, each.answer.text)


@pytest.mark.parametrize("who", [*SEEING, *OUTSIDE])
def test_nothing_hidden_is_changed(walked: Walking, who: str) -> None:
    result = walked(who)
    assert result.before
    assert result.after == result.before


@pytest.mark.parametrize("who", OUTSIDE)
def test_who_may_not_enter_is_told_the_same_everywhere(walked: Walking, who: str) -> None:
    told = [each for each in walked(who).told if each.ask.path.startswith(HERE)]
    assert len({each.answer.text for each in told}) == 1
    assert {each.answer.status_code for each in told} == {OUTSIDE[who].knocks}


@pytest.mark.parametrize("who", PEOPLE)
def test_every_denial_is_in_the_journal(walked: Walking, who: str) -> None:
    """Each refused request is an entry, and each entry a refused request."""
    known = PEOPLE[who].knocks != 401
    for each in walked(who).told:
        expected = each.denials if known else 0
        assert each.entries == expected, (each.ask, each.answer.text)


def test_every_walk_leads_somewhere(walked: Walking, server: Served) -> None:
    """What is hidden from others is shown to an owner: a walk that finds nothing proves nothing."""
    view = View(server.world, server.other, SEEING["no scope"].viewer, server.made)
    for route in in_order(server):
        answers = [server.ask(who, ask) for who in OWNERS for ask in WALKS[route](view)]
        assert any(answer.is_success for answer in answers), (route, answers[0].text)


def test_words_of_an_owner_are_found(server: Served) -> None:
    """The search for leaks finds one where there is one."""
    answer = server.ask("everything", Ask("POST", HERE + "/recall", body={"query": "launch plan"}))
    assert words_in([answer.text])
    assert leaks([answer.text], server.world.forbidden(SEEING["no scope"].viewer))
