"""MCP over standard input and output: the protocol, and nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp_worlds import local_agent, tell_the_story_of_the_bees
from programs import Program

from memgraph import MemoryService, Scope, Viewer
from memgraph.errors import ExtraMissing
from memgraph.surfaces.mcp import stdio

if TYPE_CHECKING:
    from conftest import CommandLine

COMMAND = "import sys; from memgraph.surfaces.cli import main; sys.exit(main())"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.remember("The vault is behind the oak panel.", sensitivity="Confidential")
        orc.remember("The shop sells bread.")
    return root


def spoken(root: Path, *lines: bytes, answers: int = 0) -> tuple[int, list[Any], bytes]:
    """Exit code, standard output and error of a server that hears no more after so many answers.

    Of a command with --json: its own answer would be there, too.
    """
    words = ["-c", COMMAND, "mcp", "--orchestrator", "orc-1", "--root", str(root), "--json"]
    with Program(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"".join(each + b"\n" for each in lines))
        server.stdin.flush()
        told = [server.stdout.readline() for _ in range(answers)]
        rest, err = server.communicate(timeout=60)
    return server.returncode, [json.loads(each) for each in [*told, *rest.splitlines()]], err


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def test_standard_output_carries_the_protocol_alone(root: Path) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "search_memory", "arguments": {"query": "bread"}},
    }
    lines = [b"not json", line(HELLO), line(READY), b"[]", b"\xff", line(call)]
    code, told, err = spoken(root, *lines, answers=2)
    assert code == 0
    assert [(each["jsonrpc"], each["id"]) for each in told] == [("2.0", 1), ("2.0", 2)]
    assert "bread" in told[1]["result"]["content"][0]["text"]
    assert b"bread" not in err


@pytest.mark.parametrize(("error", "quiet"), [(BrokenPipeError, True), (ValueError, False)])
def test_it_ends_quietly_when_nobody_reads_any_more(
    service: MemoryService,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    quiet: bool,
) -> None:
    @asynccontextmanager
    async def failing() -> AsyncIterator[None]:
        raise ExceptionGroup("as the SDK's task group has it", [error()])
        yield

    monkeypatch.setattr(stdio, "stdio_server", failing)
    ended = nullcontext() if quiet else pytest.raises(ExceptionGroup)
    with ended:
        stdio.run(service.orchestrator("orc-1", create=True), service.root)


def test_an_interrupt_ends_it_though_its_input_does_not(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread waits for input: as an exception, an interrupt would wait for it, too."""
    before = signal.getsignal(signal.SIGINT)
    during: list[object] = []

    async def serve(_server: object) -> None:
        during.append(signal.getsignal(signal.SIGINT))

    monkeypatch.setattr(stdio, "_serve", serve)
    stdio.run(service.orchestrator("orc-1", create=True), service.root)
    assert during == [signal.SIG_DFL]
    assert signal.getsignal(signal.SIGINT) is before


def test_it_ends_with_its_input_and_says_on_standard_error_what_cannot_be_opened(
    cli: CommandLine,
) -> None:
    ran = cli("mcp", "--orchestrator", "orc-1", "--json", stdin="\nno message\n")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    ran = cli("mcp", "--orchestrator", "orc-9", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert json.loads(ran.err)["error"]["code"] == "orchestrator.missing"


def test_an_agent_sees_and_is_what_the_options_say(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        orc = service.orchestrator("orc-1", create=True)
        orc.remember("The bees are behind the oak panel.", sensitivity="Confidential")
        orc.remember("The bees of the shop sleep.", scope="project", scope_id="shop")
    options = ("--project", "web", "--session", "s1", "--scope", "project", "--actor", "desk")
    options += ("--tools", "all")
    with local_agent(root, *options) as agent:
        stored = tell_the_story_of_the_bees(agent)
    with MemoryService(root, environ={}, background=False) as service:
        seeing = service.orchestrator("orc-1", viewer=Viewer(project_ids=frozenset({"web"})))
        traced = seeing.trace(stored)
    assert (traced.memory.scope, traced.memory.scope_id) == (Scope.PROJECT, "web")
    assert traced.journal[0].actor == "desk"


def test_without_its_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    for name in [each for each in sys.modules if each.startswith("memgraph.surfaces.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ExtraMissing, match="memgraph-memory\\[server\\]"):
        import_module("memgraph.surfaces.mcp.stdio")
