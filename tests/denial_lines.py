"""The refusals in the log of an orchestrator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memgraph.paths import OrchestratorPaths

_TOLD = ("actor", "field", "code", "asked_sha256")


def denials(root: Path, name: str = "orc-1") -> list[dict[str, Any]]:
    """Return what each line of a refusal tells, in order."""
    path = OrchestratorPaths(root, name).log_file
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    found = [line for line in map(json.loads, lines) if line["event"] == "access.denied"]
    return [{key: line[key] for key in _TOLD if key in line} for line in found]
