"""``memgraph mcp --install``: the configuration of a client, with nothing lost in it."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memgraph.surfaces.cli.commands import service as command
from memgraph.surfaces.cli.mcp_clients import McpClient, config_path

if TYPE_CHECKING:
    from conftest import CommandLine
else:
    CommandLine = object

PLACES = {
    "claude": "work/.mcp.json",
    "claude-desktop": "home/.config/Claude/claude_desktop_config.json",
    "vscode": "work/.vscode/mcp.json",
    "cursor": "home/.cursor/mcp.json",
    "codex": "home/.codex/config.toml",
}
MEMBERS = {"vscode": "servers", "codex": "mcp_servers"}


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a project, both empty."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def install(cli: CommandLine, client: str, *options: str) -> dict[str, Any]:
    return cli.json("mcp", "--orchestrator", "orc-1", "--install", client, "--yes", *options)


def servers(path: Path, client: str) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    config = tomllib.loads(text) if client == "codex" else json.loads(text)
    found: dict[str, Any] = config[MEMBERS.get(client, "mcpServers")]
    return found


OPTIONS = [
    *("--clearance", "Public", "--project", "web", "--scope", "project", "--tools", "all"),
]


@pytest.mark.parametrize("client", McpClient)
def test_each_client_is_set_up_once_in_its_own_place(
    cli: CommandLine, places: Path, client: McpClient
) -> None:
    done = install(cli, client, *OPTIONS)
    path = places / PLACES[client]
    assert (done["path"], done["changed"], done["backup"]) == (str(path), True, None)
    server = servers(path, client)["memory"]
    assert server.get("type") == ("stdio" if client == "vscode" else None)
    assert Path(server["command"]).name == "memgraph"
    arguments = ["mcp", "--orchestrator", "orc-1", "--actor", client, "--root", str(cli.root)]
    arguments += OPTIONS
    assert server["args"] == arguments
    again = install(cli, client, *OPTIONS)
    assert (again["changed"], again["diff"]) == (False, "")
    assert cli.error("mcp", "--orchestrator", "orc-1", "--install", client, "--yes")["code"] == (
        "cli.unusable"
    )


def test_the_server_that_was_installed_starts(
    cli: CommandLine, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(cli, "claude", "--scope", "global")
    asked: list[Any] = []
    monkeypatch.setattr(
        "memgraph.surfaces.mcp.stdio.run",
        lambda handle, *_, scope, tools: asked.append((handle, scope, tools)),
    )
    assert cli(*servers(places / PLACES["claude"], "claude")["memory"]["args"]).code == 0
    [(handle, scope, tools)] = asked
    assert (handle.name, handle.actor, scope, tools) == ("orc-1", "claude", "global", "default")


def test_json_keeps_what_is_there_its_indent_and_a_copy(cli: CommandLine, places: Path) -> None:
    path = places / PLACES["cursor"]
    path.parent.mkdir(parents=True)
    before = '{\n\t"über": 1,\n\t"mcpServers": {\n\t\t"other": {"url": "x"}\n\t}\n}'
    path.write_text(before, encoding="utf-8")
    path.chmod(0o640)
    done = install(cli, "cursor", "--name", "notes")
    text = path.read_text(encoding="utf-8")
    assert text.startswith('{\n\t"über": 1,\n\t"mcpServers"')
    assert list(servers(path, "cursor")) == ["other", "notes"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert Path(done["backup"]).read_text(encoding="utf-8") == before
    assert '+\t\t"notes": {' in done["diff"]
    second = install(cli, "cursor", "--name", "more")
    assert second["backup"] != done["backup"]


def test_toml_keeps_every_line_and_its_comments(cli: CommandLine, places: Path) -> None:
    path = places / PLACES["codex"]
    path.parent.mkdir(parents=True)
    before = '# mine\nmodel = "x"   # why\n\n[mcp_servers.other]\ncommand = "o"'
    path.write_text(before, encoding="utf-8")
    install(cli, "codex", "--name", 'a "b"\\')
    assert path.read_text(encoding="utf-8").startswith(f"{before}\n\n[mcp_servers.")
    assert list(servers(path, "codex")) == ["other", 'a "b"\\']


@pytest.mark.parametrize(
    ("client", "content", "says"),
    [
        ("claude", "{ // mine\n}", "by hand"),
        ("claude", '{"a": 1, "a": 2}', "twice"),
        ("claude", "[]", "mcpServers"),
        ("vscode", '{"servers": []}', "servers"),
        ("codex", "mcp_servers = {}\n", "by hand"),
        ("codex", "mcp_servers = 1\n", "mcp_servers"),
        ("codex", "a = [", "not TOML"),
        ("codex", '[mcp_servers.memory]\ncommand = "other"\n', "--name"),
        ("cursor", '{"mcpServers": {"memory": {"command": "other"}}}', "--name"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_stays_as_it_is(
    cli: CommandLine, places: Path, client: str, content: str, says: str
) -> None:
    path = places / PLACES[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    error = cli.error("mcp", "--orchestrator", "orc-1", "--install", client, "--yes")
    assert error["code"] == "cli.unusable"
    assert says in error["message"]
    assert str(path) in error["message"]
    assert path.read_text(encoding="utf-8") == content
    assert list(path.parent.iterdir()) == [path]


def test_the_change_is_shown_and_asked_for(cli: CommandLine, places: Path) -> None:
    path = places / PLACES["claude"]
    asked = ("mcp", "--orchestrator", "orc-1", "--install", "claude")
    refused = cli(*asked, stdin="n\n")
    assert '+  "mcpServers": {' in refused.out
    assert not path.exists()
    assert cli.error(*asked)["code"] == "cli.usage"
    assert not path.exists()
    assert cli(*asked, stdin="y\n").code == 0
    assert list(servers(path, "claude")) == ["memory"]


def test_a_linked_file_stays_linked_and_another_file_can_be_named(
    cli: CommandLine, places: Path
) -> None:
    real = places / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    (places / "link.json").symlink_to(real)
    install(cli, "claude", "--config", str(places / "link.json"))
    assert (places / "link.json").is_symlink()
    assert list(servers(real, "claude")) == ["memory"]


def test_an_orchestrator_that_is_missing_is_named_first(cli: CommandLine, places: Path) -> None:
    error = cli.error("mcp", "--orchestrator", "nobody", "--install", "claude", "--yes")
    assert error["code"] == "orchestrator.missing"
    assert not (places / PLACES["claude"]).exists()


def test_a_change_in_the_meantime_is_not_lost(
    cli: CommandLine, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = places / PLACES["claude"]
    change = command.with_server(McpClient.CLAUDE, path, "memory", "memgraph", [])
    path.write_text('{"mine": 1}', encoding="utf-8")
    monkeypatch.setattr(command, "with_server", lambda *_: change)
    error = cli.error("mcp", "--orchestrator", "orc-1", "--install", "claude", "--yes")
    assert "meantime" in error["message"]
    assert path.read_text(encoding="utf-8") == '{"mine": 1}'


def test_places_on_other_systems() -> None:
    desktop = McpClient.CLAUDE_DESKTOP
    mac = config_path(desktop, {"HOME": "/h"}, "darwin")
    assert mac == Path("/h/Library/Application Support/Claude/claude_desktop_config.json")
    windows = config_path(desktop, {"USERPROFILE": "/h", "APPDATA": "/a"}, "win32")
    assert windows == Path("/a/Claude/claude_desktop_config.json")
    assert config_path(McpClient.CODEX, {"CODEX_HOME": "/c"}, "linux") == Path("/c/config.toml")
