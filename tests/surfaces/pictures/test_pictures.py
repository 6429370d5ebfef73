"""Pictures: the same ones for the same values, whatever texts they hold."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from memgraph import MemoryService, Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import ExtraMissing, InvalidInput
from memgraph.model.enums import MemoryStatus
from memgraph.model.graph import Subgraph
from memgraph.model.values import StatusPeriod
from memgraph.rules.decay import effective_confidence
from memgraph.surfaces.cli.commands.pictures import _confidence
from memgraph.surfaces.pictures import canvas, graphs, timelines
from memgraph.surfaces.pictures.canvas import SIDES, Box, TextTable, box_of, labelled, page
from memgraph.surfaces.pictures.graphs import listings, picture, places
from memgraph.surfaces.pictures.timelines import (
    ConfidencePeriod,
    DrawnBulletin,
    accesses_of,
    bulletin_picture,
    changes,
    confidence_picture,
    held_of,
)

DAY = 86_400_000
HOSTILE = '<script>alert(1)</script> & "quoted" $\\frac{x}$ 日本語 \u202e \x1b[31m ]]> --> {{ x }}'
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def graph(orc: Orchestrator) -> Subgraph:
    hostile = orc.remember(HOSTILE, type="Decision")
    other = orc.remember("$unbalanced ^{ markup", tags=["<b>"])
    gone = orc.remember("The shop closes at six.")
    orc.relate(hostile, "CausedBy", other, reason=HOSTILE[:40])
    orc.relate(other, "Updates", gone)
    return orc.graph.subgraph([hostile], hops=2)


class Elements(HTMLParser):
    """The elements of a page and all attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_graph_is_drawn_the_same_on_every_call(graph: Subgraph) -> None:
    first = picture(graph, "svg", title="A graph")
    assert first == picture(graph, "svg", title="A graph")
    assert ET.fromstring(first).tag == "{http://www.w3.org/2000/svg}svg"
    assert picture(graph, "png", title="A graph").startswith(PNG)


def test_texts_from_outside_are_texts_in_every_form(graph: Subgraph) -> None:
    drawn = picture(graph, "svg", title=HOSTILE)
    assert {each.tag.partition("}")[2] for each in ET.fromstring(drawn).iter()} <= {
        *("svg", "metadata", "RDF", "Work", "type", "format", "creator", "Agent", "title"),
        *("defs", "style", "g", "path", "use", "clipPath", "rect"),
    }
    found = Elements(picture(graph, "html", title=HOSTILE).decode())
    assert not {"script", "img", "iframe", "b", "object"} & set(found.tags)
    assert not [name for name in found.names if name.startswith("on") or name in ("src", "href")]
    assert any("alert(1)" in text for text in found.texts)


def test_an_empty_graph_says_so(graph: Subgraph) -> None:
    empty = graph.model_copy(update={"nodes": (), "edges": (), "seeds": ()})
    assert places(empty) == {}
    assert picture(empty, "png", title="Empty") != picture(graph, "png", title="Empty")


def test_what_was_derived_is_joined_to_its_ground(orc: Orchestrator) -> None:
    ground = orc.remember("The oven is slow.")
    derived = orc.remember("The bread is late.", derived_from=[ground])
    found = orc.graph.subgraph([ground, derived])
    assert found.edges == ()
    [told] = [each.rows for each in listings(found) if each.caption == "Edges"]
    assert told == [(derived, "DerivedFrom", ground, "")]
    bare = found.model_copy(update={"derivations": ()})
    assert picture(found, "svg", title="A") != picture(bare, "svg", title="A")
    assert [text for text, *_ in legend_of(found)] == ["Fact", "DerivedFrom"]


def test_the_legend_tells_open_contradictions_from_decided_ones(orc: Orchestrator) -> None:
    one, other, third = (
        orc.remember(f"The {shop} sells tea.") for shop in ("bakery", "dairy", "mill")
    )
    orc.relate(one, "Contradicts", other)
    edge = orc.relate(other, "Contradicts", third)
    before = legend_of(orc.graph.subgraph([one], hops=2))
    assert [text for text, *_ in before] == ["Fact", "Contradicts, open"]
    orc.contradictions.dismiss(edge, reason="asked")
    after = legend_of(orc.graph.subgraph([one], hops=2))
    assert [text for text, *_ in after] == ["Fact", "Contradicts, decided", "Contradicts, open"]
    styles = dict(after)
    assert styles["Contradicts, decided"] != styles["Contradicts, open"]


def legend_of(graph: Subgraph) -> list[tuple[str, str]]:
    """The texts of a drawing's legend, each with the style of its line."""
    axes = Figure().add_subplot()
    graphs._draw(axes, graph, (9.0, 6.0))
    legend = axes.get_legend()
    assert legend is not None
    styles = [each.get_linestyle() for each in legend.get_lines()]
    return list(zip([each.get_text() for each in legend.get_texts()], styles, strict=True))


def test_labels_do_not_lie_on_one_another(graph: Subgraph) -> None:
    ids = [node.memory_id for node in graph.nodes]
    apart = dict(zip(ids, [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)], strict=True))
    assert [each.memory_id for each in labelled(graph, apart, (9.0, 6.0))] == ids
    lone = graph.model_copy(update={"edges": ()})
    around = [(0.5, 0.5), (0.5, 0.47), (0.5, 0.53)]
    crowd = dict(zip(ids, around, strict=True))
    [*_, last] = labelled(lone, crowd, (9.0, 6.0))
    for one in labelled(lone, crowd, (9.0, 6.0)):
        for other in ids:
            x, y = (each * side / 1.24 for each, side in zip(crowd[other], (9, 6), strict=True))
            at = tuple(
                each * side / 1.24 for each, side in zip(crowd[one.memory_id], (9, 6), strict=True)
            )
            box = box_of(one.text, at, one.side)
            assert other == one.memory_id or not box.meets(Box(x, y, x, y))
    assert all(len(line) <= 24 for line in last.text.splitlines())


def test_a_label_stands_where_no_edge_of_its_dot_leads(graph: Subgraph) -> None:
    edge = graph.edges[0]
    others = [each.memory_id for each in graph.nodes if each.memory_id != edge.from_id]
    below = {edge.from_id: (0.5, 1.0), others[0]: (0.5, 0.0), others[1]: (0.5, 0.5)}
    one = graph.model_copy(update={"edges": (edge,)})
    sides = {each.memory_id: each.side for each in labelled(one, below, (9.0, 6.0))}
    assert sides[edge.from_id] == SIDES[1]
    assert sides[edge.to_id] == SIDES[0]


def test_a_label_between_two_edges_stands_in_a_corner(graph: Subgraph) -> None:
    middle, one, other = (each.memory_id for each in graph.nodes)
    edge = graph.edges[0]
    edges = tuple(
        edge.model_copy(update={"from_id": middle, "to_id": each}) for each in (one, other)
    )
    across = {one: (0.0, 1.0), middle: (0.5, 0.5), other: (1.0, 0.0)}
    joined = graph.model_copy(update={"edges": edges})
    [side] = [
        each.side for each in labelled(joined, across, (9.0, 9.0)) if each.memory_id == middle
    ]
    assert (side.x, side.y) in {(1, 1), (-1, -1)}


def test_places_fill_a_square(graph: Subgraph) -> None:
    found = places(graph)
    for axis in range(2):
        values = [place[axis] for place in found.values()]
        assert (min(values), max(values)) == (0.0, 1.0)


def test_a_file_is_named_after_what_it_holds() -> None:
    assert [canvas.form_of(Path(f"a.b{each}")) for each in (".svg", ".PNG", ".html")] == [
        *("svg", "png", "html")
    ]
    for name in ("picture", "picture.jpg", "svg"):
        with pytest.raises(InvalidInput):
            canvas.form_of(Path(name))


def test_who_has_no_matplotlib_is_told_which_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "find_spec", lambda _: None)
    with pytest.raises(ExtraMissing) as missing:
        canvas.drawn(lambda _: None, size=(1, 1), form="svg")
    assert missing.value.details["extra"] == "pictures"


def test_letters_that_the_own_font_lacks_are_taken_from_one_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = ["Unifont", "Noto Sans CJK SC", "Something Else", "DejaVu Sans"]
    monkeypatch.setattr(fontManager, "get_font_names", lambda: installed)
    assert canvas.families() == ["DejaVu Sans", "Noto Sans CJK SC", "Unifont"]
    monkeypatch.setattr(canvas, "families", lambda: ["DejaVu Sans", "DejaVu Serif"])
    used = []

    def fill(figure: Figure) -> None:
        used.append(mpl.rcParams["font.family"])

    canvas.drawn(fill, size=(1, 1), form="svg")
    assert used == [["DejaVu Sans", "DejaVu Serif"]]


def test_confidence_decays_from_its_last_access_and_is_drawn_with_the_statuses() -> None:
    held = [
        ConfidencePeriod(since=0, until=10 * DAY, confidence=0.9, decay_rate=0.1, idle_since=0),
        ConfidencePeriod(
            since=10 * DAY, until=20 * DAY, confidence=0.5, decay_rate=0.0, idle_since=0
        ),
    ]
    assert held[0].at(5 * DAY, 0.8) == effective_confidence(0.9, 0.1, 5.0, 0.8)
    assert held[1].at(15 * DAY, 0.8) == 0.5
    periods = [_period("active", 0, 15 * DAY), _period("superseded", 15 * DAY, None)]

    def draw(values: list[ConfidencePeriod]) -> bytes:
        return confidence_picture(
            values, periods, "svg", title=HOSTILE, now_ms=20 * DAY, exponent=0.8
        )

    assert draw(held) == draw(held) != draw(held[:1])


def test_values_are_held_from_a_change_or_an_access_to_the_next_one(
    orc: Orchestrator, clock: FixedClock
) -> None:
    start = clock.now_ms()
    memory_id = orc.remember("The shop closes at six.", confidence=0.6)
    clock.advance(days=2)
    assert orc.recall("shop closes").ids == (memory_id,)
    clock.advance(days=2)
    orc.confirm(memory_id)
    clock.advance(days=2)
    found = orc.graph.impact(memory_id)
    assert accesses_of(found) == [start + 2 * DAY]
    # Who asks how it was then makes no access.
    assert orc.recall("shop closes", as_of=clock.now_ms()).ids == (memory_id,)
    assert accesses_of(orc.graph.impact(memory_id)) == [start + 2 * DAY]
    history = orc.history.get(memory_id)
    assert history.at == clock.now_ms()
    held = held_of(history, accesses_of(found))
    ends = [(each.since - start, each.until - start, each.confidence) for each in held]
    assert ends == [(0, 2 * DAY, 0.6), (2 * DAY, 4 * DAY, 0.6), (4 * DAY, 6 * DAY, 1.0)]
    assert [each.idle_since - start for each in held] == [0, 2 * DAY, 2 * DAY]


def test_the_command_draws_with_the_settings_and_the_clock_of_the_orchestrator(
    tmp_path: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = {}
    monkeypatch.setattr(
        timelines, "confidence_picture", lambda *_, **told: drawn.update(told) or b""
    )
    config = {"memory.decay.exponent": 0.25}
    with MemoryService(
        tmp_path / "root", environ={}, background=False, clock=clock, config=config
    ) as service:
        orc = service.orchestrator("orc-1", create=True)
        clock.advance(days=3)
        _confidence(orc, tmp_path / "a.svg", "svg", orc.remember("The shop closes at six."))
    assert (drawn["exponent"], drawn["now_ms"]) == (0.25, clock.now_ms())


def test_a_curve_has_a_bounded_number_of_points() -> None:
    def points(count: int) -> int:
        held = [
            ConfidencePeriod(at * DAY, (at + 1) * DAY, 0.9, 0.1, at * DAY) for at in range(count)
        ]
        periods = [_period("active", 0, None)]
        svg = confidence_picture(held, periods, "svg", title="t", now_ms=count * DAY, exponent=0.8)
        return len(svg)

    assert points(2_000) < 1_000_000


def test_a_bulletin_is_told_by_what_it_kept_added_and_left_out() -> None:
    shown = [
        DrawnBulletin(0, 1, frozenset("abc")),
        DrawnBulletin(DAY, 2, frozenset("bcd")),
        DrawnBulletin(2 * DAY, 1, frozenset("bcd")),
    ]
    assert changes(shown) == [(0, 3, 0), (2, 1, 1), (3, 0, 0)]
    assert changes([]) == []
    drawn = bulletin_picture(shown, "svg", title="Bulletins")
    assert drawn == bulletin_picture(shown, "svg", title="Bulletins")
    assert bulletin_picture([], "png", title="None").startswith(PNG)
    assert "left out" in bulletin_picture(shown, "html", title="Bulletins").decode()


def test_a_page_allows_nothing_but_its_own_style() -> None:
    text = page(HOSTILE, b"<?xml?><svg></svg>", [TextTable("T", ("a",), [(HOSTILE,)])], notes=["n"])
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    assert text.count("<svg") == 1
    assert "<script" not in text


def _period(status: str, since: int, until: int | None) -> StatusPeriod:
    return StatusPeriod(
        status=MemoryStatus(status), since=since, until=until, actor="a", reason=None
    )
