"""The snippets of the README and the guides, each with the environment that runs it.

A fence is ``language`` or ``language environment``: the latter runs where the adapter of that name
is tested, all others in the environment of the project.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
ENVIRONMENTS = frozenset({"", "openai-agents"})
_FENCE = re.compile(
    r"^```(?P<language>\w+)(?: (?P<environment>[^\n]+))?\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Snippet(NamedTuple):
    """``environment`` is empty for the project's own."""

    language: str
    environment: str
    body: str


def snippets(path: Path) -> list[Snippet]:
    text = path.read_text(encoding="utf-8")
    return [
        Snippet(match["language"], match["environment"] or "", match["body"])
        for match in _FENCE.finditer(text)
    ]


def run_python(path: Path, environment: str = "") -> int:
    """Run the Python snippets of one environment in order, in one namespace; gives how many."""
    namespace: dict[str, object] = {"__name__": "__snippet__"}
    chosen = [
        each.body
        for each in snippets(path)
        if (each.language, each.environment) == ("python", environment)
    ]
    for body in chosen:
        exec(compile(body, str(path), "exec"), namespace)
    return len(chosen)
