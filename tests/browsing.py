"""A real browser for tests and figures: Chromium as it is installed, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHOSEN = ("PLAYWRIGHT_CHROMIUM", "CHROMIUM")
"""Variables that name the browser's file, the first one that is set."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "no Chromium was found, so nothing was tried in a browser: run `make browser` (Debian, as root)"
    ", or name its file in CHROMIUM"
)
OPTIONS = (
    "--no-sandbox",  # root has no user namespace to put it in
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
)
"""Nothing that asks the network; a page here loads from loopback alone."""
WIDE, NARROW = (1280, 800), (390, 844)
"""The two sizes at which every page is looked at, in CSS pixels."""


def find_chromium(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file of an installed Chromium, None where there is none.

    Raises:
        FileNotFoundError: a variable names a file that is not there.
    """
    for name in CHOSEN:
        if environ.get(name):
            chosen = Path(environ[name])
            if not chosen.is_file():
                raise FileNotFoundError(f"{name} names no file: {chosen}")
            return chosen
    found = (shutil.which(name, path=environ.get("PATH", "")) for name in NAMES)
    return next((Path(each) for each in found if each is not None), None)


@contextmanager
def chromium(executable: Path) -> Iterator[Browser]:
    """A browser without a window, for the time of the block.

    While it runs, the thread counts as one of an event loop: what calls ``asyncio.run`` cannot
    run beside it.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=[*OPTIONS])
        try:
            yield browser
        finally:
            browser.close()
