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


def test_a_file_shows_what_its_memories_say(browser: Browser, shop: Shop) -> None:
    [one] = shop.orc.ingestion.list().items
    page = harmless(browser.page(f"{HOME}activity/{one.sha256}"))
    assert "The shop closes at 20:00 on Thursdays." in page.text
    assert f"{HOME}memories/{shop.read}" in page.values("href")


def test_a_case_is_found_read_to_the_line_resolved_and_reopened(
    browser: Browser, shop: Shop
) -> None:
    assert shop.case in Seen(browser.page(f"{HOME}contradictions")).values("href")
    page = harmless(browser.page(shop.case))
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


def test_a_probable_change_is_found_read_accepted_dismissed_and_reopened(
    browser: Browser, shop: Shop
) -> None:
    new, other = shop.orc.remember("Prams wait outside."), shop.orc.remember("No prams on Sundays.")
    first = shop.orc.relate(new, "Updates", shop.read, weight=0.9, reason="a notice")
    second = shop.orc.relate(other, "Updates", shop.read, weight=0.85)
    address = f"{HOME}contradictions/{first}"
    changes = f"{HOME}contradictions?state=changes"
    for page in (HOME, changes, f"{HOME}memories/{shop.read}", f"{HOME}memories/{new}"):
        assert address in harmless(browser.page(page)).values("href")
    assert first not in browser.page(f"{HOME}contradictions")
    case = harmless(browser.page(address))
    assert "probability 90 %" in case.text
    assert "a notice" in case.text
    assert "line 5" in case.text
    assert [each for each in case.values("value") if each in ("accept", "dismiss", "resolve")] == [
        "accept",
        "dismiss",
    ]
    assert "probability 90 %" in browser.page(f"{address}/export")
    there = f"{HOME}contradictions/{second}"
    browser.send(there, decision="dismiss", reason="visitors")
    assert second not in browser.page(changes)
    assert "visitors" in browser.page(there)
    assert there in Seen(browser.page(f"{HOME}contradictions?state=dismissed")).values("href")
    browser.send(there, decision="reopen", reason="too early")
    assert there in browser.page(changes)
    sent = browser.send(address, decision="accept", reason="asked there")
    assert sent.headers["location"] == address
    assert "The case is accepted." in browser.page(address)
    assert shop.orc.get(shop.read).status == "superseded"
    assert first not in browser.page(changes)
    browser.send(address, decision="reopen", reason="asked again")
    assert shop.orc.get(shop.read).status == "active"
    assert address in browser.page(changes)


def test_no_side_is_chosen_for_who_decides(browser: Browser, shop: Shop) -> None:
    suggestion = shop.orc.contradictions.get(shop.edge).suggestion
    assert suggestion is not None
    assert suggestion.winner_id == shop.said
    page = harmless(browser.page(shop.case))
    assert "suggested" in page.text
    assert page.values("checked") == []


def test_what_cannot_be_decided_changes_nothing_and_has_the_menu_at_hand(
    browser: Browser, shop: Shop
) -> None:
    for fields, status in (
        ({"decision": "resolve", "reason": "x"}, 422),
        ({"decision": "resolve", "winner": "fact_0", "reason": "x"}, 409),
        ({"decision": "dismiss", "reason": " "}, 422),
        ({"decision": "erase", "reason": "x"}, 422),
        ({"decision": "reopen", "reason": "x"}, 409),
    ):
        answer = browser.send(shop.case, **fields)
        assert answer.status_code == status, fields
        assert {f"{HOME}memories", f"{HOME}answers"} <= set(harmless(answer.text).values("href"))
        assert shop.orc.contradictions.get(shop.edge).state == "open"


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


def test_a_memory_is_found_and_the_search_is_no_access(browser: Browser, shop: Shop) -> None:
    found = browser.page(f"{HOME}memories?q=shop+closes+Thursdays")
    assert f"{HOME}memories/{shop.read}" in Seen(found).values("href")
    shop.served.service.write_down()
    assert shop.orc.get(shop.read).access_count == 0
    assert shop.orc.receipts.list().receipts[0].actor != "user"


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
    before = iso(shop.clock.now_ms())
    shop.clock.advance(ms=1_000)
    late = shop.orc.remember("Deliveries come before noon.", derived_from=[shop.read])
    own = shop.orc.recall("when does the shop close").receipt_id
    further = shop.orc.recall("deliveries come before noon", top_n=1)
    assert [each.memory.memory_id for each in further.items] == [late]
    shop.served.service.write_down()
    page = browser.page(f"{HOME}memories/{shop.read}")
    itself = page.index("This memory: 1 time.")
    without = page.index("Dependent memories without this one: 1 time.")
    assert itself < page.index(f"{HOME}answers/{own}") < without < page.index(further.receipt_id)
    assert late in page[page.index(further.receipt_id) :]
    assert own not in browser.page(f"{HOME}memories/{shop.read}?as_of={before}")


def test_a_redirect_names_no_host_and_a_refusal_what_is_taken(browser: Browser) -> None:
    for address in ("/console", "/console/orc-1", "/console/orc-1/memories/"):
        assert browser.open(address).headers["location"].startswith("/console/"), address
    refused = browser.client.delete(HOME)
    assert refused.status_code == 405
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD"}


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


def test_every_answer_has_the_policy_and_assets_are_kept_for_ever(
    browser: Browser, shop: Shop
) -> None:
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
