"""Draws docs/images/demo.svg: what the demo prints, its first recalls and the contradiction.

Run it from the project's root after ``make demo``::

    .venv/bin/python docs/images/draw_demo.py
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PROJECT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(__file__).with_name("demo.svg")
# A recall, the open contradiction: enough to see, not more than a screen.
WANTED = ("$ memgraph ingest", "$ memgraph recall", "$ memgraph contradictions")
MOST_RECALLS = 2
WIDTH = 108


def excerpt(output: str) -> list[str]:
    """The lines of the commands that are shown."""
    shown: list[str] = []
    recalls = 0
    taking = False
    for line in output.splitlines():
        if line.startswith("$ "):
            recalls += line.startswith("$ memgraph recall")
            taking = line.startswith(WANTED) and not (
                line.startswith("$ memgraph recall") and recalls > MOST_RECALLS
            )
        if line.startswith("# ") or line == "edges" or line.startswith("  fact_"):
            continue
        if taking and (line or (shown and shown[-1])):
            shown.append(line)
    return shown


def draw(lines: list[str]) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in lines:
        style = "bold cyan" if line.startswith("$ ") else None
        console.print(Text(line, style=style or "", no_wrap=True, overflow="ellipsis"))
    form = console.export_svg(title="memgraph", font_aspect_ratio=0.61)
    # No web fonts: the reader's own monospace serves.
    while "@font-face" in form:
        start = form.index("@font-face")
        form = form[:start] + form[form.index("}", start) + 1 :]
    return form.replace("Fira Code", "ui-monospace")


def main() -> None:
    done = subprocess.run(
        [sys.executable, str(PROJECT / "examples" / "demo.py")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": str(WIDTH)},
    )
    place = f"{PROJECT}/.demo/tool-library/memory/ingest/processed/"
    TARGET.write_text(draw(excerpt(done.stdout.replace(place, "…/"))), encoding="utf-8")


if __name__ == "__main__":
    main()
