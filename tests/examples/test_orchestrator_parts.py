"""The parts of the reference orchestrator: messages, the scripted model, the selector, events."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.orchestrator import events
from examples.orchestrator.channels import Answered, Inbox, Message, read
from examples.orchestrator.models import ModelFailed, ScriptedModel
from examples.orchestrator.workflows import ANSWER, NOTE, PLAN, picked, selector_instruction

WORDS = st.text(
    st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters="\n\r"), min_size=1
).filter(lambda text: text.strip() == text)
NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,9}", fullmatch=True)
SPEAKERS = st.from_regex(r"[A-Z][a-z]{0,9}", fullmatch=True)


def scripted(tmp_path: Path, rules: object) -> ScriptedModel:
    script = tmp_path / "answers.yaml"
    script.write_text(json.dumps(rules), encoding="utf-8")
    return ScriptedModel(script)


@given(st.lists(st.tuples(NAMES, SPEAKERS, WORDS), max_size=6))
def test_messages_are_read_as_they_were_written(said: list[tuple[str, str, str]]) -> None:
    lines = [f"{channel}/{speaker}: {text}" for channel, speaker, text in said]
    messages = list(read(lines, "s"))
    assert [(each.channel, each.speaker, each.text) for each in messages] == said
    assert len({each.message_id for each in messages}) == len(said)
    assert list(read(lines, "s")) == messages


def test_remarks_are_no_messages_and_a_changed_line_is_another_one() -> None:
    (first,) = read(["# a remark", "", "counter/Mara: Hello."], "s")
    (second,) = read(["# a remark", "", "counter/Mara: Hello!"], "s")
    assert (first.channel, first.speaker, first.text) == ("counter", "Mara", "Hello.")
    assert first.message_id != second.message_id


@pytest.mark.parametrize("line", ["Hello.", "counter: Hello.", "counter/Mara Hello.", "a b/C: D"])
def test_a_line_of_another_form_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="story, line 2"):
        list(read(["counter/Mara: Hello.", line], "story"))


def test_the_queue_keeps_the_order_and_hands_errors_on() -> None:
    lines = [f"counter/Mara: Message {number}." for number in range(200)]
    inbox = Inbox(read([*lines, "nonsense"], "s"))
    taken: list[str] = []
    with pytest.raises(ValueError, match="line 201"):
        taken.extend(message.text for message in inbox)
    assert taken == [f"Message {number}." for number in range(200)]


def test_the_queue_is_bounded() -> None:
    asked: list[int] = []

    def endless() -> object:
        number = 0
        while True:
            asked.append(number)
            yield Message(str(number), "counter", "Mara", "Hello.")
            number += 1

    waiting = iter(Inbox(endless()))
    for _ in range(5):
        next(waiting)
    # 32 that wait, one that the thread holds, five that were taken.
    assert len(asked) <= 5 + 32 + 2


def test_what_was_answered_outlives_the_process_and_a_cut_line_counts_for_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "notes" / "answered"
    one, two = Message("one", "c", "S", "Hi."), Message("two", "c", "S", "Ho.")
    first = Answered(path)
    first.note(one)
    first.close()
    with path.open("a", encoding="utf-8") as file:
        file.write("tw")
    again = Answered(path)
    known = [one in again, two in again]
    again.note(two)
    again.close()
    last = Answered(path)
    known += [one in last, two in last]
    last.close()
    assert known == [True, False, True, True]


def test_a_scripted_model_knows_what_it_was_given_and_nothing_else(tmp_path: Path) -> None:
    model = scripted(
        tmp_path,
        [
            {"purpose": "reply", "asked": ["key"], "knows": ["with Ben"], "answer": "Ben has it."},
            {"purpose": "reply", "answer": "I do not know."},
        ],
    )
    assert model.ask("reply", "The spare KEY is WITH BEN.", "Who has the Key?") == "Ben has it."
    assert model.ask("reply", "", "Who has the key, is it with Ben?") == "I do not know."
    with pytest.raises(ModelFailed, match="select"):
        model.ask("select", "", "Who has the key?")


def test_a_scripted_model_cites_what_it_was_shown(tmp_path: Path) -> None:
    model = scripted(tmp_path, [{"answer": "It was damp {id:71 %} {id:sunny}."}])
    shown = "[1] Tue 2026-06-02, Jonas: The room was at 71 % humidity. #7k2m9q"
    assert model.ask("diagnose", f"Evidence:\n{shown}", "Why?") == "It was damp [#7k2m9q] ."


@pytest.mark.parametrize(
    "rules", [{}, ["answer"], [{}], [{"answer": "x", "askd": ["y"]}], [{"answer": "x"}, None]]
)
def test_a_script_that_is_none_is_refused(tmp_path: Path, rules: object) -> None:
    with pytest.raises(ValueError, match="rule"):
        scripted(tmp_path, rules)


def test_the_selector_takes_a_name_however_it_is_written_and_answers_else() -> None:
    assert picked("plan") is PLAN
    assert picked("Note.") is NOTE
    assert picked("I would go for the workflow PLAN") is PLAN
    assert picked("no idea") is ANSWER
    assert all(name in selector_instruction() for name in ("answer:", "plan:", "note:"))


def test_events_are_lines_for_people_or_json_for_programs() -> None:
    out = io.StringIO()
    events.shown(as_json=True, out=out)("warning", code="memory.slow", text="zu spät")
    assert json.loads(out.getvalue()) == {
        "event": "warning",
        "code": "memory.slow",
        "text": "zu spät",
    }
    out = io.StringIO()
    events.shown(as_json=False, out=out)("warning", code="memory.slow", text="late")
    assert "memory.slow: late" in out.getvalue()
