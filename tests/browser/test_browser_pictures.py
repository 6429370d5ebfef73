"""The pages of `memgraph graph` and `timeline` in a browser, opened from a disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import NARROW, WIDE

from memgraph import Orchestrator
from memgraph.surfaces.pictures import (
    DrawnBulletin,
    bulletin_page,
    confidence_page,
    confidence_periods,
    graph_page,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "</script><script>document.title = 'hacked'</script><img src=x onerror=alert(1)>"


def pages_of(orc: Orchestrator) -> dict[str, str]:
    first = orc.remember(HOSTILE, type="Decision")
    second = orc.remember("The shop closes at six.")
    orc.relate(first, "CausedBy", second)
    history = orc.history.get(first)
    bulletins = [
        DrawnBulletin(day * 86_400_000, 1, frozenset(f"{at}" for at in range(day, day + 4)))
        for day in range(40)
    ]
    return {
        "graph": graph_page(orc.graph.subgraph([first]), title=HOSTILE),
        "confidence": confidence_page(
            confidence_periods(history, ()),
            history.periods,
            title=HOSTILE,
            now_ms=history.at + 86_400_000,
            exponent=history.decay_exponent,
        ),
        "bulletins": bulletin_page(bulletins, title=HOSTILE),
    }


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_pages_draw_without_a_request(
    browser: Browser, orc: Orchestrator, tmp_path: Path, size: tuple[int, int], scheme: str
) -> None:
    for name, html in pages_of(orc).items():
        path = tmp_path / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        page = browser.new_page(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        troubles: list[str] = []
        page.on("console", lambda message, into=troubles: into.append(message.text))
        page.on("pageerror", lambda error, into=troubles: into.append(str(error)))
        page.on("request", lambda request, into=troubles: into.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]")
        assert page.title() == HOSTILE
        assert page.locator("img").count() == 0
        assert inked(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert troubles == [path.as_uri()]
        if name == "graph":
            page.evaluate("memgraphPicture.nodes('[type = \"Decision\"]').select()")
            assert page.locator("#selected .content").inner_text() == HOSTILE
        page.close()


def inked(page: Page) -> bool:
    """Return True when something was drawn on a canvas."""
    page.wait_for_timeout(200)
    drawn: bool = page.evaluate(
        """[...document.querySelectorAll("#picture canvas")].some((canvas) => {
          const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return pixels.data.some((value) => value > 0);
        })"""
    )
    return drawn
