"""Lists of the console: what they are narrowed to, and pages that were asked for wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from console_browsing import HOME, Browser, Seen, console_served, harmless
from serving_worlds import Served

from memgraph import Orchestrator
from memgraph.clock import FixedClock
from memgraph.surfaces.web.pages import contradictions

LIST = f"{HOME}contradictions"
PER_PAGE = 5
CONFIG = {"memory": {"embedding": {"provider": "none"}}}


@dataclass(frozen=True)
class Quarrels:
    """One memory against many, a day between each pair; ``edges``: the oldest first."""

    served: Served
    orc: Orchestrator
    edges: tuple[str, ...]
    against: tuple[str, ...]


@pytest.fixture(scope="module")
def quarrels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quarrels]:
    clock = FixedClock()
    root = tmp_path_factory.mktemp("console") / "root"
    with (
        pytest.MonkeyPatch.context() as patch,
        console_served(root, clock=clock, config=CONFIG) as served,
    ):
        patch.setattr(contradictions, "PER_PAGE", PER_PAGE)
        orc = served.orchestrator()
        one = orc.remember("The ferry sails at noon.")
        edges, against = [], []
        for number in range(PER_PAGE + 4):
            clock.advance(days=1)
            against.append(orc.remember(f"The ferry sails from quay {number}."))
            edges.append(orc.relate(one, "Contradicts", against[-1]))
        orc.contradictions.dismiss(edges[0], reason="another ferry")
        orc.contradictions.resolve(edges[1], winner=one, reason="seen there")
        yield Quarrels(served, orc, tuple(edges), tuple(against))


@pytest.fixture(scope="module")
def browser(quarrels: Quarrels) -> Iterator[Browser]:
    with Browser(quarrels.served, quarrels.served.key()) as made:
        yield made


def _listed(page: Seen) -> list[str]:
    """The edges of a page in their order."""
    found = (each.removeprefix(f"{LIST}/") for each in page.values("href"))
    return [each for each in found if each.startswith("edge_")]


def test_contradictions_are_narrowed_by_state_words_and_memory(
    browser: Browser, quarrels: Quarrels
) -> None:
    for query, expected in {
        "state=decided": [quarrels.edges[1], quarrels.edges[0]],
        "text=Quay+7": [quarrels.edges[7]],
        f"memory={quarrels.against[6]}": [quarrels.edges[6]],
        f"text=quay&memory={quarrels.against[6]}": [quarrels.edges[6]],
        "state=decided&text=quay+8": [],
        f"memory={quarrels.edges[6]}": [],
    }.items():
        page = harmless(browser.page(f"{LIST}?{query}"))
        assert _listed(page) == expected, query
        assert ("Nothing matches these filters." in page.text) == (not expected), query


def test_pages_of_a_narrowed_list_go_on_in_its_order(browser: Browser, quarrels: Quarrels) -> None:
    first = Seen(browser.page(f"{LIST}?text=ferry&order=oldest+first"))
    assert _listed(first) == list(quarrels.edges[2 : 2 + PER_PAGE])
    [following] = [each for each in first.values("href") if "after=" in each]
    second = Seen(browser.page(following))
    assert _listed(second) == list(quarrels.edges[2 + PER_PAGE :])
    # What was asked for stands in the form, and leads to the other states without the page.
    for page in (first, second):
        assert "\nNewer\n" in page.text or page is second
        assert "ferry" in page.values("value")
        [decided] = [each for each in page.values("href") if "state=decided" in each]
        assert "text=ferry" in decided
        assert "after=" not in decided


def test_what_is_no_place_in_a_list_is_told_with_a_code(browser: Browser) -> None:
    for path, code in (
        ("contradictions?state=lost", "input.invalid"),
        ("contradictions?order=any", "input.invalid"),
        ("contradictions?after=zzz", "input.invalid"),
        (f"contradictions?text={'x' * 201}", "input.invalid"),
        ("memories?before=%00", "memory.not_found"),
        ("answers?before=rcl_" + "u" * 26, "input.invalid"),
        ("activity?after=zzz", "input.invalid"),
    ):
        answer = browser.open(HOME + path)
        assert answer.status_code in (404, 422), path
        assert code in Seen(answer.text).text
