"""``memgraph --server``: every command on a real server, or a plain no."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving_worlds import Served, serving
from test_cli_commands import examples

from docs.references import command_paths, derived_commands

if TYPE_CHECKING:
    from conftest import CommandLine

REMOTE = {
    *("init", "sessions", "stats", "verify", "promote", "jobs"),
    *("export", "backup", "health"),
}
"""The commands without an operation that work on a server."""
MakeContradiction = Callable[[], tuple[str, str, str]]


@pytest.fixture
def served(cli: CommandLine) -> Iterator[Served]:
    """A server over the root of the command line."""
    with serving(cli.root) as made:
        yield made


@pytest.fixture
def remote(cli: CommandLine, served: Served, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line, told of the server by the environment."""
    monkeypatch.setenv("MEMGRAPH_SERVER", served.url)
    monkeypatch.setenv("MEMGRAPH_KEY", served.key())
    return cli


def test_every_command_prints_something_on_a_server_or_is_of_a_root_alone(
    cli: CommandLine,
    contradiction: MakeContradiction,
    served: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {**examples(cli, contradiction, tmp_path), "serve": ["serve"]}
    assert set(command_paths()) >= REMOTE
    on_a_server = REMOTE | derived_commands().keys()
    there = ("--server", served.url, "--key", served.key())
    for command, arguments in given.items():
        if command not in on_a_server:
            assert cli.error(*arguments, *there)["code"] == "cli.local_only", command
            continue
        ran = cli(*arguments, *there)
        assert (ran.code, "error[" in ran.err) == (0, False), command
        assert ran.out.strip(), command
        assert "\x1b" not in ran.out, command
    embedding = cli.json("remember", "orc-1", "It is embedded there.", *there)["embedding"]
    assert embedding == {"by": "server"}


def test_a_server_and_the_root_beside_it_tell_the_same(
    remote: CommandLine, contradiction: MakeContradiction
) -> None:
    one, _, _ = contradiction()
    root = ("--root", str(remote.root))
    for arguments in (
        ["list", "orc-1", "--all"],
        ["trace", "orc-1", one],
        ["entities", "orc-1"],
        ["tier", "orc-1", "global"],
        ["verify", "orc-1"],
        ["subgraph", "orc-1", one],
    ):
        assert remote.json(*arguments) == remote.json(*arguments, *root), arguments
    for arguments in (["recall", "orc-1", "shop"], ["bulletin", "orc-1"]):
        assert remote(*arguments).out == remote(*arguments, *root).out
    [there], [here] = (remote.json("health", *where)["orchestrators"] for where in ((), root))
    assert here.pop("store").endswith(".db")
    assert there == {**here, "store": None}


def test_a_root_named_beats_the_server_of_the_environment(remote: CommandLine) -> None:
    assert remote.error("repair", "orc-1")["code"] == "cli.local_only"
    assert remote.json("repair", "orc-1", "--root", str(remote.root))["orchestrator"]
    both = remote("stats", "orc-1", "--root", str(remote.root), "--server", "http://127.0.0.1:9")
    assert (both.code, both.err.split(":")[0]) == (2, "error[cli.usage]")


def test_the_key_is_read_from_a_file_and_shown_nowhere(
    cli: CommandLine, served: Served, tmp_path: Path
) -> None:
    secret = served.key()
    (tmp_path / "key").write_text(secret + "\n", encoding="ascii")
    there = ("--server", served.url)
    stored = cli.json("remember", "orc-1", "By a file.", *there, "--key-file", f"{tmp_path}/key")
    assert cli.json("get", "orc-1", stored["memory_id"])["content"] == "By a file."
    refused = cli("stats", "orc-1", *there, "--key", secret[:-1], "--json")
    assert refused.error["code"] == "access.unauthenticated"
    assert secret[:-1] not in refused.err
    for text in ("", "two words", "schlüssel"):
        (tmp_path / "bad").write_text(text, encoding="utf-8")
        refused = cli("stats", "orc-1", *there, "--key-file", f"{tmp_path}/bad", "--json")
        assert refused.error["code"] == "cli.unusable"
        assert not text.strip() or text not in refused.err
    both = ("--key", secret, "--key-file", f"{tmp_path}/key")
    assert cli("stats", "orc-1", *there, *both).code == 2


def test_whoever_shows_a_key_means_a_server(cli: CommandLine) -> None:
    """Nothing is written into a root beside it when the server's address was forgotten."""
    for option in (["--key", "mgk_k"], ["--key-file", "file"], ["--plain-http"]):
        for command in (["remember", "orc-1", "Not here."], ["repair", "orc-1"]):
            assert cli.error(*command, *option)["code"] == "cli.usage", option
    assert cli.json("list", "orc-1")["items"] == []


def test_what_a_server_refuses_has_the_librarys_code(remote: CommandLine) -> None:
    for arguments, code in (
        (["get", "orc-1", "fact_none"], "memory.not_found"),
        (["get", "orc-9", "fact_none"], "orchestrator.missing"),
        (["init", "orc-1"], "orchestrator.exists"),
        (["remember", "orc-1", "x", "--importance", "101"], "input.invalid"),
        (["backup", "orc-1", "x", "--accept-findings"], "cli.local_only"),
        (["stats", "orc-1", "--actor", "ada"], "cli.usage"),
        (["stats", "orc-1", "--server", "memory.example"], "input.invalid"),
        (["stats", "orc-1", "--server", "http://memory.example"], "input.invalid"),
    ):
        assert remote.error(*arguments)["code"] == code, arguments
    assert remote.json("init", "orc-1", "--exist-ok")["created"] is False
    for command, named in ((["ingest", "orc-1"], True), (["key", "list"], False)):
        assert ("PUT /ingest/files" in remote.error(*command)["message"]) is named


def test_errors_name_the_options_of_the_command_line(
    cli: CommandLine, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMGRAPH_KEY", raising=False)
    for key in ((), ("--key", "mgk_k")):
        refused = cli("stats", "orc-1", "--server", served.url, *key)
        assert refused.err.startswith("error[access.unauthenticated]: ")
        assert refused.err.endswith("; name a key with --key-file or MEMGRAPH_KEY\n")
    elsewhere = cli.error("stats", "orc-1", "--server", "http://memory.example", "--key", "mgk_k")
    assert "use https" in elsewhere["message"]
