"""Every page as it is seen: in light and dark, wide and narrow, and by those who do not see it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from browsing import NARROW, WIDE
from console_worlds import World
from sampling import third

if TYPE_CHECKING:
    from conftest import Opening, Tab

Served = tuple[str, World]
AXE = Path(__file__).parent / "vendor" / "axe-core-4.14.1.min.js"
SERIOUS = frozenset({"serious", "critical"})
LISTS = (
    "",
    "?since=last+year",
    "memories",
    "memories?status=any",
    "memories?q=shop",
    "contradictions",
    "contradictions?state=changes",
    "contradictions?state=decided",
    "graph",
    "entities",
    "answers",
    "activity",
)
DETAILS = (
    *("contradictions", "contradictions?state=changes", "memories"),
    *("entities", "answers", "activity"),
)
"""Pages whose first link into their own kind is looked at, too."""
LOOKS: tuple[tuple[tuple[int, int], Literal["light", "dark"]], ...] = (
    (WIDE, "light"),
    (NARROW, "dark"),
)
"""Each size and each scheme once: colours do not depend on the size."""


def test_every_page_is_readable_and_fits(look: Opening, served: Served) -> None:
    found: dict[str, list[str]] = {}
    with look(served, allowed=("console: Failed to load",)) as tab:
        tab.page.goto(f"{tab.url}/")
        found["login"] = _faults(tab)
        tab.sign_in()
        for path in (*third(LISTS, 2), *third(_details(tab), 0)):
            tab.open(path)
            if path == "graph":
                tab.drawn()
            found[path] = _faults(tab)
        answer = tab.page.goto(f"{tab.url}/memories/fact_nowhere")
        assert answer is not None
        assert answer.status == 404
        assert tab.page.get_by_role("alert").count() == 1
        found["failure"] = _faults(tab)
    assert {path: each for path, each in found.items() if each} == {}


def test_pages_are_used_by_keyboard_alone(look: Opening, served: Served) -> None:
    """The first stop of each skips the menu, and the next ones show where they are."""
    with look(served) as tab:
        tab.open()
        for path in third(LISTS, 1):
            tab.open(path)
            tab.page.keyboard.press("Tab")
            assert tab.page.evaluate("document.activeElement.className") == "skip", path
            tab.page.keyboard.press("Enter")
            assert tab.page.evaluate("document.activeElement.id") == "content", path
            tab.page.keyboard.press("Tab")
            there, outline = tab.page.evaluate(
                "[document.querySelector('main').contains(document.activeElement),"
                " getComputedStyle(document.activeElement).outlineStyle]"
            )
            assert there, path
            assert outline != "none", path


def test_memories_are_found_and_many_are_decided_by_keyboard_alone(
    look: Opening, served: Served
) -> None:
    found: dict[str, list[str]] = {}
    with look(served, allowed=("console: Failed to load",)) as tab:
        tab.open()
        tab.page.keyboard.press("Control+k")
        tab.page.keyboard.type("risograph")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_url("**/memories?q=risograph")
        _tab_to(tab, "article input[name=chosen]")
        tab.page.keyboard.press("Space")
        _tab_to(tab, '.bulk button[value="confirm"]')
        tab.page.keyboard.press("Enter")  # the box against slips was not ticked
        tab.page.get_by_role("alert").wait_for()
        found["refused"] = _faults(tab)
        tab.open("memories?q=risograph")
        _tab_to(tab, "article input[name=chosen]")
        tab.page.keyboard.press("Space")
        _tab_to(tab, ".bulk input[name=sure]")
        tab.page.keyboard.press("Space")
        _tab_to(tab, '.bulk button[value="confirm"]')
        tab.page.keyboard.press("Enter")
        tab.page.locator(".notice[role=status]").wait_for()
        assert tab.page.locator(".notice[role=status]").inner_text() == "1 updated."
        found["decided"] = _faults(tab)
    assert {path: each for path, each in found.items() if each} == {}


def _tab_to(tab: Tab, selector: str) -> None:
    """Press Tab until an element that fits has the focus, which must then be seen."""
    for _ in range(200):
        tab.page.keyboard.press("Tab")
        fits, outline = tab.page.evaluate(
            "(selector) => [document.activeElement.matches(selector),"
            " getComputedStyle(document.activeElement).outlineStyle]",
            selector,
        )
        if fits:
            assert outline != "none", selector
            return
    raise AssertionError(f"Tab never leads to {selector}")


def test_a_picked_day_is_filled_in_and_nothing_seen_is_left_after_signing_out(
    look: Opening, served: Served
) -> None:
    with look(served) as tab:
        tab.open()
        tab.open("memories")
        tab.page.locator("input[data-fills=as_of]").fill("2020-01-02")
        assert tab.page.locator("#as_of").input_value() == "2020-01-02"
        tab.page.locator(".as-of button").click()
        assert tab.page.get_by_text("No memories match.", exact=True).is_visible()
        tab.open(f"contradictions/{tab.world.case}")
        tab.open("memories")
        tab.page.get_by_role("button", name="Sign out").click()
        tab.page.wait_for_load_state()
        for _ in range(2):
            tab.page.go_back()
            assert "/console/login" in tab.page.url
            assert "closes at" not in tab.page.content()


def test_memory_content_is_text_on_every_page(look: Opening, served_hostile: Served) -> None:
    with look(served_hostile) as tab:
        tab.open()
        paths = [*third(LISTS, 2), *_details(tab), f"contradictions/{tab.world.case}"]
        paths += ["memories?q=onerror"]
        for path in paths:
            tab.open(path)
            if path == "graph":
                tab.drawn()
                _choose_each(tab)
            _nothing_ran(tab)
        assert "onerror" in tab.page.locator("main").inner_text()


def _nothing_ran(tab: Tab) -> None:
    assert tab.page.evaluate("window.broken") is None, tab.page.url
    added = "main img, main script, main style, main svg[onload], main [onerror]"
    assert tab.page.locator(added).count() == 0, tab.page.url


def _choose_each(tab: Tab) -> None:
    for entry in tab.page.locator("#graph-list button").all():
        entry.click()
        assert "window.broken" in tab.page.locator("#graph-chosen .content").inner_text()


def _details(tab: Tab) -> list[str]:
    """The first page of each kind, as the lists lead to it."""
    found = []
    for name in DETAILS:
        tab.open(name)
        own = name.partition("?")[0]
        links = tab.page.locator(f'main a[href*="/{own}/"]')
        assert links.count() > 0, name
        address = links.first.get_attribute("href")
        assert address is not None
        found.append(f"{own}/{address.rpartition(f'/{own}/')[2]}")
    return found


def _faults(tab: Tab) -> list[str]:
    """What hinders somebody on the page that is open, in light and dark, wide and narrow.

    It is loaded once, and looked at in each way, as by somebody who turns a phone.
    """
    page = tab.page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    faults = []
    for size, scheme in LOOKS:
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=scheme)
        faults += [f"{scheme}, {size[0]} wide: {each}" for each in _seen_by_axe(tab)]
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        if wide[0] > wide[1]:
            faults.append(f"it scrolls sideways: {wide}")
    return faults


def _seen_by_axe(tab: Tab) -> list[str]:
    # Of what passes the number is enough: telling of each element takes most of the time.
    told = tab.page.evaluate("axe.run({resultTypes: ['violations']})")
    assert told["passes"], "axe looked at nothing"
    return [
        f"{each['id']} ({each['impact']}): {node['target']}: {node['html'][:200]}"
        for each in told["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"][:3]
    ]
