"""The TypeScript client: its types are those of the API, and it works against a real server."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from programs import ran
from server_processes import server_process

from memgraph import MemoryService
from memgraph.service.access.keys import KeyStore

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "typescript"
HOW = "run `make references` and commit examples/typescript/src"
TOO_LONG_S = 120


@cache
def document() -> dict[str, Any]:
    """Return the document as a process of its own makes it, as ``make references`` does."""
    made = "import json; from generate import document; print(json.dumps(document()))"
    return json.loads(ran(["-c", made], cwd=FOLDER).stdout)


def node(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not (FOLDER / "node_modules").is_dir():
        pytest.skip("the packages are not installed: make typescript")
    return subprocess.run(
        ["node", *arguments],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=TOO_LONG_S,
    )


def compiled(folder: Path) -> Path:
    """Compile the client and its test to JavaScript, in a folder with the packages."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "build"))
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    done = node("node_modules/typescript/bin/tsc", cwd=folder)
    assert done.returncode == 0, done.stdout
    return folder


def test_the_types_are_those_of_the_api() -> None:
    """Compare digests, so that a change of the API fails this test even without node."""
    made = json.dumps(document(), indent=1, sort_keys=True).encode()
    noted = json.loads((FOLDER / "src" / "schema.digest.json").read_text(encoding="utf-8"))
    types = (FOLDER / "src" / "schema.ts").read_bytes()
    assert noted == {
        "openapi": hashlib.sha256(made).hexdigest(),
        "types": hashlib.sha256(types).hexdigest(),
    }, HOW


def test_the_types_are_generated_and_not_written(tmp_path: Path) -> None:
    given = tmp_path / "openapi.json"
    given.write_text(json.dumps(document(), sort_keys=True), encoding="utf-8")
    script = json.loads((FOLDER / "package.json").read_bytes())["scripts"]["generate"]
    options = script.split()[4:]
    made = tmp_path / "schema.ts"
    done = node(
        "node_modules/openapi-typescript/bin/cli.js",
        *(str(given), "--output", str(made), *options),
        cwd=FOLDER,
    )
    assert done.returncode == 0, done.stderr
    assert made.read_bytes() == (FOLDER / "src" / "schema.ts").read_bytes(), HOW


def test_the_client_works_against_a_real_server(tmp_path: Path) -> None:
    folder = compiled(tmp_path / "client")
    root = tmp_path / "root"
    with MemoryService(root, environ={}, background=False) as service:
        service.orchestrator("orc-1", create=True)
        permissions = {"read", "write"}
        key = KeyStore(service.root, service.clock).create(
            {
                "name": "node",
                "orchestrators": ("orc-1",),
                "permissions": permissions,
                "project_ids": ("*",),
                "session_ids": ("*",),
                "clearance": "Confidential",
            }
        )
    with server_process(root, keyless=False) as server:
        done = node(
            *("--test", "--test-reporter=tap", "--test-concurrency=1"),
            *("build/test/client.test.js", "build/test/conversation.test.js"),
            cwd=folder,
            URL=server.url,
            KEY=key.secret,
        )
    assert done.returncode == 0, done.stdout[-5_000:]
    assert "# fail 0" in done.stdout
    assert "# pass 9" in done.stdout


def test_the_lock_file_names_no_address() -> None:
    lock = json.loads((FOLDER / "package-lock.json").read_bytes())
    packages = [each for path, each in lock["packages"].items() if path]
    assert all("integrity" in each for each in packages)
    assert not any("resolved" in each for each in packages)
