"""Makes the pictures of the console in the docs: `python docs/images/shoot_console.py`.

Serves the tests' print shop with `memgraph serve` and looks at it with the Chromium of the system.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from browsing import NARROW, WIDE, chromium, find_chromium
from console_worlds import NAME, World, shop
from server_processes import server_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = Path(__file__).resolve().parent
Scheme = Literal["light", "dark"]


def main() -> None:
    """Write them beside this file."""
    executable = find_chromium()
    if executable is None:
        raise SystemExit("needs a Chromium: make browser")
    with tempfile.TemporaryDirectory() as folder:
        world = shop(Path(folder))
        with server_process(world.root, "--no-worker") as server, chromium(executable) as browser:
            home = f"{server.url}/console/{NAME}"
            shoot(browser, home, world)


def shoot(browser: Browser, home: str, world: World) -> None:
    """Make one picture each of a case, the graph, an answer, and the graph on a phone."""
    page = opened(browser, WIDE, "light")
    page.goto(f"{home}/contradictions/{world.case}")
    page.screenshot(path=FOLDER / "console-case.png")
    draw(page, home, "console-graph.png")
    page.goto(f"{home}/answers?purpose=recall")
    page.locator("article a").first.click()
    page.wait_for_selector(".ranked")
    page.screenshot(path=FOLDER / "console-answer.png")
    draw(opened(browser, NARROW, "dark"), home, "console-graph-narrow.png")


def opened(browser: Browser, size: tuple[int, int], scheme: Scheme) -> Page:
    """An empty page of this size and in these colours."""
    return browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)


def draw(page: Page, home: str, name: str) -> None:
    """The graph, once it is drawn."""
    page.goto(f"{home}/graph")
    page.wait_for_selector("html[data-drawn]")
    page.screenshot(path=FOLDER / name)


if __name__ == "__main__":
    main()
