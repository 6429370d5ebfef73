"""Files and a conversation of a tool library become a memory that can be asked and audited.

Everything happens in .demo/, which is made anew each time. No key, no network.
"""
# ruff: noqa: T201 - it prints for a person

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from memgraph import MemoryService
from memgraph.surfaces.cli import main

PROJECT = Path(__file__).resolve().parent.parent
STORY = Path("examples", "story")
TALKS = Path("examples", "desk-talk.jsonl")
ROOT = Path(".demo")
NAME = "tool-library"


def demo() -> int:
    os.chdir(PROJECT)
    shutil.rmtree(ROOT, ignore_errors=True)
    say("One orchestrator is one database. Seven files of a tool library become memories.")
    run("init", NAME)
    run("ingest", NAME, str(STORY))
    say("An answer says where it comes from: the file and the lines in it.")
    run("recall", NAME, "Where do we keep the loan register?", "--top-n", "1")
    say("Two conversations. In the second one the key has moved.")
    run("say", NAME, "--file", str(TALKS))
    settle()
    say("What an agent reads before a message: both turns, with what one does to the other.")
    run("context", NAME, "Who has the spare key of the depot?", "--budget-tokens", "150")
    say("Two memories contradict each other. Neither is deleted; somebody has to decide.")
    run("contradictions", NAME, "--text", "workshop closes")
    say(
        f"To look around: memgraph serve --root {ROOT} --allow-without-key, then /console/ in",
        f"a browser. The memory stays in {ROOT}/ until the next demo.",
    )
    if shutil.which("memgraph") is None and sys.prefix != sys.base_prefix:
        say(f"To type memgraph yourself: . {os.path.relpath(sys.prefix)}/bin/activate")
    return 0


def settle() -> None:
    """Finish what the background does: embed and compare."""
    with MemoryService(ROOT, background=False) as service:
        service.orchestrator(NAME).settle()


def say(*lines: str) -> None:
    """A remark between two commands."""
    bold, normal = ("\x1b[1;36m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    print()
    for line in lines:
        print(f"{bold}# {line}{normal}")


def run(*arguments: str) -> None:
    """One command, shown as it is typed. The demo ends where one fails."""
    shown = " ".join(f'"{each}"' if " " in each else each for each in arguments)
    print(f"$ memgraph {shown} --root {ROOT}", flush=True)
    code = main([*arguments, "--root", str(ROOT)])
    if code != 0:
        sys.exit(code)


if __name__ == "__main__":
    sys.exit(demo())
