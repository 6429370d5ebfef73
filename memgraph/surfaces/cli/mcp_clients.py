"""Locate the configuration files of MCP clients, and add a server to them."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from memgraph.surfaces.cli.files import write_whole
from memgraph.surfaces.cli.invocation import InvalidContent


class McpClient(StrEnum):
    """An agent that ``memgraph mcp --install`` can set up."""

    CLAUDE = "claude"
    CLAUDE_DESKTOP = "claude-desktop"
    VSCODE = "vscode"
    CURSOR = "cursor"
    CODEX = "codex"


_MEMBERS: Final[Mapping[McpClient, str]] = {
    McpClient.VSCODE: "servers",
    McpClient.CODEX: "mcp_servers",
}


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change of a configuration file; ``before`` is None if the file does not exist yet."""

    path: Path
    before: str | None
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty if nothing changes."""
        return "".join(
            difflib.unified_diff(
                _with_newline(self.before or "").splitlines(keepends=True),
                _with_newline(self.after).splitlines(keepends=True),
                "/dev/null" if self.before is None else str(self.path),
                str(self.path),
            )
        )

    def write(self) -> Path | None:
        """Write the file, and return the path of the backup of the old one, if there was one.

        Raises:
            InvalidContent: the file was changed in the meantime.
            OSError: the file or its backup cannot be written.
        """
        if _read(self.path) != self.before:
            raise InvalidContent(f"{self.path} was changed in the meantime: try again")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        backup = None
        if self.before is not None:
            backup = _backup_path(self.path)
            shutil.copy2(self.path, backup)
        write_whole(self.path, self.after)
        if backup is not None:
            shutil.copymode(backup, self.path)
        return backup


def config_path(client: McpClient, environ: Mapping[str, str], platform: str) -> Path:
    """Return the default path of a client's configuration file.

    For Claude Code and VS Code it is the project's file in the current folder, for the others the
    user's.
    """
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "~").expanduser()
    if client is McpClient.CLAUDE:
        return Path.cwd() / ".mcp.json"
    if client is McpClient.VSCODE:
        return Path.cwd() / ".vscode" / "mcp.json"
    if client is McpClient.CURSOR:
        return home / ".cursor" / "mcp.json"
    if client is McpClient.CODEX:
        return Path(environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    if platform == "darwin":
        folder = home / "Library" / "Application Support"
    elif platform == "win32":
        folder = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        folder = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


def program() -> str:
    """Return the full path of ``memgraph``: a client may start it without a shell's PATH."""
    script = Path(sys.executable).with_name("memgraph.exe" if os.name == "nt" else "memgraph")
    return str(script) if script.exists() else shutil.which("memgraph") or "memgraph"


def with_server(
    client: McpClient, path: Path, name: str, command: str, arguments: Sequence[str]
) -> ConfigChange:
    """Return the change that adds a server to a configuration file and keeps everything else.

    Raises:
        InvalidContent: the file has an invalid format, or another server of this name.
    """
    # Follow a link, such as one to a dotfiles folder, so that it is not replaced by a file.
    path = path.resolve()
    before = _read(path)
    entry: dict[str, Any] = {"command": command, "args": list(arguments)}
    if client is McpClient.VSCODE:
        entry = {"type": "stdio", **entry}
    member = _MEMBERS.get(client, "mcpServers")
    change = _with_table if client is McpClient.CODEX else _with_member
    return ConfigChange(path, before, change(path, before or "", member, name, entry))


def _with_member(path: Path, text: str, member: str, name: str, entry: dict[str, Any]) -> str:
    entry_json = json.dumps({name: entry}, ensure_ascii=False)
    try:
        config = json.loads(text, object_pairs_hook=_unique_fields) if text.strip() else {}
    except ValueError as error:
        raise InvalidContent(
            f"{path} is not plain JSON ({error}); rewriting it would lose its comments. Add"
            f" {entry_json} under {member} by hand"
        ) from None
    if not isinstance(config, dict) or not isinstance(config.get(member, {}), dict):
        raise InvalidContent(f"{path} has no object {member!r} to add a server to")
    if _has_server(path, config.get(member, {}), name, entry):
        return text
    config.setdefault(member, {})[name] = entry
    indent = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return json.dumps(config, indent=indent[1] if indent else 2, ensure_ascii=False) + "\n"


def _with_table(path: Path, text: str, member: str, name: str, entry: dict[str, Any]) -> str:
    before = _toml(path, text)
    if not isinstance(before.get(member, {}), dict):
        raise InvalidContent(f"{path} has no table {member!r} to add a server to")
    if _has_server(path, before.get(member, {}), name, entry):
        return text
    # A basic string of TOML is written like a string of JSON, except for DEL.
    fields = (f"{item} = {json.dumps(value, ensure_ascii=False)}" for item, value in entry.items())
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
    table = "\n".join((f"[{member}.{key}]", *fields, ""))
    after = f"{_with_newline(text)}\n{table}" if text else table
    expected = {**before, member: {**before.get(member, {}), name: entry}}
    try:
        same = tomllib.loads(after) == expected
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise InvalidContent(f"{path} defines {member!r} inline; add this by hand: {table}")
    return after


def _has_server(
    path: Path, servers: Mapping[str, Any], name: str, entry: Mapping[str, Any]
) -> bool:
    if name in servers and servers[name] != entry:
        raise InvalidContent(
            f"{path} has another server named {name!r}: choose another name with --name, or remove"
            " that server first"
        )
    return name in servers


def _toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidContent(f"{path} is not TOML: {error}") from None


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError("an object has the same field twice")
    return unique


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InvalidContent(f"{path} is not UTF-8") from None


def _with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _backup_path(path: Path) -> Path:
    number = 1
    while (backup := path.with_name(f"{path.name}.backup-{number}")).exists():
        number += 1
    return backup
