"""The parsers over the real files that the project shares; counts checked by eye."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from ingest.candidates import IngestCandidate, ParsedDocument
from ingest.parse import parse_document
from memgraph.model.enums import EdgeType, MemoryKind, MemoryStatus, MemoryType

SHARED = Path(os.environ.get("MEMGRAPH_SHARED", Path(__file__).parents[3] / "shared"))
DROPS = SHARED / "data" / "drops"

pytestmark = pytest.mark.skipif(not DROPS.is_dir(), reason="needs the shared data (../shared)")


@cache
def parsed() -> dict[str, ParsedDocument]:
    found = sorted(path for path in DROPS.rglob("*") if path.suffix in (".md", ".txt", ".json"))
    names = [str(path.relative_to(DROPS)) for path in found]
    return {
        name: parse_document(path.read_bytes(), name)
        for name, path in zip(names, found, strict=True)
    }


def records() -> dict[str, ParsedDocument]:
    return {name[4:8]: each for name, each in parsed().items() if name.startswith("adr/")}


def decision(document: ParsedDocument) -> IngestCandidate:
    (found,) = [each for each in document.candidates if each.type is MemoryType.DECISION]
    return found


def test_every_record_has_one_decision_with_a_date() -> None:
    assert len(records()) == 38
    for number, each in records().items():
        assert each.format == "decision_record"
        main = decision(each)
        assert main.key == each.main_key
        assert main.event_time is not None
        assert main.attributes["record_number"] == int(number)
        assert len(main.content) > len(each.title or "") + 20


def test_the_status_of_every_record() -> None:
    words = Counter(decision(each).attributes["decision_status"] for each in records().values())
    assert words == {
        "Accepted": 28,
        "Pending": 6,
        "Approved": 1,
        "Proposed": 1,
        "Superseded": 1,
        "Partly superseded": 1,
    }
    replaced = [n for n, e in records().items() if decision(e).status is MemoryStatus.SUPERSEDED]
    assert replaced == ["0004"]


def test_the_relations_between_records() -> None:
    found = {
        (number, link.target.rpartition("/")[2][:4], link.outgoing, not link.partial)
        for number, each in records().items()
        for link in each.links
        if link.edge_type is EdgeType.UPDATES
    }
    assert found == {
        ("0003", "0033", False, False),
        ("0033", "0003", True, False),
        ("0004", "0015", False, True),
        ("0010", "0017", False, False),
        ("0017", "0010", True, False),
    }
    targets = {link.target for each in records().values() for link in each.links}
    known = {key for each in records().values() for key in each.document_keys}
    assert targets <= known


@pytest.mark.parametrize(
    ("name", "turns", "session", "time"),
    [
        ("conv-26-session-01.txt", 18, None, 1683554160000),
        ("conv-26-session-02.json", 17, "conv-26-s2", 1685020440000),
    ],
)
def test_turns_of_a_conversation(name: str, turns: int, session: str | None, time: int) -> None:
    document = parsed()[f"transcripts/{name}"]
    assert len(document.candidates) == turns
    assert document.findings == []
    assert [each.sequence for each in document.candidates] == list(range(turns))
    assert {each.kind for each in document.candidates} == {MemoryKind.EPISODE}
    assert {each.event_time for each in document.candidates} == {time}
    assert {each.conversation_id for each in document.candidates} == {name[:7]}
    expected = session or f"transcripts/{name[:-4]}"
    assert {each.session_id for each in document.candidates} == {expected}
    assert len({each.source_role for each in document.candidates}) == 2
