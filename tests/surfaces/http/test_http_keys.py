"""Keys and refusals against a server that runs: what changes counts at once, no is no."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from denial_lines import denials
from serving_worlds import Served, serving

from memgraph.surfaces.cli import main

FIELDS: dict[str, Any] = {
    "name": "a test",
    "orchestrators": ("orc-1",),
    "permissions": ("read", "write"),
}
GET = "/v1/orchestrators/{}/memories/fact_00000000000000000000000000"


def key(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> dict[str, Any]:
    """What `memgraph key …` answers."""
    capsys.readouterr()
    assert main(["key", *arguments, "--root", str(root), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["data"]


def status(served: Served, secret: str | None) -> int:
    with served.client(secret) as client:
        found: int = client.get("/v1/orchestrators").status_code
    return found


def test_the_command_line_changes_the_keys_of_a_running_server(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    root = served.service.root
    grants = ("--orchestrator", "orc-1", "--permission", "read")
    old = key(capsys, root, "create", "an app", *grants, "--expires", "1d")
    assert status(served, old["secret"]) == 200
    new = key(capsys, root, "rotate", old["key_id"], "--overlap", "1h")
    assert [status(served, each["secret"]) for each in (old, new)] == [200, 200]
    key(capsys, root, "revoke", old["key_id"])
    assert [status(served, each["secret"]) for each in (old, new)] == [401, 200]
    states = {each["key_id"]: each["state"] for each in key(capsys, root, "list")["keys"]}
    assert (states[old["key_id"]], states[new["key_id"]]) == ("revoked", "valid")


def test_keys_that_cannot_be_trusted_let_nobody_in_and_say_not_where_they_lie(
    served: Served,
) -> None:
    secret = served.key()
    served.keys.path.chmod(0o644)
    try:
        with served.client(secret) as client:
            found = [client.get("/v1/orchestrators"), client.get(GET.format("orc-1"))]
    finally:
        served.keys.path.chmod(0o600)
    assert [each.status_code for each in found] == [503, 503]
    for each in found:
        assert each.json()["code"] == "config.invalid"
        assert str(served.service.root) not in each.text
    assert status(served, secret) == 200


def answer(response: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    """All that who asks is told; what differs with every request left out."""
    own = ("date", "x-request-id")
    headers = [(name, each) for name, each in response.headers.items() if name not in own]
    return response.status_code, response.content, sorted(headers)


@pytest.fixture(scope="module")
def other(served: Served) -> str:
    served.service.orchestrator("orc-2", create=True)
    return "orc-2"


def test_anothers_orchestrator_answers_like_none_sound_or_damaged(
    served: Served, other: str
) -> None:
    secret = served.key(**FIELDS)
    with served.client(secret) as client:
        found = {}
        for name in ("orc-9", other):
            found[name] = answer(client.get(GET.format(name)))
        sound = found.pop(other)
        assert sound == found["orc-9"]
        served.service.forget(other)
        database = served.service.paths(other).database
        kept = database.with_suffix(".kept")
        shutil.move(database, kept)
        database.write_bytes(b"no database at all " * 500)
        try:
            assert answer(client.get(GET.format(other))) == sound
        finally:
            shutil.move(kept, database)
    lines = [(line["field"], line["code"]) for line in denials(served.service.root, other)]
    assert lines == [("orchestrator", "orchestrator.missing")] * 2


def test_a_refusal_that_was_answered_outlives_the_process(tmp_path: Path) -> None:
    left = tmp_path / "left"
    with serving(tmp_path / "root", background=True) as running:
        for name in ("orc-1", "orc-2"):
            running.orchestrator(name)
        secret = running.key(**FIELDS)
        with running.client(secret) as client:
            asked = [client.get(GET.format(name)) for name in ("orc-2", "orc-1")]
        # What a process that ends now would leave. To close the files here would drop its locks.
        subprocess.run(["cp", "-a", running.service.root, left], check=True)
    assert [each.status_code for each in asked] == [404, 404]
    root, actor = left, f"key:{secret.split('_')[1]}"
    found = [(each["actor"], each["field"]) for each in denials(root, "orc-2")]
    assert found == [(actor, "orchestrator")]
    assert [each["field"] for each in denials(root, "orc-1")] == ["id"]
