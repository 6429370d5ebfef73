"""Which known facts a page of turns is shown with, among many others, and what it costs."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from model_server import ModelServer
from page_models import PageModel, add, settings

from memgraph import MemoryService, Orchestrator
from memgraph.consolidation.ports import MAX_KNOWN
from memgraph.ids import CountingIds
from memgraph.operations.life.known_memories import known_memories
from memgraph.providers.completion import estimated_tokens
from memgraph.store import sessions

CORPUS: Final = Path(__file__).parents[3] / "benchmarks/corpus"
MADE: Final = {
    "source_type": "channel_transcript",
    "captured_by": "extractor",
    "conversation_id": "talk",
}


def other_facts(count: int) -> list[str]:
    """Return short statements about other people and things."""
    lines = [
        line.split("\t")[1]
        for path in sorted((CORPUS / "pairs").glob("*.tsv"))
        for line in path.read_text("utf-8").splitlines()
        if line.count("\t") == 2
    ]
    fitting = sorted({line for line in lines if 20 <= len(line) <= 110})
    return random.Random(1).sample(fitting, count)


def facts_of(talk: dict[str, Any]) -> dict[str, list[str]]:
    """Return the facts that a talk states, by their turns such as ``s1:t3``."""
    facts: dict[str, list[str]] = {}
    for question in talk["questions"]:
        for turn in question["old"]:
            facts.setdefault(turn, []).append(question["was"])
    for held in talk["holds"]:
        facts.setdefault(held["turn"], []).append(held["text"])
    return facts


def say(orc: Orchestrator, talk: dict[str, Any], session: dict[str, Any]) -> list[str]:
    """Store the turns of a session; return their ids."""
    begin = datetime.fromisoformat(session["at"].replace("Z", "+00:00"))
    return [
        orc.save_episode(
            turn["text"],
            session_id=f"{talk['talk']}-{session['session']}",
            source_role=turn["speaker"],
            event_time=begin + timedelta(minutes=minute),
        )
        for minute, turn in enumerate(session["turns"], start=1)
    ]


def test_what_a_page_changes_is_among_the_known_facts_that_it_is_shown_with(
    tmp_path: Path,
) -> None:
    talks = [json.loads(line) for line in (CORPUS / "model-talks.jsonl").read_text().splitlines()]
    missing, looked_for = [], 0
    with MemoryService(
        tmp_path, config={"memory.llm.provider": "none"}, ids=CountingIds(), background=False
    ) as service:
        orc = service.orchestrator("ann", create=True)
        made = {"source": MADE, "event_time": "2024-06-01"}
        orc.remember_many({"content": text, **made} for text in other_facts(300))
        for talk in talks:
            facts = facts_of(talk)
            for session in talk["sessions"]:
                ids = say(orc, talk, session)
                with service.opened("ann") as opened:
                    opened.worker.drain()
                    with opened.database.read() as snapshot:
                        name = f"{talk['talk']}-{session['session']}"
                        state = sessions.session_state(snapshot, name)
                        assert state is not None
                        rows = sessions.turns_after(snapshot, name, state.through_pk, 100)
                    known = known_memories(opened, rows, opened.clock.now_ms())
                assert len(known) == MAX_KNOWN
                shown = {each.content for each in known}
                here = f"{session['session']}:"
                changed = [
                    question["was"]
                    for question in talk["questions"]
                    if question["current"][0].startswith(here)
                    and not question["old"][0].startswith(here)
                ]
                looked_for += len(changed)
                missing += [text for text in changed if text not in shown]
                for turn_id, number in zip(ids, range(1, len(ids) + 1), strict=True):
                    for text in facts.get(f"{here}t{number}", []):
                        orc.remember(text, source=MADE, derived_from=[turn_id])
    assert (looked_for, missing) == (20, [])


def test_twenty_turns_take_at_most_three_calls_and_six_thousand_tokens_of_input(
    tmp_path: Path, server: ModelServer, model: PageModel
) -> None:
    talk = json.loads((CORPUS / "model-talks.jsonl").read_text().splitlines()[0])
    facts = facts_of(talk)
    with MemoryService(
        tmp_path,
        config=settings(server, **{"memory.embedding.provider": "local"}),
        environ={"KEY": "k"},
        ids=CountingIds(),
        background=False,
    ) as service:
        orc = service.orchestrator("ann", create=True)
        for session in talk["sessions"]:
            say(orc, talk, session)
            found = []
            for number, turn in enumerate(session["turns"], start=1):
                words = turn["text"]
                stated = facts.get(f"{session['session']}:t{number}", [])
                # A page says more than what the talk is later asked about.
                told = stated or ([f"{turn['speaker']}: {words[:110]}"] if len(words) > 60 else [])
                found += [add(text, [number], words[:60]) for text in told]
            model.then({"add": found})
            run = orc.jobs.run("consolidation", session_id=f"{talk['talk']}-{session['session']}")
            assert run.counts["facts"] > 15
            orc.settle()
    turns = sum(len(session["turns"]) for session in talk["sessions"])
    sent = 0
    for request in server.requests:
        sent += sum(estimated_tokens(each["content"]) for each in request["messages"])
        sent += estimated_tokens(request["response_format"]["json_schema"]["schema"])
    assert len(server.requests) / turns * 20 <= 3
    assert sent / turns * 20 <= 6_000
