"""Runs the orchestrator: on the story beside this file, on another one, or on what you type."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from examples.orchestrator import events
from examples.orchestrator.channels import Answered, Inbox, Message, read
from examples.orchestrator.host import Host
from examples.orchestrator.models import LitellmModel, Model, ModelFailed, ScriptedModel
from memgraph import MemoryHooks, MemoryService
from memgraph.errors import MemgraphError

HERE = Path(__file__).parent
EVERYTHING_ANSWERED, SOMETHING_UNANSWERED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """One run. Gives 0, or 1 where a message got no answer of the model, or 2 for wrong use."""
    given = _parser().parse_args(arguments)
    show = events.as_json() if given.json else events.as_text()
    try:
        model = _model(given)
        with given.story.open(encoding="utf-8") if given.story else sys.stdin as lines:
            name = given.story.stem if given.story else given.stdin_name
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
    answered = Answered(given.root / f"{given.name}.answered")
    try:
        with (
            MemoryService(given.root) as service,
            MemoryHooks(service, given.name, deadline_ms=given.deadline_ms) as hooks,
        ):
            _prepare(service, hooks, show)
            host = Host(hooks, model, show, task_id=given.task, project_id=given.project)
            count = before = 0
            for message in Inbox(messages):
                if message in answered:
                    before += 1
                    continue
                host.answer(message)
                answered.note(message)
                count += 1
            show("finished", answered=count, answered_before=before)
            return host.unanswered
    finally:
        answered.close()


def _prepare(service: MemoryService, hooks: MemoryHooks, show: events.Show) -> None:
    """Make the memory where there is none, and let it load its model before the first message."""
    try:
        service.orchestrator(hooks.name, create=True)
    except MemgraphError as error:
        # What is wrong with a memory that is there is no hindrance.
        show("warning", code=error.code, text=error.message)
    hooks.prepare()


def _model(given: argparse.Namespace) -> Model:
    if given.model:
        return LitellmModel(given.model, api_base=given.api_base)
    return ScriptedModel(given.script)


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
    add("--stdin-name", default="stdin", help="tells messages from stdin from those of other runs")
    add("--script", type=Path, default=HERE / "answers.yaml", help="of the scripted model")
    add("--deadline-ms", type=int, help="how long a turn waits for its memory; default: settings")
    add("--model", help="a model as litellm names it, instead of the scripted one")
    add("--api-base", help="the model's address, where it is not its provider's own")
    add("--json", action="store_true", help="print events as JSON, one a line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
