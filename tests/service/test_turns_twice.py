"""A turn that is handed over again, after an error or a kill, is the same turn."""

from __future__ import annotations

from memgraph import Orchestrator


def test_a_turn_is_the_same_by_its_session_its_id_its_role_and_its_text(orc: Orchestrator) -> None:
    given = {"session_id": "monday", "source_role": "user", "turn_id": "t-1"}
    first = orc.save_episode("Yes.", **given)
    assert orc.save_episode("Yes.", **given) == first
    others = [
        orc.save_episode("No.", **given),
        orc.save_episode("Yes.", **(given | {"source_role": "assistant"})),
        orc.save_episode("Yes.", **(given | {"turn_id": "t-2"})),
        orc.save_episode("Yes.", **(given | {"session_id": "tuesday"})),
    ]
    assert len({first, *others}) == 5
    orc.retract(first, reason="misheard")
    assert orc.save_episode("Yes.", **given) not in {first, *others}


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
