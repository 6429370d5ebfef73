from __future__ import annotations

import time
from contextlib import suppress

import pytest

from ingest.candidates import ParsedDocument
from ingest.extract import extract
from ingest.parse import parse_document
from ingest.parsers.blocks import MAX_NESTING, read_blocks, read_front_matter, sections
from ingest.reasons import RejectionReason, SkippedPart
from memgraph.errors import IngestRejected
from memgraph.model.enums import EdgeType, MemoryStatus, MemoryType

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


def test_structure_of_a_document() -> None:
    document = parse(PLAN)
    assert document.format == "markdown"
    assert document.title == "Plan"
    parts = document.candidates
    assert [(each.type, each.content) for each in parts] == [
        (None, "The team works in Porto."),
        (None, "See the notes and https://example.org/x."),
        (MemoryType.TODO, "write the guide"),
        (MemoryType.TODO, "order the parts"),
        (MemoryType.TODO, "and the screws"),
        (None, "Port: 80; Use: web"),
        (None, "Port: 22; Use: ssh"),
    ]
    assert document.main_key == parts[0].key
    assert [each.status for each in parts[2:5]] == [
        MemoryStatus.ACTIVE,
        MemoryStatus.SUPERSEDED,
        MemoryStatus.ACTIVE,
    ]
    assert {each.event_time for each in parts} == {1714953600000}
    assert parts[0].tags == ("ops", "infra")
    assert parts[2].attributes["section"] == "Tasks"


def test_index_pages_and_pictures_say_nothing() -> None:
    text = (
        "# Decisions\n\n[![build](b.svg)](https://ci.example.org) ![logo](l.png)\n\n"
        "- [ADR 1](0001-a.md) - Use queues for all jobs\n- [ADR 2](0002-b.md): We use one store\n\n"
        "## Contents\n\n1. [Start](#start)\n2. [Statuses](#statuses)\n\n"
        "## Statuses\n\n- ✅ Accepted\n- ❌ Rejected\n\n```sh\nmake it is so\n```\n"
    )
    assert extract(parse(text, "docs/index.md")).candidates == ()


def test_items_take_the_line_above_them() -> None:
    text = "# S\n\nPuppet manages:\n\n- backups\n- users\n\nAnn knows it. It was old.\n"
    assert [each.content for each in parse(text).candidates] == [
        "Puppet manages: backups; users.",
        "Ann knows it. It was old.",
    ]


def test_links_between_files() -> None:
    document = parse(PLAN)
    (link,) = document.links
    assert link.edge_type is EdgeType.RELATED_TO
    assert link.local_key == document.main_key
    assert link.target == "path:docs/notes/spec.md"
    target = parse("# Spec\n\nIt holds.", "docs/notes/spec.md")
    assert link.target in target.document_keys


def test_lines_are_those_of_the_file() -> None:
    lines = PLAN.split("\n")
    for each in parse(PLAN).candidates:
        first, last = (int(part[1:]) for part in each.locator.split("-"))
        shown = "\n".join(lines[first - 1 : last])
        assert each.content.split()[-1].strip(".:;") in shown


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
    assert [block.text for block in blocks] == [expected]


def test_sections_know_the_headings_above_them() -> None:
    _, blocks = read_blocks("intro\n\n# A\n\n## B\n\n### C\n\nc\n\n## D\n\nd")
    assert [(each.title, each.path) for each in sections(blocks)] == [
        ("", ()),
        ("A", ()),
        ("B", ("A",)),
        ("C", ("A", "B")),
        ("D", ("A",)),
    ]


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
    front = read_front_matter(text)
    assert front.values == {}
    assert [each.code for each in front.findings] == [SkippedPart.FRONT_MATTER_INVALID]


def test_front_matter_holds_strings_only() -> None:
    front = read_front_matter(
        'date: 2024-05-06\nn: 1e999\nx: !!python/object:os.system {}\ny: "\\0"'
    )
    assert front.first("date") == "2024-05-06"
    assert front.first("n") == "1e999"
    assert front.first("x") is None
    assert front.first("y") is None


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
        "|a" * 150 + "\n" + "|-" * 150 + "\n" + "|a\n" * 150,
        "".join("  " * depth + "- a\n" for depth in range(200)),
        "# a\n" * 2_000,
        "[a](b.md) " * 3_000,
        "superseded by " * 5_000 + "\n",
    ],
)
def test_hostile_markdown_takes_linear_time(text: str) -> None:
    started = time.process_time()
    with suppress(IngestRejected):
        parse(f"# T\n\n## Status\n\n{text}\n\n## Decision\n\n{text}\n")
    # Generous: what is quadratic here takes minutes.
    assert time.process_time() - started < 30


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
