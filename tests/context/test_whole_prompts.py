"""The bulletin and a block, joined as the hooks do it: no text in one gets out of it."""

from __future__ import annotations

import re

import pytest
from hostile_texts import MARK, hostile_texts

from memgraph.model.context import BlockFormat, ContextPackage
from memgraph.model.enums import MemoryKind, MemoryType
from memgraph.rules.blocks import BLOCK_INTRO, FENCE_INTRO, LIST_TITLE, SECTION_TITLE, label
from memgraph.rules.bulletin import BulletinSection, Entry, compose
from memgraph.rules.lines import BlockLine, render
from memgraph.service.turns.hooks import joined

BATCH = 20
EVERYTHING = 1_000_000
HEADINGS = "|".join(each.heading for each in BulletinSection)
FRAME = re.compile(
    rf"{re.escape(FENCE_INTRO)}|{re.escape(BLOCK_INTRO)}|</?memory [0-9]{{6}}>|"
    rf"## (?:{HEADINGS}) \(\d+ of (?:over )?\d+\)|"
)
ITEM = re.compile(r"\[(\d+)\] Thu 1970-01-01, [^:\[\]<>]*: (.+) #(\d+)")
BEGINS = {
    BlockFormat.FENCED: BLOCK_INTRO,
    BlockFormat.LIST: LIST_TITLE,
    BlockFormat.SECTIONS: SECTION_TITLE,
}


def prompt_of(texts: list[str], form: BlockFormat) -> tuple[str, str, str]:
    """The bulletin, the block and the prompt."""
    sections = list(BulletinSection)
    offered: dict[BulletinSection, list[Entry]] = {each: [] for each in sections}
    for place, text in enumerate(texts):
        line = BlockLine(
            f"id{place}",
            MemoryKind.FACT,
            MemoryType.FACT,
            text,
            0,
            label(text[:60]),
            handle=str(place),
        )
        offered[sections[place % len(sections)]].append((line,))
    bulletin = compose(offered, EVERYTHING).text
    lines = [
        BlockLine(f"id{place}", MemoryKind.FACT, MemoryType.FACT, each, 0, label(each[:60]))
        for place, each in enumerate(texts)
    ]
    block = render(lines, form, mark=MARK)
    context = ContextPackage.model_construct(text=block)
    return bulletin, block, joined(bulletin, context)


@pytest.mark.parametrize("form", BlockFormat)
def test_no_hostile_text_leaves_its_half(form: BlockFormat) -> None:
    # The block itself: tests/rules/test_lines.py. What is asked here differs little by its form.
    texts = list(hostile_texts())[:: 1 if form is BlockFormat.FENCED else 5]
    read = 0
    for place in range(0, len(texts), BATCH):
        batch = texts[place : place + BATCH]
        bulletin, block, prompt = prompt_of(batch, form)
        lines = prompt.split("\n")
        assert prompt.splitlines() == lines[:-1]
        assert lines[-1] == ""
        assert all(not each or each.isprintable() for each in lines)
        # One place where the bulletin ends and the block begins, and it is where it should be.
        first = bulletin.count("\n") + 1
        assert [at for at, each in enumerate(lines) if each == BEGINS[form]][-1] == first
        assert "\n".join(lines[first:]) == block
        fences = 2 if form is BlockFormat.FENCED else 1
        # Only the other two forms write a backslash before what could be a mark.
        plain = prompt if form is BlockFormat.FENCED else re.sub(r"\\.", "", prompt)
        assert (plain.count("<memory "), plain.count("</memory ")) == (
            fences,
            fences,
        )
        items = [each for each in lines[:first] if not FRAME.fullmatch(each)]
        for each in items:
            found = ITEM.fullmatch(each)
            assert found is not None
            assert not re.search(r"</?memory\b|\[\s*#?\d+\s*\]", found[2])
        assert len(items) == len(batch)
        read += len(items)
    assert read == len(texts) > 0


def test_one_half_alone_stands_as_it_is() -> None:
    bulletin, block, _ = prompt_of(["Mira lives in Graz."], BlockFormat.FENCED)
    context = ContextPackage.model_construct(text=block)
    assert joined("", context) == block
    assert joined(bulletin, None) == bulletin
