"""The explorers' pages by request: the graph's data, recall, bulletins, files, jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from console_browsing import HOME, Browser, Seen, harmless, token_of
from serving_worlds import Served

from memgraph import Orchestrator
from memgraph.clock import FixedClock, iso
from memgraph.model.access import Permission
from memgraph.model.enums import EdgeType
from memgraph.rules.bulletin import BulletinSection
from memgraph.surfaces.web.pages import graph as exploring
from memgraph.surfaces.web.pages import handed_out
from memgraph.surfaces.web.pages.handed_out import differing

READING = frozenset({Permission.READ})


def drawn(browser: Browser, query: str = "") -> dict[str, Any]:
    """Return the JSON that the explorer draws."""
    found: dict[str, Any] = json.loads(browser.page(f"{HOME}graph/data{query}"))
    return found


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


def test_the_first_view_has_the_way_to_what_was_taken_back(
    browser: Browser, orc: Orchestrator
) -> None:
    ground = orc.remember("The paper is recycled.")
    stands = orc.remember("We order recycled paper.", derived_from=(ground,))
    orc.remember("The trimmer is repaired.")
    orc.retract(ground, reason="a mistake")
    found = drawn(browser, "?max_nodes=2")
    assert found["cut_reasons"] == ["max_nodes"]
    assert {each["id"]: each["status"] for each in found["nodes"]} == {
        stands: "active",
        ground: "retracted",
    }
    assert [(each["type"], each["stale"]) for each in found["edges"]] == [("DerivedFrom", True)]
    assert {"active", "superseded", "retracted"} <= set(
        harmless(browser.page(f"{HOME}graph")).values("value")
    )


def between(browser: Browser, *ids: str, query: str = "", token: str | None = None) -> Any:
    """Return the edges between drawn memories, as the explorer's script requests them."""
    given = token_of(browser.page()) if token is None else token
    return browser.post(f"{HOME}graph/edges{query}", token=given, ids=" ".join(ids))


def test_what_joins_memories_of_several_answers_is_asked_for_as_of_a_time(
    browser: Browser, orc: Orchestrator, clock: FixedClock
) -> None:
    one, other, third = (orc.remember(f"Press {name} is blue.") for name in ("A", "B", "C"))
    early = orc.relate(one, EdgeType.RELATED_TO, other)
    then = iso(clock.now_ms())
    clock.advance(ms=60_000)
    late = orc.relate(other, EdgeType.PART_OF, third)
    orc.retract(third, reason="a mistake")
    found = between(browser, one, other, third).json()["edges"]
    assert {each["id"] for each in found} == {early, late}
    assert [each["id"] for each in between(browser, one, third).json()["edges"]] == []
    past = between(browser, one, other, third, query=f"?as_of={then}").json()["edges"]
    assert [each["id"] for each in past] == [early]


def test_what_joins_a_crowd_is_bounded_and_takes_a_token(browser: Browser) -> None:
    ids = [f"fact_{number:027}" for number in range(exploring.MOST_NODES + 1)]
    assert between(browser, *ids[1:]).json() == {"edges": []}
    assert between(browser, *ids).status_code == 422
    assert between(browser, "").status_code == 422
    assert between(browser, ids[0], token="0" * 64).status_code == 403


def test_addresses_that_a_script_goes_on_from_are_without_a_time(browser: Browser) -> None:
    then = "as_of=2026-01-01T00:00:00Z"
    graph = Seen(browser.page(f"{HOME}graph?{then}"))
    assert graph.values("data-memories") == [f"{HOME}memories"]
    assert Seen(browser.page(f"{HOME}ingest?{then}")).values("data-url") == [f"{HOME}ingest"]


@pytest.mark.parametrize(
    "query",
    [
        *("?hops=9", "?hops=x", "?max_nodes=99999", "?as_of=never"),
        f"?{'&'.join(f'seed=fact_{number}' for number in range(exploring.MAX_SEEDS + 1))}",
    ],
)
def test_a_bound_out_of_range_is_told(browser: Browser, query: str) -> None:
    answer = browser.open(f"{HOME}graph/data{query}")
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text


def test_a_question_stands_in_no_address_and_its_answer_tells_every_factor(
    browser: Browser, orc: Orchestrator
) -> None:
    memory = orc.remember("The shop closes at eight.", importance=90)
    sent = browser.send(f"{HOME}recall", page=f"{HOME}recall", query="When does the shop close?")
    assert sent.status_code == 200
    page = harmless(sent.text)
    assert f"{HOME}memories/{memory}" in page.values("href")
    assert {"text", "importance", "place 1"} <= {each.strip() for each in page.text.split("\n")}
    assert "rcl_" in page.text


@pytest.mark.parametrize(
    "fields", [{}, {"query": "x", "top_n": "0"}, {"query": "x", "top_n": "101"}, {"as_of": "then"}]
)
def test_a_wrong_question_is_told_on_its_own_page(browser: Browser, fields: dict[str, str]) -> None:
    sent = browser.send(f"{HOME}recall", page=f"{HOME}recall", **fields)
    assert sent.status_code == 422
    assert "alert" in Seen(sent.text).values("role")


def test_a_bulletin_lists_its_memories_and_those_before_it(
    served: Served, orc: Orchestrator, clock: FixedClock
) -> None:
    todo = orc.remember("Mend the trimmer.", type="Todo")
    before = iso(clock.now_ms())
    orc.bulletin()
    clock.advance(days=1)
    orc.remember("Buy blue ink.", type="Todo")
    with Browser(served, served.key()) as browser:
        page = harmless(browser.page(f"{HOME}bulletin"))
        assert f"{HOME}memories/{todo}" in page.values("href")
        compared = next(each for each in page.values("href") if "against=" in each)
        shown = harmless(browser.page(compared))
        assert {"ins"} <= shown.tags
        assert "Buy blue ink." in shown.text
        assert "Buy blue ink." not in browser.page(f"{HOME}bulletin?as_of={before}")
    with Browser(served, served.key(permissions=READING)) as reader:
        assert "Handed out" not in reader.page(f"{HOME}bulletin")
        assert reader.open(compared).status_code == 403


def test_a_section_of_a_bulletin_that_is_full_does_not_say_that_there_is_nothing(
    browser: Browser, orc: Orchestrator
) -> None:
    assert "No entries." in Seen(browser.page(f"{HOME}bulletin")).text
    for number in range(20):
        for kind in ("Goal", "Todo", "Decision", "Preference", "Fact"):
            sure = 0.3 if kind == "Preference" else 1.0
            text = f"{kind} {number}: {'mend the press ' * 12}"
            orc.remember(text, type=kind, confidence=sure)
    issued = orc.bulletin().bulletin
    full = [each for each, count in issued.left_out.items() if count]
    empty = [each for each in full if not issued.sections[each]]
    assert empty
    assert empty != full
    page = browser.page(f"{HOME}bulletin")
    for section, lines in issued.sections.items():
        title, how_many = BulletinSection(section).heading, issued.left_out[section]
        said = page.partition(f"<h2>{title}</h2>")[2].partition("<h2")[0]
        assert (f"{how_many} left out for lack of space." in said) == (section in empty)
        assert (f"{how_many} more not shown" in said) == (section in full and bool(lines))
        assert ("No entries." in said) == (not lines and section not in full)


@pytest.mark.parametrize("at_once", [1, 1_000])
def test_as_of_a_time_no_later_bulletin_was_handed_out(
    served: Served,
    orc: Orchestrator,
    clock: FixedClock,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
) -> None:
    monkeypatch.setattr(handed_out, "AT_ONCE", at_once)
    times = []
    for number in range(4):
        orc.remember(f"Mend press {number}.", type="Todo")
        clock.advance(days=1)
        orc.bulletin()
        times.append(clock.now_ms())
    newest_first = [each.bulletin_id for each in orc.receipts.bulletins().bulletins]
    clock.advance(days=1)

    def listed(as_of: int) -> list[str]:
        page = Seen(browser.page(f"{HOME}bulletin?as_of={iso(as_of)}"))
        addresses = [
            each.partition("?")[0] for each in page.values("href") if "against=" not in each
        ]
        begin = f"{HOME}bulletins/"
        return [each.removeprefix(begin) for each in addresses if each.startswith(begin)]

    with Browser(served, served.key()) as browser:
        assert listed(times[1]) == newest_first[2:]
        assert listed(times[1] - 1) == newest_first[3:]
        assert listed(times[0] - 1) == []
        assert listed(times[3]) == newest_first


def test_lines_of_two_texts_are_told_apart_in_order() -> None:
    assert differing("a\nb\nc", "a\nx\nc\nd") == [
        ("same", "a"),
        ("removed", "b"),
        ("added", "x"),
        ("same", "c"),
        ("added", "d"),
    ]
    assert differing("", "") == []


def test_a_file_is_taken_with_a_token_and_by_who_may_write(
    browser: Browser, served: Served
) -> None:
    address, text = f"{HOME}ingest/ink.md", b"# Ink\n\nBlue ink is out of stock.\n"
    token = token_of(browser.page(f"{HOME}recall"))
    assert browser.client.put(address, content=text).status_code == 403
    sent = browser.client.put(address, content=text, headers={"x-csrf-token": token})
    assert sent.status_code == 202
    told = sent.json()
    assert told["known"] is None
    harmless(browser.page(told["page"]))
    assert json.loads(browser.page(told["state"]))["status"] in ("waiting", "processed")
    with Browser(served, served.key(permissions=READING)) as reader:
        headers = {"x-csrf-token": token_of(reader.page(f"{HOME}recall"))}
        assert reader.client.put(address, content=text, headers=headers).status_code == 403
        assert 'id="drop"' not in reader.page(f"{HOME}ingest")


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
