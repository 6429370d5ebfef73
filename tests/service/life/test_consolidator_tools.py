"""An orchestrator's own agent consolidates a session by tools, with the checks of a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from page_models import add
from pair_readers import ScriptedReader, reading

from memgraph import MemoryService, Orchestrator
from memgraph.clock import MS_PER_DAY, FixedClock
from memgraph.model.enums import MemoryStatus
from memgraph.operations.life.models import LanguageModel
from memgraph.operations.tools.consolidator import ConsolidatorTools
from memgraph.providers.fake import FakeCompletion

pytestmark = pytest.mark.usefixtures("asks_once")

BERLIN = add("Nora lives in Berlin.", [1], "I live in Berlin")


def test_the_tools_are_the_six_of_the_documents(orc: Orchestrator) -> None:
    names = [each["function"]["name"] for each in ConsolidatorTools(orc, "s").tools]
    assert names == [
        "is_session_consolidated",
        "get_episodes_for_consolidation",
        "save_facts_batch",
        "detect_conflicts",
        "resolve_conflict",
        "mark_session_consolidated",
    ]


def test_an_agent_reads_saves_and_marks_page_by_page(orc: Orchestrator, clock: FixedClock) -> None:
    orc.save_episode("I live in Berlin. It is sunny.", session_id="s-1", source_role="Nora")
    tools = ConsolidatorTools(orc, "s-1", agent="scribe")
    assert tools.call("save_facts_batch", {"facts": []}) == {"results": []}
    assert tools.call("detect_conflicts")["error"]["code"] == "memory.conflict"  # type: ignore[index,call-overload]
    assert tools.call("is_session_consolidated", "{}") == {"consolidated": False}
    page = str(tools.call("get_episodes_for_consolidation"))
    assert "Nora: I live in Berlin. It is sunny." in page
    saved = tools.call("save_facts_batch", json.dumps({"facts": [BERLIN, BERLIN | {"turns": [9]}]}))
    assert saved == {
        "results": [
            {"outcome": "staged"},
            {"outcome": "rejected", "code": "page.turns_unknown"},
        ]
    }
    done = tools.call("mark_session_consolidated")
    assert isinstance(done, dict)
    assert (done["consolidated"], len(done["facts"])) == (True, 1)
    assert tools.call("is_session_consolidated") == {"consolidated": True}
    [old] = done["facts"]
    assert orc.get(old).attributes["model"] == "scribe"
    clock.advance(ms=MS_PER_DAY)
    orc.save_episode("I moved to Bonn.", session_id="s-2", source_role="Nora")
    tools = ConsolidatorTools(orc, "s-2", agent="scribe")
    tools.call("get_episodes_for_consolidation")
    assert tools.call("detect_conflicts") == {"known": ["k1 Nora lives in Berlin."]}
    change = {"known": "k1", "text": "Nora lives in Bonn.", "turns": [1], "quote": "moved to Bonn"}
    assert tools.call("resolve_conflict", change) == {"outcome": "staged"}
    done = tools.call("mark_session_consolidated")
    assert isinstance(done, dict)
    assert done["replaced"] == [old]
    assert orc.get(old).status is MemoryStatus.SUPERSEDED
    assert tools.call("forget_everything", {})["error"]["code"] == "memory.conflict"  # type: ignore[index,call-overload]


def test_turns_of_several_places_are_read_place_by_place(orc: Orchestrator) -> None:
    said: dict[str, Any] = {"session_id": "s", "source_role": "Nora"}
    orc.save_episode("I live in Berlin.", **said)
    orc.save_episode("The release is on Monday.", **said, agent_id="pilot")
    tools, done = ConsolidatorTools(orc, "s"), []
    for words in ("live in Berlin", "release is on Monday"):
        assert words in str(tools.call("get_episodes_for_consolidation"))
        tools.call("save_facts_batch", {"facts": [add(f"Nora: {words}.", [1], words)]})
        done.append(tools.call("mark_session_consolidated"))
    assert [(each["consolidated"], len(each["facts"])) for each in done] == [(False, 0), (True, 2)]


def test_a_fact_is_compared_with_what_the_agent_was_not_shown(tmp_path: Path) -> None:
    reader = ScriptedReader()
    with reading(tmp_path, reader) as service:
        orc = service.orchestrator("o", create=True)
        orc.remember("Nora lives in Hamburg.")
        orc.settle()
        orc.save_episode("I live in Berlin.", session_id="s", source_role="Nora")
        tools = ConsolidatorTools(orc, "s")
        assert "Hamburg" in str(tools.call("get_episodes_for_consolidation"))
        orc.remember("Nora lives in Bremen.")
        tools.call("save_facts_batch", {"facts": [BERLIN]})
        tools.call("mark_session_consolidated")
        orc.settle()
    earlier = {pair.earlier for pair in reader.asked if pair.later == BERLIN["text"]}
    assert earlier == {"Nora lives in Bremen."}


def test_the_configured_model_checks_what_an_agent_hands_in(tmp_path: Path) -> None:
    model = FakeCompletion(says="no")
    with MemoryService(tmp_path, environ={}, background=False, llm=LanguageModel(model)) as service:
        orc = service.orchestrator("o", create=True)
        orc.save_episode("I live in Berlin.", session_id="s", source_role="Nora")
        tools = ConsolidatorTools(orc, "s")
        tools.call("get_episodes_for_consolidation")
        tools.call("save_facts_batch", {"facts": [BERLIN]})
        done = tools.call("mark_session_consolidated")
    assert done == {
        "consolidated": True,
        "facts": [],
        "replaced": [],
        "rejected": ["page.said_no"],
    }
    assert len(model.checks) == 1
