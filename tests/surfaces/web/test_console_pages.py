"""What an auditor does in the console: finds, reads, decides, travels back, takes a copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import denial_lines
import pytest
from console_browsing import HOME, Browser, Seen, console_served, harmless
from serving_worlds import Served

from ingest.pipeline import IngestPipeline
from memgraph import Orchestrator, Viewer
from memgraph.clock import FixedClock, iso
from memgraph.model.access import Permission

LEAFLET = "# Leaflet\n\nWelcome.\n\n- The shop closes at 20:00 on Thursdays.\n"


@dataclass(frozen=True)
class Shop:
    """A server with an open contradiction of which one side was read from a file."""

    served: Served
    clock: FixedClock
    orc: Orchestrator
    read: str
    said: str
    edge: str

    @property
    def case(self) -> str:
        return f"{HOME}contradictions/{self.edge}"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    clock = FixedClock()
    config = {"memory": {"embedding": {"provider": "none"}}}
    with console_served(tmp_path / "root", clock=clock, config=config) as served:
        orc = served.orchestrator()
        orc.paths.ingest.mkdir(parents=True, exist_ok=True)
        (orc.paths.ingest / "leaflet.md").write_text(LEAFLET, encoding="utf-8")
        IngestPipeline(orc).run()
        [read] = [each.memory_id for each in orc.memories.list() if "20:00" in each.content]
        clock.advance(days=1)
        said = orc.remember("The shop closes at 22:00 on Thursdays.")
        edge = orc.relate(said, "Contradicts", read, reason="two hours")
        yield Shop(served, clock, orc, read, said, edge)


@pytest.fixture
def browser(shop: Shop) -> Iterator[Browser]:
    with Browser(shop.served, shop.served.key()) as made:
        yield made


def test_what_a_text_hides_is_told_beside_it(browser: Browser, shop: Shop) -> None:
    turned = shop.orc.remember("The shop closes at \u202e00:12\u202c on Thursdays.")
    edge = shop.orc.relate(turned, "Contradicts", shop.said)
    case = f"{HOME}contradictions/{edge}"
    for address in (f"{HOME}memories/{turned}", case, f"{case}/export"):
        assert "U+202E right-to-left override (1)" in Seen(browser.page(address)).text
    assert "not shown" not in browser.page(f"{HOME}memories/{shop.said}")


def test_a_case_is_found_read_to_the_line_resolved_and_reopened(
    browser: Browser, shop: Shop
) -> None:
    [file] = shop.orc.ingestion.list().items
    page = harmless(browser.page(f"{HOME}activity/{file.sha256}"))
    assert "The shop closes at 20:00 on Thursdays." in page.text
    assert f"{HOME}memories/{shop.read}" in page.values("href")
    assert shop.case in Seen(browser.page(f"{HOME}contradictions")).values("href")
    page = harmless(browser.page(shop.case))
    # No side is chosen for who decides.
    assert "suggested" in page.text
    assert page.values("checked") == []
    assert "- The shop closes at 20:00 on Thursdays." in page.text
    assert "line 5" in page.text
    assert "leaflet.md" in page.text
    assert str(shop.served.service.root) not in page.text
    sent = browser.send(shop.case, decision="resolve", winner=shop.said, reason="asked there")
    assert sent.headers["location"] == shop.case
    page = harmless(browser.page(shop.case))
    assert "The case is resolved." in page.text
    assert "asked there" in page.text
    assert "The case is resolved." not in browser.page(shop.case)
    assert shop.orc.get(shop.read).status == "superseded"
    assert shop.case not in browser.page(f"{HOME}contradictions")
    assert shop.case in browser.page(f"{HOME}contradictions?state=decided")
    browser.send(shop.case, decision="reopen", reason="too early")
    assert shop.orc.get(shop.read).status == "active"
    journal = [each.action for each in shop.orc.contradictions.get(shop.edge).journal]
    assert journal[-2:] == ["resolve", "reopen"]
    for fields, status in (
        ({"decision": "resolve", "reason": "x"}, 422),
        ({"decision": "resolve", "winner": "fact_0", "reason": "x"}, 409),
        ({"decision": "erase", "reason": "x"}, 422),
    ):
        answer = browser.send(shop.case, **fields)
        assert answer.status_code == status, fields
        assert {f"{HOME}memories", f"{HOME}answers"} <= set(harmless(answer.text).values("href"))
        assert shop.orc.contradictions.get(shop.edge).state == "open"


def test_a_probable_change_is_found_read_dismissed_accepted_and_reopened(
    browser: Browser, shop: Shop
) -> None:
    new = shop.orc.remember("Prams wait outside.")
    edge = shop.orc.relate(new, "Updates", shop.read, weight=0.9, reason="a notice")
    address = f"{HOME}contradictions/{edge}"
    changes = f"{HOME}contradictions?state=changes"
    for page in (HOME, changes, f"{HOME}memories/{shop.read}", f"{HOME}memories/{new}"):
        assert address in harmless(browser.page(page)).values("href")
    assert edge not in browser.page(f"{HOME}contradictions")
    case = harmless(browser.page(address))
    for text in ("probability 90 %", "a notice", "line 5"):
        assert text in case.text
    offered = [each for each in case.values("value") if each in ("accept", "dismiss", "resolve")]
    assert offered == ["accept", "dismiss"]
    assert "probability 90 %" in browser.page(f"{address}/export")
    browser.send(address, decision="dismiss", reason="visitors")
    assert edge not in browser.page(changes)
    assert "visitors" in browser.page(address)
    assert address in Seen(browser.page(f"{HOME}contradictions?state=dismissed")).values("href")
    browser.send(address, decision="reopen", reason="too early")
    assert address in browser.page(changes)
    sent = browser.send(address, decision="accept", reason="asked there")
    assert sent.headers["location"] == address
    assert "The case is accepted." in browser.page(address)
    assert shop.orc.get(shop.read).status == "superseded"
    assert edge not in browser.page(changes)
    browser.send(address, decision="reopen", reason="asked again")
    assert shop.orc.get(shop.read).status == "active"


def test_a_case_leaves_as_a_file_that_loads_nothing(browser: Browser, shop: Shop) -> None:
    answer = browser.open(f"{shop.case}/export")
    assert answer.headers["content-disposition"] == (
        f'attachment; filename="case-{shop.edge}.html"'
    )
    seen = Seen(answer.text)
    assert "- The shop closes at 20:00 on Thursdays." in seen.text
    assert "default-src 'none'" in " ".join(seen.values("content"))
    assert not seen.values("href", "src", "action")
    assert not seen.tags & {"script", "form", "a", "link"}
    assert "url(" not in seen.scripted
    # Nobody unfolds anything on paper.
    folded = [name for tag, name, _ in seen.attributes if tag == "details"]
    assert folded == ["open"] * answer.text.count("<details")
    assert folded


def test_the_past_is_shown_as_it_was(shop: Shop) -> None:
    before = iso(shop.clock.now_ms())
    shop.clock.advance(days=2)
    shop.orc.contradictions.resolve(shop.edge, winner=shop.said, reason="asked there")
    with Browser(shop.served, shop.served.key()) as browser:
        address = f"{HOME}memories/{shop.read}"
        assert "asked there" in browser.page(shop.case)
        then = browser.page(f"{shop.case}?as_of={before}")
        assert "asked there" not in then
        assert "Shown as of" in then
        assert 'name="decision"' not in then
        assert "superseded" in Seen(browser.page(address)).text
        assert "superseded" not in Seen(browser.page(f"{address}?as_of={before}")).text
        # The links of a page lead on as of the same time.
        assert any("as_of=" in each for each in Seen(then).values("href") if address in each)


def test_memories_are_listed_a_page_at_a_time_and_filtered(browser: Browser, shop: Shop) -> None:
    ids = shop.orc.remember_many([{"content": f"Note {n}.", "tags": ["n"]} for n in range(30)])
    wanted = {each.memory_id for each in ids}
    first = Seen(browser.page(f"{HOME}memories?tag=n"))
    [older] = [each for each in first.values("href") if "before=" in each]
    second = Seen(browser.page(older))
    hrefs = [*first.values("href"), *second.values("href")]
    shown = [each.rpartition("/")[2] for each in hrefs if "/memories/" in each]
    assert len(shown) == len(set(shown)) == 30
    assert set(shown) == wanted
    shop.orc.retract(shop.read, reason="x")
    assert shop.read not in browser.page(f"{HOME}memories")
    assert shop.read in browser.page(f"{HOME}memories?status=retracted")


def test_changes_between_two_times(browser: Browser, shop: Shop) -> None:
    shop.orc.contradictions.resolve(shop.edge, winner=shop.said, reason="asked there")
    week = harmless(browser.page(HOME))
    assert "asked there" in week.text
    assert shop.case in week.values("href")
    assert f"{HOME}memories/{shop.read}" in week.values("href")
    before = iso(shop.clock.now_ms() - 1)
    earlier = browser.page(f"{HOME}?until={before}")
    assert "asked there" not in earlier
    assert f"{HOME}memories/{shop.read}" in earlier
    assert browser.open(f"{HOME}?since=2030-01-01&until={before}").status_code == 422


def test_what_was_given_itself_is_told_apart_from_what_stands_on_it(
    browser: Browser, shop: Shop
) -> None:
    late = shop.orc.remember("Deliveries come before noon.", derived_from=[shop.read])
    own = shop.orc.recall("when does the shop close").receipt_id
    further = shop.orc.recall("deliveries come before noon", top_n=1)
    shop.served.service.write_down()
    page = browser.page(f"{HOME}memories/{shop.read}")
    itself = page.index("This memory: 1 time.")
    without = page.index("Dependent memories without this one: 1 time.")
    assert itself < page.index(f"{HOME}answers/{own}") < without < page.index(further.receipt_id)
    assert late in page[page.index(further.receipt_id) :]


def test_a_bug_is_told_in_a_page_and_not_what_it_is(
    browser: Browser, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_fields: object) -> None:
        raise RuntimeError("a secret text")

    monkeypatch.setattr(Orchestrator.contradictions, "list", broken)
    answer = browser.open(f"{HOME}contradictions")
    assert answer.status_code == 500
    assert "a secret text" not in answer.text
    [policy] = answer.headers.get_list("content-security-policy")
    assert "style-src 'self'" in policy
    harmless(answer.text)


def test_a_choice_of_what_is_looked_at_holds_for_all_pages(browser: Browser, shop: Shop) -> None:
    whole = shop.served.service.orchestrator(
        "orc-1", viewer=Viewer(project_ids=frozenset({"atlas"}))
    )
    project = whole.remember("Atlas opens in May.", scope="project", scope_id="atlas")
    address = f"{HOME}memories/{project}"
    assert browser.open(address).status_code == 404
    browser.send(f"{HOME}view", projects="atlas, borealis")
    assert "Atlas opens in May." in browser.page(address)
    assert 'value="atlas, borealis"' in browser.page()
    browser.send(f"{HOME}view", projects="")
    assert browser.open(address).status_code == 404


def test_what_a_permission_does_not_give_is_neither_shown_nor_done(shop: Shop) -> None:
    secret = shop.served.key(permissions=frozenset({Permission.READ}), project_ids=["atlas"])
    with Browser(shop.served, secret) as browser:
        page = browser.page(shop.case)
        assert "Decide" not in page
        assert "- The shop closes at 20:00 on Thursdays." not in page
        assert f"{HOME}answers" not in page
        assert len(denial_lines.denials(shop.served.service.root)) == 0
        refused = browser.send(shop.case, decision="resolve", winner=shop.said, reason="I want to")
        assert refused.status_code == 403
        assert browser.open(f"{HOME}answers").status_code == 403
        assert browser.send(f"{HOME}view", projects="borealis").status_code == 403
        assert "borealis" not in browser.page()
    assert len(denial_lines.denials(shop.served.service.root)) == 3
    assert shop.orc.contradictions.get(shop.edge).state == "open"


def test_every_answer_has_the_policy_and_assets_are_kept_for_ever(browser: Browser) -> None:
    for address in ("/console", "/console/orc-1", "/console/orc-1/memories/"):
        # No host is named.
        assert browser.open(address).headers["location"].startswith("/console/"), address
    refused = browser.client.delete(HOME)
    assert refused.status_code == 405
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD"}
    page = browser.open(HOME)
    for answer in (page, browser.open("/console/nowhere/at/all"), browser.open("/console/login")):
        [policy] = answer.headers.get_list("content-security-policy")
        assert "unsafe" not in policy
        assert "script-src 'self'" in policy
        assert answer.headers.get_list("referrer-policy") == ["same-origin"]
        assert answer.headers["cache-control"] == "no-store"
    assets = [each for each in Seen(page.text).values("href", "src") if "/static/" in each]
    assert len(assets) >= 3
    for each in assets:
        asset = browser.open(each)
        assert asset.status_code == 200
        assert "immutable" in asset.headers["cache-control"]
        assert asset.headers["x-content-type-options"] == "nosniff"
    for name in ("../../app.py", "%2e%2e/app.py", "nothing.css"):
        assert browser.open(f"{assets[0].rpartition('/')[0]}/{name}").status_code == 404
