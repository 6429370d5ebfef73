"""What the memory wrote itself makes no memory when it is dropped as a file."""

from __future__ import annotations

import json

import pytest

from ingest.claims import FileResult
from ingest.parse import parse_document
from ingest.pipeline import IngestPipeline
from ingest.reasons import RejectionReason, SkippedPart
from memgraph import Orchestrator
from memgraph.clock import FixedClock
from memgraph.errors import IngestRejected
from memgraph.ids import short_id

KNOWN = "Mira moved to Graz in May 2025 with two cats."
FOREIGN = "fact_01ARZ3NDEKTSV4RRFFQ69G5FAV"


def drop(orc: Orchestrator, name: str, text: str) -> FileResult:
    orc.paths.ingest.mkdir(parents=True, exist_ok=True)
    (orc.paths.ingest / name).write_text(text, encoding="utf-8")
    [result] = IngestPipeline(orc, settle_seconds=0.0).run().results
    return result


def facts(orc: Orchestrator) -> list[str]:
    return [each.content for each in orc.memories.list(limit=100)]


@pytest.fixture
def known(orc: Orchestrator, clock: FixedClock) -> str:
    memory_id = orc.remember(KNOWN)
    orc.remember("Water the plants every Sunday.", type="Todo")
    clock.advance(ms=60_000)
    return memory_id


@pytest.mark.parametrize("name", ["bulletin.md", "bulletin.txt", "recall.json", "items.json"])
def test_its_own_output_is_refused_as_a_whole(orc: Orchestrator, known: str, name: str) -> None:
    recall = orc.recall("Graz").model_dump(mode="json")
    texts = {
        "bulletin": orc.bulletin().bulletin.text,
        "recall": json.dumps(recall),
        "items": json.dumps(recall["items"], indent=2),
    }
    before = facts(orc)
    result = drop(orc, name, texts[name.partition(".")[0]])
    assert (result.outcome, result.reason) == ("rejected", RejectionReason.OWN_OUTPUT)
    assert facts(orc) == before


def test_lines_that_cite_a_memory_and_add_nothing_are_left_out(
    orc: Orchestrator, known: str
) -> None:
    before = set(facts(orc))
    result = drop(
        orc,
        "notes.txt",
        f"As noted, Mira moved to Graz with two cats. [{known}]\n\n"
        f"The landlord sold the mill in March. [{known}]\n\n"
        "Ida keeps three goats near the river.\n",
    )
    assert result.findings[SkippedPart.OWN_OUTPUT] == 1
    made = set(facts(orc)) - before
    assert made == {
        "The landlord sold the mill in March.",
        "Ida keeps three goats near the river.",
    }
    [goats] = [each for each in orc.memories.list(limit=9) if "goats" in each.content]
    assert orc.trace(goats.memory_id).memory.content == goats.content


def test_a_short_id_cites_as_a_whole_one_does(orc: Orchestrator, known: str) -> None:
    before = set(facts(orc))
    result = drop(
        orc,
        "notes.txt",
        f"As noted, Mira moved to Graz with two cats. [{short_id(known)}]\n\n"
        f"The landlord sold the mill in March. [{short_id(known)}]\n\n"
        "Ida keeps three goats near the river [ABCDEFGH].\n",
    )
    assert result.findings[SkippedPart.OWN_OUTPUT] == 1
    assert set(facts(orc)) - before == {
        "The landlord sold the mill in March.",
        "Ida keeps three goats near the river [ABCDEFGH].",
    }


def test_an_original_stays_a_source_though_its_lines_were_handed_out(orc: Orchestrator) -> None:
    text = "We rent the blue workshop for 640 euros.\n\nThe lease ends in April 2027.\n"
    assert drop(orc, "lease.txt", text).outcome == "processed"
    assert orc.recall("workshop lease").items
    orc.bulletin()
    again = drop(orc, "lease.txt", f"{text}\nThe landlord lives above the bakery.\n")
    assert again.outcome == "processed"
    assert SkippedPart.OWN_OUTPUT not in again.findings
    assert again.counts["memories"] == {"duplicate": 2, "stored": 1}


def test_ids_of_another_memory_mark_nothing(orc: Orchestrator, known: str) -> None:
    result = drop(orc, "foreign.txt", f"The mill was sold in March 2026. [{FOREIGN}]\n")
    assert result.outcome == "processed"
    assert SkippedPart.OWN_OUTPUT not in result.findings


def test_places_in_the_file_are_those_of_the_file(orc: Orchestrator, known: str) -> None:
    text = f"{orc.bulletin().bulletin.text}\n\nIda keeps three goats."
    drop(orc, "mixed.md", text)
    last = text.count("\n") + 1
    [goats] = [each for each in orc.memories.list(limit=9) if "goats" in each.content]
    found = orc.trace(goats.memory_id).source
    assert found.locator == f"L{last}-L{last}"


def test_cleaning_is_told_and_an_empty_rest_is_refused() -> None:
    parsed = parse_document(b"Ida keeps goats.", "a.txt", lambda text: (text, 2))
    assert [(each.code, each.count) for each in parsed.findings] == [(SkippedPart.OWN_OUTPUT, 2)]
    with pytest.raises(IngestRejected) as caught:
        parse_document(b"Ida keeps goats.", "a.txt", lambda text: ("\n", 1))
    assert caught.value.details["reason"] == RejectionReason.OWN_OUTPUT
