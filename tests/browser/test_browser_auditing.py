"""An auditor at work in a real browser: Ctrl-K, what differs, bulk decisions, the seal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console_worlds import OLD_LINE, World

if TYPE_CHECKING:
    from conftest import Opening

Served = tuple[str, World]


def test_ctrl_k_searches_memories_from_anywhere(look: Opening, served: Served) -> None:
    with look(served) as tab:
        tab.open()
        tab.open("activity")
        tab.page.keyboard.press("Control+k")
        assert tab.page.evaluate("document.activeElement.id") == "everywhere"
        tab.page.keyboard.type("closes")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_url("**/memories?q=closes")
        assert tab.page.get_by_role("link", name=OLD_LINE).is_visible()
        tab.keep("search")


def test_the_seal_is_in_the_footer(look: Opening, served: Served) -> None:
    with look(served) as tab:
        tab.open()
        seal = tab.page.locator("footer .seal")
        seal.filter(has_text="Chain verified").wait_for()
        assert "entries" in seal.inner_text()


def test_a_picked_day_is_filled_in(look: Opening, served: Served) -> None:
    with look(served) as tab:
        tab.open()
        tab.open("memories")
        tab.page.locator("input[data-fills=as_of]").fill("2020-01-02")
        assert tab.page.locator("#as_of").input_value() == "2020-01-02"
        tab.page.locator(".as-of button").click()
        tab.page.wait_for_load_state()
        assert tab.page.get_by_text("No memories match.", exact=True).is_visible()


def test_what_differs_between_the_sides_is_marked(look: Opening, served: Served) -> None:
    with look(served) as tab:
        tab.open()
        tab.open(f"contradictions/{tab.world.case}")
        marked = tab.page.locator("blockquote mark").all_inner_texts()
        assert sorted(marked) == ["20:00", "22:00"]


def test_chosen_contradictions_are_decided_together(look: Opening, served: Served) -> None:
    with look(served) as tab:
        tab.open()
        tab.open("contradictions")
        box = tab.page.get_by_label(f"Select: {OLD_LINE[:30]}")
        box.check()
        tab.page.get_by_label("Reason").fill("the notice of May")
        tab.page.get_by_label("Apply to all selected rows").check()
        tab.page.get_by_role("button", name="Keep the newer side").click()
        tab.page.wait_for_load_state()
        assert tab.page.get_by_text("1 updated.").is_visible()
        tab.open(f"contradictions/{tab.world.case}")
        assert tab.page.get_by_text("the notice of May").first.is_visible()
