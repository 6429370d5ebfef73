"""What an auditor does in the console: search, compare, decide many."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest
from console_browsing import HOME, Browser, harmless
from hypothesis import given, strategies as st
from serving_worlds import Served

from memgraph import Orchestrator, Viewer
from memgraph.clock import MAX_MS, FixedClock, parse_time
from memgraph.model.access import Permission
from memgraph.operations.maintenance.maintenance import restore
from memgraph.surfaces.web.pages.contradictions import differing

CONFIG = {"memory": {"embedding": {"provider": "none"}, "receipts": {"query_text": True}}}
READING = frozenset({Permission.READ})
NOW = parse_time("2026-05-20T10:30:00Z")  # a Wednesday


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


def test_memories_are_listed_by_their_source(
    browser: Browser, orc: Orchestrator, served: Served
) -> None:
    for number, name in enumerate(("a.md", "b.md")):
        path = orc.paths.ingest / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Notes")
        orc.remember(f"Note {number}.", source={"source_path": str(path)})
    # An address says nothing of where the root lies, and works all the same.
    [one] = [each.memory_id for each in orc.memories.list() if each.content == "Note 1."]
    page = harmless(browser.page(f"{HOME}memories/{one}"))
    query = urlencode({"source": "orc-1/memory/ingest/b.md", "status": "any"})
    assert f"{HOME}memories?{query}" in page.values("href")
    assert str(served.service.root) not in " ".join(page.values("href"))
    listed = browser.page(f"{HOME}memories?{query}")
    assert "Note 1." in listed
    assert "Note 0." not in listed


def test_a_restore_of_a_backup_is_a_change(
    browser: Browser, orc: Orchestrator, served: Served, tmp_path: Path
) -> None:
    file = tmp_path / "orc-1.backup"
    orc.exchange.backup(file)
    service = served.service
    service.forget(orc.name)
    restore(orc.paths, file, clock=service.clock, actor="anna", reason="a bad import")
    text = harmless(browser.page(HOME)).text
    assert "The database was replaced by a backup of " in text
    assert "a bad import" in text
    # It is about the whole database, so those who may not see all of it do not read why.
    narrow = service.orchestrator(orc.name, viewer=Viewer(sees_use=False))
    assert [each.reason for each in narrow.history.diff(0, MAX_MS).restores] == [None]


def test_a_search_finds_memories_says_why_and_an_id_leads_to_its_page(
    browser: Browser, orc: Orchestrator, served: Served
) -> None:
    one = orc.remember("The ferry sails at noon.", type="Decision", importance=90)
    other = orc.remember("The ferry sails at nine.")
    edge = orc.relate(other, "Contradicts", one)
    page = harmless(browser.page(f"{HOME}memories?q=ferry"))
    assert {f"{HOME}memories/{each}" for each in (one, other)} <= set(page.values("href"))
    for text in ("ranks: ", "text 1", "importance ×", "score 0.", "contradicts"):
        assert text in page.text
    # To look for a memory is no use of it.
    served.service.write_down()
    assert orc.get(one).access_count == 0
    [receipt] = [each for each in page.values("href") if each.startswith(f"{HOME}answers/")]
    assert '<bdi class="said">ferry</bdi>' in browser.page(receipt)
    narrowed = browser.page(f"{HOME}memories?q=ferry&type=Decision")
    assert one in narrowed
    assert f"memories/{other}" not in narrowed
    assert "No memories match." in browser.page(f"{HOME}memories?q=ferry&as_of=yesterday")
    for record, place in ((edge, "contradictions"), (one, "memories")):
        answer = browser.open(f"{HOME}memories?q={record}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{HOME}{place}/{record}")
    with Browser(served, served.key(permissions=READING)) as reader:
        assert "answers/" not in reader.page(f"{HOME}memories?q=ferry")


def test_what_differs_between_two_sides_is_marked(browser: Browser, orc: Orchestrator) -> None:
    one = orc.remember("The shop closes at eight.\nOn Sundays, too.")
    edge = orc.relate(orc.remember("The shop closes at ten."), "Contradicts", one)
    for page in (f"{HOME}contradictions/{edge}", f"{HOME}contradictions/{edge}/export"):
        text = browser.page(page)
        assert "at <mark>eight.\nOn Sundays, too.</mark>" in text
        assert "<mark>ten.</mark>" in text
        assert "<mark>The" not in text


@given(st.text(), st.text())
def test_no_letter_of_a_text_is_lost_where_differences_are_marked(one: str, other: str) -> None:
    sides = differing(one, other)
    assert ["".join(text for _, text in side) for side in sides] == [one, other]


def test_an_entity_is_found_by_its_name_and_shows_what_names_it(
    browser: Browser, orc: Orchestrator
) -> None:
    memory = orc.remember("Vitaly Petrov repaired the press with Ada Lovelace.")
    orc.settle()
    page = harmless(browser.page(f"{HOME}entities?prefix=vital"))
    [address] = [each for each in page.values("href") if each.startswith(f"{HOME}entities/")]
    assert "Vitaly Petrov" in page.text
    seen = harmless(browser.page(address))
    assert f"{HOME}memories/{memory}" in seen.values("href")
    assert "Ada Lovelace" in seen.text
    assert "1 memory" in seen.text
    assert "1 memories" not in seen.text
    assert "No entities." in browser.page(f"{HOME}entities?prefix=nobody")
    assert browser.open(f"{HOME}entities/ent_nowhere").status_code == 404


def test_an_answer_shows_its_question_and_a_bulletin_its_text(
    browser: Browser, orc: Orchestrator
) -> None:
    memory = orc.remember("Mend the trimmer.", type="Todo")
    recalled = orc.recall("What is to be mended?")
    orc.bulletin()
    page = harmless(browser.page(f"{HOME}answers"))
    assert "What is to be mended?" in page.text
    shown = harmless(browser.page(f"{HOME}answers/{recalled.receipt_id}"))
    assert "What is to be mended?" in shown.text
    assert f"{HOME}memories/{memory}" in shown.values("href")
    [receipt] = orc.receipts.list(purpose="bulletin").receipts
    assert "Mend the trimmer." in browser.page(f"{HOME}answers/{receipt.receipt_id}")


def test_many_changes_are_accepted_together(browser: Browser, orc: Orchestrator) -> None:
    marks, olds = [], []
    for door in range(2):
        olds.append(orc.remember(f"Door {door} is blue."))
        new = orc.remember(f"Door {door} is red.")
        marks.append(orc.relate(new, "Updates", olds[-1], weight=0.8))
    address = f"{HOME}contradictions?state=changes"
    form = {"state": "changes", "reason": "repainted", "decision": "accept", "sure": "yes"}
    answer = browser.send(f"{HOME}contradictions", **form, chosen=marks)
    assert answer.headers["location"] == address
    assert "2 updated." in browser.page(address)
    assert {orc.get(each).status.value for each in olds} == {"superseded"}
    case = f"{HOME}contradictions/{marks[0]}"
    assert "Resolved: the newer replaces the other" in browser.page(case)
    decided = f"{HOME}contradictions?state=dismissed"
    assert '<span class="against"> replaces </span>' in browser.page(decided)
    orc.retract(orc.contradictions.get(marks[0]).edge.from_id, reason="a slip")
    orc.restore(olds[0], reason="it is blue")
    assert "Undone since" in browser.page(case)
    assert browser.page(decided).count('<span class="badge">undone</span>') == 1


def test_many_are_decided_for_one_reason_and_what_fails_is_told(
    browser: Browser, orc: Orchestrator
) -> None:
    pairs = []
    for quay in range(3):
        older = orc.remember(f"Ferry {quay} sails at noon.")
        newer = orc.remember(f"Ferry {quay} sails at nine.")
        pairs.append((older, newer, orc.relate(newer, "Contradicts", older)))
    orc.contradictions.dismiss(pairs[2][2], reason="both")
    edges = [edge for _, _, edge in pairs]
    form = {"reason": "the timetable", "decision": "newer", "chosen": edges}
    address = f"{HOME}contradictions"
    assert browser.send(address, **form).status_code == 422  # it was not said that all are meant
    assert browser.send(address, **form, sure="yes").status_code == 303
    told = browser.page(address)
    assert "2 updated. 1 failed:" in told
    assert {orc.get(older).status.value for older, _, _ in pairs[:2]} == {"superseded"}
    gone = {**form, "chosen": [pairs[0][1]], "sure": "yes", "decision": "retract"}
    assert browser.send(f"{HOME}memories", **gone).status_code == 303
    assert orc.get(pairs[0][1]).status.value == "retracted"


def test_an_auditor_reads_whether_the_journal_agrees_with_its_anchor(
    browser: Browser, orc: Orchestrator, served: Served
) -> None:
    orc.remember("The press is blue.")
    seal = f"Journal agrees with its anchor, {orc.maintenance.journal_state().seq} entries"
    assert seal in browser.page(HOME)
    with Browser(served, served.key(permissions=READING)) as reader:
        assert "Journal agrees" not in reader.page(HOME)
