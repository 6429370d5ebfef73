"""The explorer and uploads by request: the data of the graph, files, what was erased."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import httpx
from console_browsing import HOME, Browser, harmless
from serving_worlds import Served

from memgraph import Orchestrator
from memgraph.clock import FixedClock, iso
from memgraph.model.access import Permission
from memgraph.model.enums import EdgeType
from memgraph.surfaces.web.pages import graph as exploring

READING = frozenset({Permission.READ})


def drawn(browser: Browser, query: str = "") -> dict[str, Any]:
    """Return the JSON that the explorer draws."""
    return json.loads(browser.page(f"{HOME}graph/data{query}"))


def names(found: dict[str, Any]) -> set[str]:
    return {each["id"] for each in found["nodes"]}


def test_the_graph_is_what_is_disputed_and_new_else_what_is_named(
    browser: Browser, orc: Orchestrator
) -> None:
    one, other, third = (orc.remember(f"Press {name} is blue.") for name in ("A", "B", "C"))
    edge = orc.relate(other, EdgeType.CONTRADICTS, one)
    found = drawn(browser)
    assert names(found) == {one, other, third}
    assert [(each["id"], each["open"]) for each in found["edges"]] == [(edge, True)]
    assert names(drawn(browser, f"?seed={third}")) == {third}
    assert drawn(browser, "?seed=fact_nowhere")["missing"] == ["fact_nowhere"]


def test_the_first_view_has_what_was_taken_back(browser: Browser, orc: Orchestrator) -> None:
    ground = orc.remember("The paper is recycled.")
    stands = orc.remember("We order recycled paper.", derived_from=(ground,))
    orc.retract(ground, reason="a mistake")
    found = drawn(browser)
    assert {each["id"]: each["status"] for each in found["nodes"]} == {
        stands: "active",
        ground: "retracted",
    }
    assert [each["type"] for each in found["edges"]] == ["DerivedFrom"]
    page = harmless(browser.page(f"{HOME}graph?as_of=2026-01-01T00:00:00Z"))
    assert {"active", "superseded", "retracted"} <= set(page.values("value"))
    # Addresses that a script goes on from are without a time.
    assert page.values("data-memories") == [f"{HOME}memories"]


def test_what_is_expanded_comes_with_its_edges_as_of_a_time(
    browser: Browser, orc: Orchestrator, clock: FixedClock
) -> None:
    one, other, third = (orc.remember(f"Press {name} is blue.") for name in ("A", "B", "C"))
    fourth = orc.remember("Press D is blue.")
    early = orc.relate(one, EdgeType.RELATED_TO, other)
    then = iso(clock.now_ms())
    clock.advance(ms=60_000)
    late = orc.relate(other, EdgeType.PART_OF, third)
    first = orc.relate(third, EdgeType.RELATED_TO, fourth)
    orc.retract(third, reason="a mistake")
    found = drawn(browser, f"?seed={fourth}&expand={one}&expand=fact_nowhere")
    assert names(found) == {one, other, third, fourth}
    # One joins what was found around the two.
    assert {each["id"] for each in found["edges"]} == {early, late, first}
    past = drawn(browser, f"?seed={fourth}&expand={one}&as_of={then}")
    assert [each["id"] for each in past["edges"]] == [early]
    assert names(drawn(browser, "?seed=fact_nowhere&expand=fact_nowhere")) == set()


def test_a_bound_out_of_range_is_told(browser: Browser) -> None:
    seeds = "&".join(f"seed=fact_{number}" for number in range(exploring.MAX_SEEDS + 1))
    for query in ("hops=9", "hops=x", "max_nodes=99999", "as_of=never", seeds):
        answer = browser.open(f"{HOME}graph/data?{query}")
        assert answer.status_code == 422, query
        assert 'role="alert"' in answer.text


def test_a_file_is_taken_from_who_may_write(browser: Browser, served: Served) -> None:
    address, text = f"{HOME}activity/files", b"# Ink\n\nBlue ink is out of stock.\n"

    def sent(who: Browser, *files: str) -> httpx.Response:
        return who.send(address, files=[("files", (name, text, "text/plain")) for name in files])

    page = sent(browser, "ink.md").headers["location"]
    assert hashlib.sha256(text).hexdigest() in page
    harmless(browser.page(page))
    assert sent(browser, "run.exe", "again.md").headers["location"] == f"{HOME}activity"
    assert "1 sent. Not sent: run.exe: name must end in" in browser.page(f"{HOME}activity")
    with Browser(served, served.key(permissions=READING)) as reader:
        assert sent(reader, "ink.md").status_code == 403
        assert 'id="drop"' not in reader.page(f"{HOME}activity")


def test_what_is_erased_has_one_name_on_every_page(browser: Browser, orc: Orchestrator) -> None:
    gone = orc.remember("The press of Quendolin is blue.")
    taken = orc.remember("The press of Ada is red.")
    orc.retract(taken, reason="wrong")
    orc.erasure.erase(memory_id=gone, reason="asked for", dry_run=False)
    overview = browser.page(HOME)
    for name in ("erased", "retracted"):
        assert f"<dt>{name}</dt><dd>1</dd>" in overview
    erased = browser.page(f"{HOME}memories?status=erased")
    assert gone in erased
    assert ">erased</span>" in erased
    assert taken not in erased
    retracted = browser.page(f"{HOME}memories?status=retracted")
    assert taken in retracted
    assert gone not in retracted
    statuses = {each["id"]: each["status"] for each in drawn(browser, f"?seed={gone}")["nodes"]}
    assert statuses[gone] == "erased"
    assert 'name="status" value="erased"' in browser.page(f"{HOME}graph")
