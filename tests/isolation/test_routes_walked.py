"""Every route of the running application, asked by everybody: nothing hidden is told or changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import service_walks  # noqa: F401  # adds its walks
from canaries import leaks, words_in
from fastapi.routing import iter_route_contexts
from route_walks import HERE, WALKS, View
from served_worlds import ONE, OUTSIDE, OWNERS, PEOPLE, SEEING, Ask, Built, Served, build, served

PUBLIC = {"/openapi.json", "/healthz", "/readyz", "/metrics"}
"""Without an orchestrator in the path: see test_public_routes.py."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("isolation") / "root")


@pytest.fixture
def server(made: Built, tmp_path: Path) -> Iterator[Served]:
    with served(made, tmp_path) as running:
        yield running


def mounted(server: Served) -> set[tuple[str, str]]:
    """(method, path) of every route, the undocumented ones too."""
    return {
        (method, str(route.path))
        for route in iter_route_contexts(server.app.routes)
        for method in (route.methods or {"*"}) - {"HEAD"}
        if route.path not in PUBLIC
    }


def in_order(server: Served) -> list[tuple[str, str]]:
    """The routes that are walked, writes after reads: those would find less."""
    return sorted(mounted(server) & WALKS.keys(), key=lambda each: (each[0] != "GET", each[1]))


def asks(server: Served, who: str) -> Iterator[Ask]:
    """All that a walker would ask of the routes that there are."""
    viewer = PEOPLE[who].viewer
    view = View(server.world, server.other, viewer, server.made)
    for route in in_order(server):
        yield from WALKS[route](view)


def test_every_route_is_walked(server: Served) -> None:
    assert mounted(server) - WALKS.keys() == set()
    documented = {(method, path) for method, path, _ in server.operations.values()}
    assert mounted(server) <= documented | {("*", "/mcp/{orchestrator}")}


@pytest.mark.parametrize("who", SEEING)
def test_nothing_hidden_is_told_or_changed(server: Served, who: str) -> None:
    viewer = SEEING[who].viewer
    forbidden = server.world.forbidden(viewer) | server.other.forbidden(viewer)
    forbidden |= {each.memory_id for each in server.other.canaries}
    hidden = {each.memory_id for each in server.world.hidden(viewer)}
    before = server.rows(hidden)
    assert before.keys() == hidden
    for ask in asks(server, who):
        answer = server.ask(who, ask)
        told = [answer.text, *map(str, answer.headers.items())]
        assert answer.status_code < 500, (ask, answer.text)
        assert leaks(told, forbidden) - leaks([ask.said()], forbidden) == set(), ask
    assert server.rows(hidden) == before


@pytest.mark.parametrize("who", OUTSIDE)
def test_who_may_not_enter_is_told_the_same_whatever_is_asked(server: Served, who: str) -> None:
    answers = {server.ask(who, ask).text for ask in asks(server, who) if HERE in ask.path}
    statuses = {server.ask(who, ask).status_code for ask in asks(server, who)}
    assert len(answers) == 1
    assert statuses == {OUTSIDE[who].knocks}


def test_every_walk_leads_somewhere(server: Served) -> None:
    """What is hidden from others is shown to an owner: a walk that finds nothing proves nothing."""
    view = View(server.world, server.other, SEEING["no scope"].viewer, server.made)
    for route in in_order(server):
        answers = [server.ask(who, ask) for who in OWNERS for ask in WALKS[route](view)]
        assert any(answer.is_success for answer in answers), route


@pytest.mark.parametrize("who", PEOPLE)
def test_every_denial_is_in_the_journal(server: Served, who: str) -> None:
    """Each refused request is an entry, and each entry a refused request."""
    known = who in server.secrets and OUTSIDE.get(who, PEOPLE[who]).knocks != 401
    for ask in asks(server, who):
        before = len(server.denials(ONE))
        answer = server.ask(who, ask)
        denied = known and answer.status_code in (403, 404)
        assert len(server.denials(ONE)) - before == int(denied), (ask, answer.text)


def test_words_of_an_owner_are_found(server: Served) -> None:
    """The search for leaks finds one where there is one."""
    answer = server.ask("everything", Ask("POST", HERE + "/recall", body={"query": "launch plan"}))
    assert words_in([answer.text])
    assert leaks([answer.text], server.world.forbidden(SEEING["no scope"].viewer))
