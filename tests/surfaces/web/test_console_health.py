"""The health of an orchestrator on the console's pages."""

from __future__ import annotations

import pytest
from console_browsing import HOME, Browser, harmless

from memgraph.service import readiness


def test_what_is_left_undone_is_told_with_what_to_do(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "shortcomings", lambda _opened: ["erasure.unfinished"])
    for page in (HOME, f"{HOME}activity"):
        text = harmless(browser.page(page)).text
        assert "run the same memgraph erase again" in text
        assert "erasure.unfinished" in text
