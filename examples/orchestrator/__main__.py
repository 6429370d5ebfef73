"""Runs the orchestrator: on the story beside this file, on another one, or on what you type."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from examples.orchestrator import events
from examples.orchestrator.channels import Answered, Inbox, Message, read
from examples.orchestrator.host import Host
from examples.orchestrator.models import LitellmModel, Model, ModelFailed, ScriptedModel
from memgraph import MemoryHooks, MemoryService
from memgraph.errors import MemgraphError

HERE = Path(__file__).parent
EVERYTHING_ANSWERED, SOMETHING_UNANSWERED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """One run; gives its exit code."""
    given = _parser().parse_args(arguments)
    show = events.shown(as_json=given.json)
    try:
        model: Model = ScriptedModel(given.script)
        if given.model:
            model = LitellmModel(given.model, api_base=given.api_base)
        with given.story.open(encoding="utf-8") if given.story else sys.stdin as lines:
            # What is typed in one run is not what was typed in another.
            name = given.story.stem if given.story else f"stdin-{uuid4().hex[:8]}"
            unanswered = _run(given, model, read(lines, name), show)
    except (OSError, ValueError, ModelFailed, MemgraphError) as error:
        sys.stderr.write(f"orchestrator: {error}\n")
        return WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    return SOMETHING_UNANSWERED if unanswered else EVERYTHING_ANSWERED


def _run(
    given: argparse.Namespace, model: Model, messages: Iterable[Message], show: events.Show
) -> int:
    """Answers all messages, each once; gives how many had no answer of the model."""
    with (
        closing(Answered(given.root / f"{given.name}.answered")) as answered,
        MemoryService(given.root) as service,
        MemoryHooks(service, given.name, deadline_ms=given.deadline_ms) as hooks,
    ):
        try:
            service.orchestrator(given.name, create=True)
        except MemgraphError as error:  # what is wrong with it is no hindrance
            show("warning", code=error.code, text=error.message)
        hooks.prepare()
        host = Host(hooks, model, show, task_id=given.task, project_id=given.project)
        count = before = 0
        for message in Inbox(messages):
            if message in answered:
                before += 1
            else:
                host.answer(message)
                answered.note(message)
                count += 1
        show("finished", answered=count, answered_before=before)
        return host.unanswered


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.orchestrator",
        description="A small orchestrator that has a memory. It works with no key and no network.",
        epilog="Exit codes: 0, 1 where a message got no answer of the model, 2 for wrong use.",
    )
    add = parser.add_argument
    add("--root", type=Path, default=Path(".orchestrator"), help="where the memory is kept")
    add("--name", default="print-shop", help="of the orchestrator")
    add("--task", default="spring-festival", help="what is being worked on")
    add("--project", default="posters", help="what the task belongs to")
    add("--story", type=Path, help="messages, a line each: channel/speaker: text; else from stdin")
    add("--script", type=Path, default=HERE / "answers.yaml", help="of the scripted model")
    add("--deadline-ms", type=int, default=5_000, help="how long a turn waits for its memory")
    add("--model", help="a model as litellm names it, instead of the scripted one")
    add("--api-base", help="the model's address, where it is not its provider's own")
    add("--json", action="store_true", help="print events as JSON, one a line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
