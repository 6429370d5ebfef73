"""An auditor uses the console, from the open question to the case on paper."""

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
        tab.open("contradictions")
        tab.page.get_by_role("link").filter(has_text="20:00").first.click()
        tab.page.wait_for_load_state()
        case = tab.page.url
        assert case.endswith(f"/contradictions/{tab.world.case}")
        assert _sides(tab) == {("3", OLD_LINE), ("5", NEW_LINE)}
        before = tab.page.evaluate("new Date().toISOString()")
        _decide_for_the_notice(tab)
        _travel_back(tab, case, before)
        text = _on_paper(tab, case, tmp_path)
    assert OLD_LINE in text
    assert NEW_LINE in text
    assert "The notice is newer" in text
    assert "<script" not in text


def _sides(tab: Tab) -> set[tuple[str, str]]:
    """The line of its source with which each side is shown, and its number."""
    sides = tab.page.locator(".side")
    assert sides.count() == 2
    lines = sides.locator(".lines li").all()
    return {(line.locator(".at").inner_text(), line.locator("bdi").inner_text()) for line in lines}


def _decide_for_the_notice(tab: Tab) -> None:
    tab.page.get_by_label(re.compile("22:00")).check()
    tab.page.get_by_label("Reason").fill("The notice is newer")
    tab.page.get_by_role("button", name="Resolve").click()
    tab.page.wait_for_load_state()
    assert "The notice is newer" in tab.page.locator("main").inner_text()
    assert tab.page.locator(".side.winner").get_by_text(NEW_LINE).count() >= 1


def _travel_back(tab: Tab, case: str, before: str) -> None:
    tab.page.goto(case)
    tab.page.get_by_label("As of (UTC)", exact=True).fill(before)
    tab.page.get_by_role("button", name="Show").click()
    tab.page.wait_for_load_state()
    assert "open" in tab.page.get_by_role("heading", level=1).inner_text()
    assert tab.page.locator(".notice.then").count() == 1
    assert tab.page.locator(".side.winner").count() == 0


def _on_paper(tab: Tab, case: str, folder: Path) -> str:
    """The text of the exported case, which can be printed."""
    tab.page.goto(case)
    with tab.page.expect_download() as started:
        tab.page.get_by_role("link", name="Export as HTML").click()
    kept = folder / "case.html"
    started.value.save_as(kept)
    assert tab.page.pdf(format="A4").startswith(b"%PDF-")
    return kept.read_text(encoding="utf-8")
