"""An agent that keeps its memory in memgraph, by the Model Context Protocol.

Run it where `memgraph init desk` was run: python examples/mcp/agent.py
"""
# ruff: noqa: T201 - it prints for a person

from __future__ import annotations

import asyncio
import os

from mcp import Client, StdioServerParameters


async def main() -> None:
    server = StdioServerParameters(
        command="memgraph", args=["mcp", "--orchestrator", "desk"], env=dict(os.environ)
    )
    async with Client(server) as memory:
        told = await memory.call_tool("remember", {"content": "Ana moved to Lisbon in May."})
        print(told.structured_content["outcome"])

        found = await memory.call_tool("recall", {"query": "Where does Ana live?"})
        for each in found.structured_content["memories"]:
            print(each["text"], "-", each["source"])

        prompt = await memory.get_prompt("context", {"message": "Where does Ana live?"})
        print(prompt.messages[0].content)


asyncio.run(main())
