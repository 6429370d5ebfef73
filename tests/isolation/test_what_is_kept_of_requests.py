"""Logs, figures and journals of a server that was asked everything: ids, never a text nor a key."""

from __future__ import annotations

from itertools import product
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
    # There is something to look through.
    logs = [kept["copy/logs/server.log"], kept[f"copy/{ONE}/memory/logs/memory.log"]]
    assert all(logs)
    assert "key:" in "".join(logs)
    assert words_in(["Kxaaaaa"])
    secrets = [each.split("_", 2) for each in made.secrets.values()]
    assert len(secrets) >= len(OWNERS)
    for name, text in kept.items():
        assert [key for _, key, secret in secrets if secret in text] == [], name
        if name == "keys":
            # What a key was granted has names.
            continue
        # The log of an orchestrator tells which files were worked off, by name.
        dropped = FILE_NAMES if name.endswith("/memory.log") else set()
        assert words_in([text]) - dropped == set(), name
        assert [each for each in (ODD, "launch plan") if each in text] == [], name
        assert not name.startswith(f"copy/{ONE}/") or f'"{TWO}"' not in text, name


def all_that_is_kept(made: Built, root: Path) -> dict[str, str]:
    """All that was written down or told about requests, by where it stands."""
    with served(made, root / "copy") as server:
        view = View(server.world, server.other, SEEING["no scope"].viewer, server.made)
        for route in in_order(server):
            # A walk's requests differ in what they name: some of each are enough.
            for ask in list(WALKS[route](view))[:2]:
                server.ask("everything", ask)
        server.work_off()
        for ask, who in product(_odd(), ("everything", "a task", "nobody", "of another")):
            server.ask(who, ask)
        for secret in made.secrets.values():
            for asked in (secret, f"{secret}x", secret.swapcase()):
                told = {"Authorization": f"Bearer {asked}"}
                server.client.get("/v1/orchestrators", headers=told)
        figures = server.ask("operator", Ask("GET", "/metrics"))
        assert figures.status_code == 200
        denials = server.denied()
        assert denials
    keys = (root / "copy" / "keys.json").read_text("utf-8")
    kept = {"figures": figures.text, "denials": repr(denials), "keys": keys}
    written = [*(root / "copy").rglob("*.log*"), *(root / "copy").rglob("logs/**/*")]
    logs = [each for each in written if each.is_file() and each.name != "key"]
    return kept | {str(each.relative_to(root)): each.read_text("utf-8") for each in logs}


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
