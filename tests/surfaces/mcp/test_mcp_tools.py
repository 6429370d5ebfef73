"""What the tools and the resource answer, to the SDK's own client over every transport."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError
from mcp_worlds import Agent, remote_agent, tell_the_story_of_the_bees
from serving_worlds import Served, serving, whole_app

from memgraph.model.access import Permission
from memgraph.operations.tools.tools import SERVED, offered

SIX = {
    *("search_memory", "remember_fact", "correct_fact", "confirm_fact"),
    *("get_entity_info", "forget"),
}
READING = {"search_memory", "get_entity_info", "memory_stats"}
WRITING = {"remember_fact", "correct_fact", "confirm_fact", "forget"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("mcp") / "root", app_of=whole_app) as running:
        yield running


@pytest.fixture
def fresh(served: Served, request: pytest.FixtureRequest) -> str:
    """An orchestrator of this test alone."""
    name = "t-" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]
    served.orchestrator(name)
    return name


def test_an_agent_of_the_older_protocol_remembers_recalls_mends_and_asks_why(
    served: Served, fresh: str
) -> None:
    with remote_agent(f"{served.url}/mcp/{fresh}?tools=all", served.key(), "legacy") as agent:
        stored = tell_the_story_of_the_bees(agent)
    kept = served.orchestrator(fresh).get(stored)
    assert (kept.content, kept.status) == ("Ada keeps her bees in Leeds.", "active")


def test_everything_is_listed_with_its_schemas_and_what_it_may_do(
    served: Served, fresh: str
) -> None:
    with narrowed(served, fresh) as agent:
        listed = {each.name: each for each in agent.do("list_tools").tools}
        assert set(listed) == set(offered(SERVED)) == READING | WRITING
        for name, tool in listed.items():
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            assert tool.input_schema["additionalProperties"] is False
            may = tool.annotations
            assert may.read_only_hint is (name in READING)
            assert may.destructive_hint is (name in {"correct_fact", "forget"})
            assert may.idempotent_hint is True
            assert may.open_world_hint is False
        assert [each.uri for each in agent.do("list_resources").resources] == [
            "memgraph://bulletin"
        ]
        for uri in ("memgraph://bulletin/x", "file:///etc/passwd", ""):
            assert agent.failed("read_resource", uri) == "memory.not_found"


def test_six_are_offered_and_the_others_on_request(served: Served, fresh: str) -> None:
    with remote_agent(f"{served.url}/mcp/{fresh}", served.key()) as agent:
        assert {each.name for each in agent.do("list_tools").tools} == SIX == set(offered())
        with pytest.raises(MCPError, match="no such tool"):
            agent.do("call_tool", "memory_stats", {})
        agent.call("remember_fact", content="Ada keeps bees.")
        [line] = agent.search("bees")
        assert agent.call("forget", memory_id=line)["retracted"]


@pytest.mark.parametrize(
    ("permission", "allowed"),
    [(Permission.READ, READING), (Permission.WRITE, WRITING), (Permission.AUDIT, set())],
)
def test_a_key_is_shown_what_it_may_use(
    served: Served, fresh: str, permission: Permission, allowed: set[str]
) -> None:
    secret = served.key(permissions=[permission])
    with remote_agent(f"{served.url}/mcp/{fresh}?tools=all", secret) as agent:
        assert {each.name for each in agent.do("list_tools").tools} == allowed
        reads = permission is Permission.READ
        assert bool(agent.do("list_resources").resources) is reads
        for name in set(offered(SERVED)) - allowed:
            assert agent.refused(name) == "access.denied"
        if not reads:
            assert agent.failed("read_resource", "memgraph://bulletin") == "access.denied"


@contextmanager
def narrowed(served: Served, fresh: str, query: str = "") -> Iterator[Agent]:
    with remote_agent(f"{served.url}/mcp/{fresh}?tools=all&{query}", served.key()) as made:
        yield made


def test_the_address_narrows_and_says_where_facts_are_kept(served: Served, fresh: str) -> None:
    orc = served.orchestrator(fresh)
    with narrowed(served, fresh, "project=web") as agent:
        stored = agent.call("remember_fact", content="The web shop is blue.")["memory_id"]
    with narrowed(served, fresh, "project=web&session=s1") as agent:
        assert agent.refused("remember_fact", content="Cats sleep all day.") == "input.invalid"
        assert len(agent.search("web shop")) == 1
    with narrowed(served, fresh, "project=web&session=s1&scope=session") as agent:
        assert agent.call("remember_fact", content="Cats sleep all day.")["memory_id"]
    with narrowed(served, fresh, "project=other") as agent:
        assert agent.search("web shop") == {}
        assert agent.refused("forget", memory_id=stored) == "memory.not_found"
    with pytest.raises(Exception, match="no memory"):
        orc.get(stored)
