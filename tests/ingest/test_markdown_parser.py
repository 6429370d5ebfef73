from __future__ import annotations

import time
from contextlib import suppress

import pytest

from ingest.candidates import ParsedDocument
from ingest.claims import summary_of
from ingest.parse import parse_document
from ingest.parsers.blocks import MAX_NESTING, read_blocks
from ingest.reasons import RejectionReason, SkippedPart
from memgraph.errors import IngestRejected
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType

OBSERVATION = MemoryType.OBSERVATION
PLAN = """---
title: Plan
date: 2024-05-06
tags: [ops, Ops, infra]
---
# Plan

The team works in Porto. See the [notes](notes/spec.md#top) and https://example.org/x.

## Tasks

- [ ] write the guide
- [x] order the parts
  - [ ] and the screws

## Start

Run this:

```sh
make demo
```

| Port | Use |
|------|-----|
| 80   | web |
| 22   | ssh |
"""


def parse(text: str, path: str = "docs/plan.md") -> ParsedDocument:
    return parse_document(text.encode(), path)


def test_the_rows_of_a_table_in_plain_text_have_its_columns() -> None:
    table = "| Who | What |\n|:---|---|\n| Ann | call \\| write |\n|  | pay |\n| | |\n"
    document = parse(f"## Action items\n\n{table}\n## Ports\n\n| Port |\n|---|\n", "plan.txt")
    assert [(each.type, each.content, each.locator) for each in document.candidates] == [
        (MemoryType.TODO, "Who: Ann; What: call | write", "L5-L5"),
        (MemoryType.TODO, "What: pay", "L6-L6"),
        (OBSERVATION, "Port", "L11-L11"),
    ]


def test_structure_of_a_document() -> None:
    document = parse(PLAN)
    assert document.format == "markdown"
    assert document.title == "Plan"
    parts = document.candidates
    assert [(each.type, each.content) for each in parts] == [
        (OBSERVATION, "The team works in Porto. See the notes and https://example.org/x."),
        (MemoryType.TODO, "write the guide"),
        (MemoryType.TODO, "order the parts"),
        (MemoryType.TODO, "and the screws"),
        (OBSERVATION, "make demo"),
        (OBSERVATION, "Port: 80; Use: web"),
        (OBSERVATION, "Port: 22; Use: ssh"),
    ]
    assert document.main_key == parts[0].key
    assert [each.status for each in parts[1:4]] == [
        MemoryStatus.ACTIVE,
        MemoryStatus.SUPERSEDED,
        MemoryStatus.ACTIVE,
    ]
    assert {each.event_time for each in parts} == {1714953600000}
    assert parts[0].tags == ("ops", "infra")
    assert parts[1].attributes["section"] == "Tasks"
    assert parts[4].attributes["section"] == "Start / Run this"
    assert [(edge.to_id[1:], edge.edge_type) for edge in document.edges] == [
        (parts[0].key, EdgeType.PART_OF)
    ] * 6
    assert document.findings == []


def test_boilerplate_is_left_out_and_counted() -> None:
    text = (
        "<!-- a comment -->\n# Tools\n\n"
        "[![build](b.svg)](https://ci.example.org) ![logo](l.png)\n\n"
        "- [ADR 1](0001-a.md) - Use queues for all jobs\n\n"
        "## Contents\n\n1. [Start](#start)\n2. [Statuses](#statuses)\n\n[TOC]\n\n---\n\n"
        "## Statuses\n\n| a | b |\n|---|---|\n|   |   |\n| 1 | 2 |\n\n***\n\n!!\n"
    )
    document = parse(text, "docs/index.md")
    assert [each.content for each in document.candidates] == [
        "ADR 1 - Use queues for all jobs",
        "a: 1; b: 2",
    ]
    assert summary_of(document.findings)["left_out"] == {
        "comment": 1,
        "empty_row": 1,
        "no_words": 1,
        "picture": 2,
        "rule": 2,
        "table_of_contents": 3,
    }


def test_headings_and_the_line_above_a_list_are_context() -> None:
    text = (
        "# S\n\nPuppet manages:\n\n- backups\n  - nightly\n- users\n\n"
        "Ann knows it. It was old.\n\n## Buy milk\n"
    )
    found = [(each.attributes.get("section"), each.content) for each in parse(text).candidates]
    assert found == [
        ("S / Puppet manages", "backups"),
        ("S / Puppet manages / backups", "nightly"),
        ("S / Puppet manages", "users"),
        ("S", "Ann knows it. It was old."),
        (None, "Buy milk"),
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("notes.txt", "06/05/2024\nCall Ana.\n\nPay Bo."),
        ("notes.txt", "Date: 06/05/2024\n\nCall Ana.\n\nPay Bo."),
        ("notes.md", "Date: 06/05/2024\n\nCall Ana.\n\nPay Bo."),
        ("notes.md", "06/05/2024\n\n# Calls\n\nCall Ana.\n\nPay Bo."),
        ("notes.md", "# Diary\n\n## 06/05/2024\n\nCall Ana.\n\n### Later\n\nPay Bo."),
        ("notes.md", "# Diary of 06/05/2024\n\nCall Ana.\n\n## Later\n\nPay Bo."),
    ],
)
def test_an_ambiguous_date_of_a_note_is_reported_once_and_read_in_the_set_order(
    path: str, text: str
) -> None:
    document = parse(text, path)
    assert [each.code for each in document.findings] == [SkippedPart.DATE_NOT_UNDERSTOOD]
    assert "06/05/2024" in document.findings[0].details["text"]
    read = parse_document(text.encode(), path, order="day first")
    assert read.findings == []
    assert {each.event_time for each in read.candidates} == {1714953600000}


DAY = 86_400_000


@pytest.mark.parametrize(
    ("path", "text", "days"),
    [
        # The document says another day than its title: which one is not known.
        ("a.md", "---\ndate: 03/05/2026\n---\n# On 12 May 2026\n\nIt rains.\n", None),
        ("2026-05-12.md", "Date: 03/05/2026\n\nIt rains.\n", None),
        ("a.md", "# Log of 12 May 2026\n\n## 03/05/2026\n\nIt rains.\n", None),
        # A title or a name of the same day tells which of the two is meant.
        ("a.md", "---\ndate: 03/05/2026\n---\n# On 3 May 2026\n\nIt rains.\n", 20576),
        ("2026-03-05.md", "Date: 03/05/2026\n\nIt rains.\n", 20517),
        ("a.md", "Date: 05/05/2026\n\nIt rains.\n", 20578),
        # A heading of the whole note is a title, too, below another one in the front matter.
        ("a.md", "---\ntitle: Log\n---\n# On 3 May 2026\n\nIt rains.\n", 20576),
    ],
)
def test_a_less_explicit_date_decides_an_ambiguous_one_only_if_it_is_of_the_same_day(
    path: str, text: str, days: int | None
) -> None:
    document = parse(text, path)
    assert document.candidates[-1].event_time == (None if days is None else days * DAY)
    found = [each.details for each in document.findings]
    assert found == ([{"text": "03/05/2026"}] if days is None else [])


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("# Visit\nDate: 2026-05-03\n\nIt rains.\n", ["It rains."]),
        ("**Date**: Sunday, 3 May 2026\nPlace: Braga\n", ["Place: Braga"]),
        ("- Date: 2026-05-03\n- Place: Braga\n", ["Place: Braga"]),
        ("# Visit to Braga\n\nDate: 2026-05-03\n", ["Visit to Braga"]),
        # It says more than the date of the note, or another date.
        ("Date: 2026-05-03 in Braga\n", ["Date: 2026-05-03 in Braga"]),
        ("---\ndate: 2026-05-03\n---\nSent: 2026-05-04\n", ["Sent: 2026-05-04"]),
        ("Date: 2026-05-03\n\n## Invoice\n\nDate: 2026-05-03\n", ["Date: 2026-05-03"]),
    ],
)
def test_the_field_of_the_date_is_a_line_only_if_it_says_more(
    text: str, contents: list[str]
) -> None:
    document = parse(text)
    assert [each.content for each in document.candidates] == contents
    assert {each.event_time for each in document.candidates} == {20576 * DAY}


@pytest.mark.parametrize("path", ["a.md", "a.txt"])
@pytest.mark.parametrize(
    "text",
    [
        "2026-05-03\n\n# Garden\n\nIt rains.\n",
        "3 May 2026\n\nIt rains.\n",
        "# Garden\n3 May 2026\nIt rains.\n",
        "# Garden\n\n**3 May 2026**\n\n## Hoses\n\nIt rains.\n",
        "*Sunday, 3 May 2026*\n\nGarden\n======\n\nIt rains.\n",
        "2026-05-03 (Sun)\n# Garden\nIt rains.\n",
    ],
)
def test_a_date_alone_at_the_head_dates_the_note_and_is_no_memory(path: str, text: str) -> None:
    document = parse(text, path)
    found = [(each.content, each.event_time) for each in document.candidates]
    assert found == [("It rains.", 20576 * DAY)]


@pytest.mark.parametrize(
    "text",
    [
        "It rains.\n\n2026-05-03\n",
        "- 2026-05-03\n- It rains.\n",
        "Meeting 3 May 2026\n\nIt rains.\n",
        # Each of several dates may be that of the lines below it.
        "2026-05-03\n\nIt rains.\n\n2026-05-04\n\nIt snows.\n",
    ],
)
def test_a_date_that_may_not_be_that_of_the_whole_note_is_a_line(text: str) -> None:
    document = parse(text)
    assert len(document.candidates) == len([line for line in text.splitlines() if line])
    assert {each.event_time for each in document.candidates} == {None}


def test_lines_of_a_paragraph_stay_apart_unless_an_editor_wrapped_them() -> None:
    apart = "The passport lies in the blue drawer of the desk since May\nMark is our treasurer\n"
    wrapped = (
        "This paragraph was wrapped by an editor at some seventy characters, so\n"
        "that it goes on in lower case. One of its lines is long enough to begin\n"
        "With a capital.\n"
    )
    assert [each.content for each in parse(apart).candidates] == apart.splitlines()
    assert [(each.locator, each.content) for each in parse(wrapped).candidates] == [
        ("L1-L3", " ".join(wrapped.splitlines()))
    ]


def test_properties_of_a_note_are_lines() -> None:
    text = '---\ntitle: T\nowner: "[[Ann]]"\nparts: [a, b]\n---\nIt is late.\n'
    found = [(each.locator, each.content) for each in parse(text).candidates]
    assert found == [("L3-L3", "owner: Ann"), ("L4-L4", "parts: a, b"), ("L6-L6", "It is late.")]


def test_addresses_of_links_are_kept() -> None:
    (line,) = parse("A [cheap flight](https://example.org/f) and a [note](n.md).").candidates
    assert line.content == "A cheap flight and a note."
    assert line.attributes["links"] == ["https://example.org/f"]


def test_links_between_files() -> None:
    document = parse(PLAN)
    (link,) = document.links
    assert link.edge_type is EdgeType.RELATED_TO
    assert link.local[1:] == document.main_key
    assert link.target == "path:docs/notes/spec.md"
    target = parse("# Spec\n\nIt holds.", "docs/notes/spec.md")
    assert link.target in target.document_keys


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A `code` *word* and a [label](x.md).", "A code word and a label."),
        ("Keep <placeholder> but not <b>bold</b>.", "Keep <placeholder> but not bold."),
        ("Before <!-- hidden --> after.", "Before after."),
        ("One\nwrapped line.", "One wrapped line."),
        ("![a diagram](x.png) of it", "of it"),
        ("R&amp;D \\*stars\\*", "R&D *stars*"),
    ],
)
def test_plain_text_of_a_paragraph(text: str, expected: str) -> None:
    _, blocks = read_blocks(text)
    assert [block.text for block in blocks if block.kind != "omitted"] == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "a: [b",
        "- just\n- a list",
        "[" * 5000,
        "? " * 5000,
        'a: "\\UFFFFFFFF"',
        "a: &x [*x]\nb: {*x : 1}",
        "k: v\n" * 5000,
    ],
)
def test_front_matter_that_cannot_be_read_is_told(text: str) -> None:
    document = parse(f"---\n{text}\n---\nIt is late.\n")
    assert [each.content for each in document.candidates] == ["It is late."]
    assert [each.code for each in document.findings] == [SkippedPart.FRONT_MATTER_INVALID]


def test_front_matter_holds_strings_only() -> None:
    front = 'date: 2024-05-06\nn: 1e999\nx: !!python/object:os.system {}\ny: "\\0"'
    document = parse(f"---\n{front}\n---\nIt is late.\n")
    assert [each.content for each in document.candidates] == ["n: 1e999", "It is late."]
    assert {each.event_time for each in document.candidates} == {1714953600000}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 8_000,
        "> " * 20_000,
        "- " * 20_000,
        "*a " * 10_000,
        "![" * 2_000,
        "<a " * 10_000,
        "`a" * 8_000,
        "|a" * 100 + "\n" + "|-" * 100 + "\n" + "|a\n" * 100,
        "".join("  " * depth + "- a\n" for depth in range(200)),
        "# a\n" * 2_000,
        "[a](b.md) " * 3_000,
        "superseded by " * 20_000 + "\n",
        "superseded by a.md, " * 20_000 + "\n",
    ],
)
def test_hostile_markdown_takes_linear_time(text: str) -> None:
    started = time.process_time()
    with suppress(IngestRejected):
        parse(f"# T\n\n## Status\n\n{text}\n\n## Decision\n\n{text}\n")
    # Generous: these take a second, or 20 and more where something is quadratic.
    assert time.process_time() - started < 10


@pytest.mark.parametrize("mark", ["> ", "- "])
def test_nesting_is_read_as_a_whole_or_refused(mark: str) -> None:
    fits = MAX_NESTING - 1 if mark == "> " else MAX_NESTING // 2 - 1
    made = parse(mark * fits + "We sold the boat.\n")
    assert made.candidates[-1].content == "We sold the boat."
    with pytest.raises(IngestRejected) as caught:
        parse(mark * (fits + 1) + "We sold the boat.\n")
    assert caught.value.details == {"reason": RejectionReason.MARKDOWN_TOO_DEEP, "line": 1}


@pytest.mark.parametrize("noise", ["[very " * 1_000, "*very* " * 4_000])
def test_a_block_with_too_many_marks_is_plain_text(noise: str) -> None:
    made = parse(f"We sold the boat. {noise}\n\nWe *bought* a [plane](p.md).\n")
    said = [each.content for each in made.candidates]
    assert said[0] == "We sold the boat."
    assert noise.split()[0] in said[1]
    assert said[-1] == "We bought a plane."
