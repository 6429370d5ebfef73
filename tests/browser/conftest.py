"""A browser and a server for the tests of a module; what goes wrong in a page fails its test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import MISSING, chromium, find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
