"""What is put before a message: what fits it, the week's reflection, and a receipt of just that."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from working import put

from memgraph import MemoryKind, MemoryService, Orchestrator, Scope, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.ids import CountingIds, UlidSource
from memgraph.model.context import BlockFormat, ContextBlock
from memgraph.rules.conversations import WEEKLY

ASKED = "When does the harbour close?"


def harbour(orc: Orchestrator, number: int = 1, **fields: Any) -> list[str]:
    return [put(orc, f"The harbour closes at {place + 1}.", **fields) for place in range(number)]


def reflect(orc: Orchestrator, text: str = "A week of boats.", **fields: Any) -> str:
    return put(orc, text, kind=MemoryKind.REFLECTION, tags=[WEEKLY], **fields)


def records(block: ContextBlock) -> list[dict[str, Any]]:
    assert block.format is BlockFormat.FENCED
    return [json.loads(each) for each in block.text.splitlines()[2:-1]]


def test_facts_that_fit_and_the_last_reflection_come_with_one_receipt(orc: Orchestrator) -> None:
    [fact] = harbour(orc, session_id="s", source={"conversation_id": "c-1"})
    put(orc, "Bread costs two coins.")
    reflect(orc, "The week before was quiet.")
    reflection = reflect(orc)
    block = orc.context(ASKED)
    assert block.memory_ids == (fact, reflection)
    assert records(block) == [
        {
            "id": fact,
            "date": "2026-01-01",
            "source": "manual, conversation c-1, session s",
            "confidence": 1.0,
            "text": "The harbour closes at 1.",
        },
        {
            "id": reflection,
            "date": "2026-01-01",
            "source": "manual",
            "confidence": 1.0,
            "text": "A week of boats.",
        },
    ]
    receipt = orc.receipts.get(block.receipt_id)
    assert tuple(each.memory_id for each in receipt.items) == block.memory_ids
    assert receipt.query == ""
    assert receipt.query_sha256 == hashlib.sha256(ASKED.encode()).hexdigest()
    told = {name: receipt.asked[name] for name in ("purpose", "format", "sha256")}
    assert told == {
        "purpose": "get_context",
        "format": "fenced",
        "sha256": hashlib.sha256(block.text.encode()).hexdigest(),
    }


def test_there_is_one_receipt_for_a_block(service: MemoryService, orc: Orchestrator) -> None:
    harbour(orc)
    reflect(orc)
    orc.context(ASKED)
    with service.opened(orc.name) as opened:
        assert opened.receipts.flush() == 1


@pytest.mark.parametrize("form", BlockFormat)
def test_every_id_in_the_text_is_in_the_receipt(orc: Orchestrator, form: BlockFormat) -> None:
    harbour(orc, 3)
    reflect(orc)
    block = orc.context(ASKED, format=form.value)
    named = re.findall(r"(?:fact|ref)_[0-9A-Z]{26}", block.text)
    assert named == ([] if form is BlockFormat.LIST else list(block.memory_ids))
    assert len(re.findall(r"^(?:- |\{)", block.text, re.MULTILINE)) == len(block.memory_ids) == 4
    assert [each.memory_id for each in orc.receipts.get(block.receipt_id).items] == [
        *block.memory_ids
    ]


def test_what_was_said_in_this_conversation_is_left_out(orc: Orchestrator) -> None:
    here = harbour(orc, session_id="now")
    there = put(orc, "The harbour closes at noon on Sundays.", session_id="before")
    assert set(orc.context(ASKED).memory_ids) == {*here, there}
    assert orc.context(ASKED, exclude_session_id="now").memory_ids == (there,)


def test_settings_say_how_many_and_how(tmp_path: Path) -> None:
    chosen = {"memory.context.facts": 2, "memory.context.format": "list"}
    with MemoryService(
        tmp_path, config=chosen, ids=CountingIds(), environ={}, background=False
    ) as service:
        orc = service.orchestrator("o", create=True)
        harbour(orc, 8)
        block = orc.context(ASKED)
        assert (len(block.memory_ids), block.format) == (2, BlockFormat.LIST)
        assert len(orc.context(ASKED, limit=7).memory_ids) == 7


def test_five_facts_are_the_default(orc: Orchestrator) -> None:
    harbour(orc, 8)
    reflect(orc)
    block = orc.context(ASKED)
    assert [each["id"][:4] for each in records(block)] == ["fact"] * 5 + ["ref_"]


def test_nothing_gives_nothing_and_still_a_receipt(orc: Orchestrator) -> None:
    for form in BlockFormat:
        block = orc.context(ASKED, format=form)
        assert (block.text, block.memory_ids, block.token_cost) == ("", (), 0)
        assert orc.receipts.get(block.receipt_id).items == ()


def test_an_empty_message_gets_the_most_important(orc: Orchestrator) -> None:
    harbour(orc, 6)
    key = put(orc, "The key hangs by the door.", importance=90)
    assert orc.context("", limit=1).memory_ids == (key,)


def test_kinds_widen_and_no_memory_comes_twice(orc: Orchestrator) -> None:
    turn = orc.save_episode("The harbour closes early today.", session_id="s", source_role="user")
    reflection = reflect(orc, "The harbour closes ever later.")
    assert orc.context(ASKED).memory_ids == (reflection,)
    assert orc.context(ASKED, include_insight=False).memory_ids == ()
    wide = orc.context(ASKED, kinds=tuple(MemoryKind))
    assert wide.memory_ids == (turn, reflection)
    alone = orc.context(ASKED, kinds=["reflection"], include_insight=False)
    assert alone.memory_ids == (reflection,)


def test_what_the_viewer_may_not_see_is_in_no_block(service: MemoryService) -> None:
    orc = service.orchestrator("o", create=True)
    hidden: list[dict[str, Any]] = [
        {"sensitivity": Sensitivity.CONFIDENTIAL},
        {"scope": Scope.PROJECT, "scope_id": "p"},
        {"scope": Scope.SESSION, "scope_id": "s"},
        {"agent_id": "b"},
    ]
    for place, fields in enumerate(hidden):
        put(orc, f"The harbour closes by canary {place}.", **fields)
        reflect(orc, f"A week of canaries {place}.", **fields)
    seer = service.orchestrator("o", viewer=Viewer(agent_id="a"))
    for form in BlockFormat:
        block = seer.context(ASKED, format=form, limit=50, kinds=())
        assert (block.text, block.memory_ids) == ("", ())
    granted = Viewer(agent_id="a", project_ids=frozenset({"p"}))
    text = service.orchestrator("o", viewer=granted).context(ASKED).text
    assert set(re.findall(r"canar\w+ \d", text)) == {"canary 1", "canaries 1"}


def test_a_prompt_of_one_agent_holds_nothing_of_another(service: MemoryService) -> None:
    orc = service.orchestrator("o", create=True)
    shared = put(orc, "The harbour closes at nine.")
    own = put(orc, "The harbour is mine.", agent_id="a")
    others = [put(orc, "The harbour is not his.", agent_id="b"), reflect(orc, agent_id="b")]
    for form in BlockFormat:
        block = orc.context(ASKED, agent_id="a", format=form, limit=50)
        assert set(block.memory_ids) == {shared, own}
        assert "not his" not in block.text
    assert set(orc.context(ASKED, limit=50).memory_ids) == {shared, own, *others}
    bound = service.orchestrator("o", viewer=Viewer(agent_id="b"))
    with pytest.raises(AccessDenied):
        bound.context(ASKED, agent_id="a")
    assert '"access.denied"' in service.paths("o").log_file.read_text()


def test_a_retracted_reflection_is_gone_from_the_next_block(orc: Orchestrator) -> None:
    reflection = reflect(orc)
    assert orc.context(ASKED).memory_ids == (reflection,)
    orc.retract(reflection, reason="wrong")
    assert orc.context(ASKED).memory_ids == ()


def test_confidence_is_shown_as_it_has_decayed(orc: Orchestrator, clock: FixedClock) -> None:
    harbour(orc, decay_rate=0.1)
    clock.advance(days=10)
    assert [each["confidence"] for each in records(orc.context(ASKED))] == [0.37]


def test_the_date_is_that_of_the_event(orc: Orchestrator) -> None:
    harbour(orc, event_time="2024-02-29T23:59:59Z")
    assert [each["date"] for each in records(orc.context(ASKED))] == ["2024-02-29"]


def test_the_mark_comes_from_the_id_source_and_is_new_each_time(tmp_path: Path) -> None:
    seen = []
    for name in ("one", "other"):
        with MemoryService(
            tmp_path / name, clock=FixedClock(), ids=CountingIds(), environ={}, background=False
        ) as service:
            orc = service.orchestrator("o", create=True)
            harbour(orc)
            seen.append([orc.context(ASKED).text for _ in range(3)])
    marks = [re.findall(r"<data-([0-9a-f]{16})>", text)[0] for text in seen[0]]
    assert seen[0] == seen[1]
    assert len(set(marks)) == 3


def test_nobody_can_know_a_mark_before(service: MemoryService) -> None:
    """With the id source of every day: 80 bits of chance in each id."""
    from memgraph.operations.context.injection import new_mark

    marks = {new_mark(UlidSource(FixedClock())) for _ in range(100)}
    assert len(marks) == 100


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": 1_001},
        {"format": "html"},
        {"kinds": ("opinion",)},
        {"exclude_session_id": ""},
        {"agent_id": ""},
        {"prompt": "\ud800"},
        {"prompt": "a\x00b"},
        {"prompt": 7},
    ],
)
def test_what_is_out_of_range_is_refused(orc: Orchestrator, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        orc.context(**({"prompt": ASKED} | wrong))


def test_the_question_itself_and_what_repeats_give_their_places_to_others(
    orc: Orchestrator,
) -> None:
    asked = "Where do I find the ferry?"
    answer = orc.save_episode(
        "The ferry leaves from pier nine.", session_id="talk-0", source_role="user"
    )
    for number in range(12):
        orc.save_episode(asked, session_id=f"talk-{number}", source_role="user")
        orc.save_episode("I will look it up.", session_id=f"talk-{number}", source_role="assistant")
    block = orc.context(asked, kinds=(), limit=3, format="list")
    assert answer in block.memory_ids
    assert asked not in block.text
    assert block.text.count("I will look it up.") <= 1


def test_of_a_turn_and_a_fact_with_one_text_the_fact_is_told(orc: Orchestrator) -> None:
    text = "The ferry leaves from pier nine."
    orc.save_episode(text, session_id="talk", source_role="user")
    fact = put(orc, text)
    assert orc.context("Where is the ferry?", kinds=()).memory_ids == (fact,)


def test_both_sides_of_a_contradiction_come_or_neither(orc: Orchestrator) -> None:
    for number in range(3):
        one = put(orc, f"Ferry {number} leaves from pier nine.")
        other = put(orc, f"Ferry {number} leaves from pier four.")
        orc.relate(other, "Contradicts", one)
    shown = orc.context("Where does the ferry leave from?", limit=3).memory_ids
    pairs = {tuple(sorted((each.from_id, each.to_id))) for each in orc.recall("ferry").edges}
    assert len(shown) == 2
    assert tuple(sorted(shown)) in pairs
