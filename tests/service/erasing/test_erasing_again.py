"""Erasures of memories whose source lines an earlier erasure has overwritten."""

from __future__ import annotations

import pytest
from erasing_worlds import dropped, left

from memgraph import MemoryService, Orchestrator

WHY = "asked"
MINI = "Ann: Lorna Vale keeps the spare key at the bakery.\nBen: Thanks, I did not know that.\n"
LORNA = "Lorna Vale keeps spare key number {} of the house in the bakery at corner {}."
PIET = "Piet Maas sails boat number {} of the harbour every spring to island {}."
WORDS = "erased erased erased erased"
PARAGRAPH = " ".join(text.format(n, n) for text in (LORNA, PIET) for n in range(12))


def saying(orc: Orchestrator, text: str) -> list[str]:
    return [memory.memory_id for memory in orc.memories.list() if text in memory.content]


@pytest.mark.engines
def test_all_memories_of_one_line_are_erased_one_after_the_other(
    service: MemoryService, orc: Orchestrator
) -> None:
    dropped(orc, "para.md", f"# Keys\n\n{PARAGRAPH}\n")
    assert len(orc.memories.list()) == 3
    first = orc.erasure.erase(text="Lorna Vale", reason=WHY, dry_run=False)
    [other] = saying(orc, "Piet")
    [line] = orc.sources.lines(other).lines
    # Only what the erased memories say of the line is gone, and a reader is told so.
    assert line.text == "[erased] " + " ".join(PIET.format(n, n) for n in (9, 10, 11))
    second = orc.erasure.erase(text="Piet Maas", reason=WHY, dry_run=False)
    assert [report.unfinished for report in (first, second)] == [(), ()]
    assert orc.verify().totals == {}
    assert left(service, orc.paths.directory, ("Lorna", "Piet", "harbour")) == []


@pytest.mark.engines
@pytest.mark.parametrize(
    "text", [WORDS, f"It was {WORDS}, all of it", "Erased", "[erased] [erased]"]
)
@pytest.mark.parametrize("by", ["text", "memory_id"])
def test_a_text_like_what_an_erasure_leaves_is_erased(
    service: MemoryService, orc: Orchestrator, text: str, by: str
) -> None:
    dropped(orc, "mini.txt", MINI)
    orc.erasure.erase(memory_id=saying(orc, "Lorna")[0], reason=WHY, dry_run=False)
    dropped(orc, "tape.md", f"# Tape\n\n- {text}\n- The tape hangs on the wall of the shop.\n")
    [said] = saying(orc, text) or [orc.remember(text)]
    target = {by: text if by == "text" else said}
    report = orc.erasure.erase(**target, reason=WHY, dry_run=False)
    assert (said in report.memory_ids, report.remains, report.unfinished) == (True, (), ())
    kept = "- The tape hangs on the wall of the shop."
    assert kept in (orc.paths.processed / "tape.md").read_text().splitlines()
    assert len(saying(orc, "tape")) == 1
    assert orc.verify().totals == {}
    assert service.health(orc.name)["degraded"] == []


def test_a_word_of_the_file_that_means_the_filler_is_shown_as_it_is(orc: Orchestrator) -> None:
    dropped(orc, "tape.md", "# Tape\n\n- The tape was erased erased era by era.\n")
    [memory] = saying(orc, "tape")
    [line] = orc.sources.lines(memory).lines
    assert line.text == "- The tape was erased erased era by era."
