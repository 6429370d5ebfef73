"""A turn that is handed over again, after an error or a kill, is the same turn."""

from __future__ import annotations

from memgraph import Orchestrator


def say(orc: Orchestrator, text: str, **fields: str) -> str:
    given = {"session_id": "monday", "source_role": "user", "turn_id": "t-1"} | fields
    return orc.save_episode(text, **given)


def test_the_same_turn_is_stored_once(orc: Orchestrator) -> None:
    first = say(orc, "The lamps hang in the hall.")
    assert say(orc, "The lamps hang in the hall.") == first
    assert len(orc.memories.list()) == 1
    [session] = orc.sessions.list()
    assert session.turns == 1


def test_another_text_role_turn_or_session_is_another_turn(orc: Orchestrator) -> None:
    said = [
        say(orc, "Yes."),
        say(orc, "No."),
        say(orc, "Yes.", source_role="assistant"),
        say(orc, "Yes.", turn_id="t-2"),
        say(orc, "Yes.", session_id="tuesday"),
    ]
    assert len(set(said)) == 5


def test_a_file_that_was_cut_off_can_be_handed_over_again(orc: Orchestrator) -> None:
    turns = [
        {"content": f"Line {at}.", "session_id": "s", "source_role": "user", "turn_id": f"t{at}"}
        for at in range(20)
    ]
    orc.save_episodes(turns[:13])
    outcomes = [each.outcome for each in orc.save_episodes([*turns, turns[3]])]
    assert outcomes == ["duplicate"] * 13 + ["stored"] * 7 + ["duplicate"]
    [session] = orc.sessions.list()
    assert session.turns == 20


def test_a_retracted_turn_may_be_said_again(orc: Orchestrator) -> None:
    first = say(orc, "The lamps hang in the hall.")
    orc.retract(first, reason="misheard")
    assert say(orc, "The lamps hang in the hall.") != first
