"""A tour in one minute: a tool library's papers become a memory that can be asked and audited.

Everything happens in .demo/, which is made anew each time. No key, no network.
"""
# ruff: noqa: T201 - it prints for a person

from __future__ import annotations

import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memgraph import MemoryService
from memgraph.surfaces.cli import main

PROJECT = Path(__file__).resolve().parent.parent
STORY = Path("examples", "story")
TALKS = Path("examples", "conversations.jsonl")
ROOT = Path(".demo")
NAME = "tool-library"

QUESTIONS = (
    "Where do we keep the loan register, and why?",
    "When does the workshop close on Fridays?",
    "Who takes care of the nightly backup?",
)


def demo() -> int:
    os.chdir(PROJECT)
    shutil.rmtree(ROOT, ignore_errors=True)
    say("One orchestrator is one database of its own.")
    run("init", NAME)
    say(
        "Seven files of a tool library: two decision records, notes, prose, a transcript, a chat,",
        "and a JSON document. They are copied into the drop zone and worked off.",
    )
    run("ingest", NAME, str(STORY))
    for question in QUESTIONS:
        say("Every answer says where it comes from: the file and the place in it.")
        run("recall", NAME, question, "--top-n", "3")
    say("The bulletin is what an orchestrator reads before each message.")
    run("bulletin", NAME)
    say("The context is what a prompt gets within a budget of tokens. No text in it can end it.")
    run("context", NAME, QUESTIONS[0], "--budget", "500")
    say("Two memories contradict each other. Neither is deleted; somebody has to decide.")
    edge_id, newer_id = contested()
    run("case", "show", NAME, edge_id)
    say("The trace of one side: its source, its history, and what was decided because of it.")
    run("trace", NAME, newer_id)
    say("What it reached: whom it was handed to, and what rests on it.")
    run("impact", NAME, newer_id)
    say("What stands behind it, down to the lines of the file.")
    run("grounds", NAME, newer_id)
    say("What stands on a ground that was replaced.")
    run("stale", NAME)
    say("Three conversations at the desk. Each turn is stored as it is said.")
    run("say", NAME, "--file", str(TALKS))
    say(
        "With a model, conversations become facts at night. Without one a turn stays a turn,",
        "and only labelled sentences are typed.",
    )
    run("run", "consolidation", NAME)
    say("A label is the writer's word: TODO, Decision, Goal. What was said twice is one fact.")
    run("list", NAME, "--kind", "fact", "--session-id", "desk-2026-06-08")
    say("One of them probably contradicts the notes of the desk: a small model has marked the two.")
    settle()
    run("contradictions", NAME, "--limit", "1")
    say(
        "An everyday change is marked, and both statements stay: only a person, an agent, a",
        "document or a configured language model says that one replaces the other.",
    )
    run("remember", NAME, "The spare key of the depot is with Mira.")
    run("remember", NAME, "The spare key of the depot is with Jonas now.")
    settle()
    run("recall", NAME, "Who has the spare key of the depot?", "--top-n", "2")
    say(
        "A year later: what a person, a file or a record said is still there. Only what a machine",
        "inferred, nobody used and nobody marked as important would be retired.",
    )
    before = active()
    in_a_year = datetime.now(UTC) + timedelta(days=365)
    run("run", "decay", NAME, "--now", in_a_year.isoformat(timespec="minutes"))
    print(f"{before} memories were active before, {active()} are now.")
    run("expiring", NAME, "--limit", "3")
    say("How healthy is all of it?")
    run("audit", NAME, "--examples", "1")
    say(
        "Decide a contradiction with: memgraph resolve. Let all jobs run: memgraph worker.",
        f"See it in a browser: memgraph serve --root {ROOT} --allow-without-key, then /console/.",
        f"The memory stays in {ROOT}/ until the next demo.",
    )
    if shutil.which("memgraph") is None and sys.prefix != sys.base_prefix:
        say(f"To type memgraph yourself: . {os.path.relpath(sys.prefix)}/bin/activate")
    return 0


def contested() -> tuple[str, str]:
    """The edge of the open contradiction, and its newer side."""
    with MemoryService(ROOT, background=False) as service:
        found = service.orchestrator(NAME).contradictions.list(text="workshop closes").items[0]
        return found.edge.edge_id, found.second.memory_id


def settle() -> None:
    """Finish what the background does: embed and compare."""
    with MemoryService(ROOT, background=False) as service:
        service.orchestrator(NAME).settle()


def active() -> int:
    """Return how many memories are active."""
    with MemoryService(ROOT, background=False) as service:
        return len(service.orchestrator(NAME).memories.list(limit=1_000))


def say(*lines: str) -> None:
    """A remark between two commands."""
    bold, normal = ("\x1b[1;36m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    print()
    for line in lines:
        print(f"{bold}# {line}{normal}")


def run(*arguments: str) -> None:
    """One command, shown as it is typed. The demo ends where one fails."""
    shown = " ".join(f'"{each}"' if " " in each else each for each in arguments)
    print(f"$ memgraph {shown} --root {ROOT}\n", flush=True)
    code = main([*arguments, "--root", str(ROOT)])
    if code != 0:
        sys.exit(code)


if __name__ == "__main__":
    sys.exit(demo())
