"""An auditor uses the console, from signing in to printing a case."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from console_worlds import NEW_LINE, OLD_LINE

if TYPE_CHECKING:
    from conftest import Opening, Tab
    from console_worlds import World

Served = tuple[str, "World"]


def test_from_the_open_question_to_the_case_on_paper(
    look: Opening, served: Served, tmp_path: Path
) -> None:
    with look(served) as tab:
        _sign_in_and_find_the_case(tab)
        _read_both_grounds_to_the_line(tab)
        case = tab.page.url
        before = tab.page.evaluate("new Date().toISOString()")
        tab.page.goto(case)
        _decide_for_the_notice(tab)
        _travel_back(tab, case, before)
        text = _on_paper(tab, case, tmp_path)
    assert OLD_LINE in text
    assert NEW_LINE in text
    assert "The notice is newer" in text
    assert "<script" not in text


def _sign_in_and_find_the_case(tab: Tab) -> None:
    tab.open("contradictions")
    assert tab.page.get_by_role("heading", level=1).inner_text() == "Contradictions"
    tab.keep("audit-contradictions")
    tab.page.get_by_role("link").filter(has_text="20:00").first.click()
    tab.page.wait_for_load_state()
    assert tab.page.url.endswith(f"/contradictions/{tab.world.case}")


def _read_both_grounds_to_the_line(tab: Tab) -> None:
    sides = tab.page.locator(".side")
    assert sides.count() == 2
    read = {
        (line.locator(".at").inner_text(), line.locator("bdi").inner_text())
        for line in sides.locator(".lines li").all()
    }
    assert read == {("3", OLD_LINE), ("5", NEW_LINE)}
    tab.keep("audit-case-open")


def _decide_for_the_notice(tab: Tab) -> None:
    tab.page.get_by_label(re.compile("22:00")).check()
    tab.page.get_by_label("Reason").fill("The notice is newer")
    tab.page.get_by_role("button", name="Resolve").click()
    tab.page.wait_for_load_state()
    assert "The notice is newer" in tab.page.locator("main").inner_text()
    assert tab.page.locator(".side.winner").get_by_text(NEW_LINE).count() >= 1
    tab.keep("audit-case-resolved")


def _travel_back(tab: Tab, case: str, before: str) -> None:
    tab.page.goto(case)
    tab.page.get_by_label("As of (UTC)", exact=True).fill(before)
    tab.page.get_by_role("button", name="Show").click()
    tab.page.wait_for_load_state()
    assert "open" in tab.page.get_by_role("heading", level=1).inner_text()
    assert tab.page.locator(".notice.then").count() == 1
    assert tab.page.locator(".side.winner").count() == 0
    tab.keep("audit-case-back-then")


def _on_paper(tab: Tab, case: str, folder: Path) -> str:
    """The text of the exported case."""
    tab.page.goto(case)
    with tab.page.expect_download() as started:
        tab.page.get_by_role("link", name="Export as HTML").click()
    kept = folder / "case.html"
    started.value.save_as(kept)
    printed = tab.page.pdf(format="A4")
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") >= 1
    return kept.read_text(encoding="utf-8")


def test_what_was_seen_is_not_to_be_had_by_going_back_after_signing_out(
    look: Opening, served: Served
) -> None:
    with look(served) as tab:
        tab.open()
        tab.open(f"contradictions/{tab.world.case}")
        tab.open("memories")
        tab.page.get_by_role("button", name="Sign out").click()
        tab.page.wait_for_load_state()
        for _ in range(2):
            tab.page.go_back()
            assert "/console/login" in tab.page.url
            assert "closes at" not in tab.page.content()


def test_a_picked_day_is_filled_in(look: Opening, served: Served) -> None:
    with look(served) as tab:
        tab.open()
        tab.open("memories")
        tab.page.locator("input[data-fills=as_of]").fill("2020-01-02")
        assert tab.page.locator("#as_of").input_value() == "2020-01-02"
        tab.page.locator(".as-of button").click()
        tab.page.wait_for_load_state()
        assert tab.page.get_by_text("No memories match.", exact=True).is_visible()
