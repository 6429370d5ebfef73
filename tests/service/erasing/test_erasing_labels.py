"""Titles, sections and tags that others share, and the text index after an erasure."""

from __future__ import annotations

import pytest
from erasing_worlds import dropped

from memgraph import Orchestrator
from memgraph.model.erasure import ErasurePreview, ErasureReport
from memgraph.model.values import Memory
from memgraph.store import postings

WHY = "asked for"
TITLE = "Meeting of the crew, 3 March 2026"
LEAVE = "Elin Strand is on leave from 10 to 24 March."
TICKET = "The single ticket costs 7 euros from April on."


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two memories are a segment of the text index: what is stored is no longer its tail."""
    monkeypatch.setattr(postings, "TAIL", 2)
    monkeypatch.setattr(postings, "MOST_TAIL", 2)


def saying(orc: Orchestrator, text: str) -> Memory:
    [memory] = [memory for memory in orc.memories.list() if text in memory.content]
    return memory


def erased(orc: Orchestrator, **target: str) -> tuple[ErasurePreview, ErasureReport]:
    """Preview an erasure and perform it: one run finishes, and the store is sound."""
    preview = orc.erasure.erase(**target, reason=WHY).preview
    assert preview is not None
    report = orc.erasure.erase(**target, reason=WHY, dry_run=False)
    assert report.unfinished == ()
    assert orc.verify().totals == {}
    return preview, report


@pytest.mark.usefixtures("short_segments")
def test_a_title_stays_with_the_memories_that_share_it(orc: Orchestrator) -> None:
    dropped(orc, "minutes.md", f"# {TITLE}\n\n- {LEAVE}\n- {TICKET}\n")
    before = saying(orc, "ticket")
    assert before.attributes == {"section": TITLE, "title": TITLE}
    _, report = erased(orc, entity="Elin Strand")
    assert len(report.memory_ids) == report.searched.shared == 1
    assert orc.get(before.memory_id) == before
    assert (orc.paths.processed / "minutes.md").read_text().startswith(f"# {TITLE}\n\nerased")
    assert orc.recall("ticket euros").items[0].memory.memory_id == before.memory_id


@pytest.mark.engines
@pytest.mark.parametrize("under", ["", "\n- The bell was polished in spring.\n"])
def test_a_heading_goes_with_the_memory_that_has_it_alone(orc: Orchestrator, under: str) -> None:
    # A memory of the line about the bell is from the file that was read first.
    dropped(orc, "first.md", "# Bell\n\n- The bell was polished in spring.\n")
    heading, others = "# Sick leave of the second mate", f"# {TITLE}\n\n- {TICKET}\n\n"
    dropped(orc, "second.md", f"{others}{heading}\n\n- {LEAVE}\n{under}")
    gone = saying(orc, LEAVE)
    assert gone.attributes == {"section": heading.removeprefix("# "), "title": TITLE}
    erased(orc, memory_id=gone.memory_id)
    text = (orc.paths.processed / "second.md").read_text()
    assert text.startswith(others)
    assert text.endswith(under)
    assert heading.removeprefix("# ") not in text
    assert LEAVE not in text


@pytest.mark.engines
@pytest.mark.usefixtures("short_segments")
def test_the_words_of_another_memory_stay_in_the_index(orc: Orchestrator) -> None:
    orc.remember(LEAVE)
    beside = {"heard": LEAVE, "title": "On Elin Strand", "kind": "fare"}
    [stays, _] = orc.remember_many(
        [
            {"content": TICKET, "tags": ["fares", LEAVE], "attributes": beside},
            {"content": "The bell rings."},
        ]
    )
    assert stays.memory_id is not None
    orc.remember_many([{"content": f"The deck was washed {n} times."} for n in range(4)])
    _, report = erased(orc, entity="Elin Strand")
    assert report.rows["memories"] == 2
    assert report.memory_ids != (stays.memory_id,)
    changed = orc.get(stays.memory_id)
    assert changed.tags == ("fares", "[erased]")
    assert changed.attributes == {"heard": "[erased]", "title": "On [erased]", "kind": "fare"}
    assert orc.recall("ticket euros").items[0].memory.memory_id == stays.memory_id


def test_a_tag_and_a_summary_that_others_have_stay(orc: Orchestrator) -> None:
    labels = {
        "tags": ["roster of the night watch"],
        "attributes": {"about": "Überfahrt nach Süden"},
    }
    gone = orc.remember(LEAVE, summary="Somebody is away in March", **labels)
    stays = orc.remember(TICKET, summary="Tickets cost more in April", **labels)
    before = orc.get(stays)
    _, report = erased(orc, memory_id=gone)
    assert report.searched.shared == 2
    assert orc.get(stays) == before


def test_what_another_file_says_as_well_stays(orc: Orchestrator) -> None:
    dropped(orc, "one.md", f"# Crew\n\n- {LEAVE}\n- The bell was polished in spring.\n")
    dropped(orc, "two.md", f"# Harbour\n\n- {TICKET}\n- {LEAVE}\n")
    stays = saying(orc, LEAVE)
    _, report = erased(orc, path="one.md")
    assert [(kept.memory_id, kept.why) for kept in report.kept] == [
        (stays.memory_id, "other_sources")
    ]
    assert orc.get(stays.memory_id).content == stays.content
    assert LEAVE in (orc.paths.processed / "two.md").read_text()
    assert "bell" not in (orc.paths.processed / "one.md").read_text()
