"""Agents for tests: the SDK's own client, over every transport, for tests that do not await."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import httpx2
import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from working import lines_in

from memgraph import __version__

Mode = Literal["auto", "legacy"]
"""The protocol of 2026, a message by itself, and the one of 2025, which begins with a handshake."""
HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


@dataclass(frozen=True)
class Agent:
    """A connected client."""

    portal: BlockingPortal
    client: Client

    def do(self, name: str, *args: Any, **named: Any) -> Any:
        """A method of the SDK's client, waited for."""
        return self.portal.call(partial(getattr(self.client, name), *args, **named))

    def text(self, tool: str, **arguments: Any) -> str:
        """Return what a tool answers; it must not be an error."""
        told: types.CallToolResult = self.do("call_tool", tool, arguments)
        assert not told.is_error, told.content
        [block] = told.content
        assert isinstance(block, types.TextContent)
        return block.text

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the JSON values that a tool answers."""
        answer: dict[str, Any] = json.loads(self.text(tool, **arguments))
        return answer

    def search(self, query: str, **more: Any) -> dict[str, str]:
        """Return the texts of the lines that a search answers, by their short ids."""
        return lines_in(self.text("search_memory", query=query, **more))

    def refused(self, tool: str, **arguments: Any) -> str:
        """The code of the error that a tool answers with."""
        told: types.CallToolResult = self.do("call_tool", tool, arguments)
        assert told.is_error
        [block] = told.content
        assert isinstance(block, types.TextContent)
        error = json.loads(block.text)["error"]
        assert set(error) == {"code", "message"}
        code: str = error["code"]
        return code

    def failed(self, name: str, *args: Any) -> str:
        """The code of the library with which anything but a tool fails."""
        try:
            self.do(name, *args)
        except MCPError as error:
            code: str = error.data["code"]
            return code
        raise AssertionError(f"{name} did not fail")

    def read(self, uri: str) -> str:
        """The text of a resource."""
        [contents] = self.do("read_resource", uri).contents
        assert contents.uri == uri
        text: str = contents.text
        return text


@contextmanager
def remote_agent(url: str, secret: str | None, mode: Mode = "auto") -> Iterator[Agent]:
    """An agent that speaks to ``url`` (``…/mcp/orc-1``) and shows a key, or none."""

    @asynccontextmanager
    async def connected() -> AsyncIterator[Client]:
        shown = {} if secret is None else {"authorization": f"Bearer {secret}"}
        async with (
            # No TLS here: reading the certificates of a machine takes longer than most tests.
            httpx2.AsyncClient(headers=shown, trust_env=False, verify=False, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            yield client

    with _agent(connected) as made:
        yield made


@contextmanager
def local_agent(root: Path, *options: str) -> Iterator[Agent]:
    """An agent that starts `memgraph mcp` for orc-1 and speaks to it over its pipes."""
    command = str(Path(sys.executable).with_name("memgraph"))
    arguments = ["mcp", "--orchestrator", "orc-1", "--root", str(root), *options]
    started = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    with _agent(lambda: Client(started)) as made:
        yield made


def tell_the_story_of_the_bees(agent: Agent) -> str:
    """Do what an agent with all tools does where it sees nothing yet; return the new fact's id."""
    info = agent.client.server_info
    assert info is not None
    assert (info.name, info.version) == ("memgraph", __version__)
    names = {tool.name: tool for tool in agent.do("list_tools").tools}
    assert names["search_memory"].annotations.read_only_hint
    old = agent.call("remember_fact", content="Ada keeps her bees in York.")
    assert old["outcome"] == "stored"
    again = agent.call("remember_fact", content="Ada keeps her bees in York.")
    assert again == {"outcome": "duplicate", "memory_id": old["memory_id"]}
    [(line, text)] = agent.search("Where are the bees?").items()
    assert text == "Ada keeps her bees in York."
    new = agent.call(
        "correct_fact", memory_id=f"#{line}", new_content="Ada keeps her bees in Leeds."
    )
    assert new["replaced"] == old["memory_id"]
    told = agent.text("search_memory", query="Where are the bees?")
    assert [*lines_in(told).values()] == [
        "Ada keeps her bees in York.",
        "Ada keeps her bees in Leeds.",
    ]
    assert ", see [2]: Ada keeps her bees in York." in told
    assert ", replaces [1]: Ada keeps her bees in Leeds." in told
    assert agent.call("memory_stats")["memories"]["status"] == {"active": 1, "superseded": 1}
    assert "Leeds" in agent.read("memgraph://bulletin")
    stored: str = new["memory_id"]
    return stored


@contextmanager
def _agent(connect: Callable[[], AbstractAsyncContextManager[Client]]) -> Iterator[Agent]:
    failure = None
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(portal.call(connect)) as client,
    ):
        try:
            yield Agent(portal, client)
        except BaseException as error:  # noqa: BLE001 - raised below, out of the SDK's task groups
            failure = error
    if failure is not None:
        raise failure
