"""Generate ``src/schema.ts`` from the OpenAPI document of the HTTP API, with Node's packages."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from memgraph.surfaces.http.app import openapi

FOLDER = Path(__file__).resolve().parent


def document() -> dict[str, Any]:
    """Return the document from which the types are generated."""
    return {**openapi(), "components": _without_titles(openapi()["components"])}


def _without_titles(value: Any) -> Any:
    """Return a schema without the titles that only repeat the names of its fields."""
    if isinstance(value, list):
        return [_without_titles(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name: each for name, each in value.items() if name != "title" or isinstance(each, dict)}
    return {name: _without_titles(each) for name, each in kept.items()}


def main() -> None:
    """Write the types, and the digests by which a test knows that they are current."""
    source = json.dumps(document(), indent=1, sort_keys=True).encode()
    given = FOLDER / "build" / "openapi.json"
    given.parent.mkdir(exist_ok=True)
    given.write_bytes(source)
    subprocess.run(["npm", "run", "--silent", "generate"], cwd=FOLDER, check=True)
    types = (FOLDER / "src" / "schema.ts").read_bytes()
    digests = {
        name: hashlib.sha256(data).hexdigest()
        for name, data in (("openapi", source), ("types", types))
    }
    noted = json.dumps(digests, indent=2) + "\n"
    (FOLDER / "src" / "schema.digest.json").write_text(noted, encoding="utf-8")


if __name__ == "__main__":
    main()
