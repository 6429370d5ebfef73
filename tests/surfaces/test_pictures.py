"""Pages of `memgraph graph` and `timeline`: self-contained, whatever texts they hold."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from memgraph import Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import InvalidInput
from memgraph.model.enums import MemoryStatus
from memgraph.model.graph import Subgraph
from memgraph.model.values import StatusPeriod
from memgraph.rules.decay import effective_confidence
from memgraph.surfaces.pictures import (
    ConfidencePeriod,
    DrawnBulletin,
    accesses_of,
    bulletin_page,
    changes,
    confidence_page,
    confidence_periods,
    graph_page,
    require_html,
)

DAY = 86_400_000
HOSTILE = (
    '<script>alert(1)</script></script><!-- & "quoted" $\\frac{x}$ 日本語 \u202e ]]> -->'
    " {{ x }} \u2028"
)


@pytest.fixture
def graph(orc: Orchestrator) -> Subgraph:
    hostile = orc.remember(HOSTILE, type="Decision")
    other = orc.remember("$unbalanced ^{ markup", tags=["<b>"])
    early = orc.remember("The shop closes at six.")
    orc.relate(hostile, "CausedBy", other, reason=HOSTILE[:40])
    orc.relate(other, "Updates", early)
    return orc.graph.subgraph([hostile], hops=2)


class Page(HTMLParser):
    """The elements of a page with their attributes, its texts, and the data of its drawing."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.tags and self.tags[-1][1].get("id") == "picture-data" and data.strip():
            self.data: dict[str, Any] = json.loads(data)


def test_texts_are_texts_in_the_tables_and_in_the_data(graph: Subgraph) -> None:
    html = graph_page(graph, title=HOSTILE)
    assert html == graph_page(graph, title=HOSTILE)
    page = Page(html)
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "picture-data"}, {}, {}, {}, {}, {}]
    attributes = [name for _, each in page.tags for name in each]
    assert not [name for name in attributes if name.startswith("on") or name in ("src", "href")]
    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "iframe", "b", "object", "link"})
    [hostile] = [each for each in page.data["nodes"] if each["type"] == "Decision"]
    assert "<script>alert(1)</script>" in hostile["summary"]
    assert hostile["summary"] in page.texts


def test_a_page_allows_its_own_scripts_alone(graph: Subgraph) -> None:
    page = Page(graph_page(graph, title="A graph"))
    [policy] = [
        str(attributes["content"])
        for _, attributes in page.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert policy.count("'sha256-") == 5


def test_an_empty_graph_says_so(graph: Subgraph) -> None:
    empty = graph.model_copy(update={"nodes": (), "edges": (), "seeds": ()})
    assert "There is no memory to show." in Page(graph_page(empty, title="Empty")).texts
    assert "There is no memory to show." not in Page(graph_page(graph, title="Graph")).texts


def test_a_derived_memory_is_joined_to_its_evidence(orc: Orchestrator) -> None:
    evidence = orc.remember("The oven is slow.")
    derived = orc.remember("The bread is late.", derived_from=[evidence])
    subgraph = orc.graph.subgraph([evidence, derived])
    assert subgraph.edges == ()
    [edge] = Page(graph_page(subgraph, title="A")).data["edges"]
    assert (edge["source"], edge["label"], edge["target"]) == (derived, "DerivedFrom", evidence)


def test_open_contradictions_differ_from_decided_ones(orc: Orchestrator) -> None:
    first, second, third = (
        orc.remember(f"The {shop} sells tea.") for shop in ("bakery", "dairy", "mill")
    )
    orc.relate(first, "Contradicts", second)
    edge_id = orc.relate(second, "Contradicts", third)
    orc.contradictions.dismiss(edge_id, reason="asked")
    edges = Page(graph_page(orc.graph.subgraph([first], hops=2), title="A")).data["edges"]
    labels = {(edge["label"], edge["open"]) for edge in edges}
    assert labels == {("Contradicts, open", True), ("Contradicts, decided", False)}


def test_a_picture_is_a_page() -> None:
    require_html(Path("a.b.HTML"))
    for name in ("picture", "picture.svg", "html"):
        with pytest.raises(InvalidInput, match=r"must end with \.html"):
            require_html(Path(name))


def test_confidence_decays_from_its_last_access() -> None:
    first = ConfidencePeriod(since=0, until=10 * DAY, confidence=0.9, decay_rate=0.1, idle_since=0)
    second = ConfidencePeriod(
        since=10 * DAY, until=20 * DAY, confidence=0.5, decay_rate=0.0, idle_since=0
    )
    assert first.at(5 * DAY, 0.8) == effective_confidence(0.9, 0.1, 5.0, 0.8)
    statuses = [_status("active", 0, 15 * DAY), _status("superseded", 15 * DAY, None)]
    html = confidence_page([first, second], statuses, title=HOSTILE, now_ms=20 * DAY, exponent=0.8)
    data = Page(html).data
    assert data["spans"] == [["active", 0, 15 * DAY], ["superseded", 15 * DAY, 20 * DAY]]
    times, stored, effective = data["columns"]
    assert (times[0], times[-1]) == (0, 20 * DAY / 1_000)
    assert (stored[0], stored[-1], effective[0], effective[-1]) == (0.9, 0.5, 0.9, 0.5)
    middle = times.index(5 * DAY / 1_000)
    assert effective[middle] == first.at(5 * DAY, 0.8)


def test_confidences_hold_from_a_change_or_an_access_to_the_next_one(
    orc: Orchestrator, clock: FixedClock
) -> None:
    start = clock.now_ms()
    memory_id = orc.remember("The shop closes at six.", confidence=0.6)
    clock.advance(days=2)
    assert orc.recall("shop closes").ids == (memory_id,)
    clock.advance(days=2)
    orc.confirm(memory_id)
    clock.advance(days=2)
    impact = orc.graph.impact(memory_id)
    assert accesses_of(impact) == [start + 2 * DAY]
    # A recall as of a past time is no access.
    assert orc.recall("shop closes", as_of=clock.now_ms()).ids == (memory_id,)
    assert accesses_of(orc.graph.impact(memory_id)) == [start + 2 * DAY]
    history = orc.history.get(memory_id)
    periods = confidence_periods(history, accesses_of(impact))
    ends = [(item.since - start, item.until - start, item.confidence) for item in periods]
    assert ends == [(0, 2 * DAY, 0.6), (2 * DAY, 4 * DAY, 0.6), (4 * DAY, 6 * DAY, 1.0)]
    assert [item.idle_since - start for item in periods] == [0, 2 * DAY, 2 * DAY]


def test_a_curve_has_a_bounded_number_of_points() -> None:
    periods = [
        ConfidencePeriod(at * DAY, (at + 1) * DAY, 0.9, 0.1, at * DAY) for at in range(2_000)
    ]
    statuses = [_status("active", 0, None)]
    html = confidence_page(periods, statuses, title="t", now_ms=2_000 * DAY, exponent=0.8)
    assert len(Page(html).data["columns"][0]) <= 6_000


def test_a_bulletin_shows_what_it_kept_added_and_left_out() -> None:
    bulletins = [
        DrawnBulletin(0, 1, frozenset("abc")),
        DrawnBulletin(DAY, 2, frozenset("bcd")),
        DrawnBulletin(2 * DAY, 1, frozenset("bcd")),
    ]
    assert changes(bulletins) == [(0, 3, 0), (2, 1, 1), (3, 0, 0)]
    data = Page(bulletin_page(bulletins, title="Bulletins")).data
    assert data["counts"] == [[0, 2, 3], [3, 1, 0], [0, 1, 0]]
    empty = Page(bulletin_page([], title="None"))
    assert "No bulletin has been delivered yet." in empty.texts


def _status(status: str, since: int, until: int | None) -> StatusPeriod:
    return StatusPeriod(
        status=MemoryStatus(status), since=since, until=until, actor="a", reason=None
    )
