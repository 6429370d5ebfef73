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
TALKS = Path("examples", "desk")
ROOT = Path(".demo")
NAME = "tool-library"


def demo() -> int:
    os.chdir(PROJECT)
    shutil.rmtree(ROOT, ignore_errors=True)
    os.environ["MEMGRAPH_ROOT"] = str(ROOT)
    say(f"An agent of a tool library gets a memory, in {ROOT}/. First seven files are read.")
    run("init", NAME)
    run("ingest", NAME, str(STORY))
    say("An answer says where it comes from: the file and the lines in it.")
    run("recall", NAME, "Where do we keep the loan register?", "--top-n", "1")
    say("Two conversations. In the second one the key has moved.")
    run("ingest", NAME, str(TALKS))
    mark = compared()
    say("What the agent reads before a message: both turns, with what one does to the other.")
    run("context", NAME, "Who has the spare key of the depot?", "--budget-tokens", "150")
    say("Both hold until somebody decides. To let the later turn replace the earlier:")
    print(f"memgraph accept {NAME} {mark} --reason TEXT   (dismiss instead of accept keeps both)")
    say("Two files contradict each other. Nothing is deleted here, either.")
    run("contradictions", NAME, "--text", "workshop closes")
    say("To go on, here or in a browser at http://127.0.0.1:8420/console/ :")
    found = shutil.which("memgraph") is not None or sys.prefix == sys.base_prefix
    activate = "" if found else f". {os.path.relpath(sys.prefix)}/bin/activate; "
    print(f"{activate}export MEMGRAPH_ROOT={ROOT}; memgraph serve --allow-without-key")
    return 0


def compared() -> str:
    """Finish what the background does, and return the short id of the mark about the key."""
    with MemoryService(ROOT, background=False) as service:
        library = service.orchestrator(NAME)
        library.settle()
        [mark] = library.contradictions.list(text="spare key").items
    return mark.edge.edge_id[-6:].lower()


def say(line: str) -> None:
    """A remark between two commands."""
    bold, normal = ("\x1b[1;36m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    print(f"{bold}\n# {line}{normal}")


def run(*arguments: str) -> None:
    """One command, shown as it is typed. The demo ends where one fails."""
    shown = " ".join(f'"{each}"' if " " in each else each for each in arguments)
    print(f"$ memgraph {shown}", flush=True)
    code = main([*arguments])
    if code != 0:
        sys.exit(code)


if __name__ == "__main__":
    sys.exit(demo())
