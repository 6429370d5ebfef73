"""Logs, figures and journals of a server that was asked everything: ids, never a text nor a key."""

from __future__ import annotations

from pathlib import Path
from string import ascii_lowercase

from canaries import words_in
from route_walks import HERE, WALKS, View
from served_worlds import ONE, OWNERS, SEEING, TWO, Ask, Built, served
from test_routes_walked import in_order

FILE_NAMES = {f"Kx{one}{each}azz" for one in "ab" for each in ascii_lowercase}
ODD = "Kxspoke"
"""A word that stands in what only the asker says: addresses, headers, names that are none."""


def test_logs_figures_and_journals_hold_ids_alone(made: Built, tmp_path: Path) -> None:
    kept = all_that_is_kept(made, tmp_path)
    there_is_something_to_look_through(kept)
    assert words_kept(kept) == []
    assert keys_kept(kept) == []
    own = [text for name, text in kept.items() if name.startswith(f"copy/{ONE}/")]
    assert own
    assert [text for text in own if f'"{TWO}"' in text] == []


def all_that_is_kept(made: Built, root: Path) -> dict[str, str]:
    """All that was written down or told about requests, by where it stands."""
    with served(made, root / "copy") as server:
        view = View(server.world, server.other, SEEING["no scope"].viewer, server.made)
        for route in in_order(server):
            # A walk's requests differ in what they name: some of each are enough.
            for ask in list(WALKS[route](view))[::3]:
                server.ask("everything", ask)
        server.work_off()
        for ask in _odd():
            for who in ("everything", "a task", "nobody", "of another"):
                server.ask(who, ask)
        for secret in made.secrets.values():
            for asked in (secret, f"{secret}x", secret.swapcase()):
                told = {"Authorization": f"Bearer {asked}"}
                server.client.get("/v1/orchestrators", headers=told)
        figures = server.ask("operator", Ask("GET", "/metrics"))
        assert figures.status_code == 200
        denials = server.denied()
        assert denials
        kept = {"figures": figures.text, "denials": repr(denials), "keys": _keys(root)}
    written = [*(root / "copy").rglob("*.log*"), *(root / "copy").rglob("logs/**/*")]
    logs = [each for each in written if each.is_file() and each.name != "key"]
    kept |= {str(each.relative_to(root)): each.read_text("utf-8") for each in logs}
    kept["secrets"] = "\n".join(made.secrets.values())
    return kept


def _keys(root: Path) -> str:
    return (root / "copy" / "keys.json").read_text("utf-8")


def _odd() -> list[Ask]:
    return [
        Ask("GET", f"/v1/{ODD}"),
        Ask("GET", f"/v1/orchestrators/{ODD}/stats"),
        Ask("GET", f"{HERE}/memories/{ODD}"),
        Ask("GET", f"{HERE}/stats", {ODD: ODD, "project": ODD, "clearance": ODD}),
        Ask("POST", f"{HERE}/recall", body={ODD: ODD}),
        Ask("POST", f"{HERE}/recall", body={"query": ODD, "session_id": ODD, "tags": [ODD]}),
        Ask("POST", f"{HERE}/memories", content=f'{{"content": "{ODD}'.encode()),
        Ask("GET", "/healthz", headers={"User-Agent": ODD, "Referer": ODD, "X-Request-ID": ODD}),
        Ask("GET", "/healthz", headers={"Host": ODD}),
        Ask("GET", "/healthz", headers={"Origin": f"https://{ODD}"}),
        Ask("POST", "/mcp/{orchestrator}", body={"method": ODD, "id": ODD, "jsonrpc": "2.0"}),
    ]


def there_is_something_to_look_through(kept: dict[str, str]) -> None:
    names = {name.partition("/")[2] for name in kept}
    assert "logs/server.log" in names
    assert f"{ONE}/memory/logs/memory.log" in names
    assert all(
        kept[name]
        for name in kept
        if name.endswith(("server.log", f"{ONE}/memory/logs/memory.log"))
    )
    assert "key:" in kept["copy/logs/server.log"] + kept[f"copy/{ONE}/memory/logs/memory.log"]
    assert words_in(["Kxaaaaa"])


def words_kept(kept: dict[str, str]) -> list[tuple[str, str]]:
    """Words of memories and of askers, and where they stand."""
    found: list[tuple[str, str]] = []
    for name, text in kept.items():
        if name == "keys":
            # What a key was granted has names.
            continue
        # The log of an orchestrator tells which files were worked off, by name.
        dropped = FILE_NAMES if name.endswith("/memory.log") else set()
        found += [(name, each) for each in sorted(words_in([text]) - dropped)]
        found += [(name, each) for each in (ODD, "launch plan") if each in text]
    return found


def keys_kept(kept: dict[str, str]) -> list[tuple[str, str]]:
    """Ids of keys whose secret, or the part of it that is secret, stands somewhere."""
    secrets = kept["secrets"].split()
    assert len(secrets) >= len(OWNERS)
    return [
        (name, each.split("_", 2)[1])
        for name, text in kept.items()
        for each in secrets
        if name != "secrets" and each.split("_", 2)[2] in text
    ]
