"""Every surface of a real server process over an orchestrator in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from console_browsing import HOME, Browser, harmless
from mcp_worlds import remote_agent, tell_the_story_of_the_bees
from server_processes import server_process
from serving_worlds import Served

from memgraph import MemoryService
from memgraph.clock import SystemClock
from memgraph.service.access.keys import KeyStore
from tests.postgres_servers import drop_schemas

API = "/v1/orchestrators/orc-1"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[Served]:
    """A process that serves orc-1, and a service of another machine on the same database."""
    environ = {"MEMGRAPH_MEMORY__STORAGE__URL": postgres_server}
    folder: Path = tmp_path_factory.mktemp("postgresql")
    with (
        MemoryService(folder / "here", environ=environ, background=False) as service,
        server_process(folder / "there", keyless=False, **environ) as process,
    ):
        service.create("orc-1")
        keys = KeyStore(folder / "here", SystemClock(), url=postgres_server)
        yield Served(process.url, service, keys)
    drop_schemas(postgres_server)


@dataclass
class Caller:
    """Sends requests with a key; what they answer is JSON."""

    client: httpx.Client

    def __call__(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        answer = self.client.request(method, f"{API}{path}", json=body, params=query)
        assert answer.is_success, (method, path, answer.text)
        return answer.json() if answer.content else None


def test_an_agent_remembers_and_recalls(served: Served) -> None:
    bees = served.orchestrator("bees")
    with remote_agent(f"{served.url}/mcp/bees?tools=all", served.key()) as agent:
        stored = tell_the_story_of_the_bees(agent)
    assert bees.get(stored).content == "Ada keeps her bees in Leeds."


def test_http_operations(served: Served) -> None:
    with served.client(served.key()) as client:
        call = Caller(client)
        assert "orc-1" in client.get("/v1/orchestrators").text
        old = call("POST", "/memories", {"content": "The gate of Kew closes at 20:00."})
        new = call("POST", "/memories", {"content": "The gate of Kew closes at 22:00."})
        old_id, new_id = old["memory_id"], new["memory_id"]
        joined = {"from_id": new_id, "to_id": old_id, "edge_type": "Updates"}
        assert call("POST", "/edges", joined)
        assert call("GET", f"/memories/{old_id}")["status"] == "superseded"
        assert new_id in str(call("GET", "/memories", limit=50))
        question = {"query": "When does the gate of Kew close?"}
        assert new_id in str(call("POST", "/recall", question)["items"])
        assert "22:00" in call("POST", "/context/block", {"prompt": question["query"]})["text"]
        assert "22:00" in str(call("POST", "/context", question))
        assert old_id in str(call("POST", "/subgraph", {"ids": [new_id], "hops": 1}))
        correction = {"content": "The gate of Kew is shut.", "reason": "rebuilt"}
        assert call("POST", f"/memories/{new_id}/correct", correction)
        assert call("GET", f"/memories/{new_id}/history")
        assert call("POST", "/verify")["findings"] == []
        assert call("GET", "/status")
        assert call("GET", "")["status"] == "ready"


def test_pages_of_the_menu(served: Served) -> None:
    served.orchestrator().remember("The shop in Ely opens at nine.")
    with Browser(served, served.key()) as browser:
        menu = {
            address
            for address in harmless(browser.page()).values("href")
            if address.startswith(HOME)
        }
        assert len(menu) > 10
        for address in sorted(menu):
            harmless(browser.page(address))
        assert "The shop in Ely" in browser.page(f"{HOME}memories")
