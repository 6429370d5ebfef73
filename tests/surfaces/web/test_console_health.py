"""The health of an orchestrator on the console's pages, and the bound of slow pages."""

from __future__ import annotations

from typing import Any

import pytest
from console_browsing import HOME, Browser, harmless
from serving_worlds import Served

from memgraph.service import readiness
from memgraph.surfaces.web.pages import overview

SEAL = f"{HOME}seal"


def test_only_so_many_slow_pages_run_at_a_time(
    browser: Browser, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = []
    sealed = overview.sealed
    with Browser(served, served.key()) as other:

        def meanwhile(*place: Any) -> Any:
            busy.append(other.open(SEAL))
            return sealed(*place)

        monkeypatch.setattr(overview, "sealed", meanwhile)
        assert browser.open(SEAL).status_code == 200
    # Each check sends the next one, until one is refused.
    refused, *others = busy
    assert {each.status_code for each in others} == {200}
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) > 0


def test_what_is_left_undone_is_told_with_what_to_do(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "shortcomings", lambda _opened: ["erasure.unfinished"])
    for page in (HOME, f"{HOME}activity"):
        text = harmless(browser.page(page)).text
        assert "run the same memgraph erase again" in text
        assert "erasure.unfinished" in text
