"""The graph explorer and uploads, used as a person uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from console_worlds import NEW_LINE, OLD_LINE, World, crowd, documents

from memgraph import MemoryService
from memgraph.model.enums import EdgeType

if TYPE_CHECKING:
    from conftest import Opening, Tab
    from server_processes import ServerProcess

Served = tuple[str, World]
SHOWN = "memgraphGraph.nodes('[!document]').not('.left-out').map(each => each.data('summary'))"
JOINED = (
    "memgraphGraph.edges().not('.left-out')"
    ".filter(each => each.connectedNodes('.left-out').empty()).map(each => each.id())"
)
EDGES = "memgraphGraph.edges().not('.left-out').map(each => each.data('type')).sort()"
CROWD = 600


@pytest.fixture(scope="module")
def served_crowd(server: ServerProcess) -> tuple[Served, list[str]]:
    """Many memories, and their ids."""
    world, ids = crowd(server.root, "crowd", CROWD)
    return (server.url, world), ids


def _graph(tab: Tab, query: str = "") -> None:
    tab.open()
    tab.open(f"graph{query}")
    tab.drawn()


def _shown(tab: Tab) -> set[str]:
    found: list[str] = tab.page.evaluate(SHOWN)
    return set(found)


def _count(tab: Tab) -> int:
    """So many memories are shown; two of them may say the same."""
    found: list[str] = tab.page.evaluate(SHOWN)
    return len(found)


def test_what_is_in_dispute_and_new_is_drawn_filtered_and_shown_at_an_earlier_time(
    look: Opening, served: Served
) -> None:
    with look(served) as tab:
        _graph(tab)
        assert {OLD_LINE, NEW_LINE} <= _shown(tab)
        assert "Contradicts" in tab.page.evaluate(EDGES)
        open_ones = "memgraphGraph.edges('[?open]').map(each => each.style('line-color'))"
        # A contradiction and a probable change.
        assert tab.page.evaluate(open_ones) == ["rgb(179,19,43)"] * 2
        told = tab.page.locator("#graph-told").inner_text()
        assert told.startswith(f"{_count(tab)} memories and ")
        replaced = "The festival wants 400 posters on recycled paper."
        now = _shown(tab)
        assert replaced in now
        tab.page.get_by_label("superseded").uncheck()
        assert replaced not in _shown(tab)
        tab.page.get_by_label("Contradicts").uncheck()
        assert "Contradicts" not in tab.page.evaluate(EDGES)
        tab.page.get_by_label("Observation", exact=True).uncheck()
        assert not {OLD_LINE, NEW_LINE} & _shown(tab)
        assert len(tab.page.evaluate(JOINED)) == 1
        told = tab.page.locator("#graph-told").inner_text()
        assert told == f"{_count(tab)} memories and 1 edge"
        _graph(tab)
        with tab.page.expect_response(lambda each: "as_of=" in each.url):
            tab.page.locator("#graph-time").fill("1")
        tab.page.wait_for_function(f"() => memgraphGraph.nodes('[!document]').length < {len(now)}")
        assert tab.page.locator("#graph-time").get_attribute("aria-valuetext") != "now"
        assert _shown(tab) < now
        tab.page.locator("#graph-list button").first.click()
        tab.page.get_by_role("link", name="Open memory").click()
        tab.page.wait_for_load_state()
        assert tab.page.locator(".notice.then").count() == 1


def test_a_memory_is_chosen_and_expanded_from_the_list_by_keyboard(
    look: Opening, served: Served
) -> None:
    with look(served) as tab:
        _graph(tab)
        alone = tab.page.evaluate(
            "memgraphGraph.nodes('[!document]')"
            ".filter(each => each.data('summary').startsWith('The counter'))"
            ".map(each => each.id())[0]"
        )
        _graph(tab, f"?seed={alone}&max_nodes=1")
        assert len(_shown(tab)) == 1
        tab.page.locator("#graph-list button").first.focus()
        tab.page.keyboard.press("Enter")
        assert "The counter" in tab.page.locator("#graph-chosen .content").inner_text()
        link = tab.page.get_by_role("link", name="Open memory").get_attribute("href")
        assert link == f"/console/{tab.world.name}/memories/{alone}"


def _ring(world: World, count: int) -> list[str]:
    """So many memories in a ring, each joined to the next."""
    with MemoryService(world.root, environ={}, background=False) as service:
        orc = service.orchestrator(world.name)
        ids = [orc.remember(f"Roller {number} turns the next one.") for number in range(count)]
        for one, following in zip(ids, [*ids[1:], ids[0]], strict=True):
            orc.relate(one, EdgeType.RELATED_TO, following)
    return ids


def test_expanding_moves_nothing_that_stands_and_joins_what_was_asked_for_apart(
    look: Opening, served_crowd: tuple[Served, list[str]]
) -> None:
    served, _ = served_crowd
    first, second, _third, _fourth, last = _ring(served[1], 5)
    with look(served) as tab:
        _graph(tab, f"?seed={first}")
        where = (
            "Object.fromEntries("
            "memgraphGraph.nodes('[!document]').map(n => [n.id(), n.position()]))"
        )
        before = tab.page.evaluate(where)
        # The third comes with the second and the fourth with the last: neither brings their edge.
        for each in (second, last):
            tab.page.evaluate(f"void memgraphGraph.getElementById('{each}').select()")
            tab.page.get_by_role("button", name="Expand").click()
            tab.page.wait_for_function(
                "() => / edges?$/.test(document.getElementById('graph-told').textContent)"
            )
            tab.page.evaluate("void memgraphGraph.elements().unselect()")
        told = tab.page.locator("#graph-told").inner_text()
        assert told == "5 memories and 5 edges"
        after = tab.page.evaluate(where)
        assert {each: after[each] for each in before} == before


def test_a_refusal_is_told_in_the_servers_words_and_so_is_a_server_that_does_not_answer(
    look: Opening, served: Served
) -> None:
    with look(served, allowed=("console: Failed to load resource",)) as tab:
        tab.open()
        tab.open("graph?max_nodes=many")
        assert "max_nodes must be a whole number" in tab.page.locator("main").inner_text()
        _graph(tab)
        tab.page.route("**/graph/data**", lambda each: each.abort())
        tab.page.locator("#graph-time").fill("500")
        told = tab.page.get_by_text("the server did not respond")
        told.wait_for()
        assert told.count() == 1


def test_a_graph_of_hundreds_is_drawn_alike_each_time(
    look: Opening, served_crowd: tuple[Served, list[str]]
) -> None:
    served, _ = served_crowd
    where = (
        "memgraphGraph.nodes('[!document]').map(n => [n.id(), Math.round(n.position().x)]).sort()"
    )
    with look(served) as tab:
        _graph(tab)
        first: list[Any] = tab.page.evaluate(where)
        assert len(first) == 300
        assert "max_nodes" in tab.page.locator("#graph-told").inner_text()
        tab.page.reload()
        tab.drawn()
        assert tab.page.evaluate(where) == first


def test_a_sent_file_is_watched_until_its_manifest_is_there(look: Opening, served: Served) -> None:
    text = b"# Ink\n\nBlue ink is out of stock until 3 July.\n"
    with look(served) as tab:
        tab.open()
        tab.open("activity")
        tab.page.set_input_files(
            "#files", {"name": "ink.md", "mimeType": "text/markdown", "buffer": text}
        )
        tab.page.get_by_role("button", name="Send").click()
        tab.page.locator(".state .badge.good").wait_for()
        assert tab.page.get_by_role("heading", level=1).inner_text() == "ink.md"
        # The heading is no memory.
        [memory] = tab.page.locator("main a[href*='/memories/']").all()
        assert "Blue ink" in memory.inner_text()


def test_parts_of_a_document_stand_in_its_box(look: Opening, server: ServerProcess) -> None:
    world = documents(server.root, "documents")
    with look((server.url, world)) as tab:
        _graph(tab)
        boxes = "memgraphGraph.nodes('[?document]').map(each => each.data('label')).sort()"
        assert tab.page.evaluate(boxes) == ["0001-storage.md", "0002-queue.md"]
        names = tab.page.evaluate(
            "memgraphGraph.nodes('[!document]').map(each => each.data('label')).sort()"
        )
        assert len(set(names)) == len(names)
        assert any(each.startswith("Storage (context): The disks are full") for each in names)
        # Nothing outside of its own box, and no box on another one.
        overlaps = tab.page.evaluate(
            "(() => { const all = memgraphGraph.nodes('[?document]').map(each =>"
            " each.boundingBox({ includeLabels: false })); const [a, b] = all;"
            " return a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2; })()"
        )
        assert overlaps is False
        # The summary of both is drawn with the derivations from it.
        assert tab.page.evaluate(EDGES).count("DerivedFrom") == 2
