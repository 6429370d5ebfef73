"""The health of what is stored, measured in the console."""

from __future__ import annotations

import re
from typing import Any

import pytest
from canaries import QUERY
from console_browsing import HOME, Browser, Seen, harmless, token_of
from serving_worlds import Served

from memgraph import Orchestrator
from memgraph.model.access import HealthMetric, Permission, StoreHealth
from memgraph.service import readiness
from memgraph.surfaces.web.pages.activity import MEANS

PAGE = f"{HOME}activity"


def test_every_measure_is_explained() -> None:
    assert set(MEANS) == set(HealthMetric)


def test_it_is_measured_when_it_is_asked_for(browser: Browser, served: Served) -> None:
    orc = served.orchestrator()
    ground = orc.remember("The <b>paper</b> is recycled.")
    stands = orc.remember("We order recycled paper.", derived_from=(ground,))
    orc.retract(ground, reason="a mistake")
    before = harmless(browser.page(PAGE))
    assert "measures" not in before.values("id")
    assert PAGE in before.values("href")
    measured = browser.send(PAGE, page=PAGE)
    assert measured.status_code == 200
    seen = harmless(measured.text)
    assert all(each.value.replace("_", " ") in seen.text for each in HealthMetric)
    row = re.compile(
        r'stale</th><td class="num">1</td>\s*<td class="num">1</td>\s*<td[^>]*>100.00 %'
    )
    assert row.search(measured.text)
    assert f"{HOME}memories/{stands}" in seen.values("href")


def test_nothing_hidden_is_counted_or_shown(served: Served) -> None:
    orc = served.orchestrator()
    for _ in range(2):
        orc.remember(f"A secret: {QUERY}", sensitivity="Restricted")
    with Browser(served, served.key(clearance="Internal")) as browser:
        seen = Seen(browser.send(PAGE, page=PAGE).text)
        assert "0 memories" in seen.text
        assert "secret" not in seen.text


def test_it_takes_a_token_and_the_permission(browser: Browser, served: Served) -> None:
    assert browser.post(PAGE, token="0" * 64).status_code == 403
    reading = served.key(permissions=frozenset({Permission.READ}))
    with Browser(served, reading) as reader:
        assert "Measure" not in reader.page(PAGE)
        assert reader.send(PAGE).status_code == 403


def test_only_so_many_are_measured_at_a_time(
    browser: Browser, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = []
    audit = Orchestrator.audit.measure
    with Browser(served, served.key()) as other:
        token = token_of(other.page(PAGE))

        def meanwhile(orc: Orchestrator, **fields: Any) -> StoreHealth:
            busy.append(other.post(PAGE, token=token))
            return audit(orc, **fields)

        monkeypatch.setattr(Orchestrator.audit, "measure", meanwhile)
        assert browser.send(PAGE, page=PAGE).status_code == 200
    # Each measurement sends the next one, until one is refused.
    refused, *others = busy
    assert {each.status_code for each in others} == {200}
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) > 0
    assert PAGE in harmless(refused.text).values("href")


def test_what_is_left_undone_is_told_with_what_to_do(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "shortcomings", lambda _opened: ["erasure.unfinished"])
    for page in (HOME, PAGE):
        text = harmless(browser.page(page)).text
        assert "run the same memgraph erase again" in text
        assert "erasure.unfinished" in text
