"""Answers from memory: a model reads a block, and every sentence cites its lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import KEY, ModelServer

from memgraph import MemoryService, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import (
    NotFound,
    ProviderAnswerInvalid,
    ProviderMissing,
    ProviderRejected,
    ProviderUnavailable,
)

pytestmark = pytest.mark.usefixtures("asks_once")

ASKED = "Where does Ana live?"
OLD, NEW = "Ana lives in Berlin.", "Ana lives in Hamburg."


@pytest.fixture
def service(tmp_path: Path, server: ModelServer) -> Iterator[MemoryService]:
    config = {
        "memory.llm.provider": "litellm/openai/any",
        "memory.llm.api_base": server.url,
        "memory.llm.api_key_from": "MY_KEY",
        "memory.receipts.query_text": True,
    }
    with MemoryService(
        tmp_path, config=config, environ={"MY_KEY": KEY}, clock=FixedClock(), background=False
    ) as service:
        yield service


@pytest.fixture
def orc(service: MemoryService) -> Orchestrator:
    return service.orchestrator("ana", create=True, viewer=Viewer(Sensitivity.RESTRICTED))


def says(server: ModelServer, *sentences: tuple[str, Any], answered: bool = True) -> None:
    listed = [{"text": text, "lines": lines} for text, lines in sentences]
    server.behave(server.writes(json.dumps({"answered": answered, "sentences": listed})))


def sent(server: ModelServer) -> str:
    """What the model read in the last request, without the instructions."""
    return str(server.requests[-1]["messages"][1]["content"])


def test_an_answer_cites_the_lines_that_say_it(orc: Orchestrator, server: ModelServer) -> None:
    old = orc.remember(OLD, event_time="2024-01-08")
    new = orc.correct(old, NEW, reason="moved", event_time="2024-05-01")
    says(server, ("Ana lives in Hamburg since 1 May 2024.", [2]), ("Before it was Berlin.", [1, 2]))
    answer = orc.ask(ASKED)
    assert answer.answered
    assert answer.text == (
        "Ana lives in Hamburg since 1 May 2024. [2] Before it was Berlin. [1] [2]"
    )
    assert [(one.number, one.memory_id) for one in answer.citations] == [(1, old), (2, new)]
    assert answer.citations[0].line == (
        f"[1] Mon 2024-01-08, Fact, until 2024-05-01, see [2]: {OLD}"
    )
    assert (answer.memory_ids, answer.model) == ((old, new), "litellm/openai/any")
    # The model reads the block, today and the question, once.
    assert len(server.requests) == 1
    mark = re.compile(r"memory [0-9]{6}")
    assert mark.sub("", sent(server)) == mark.sub("", orc.context(ASKED).text) + (
        f"\nToday is Thu 2026-01-01.\nQuestion: {ASKED}"
    )


def test_a_sentence_without_a_line_of_the_block_is_left_out(
    orc: Orchestrator, server: ModelServer
) -> None:
    orc.remember(NEW)
    wrong: list[Any] = [[], [9], [0], ["none"], None, "not a number"]
    for lines in wrong:
        says(server, ("In Hamburg.", [1]), ("And she owns a yacht.", lines))
        answer = orc.ask(ASKED)
        assert answer.text == "In Hamburg. [1]", lines
        assert "answer.uncited" in [one.code for one in answer.degraded]
    says(server, ("And she owns a yacht.", []))
    answer = orc.ask(ASKED)
    assert (answer.answered, answer.text, answer.citations) == (False, "not in memory", ())


def test_citations_are_read_in_any_form(orc: Orchestrator, server: ModelServer) -> None:
    orc.remember(NEW)
    replies: list[Any] = [
        {"sentences": [{"text": "In Hamburg [1].", "lines": []}]},
        {"answered": True, "sentences": [{"text": "In Hamburg.", "lines": ["[1]"]}]},
        {"answered": True, "sentences": {"text": "In Hamburg.", "lines": 1}, "mood": "good"},
        [{"text": "In Hamburg.", "lines": [1, 1, 7]}],
    ]
    for reply in replies:
        server.behave(server.writes(f"```json\n{json.dumps(reply)}\n```"))
        assert orc.ask(ASKED).text == "In Hamburg. [1]", reply


def test_a_model_may_say_that_the_lines_do_not_answer(
    orc: Orchestrator, server: ModelServer
) -> None:
    orc.remember(NEW)
    says(server, ("Perhaps in Rome.", [1]), answered=False)
    answer = orc.ask("Where does Ana's sister live?")
    assert (answer.answered, answer.text) == (False, "not in memory")


def test_a_question_that_nothing_is_related_to_costs_no_call(
    orc: Orchestrator, server: ModelServer
) -> None:
    answer = orc.ask("Which giraffes juggle?")
    assert (answer.answered, answer.text, server.requests) == (False, "not in memory", [])
    assert orc.receipts.get(answer.receipt_id).purpose == "ask"


def test_what_is_too_sensitive_for_the_model_is_not_sent(
    orc: Orchestrator, service: MemoryService, server: ModelServer
) -> None:
    orc.remember(NEW)
    orc.remember("Ana lives at the secret address, Elm Street 9.", sensitivity="Confidential")
    says(server, ("In Hamburg.", [1]))
    answer = orc.ask(ASKED)
    assert "Elm Street" not in sent(server)
    assert "Elm Street" in orc.context(ASKED).text
    [note] = [one for one in answer.degraded if one.code == "answer.withheld"]
    assert note.text == "1 match was not sent: more sensitive than memory.llm.max_sensitivity"
    # Who may not see it is not told of it.
    other = service.orchestrator("ana", viewer=Viewer(Sensitivity.INTERNAL))
    says(server, ("In Hamburg.", [1]))
    assert "answer.withheld" not in [one.code for one in other.ask(ASKED).degraded]


def test_a_receipt_has_the_block_the_answer_and_its_citations(
    orc: Orchestrator, service: MemoryService, server: ModelServer
) -> None:
    known = orc.remember(NEW)
    says(server, ("In Hamburg.", [1]))
    answer = orc.ask(ASKED)
    receipt = orc.receipts.get(answer.receipt_id)
    assert (receipt.purpose, receipt.query) == ("ask", ASKED)
    assert [item.memory_id for item in receipt.items] == [known]
    assert receipt.answer is not None
    assert receipt.answer["block"]["text"] in sent(server)
    assert {name: receipt.answer[name] for name in ("text", "answered", "model", "citations")} == {
        "text": "In Hamburg. [1]",
        "answered": True,
        "model": "litellm/openai/any",
        "citations": [[1, known]],
    }
    assert orc.verify().totals == {}
    # Nobody who may not see a cited memory has it.
    with pytest.raises(NotFound):
        service.orchestrator("ana", viewer=Viewer(Sensitivity.PUBLIC)).receipts.get(
            answer.receipt_id
        )


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (lambda server: server.fails(500), ProviderUnavailable),
        (lambda server: server.fails(401), ProviderRejected),
        (lambda server: server.writes('{"answered"', "length"), ProviderAnswerInvalid),
    ],
    ids=["down", "refused", "cut off"],
)
def test_a_failing_model_raises_and_leaves_the_receipt_of_the_block(
    orc: Orchestrator, server: ModelServer, fault: Any, error: type[Exception]
) -> None:
    known = orc.remember(NEW)
    before = orc.memories.counts()
    server.behave(fault(server))
    with pytest.raises(error):
        orc.ask(ASKED)
    [receipt] = orc.receipts.list().receipts
    assert (receipt.purpose, receipt.answer) == ("ask", None)
    assert [item.memory_id for item in receipt.items] == [known]
    assert orc.memories.counts() == before


def test_without_a_model_the_error_says_what_to_configure(tmp_path: Path) -> None:
    with MemoryService(tmp_path, environ={}) as service:
        orc = service.orchestrator("ana", create=True)
        with pytest.raises(ProviderMissing, match=r"set memory\.llm\.provider in") as refused:
            orc.ask(ASKED)
        assert refused.value.details == {"key": "memory.llm.provider"}
        assert orc.receipts.list().receipts == ()


def test_an_erasure_takes_the_answers_and_questions_about_the_memory(
    orc: Orchestrator, server: ModelServer
) -> None:
    erased = orc.remember(NEW)
    says(server, ("Near the Alster, as Ana told.", [1]))
    first = orc.ask(ASKED)
    orc.receipts.get(first.receipt_id)
    says(server, ("By the harbour, as it seems.", [1]))
    pending = orc.ask("Where is the flat of Ana?")
    orc.erasure.erase(memory_id=erased, reason="asked for", dry_run=False)
    for answer in (first, pending):
        receipt = orc.receipts.get(answer.receipt_id)
        assert receipt.query == ""
        assert receipt.answer is not None
        assert receipt.answer["text"] == receipt.answer["block"]["text"] == "[erased]"
        assert receipt.answer["citations"] == [[1, erased]]
    assert orc.verify().totals == {}


def test_a_question_about_an_earlier_state_is_answered_from_it(
    orc: Orchestrator, server: ModelServer
) -> None:
    clock = orc._service.clock
    assert isinstance(clock, FixedClock)
    old = orc.remember(OLD)
    then = clock.now_ms()
    clock.advance(days=30)
    orc.correct(old, NEW, reason="moved")
    says(server, ("Ana lives in Berlin.", [1]))
    answer = orc.ask(ASKED, as_of=then)
    assert answer.text == "Ana lives in Berlin. [1]"
    assert [each.memory_id for each in answer.citations] == [old]
    assert OLD in sent(server)
    assert NEW not in sent(server)
    assert "Today is Thu 2026-01-01." in sent(server)
