"""An agent that keeps its memory in memgraph, by the Model Context Protocol.

Run it where `memgraph init desk` was run: python examples/mcp/agent.py
"""
# ruff: noqa: T201 - it prints for a person

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

try:
    from mcp import Client, StdioServerParameters
except ImportError:
    sys.exit('The package mcp is missing: pip install "memgraph-memory[server]"')


def check() -> None:
    """Exit with one sentence if the server could not start."""
    try:
        health = subprocess.run(["memgraph", "health", "desk"], capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit('The command memgraph is missing: pip install "memgraph-memory[server]"')
    if health.returncode:
        sys.exit(health.stderr.strip())


async def main() -> None:
    server = StdioServerParameters(
        command="memgraph", args=["mcp", "--orchestrator", "desk"], env=dict(os.environ)
    )
    async with Client(server) as memory:
        told = await memory.call_tool("remember_fact", {"content": "Ana moved to Lisbon in May."})
        print(json.loads(told.content[0].text)["outcome"])

        found = await memory.call_tool("search_memory", {"query": "Where does Ana live?"})
        print(found.content[0].text)

        bulletin = await memory.read_resource("memgraph://bulletin")
        print(bulletin.contents[0].text)


check()
asyncio.run(main())
