"""Output of the memory that was pasted whole is taken out; everything else stays as it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.context.blocks import render
from memgraph.model.context import BlockFormat, BlockLine
from memgraph.model.enums import MemoryKind
from memgraph.rules import bulletin
from memgraph.rules.blocks import FENCE_INTRO, without_own_output
from memgraph.rules.bulletin import BulletinSection, LayoutEntry

ID = "fact_01ARZ3NDEKTSV4RRFFQ69G5FAV"
RECEIPT = "rcl_01ARZ3NDEKTSV4RRFFQ69G5FAV"
ASKED = "What of this is out of date?"
RECALL = {"receipt_id": RECEIPT, "items": [{"memory_id": ID, "content": "Mira lives in Graz."}]}
FENCED = '<data-0123456789abcdef>\n{"content": "Mira lives in Graz."}\n</data-0123456789abcdef>'
BULLETIN = bulletin.compose(
    {
        BulletinSection.KNOWLEDGE_SUMMARY: [LayoutEntry("Fact: Mira lives in Graz.", (ID,))],
        BulletinSection.OPEN_TODOS: [LayoutEntry("Water the plants.", (ID,))],
    }
).markdown
LINES = [
    BlockLine(
        memory_id=ID, kind=MemoryKind.FACT, text=text, at=0, citation="manual", confidence=0.5
    )
    for text in ("Mira lives in Graz.", "# [x] the plants\n- live in Graz, too", "Graz\u200b")
]
BLOCKS = {
    form: render(LINES, form, mark="0123456789abcdef", insight=LINES[0]) for form in BlockFormat
}
PRINTED = f"1. {ID}  Fact, 2026-01-05\n   Mira lives in Graz.\n   from manual\n"


@pytest.mark.parametrize(
    "output",
    [
        BULLETIN,
        json.dumps(RECALL),
        json.dumps(RECALL, indent=2),
        json.dumps(RECALL["items"]),
        json.dumps({"results": RECALL["items"]}),
        json.dumps([{"memory": RECALL["items"][0], "score": 0.3}]),
        json.dumps({"text": BULLETIN, "memory_ids": [ID]}),
        json.dumps(RECALL, indent=2)[:-3],
        json.dumps(RECALL)[:-3],
        FENCED,
        PRINTED,
        *BLOCKS.values(),
        *(block.rstrip() for block in BLOCKS.values()),
        *(block.replace("\n", "\r\n") for block in BLOCKS.values()),
        BLOCKS[BlockFormat.FENCED].rpartition("</data-")[0].rstrip(),
        BLOCKS[BlockFormat.LIST].partition("\n\n")[0],
        BLOCKS[BlockFormat.SECTIONS].partition("\n\n")[2],
    ],
)
def test_pasted_output_is_taken_out(output: str) -> None:
    left, blocks = without_own_output(f"Look:\n{output}\n{ASKED}")
    assert left.split("\n")[0] == "Look:"
    assert left.strip().endswith(ASKED)
    assert "Graz" not in left
    assert "plants" not in left
    assert blocks >= 1
    assert left.count("\n") == output.count("\n") + 2


@pytest.mark.parametrize(
    "text",
    [
        "- Mira lives in Linz now.",
        f"{BULLETIN}\n- And buy milk.".splitlines()[-1],
        '{"items": [{"content": "Mira lives in Graz."}]}',
        'The key is called "memory_id" {here}.',
        '[{"memory_id": "abc", "content": "From another program."}]',
        f'{{"title": "Why {ID} was wrong"}}',
        "<data-0123456789abcdef> was never closed",
        "<my-button-0badcafe>I live in Oslo now.</my-button-0badcafe>",
        "<memory-0123456789abcdef>I live in Oslo now.</memory-0123456789abcdef>",
        "<b-tag>bold</b-tag>",
        "## open_todos, as we call them",
        "## Relevant memory\nMira lives in Linz now.",
        "## Relevant memory\n\n- Mira lives in Linz now.",
        "## Weekly insight\n- We sold three pianos.",
        f"## Weekly insights\n- We sold three pianos. [{ID}]",
        "[Relevant Memory]",
        "[Relevant Memory] is what the block was called.\n- Mira lives in Linz now.",
        "[Relevant Memory]\nMira lives in Linz now.",
        "[Weekly Insight]\n\n- We sold three pianos.",
        f"They wrote: {FENCE_INTRO}",
        "- Mira lives in Graz.\n- Mira likes plants.",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert without_own_output(text) == (text, 0)


def test_what_was_added_to_a_bulletin_stays() -> None:
    left, blocks = without_own_output(f"{BULLETIN}- Buy milk tomorrow.\n")
    assert (left.strip(), blocks) == ("- Buy milk tomorrow.", 1)


@pytest.mark.parametrize("form", BlockFormat)
def test_what_stands_behind_a_block_stays(form: BlockFormat) -> None:
    asked = "[User Message]\nI moved to Linz.\n- Buy milk tomorrow.\n"
    left, blocks = without_own_output(f"{BLOCKS[form]}\n{asked}")
    assert left.lstrip("\n") == asked
    assert blocks >= 1
    if form is not BlockFormat.LIST:
        assert without_own_output(BLOCKS[form] + "- Buy milk.")[0].strip() == "- Buy milk."


def test_hostile_text_costs_little() -> None:
    for text in ("<data-0123456789abcdef>" * 1_500, f'"{ID}"' + "[" * 30_000, "{" * 30_000):
        assert without_own_output(text)[1] == 0


@given(st.text())
def test_any_text(text: str) -> None:
    left, blocks = without_own_output(text)
    assert len(left) <= len(text)
    assert blocks or left == text


OURS = ["- Mira lives in Graz.", "- Tea", "- Mira likes plants in pots."]


def told(line: str) -> bool:
    return line.strip() in (OURS[0], OURS[2])


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (OURS, []),
        ([*OURS, "- I moved to Linz in May."], ["- I moved to Linz in May."]),
        ([OURS[0], "- I moved to Linz in May.", *OURS[1:]], ["- I moved to Linz in May."]),
        # Too short to be told, and behind the last that is ours: whoever goes on writing.
        ([OURS[0], OURS[1]], [OURS[1]]),
        (["- I moved to Linz in May.", OURS[0]], ["- I moved to Linz in May."]),
    ],
)
def test_of_a_list_only_memories_are_ours(lines: list[str], left: list[str]) -> None:
    text = "\n".join(["[Relevant Memory]", *lines, "", "[User Message]"])
    bare, blocks = without_own_output(text, told)
    assert [each for each in bare.split("\n") if each] == [*left, "[User Message]"]
    assert bare.count("\n") == text.count("\n")
    assert blocks == 1


def test_a_list_of_somebody_else_under_our_heading_stays() -> None:
    text = "[Relevant Memory]\n- I moved to Linz in May.\n- Tea"
    assert without_own_output(text, told) == (text, 0)
