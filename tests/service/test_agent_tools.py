"""The memory as tools of a language model: what they do, and what they refuse."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from working import lines_in, put

from memgraph import CapturedBy, MemoryService, MemoryType, Orchestrator, Sensitivity, Viewer
from memgraph.clock import FixedClock
from memgraph.errors import InvalidInput
from memgraph.ids import CountingIds, encode_ulid, short_id
from memgraph.model.conversation import AgentTurn, UserTurn
from memgraph.model.enums import Scope
from memgraph.operations.tools.functions import NOTHING_FOUND, PAUSE_MS
from memgraph.operations.tools.tools import SERVED, TOOLS, answer_calls, call_tool, tools_for
from memgraph.operations.write.writer import Writer
from memgraph.providers import _litellm
from memgraph.surfaces.mcp.server import listed

NAMES = [
    *("search_memory", "remember_fact", "correct_fact", "confirm_fact"),
    *("get_entity_info", "forget"),
]
ON_REQUEST = ["memory_stats"]
MAINTENANCE = "memory_consolidate"


@pytest.fixture
def agent(service: MemoryService) -> Orchestrator:
    return service.orchestrator("orc-1", create=True, actor="agent")


def search(agent: Orchestrator, query: str, **more: Any) -> dict[str, str]:
    """Return the texts of the lines that a search answers, by their short ids."""
    told = call_tool(agent, "search_memory", {"query": query, **more})
    assert isinstance(told, str), told
    return lines_in(told)


def remembered(agent: Orchestrator, content: str, **more: Any) -> str:
    told = call_tool(agent, "remember_fact", {"content": content, **more})
    assert told["outcome"] == "stored", told
    memory_id: str = told["memory_id"]
    return memory_id


def code(told: Any) -> str:
    assert isinstance(told, dict)
    assert set(told) == {"error"}
    found: str = told["error"]["code"]
    return found


def test_the_tools_have_the_form_that_models_are_told_and_are_cheap(agent: Orchestrator) -> None:
    told = tools_for(agent)
    assert [each["function"]["name"] for each in told] == NAMES
    for each in told:
        assert each["type"] == "function"
        assert each["function"]["description"]
        parameters = each["function"]["parameters"]
        jsonschema.Draft202012Validator.check_schema(parameters)
        assert parameters["type"] == "object"
        assert parameters["additionalProperties"] is False
        assert set(parameters.get("required", [])) <= set(parameters["properties"])
        assert "title" not in json.dumps(parameters)
    _litellm.load()
    count = importlib.import_module("litellm").token_counter
    over_mcp = [listed(name).model_dump(by_alias=True, exclude_none=True) for name in NAMES]
    for schemas in (told, over_mcp):
        assert count(model="gpt-4", text=json.dumps(schemas)) < 1_200


def test_what_only_reads_can_be_had_alone_and_the_rest_is_refused(agent: Orchestrator) -> None:
    reading = ["search_memory", "get_entity_info"]
    told = tools_for(agent, only=reading)
    assert [each["function"]["name"] for each in told] == reading
    told = call_tool(agent, "remember_fact", {"content": "Ada likes tea."}, only=reading)
    assert code(told) == "access.denied"
    told = call_tool(agent, "memory_stats", only=["search_memory"])
    assert code(told) == "access.denied"
    assert agent.memories.list() == []
    with pytest.raises(InvalidInput):
        tools_for(agent, only=["forget_everything"])
    assert [each["function"]["name"] for each in tools_for(agent, only=SERVED)] == [
        *NAMES,
        *ON_REQUEST,
    ]


def test_a_model_gives_no_identity_and_is_told_from_a_person(agent: Orchestrator) -> None:
    memory = agent.get(remembered(agent, "I am Ada Example, a surveyor from Leeds.", confidence=1))
    assert memory.confidence == 1.0
    assert agent.get(remembered(agent, "Ada may be left-handed.", confidence=0.4)).confidence == 0.4
    assert memory.importance < 100
    assert memory.type is not MemoryType.IDENTITY
    item = agent.recall("surveyor from Leeds").items[0]
    assert item.source.captured_by is CapturedBy.EXTRACTOR


def test_what_a_model_may_not_see_does_not_show_in_what_it_remembers(
    service: MemoryService, agent: Orchestrator
) -> None:
    boss = service.orchestrator("orc-1", viewer=Viewer(clearance=Sensitivity.RESTRICTED))
    secret = boss.remember("Anna lives in Berlin.", sensitivity="Restricted")
    mine = remembered(agent, "Anna lives in Berlin")
    assert mine != secret
    assert code(call_tool(agent, "confirm_fact", {"memory_id": secret})) == "memory.not_found"
    told = call_tool(agent, "search_memory", {"query": "Anna"})
    assert secret not in boss.contradictions.list().model_dump_json()
    assert [*lines_in(told)] == [short_id(mine)]


def test_every_name_that_is_given_is_linked(agent: Orchestrator) -> None:
    memory_id = remembered(
        agent, "the kestrel board meets on Monday.", entity_names=["kestrel board", "Zeppelin"]
    )
    for _ in range(2):
        for name in ("Kestrel Board", "Zeppelin"):
            told = call_tool(agent, "get_entity_info", {"name": name})
            assert [*lines_in(told)] == [short_id(memory_id)]
        agent.maintenance.rebuild(["entities"])


def test_a_correction_replaces_a_fact_but_none_that_was_confirmed(
    service: MemoryService, agent: Orchestrator
) -> None:
    memory_id = remembered(agent, "The office is in Berlin.")
    told = call_tool(
        agent, "correct_fact", {"memory_id": memory_id, "new_content": "The office is in Rome."}
    )
    assert told["replaced"] == memory_id
    assert agent.get(memory_id).status == "superseded"
    agent.confirm(told["memory_id"])
    for protected in (
        told["memory_id"],
        agent.remember("I am Ada.", type="Identity"),
    ):
        again = {"memory_id": protected, "new_content": "Nothing is known."}
        assert code(call_tool(agent, "correct_fact", again)) == "access.denied"
        assert agent.get(protected).status == "active"


def test_on_a_persons_word_a_model_confirms_what_it_remembered_itself(agent: Orchestrator) -> None:
    own = remembered(agent, "Ada likes green tea.", confidence=0.6)
    asked = {"memory_id": own}
    assert code(call_tool(agent, "confirm_fact", asked)) == "access.denied"
    noted = agent.save_episode("You like green tea.", session_id="b", source_role="assistant")
    assert code(call_tool(agent, "confirm_fact", asked, session_id="b")) == "access.denied"
    assert agent.trace(own).journal[-1].action != "confirm"
    turn = agent.save_episode("Yes, I like green tea.", session_id="a", source_role="user")
    assert call_tool(agent, "confirm_fact", asked, session_id="a")["protected"] is True
    assert agent.get(own).confidence == 1.0
    assert agent.trace(own).journal[-1].details["on_the_word_of"] == turn
    assert code(call_tool(agent, "confirm_fact", {"memory_id": turn})) == "input.invalid"
    assert code(call_tool(agent, "confirm_fact", {"memory_id": "fact_0"})) == "memory.not_found"
    # What a person stated needs no other word.
    source = {"source_type": "channel_transcript", "captured_by": "system"}
    for grounds, confirmed in (([turn], True), ([noted], False), ([], True)):
        text = f"Green tea, from {len(grounds)}: {confirmed}."
        fact = put(agent, text, source=source, confidence=0.5, derived_from=grounds)
        told = call_tool(agent, "confirm_fact", {"memory_id": fact})
        assert ("error" not in told) is confirmed, told
        assert (agent.get(fact).confidence == 1.0) is confirmed


@pytest.mark.parametrize(
    ("stated_by", "asked_by", "session_id", "allowed"),
    [
        ("user", None, None, False),
        ("user", "user", "s-1", True),
        # A role is the same speaker in its own conversation, a name in every one.
        ("user", "user", "s-2", False),
        ("Ada", "Ada", "s-2", True),
        ("Ada", "Ben", "s-1", False),
        ("user", "assistant", "s-1", False),
        (None, "user", "s-1", False),
    ],
)
def test_what_was_confirmed_a_model_changes_on_the_word_of_who_stated_it_alone(
    agent: Orchestrator,
    stated_by: str | None,
    asked_by: str | None,
    session_id: str | None,
    allowed: bool,
) -> None:
    def say(content: str, session_id: str, role: str) -> str:
        kind = AgentTurn if role == "assistant" else UserTurn
        agent.events.publish(kind(content=content, session_id=session_id, source_role=role))
        return agent.memories.list(session_id=session_id)[0].memory_id

    said = () if stated_by is None else (say("The rent is 900.", "s-1", stated_by),)
    fact = put(agent, "The rent is 900.", derived_from=said)
    agent.confirm(fact)
    word = say("That is over.", session_id, asked_by) if asked_by and session_id else None
    wanted = {"memory_id": fact, "new_content": "The rent is 950."}
    corrected = call_tool(agent, "correct_fact", wanted, session_id=session_id)
    if not allowed:
        asked = {"memory_id": fact, "reason": "asked"}
        assert code(corrected) == "access.denied"
        assert code(call_tool(agent, "forget", asked, session_id=session_id)) == "access.denied"
        assert {agent.get(one).status for one in (fact, *said)} == {"active"}
        return
    trace = agent.trace(corrected["memory_id"])
    assert corrected["replaced"] == fact
    assert word in {link.memory_id for link in trace.grounds}
    assert trace.edges_out[0].reason.startswith("corrected by a model on the word of ")
    agent.confirm(corrected["memory_id"])
    asked = {"memory_id": corrected["memory_id"], "reason": "asked"}
    forgotten = call_tool(agent, "forget", asked, session_id=session_id)
    assert corrected["memory_id"] in forgotten["retracted"]
    last = agent.trace(corrected["memory_id"]).journal[-1]
    assert (last.action, last.details["on_the_word_of"]) == ("retract", word)


def test_a_correction_looks_at_protection_where_it_writes(
    service: MemoryService, agent: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = remembered(agent, "The contract ends in June 2027.")
    prepare = Writer.prepare

    def confirmed_meanwhile(writer: Writer, *args: Any) -> Any:
        monkeypatch.undo()
        service.orchestrator("orc-1").confirm(fact)
        return prepare(writer, *args)

    monkeypatch.setattr(Writer, "prepare", confirmed_meanwhile)
    asked = {"memory_id": fact, "new_content": "The contract ends in June 2031."}
    assert code(call_tool(agent, "correct_fact", asked)) == "access.denied"
    assert agent.get(fact).status == "active"


MERGER = "The merger with Acme closes on 2026-12-01."


def test_what_is_kept_for_few_is_not_remembered_for_all(
    service: MemoryService, agent: Orchestrator
) -> None:
    viewer = Viewer(clearance=Sensitivity.RESTRICTED, project_ids=frozenset({"p1", "p2"}))
    boss = service.orchestrator("orc-1", viewer=viewer)
    secret = boss.remember(MERGER, sensitivity="Restricted", scope="project", scope_id="p1")

    def tell(content: str, **place: str) -> dict[str, Any]:
        return call_tool(boss, "remember_fact", {"content": content}, **place)

    for scope in ({"scope": "global"}, {"scope": "project", "scope_id": "p2"}):
        assert tell(MERGER, **scope) == {"outcome": "duplicate", "memory_id": secret}
        partly = f"{MERGER} Ida keeps bees in Linz."
        assert code(tell(partly, **scope)) == "access.denied"
    assert code(tell(partly)) == "input.invalid"
    here = tell(partly, scope="project", scope_id="p1")["memory_id"]
    assert boss.get(here).sensitivity is Sensitivity.RESTRICTED
    assert boss.get(here).scope_id == "p1"
    assert code(tell("Ida sings.", scope="project", scope_id="p3")) == "access.denied"
    fact = tell("The office is in Rome.", scope="global")["memory_id"]
    asked = {"memory_id": fact, "new_content": MERGER}
    assert code(call_tool(boss, "correct_fact", asked)) == "access.denied"
    assert not agent.recall("merger with Acme").items


def test_a_fact_is_kept_in_the_one_place_and_for_the_agent_of_its_handle(
    service: MemoryService, agent: Orchestrator
) -> None:
    viewer = Viewer(project_ids=frozenset({"p1"}), agent_id="seven")
    seven = service.orchestrator("orc-1", viewer=viewer)
    fact = seven.get(remembered(seven, "The key lies in the old safe."))
    assert (fact.scope, fact.scope_id, fact.agent_id) == ("project", "p1", "seven")
    told = call_tool(seven, "remember_fact", {"content": "Ida has bees."}, scope="global")
    assert seven.get(told["memory_id"]).scope == "global"
    assert seven.get(told["memory_id"]).agent_id == "seven"
    blind = service.orchestrator("orc-1", viewer=Viewer(scopes=frozenset({Scope.PROJECT})))
    told = call_tool(blind, "remember_fact", {"content": "Ida has a dog."})
    assert code(told) == "input.invalid"
    eight = service.orchestrator("orc-1", viewer=Viewer(agent_id="eight"))
    assert not eight.recall("Ida has bees and the key").items


def test_maintenance_is_asked_for_by_the_host_and_rare(
    agent: Orchestrator, clock: FixedClock
) -> None:
    assert {*TOOLS} - {*SERVED} == {MAINTENANCE}
    assert code(call_tool(agent, MAINTENANCE)) == "access.denied"
    assert list(agent.jobs.list()) == []
    assert "runs" in call_tool(agent, MAINTENANCE, only=[MAINTENANCE])
    clock.advance(ms=PAUSE_MS - 1_000)
    assert code(call_tool(agent, MAINTENANCE, only=[MAINTENANCE])) == "memory.conflict"
    clock.advance(ms=2_000)
    assert "runs" in call_tool(agent, MAINTENANCE, only=[MAINTENANCE])


def test_of_an_entity_what_fits_is_told(agent: Orchestrator) -> None:
    for number in range(40):
        put(agent, f"Novatech GmbH ran pilot {number} " + 'ended "well" """" """" """" ' * 20)
    told = call_tool(agent, "get_entity_info", {"name": "Novatech GmbH"})
    assert "\nNovatech GmbH, organization; " in told
    assert "mentions: 40, 2026-01-01\n" in told
    found = lines_in(told)
    assert 5 < len(found) < 40
    assert all("Novatech" in text for text in found.values())


def test_stats_tell_counts_and_the_last_consolidation(
    agent: Orchestrator, clock: FixedClock
) -> None:
    agent.save_episode("Hello there.", session_id="s-1", source_role="user")
    before = call_tool(agent, "memory_stats", "", only=SERVED)
    assert before["memories"]["kind"] == {"episode": 1}
    assert before["last_consolidation_at"] is None
    clock.advance(days=1)
    told = call_tool(agent, MAINTENANCE, "{}", only=[MAINTENANCE])
    assert [each["job"] for each in told["runs"]] == ["consolidation", "decay", "reflection"]
    assert (
        call_tool(agent, "memory_stats", only=SERVED)["last_consolidation_at"]
        == "2026-01-02T00:00:00.000Z"
    )


def test_a_search_is_limited_by_lines_kind_and_tag(agent: Orchestrator) -> None:
    fact = put(agent, "The lantern of the harbour is green.", tags=["light"])
    liked = put(agent, "Ada prefers the lantern of the harbour.", type="Preference")
    turn = agent.save_episode("The lantern shines.", session_id="s-1", source_role="user")
    assert len(search(agent, "lantern harbour")) == 3
    assert len(search(agent, "lantern harbour", limit=2)) == 2
    for filters, ids in (
        ({"kind": "preference"}, [liked]),
        ({"kind": "fact"}, [fact, liked]),
        ({"kind": "episode"}, [turn]),
        ({"type": "Preference"}, [liked]),
        ({"type": "Fact"}, [fact]),
        ({"tag": "light"}, [fact]),
    ):
        assert {*search(agent, "lantern harbour", **filters)} == {short_id(one) for one in ids}
    told = call_tool(agent, "search_memory", {"query": "zeppelin", "kind": "reflection"})
    assert told == NOTHING_FOUND
    # Nor does a search give the question.
    question = "When does the bakery open?"
    for session_id, asked in (("s1", question), ("s0", "when does the bakery  open?")):
        agent.save_episode(asked, session_id=session_id, source_role="user")
    fact = put(agent, "The bakery opens at seven.")
    assert [*search(agent, question, limit=1)] == [short_id(fact)]
    last = agent.receipts.list().receipts[0]
    assert [each.memory_id for each in last.items] == [fact]


class _Alike(CountingIds):
    """Ids whose last six characters are equal."""

    def new(self, prefix: str) -> str:
        self._next += 32**6
        return prefix + encode_ulid(self._next)


def test_a_short_id_is_as_long_as_it_has_to_be(tmp_path: Path) -> None:
    with MemoryService(tmp_path / "root", environ={}, background=False, ids=_Alike()) as service:
        agent = service.orchestrator("orc-1", create=True)
        ids = [put(agent, f"The lantern of the harbour is {each}.") for each in ("red", "blue")]
        found = search(agent, "lantern harbour")
        assert [len(each) for each in found] == [7, 7]
        for line, memory_id in zip(found, ids, strict=True):
            for written in (line, f"#{line}", f"#{line.upper()}"):
                assert agent.get(written).memory_id == memory_id
        told = call_tool(agent, "forget", {"memory_id": short_id(ids[0])})
        assert code(told) == "memory.conflict"
        assert "short id of 2 memories" in told["error"]["message"]


def test_a_line_of_a_turn_stands_for_the_one_fact_that_was_derived_from_it(
    agent: Orchestrator,
) -> None:
    def said(text: str) -> str:
        return agent.save_episode(text, session_id="s-1", source_role="user")

    def derived(text: str, turn: str) -> str:
        source = {"source_type": "channel_transcript", "captured_by": "system"}
        return put(agent, text, derived_from=[turn], source=source, confidence=0.8)

    turn = said("The gate opens at six. Bring the key.")
    fact = derived("The gate opens at six.", turn)
    asked = {"memory_id": short_id(turn), "new_content": "The gate opens at seven."}
    told = call_tool(agent, "correct_fact", asked)
    assert told["replaced"] == fact
    call_tool(agent, "confirm_fact", {"memory_id": short_id(turn)})
    two = said("Ada sings and Ben paints.")
    for text in ("Ada sings.", "Ben paints."):
        derived(text, two)
    for line in (two, said("The bridge is red.")):
        asked = {"memory_id": line, "new_content": "Something else is so."}
        refused = call_tool(agent, "correct_fact", asked)
        assert code(refused) == "input.invalid"
        assert "remember_fact" in refused["error"]["message"]


def test_what_is_forgotten_is_not_found_and_can_be_restored(agent: Orchestrator) -> None:
    turn = agent.save_episode("The bridge is red.", session_id="s-1", source_role="user")
    source = {"source_type": "channel_transcript", "captured_by": "system"}
    fact = put(agent, "The bridge is red.", derived_from=[turn], source=source, confidence=0.8)
    own = remembered(agent, "The lamp of the tower is blue.")
    [line] = search(agent, "bridge", limit=1)
    told = call_tool(agent, "forget", {"memory_id": f"#{line}", "reason": "Ben asked."})
    assert {*told["retracted"]} == {turn, fact}
    assert call_tool(agent, "forget", {"memory_id": own}) == {"retracted": [own]}
    assert call_tool(agent, "search_memory", {"query": "bridge lamp"}) == NOTHING_FOUND
    assert agent.get(fact).content == "The bridge is red."
    assert agent.trace(fact).status_history[-1].reason == "Ben asked."
    agent.restore(fact, reason="seen")
    assert agent.get(fact).status == "active"


def test_a_preference_is_a_fact_of_that_type(agent: Orchestrator) -> None:
    own = remembered(agent, "Ada likes green tea.", kind="preference")
    told = agent.remember("Ben likes green tea.", kind="preference")
    for one in (own, told):
        memory = agent.get(one)
        assert (memory.kind, memory.type) == ("fact", "Preference")
    put(agent, "Green tea is in the jar.")
    found = call_tool(agent, "search_memory", {"query": "green tea", "kind": "preference"})
    assert "likes" in found
    assert "jar" not in found
    assert {each.memory_id for each in agent.memories.list(kinds=["preference"])} == {own, told}
    recalled = agent.recall("green tea", kinds=["preference"]).items
    assert {each.memory.memory_id for each in recalled} == {own, told}
    assert "jar" not in agent.context("green tea", kinds=["preference"]).text
    with pytest.raises(InvalidInput, match="preference"):
        agent.remember("Ben likes mint tea.", kind="preference", type="Goal")
    for filters in ({"kinds": ["preference", "episode"]}, {"types": ["Goal"]}):
        beside: dict[str, Any] = {"kinds": ["preference"], **filters}
        with pytest.raises(InvalidInput, match="preference"):
            agent.memories.list(**beside)
        with pytest.raises(InvalidInput, match="preference"):
            agent.recall("green tea", **beside)


def test_wrong_arguments_are_told_and_nothing_happens(agent: Orchestrator) -> None:
    wrong: list[tuple[str, Any]] = [
        ("search_memory", {}),
        ("search_memory", {"query": "  "}),
        ("search_memory", {"query": "tea", "limit": "5"}),
        ("search_memory", {"query": "tea", "kind": "secret"}),
        ("search_memory", "no JSON at all"),
        ("search_memory", {"query": "x" * 30_000}),
        ("search_memory", {"query": "tea", "clearance": "Restricted"}),
        ("remember_fact", {"content": "x" * 1_001}),
        ("remember_fact", {"content": "tea", "confidence": float("nan")}),
        ("remember_fact", {"content": "tea", "type": "Identity"}),
        ("remember_fact", {"content": "tea", "scope": "project", "scope_id": "web"}),
        ("remember_fact", {"content": "tea", "entity_names": ["x"] * 21}),
        ("remember_fact", {"content": "a\x00b"}),
        ("correct_fact", {"memory_id": "fact_1"}),
        ("forget", {"reason": "asked"}),
        ("memory_consolidate", {"force": True}),
    ]
    for name, arguments in wrong:
        told = call_tool(agent, name, arguments, only=TOOLS)
        assert code(told) == "input.invalid", (name, arguments)
        assert len(told["error"]["message"]) <= 500
    for odd in (None, "search_memory", {}, {"id": "c-1"}, {"function": {}}):
        with pytest.raises(InvalidInput):
            answer_calls(agent, [_call("remember_fact", {"content": "The tea is in it."}), odd])
    assert agent.memories.list() == []
    assert list(agent.jobs.list()) == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.one_of(st.sampled_from([*NAMES, MAINTENANCE]), st.text(max_size=20)),
    arguments=st.text(),
)
def test_any_text_as_arguments_gives_an_answer(
    agent: Orchestrator, name: str, arguments: str
) -> None:
    told = call_tool(agent, name, arguments)
    assert json.loads(json.dumps(told)) == told
    if name not in NAMES:
        assert code(told) == "access.denied"
    elif isinstance(told, dict) and "error" in told:
        assert set(told["error"]) == {"code", "message"}


class _Function:
    def __init__(self, name: str, arguments: str) -> None:
        self.name = name
        self.arguments = arguments


class _call:  # noqa: N801  # reads as what it stands for, a call
    id = "call_0"

    def __init__(self, name: str, arguments: Any) -> None:
        self.function = _Function(name, json.dumps(arguments))


def test_the_calls_of_a_model_are_answered_under_their_ids(agent: Orchestrator) -> None:
    agent.remember("Ada drinks her tea without sugar.")
    moved = _call("remember_fact", {"content": "Ada moved to Leeds.", "confidence": 1.0})
    calls = [
        _call("search_memory", {"query": "How does Ada drink her tea?"}),
        # As an object of OpenAI's package, as a mapping, and broken off.
        {"id": "c-1", "type": "function", "function": vars(moved.function)},
        {"id": "c-2", "function": {"name": "remember_fact", "arguments": '{"content": "half of'}},
    ]
    messages = answer_calls(agent, calls, session_id="s-7")
    assert [(each["role"], each["tool_call_id"]) for each in messages] == [
        *(("tool", "call_0"), ("tool", "c-1"), ("tool", "c-2"))
    ]
    found, *others = (each["content"] for each in messages)
    stored, refused = map(json.loads, others)
    assert "Ada drinks" in found
    assert stored["outcome"] == "stored"
    assert code(refused) == "input.invalid"
    item = agent.recall("Where did Ada move?", top_n=1).items[0]
    assert (item.memory.content, item.memory.confidence) == ("Ada moved to Leeds.", 1.0)
    assert item.source.conversation_id == "s-7"
