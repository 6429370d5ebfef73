"""A real server process over an orchestrator in PostgreSQL, whose keys are another machine's."""

from __future__ import annotations

from pathlib import Path

from mcp_worlds import remote_agent, tell_the_story_of_the_bees
from server_processes import server_process
from serving_worlds import EVERYTHING

from memgraph import MemoryService
from memgraph.clock import SystemClock
from memgraph.service.access.keys import KeyStore


def test_an_agent_remembers_in_a_store_that_another_machine_reads(
    tmp_path: Path, postgres_url: str
) -> None:
    environ = {"MEMGRAPH_MEMORY__STORAGE__URL": postgres_url}
    with (
        MemoryService(tmp_path / "here", environ=environ, background=False) as service,
        server_process(tmp_path / "there", keyless=False, **environ) as process,
    ):
        keys = KeyStore(tmp_path / "here", SystemClock(), url=postgres_url)
        secret = keys.create({"name": "agent", **EVERYTHING}).secret
        bees = service.orchestrator("bees", create=True)
        with remote_agent(f"{process.url}/mcp/bees?tools=all", secret) as agent:
            stored = tell_the_story_of_the_bees(agent)
        assert bees.get(stored).content == "Ada keeps her bees in Leeds."
        with process.client() as client:
            client.headers["authorization"] = f"Bearer {secret}"
            asked = {"query": "Where are the bees?"}
            assert stored in client.post("/v1/orchestrators/bees/recall", json=asked).text
            assert client.get("/v1/orchestrators/bees").json()["status"] == "ready"
