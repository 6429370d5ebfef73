"""The week in lines: what it says, how long it may get, and that no text breaks out of its line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph.clock import MS_PER_DAY
from memgraph.consolidation.digest import (
    MAX_CHARS,
    DigestLine,
    DigestPart,
    WeekMaterial,
    digest,
    headline,
    title,
)
from memgraph.model.enums import (
    MemoryKind,
    MemoryStatus,
    MemoryType,
    Scope,
    Sensitivity,
)
from memgraph.model.values import Memory
from memgraph.rules.conversations import ReflectionPeriod

NOW = 1_767_225_600_000
WEEK = ReflectionPeriod(NOW - 7 * MS_PER_DAY, NOW + 1)


def memory(number: int, content: str = "", **values: Any) -> Memory:
    fields: dict[str, Any] = {
        "memory_id": f"fact_{number:04d}",
        "orchestrator_id": "orc-1",
        "kind": MemoryKind.FACT,
        "type": MemoryType.FACT,
        "content": content or f"Gate {number} opens at {number}.",
        "summary": "",
        "importance": 50,
        "confidence": 1.0,
        "status": MemoryStatus.ACTIVE,
        "sensitivity": Sensitivity.INTERNAL,
        "scope": Scope.GLOBAL,
        "created_at": NOW,
        "updated_at": NOW,
        "access_count": 0,
        "decay_rate": 0.1,
        "tags": (),
        "attributes": {},
        "content_hash": "0",
        "token_cost": 1,
        "source_id": "src_0",
    }
    absent = dict.fromkeys(set(Memory.model_fields) - set(fields))
    return Memory(**{**absent, **fields, **values})


def week(*memories: Memory, **values: Any) -> WeekMaterial:
    return WeekMaterial(during=WEEK, now_ms=NOW, memories=memories, **values)


def test_a_week_as_it_reads() -> None:
    goal = memory(
        7,
        "Write the handbook.",
        type=MemoryType.GOAL,
        created_at=NOW - 21 * MS_PER_DAY,
        updated_at=NOW - 21 * MS_PER_DAY,
    )
    done = memory(6, "Order scanners.", type=MemoryType.TODO, tags=("done",))
    found = digest(
        week(
            memory(1, "Marta leads the depot.", importance=80, session_id="s"),
            memory(2, "The depot has two gates.", session_id="s"),
            done,
            contradictions=[(memory(3, "It opens at 6."), memory(4, "It opens at 7."))],
            replaced=[(memory(5, "We ship by rail."), memory(8, "We ship by road."))],
            tasks=[goal, done],
        )
    )
    assert found.text == (
        "# 25 December 2025 to 1 January 2026\n\n"
        "3 new memories from 1 conversation: 2 facts, 1 todo.\n\n"
        "## What it was about\n\n"
        "- Marta leads the depot. [fact_0001]\n"
        "- The depot has two gates. [fact_0002]\n\n"
        "## Contradictions to decide\n\n"
        "- “It opens at 6.” against “It opens at 7.” [fact_0003] [fact_0004]\n\n"
        "## What changed\n\n"
        "- “We ship by rail.” instead of “We ship by road.” [fact_0005] [fact_0008]\n\n"
        "## Done\n\n"
        "- Order scanners. [fact_0006]\n\n"
        "## Still waiting\n\n"
        "- Write the handbook. (Goal, untouched for 21 days) [fact_0007]\n"
    )
    assert found.cited == tuple(f"fact_{number:04d}" for number in (1, 2, 3, 4, 5, 8, 6, 7))
    assert found.summary.endswith("1 todo. Marta leads the depot.")


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("2026-11-16", "2026-11-22", "16 to 22 November 2026"),
        ("2026-10-28", "2026-11-03", "28 October to 3 November 2026"),
        ("2025-12-29", "2026-01-04", "29 December 2025 to 4 January 2026"),
        ("2025-11-22", "2026-11-22", "22 November 2025 to 22 November 2026"),
    ],
)
def test_the_days_of_a_title(since: str, until: str, expected: str) -> None:
    from memgraph.clock import parse_time

    assert title(ReflectionPeriod(parse_time(since), parse_time(until) + 1)) == expected


def test_more_than_was_looked_at_is_said() -> None:
    one = memory(1, type=MemoryType.IDENTITY)
    assert headline(week(one, total=412)) == (
        "412 new memories, of which the last 1 were examined: 1 identity."
    )


def test_a_model_s_sentences_stand_in_place_of_the_most_central() -> None:
    said = [DigestLine("It was about the depot.", ("fact_0001",))]
    found = digest(week(memory(1), memory(2)), said)
    assert "## In short\n\n- It was about the depot. [fact_0001]\n" in found.text
    assert DigestPart.CENTRAL not in [part for part, lines in found.lines.items() if lines]
    assert found.summary.endswith("It was about the depot.")


def test_what_says_the_same_is_said_once() -> None:
    found = digest(week(memory(1, "The gate opens at six."), memory(2, "The gate opens at six!")))
    assert found.cited == ("fact_0001",)


def test_turns_are_not_quoted() -> None:
    turn = memory(9, "Hello there.", kind=MemoryKind.EPISODE, importance=100)
    assert digest(week(memory(1), turn)).cited == ("fact_0001",)


def test_lines_of_what_is_gone_fall_out() -> None:
    pair = (memory(3, "It opens at 6."), memory(4, "It opens at 7."))
    found = digest(week(memory(1), memory(2, "The depot has two doors."), contradictions=[pair]))
    left = found.without({"fact_0001", "fact_0004"})
    assert left.cited == ("fact_0002",)
    assert "Contradictions" not in left.text
    assert found.without(found.cited).cited == ()


texts = st.text(min_size=1, max_size=300).filter(lambda text: bool(text.strip()))
facts = st.lists(texts, max_size=30).map(
    lambda found: [memory(number, text) for number, text in enumerate(found)]
)


@settings(max_examples=60)
@given(facts, facts, facts)
def test_no_text_breaks_out_of_its_line_and_none_makes_it_too_long(
    one: list[Memory], other: list[Memory], tasks: list[Memory]
) -> None:
    old = [
        each.model_copy(update={"created_at": 0, "updated_at": 0, "type": MemoryType.TODO})
        for each in tasks
    ]
    pairs = list(zip(one, other, strict=False))
    found = digest(week(*one, contradictions=pairs, replaced=pairs, tasks=old))
    assert len(found.text) <= MAX_CHARS
    lines = [line for line in found.text.split("\n")[4:] if line and not line.startswith("## ")]
    assert lines == [line for line in lines if line.startswith("- ")]
    assert len(lines) == sum(len(each) for each in found.lines.values())
    assert all(re.search(r" \[fact_\d{4}\]$", line) for line in lines)
    headings = {f"## {part}" for part in DigestPart}
    assert {line for line in found.text.split("\n") if line.startswith("##")} <= headings


@given(facts, st.randoms())
def test_the_order_of_the_memories_does_not_matter(given: list[Memory], random: object) -> None:
    shuffled = list(given)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a Random
    assert digest(week(*given)) == digest(week(*shuffled))


def test_a_week_of_many_is_cut_in_turn() -> None:
    long = [memory(number, f"{number} " + "x" * 380) for number in range(40)]
    pairs = list(zip(long[:20], long[20:], strict=True))
    found = digest(replace(week(*long), contradictions=pairs, replaced=pairs))
    assert len(found.text) <= MAX_CHARS
    assert len(found.lines[DigestPart.CONTRADICTIONS]) == len(found.lines[DigestPart.REPLACED]) == 5


def test_quotations_stand_in_their_own_marks() -> None:
    old = memory(1, "Ann: “I live in Oslo.” (2026-01-02)")
    new = memory(2, "Ann: “I moved to Bergen.” (2026-01-09)")
    made = digest(week(new, replaced=[(new, old)]))
    [line] = made.lines[DigestPart.REPLACED]
    assert line.text == (
        "Ann: “I moved to Bergen.” (2026-01-09) instead of Ann: “I live in Oslo.” (2026-01-02)"
    )
