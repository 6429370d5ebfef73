"""An auditor at work in a real browser: Ctrl-K, what differs, bulk decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console_worlds import World

if TYPE_CHECKING:
    from conftest import Opening

Served = tuple[str, World]


def test_a_picked_day_is_filled_in(look: Opening, served: Served) -> None:
    with look(served) as tab:
        tab.open()
        tab.open("memories")
        tab.page.locator("input[data-fills=as_of]").fill("2020-01-02")
        assert tab.page.locator("#as_of").input_value() == "2020-01-02"
        tab.page.locator(".as-of button").click()
        tab.page.wait_for_load_state()
        assert tab.page.get_by_text("No memories match.", exact=True).is_visible()
