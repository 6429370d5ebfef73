"""An agent that asks a memory on a server, by the Model Context Protocol over HTTP.

Run it with the address of an orchestrator and a file that holds a key:
python examples/mcp/over_http.py http://127.0.0.1:8420/mcp/desk laptop.key
"""
# ruff: noqa: T201 - it prints for a person

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


async def main(url: str, key: str) -> None:
    shown = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=shown) as http,
        Client(streamable_http_client(url, http_client=http)) as memory,
    ):
        told = await memory.call_tool("remember_fact", {"content": "Ana speaks Portuguese."})
        print(json.loads(told.content[0].text)["outcome"])

        found = await memory.call_tool("search_memory", {"query": "What does Ana speak?"})
        print(found.content[0].text)


def refusals(error: BaseException) -> list[MCPError]:
    """What the server refused: the SDK raises it in groups, from the tasks that met it."""
    if isinstance(error, BaseExceptionGroup):
        return [found for each in error.exceptions for found in refusals(each)]
    return [error] if isinstance(error, MCPError) else []


if __name__ == "__main__":
    address, file = sys.argv[1:]
    try:
        asyncio.run(main(address, Path(file).read_text(encoding="ascii").strip()))
    except (MCPError, BaseExceptionGroup) as error:
        if not (refused := refusals(error)):
            raise
        sys.exit(f"{refused[0].data['code']}: {refused[0].message}")
