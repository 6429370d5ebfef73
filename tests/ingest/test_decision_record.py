from __future__ import annotations

import pytest

from ingest.candidates import IngestCandidate, ParsedDocument
from ingest.parse import parse_document
from ingest.parsers.decision_record import MAX_DECISION_CHARS
from ingest.reasons import SkippedPart
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType
from memgraph.model.sources import FileLink


def record(status: str = "Accepted", *, title: str = "# 7. Use queues", **sections: str) -> str:
    parts = [title, "Date: 2024-05-06"]
    if status:
        parts.append(f"## Status\n\n{status}")
    given = {"context": "Calls to billing time out.", "decision": "We will use queues."} | sections
    parts += [f"## {name.capitalize()}\n\n{text}" for name, text in given.items()]
    return "\n\n".join(parts) + "\n"


def parse(text: str, path: str = "adr/0007-use-queues.md") -> ParsedDocument:
    document = parse_document(text.encode(), path)
    assert document.format == "decision_record"
    return document


def decision(document: ParsedDocument) -> IngestCandidate:
    (found,) = [each for each in document.candidates if each.type is MemoryType.DECISION]
    return found


def updates(document: ParsedDocument) -> list[FileLink]:
    return [link for link in document.links if link.edge_type is EdgeType.UPDATES]


def joined(document: ParsedDocument, edge_type: EdgeType, *, outgoing: bool = False) -> list[str]:
    """Return the contents at the other ends of the edges to the decision, or from it."""
    content = {each.key: each.content for each in document.candidates}
    main, ends = decision(document).key, []
    for edge in document.edges:
        one, other = edge.from_id[1:], edge.to_id[1:]
        if edge.edge_type is edge_type and main == (one if outgoing else other):
            ends.append(content[other if outgoing else one])
    return ends


def grounds(document: ParsedDocument) -> list[str]:
    """What the decision was taken for."""
    return joined(document, EdgeType.CAUSED_BY, outgoing=True)


def test_one_decision_with_its_sections_and_consequences() -> None:
    document = parse(record(consequences="Retries get simple.\n\nThere is one more thing to run."))
    main = decision(document)
    assert main.content == "Use queues: We will use queues."
    assert document.main_key == main.key
    assert main.status is MemoryStatus.ACTIVE
    assert main.event_time == 1714953600000
    assert main.attributes["decision_status"] == "Accepted"
    assert main.attributes["record_number"] == 7
    assert "accepted" in main.tags
    assert grounds(document) == ["Use queues (context): Calls to billing time out."]
    assert joined(document, EdgeType.CAUSED_BY) == [
        "Use queues (consequence): Retries get simple.",
        "Use queues (consequence): There is one more thing to run.",
    ]
    places = [each.locator for each in document.candidates]
    assert places == ["L15-L15", "L11-L11", "L19-L19", "L21-L21"]


@pytest.mark.parametrize(
    ("status", "word", "heading", "importance", "confidence"),
    [
        ("", None, "Use queues", 70, 0.85),
        ("Accepted (2024-05-06)", "Accepted", "Use queues", 75, 0.9),
        ("\u2705 accepted", "Accepted", "Use queues", 75, 0.9),
        ("**Rejected**", "Rejected", "Use queues (rejected)", 60, 0.7),
        ("Not accepted", "Not accepted", "Use queues (not accepted)", 60, 0.7),
        # The rest of it is in force.
        ("Partly superseded", "Partly superseded", "Use queues (partly superseded)", 70, 0.85),
    ],
)
def test_the_status_is_kept_and_weighs(
    status: str, word: str | None, heading: str, importance: int, confidence: float
) -> None:
    main = decision(parse(record(status)))
    assert main.attributes.get("decision_status") == word
    assert main.content == f"{heading}: We will use queues."
    assert main.status is MemoryStatus.ACTIVE
    assert (main.importance, main.confidence) == (importance, confidence)


@pytest.mark.parametrize(
    "status",
    [
        "Superceded by [9. Streams](0009-streams.md)",
        "Accepted\n\nSuperseded by [9. Streams](0009-streams.md)",
        "Replaced by [9. Streams](../adr/0009-streams.md#decision)",
    ],
)
def test_superseded_as_a_whole(status: str) -> None:
    document = parse(record(status))
    assert decision(document).status is MemoryStatus.SUPERSEDED
    assert decision(document).attributes["decision_status"] == "Superseded"
    (link,) = updates(document)
    assert (link.target, link.outgoing) == ("path:adr/0009-streams.md", False)
    assert (link.partial, link.weight) == (False, 1.0)


def test_superseded_by_a_number() -> None:
    for status in ("Superseded by ADR-0009", "Superseded by #9"):
        (link,) = updates(parse(record(status)))
        assert (link.target, link.fallbacks) == ("record:adr#9", ("record:#9",))
        assert not link.outgoing


@pytest.mark.parametrize(
    ("status", "outgoing", "whole", "weight"),
    [
        ("Accepted\n\nAmends [3. Calls](0003-c.md)", True, False, 0.6),
        ("Accepted\n\nAmended by [3. Calls](0003-c.md)", False, False, 0.6),
        ("Accepted\n\nSupersedes [3. Calls](0003-c.md)", True, True, 1.0),
        ("Accepted, partially supersedes [3. Calls](0003-c.md)", True, False, 0.5),
        ("Partly superseded by [3. Calls](0003-c.md)", False, False, 0.5),
    ],
)
def test_relations_in_the_status(status: str, outgoing: bool, whole: bool, weight: float) -> None:
    document = parse(record(status))
    (link,) = updates(document)
    assert link.target == "path:adr/0003-c.md"
    assert (link.outgoing, not link.partial, link.weight) == (outgoing, whole, weight)
    assert decision(document).status is MemoryStatus.ACTIVE


@pytest.mark.parametrize(
    ("sentence", "whole"),
    [
        ("This ADR supersedes [3](0003-c.md).", True),
        ("This ADR in part supersedes [3](0003-c.md).", False),
    ],
)
def test_relations_in_the_text(sentence: str, whole: bool) -> None:
    (link,) = updates(parse(record(context=sentence)))
    assert (link.target, link.outgoing, not link.partial) == ("path:adr/0003-c.md", True, whole)


@pytest.mark.parametrize(
    "sentence",
    [
        "[ADR 3](0003-c.md) was superseded by [ADR 4](0004-d.md).",
        "This should be superseded by [ADR 4](0004-d.md) one day.",
        "The retry rule replaces [ADR 4](0004-d.md).",
        "As [ADR 4](0004-d.md) says, calls time out.",
    ],
)
def test_what_is_not_said_for_sure_is_related_at_most(sentence: str) -> None:
    document = parse(record(context=sentence))
    assert updates(document) == []
    assert {link.edge_type for link in document.links} == {EdgeType.RELATED_TO}


def test_each_record_is_named_by_the_phrase_before_it() -> None:
    document = parse(record("Supersedes [3](0003-c.md), amends [4](0004-d.md)"))
    assert [(link.target, link.partial) for link in updates(document)] == [
        ("path:adr/0003-c.md", False),
        ("path:adr/0004-d.md", True),
    ]


def test_links_to_the_web_and_to_other_kinds_of_files_are_no_edges() -> None:
    text = "See [a](https://example.org/x.md), [b](../main.tf), ![c](c.png) and [d](#decision)."
    assert parse(record(context=text)).links == []


def test_the_files_name_numbers_the_record() -> None:
    document = parse(record(title="# 3. Copied heading"), "adr/0033-ranges.md")
    assert decision(document).attributes["record_number"] == 33
    assert "record:adr#33" in document.document_keys


def test_the_rest_of_a_long_decision_hangs_on_it() -> None:
    said = [f"Team {number} has looked at {'very ' * 20}many ways." for number in range(12)]
    document = parse(record(decision="\n\n".join(said)))
    main = decision(document)
    assert main.content.startswith(f"Use queues: {said[0]} {said[1]}")
    assert len(main.content) <= MAX_DECISION_CHARS + 20
    details = [e for e in document.candidates if e.attributes["role"] == "decision_detail"]
    assert [each.content for each in details] == [f"Use queues (detail): {e}" for e in said[5:]]


def test_subsections_of_the_decision_belong_to_it() -> None:
    text = record(decision="We will use queues.\n\n### Sizes\n\nSmall ones.")
    assert decision(parse(text)).content == "Use queues: We will use queues. Sizes: Small ones."


def test_empty_sections_and_placeholders_in_braces_are_left_out_and_counted() -> None:
    document = parse(record(consequences="{What gets easier?}", context="") + "\n## Links\n")
    assert [each.content for each in document.candidates] == ["Use queues: We will use queues."]
    assert [each.code for each in document.findings] == [
        SkippedPart.EMPTY_SECTION,
        SkippedPart.PLACEHOLDER,
        SkippedPart.EMPTY_SECTION,
    ]


def test_the_madr_template() -> None:
    text = """---
status: "superseded by [ADR-0012](0012-new.md)"
date: 2024-05-06
decision-makers: [Ann, Bob]
tags: [storage]
---
# Use one store

## Context and Problem Statement

Where do rows go?

<!-- This is optional. -->
## Considered Options

* One store
* Two stores

## Decision Outcome

Chosen option: "One store", because it is simple.

### Consequences

* Good, because backups are one file
* Bad, because <disk> is shared

## More Information

Amends [ADR 3](0003-x.md)
"""
    document = parse(text, "decisions/one-store.md")
    main = decision(document)
    assert main.content == (
        'Use one store (superseded): Chosen option: "One store", because it is simple.'
    )
    assert main.status is MemoryStatus.SUPERSEDED
    assert main.attributes["decision_makers"] == "Ann, Bob"
    assert "storage" in main.tags
    assert joined(document, EdgeType.CAUSED_BY) == [
        "Use one store (superseded, consequence): Good, because backups are one file",
        "Use one store (superseded, consequence): Bad, because <disk> is shared",
    ]
    assert joined(document, EdgeType.PART_OF) == [
        "Use one store (superseded, Considered Options): One store",
        "Use one store (superseded, Considered Options): Two stores",
        "Use one store (superseded, More Information): Amends ADR 3",
    ]
    assert [(link.target, link.outgoing) for link in updates(document)] == [
        ("path:decisions/0012-new.md", False),
        ("path:decisions/0003-x.md", True),
    ]


def test_fields_above_the_first_section() -> None:
    text = (
        "# ADR 5: Use queues\n\n* Status: accepted\n* Date: 2020-01-02\n"
        "* Supersedes: [ADR-0002](0002-q.md)\n\n## Decision\n\nQueues.\n\n"
        "## Context\n\nCalls time out often.\n"
    )
    document = parse(text, "0005-queues.md")
    assert decision(document).attributes["decision_status"] == "Accepted"
    assert decision(document).event_time == 1577923200000
    assert [(link.target, not link.partial) for link in updates(document)] == [
        ("path:0002-q.md", True)
    ]
    assert grounds(document) == ["Use queues (context): Calls time out often."]


def test_a_proposal_is_the_decision_when_no_other_section_is() -> None:
    text = (
        "# 9. Domains\n\n## Status\n\nAccepted\n\n## Context\n\nC.\n\n## Proposal\n\nOne domain.\n"
    )
    assert decision(parse(text)).content == "Domains: One domain."


def test_a_date_that_cannot_be_read_is_told() -> None:
    document = parse(record().replace("2024-05-06", "5/6/2024"))
    assert decision(document).event_time is None
    assert [each.code for each in document.findings] == [SkippedPart.DATE_NOT_UNDERSTOOD]


def test_a_date_is_read_as_the_other_dates_of_the_record_are() -> None:
    text = record(context="It broke on 25/6/2024.").replace("2024-05-06", "5/6/2024")
    assert decision(parse(text)).event_time == 1717545600000  # 5 June


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("adr/20240506-use-queues.md", "Accepted", ""),
        ("adr/2024-05-06-use-queues/README.md", "Accepted", ""),
        ("adr/0007-use-queues.md", "Accepted on 2024-05-06", ""),
        ("adr/0007-use-queues.md", "Accepted", "> | | |\n> |---|---|\n> | Date | `06/05/2024` |"),
    ],
)
def test_the_date_stands_where_it_stands(path: str, status: str, text: str) -> None:
    since = record(status, context="It began on 13/04/2024.").replace("Date: 2024-05-06", text)
    assert decision(parse(since, path)).event_time == 1714953600000


def test_what_is_for_and_against_an_option_is_kept_with_it() -> None:
    options = (
        "* Queues\n* Calls\n\n### Queues\n\n* Good, because they wait\n* Bad, because they grow\n\n"
        "### Calls\n\n#### Pros\n\n- quick to write\n\n#### Cons\n\n- they time out\n"
    )
    text = record(decision='Chosen option: "Queues", because they wait (see below).')
    document = parse(f"{text}\n## Pros and Cons of the Options\n\n{options}")
    assert decision(document).content == (
        'Use queues: Chosen option: "Queues", because they wait (see below).'
    )
    assert joined(document, EdgeType.PART_OF) == [
        "Use queues (Pros and Cons of the Options): Queues",
        "Use queues (Pros and Cons of the Options): Calls",
        "Use queues (Pros and Cons of the Options / Queues): Good, because they wait",
        "Use queues (Pros and Cons of the Options / Queues): Bad, because they grow",
        "Use queues (Pros and Cons of the Options / Calls / Pros): quick to write",
        "Use queues (Pros and Cons of the Options / Calls / Cons): they time out",
    ]


@pytest.mark.parametrize(
    ("path", "decided"),
    [
        ("adr/0007-x.md", "TODO: decision outcome"),
        ("adr/0007-x.md", "{What is the change that we are proposing}"),
        ("adr/template.md", "We will use queues."),
    ],
)
def test_a_template_decides_nothing(path: str, decided: str) -> None:
    document = parse_document(record(decision=decided).encode(), path)
    assert document.candidates
    assert [each for each in document.candidates if each.type is MemoryType.DECISION] == []


def test_boxes_and_actions_are_todos() -> None:
    boxes = "- [ ] Tell the billing team\n- [x] Order the licence\n"
    document = parse(f"{record(context=boxes)}\n## Actions\n\n- Write the guide\n")
    todos = [
        (each.content, each.status) for each in document.candidates if each.type is MemoryType.TODO
    ]
    assert todos == [
        ("Use queues (open action): Tell the billing team", MemoryStatus.ACTIVE),
        ("Use queues (done): Order the licence", MemoryStatus.SUPERSEDED),
        ("Use queues (open action): Write the guide", MemoryStatus.ACTIVE),
    ]


def test_minutes_with_decisions_are_no_record() -> None:
    text = "# Board\n\n## Decisions\n\n- We close the office.\n- Rent goes up.\n"
    document = parse_document(text.encode(), "2026-05-12-minutes.md")
    assert document.format == "markdown"
    assert [(each.type, each.content) for each in document.candidates] == [
        (MemoryType.DECISION, "We close the office."),
        (MemoryType.DECISION, "Rent goes up."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# API\n\n## All\n\n### Context\n\nC.\n\n### GET status\n\nS.\n\n### Decision\n\nD.\n",
        "# Words\n\n## Decision\n\nA type.\n\n## Goal\n\nAnother.\n",
        "# Words\n\n## Decision maker\n\nA.\n\n## Decision tree\n\nB.\n\n## Context\n\nC.\n",
    ],
)
def test_other_documents_with_such_headings_are_no_records(text: str) -> None:
    assert parse_document(text.encode(), "http.md").format == "markdown"
