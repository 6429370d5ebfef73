"""What an auditor does in the console: search, compare, decide many, and carry away."""

from __future__ import annotations

import csv
import io
import json
from urllib.parse import urlencode

import pytest
from console_browsing import HOME, Browser, harmless, token_of
from serving_worlds import Served

from memgraph import Orchestrator
from memgraph.clock import FixedClock, parse_time
from memgraph.errors import InvalidInput
from memgraph.model.access import Permission
from memgraph.surfaces.web.requests import as_csv, moment_of

CONFIG = {"memory": {"embedding": {"provider": "none"}, "receipts": {"query_text": True}}}
READING = frozenset({Permission.READ})
NOW = parse_time("2026-05-20T10:30:00Z")  # a Wednesday


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("2026-05-01", "2026-05-01", "2026-05-01T23:59:59.999Z"),
        ("2026-05-01T12:00:00Z", "2026-05-01T12:00:00Z", "2026-05-01T12:00:00Z"),
        ("yesterday", "2026-05-19", "2026-05-19T23:59:59.999Z"),
        ("last week", "2026-05-11", "2026-05-17T23:59:59.999Z"),
        ("today", "2026-05-20", "2026-05-20T10:30:00Z"),
        ("now", "2026-05-20T10:30:00Z", "2026-05-20T10:30:00Z"),
    ],
)
def test_a_time_is_given_in_words(text: str, begins: str, ends: str) -> None:
    assert moment_of(text, NOW) == parse_time(begins)
    assert moment_of(text, NOW, ends=True) == parse_time(ends)


def test_words_that_name_no_time_are_refused() -> None:
    with pytest.raises(InvalidInput):
        moment_of("soon", NOW)


def test_a_cell_is_no_formula() -> None:
    rows = list(csv.reader(io.StringIO(as_csv([{"a": "=1+1", "b": [1]}, {"a": 2}]))))
    assert rows == [["a", "b"], ["'=1+1", "[1]"], ["2", ""]]


def test_one_search_finds_in_every_part_and_an_id_leads_to_its_page(
    browser: Browser, orc: Orchestrator
) -> None:
    one = orc.remember("The ferry sails at noon.", session_id="ferry-talk", kind="fact")
    other = orc.remember("The ferry sails at nine.")
    edge = orc.relate(other, "Contradicts", one)
    orc.recall("When does the ferry sail?")
    orc.save_episode("The ferry is late.", session_id="ferry-talk", source_role="user")
    page = harmless(browser.page(f"{HOME}search?q=ferry"))
    links = " ".join(page.values("href"))
    for part in (
        f"contradictions/{edge}",
        f"memories/{one}",
        "session=ferry-talk",
        "receipts/rcl_",
    ):
        assert part in links
    answer = browser.open(f"{HOME}search?q={edge}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{HOME}contradictions/{edge}")


def test_a_search_finds_paths_of_visible_memories_alone(
    browser: Browser, orc: Orchestrator, served: Served
) -> None:
    orc.paths.ingest.mkdir(parents=True, exist_ok=True)
    for name, sensitivity in (("Ferry 100%.md", "Public"), ("ferry-secret.md", "Restricted")):
        path = orc.paths.ingest / name
        path.write_text("Notes")
        source = {"source_path": str(path)}
        for number in range(2):
            orc.remember(f"{name} {number}.", sensitivity=sensitivity, source=source)
    assert orc.memories.paths("fERRY") == [(str(orc.paths.ingest / "Ferry 100%.md"), 2)]
    assert orc.memories.paths("100%.") != []
    assert orc.memories.paths("1%0") == []
    address = f"{HOME}memories?source=orc-1%2Fmemory%2Fingest%2FFerry+100%25.md&status=any"
    public = harmless(browser.page(f"{HOME}search?q=ferry")).values("href")
    assert address in public
    with Browser(served, served.key(clearance="Public")) as reader:
        assert "secret" not in reader.page(f"{HOME}search?q=ferry")


def test_memories_are_listed_by_their_source(
    browser: Browser, orc: Orchestrator, served: Served
) -> None:
    for number, name in enumerate(("a.md", "b.md")):
        path = orc.paths.ingest / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Notes")
        orc.remember(f"Note {number}.", source={"source_path": str(path)})
    # An address says nothing of where the root lies, and works all the same.
    page = harmless(browser.page(f"{HOME}search?q=b.md"))
    query = urlencode({"source": "orc-1/memory/ingest/b.md", "status": "any"})
    assert f"{HOME}memories?{query}" in page.values("href")
    assert str(served.service.root) not in " ".join(page.values("href"))
    listed = browser.page(f"{HOME}memories?{query}")
    assert "Note 1." in listed
    assert "Note 0." not in listed


def test_lists_are_downloaded_as_they_are_filtered(browser: Browser, orc: Orchestrator) -> None:
    orc.remember("We print on Mondays.", type="Decision")
    orc.remember("Damp paper jams.", type="Observation")
    answer = browser.open(f"{HOME}memories?type=Decision&format=csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="memories.csv"'
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["content"], row["type"]) == ("We print on Mondays.", "Decision")
    rows = json.loads(browser.page(f"{HOME}memories?format=json"))["rows"]
    assert {each["content"] for each in rows} == {"We print on Mondays.", "Damp paper jams."}
    for name in ("contradictions", "receipts", "stale", "diff"):
        assert "rows" in json.loads(browser.page(f"{HOME}{name}?format=json"))


def test_a_recall_takes_a_time_in_words(browser: Browser, orc: Orchestrator) -> None:
    orc.remember("The kiln is fired on Thursday evenings.")
    page = f"{HOME}recall"
    then = browser.send(page, page=page, query="When is the kiln fired?", as_of="yesterday").text
    assert "No results." in then
    now = browser.send(page, page=page, query="When is the kiln fired?", as_of="today").text
    assert "The kiln is fired on Thursday evenings." in now
    assert browser.send(page, page=page, query="kiln", as_of="soon").status_code == 422


def test_two_memories_are_compared_word_by_word(browser: Browser, orc: Orchestrator) -> None:
    one = orc.remember("The shop closes at eight.")
    other = orc.remember("The shop closes at ten.")
    page = browser.page(f"{HOME}compare?chosen={one}&chosen={other}")
    assert "<mark>eight.</mark>" in page
    assert "<mark>ten.</mark>" in page
    assert "<mark>The" not in page


def test_many_are_decided_for_one_reason_and_what_fails_is_told(
    browser: Browser, orc: Orchestrator
) -> None:
    pairs = []
    for quay in range(3):
        older = orc.remember(f"Ferry {quay} sails at noon.")
        newer = orc.remember(f"Ferry {quay} sails at nine.")
        pairs.append((older, newer, orc.relate(newer, "Contradicts", older)))
    orc.contradictions.dismiss(pairs[2][2], reason="both")
    token = token_of(browser.page(f"{HOME}contradictions"))
    edges = [edge for _, _, edge in pairs]
    fields = {"csrf_token": token, "reason": "the timetable", "decision": "newer"}
    address = f"{HOME}contradictions"
    headers = {"origin": browser.origin}
    answer = browser.client.post(address, data={**fields, "chosen": edges}, headers=headers)
    assert answer.status_code == 422  # it was not said that all are meant
    data = {**fields, "chosen": edges, "sure": "yes"}
    assert browser.client.post(address, data=data, headers=headers).status_code == 303
    told = browser.page(address)
    assert "2 updated. 1 failed:" in told
    assert {orc.get(older).status.value for older, _, _ in pairs[:2]} == {"superseded"}
    gone = {**fields, "chosen": [pairs[0][1]], "sure": "yes", "decision": "retract"}
    answer = browser.client.post(f"{HOME}memories", data=gone, headers=headers)
    assert answer.status_code == 303
    assert orc.get(pairs[0][1]).status.value == "retracted"


def test_the_seal_says_that_the_chain_was_checked(
    browser: Browser, orc: Orchestrator, served: Served
) -> None:
    orc.remember("The press is blue.")
    entries = orc.maintenance.journal_state().seq
    seal = json.loads(browser.page(f"{HOME}seal"))
    assert seal == {"ok": True, "text": f"Chain verified, {entries:,} entries, 10:30"}
    orc.remember("The press is red.")
    later = json.loads(browser.page(f"{HOME}seal"))
    assert later["ok"] is True
    assert f"{orc.maintenance.journal_state().seq:,} entries" in later["text"]
    with Browser(served, served.key(permissions=READING)) as reader:
        assert reader.open(f"{HOME}seal").status_code == 403


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_download_says_nothing_of_where_the_root_lies(
    browser: Browser, orc: Orchestrator, served: Served, kind: str
) -> None:
    path = orc.paths.ingest / "hours.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("The shop closes at eight.")
    source = {"source_path": str(path)}
    one = orc.remember("The shop closes at eight.", source=source)
    orc.relate(orc.remember("Customers are served until ten."), "Contradicts", one)
    for name in ("memories", "contradictions"):
        text = browser.page(f"{HOME}{name}?format={kind}")
        assert "orc-1/memory/ingest/hours.md" in text
        assert str(served.service.root) not in text
