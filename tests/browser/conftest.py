"""A browser for the tests of a module, and one server for all of them.

What goes wrong in a page fails its test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import MISSING, WIDE, chromium, find_chromium
from console_worlds import World, hostile, shop
from server_processes import ServerProcess, server_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request


@dataclass
class Tab:
    """A page of the browser that looks at a console.

    Attributes:
        url: of the orchestrator's pages, without a slash at its end.
        troubles: what the browser complained of: errors of scripts, what the policy forbade, and
            requests to anywhere but the server.
    """

    page: Page
    url: str
    world: World
    troubles: list[str] = field(default_factory=list)

    def open(self, path: str = "") -> None:
        """Load a page of the orchestrator, which must be one; sign in if it asks for that."""
        answer = self.page.goto(f"{self.url}/{path}")
        if "/console/login" in self.page.url:
            self.sign_in()
        else:
            assert answer is not None
            assert answer.status == 200, self.page.url

    def sign_in(self) -> None:
        """Show the key."""
        self.page.get_by_label("Key").fill(self.world.secret)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_load_state()

    def drawn(self) -> None:
        """Wait until the graph has been drawn."""
        self.page.wait_for_selector("html[data-drawn]")


_NUMBERS = count(1)
Served = tuple[str, World]
"""The address of a server, and what it serves."""
Opening = Callable[..., AbstractContextManager[Tab]]


@pytest.fixture(scope="session")
def executable() -> Path:
    found = find_chromium()
    if found is None:
        pytest.skip(MISSING)
    return found


# Of a module and no longer: beside a running browser no other test could use asyncio.
@pytest.fixture(scope="module")
def browser(executable: Path) -> Iterator[Browser]:
    with chromium(executable) as started:
        yield started


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, executable: Path) -> Iterator[ServerProcess]:
    """`memgraph serve`, which asks for keys. Worlds are put into its root while it runs."""
    root = tmp_path_factory.mktemp("served")
    # Every tab signs in by itself, more than ten in some minutes.
    often = "from memgraph.surfaces.web import sessions; sessions.SIGN_INS_PER_MINUTE = 10_000"
    with server_process(root, "--no-worker", keyless=False, first=often) as started:
        yield started


@pytest.fixture(scope="module")
def served(server: ServerProcess, request: pytest.FixtureRequest) -> Served:
    """A print shop of its own, though the module's tests may come in several turns."""
    name = request.module.__name__.rpartition("_")[2]
    return server.url, shop(server.root, f"print-shop-{name}-{next(_NUMBERS)}")


@pytest.fixture(scope="module")
def served_hostile(server: ServerProcess) -> Served:
    """Markup in every field."""
    return server.url, hostile(server.root, f"hostile-{next(_NUMBERS)}")


@pytest.fixture
def look(browser: Browser) -> Opening:
    """Opens a tab on a served world; when the block has ended, no page may have had any trouble."""

    @contextmanager
    def opened(served: Served, *, allowed: tuple[str, ...] = ()) -> Iterator[Tab]:
        base, world = served
        viewport = {"width": WIDE[0], "height": WIDE[1]}
        context = browser.new_context(viewport=viewport, timezone_id="UTC")
        context.set_default_timeout(60_000)
        try:
            tab = Tab(context.new_page(), f"{base}/console/{world.name}", world)
            _listen(tab, base)
            yield tab
        finally:
            context.close()
        assert [one for one in tab.troubles if not one.startswith(allowed or ("\0",))] == []

    return opened


def _listen(tab: Tab, base: str) -> None:
    def asked(request: Request) -> None:
        if not request.url.startswith((base, "data:", "blob:")):
            tab.troubles.append(f"asked elsewhere: {request.url}")

    page = tab.page
    page.on("request", asked)
    page.on("pageerror", lambda error: tab.troubles.append(f"script: {error}"))
    page.on("dialog", lambda dialog: tab.troubles.append(f"dialog: {dialog.message}"))
    page.on(
        "console",
        lambda said: (
            tab.troubles.append(f"console: {said.text}")
            if said.type in ("error", "warning")
            else None
        ),
    )
