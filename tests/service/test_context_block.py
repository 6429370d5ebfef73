"""The block before a message: what recall ranks first, in order of time, within a budget."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from working import INFERRED, SEES_ALL, put

from memgraph import MemoryKind, MemoryService, Orchestrator, Scope, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import AccessDenied, InvalidInput
from memgraph.ids import CountingIds, UlidSource, short_id
from memgraph.model.context import BlockFormat, ContextBlock
from memgraph.operations.context.block import new_mark
from memgraph.operations.tools.tools import call_tool
from memgraph.rules.budget import token_cost
from memgraph.rules.conversations import WEEKLY

ASKED = "When does the harbour close?"


def harbour(orc: Orchestrator, number: int = 1, **fields: Any) -> list[str]:
    return [put(orc, f"The harbour closes at {place + 1}.", **fields) for place in range(number)]


def reflect(orc: Orchestrator, text: str = "A week of boats.", **fields: Any) -> str:
    return put(orc, text, kind=MemoryKind.REFLECTION, tags=[WEEKLY], **fields)


def say(orc: Orchestrator, text: str, speaker: str = "Mira", **fields: Any) -> str:
    return orc.save_episode(text, **({"session_id": "s", "source_role": speaker} | fields))


def records(block: ContextBlock) -> list[str]:
    assert block.format is BlockFormat.FENCED
    return block.text.splitlines()[2:-1]


def test_turns_facts_and_the_last_reflection_come_with_one_receipt(orc: Orchestrator) -> None:
    turn = say(orc, "The harbour closes at nine on Sundays.", event_time="2025-12-30T10:00:00Z")
    [fact] = harbour(orc, session_id="s", source={"conversation_id": "c-1"})
    reflect(orc, "The week before was quiet.")
    reflection = reflect(orc)
    block = orc.context(ASKED)
    assert records(block) == [
        "[1] Tue 2025-12-30, Mira: The harbour closes at nine on Sundays.",
        "[2] Thu 2026-01-01, Fact: The harbour closes at 1.",
        "[3] Thu 2026-01-01, Reflection: A week of boats.",
    ]
    assert block.memory_ids == (turn, fact, reflection)
    second = block.memories[2]
    assert (second.memory_id, second.speaker) == (fact, None)
    assert second.citation == "manual, conversation c-1, session s"
    assert second.score > 0.0
    receipt = orc.receipts.get(block.receipt_id)
    assert tuple(each.memory_id for each in receipt.items) == block.memory_ids
    assert receipt.query == ""
    assert receipt.query_sha256 == hashlib.sha256(ASKED.encode()).hexdigest()
    told = {name: receipt.asked[name] for name in ("purpose", "format", "budget_tokens", "sha256")}
    assert told == {
        "purpose": "get_context",
        "format": "fenced",
        "budget_tokens": 1_200,
        "sha256": hashlib.sha256(block.text.encode()).hexdigest(),
    }


def test_lines_are_in_order_of_time_and_the_best_go_in(orc: Orchestrator) -> None:
    for year in range(2000, 2026):
        say(orc, f"The harbour closes at nine in {year}.", event_time=f"{year}-05-01")
    block = orc.context("When did the harbour close in 2003?", budget_tokens=200)
    years = [int(line[-5:-1]) for line in records(block)]
    assert years == sorted(years)
    assert 2003 in years
    assert len(years) < 10


def test_the_printed_text_is_within_the_budget_and_uses_it(orc: Orchestrator) -> None:
    for number in range(40):
        say(orc, f"On pier {number} the harbour closes at nine, said the keeper of that pier.")
    for budget in (0, 30, 80, 200, 800):
        block = orc.context(ASKED, budget_tokens=budget)
        assert block.token_cost <= budget
        assert bool(block.text) == (budget >= 80)
        if block.text:
            assert block.token_cost > budget - 60


@pytest.mark.parametrize("pairs", [False, True], ids=["single", "pairs"])
@pytest.mark.parametrize("form", BlockFormat)
def test_a_block_holds_as_many_lines_as_its_budget_has_tokens_for(
    orc: Orchestrator, form: BlockFormat, pairs: bool
) -> None:
    units = 6
    for number in range(10, 10 + units):
        one = put(orc, f"Harbour {number} closes at nine.")
        if pairs:
            orc.relate(put(orc, f"Harbour {number} closes at ten."), "Contradicts", one)

    def printed(budget: int) -> tuple[int, int]:
        block = orc.context(ASKED, budget_tokens=budget, format=form)
        assert block.token_cost == token_cost(block.text)
        whole = [one for one in block.memories.values() if one.contradicts or not pairs]
        return len(whole) // (2 if pairs else 1), block.token_cost

    number, whole = printed(2_000)
    assert number == units
    step = whole - printed(whole - 1)[1]
    for left_out in range(1, units):
        budget = whole - left_out * step
        assert printed(budget) == (units - left_out, budget)
        assert printed(budget - 1)[0] == units - left_out - 1


def test_a_long_text_is_cut_to_what_matches_so_that_others_fit_beside_it(
    orc: Orchestrator,
) -> None:
    page = "Here is a plan for your holidays. " + "Bring a towel and enough water. " * 60
    prose = say(orc, page + "The harbour closes at nine. " + page, "assistant")
    mine = say(orc, "I missed the boat because the harbour closes so early.", "user")
    for number in range(30):
        say(orc, f"On pier {number} somebody asked me when they close the harbour for good.")
    block = orc.context(ASKED)
    assert {prose, mine} <= set(block.memory_ids)
    [line] = [each for each in block.memories.values() if each.memory_id == prose]
    assert line.shortened
    assert "The harbour closes at nine." in line.text
    assert line.text.startswith("Here is a plan")
    assert len(block.memories) > 15


def test_what_fits_fills_a_block_where_five_opponents_do_not(orc: Orchestrator) -> None:
    [loser] = harbour(orc)
    pairs = []
    for hour in ("six", "seven", "eight", "nine", "ten"):
        text = f"The harbour closes at {hour} in the evening, said the guard to the captain."
        winner = put(orc, text)
        pairs.append((winner, orc.relate(winner, "Contradicts", loser)))
    for place in range(12):
        put(orc, f"The harbour at quay {place} closes.")

    def require_a_full_block() -> None:
        for budget in (100, 300):
            block = orc.context(ASKED, budget_tokens=budget)
            assert budget - 40 < block.token_cost <= budget
            assert block.left_out == 18 - len(block.memories) > 0

    require_a_full_block()
    for winner, edge in pairs:
        orc.contradictions.resolve(edge, winner=winner, reason="the sign says so")
    require_a_full_block()


def test_what_was_said_in_this_conversation_is_left_out(orc: Orchestrator) -> None:
    here = harbour(orc, session_id="now")
    there = put(orc, "The harbour closes at noon on Sundays.", session_id="before")
    assert set(orc.context(ASKED).memory_ids) == {*here, there}
    assert orc.context(ASKED, exclude_session_id="now").memory_ids == (there,)


def test_settings_say_how_much_and_how_and_in_which_zone(tmp_path: Path) -> None:
    chosen = {
        "memory.context.block_tokens": 60,
        "memory.context.format": "list",
        "memory.schedule.timezone": "Pacific/Auckland",
    }
    with MemoryService(
        tmp_path, config=chosen, ids=CountingIds(), environ={}, background=False
    ) as service:
        orc = service.orchestrator("o", create=True)
        harbour(orc, 8, event_time="2025-12-31T23:00:00Z")
        block = orc.context(ASKED)
        assert (len(block.memory_ids), block.format) == (7, BlockFormat.LIST)
        whole = orc.context(ASKED, budget_tokens=600, format="fenced")
        assert len(whole.memory_ids) == 8
        assert records(whole)[0] == "[1] Thu 2026-01-01, Fact: The harbour closes at 1."


def test_what_nothing_is_related_to_gets_nothing_and_still_a_receipt(orc: Orchestrator) -> None:
    for form in BlockFormat:
        block = orc.context(ASKED, format=form)
        assert (block.text, block.memories, block.token_cost) == ("", {}, 0)
        assert orc.receipts.get(block.receipt_id).items == ()
    harbour(orc, 6)
    assert orc.context("Quantum giraffes juggle zebras.").text == ""
    # An empty message gets the most important.
    key = put(orc, "The key hangs by the door.", importance=90)
    assert orc.context("", budget_tokens=45).memory_ids == (key,)


def test_kinds_narrow(orc: Orchestrator) -> None:
    turn = say(orc, "The harbour closes early today.")
    [fact] = harbour(orc)
    reflection = reflect(orc, "The harbour closes ever later.")
    assert set(orc.context(ASKED).memory_ids) == {turn, fact, reflection}
    assert set(orc.context(ASKED, kinds=["fact"]).memory_ids) == {fact, reflection}
    assert orc.context(ASKED, kinds=["episode"], include_insight=False).memory_ids == (turn,)
    assert orc.context(ASKED, kinds=["reflection"], include_insight=False).memory_ids == (
        reflection,
    )


def test_turns_that_say_nothing_are_left_out(orc: Orchestrator) -> None:
    say(orc, "When does the harbour close?")
    for text in ("Understood.", "Harbour?", "Oh, the harbour?"):
        say(orc, text, "user", session_id=text)
    told = say(orc, "I was late at the harbour, so when does it close?", "user", session_id="t")
    assert orc.context("When do they close the harbour?").memory_ids == (told,)


def test_a_question_comes_with_its_answer_and_a_colon_with_what_follows(orc: Orchestrator) -> None:
    question = say(orc, "What was my landlord's name again?", "user")
    answer = say(orc, "Gregor Sand.", "assistant")
    alone = say(orc, "What is the landlord's name?", "user", session_id="other")
    found = orc.context("Who is my landlord?").memory_ids
    assert found == (question, answer)
    assert alone not in found
    question = say(orc, "Do we cancel the contract with the harbour?", "user", session_id="t")
    answer = say(orc, "No.", session_id="t")
    say(orc, "Fine.", "user", session_id="t")
    assert orc.context("Was the harbour contract cancelled?").memory_ids == (question, answer)
    first = say(orc, "Two things about the ferry:", session_id="u")
    second = say(orc, "Nine on weekdays, noon on Sundays.", session_id="u")
    assert orc.context("What about the ferry?").memory_ids == (first, second)


def test_a_correction_stands_beside_what_it_replaced_and_never_without_it(
    orc: Orchestrator,
) -> None:
    [old] = harbour(orc, event_time="2024-01-08")
    new = orc.correct(old, "Boats are tied up at 8.", reason="winter", event_time="2024-05-01")
    # What ended without a successor is left out.
    put(orc, "Ask when the harbour closes.", type="Todo", status="superseded")
    block = orc.context(ASKED)
    assert records(block) == [
        "[1] Mon 2024-01-08, Fact, until 2024-05-01, see [2]: The harbour closes at 1.",
        "[2] Wed 2024-05-01, Fact, replaces [1]: Boats are tied up at 8.",
    ]
    assert block.memory_ids == (old, new)
    assert (block.memories[1].replaced_by, block.memories[2].replaces) == ((2,), (1,))
    listed = orc.context(ASKED, format="list").text
    assert "(until 2024-05-01, see “Boats are tied up at 8.”)" in listed
    last = orc.correct(new, "At ten.", reason="b", event_time="2024-06-01", session_id="now")
    block = orc.context(ASKED)
    numbers = {each.memory_id: number for number, each in block.memories.items()}
    assert {old, last} <= set(numbers)
    assert all(block.memories[numbers[one]].replaced_by for one in numbers if one != last)
    # It was said in this very conversation, which the reader has already.
    assert orc.context(ASKED, exclude_session_id="now").memories == {}


def test_the_turn_behind_a_replaced_or_changed_fact_is_marked_like_the_fact(
    orc: Orchestrator,
) -> None:
    turn = say(orc, "My harbour closes at nine, you know.", event_time="2024-01-08T09:00:00Z")
    old = put(
        orc,
        "The harbour closes at nine.",
        derived_from=[turn],
        source=INFERRED,
        event_time="2024-01-08T09:00:00Z",
    )
    later = say(orc, "They close at eight now!", session_id="t", event_time="2024-05-01T09:00:00Z")
    new = orc.correct(old, "The harbour closes at eight.", reason="said so", derived_from=[later])
    block = orc.context(ASKED)
    # A fact and the turn behind it are one line.
    assert {turn, later, new, old} >= set(block.memory_ids)
    [behind] = [each for each in block.memories.values() if each.memory_id in (turn, old)]
    [newer] = behind.replaced_by
    assert block.memories[newer].memory_id in (later, new)
    assert ", until " in records(block)[0]
    turn = say(orc, "Oh, and the ferry is blue. See you!", event_time="2024-01-01")
    blue = put(orc, "The ferry is blue.", derived_from=[turn], event_time="2024-01-01")
    red = put(orc, "The ferry is red.", event_time="2024-05-01")
    orc.relate(red, "Updates", blue, weight=0.9)
    block = orc.context("What colour is the ferry?")
    number = {each.memory_id: number for number, each in block.memories.items()}
    assert blue not in number
    assert block.memories[number[turn]].changed_by == (number[red],)
    assert [mark.memory_id for mark in block.memories[number[turn]].marks] == [red]


def test_only_a_part_of_a_turn_may_be_replaced(orc: Orchestrator) -> None:
    turn = say(orc, "The harbour closes at nine. My boat is red.", event_time="2024-01-08")
    fields: dict[str, Any] = {"derived_from": [turn], "source": INFERRED}
    old = put(orc, "The harbour closes at nine.", **fields)
    put(orc, "The boat is red.", **fields)
    orc.correct(old, "The harbour closes at eight.", reason="winter", event_time="2024-05-01")
    block = orc.context(ASKED)
    first, second = records(block)
    assert first.startswith("[1] Mon 2024-01-08, Mira, in part until 2024-05-01, see [2]: ")
    assert second == "[2] Wed 2024-05-01, Fact, replaces [1]: The harbour closes at eight."


def test_what_probably_changed_a_statement_comes_with_it_and_is_the_one_that_fits(
    orc: Orchestrator,
) -> None:
    old = say(orc, "The harbour closes at nine on Sundays.", event_time="2024-01-01")
    new = say(
        orc,
        "Eight from now on, the harbourmaster told me.",
        event_time="2024-05-01",
        session_id="now",
    )
    edge = orc.relate(new, "Updates", old, weight=0.85, reason="probably changes: Eight")
    block = orc.context(ASKED)
    assert records(block) == [
        "[1] Mon 2024-01-01, Mira, probably changed by [2]: The harbour closes at nine on Sundays.",
        "[2] Wed 2024-05-01, Mira, probably changes [1]: Eight from now on, the harbourmaster told"
        " me.",
    ]
    first, second = block.memories[1], block.memories[2]
    assert (first.changed_by, second.changes) == ((2,), (1,))
    assert [(m.kind, m.memory_id, m.weight, m.edge_id, m.reason) for m in first.marks] == [
        ("changed_by", new, 0.85, edge, "probably changes: Eight")
    ]
    assert [(m.kind, m.memory_id) for m in second.marks] == [("changes", old)]
    assert orc.context(ASKED, budget_tokens=block.token_cost - 5).memory_ids == (new,)
    # A change that was told in this conversation is not repeated.
    [record] = records(orc.context(ASKED, exclude_session_id="now"))
    assert record.startswith("[1] Mon 2024-01-01, Mira, probably changed: The harbour closes")


def test_both_sides_of_a_contradiction_come_or_neither_and_name_each_other(
    orc: Orchestrator,
) -> None:
    for number in range(3):
        one = put(orc, f"Ferry {number} leaves from pier nine.")
        other = put(orc, f"Ferry {number} leaves from pier four.")
        orc.relate(other, "Contradicts", one)
        if not number:
            block = orc.context("Where does the ferry leave from?")
            assert block.memory_ids == (one, other)
            assert (block.memories[1].contradicts, block.memories[2].contradicts) == ((2,), (1,))
            assert "Fact, contradicts [2]: Ferry" in records(block)[0]
    shown = orc.context("Where does the ferry leave from?", budget_tokens=120).memory_ids
    pairs = {frozenset((each.from_id, each.to_id)) for each in orc.recall("ferry").edges}
    assert shown
    assert all(len(pair & set(shown)) in (0, 2) for pair in pairs)


@pytest.mark.parametrize("form", BlockFormat)
def test_where_both_sides_of_a_contradiction_do_not_fit_the_better_stands_with_its_mark(
    orc: Orchestrator, form: BlockFormat
) -> None:
    asked = "On which day do the bins go out?"
    sides = [
        put(orc, "The bins go out on Tuesday mornings before seven."),
        put(orc, "The bins go out on Thursday evenings, says the council's leaflet."),
    ]
    put(orc, "The bins are green.")
    orc.relate(sides[0], "Contradicts", sides[1])
    best = orc.recall(asked).items[0].memory.memory_id
    whole = orc.context(asked, format=form)
    lone = set()
    for budget in range(whole.token_cost - 70, whole.token_cost):
        block = orc.context(asked, budget_tokens=budget, format=form)
        shown = set(block.memory_ids) & {*sides}
        assert block.left_out == 3 - len(block.memories)
        if len(shown) == 1:
            assert "contradicted" in block.text
            lone |= shown
        # Short of the tokens of that side alone, only the remark may fit.
        assert not lone or shown
    assert best in lone
    if form is BlockFormat.FENCED:
        [line] = call_tool(orc, "search_memory", {"query": asked, "limit": 1}).splitlines()[2:-1]
        assert "Fact, contradicted: " in line
        assert line.endswith(f"#{short_id(best)}")


def test_a_time_of_day_is_shown_only_where_it_is_known(orc: Orchestrator) -> None:
    for number, (first, second) in enumerate(
        (("2026-11-20", "2026-11-20"), ("2026-11-21", "2026-11-21T08:30"))
    ):
        one = put(orc, f"Harbour {number} closes at nine.", event_time=first)
        orc.relate(
            put(orc, f"Harbour {number} closes at ten.", event_time=second), "Contradicts", one
        )
    dates = [line.split(", ")[0] for line in records(orc.context(ASKED))]
    assert dates == [
        "[1] Fri 2026-11-20",
        "[2] Fri 2026-11-20",
        "[3] Sat 2026-11-21",
        "[4] Sat 2026-11-21 08:30",
    ]


def test_a_fact_and_its_turn_or_a_turn_of_its_text_are_one_line(orc: Orchestrator) -> None:
    turn = say(orc, "The ferry leaves from pier nine. It rained.")
    put(orc, "The ferry leaves from pier nine.", derived_from=[turn], source=INFERRED)
    assert orc.context("Where is the ferry?").memory_ids == (turn,)
    # What a model adds to a single sentence is worth more than the sentence.
    said = say(orc, "She lives there now.", session_id="t")
    fact = put(orc, "Vera lives in Linz.", derived_from=[said], source=INFERRED)
    assert orc.context("Where does Vera live?").memory_ids == (fact,)
    said = say(orc, "The bus stops at gate two.", "user")
    fact = put(orc, "The bus stops at gate two.")
    found = orc.context("Where does the bus stop?").memory_ids
    assert fact in found
    assert said not in found


def test_what_the_viewer_may_not_see_is_in_no_block_and_in_no_mark(
    service: MemoryService,
) -> None:
    orc = service.orchestrator("o", create=True, viewer=SEES_ALL)
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
        block = seer.context(ASKED, format=form)
        assert (block.text, block.memories) == ("", {})
    granted = Viewer(agent_id="a", project_ids=frozenset({"p"}))
    text = service.orchestrator("o", viewer=granted).context(ASKED).text
    assert set(re.findall(r"canar\w+ \d", text)) == {"canary 1", "canaries 1"}
    # A hidden successor is neither shown nor named.
    [old] = harbour(orc)
    orc.correct(old, "The harbour closes by canary 4.", reason="x", sensitivity="Confidential")
    text = seer.context(ASKED).text
    assert "canary" not in text
    assert "see [" not in text


def test_a_prompt_of_one_agent_holds_nothing_of_another(service: MemoryService) -> None:
    orc = service.orchestrator("o", create=True)
    shared = put(orc, "The harbour closes at nine.")
    own = put(orc, "The harbour is mine.", agent_id="a")
    others = [put(orc, "The harbour is not his.", agent_id="b"), reflect(orc, agent_id="b")]
    for form in BlockFormat:
        block = orc.context(ASKED, agent_id="a", format=form)
        assert set(block.memory_ids) == {shared, own}
        assert "not his" not in block.text
    assert set(orc.context(ASKED).memory_ids) == {shared, own, *others}
    bound = service.orchestrator("o", viewer=Viewer(agent_id="b"))
    with pytest.raises(AccessDenied):
        bound.context(ASKED, agent_id="a")
    assert '"access.denied"' in service.paths("o").log_file.read_text()


def test_confidence_is_told_as_it_has_decayed(orc: Orchestrator, clock: FixedClock) -> None:
    harbour(orc, decay_rate=0.1)
    clock.advance(days=10)
    [memory] = orc.context(ASKED).memories.values()
    assert memory.confidence == pytest.approx(0.37, abs=0.005)


def test_the_mark_comes_from_the_id_source_and_is_new_each_time(orc: Orchestrator) -> None:
    harbour(orc)
    texts = [orc.context(ASKED).text for _ in range(3)]
    assert len({re.findall(r"<memory ([0-9]{6})>", text)[0] for text in texts}) == 3
    # Nobody can know one before: the id source of every day has 80 bits of chance in each id.
    assert len({new_mark(UlidSource(FixedClock())) for _ in range(100)}) > 95


def test_what_is_out_of_range_is_refused(orc: Orchestrator) -> None:
    for wrong in (
        {"budget_tokens": -1},
        {"format": "html"},
        {"kinds": ("opinion",)},
        {"exclude_session_id": ""},
        {"agent_id": ""},
        {"prompt": "\ud800"},
        {"prompt": "a\x00b"},
        {"prompt": 7},
    ):
        with pytest.raises(InvalidInput):
            orc.context(**({"prompt": ASKED} | wrong))


def test_the_question_itself_and_what_repeats_give_their_places_to_others(
    orc: Orchestrator,
) -> None:
    asked = "Where do I find the ferry?"
    answer = say(orc, "The ferry leaves from pier nine.", "user", session_id="talk-0")
    for number in range(12):
        say(orc, asked, "user", session_id=f"talk-{number}")
        say(orc, "I will look it up.", "assistant", session_id=f"talk-{number}")
    block = orc.context(asked, budget_tokens=120, format="list")
    assert answer in block.memory_ids
    assert asked not in block.text
    assert block.text.count("I will look it up.") <= 1
